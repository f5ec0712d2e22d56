// The documents at /docs with axe-core: both themes, a phone and a desk. axe takes
// seconds for a page, so there are two each time; all pages have the same frame.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Bench, assertAccessible, lacking, leave } from './kit.mjs';

const skip = await lacking();
const SIZES = { phone: { width: 390, height: 844 }, desk: { width: 1440, height: 900 } };
const CASES = [
  ['light', 'phone', '/docs/connect'], ['light', 'desk', '/docs/roles'],
  ['dark', 'phone', '/docs/nothing'], ['dark', 'desk', '/docs/start'],
];

describe('documents', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open();
  });
  after(() => bench?.close());

  for (const [scheme, size, path] of CASES)
    test(`accessible in ${scheme} on a ${size}: the first page with results, ${path}`, async () => {
      const page = await bench.visit(path, { colorScheme: scheme, viewport: SIZES[size], reducedMotion: 'reduce' });
      const ink = await page.evaluate(() => getComputedStyle(document.body).color);
      assert.equal(ink, scheme === 'dark' ? 'rgb(236, 234, 229)' : 'rgb(29, 28, 26)');
      await assertAccessible(page, path);
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
