// The page in Chromium with the real server, native boxes and the demo model.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { until } from '../it/server.mjs';
import {
  Bench, approve, approveByKey, assertAccessible, calls, card, field, lacking, leave, ready, rest, say,
} from './kit.mjs';

const LOOP = 'run "for i in 1 2 3; do echo line $i; while [ $i = 1 ] && [ ! -e go ]; do sleep 0.1; done; done"';
const skip = await lacking();

describe('the page', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open();
  });
  after(() => bench?.close());

  test('load, ask, approve, live output, answer', async () => {
    const page = await bench.visit();
    await ready(page);
    assert.match(page.url(), /\/s\/[0-9a-f]{32}$/);
    assert.equal(await page.locator('[data-example]').count(), 3);
    await page.getByText('built-in demo').waitFor();
    await say(page, LOOP);
    await card(page).getByText('for i in 1 2 3').first().waitFor();
    await card(page).getByText(/expires in \d+:\d\d/).waitFor();
    await approve(page).click();
    await page.locator('[data-live]').getByText('line 1').waitFor();
    const file = `/api/sessions/${page.url().split('/').at(-1)}/files/content?path=go`;
    assert.ok((await fetch(bench.server.url + file, { method: 'PUT', body: 'x' })).ok);
    await calls(page, 'done').waitFor();
    await page.locator('[data-console]').getByText('line 3').waitFor();
    await rest(page);
    await page.getByText('approved by you').waitFor();
    assert.match(await page.title(), /^run/);
    await leave(page);
  });

  test('an example of the empty page works', async () => {
    const page = await bench.visit();
    await page.locator('[data-example]').first().click();
    for (const tool of ['write_file', 'read_file']) {
      await card(page).getByText(tool).first().waitFor();
      await approve(page).click();
    }
    await rest(page);
    assert.equal(await calls(page, 'done').count(), 2);
    await leave(page);
  });

  test('a new conversation can be used before its box is there', async () => {
    const page = await bench.visit();
    await ready(page);
    let connect;
    const late = new Promise((resolve) => (connect = resolve));
    await page.routeWebSocket(/socket\.io/, async (ws) => {
      await late;
      ws.connectToServer();
    });
    await page.reload();
    await page.locator('[data-example]').nth(2).waitFor();
    await page.getByText('Starting MCP Orchestrator').waitFor(); // it takes its time
    assert.equal(await page.locator('[data-ready]').count(), 0);
    await page.locator('[data-example]').nth(1).click();
    await page.locator('[role=log]').getByText('run uname -a').waitFor();
    connect();
    await card(page).getByText('uname -a').first().waitFor();
    assert.equal(await page.locator('[role=log] [data-user]').count(), 1, 'sent once');
    await leave(page);
  });

  test('keys alone: reject with a reason, the model hears it', async () => {
    const page = await bench.visit();
    await ready(page);
    await page.keyboard.type('run id');
    await page.keyboard.press('Enter');
    await card(page).waitFor();
    await page.keyboard.press('F6');
    await page.keyboard.press('r');
    await page.keyboard.type('not on my machine');
    await page.keyboard.press('Enter');
    await calls(page, 'rejected').waitFor();
    await rest(page);
    const told = page.locator('.md').getByText('not on my machine');
    await told.first().waitFor();
    await leave(page);
  });

  /** Presses Tab until the focused element has this name. */
  async function tabTo(page, name) {
    const here = () => page.evaluate(() => {
      const el = document.activeElement;
      return el?.getAttribute('aria-label') || el?.labels?.[0]?.textContent.trim() || el?.textContent.trim();
    });
    for (let i = 0; i < 80 && (await here()) !== name; i++) await page.keyboard.press('Tab');
    assert.equal(await here(), name);
  }

  test('the whole way without a mouse', async () => {
    const page = await bench.visit('/', { colorScheme: 'light' });
    await ready(page);
    const keys = page.keyboard;
    await keys.type('write first to keys.txt');
    await keys.press('Enter');
    await card(page).waitFor();
    await keys.press('F6');
    await keys.press('e');
    await keys.press('Control+a');
    await keys.type('{"path":"keys.txt","content":"typed"}');
    await card(page).locator('button:enabled', { hasText: 'Approve edited call' }).waitFor();
    await keys.press('Control+Enter');
    await calls(page, 'done').waitFor();
    await rest(page);
    await tabTo(page, 'Console');
    await keys.press('ArrowRight');
    assert.equal(await page.locator('[role=tab][aria-selected=true]').textContent(), 'Sandbox');
    await keys.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await keys.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await keys.press('/');
    await keys.type('keys.txt');
    await page.getByRole('navigation').getByText('write first to keys.txt').waitFor();
    await tabTo(page, 'Settings');
    await keys.press('Enter');
    await page.getByRole('heading', { name: 'Settings' }).waitFor();
    await tabTo(page, 'System');
    await keys.press('ArrowUp'); // the last of three: dark
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await keys.press('n');
    await page.locator('[data-example]').first().waitFor();
    await leave(page);
  });

  test('edited arguments are what runs', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'write first to a.txt, then show it');
    await card(page).waitFor();
    await page.keyboard.press('F6');
    await page.keyboard.press('e');
    const json = card(page).getByRole('textbox');
    await json.fill('{');
    await card(page).getByRole('alert').waitFor();
    const go = page.getByRole('button', { name: 'Approve edited call' });
    assert.ok(await go.isDisabled());
    await json.fill('{"path": "a.txt", "content": "second"}');
    await go.click();
    await card(page).getByText('read_file').first().waitFor();
    await approveByKey(page);
    await rest(page);
    await page.locator('.md').getByText('second').first().waitFor();
    await leave(page);
  });

  test('always in this conversation: not asked again', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'list the files');
    await card(page).getByLabel('Remember for').selectOption('session');
    await card(page).getByText('any arguments, in this conversation').waitFor();
    await approve(page).click();
    await rest(page);
    await say(page, 'list the files');
    await page.getByText('always allowed here').or(calls(page, 'done').nth(1)).first().waitFor();
    await rest(page);
    assert.equal(await calls(page, 'done').count(), 2);
    await leave(page);
  });

  test('a reload in the middle of a decision changes nothing', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'write kept to k.txt');
    await card(page).waitFor();
    await page.reload();
    await card(page).getByText('k.txt').first().waitFor();
    await page.locator('[data-user]').getByText('write kept').waitFor();
    await approveByKey(page);
    await calls(page, 'done').waitFor();
    await rest(page);
    await page.reload();
    await calls(page, 'done').getByText(/approved by you · \d+/).waitFor();
    assert.equal(await card(page).count(), 0);
    await leave(page);
  });

  test('two tabs are in step', async () => {
    const one = await bench.visit();
    await ready(one);
    const two = await bench.look(one.context(), new URL(one.url()).pathname);
    await ready(two);
    await say(one, 'write shared to s.txt');
    await two.locator('[data-user]').getByText('write shared').waitFor();
    await card(one).waitFor();
    await card(two).waitFor();
    await approve(two).click();
    for (const page of [one, two]) {
      await calls(page, 'done').waitFor();
      await rest(page);
      assert.equal(await card(page).count(), 0);
    }
    assert.deepEqual(two.sins, []);
    await leave(one);
  });

  test('Escape stops a running command; a queued message follows', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'run sleep 60');
    await card(page).waitFor();
    await approveByKey(page);
    await calls(page, 'running').waitFor();
    await page.reload(); // in the middle of the turn
    await calls(page, 'running').waitFor();
    await say(page, 'list the files');
    await page.getByText('Queued (#1)').waitFor();
    await until(async () => { // the message waits at the server, once it is stored
      await page.reload();
      return page.getByText('Queued (#1)').waitFor({ timeout: 5000 }).then(() => true, () => false);
    }, 'the message that waits', 60_000);
    await field(page).press('Escape');
    await card(page).getByText('list_files').first().waitFor();
    await approve(page).click();
    await rest(page);
    assert.equal(await calls(page, 'done').count(), 1);
    await leave(page);
  });

  test('a long output: its end is there, few of its lines are elements', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'run "seq -f line-%070.0f 1 5000"');
    await card(page).waitFor();
    await approveByKey(page);
    await rest(page);
    const out = page.locator('[data-console]');
    await out.getByText(/^line-0+5000$/).first().waitFor();
    assert.ok(await out.locator('div > div > div').count() < 200);
    await leave(page);
  });

  test('a phone: nothing sticks out, the list opens, a call is decided', async () => {
    const page = await bench.visit('/', {
      viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true,
    });
    await page.locator('[data-example]').first().waitFor();
    await say(page, 'write hello to phone.txt');
    await card(page).waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `${wide} px`);
    const sheet = page.locator('[data-sheet]');
    const bottom = await sheet.evaluate((e) => e.getBoundingClientRect().bottom);
    assert.equal(bottom, 844, 'it comes from below');
    await sheet.getByRole('button', { name: 'Hide the call' }).tap();
    await approve(page).waitFor({ state: 'hidden' });
    await sheet.getByRole('button', { name: 'Show the call' }).tap();
    await approve(page).tap();
    await calls(page, 'done').waitFor();
    await page.getByRole('button', { name: 'Conversations' }).tap();
    await page.getByRole('button', { name: 'New conversation' }).tap();
    await page.locator('[data-example]').first().waitFor();
    await leave(page);
  });

  test('conversations are pinned, tagged and archived, also those that are not open', async () => {
    const page = await bench.visit();
    await ready(page);
    const list = page.getByRole('navigation', { name: 'Conversations' });
    const row = (text) => list.getByRole('listitem').filter({ hasText: text });
    for (const text of ['list the older one', 'list the newer one']) {
      await say(page, text);
      await row(text).waitFor();
      await page.getByRole('button', { name: /^New conversation/ }).click();
      await page.locator('[data-example]').first().waitFor();
    }
    await row('list the older one').hover();
    await row('list the older one').getByRole('button', { name: 'Pin list the older one' }).click();
    const pinned = list.locator('section').filter({ has: page.getByRole('heading', { name: 'Pinned' }) });
    await pinned.getByText('list the older one').waitFor();
    await row('list the newer one').hover();
    await row('list the newer one').getByRole('button', { name: /^Rename/ }).click();
    const file = page.waitForEvent('download');
    await page.getByRole('link', { name: 'JSON' }).click();
    assert.match((await file).suggestedFilename(), /\.json$/);
    await page.getByLabel('Tags').fill('work, home');
    await page.keyboard.press('Enter');
    await page.getByLabel('Show conversations').selectOption('work');
    await row('list the older one').waitFor({ state: 'detached' });
    await row('list the newer one').hover();
    await row('list the newer one').getByRole('button', { name: /^Archive/ }).click();
    await row('list the newer one').waitFor({ state: 'detached' });
    await page.getByLabel('Show conversations').selectOption('Archived');
    await row('list the newer one').hover();
    await row('list the newer one').getByRole('button', { name: /^Restore/ }).click();
    await row('list the older one').waitFor();
    await assertAccessible(page);
    await leave(page);
  });

  test('conversations are listed, found, renamed, exported, deleted', async () => {
    const page = await bench.visit();
    await ready(page);
    const list = page.getByRole('navigation', { name: 'Conversations' });
    await say(page, 'list the files of the deleted one');
    await card(page).or(page.locator('.md')).first().waitFor();
    const first = list.getByRole('listitem').filter({ hasText: 'of the deleted one' }).first();
    await first.hover();
    await first.getByRole('button', { name: /Rename/ }).click();
    await page.getByLabel('Conversation name').fill('Doomed');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Doomed' }).waitFor();
    await page.getByLabel('Conversation name').waitFor({ state: 'detached' }); // the title is told before the answer
    await page.keyboard.press('/');
    await page.keyboard.type('deleted one');
    await list.locator('[data-found] mark').getByText('deleted one').waitFor();
    await page.getByLabel('Search conversations').fill('');
    const row = list.getByRole('listitem').filter({ hasText: 'Doomed' });
    await row.hover();
    const save = page.waitForEvent('download');
    await row.getByRole('link', { name: /Export/ }).click();
    assert.match((await save).suggestedFilename(), /\.md$/);
    await row.getByRole('button', { name: /Delete/ }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await row.waitFor({ state: 'detached' });
    await page.locator('[data-example]').first().waitFor();
    await leave(page);
  });
});
