// Calls that wait together, keys, what runs without asking, and notifications,
// in a real browser.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { Bench, assertAccessible, calls, card, lacking, leave, ready, rest, say } from './kit.mjs';

const skip = await lacking();
const run = (command) => ({ name: 'execute_command', args: { command } });
const write = (path, content) => ({ name: 'write_file', args: { path, content } });
const PHONE = { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true };

describe('approving', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open({
      model: await claude({ key: 'sk-ant-0123456789' }),
      config: () => ({ approvals: { rules: [{ tool: 'delete_file', action: 'deny' }] } }),
    });
  });
  after(() => bench?.close());

  const batch = (page) => page.locator('[data-batch]');
  const sessionOf = (page) => new URL(page.url()).pathname.split('/').at(-1);
  const rowsOf = async (page) => {
    const { rows } = await (await fetch(`${bench.server.url}/api/audit?limit=1000`)).json();
    return rows.filter((r) => r.sessionId === sessionOf(page)).map((r) => r.what);
  };
  /** A new conversation; a test that failed leaves nothing to the next. */
  async function start(options) {
    bench.model.script.length = 0;
    const page = await bench.visit('/', options);
    await page.locator('[data-example]').first().waitFor();
    return page;
  }
  /** A conversation in which these calls wait. */
  async function asked(what, options) {
    const page = await start(options);
    bench.model.script.push({ calls: what }, { text: 'all done' });
    await say(page, 'go');
    await until(async () => (await card(page).count()) === what.length, 'the cards');
    return page;
  }

  for (const [name, options] of [['1440 px', {}], ['390 px', PHONE]]) {
    test(`calls that wait together are approved at once, each by its own decision, ${name}`, async () => {
      const page = await asked([run('echo one'), write('a.txt', 'two'), run('echo three')], options);
      await batch(page).getByText('3 calls are waiting for your decision').waitFor();
      await assertAccessible(page, `a batch, ${name}`);
      await batch(page).locator('button:enabled', { hasText: 'Approve all 3' }).click();
      await page.getByText('all done').waitFor();
      assert.equal(await calls(page, 'done').count(), 3);
      const moves = (await rowsOf(page)).filter((r) => r.by === 'person' && r.digest);
      assert.equal(new Set(moves.map((r) => r.digest)).size, 3, 'one decision per call');
      await leave(page);
    });

    test(`one of them is rejected, one edited, the rest goes on, ${name}`, async () => {
      const page = await asked([run('echo one'), write('b.txt', 'two'), run('rm -r /')], options);
      const of = (text) => card(page).filter({ hasText: text });
      await of('rm -r /').getByRole('button', { name: /^Reject/ }).click();
      await of('rm -r /').getByLabel('Reason (sent to the model)').fill('never');
      await of('rm -r /').getByRole('button', { name: 'Reject', exact: true }).click();
      await until(async () => (await card(page).count()) === 2, 'it is gone');
      await of('b.txt').getByRole('button', { name: /^Edit/ }).click();
      await of('b.txt').getByLabel(/Arguments as JSON/).fill('{"path": "b.txt", "content": "mended"}');
      await of('b.txt').getByRole('button', { name: 'Approve edited call' }).click();
      await until(async () => (await batch(page).count()) === 0, 'one is no batch');
      await card(page).first().locator('button:enabled', { hasText: /^\s*Approve/ }).click();
      await page.getByText('all done').waitFor();
      const told = JSON.stringify(bench.model.requests.at(-1).body.messages.at(-1).content);
      assert.match(told, /never/);
      await leave(page);
    });
  }

  test('all are rejected with one reason', async () => {
    const page = await asked([run('echo one'), run('echo two')]);
    await batch(page).getByRole('button', { name: 'Reject all 2…' }).click();
    await batch(page).getByLabel('Reason (sent to the model)').fill('not today');
    await assertAccessible(page, 'a reason for all');
    await batch(page).getByRole('button', { name: 'Reject all 2', exact: true }).click();
    await page.getByText('all done').waitFor();
    assert.equal(await calls(page, 'rejected').count(), 2);
    const told = bench.model.requests.at(-1).body.messages.at(-1).content.filter((b) => b.type === 'tool_result');
    for (const result of told) assert.match(JSON.stringify(result), /not today/);
    await leave(page);
  });

  test('a key acts on a card only when it is in view', async () => {
    const page = await asked(Array.from({ length: 6 }, (_, i) => write(`f${i}.txt`, 'line\n'.repeat(12))));
    const log = page.locator('[role=log]');
    await card(page).first().locator('button:enabled', { hasText: /^\s*Approve/ }).waitFor();
    await page.keyboard.press('F6'); // the first card has the focus
    const top = () => card(page).first().evaluate((el) => el.getBoundingClientRect().bottom);
    await until(async () => { // by hand: the page has its own way with its end
      await log.evaluate((el) => { el.dispatchEvent(new Event('wheel')); el.scrollTo(0, el.scrollHeight); });
      return (await top()) < 54;
    }, 'it is above the view');
    await page.keyboard.press('a');
    await until(async () => (await top()) > 54, 'it is brought into view');
    assert.equal(await card(page).count(), 6, 'nothing was approved');
    await card(page).first().locator('button:enabled', { hasText: /^\s*Approve/ }).waitFor();
    await page.keyboard.press('a');
    await until(async () => (await card(page).count()) === 5, 'now it is');
    await batch(page).getByRole('button', { name: 'Reject all 5…' }).click();
    await batch(page).getByRole('button', { name: 'Reject all 5', exact: true }).click();
    await rest(page);
    await leave(page);
  });

  test('an answer for the conversation is listed at once and can be revoked', async () => {
    const page = await asked([run('echo one')]);
    await card(page).getByRole('combobox').selectOption({ label: 'Always in this conversation' });
    await card(page).locator('button:enabled', { hasText: /^\s*Approve/ }).click();
    await page.getByText('all done').waitFor();
    bench.model.script.push({ calls: [run('echo two')] }, { text: 'and again' });
    await say(page, 'again');
    await page.getByText('and again').waitFor();
    await page.getByText(/always allowed here/).first().waitFor(); // without a reload
    await page.getByRole('tab', { name: 'Calls' }).click();
    const grant = page.locator('[data-grant]');
    await grant.getByText('execute_command').waitFor();
    await grant.getByText(/until you revoke it/).waitFor();
    await assertAccessible(page, 'grants');
    await grant.getByRole('button', { name: /^Revoke/ }).click();
    await grant.waitFor({ state: 'detached' });
    bench.model.script.push({ calls: [run('echo three')] }, { text: 'third' });
    await say(page, 'once more');
    await card(page).first().locator('button:enabled', { hasText: /^\s*Approve/ }).click();
    await page.getByText('third').waitFor();
    await leave(page);
  });

  for (const [name, options] of [['1440 px', {}], ['390 px', PHONE]])
    test(`a mode states its risk, is marked while it is on, and is switched off, ${name}`, async () => {
      const page = await start(options);
      const panel = page.locator('[data-own-approvals]');
      if (options.isMobile) await page.getByRole('button', { name: 'Activity' }).click(); // else it is open
      await page.getByRole('tab', { name: 'Calls' }).click();
      await panel.getByRole('button', { name: 'Change…' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText(/Risk: “read-only” is a claim/).waitFor();
      await dialog.locator('[data-mode=reads] input').check();
      await dialog.getByText('read_file').waitFor();
      await dialog.locator('[data-mode=box] input').check();
      await dialog.getByText(/no network, so nothing leaves it/).waitFor();
      await assertAccessible(page, `modes, ${name}`);
      await dialog.getByRole('button', { name: 'Use this mode' }).click();
      await dialog.waitFor({ state: 'detached' });
      await page.locator('[data-mode-mark]').waitFor();
      if (options.isMobile) await page.getByRole('button', { name: 'Close', exact: true }).click();
      bench.model.script.push({ calls: [run('echo one')] }, { text: 'ran by itself' });
      await say(page, 'go');
      await page.getByText('ran by itself').waitFor();
      await page.getByText(/auto-approved: sandbox/).first().waitFor({ state: 'attached' }); // a phone has no room for it
      assert.equal(await card(page).count(), 0);
      await page.reload();
      await page.locator('[data-mode-mark]').waitFor();
      await assertAccessible(page, `the mark of a mode, ${name}`);
      await page.locator('[data-mode-mark]').click();
      await dialog.locator('[data-mode=ask] input').check();
      await dialog.getByRole('button', { name: 'Switch off' }).click();
      await page.locator('[data-mode-mark]').waitFor({ state: 'detached' });
      bench.model.script.push({ calls: [run('echo two')] }, { text: 'asked for' });
      await say(page, 'go on');
      await card(page).first().locator('button:enabled', { hasText: /^\s*Approve/ }).click();
      await page.getByText('asked for').waitFor();
      await leave(page);
    });

  test('a card says where the call runs; the colours say what a button does', async () => {
    const page = await asked([run('echo one')]);
    await card(page).getByText('runs in the sandbox', { exact: false }).first().waitFor();
    assert.equal(await card(page).getByText('external access').count(), 0);
    const colour = (el) => getComputedStyle(el).color;
    const reject = await card(page).getByRole('button', { name: /^Reject/ }).evaluate(colour);
    const bad = await page.evaluate(() => {
      const el = document.createElement('i');
      el.style.color = 'var(--bad)';
      document.body.append(el);
      const c = getComputedStyle(el).color;
      el.remove();
      return c;
    });
    assert.equal(reject, bad);
    for (const [width, height] of [[960, 600], [720, 450]]) { // as at 150 % and 200 % of 1440 x 900
      await page.setViewportSize({ width, height });
      await page.getByRole('tab', { name: 'Calls' }).waitFor({ state: 'detached' });
      if (width < 768) await page.locator('[data-sheet] [data-card]').waitFor();
      const box = await card(page).boundingBox();
      for (const x of [box.x + 20, box.x + box.width - 20]) {
        const hit = await page.evaluate(([px, py]) => document.elementFromPoint(px, py)?.closest('[data-card]') !== null, [x, Math.max(box.y, 60) + 20]);
        assert.ok(hit, `nothing covers the card at ${width} px`);
      }
    }
    await card(page).locator('button:enabled', { hasText: /^\s*Approve/ }).click();
    await page.getByText('all done').waitFor();
    await leave(page);
  });

  test('a hidden tab notifies without arguments, and takes it back', async () => {
    const page = await start();
    await page.context().grantPermissions(['notifications'], { origin: bench.server.url });
    await page.addInitScript(() => {
      window.notes = [];
      const Real = window.Notification;
      window.Notification = class extends Real { // a real one, and written down
        constructor(title, options) {
          super(title, options);
          window.notes.push({ title, ...options, note: this, closed: false });
        }
        close() {
          for (const n of window.notes) if (n.note === this) n.closed = true;
          super.close();
        }
      };
      Object.defineProperty(document, 'hidden', { get: () => window.isAway === true });
    });
    await page.reload();
    await ready(page);
    bench.model.script.push({ calls: [run('echo top-secret')] }, { text: 'first done' });
    await say(page, 'go');
    await card(page).waitFor();
    assert.equal(await page.evaluate(() => window.notes.length), 0, 'nobody has switched it on');
    await page.locator('[data-notify-offer]').getByRole('button', { name: /^Notify me/ }).click();
    await page.locator('[data-notify-offer]').waitFor({ state: 'detached' });
    await card(page).locator('button:enabled', { hasText: /^\s*Approve/ }).click();
    await page.getByText('first done').waitFor();
    assert.equal(await page.evaluate(() => window.notes.length), 0, 'the tab is shown');

    bench.model.script.push({ calls: [run('echo top-secret')] }, { text: 'second done' });
    await page.evaluate(() => { window.isAway = true; });
    await say(page, 'go');
    await until(() => page.evaluate(() => window.notes.length === 1), 'the notification');
    const note = await page.evaluate(() => ({ title: window.notes[0].title, body: window.notes[0].body, closed: window.notes[0].closed }));
    assert.deepEqual(note, { title: 'A call waits for your approval', body: 'execute_command of box', closed: false });
    await page.evaluate(() => window.notes[0].note.onclick());
    assert.equal(await page.evaluate(() => document.activeElement?.hasAttribute('data-card')), true, 'a click shows the card');

    // Another tab of the same person decides.
    const other = await bench.look(page.context(), new URL(page.url()).pathname);
    await card(other).locator('button:enabled', { hasText: /^\s*Approve/ }).click();
    await until(() => page.evaluate(() => window.notes.every((n) => n.closed)), 'it closes itself');
    await page.goto(`${bench.server.url}/settings`);
    const box = page.locator('[data-notifications] input');
    assert.equal(await box.isChecked(), true);
    await box.uncheck();
    await assertAccessible(page, 'the switch for notifications');
    await page.reload();
    assert.equal(await page.locator('[data-notifications] input').isChecked(), false);
    await leave(page);
  });

  test('a rule that has no effect says so when it is saved', async () => {
    const page = await bench.visit('/settings');
    const form = page.locator('[data-try]');
    await form.getByLabel('Tool', { exact: true }).fill('delete_file');
    await form.getByText('Always allow').click();
    await form.getByRole('button', { name: /^Save/ }).click();
    await form.getByText(/has no effect: admin rule 1 decides/).waitFor();
    await form.getByLabel('Tool', { exact: true }).fill('read_file');
    await form.getByText('Always allow').click();
    await form.getByRole('button', { name: /^Save/ }).click();
    await form.getByText(/Rule saved\. It applies/).waitFor();
    await leave(page);
  });
});
