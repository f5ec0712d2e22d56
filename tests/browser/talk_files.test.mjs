// Conversations that leave and come back: a file that is imported, and a link
// that everybody reads.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { until } from '../it/server.mjs';
import { Bench, VIEWS, assertAccessible, lacking, leave, ready, rest, say } from './kit.mjs';

const skip = await lacking();

describe('conversations as files and links', { skip: skip && !process.env.CI ? skip : false }, () => {
  let bench, page;
  before(async () => {
    bench = await Bench.open();
    page = await bench.visit();
    await ready(page);
    await say(page, 'say hello to everybody');
    await rest(page);
  });
  after(async () => {
    if (page) await leave(page);
    await bench?.close();
  });
  const menu = async (p) => {
    const open = p.getByRole('button', { name: 'Conversations' });
    if (await open.isVisible().catch(() => false)) await open.click();
  };

  test('a file is imported and opened; one that is none is refused by its entry', async () => {
    const id = page.url().split('/').at(-1);
    let file;
    await until(async () => {
      file = await (await fetch(`${bench.server.url}/api/sessions/${id}/history?format=json`)).json();
      return file.entries.length === 2;
    }, 'the answer is stored');
    file.title = 'Brought along';
    const path = join(bench.dir, 'conversation.json');
    await writeFile(path, JSON.stringify(file));
    const choose = async (name) => {
      const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Import a conversation…' }).click()]);
      await chooser.setFiles(name);
    };
    await choose(path);
    await page.locator('nav li', { hasText: 'Brought along' }).waitFor();
    await page.waitForFunction((was) => !location.pathname.endsWith(was), id);
    await page.locator('main').getByText('say hello to everybody').first().waitFor();
    file.title = 'Half of it';
    const whole = file.entries;
    file.entries = whole.slice(0, 1);
    await writeFile(path, JSON.stringify(file));
    await choose(path);
    await page.locator('[data-imported]', { hasText: 'before its last message was answered' }).waitFor();
    assert.equal(await page.locator('[role=alert]').count(), 0, 'nothing went wrong');
    file.entries = whole;
    file.entries[0].role = 'system';
    await writeFile(path, JSON.stringify(file));
    await choose(path);
    await page.getByText('The conversation was not imported: entries[0]: its role is not known').waitFor();
  });

  test('a link: made, opened by a stranger, withdrawn', async () => {
    const row = page.locator('nav li', { hasText: 'say hello' });
    await row.hover();
    await row.getByRole('button', { name: 'Share “' }).click();
    const dialog = page.getByRole('dialog', { name: 'Share conversation' });
    await dialog.getByText('as it is now').waitFor();
    await dialog.getByRole('button', { name: 'Make a link' }).click();
    const url = (await dialog.locator('[data-link-new]').textContent()).trim();
    assert.match(url, /^http:\/\/localhost:\d+\/shared\/[\w-]{32}$/);
    await dialog.locator('[data-link]', { hasText: 'until' }).waitFor();
    await assertAccessible(page, 'the dialog');
    if (process.env.MO_SHOTS) await page.screenshot({ path: join(process.env.MO_SHOTS, 'dialog-1440.png') });
    for (const view of VIEWS) {
      const stranger = await bench.visit(new URL(url).pathname, view);
      await stranger.getByRole('heading', { name: 'say hello to everybody' }).waitFor();
      await stranger.getByText('Assistant').first().waitFor();
      await assertAccessible(stranger, `the page of the link, ${view.viewport.width} ${view.colorScheme}`);
      assert.ok(await stranger.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no sideways scrolling');
      assert.equal(await stranger.locator('script, form, input, button, a').count(), 0);
      if (process.env.MO_SHOTS) await stranger.screenshot({ path: join(process.env.MO_SHOTS, `link-${view.viewport.width}-${view.colorScheme}.png`) });
      await leave(stranger);
    }
    await dialog.getByRole('button', { name: 'Withdraw the link' }).click();
    await dialog.locator('[data-link]').waitFor({ state: 'detached' });
    const late = await bench.visit(new URL(url).pathname);
    await late.getByText('has expired or was withdrawn').waitFor();
    await leave(late);
    await dialog.getByRole('button', { name: 'Close' }).click();
  });

  test('the dialog and the list in all sizes and both themes', async () => {
    for (const view of [...VIEWS, { viewport: { width: 1024, height: 800 }, colorScheme: 'light' }]) {
      const p = await bench.visit(new URL(page.url()).pathname, view);
      await p.locator('main').getByText('say hello to everybody').first().waitFor();
      await menu(p);
      await p.getByRole('button', { name: 'Import a conversation…' }).waitFor();
      const row = p.locator('nav li', { hasText: 'Brought along' });
      if (view.hasTouch) await row.getByRole('button', { name: /^Actions for/ }).tap();
      else await row.hover();
      await row.getByRole('button', { name: 'Share “' }).click();
      await p.getByRole('button', { name: 'Make a link' }).waitFor();
      const what = `${view.viewport.width} ${view.colorScheme}`;
      await assertAccessible(p, what);
      assert.ok(await p.evaluate(() => document.documentElement.scrollWidth <= innerWidth), what);
      if (process.env.MO_SHOTS) await p.screenshot({ path: join(process.env.MO_SHOTS, `share-${view.viewport.width}-${view.colorScheme}.png`) });
      await leave(p);
    }
  });
});
