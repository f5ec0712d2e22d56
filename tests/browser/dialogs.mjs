// Dialogs on every screen: no violation of axe, no sideways scrolling, closed by
// Escape, and the focus is back where it was. Dialogs of servers, models, modes,
// prompts and shares have tests beside what they do.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Bench, assertAccessible, lacking, leave, ready, rest, say } from './kit.mjs';

const skip = await lacking();

/** Tests of all dialogs on these screens. */
export const dialogs = (screens) =>
  describe('dialogs', { skip: skip && !process.env.CI ? skip : false }, () => {
    let bench, path;
    before(async () => {
      bench = await Bench.open();
      const page = await bench.visit();
      await ready(page);
      await page.getByRole('tab', { name: 'Files' }).click();
      await page.locator('#pane input[type=file]').setInputFiles([{ name: 't.csv', mimeType: 'text/csv', buffer: Buffer.from('name,age\nAnn,7\n') }]);
      await page.getByRole('button', { name: 'Open t.csv' }).waitFor();
      await say(page, 'say hello to everybody');
      await rest(page);
      await page.waitForURL(/\/[\w-]{8,}$/);
      path = new URL(page.url()).pathname;
      await leave(page);
    });
    after(() => bench?.close());

    /** The row of the conversation, with its actions shown. */
    async function row(page, touch) {
      const open = page.getByRole('button', { name: 'Conversations', exact: true });
      if (await open.isVisible()) await open.click();
      const one = page.locator('nav li', { hasText: 'say hello' });
      if (touch) await one.getByRole('button', { name: /^Actions for/ }).tap();
      else await one.hover();
      return one;
    }
    /** Opens the pane beside the conversation at that tab. */
    async function pane(page, tab) {
      if (page.viewportSize().width < 1280) await page.keyboard.press('c'); // else it is open, or comes
      await page.getByRole('tab', { name: tab }).click();
    }
    const OPEN = {
      rename: async (page, touch) => (await row(page, touch)).getByRole('button', { name: /^Rename/ }).click(),
      delete: async (page, touch) => (await row(page, touch)).getByRole('button', { name: /^Delete/ }).click(),
      keys: (page) => page.keyboard.press('?'),
      preview: async (page) => {
        await pane(page, 'Files');
        await page.getByRole('button', { name: 'Open t.csv' }).click();
        await page.locator('[data-preview] td').first().waitFor();
      },
      preset: async (page) => {
        await pane(page, 'Sandbox');
        await page.getByRole('button', { name: 'Save as a preset…' }).click();
      },
    };

    for (const view of screens)
      test(`${view.viewport.width} px, ${view.colorScheme}`, async () => {
        for (const [name, open] of Object.entries(OPEN)) {
          const page = await bench.visit(path, view);
          await page.locator('main').getByText('say hello to everybody').first().waitFor();
          await page.locator('main').click({ position: { x: 5, y: 200 } }); // not in the message field
          await open(page, view.hasTouch);
          const dialog = page.getByRole('dialog').last();
          await dialog.waitFor();
          const what = `${name}, ${view.viewport.width} ${view.colorScheme}`;
          await assertAccessible(page, what);
          assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what}: sideways scrolling`);
          assert.ok(await dialog.evaluate((el) => el.contains(document.activeElement) || el === document.activeElement), `${what}: the focus`);
          if (process.env.MO_SHOTS) await page.screenshot({ path: join(process.env.MO_SHOTS, `${name}-${view.viewport.width}-${view.colorScheme}.png`) });
          const n = await page.getByRole('dialog').count();
          await page.keyboard.press('Escape');
          await page.waitForFunction((was) => document.querySelectorAll('[role=dialog], dialog[open]').length < was, n);
          await leave(page);
        }
      });
  });
