// Every view in both themes through axe-core, and a server that restarts under
// the page.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import {
  Bench, approve, assertAccessible, calls, card, lacking, leave, ready, rest,
  say,
} from './kit.mjs';

const skip = await lacking();

describe('views', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open();
  });
  after(() => bench?.close());

  for (const scheme of ['light', 'dark'])
    test(`accessible in ${scheme}: empty, card, answer, other views`, async () => {
      const page = await bench.visit('/', { colorScheme: scheme, reducedMotion: 'reduce' });
      await page.locator('[data-example]').first().waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
      await assertAccessible(page, 'empty');
      await say(page, 'write "# T\\n- a" to x.md, then run "false"');
      await card(page).waitFor();
      await assertAccessible(page, 'a card');
      await page.keyboard.press('a');
      await card(page).getByText('false').first().waitFor();
      await page.keyboard.press('a');
      await rest(page);
      await calls(page, 'failed').waitFor();
      await assertAccessible(page, 'an answer');
      await page.getByRole('tab', { name: 'Box' }).click();
      await assertAccessible(page, 'box');
      for (const view of ['Overview', 'Settings']) {
        await page.getByRole('link', { name: view }).click();
        await page.getByRole('heading', { name: view }).waitFor();
        await assertAccessible(page, view);
      }
      await leave(page);
    });

  test('the server restarts under the page', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'write later to l.txt');
    await card(page).waitFor();
    await bench.stopServer();
    await page.locator('[data-lost]').waitFor();
    await bench.startServer();
    await page.locator('[data-lost]').waitFor({ state: 'hidden' });
    await card(page).getByText('l.txt').first().waitFor();
    await approve(page).click();
    await calls(page, 'done').waitFor();
    await leave(page);
  });
});
