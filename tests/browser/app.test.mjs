// The page as an app: its manifest, its icons and its colour. It has no service
// worker, so nothing of a conversation stays in a cache of ours.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Bench, lacking, leave, ready } from './kit.mjs';

const skip = await lacking();

describe('the page as an app', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open();
  });
  after(() => bench?.close());

  test('the browser accepts the manifest, and finds icons of the sizes it says', async () => {
    const page = await bench.visit();
    await ready(page);
    const cdp = await page.context().newCDPSession(page);
    const { url, errors, data } = await cdp.send('Page.getAppManifest');
    assert.deepEqual(errors, []);
    assert.ok(url.endsWith('/manifest.webmanifest'));
    const manifest = JSON.parse(data);
    assert.deepEqual([manifest.display, manifest.start_url], ['standalone', '/']);
    assert.ok(manifest.icons.some((i) => i.purpose === 'maskable'));
    for (const { src, sizes } of manifest.icons) {
      const size = await page.evaluate(async (path) => {
        const image = new Image();
        image.src = path;
        await image.decode();
        return `${image.naturalWidth}x${image.naturalHeight}`;
      }, src);
      assert.equal(size, sizes, src);
    }
    assert.equal(await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length), 0);
    await leave(page);
  });

  test('the colour of the window follows the theme', async () => {
    const page = await bench.visit('/', { colorScheme: 'dark' });
    await ready(page);
    const colour = () => page.locator('meta[name=theme-color]').getAttribute('content');
    assert.equal(await colour(), '#141412');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.waitForFunction(() => document.documentElement.dataset.theme === 'light');
    assert.equal(await colour(), '#fbfbfa');
    await leave(page);
  });
});
