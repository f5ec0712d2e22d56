// Messages of a person are not lost, and say no where a call waits; a page whose
// server is gone says so.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { Bench, assertAccessible, calls, card, field, lacking, leave, ready, rest, say } from './kit.mjs';

const skip = await lacking();
const run = (command) => ({ name: 'execute_command', args: { command } });

describe('writing', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open({ model: await claude({ key: 'sk-ant-0123456789' }) });
  });
  after(() => bench?.close());

  test('a draft outlives a switch, the way back and a reload, and is gone when sent', async () => {
    bench.model.script.push({ text: 'hello' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'hi'); // else the next conversation would be this one
    await page.getByText('hello').waitFor();
    const first = page.url();
    await field(page).fill('half a thought');
    await page.getByRole('button', { name: 'New conversation' }).first().click();
    await page.waitForURL((url) => url.href !== first);
    assert.equal(await field(page).inputValue(), '');
    await field(page).fill('another');
    await page.goBack();
    await until(async () => (await field(page).inputValue()) === 'half a thought', 'the draft after the way back');
    await page.reload();
    await until(async () => (await field(page).inputValue()) === 'half a thought', 'the draft after a reload');
    bench.model.script.push({ text: 'heard' });
    await field(page).press('Enter');
    await page.getByText('heard').waitFor();
    await page.reload();
    await page.getByText('heard').waitFor();
    assert.equal(await field(page).inputValue(), '');
    await leave(page);
  });

  test('what is written beside waiting calls rejects them, and the model reads it', async () => {
    bench.model.script.push({ calls: [run('rm a'), run('rm b')] }, { text: 'then I will not' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'tidy up');
    await until(async () => (await card(page).count()) === 2, 'two cards');
    await field(page).fill('keep both, list them instead');
    await page.getByRole('button', { name: 'Reject all 2 with this reason' }).waitFor();
    await assertAccessible(page, 'a reason in the message field');
    await field(page).press('Enter');
    await page.getByText('then I will not').waitFor();
    assert.equal(await calls(page, 'rejected').count(), 2);
    assert.equal(await page.getByText(/Queued/).count(), 0);
    const told = bench.model.requests.at(-1).body.messages.at(-1).content.filter((b) => b.type === 'tool_result');
    assert.equal(told.length, 2);
    for (const result of told) assert.match(JSON.stringify(result), /keep both, list them instead/);
    await rest(page);
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    await leave(page);
  });

  test('the notice of a retry goes when the model answers', async () => {
    let answer;
    const seen = new Promise((done) => { answer = done; });
    bench.model.script.push({ status: 529, type: 'overloaded_error', headers: { 'retry-after': '1' } }, { text: 'here I am', wait: seen });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'are you there?');
    await page.getByText(/Trying again in/).waitFor();
    answer();
    await page.getByText('here I am').waitFor();
    await page.getByText(/Trying again in/).waitFor({ state: 'detached' });
    await leave(page);
  });

  test('a failed copy does not say that it worked', async () => {
    bench.model.script.push({ text: '```\nsome code\n```' });
    const page = await bench.visit();
    await ready(page);
    await page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error('no'));
    });
    await say(page, 'show code');
    await rest(page); // the block that stays
    await page.getByRole('button', { name: 'Copy code' }).click();
    await page.getByText('Not copied').waitFor();
    assert.equal(await page.getByText('Copied', { exact: true }).count(), 0);
    await leave(page);
  });

  test('an answer: copied, made again; a message edited; both versions can be seen', async () => {
    bench.model.script.push({ text: 'First **answer**.' }, { text: 'Second answer.' }, { text: 'To the edited one.' });
    const page = await bench.visit('/', { permissions: ['clipboard-read', 'clipboard-write'] });
    await ready(page);
    await say(page, 'a question');
    await page.getByText('First answer.').waitFor();
    await rest(page);
    await page.getByRole('button', { name: 'Copy answer' }).click();
    await page.getByText('Copied', { exact: true }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'First **answer**.');
    await page.getByRole('button', { name: 'Regenerate' }).click();
    await page.getByText('Second answer.').waitFor();
    await rest(page);
    assert.equal(await page.getByText('First answer.').count(), 0);
    await page.locator('[data-branch]').getByText('2 of 2').waitFor();
    await page.getByRole('button', { name: 'Show the version before' }).click();
    await page.getByText('First answer.').waitFor();
    await page.locator('[data-branch]').getByText('1 of 2').waitFor();

    const bubble = page.locator('[data-user]');
    await bubble.hover();
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await page.getByLabel('Edit the message').fill('another question');
    await page.keyboard.press('Enter');
    await page.getByText('To the edited one.').waitFor();
    await rest(page);
    assert.deepEqual(await bubble.allTextContents(), ['another question']);
    const asked = JSON.parse(bench.model.requests.at(-1).bytes.toString());
    assert.deepEqual(asked.messages.map((m) => m.content.map((b) => b.text).join('')), ['another question']);
    await page.reload();
    await page.getByText('To the edited one.').waitFor();
    await page.locator('[data-branch]').getByText('2 of 2').waitFor();
    await assertAccessible(page);
    await leave(page);
  });

  test('an answer that was stopped goes on', async () => {
    bench.model.script.push({ text: 'One half of a long answer', fault: 'stall' }, { text: 'and the other half.' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'tell me');
    await page.locator('[data-live-text]').waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('and the other half.').waitFor();
    await page.locator('[data-continued]').waitFor();
    await leave(page);
  });

  test('on a touch screen no button is invisible, and Delete is not hit by accident', async () => {
    bench.model.script.push({ text: 'hello there' });
    const page = await bench.visit('/', { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true });
    await page.locator('[data-example]').first().waitFor();
    await say(page, 'a conversation by phone');
    await page.getByText('hello there').waitFor();
    await page.getByRole('button', { name: 'Edit', exact: true }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Edit', exact: true }).evaluate((el) => getComputedStyle(el.parentElement).opacity), '1');
    await page.getByRole('button', { name: 'Conversations' }).tap();
    const row = page.getByRole('listitem').filter({ hasText: 'a conversation by phone' });
    await row.waitFor();
    const remove = row.getByRole('button', { name: /^Delete/ });
    assert.equal(await remove.isVisible(), false);
    await row.getByRole('button', { name: 'Actions for a conversation by phone' }).tap();
    await remove.waitFor();
    await assertAccessible(page, 'actions of a conversation, by touch');
    await remove.tap();
    await page.getByText('Delete this conversation?').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).tap();
    await leave(page);
  });

  test('an unknown address says so, and starts no conversation', async () => {
    const sessions = async () => (await (await fetch(`${bench.server.url}/api/sessions`)).json()).sessions.length;
    const before = await sessions();
    const page = await bench.visit('/nonsense');
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    await page.getByText('There is no page at /nonsense.').waitFor();
    await assertAccessible(page, 'an unknown address');
    assert.equal(await sessions(), before);
    await page.goto(`${bench.server.url}/settings/`);
    await page.getByRole('heading', { name: 'Settings' }).waitFor();
    await page.goto(`${bench.server.url}/nonsense`);
    await page.locator('[data-missing]').getByRole('link', { name: 'New conversation' }).click();
    await ready(page);
    await leave(page);
    for (const [path, accept, type] of [['/nonsense', 'text/html', 'text/html'], ['/nonsense', '*/*', 'application/problem+json'], ['/api/nonsense', 'text/html', 'application/problem+json']]) {
      const answer = await fetch(bench.server.url + path, { headers: { accept } });
      assert.deepEqual([answer.status, answer.headers.get('content-type').split(';')[0]], [404, type], `${path} ${accept}`);
    }
  });

  // The last one: it ends the server.
  test('a view that cannot be loaded says why, and opens when the server is back', async () => {
    const page = await bench.visit();
    await ready(page);
    await bench.stopServer();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.locator('[data-unreachable]').waitFor();
    await page.getByText('The server cannot be reached').waitFor();
    await assertAccessible(page, 'a view that cannot be loaded');
    await bench.startServer();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await leave(page);
  });
});
