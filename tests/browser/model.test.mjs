// The page with a fake provider behind the real server: thinking, parallel calls,
// hostile text, change of the model.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { below, script, slay, wordsOf } from '../lib/gateway.mjs';
import {
  Bench, approve, approveByKey, assertAccessible, calls, card, lacking, leave, ready, rest, say,
} from './kit.mjs';

const skip = await lacking();
const mood = (dir, name) => join(dir, `${name}.mood`);
const moody = (dir, name) => script('moody.mjs', name, mood(dir, name), join(dir, `${name}.log`));
const run = (command) => ({ name: 'execute_command', args: { command } });
const write = (path, content) => ({ name: 'write_file', args: { path, content } });

const EVIL = [
  '# <img src=x onerror=window.pwned=1>',
  '- [a](javascript:window.pwned=1)',
  '- ![b](http://example.invalid/b.png)',
  '- <svg/onload=window.pwned=1>',
  '',
  '| <script>window.pwned=1</script> | `<b>` |',
  '|---|---|',
  '| [ok](https://example.com/x) | {{1+1}} |',
  '',
  '```html',
  '<iframe src=javascript:parent.pwned=1></iframe>',
  '```',
].join('\n');

describe('with a model', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open({
      model: await claude({ key: 'sk-ant-0123456789' }),
      config: (dir) => ({
        mcpServers: {
          first: { ...moody(dir, 'first'), fallback: ['second'] },
          second: moody(dir, 'second'),
          greeter: {
            command: process.execPath,
            args: [fileURLToPath(new URL('../fakes/mcp.mjs', import.meta.url))],
          },
        },
      }),
    });
  });
  after(() => bench?.close());

  test('its Markdown is shown, and nothing of it runs', async () => {
    bench.model.script.push({ text: EVIL });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'say something');
    await rest(page);
    const text = page.locator('.md').last();
    await text.locator('table').waitFor();
    assert.equal(await text.locator('h2').textContent(), '<img src=x onerror=window.pwned=1>');
    assert.equal(await text.locator('img, svg:not([aria-hidden]), iframe, script').count(), 0);
    const links = await text.locator('a').evaluateAll((all) => all.map((a) => [a.href, a.rel]));
    assert.deepEqual(links.map(([href]) => href),
      ['http://example.invalid/b.png', 'https://example.com/x']);
    assert.ok(links.every(([, rel]) => rel.includes('noopener')));
    assert.match(await text.locator('pre').textContent(), /^<iframe/);
    await leave(page);
  });

  test('three calls at once, gone through by keys, none hidden', async () => {
    bench.model.script.push(
      { text: 'Three.', calls: [write('1', 'one'), write('2', 'two'), write('3', 'three')] },
      { text: 'All decided.' },
    );
    const page = await bench.visit();
    await ready(page);
    await say(page, 'three files');
    await card(page).nth(2).waitFor();
    await card(page).first().getByText('1 of 3').waitFor();
    await approveByKey(page);
    await card(page).nth(2).waitFor({ state: 'detached' });
    await page.keyboard.press('F6');
    await page.keyboard.press('r');
    await page.keyboard.press('Enter');
    await card(page).nth(1).waitFor({ state: 'detached' });
    await approveByKey(page);
    await page.getByText('All decided.').waitFor();
    await rest(page);
    assert.equal(await calls(page, 'done').count(), 2);
    assert.equal(await calls(page, 'rejected').count(), 1);
    await leave(page);
  });

  test('an edit is shown against the file as it was last seen', async () => {
    const edit = {
      name: 'edit_file', args: { path: 'f', old_string: 'two', new_string: 'zwei' },
    };
    bench.model.script.push(
      { calls: [write('f', 'one\ntwo\nthree\n')] }, { calls: [edit] }, { text: 'Done.' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'edit');
    await card(page).waitFor();
    await approve(page).click();
    await card(page).getByText('as this conversation last saw it').waitFor();
    const lines = await card(page).locator('figure .whitespace-pre').allTextContents();
    assert.deepEqual(lines, ['one', 'two', 'zwei', 'three']);
    await approve(page).click();
    await page.getByText('Done.').waitFor();
    await leave(page);
  });

  test('a server asks in the middle of a call: a form, an address; always is a rule', async () => {
    const there = 'https://xn--pple-43d.example/a?b';
    const ask = (args) => ({ calls: [{ name: 'greeter_ask', args }] });
    bench.model.script.push(ask({}), { text: 'First.' }, ask({ url: there }), { text: 'Second.' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'ask me');
    await card(page).getByLabel('Remember for').selectOption('always');
    await approve(page).click();
    const question = page.locator('[data-question]');
    await question.getByText('greeter', { exact: true }).waitFor();
    await question.getByRole('button', { name: 'Send' }).click();
    await question.getByText('This field is required.').waitFor();
    await page.reload();
    await question.getByLabel('Size').selectOption('Large');
    await question.getByLabel('As a gift').check();
    await assertAccessible(page, 'a question');
    await question.getByRole('button', { name: 'Send' }).click();
    await page.getByText('First.').waitFor();
    await rest(page);
    await calls(page, 'done').getByRole('button').first().click();
    await page.locator('[data-result]').getByText('answered {"action":"accept","content":{"size":"l","gift":true}}').first().waitFor();
    await say(page, 'again');
    await question.getByText(there).waitFor();
    await question.getByText('xn--pple-43d.example', { exact: true }).waitFor();
    await question.getByRole('button', { name: 'Decline' }).click();
    await page.getByText('Second.').waitFor();
    await rest(page);
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.locator('[data-rule]').getByText('ask · greeter').waitFor();
    await assertAccessible(page, 'rules');
    await page.getByRole('button', { name: 'Remove the rule for ask' }).click();
    await page.getByText('No rules yet.').waitFor();
    await leave(page);
  });

  test('from above: what waits and for how long, what a box takes, what it cost', async () => {
    bench.model.script.push({ calls: [write('over', 'view')] }, { text: 'Seen.' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'look from above');
    await card(page).waitFor();
    const session = page.url().split('/').at(-1);
    const above = await bench.look(page.context(), '/overview');
    const waits = above.locator('[data-waiting]');
    await waits.getByText(/^for \d+ (ms|s)|^for [\d.]+ s/).waitFor();
    await waits.getByText('look from above').waitFor();
    const row = above.locator(`[data-session="${session}"]`);
    await row.locator('[data-memory]').getByText(/^[\d.]+ (kB|MB) of 512 MB$/).waitFor();
    await row.locator('[data-cpu]').getByText(/^[\d.]+%$/).waitFor();
    await above.locator('[data-spend]').getByText('claude-sonnet-5-5').waitFor();
    await above.locator('[data-spend]').getByText(/\d+ repl/).waitFor();
    for (const name of ['Tokens', 'Sandbox CPU', 'Sandbox memory', 'Waiting'])
      await above.getByRole('img', { name: new RegExp(`^${name}: [\\d.]+`) }).waitFor();
    await assertAccessible(above, 'something waits');
    await waits.getByRole('link').click();
    await approve(above).click();
    await page.getByText('Seen.').waitFor();
    await above.getByRole('link', { name: 'Overview' }).click();
    await waits.getByText('No call is waiting for approval.').waitFor();
    assert.deepEqual(above.sins, []);
    await leave(page);
  });

  test('another model: the conversation goes on below a divider', async () => {
    bench.model.script.push({ text: 'Old.' }, { text: 'New.' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'first');
    await page.getByText('Old.').waitFor();
    await rest(page);
    await page.getByLabel('Model', { exact: true }).selectOption({ label: 'Claude Opus 5.5' });
    await page.locator('[data-model]').getByText('Now: Claude Opus 5.5').waitFor();
    await say(page, 'second');
    await page.getByText('New.').waitFor();
    assert.equal(await page.getByText('Old.').count(), 1);
    const asked = JSON.parse(bench.model.requests.at(-1).bytes.toString());
    assert.equal(asked.model, 'claude-opus-5-5');
    assert.equal(asked.messages.length, 3);
    await page.reload();
    await page.locator('[data-model]').waitFor();
    await leave(page);
  });

  test('another model while a call waits: after it; then the box is ended, and the list keeps the conversation', async () => {
    bench.model.script.push({ calls: [run('echo one')] }, { text: 'Done.' }, { calls: [run('echo two')] });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'wait for me');
    await card(page).waitFor();
    await page.getByLabel('Model', { exact: true }).selectOption({ label: 'Claude Opus 5.5' });
    await page.getByText('The model will be claude-opus-5-5 when this turn is over.').waitFor();
    await approve(page).click();
    await page.locator('[data-model]').waitFor();
    await say(page, 'once more');
    await card(page).waitFor();
    await page.getByRole('tab', { name: 'Sandbox' }).click();
    await page.getByRole('button', { name: 'End sandbox' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End sandbox' }).click();
    await page.getByText('This session has ended').waitFor();
    assert.equal(await card(page).count(), 0);
    assert.equal(await page.getByRole('button', { name: 'Stop', exact: true }).count(), 0);
    await page.reload();
    await page.getByRole('navigation').getByRole('link', { name: 'wait for me' }).first().waitFor();
    await page.getByText('once more').waitFor();
    assert.equal(await card(page).count(), 0);
    await leave(page);
  });

  test('a failing provider is said in plain words, once', async () => {
    bench.model.script.push({ status: 400, type: 'invalid_request_error' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'fail');
    await page.getByText('Something went wrong.').waitFor();
    await rest(page);
    assert.deepEqual(await page.getByRole('alert').allTextContents(),
      ['Something went wrong. Claude refused the request: as told']);
    await leave(page);
  });

  // Its server dies while the person thinks.
  test('who stands in is asked about anew, and said to be another', async () => {
    const processes = () => below(bench.server.pid)
      .filter((pid) => wordsOf(pid).includes(mood(bench.dir, 'first')));
    bench.model.script.push({ calls: [{ name: 'first_work', args: { n: 'apple' } }] }, { text: 'Done.' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'work');
    await card(page).waitFor();
    assert.equal(await page.locator('[data-stand-in]').count(), 0);
    writeFileSync(mood(bench.dir, 'first'), 'no-start');
    processes().forEach(slay);
    await until(() => processes().length === 0, 'it is gone');
    await approve(page).click();
    const line = card(page).locator('[data-stand-in]');
    await line.waitFor();
    assert.match(await line.textContent(), /^\s*second replaces first, which is unavailable \(.+\)\./);
    await assertAccessible(page, 'a card of who stands in');
    await approve(page).click();
    await calls(page, 'done').getByText('run by second instead of first').waitFor();
    await rest(page);
    await leave(page);
  });
});
