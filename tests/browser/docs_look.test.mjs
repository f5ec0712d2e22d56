// The documents at /docs with axe-core: both themes, a phone and a desk. axe takes
// seconds for a page, so these are few; all pages have the same frame.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Bench, assertAccessible, lacking, leave } from './kit.mjs';

const skip = await lacking();
const SIZES = { phone: { width: 390, height: 844 }, desk: { width: 1440, height: 900 } };
const PATHS = ['/docs/connect', '/docs/roles', '/docs/nothing'];

describe('documents', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open();
  });
  after(() => bench?.close());

  for (const scheme of ['light', 'dark'])
    for (const [size, viewport] of Object.entries(SIZES))
      test(`accessible in ${scheme} on a ${size}`, async () => {
        const page = await bench.visit('/docs', { colorScheme: scheme, viewport, reducedMotion: 'reduce' });
        const ink = await page.evaluate(() => getComputedStyle(document.body).color);
        assert.equal(ink, scheme === 'dark' ? 'rgb(236, 234, 229)' : 'rgb(29, 28, 26)');
        for (const path of PATHS) {
          await page.goto(bench.server.url + path);
          await assertAccessible(page, path);
        }
        await page.goto(`${bench.server.url}/docs`);
        await page.getByRole('searchbox', { name: 'Search' }).fill('approval');
        await page.locator('#results a').first().waitFor();
        await assertAccessible(page, 'the first page, with results');
        assert.ok(await page.evaluate(() => {
          const r = document.getElementById('results').getBoundingClientRect();
          return r.left >= 0 && r.right <= innerWidth;
        }), 'results are beside the window');
        await leave(page);
      });
});
