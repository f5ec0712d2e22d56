// Scripts of the model and their calls, in a real browser.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { Bench, assertAccessible, assertAlive, calls, card, everything, lacking, leave, rest, say } from './kit.mjs';

const skip = await lacking();
const SIZES = [
  ['1440 px, light', { viewport: { width: 1440, height: 900 }, colorScheme: 'light' }],
  ['1024 px, dark', { viewport: { width: 1024, height: 768 }, colorScheme: 'dark' }],
  ['390 px', { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true }],
];
const THREE = `import asyncio
import tools

async def main():
    done = await asyncio.gather(*(tools.aio.write_file(path=f"{n}.txt", content="x") for n in "abc"), return_exceptions=True)
    print([type(d).__name__ for d in done])

asyncio.run(main())
`;
const MANY = `import tools
for n in range(300):
    tools.read_file(path="big.txt")
print("read", n + 1)
`;

describe('scripts', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open({
      model: await claude({ key: 'sk-ant-0123456789' }),
      config: () => ({ mcpServers: { everything }, approvals: { rules: [{ tool: 'read_file', action: 'allow' }] } }),
    });
  });
  after(() => bench?.close());

  const list = (page) => page.locator('[data-script-calls]');
  const made = (page) => page.locator('[data-script-call]');
  const script = (code) => ({ name: 'run_script', args: { language: 'python', code, timeout: 60 } });
  async function start(options) {
    bench.model.script.length = 0;
    const page = await bench.visit('/', options);
    await page.locator('[data-example]').first().waitFor();
    return page;
  }
  const yes = (page) => page.locator('[data-card] button:enabled', { hasText: /^\s*Approve/ }).first();

  for (const [name, options] of SIZES) {
    test(`a script, its calls on one card, and what comes back, ${name}`, async () => {
      const page = await start(options);
      bench.model.script.push({ calls: [script(THREE)] }, { text: 'all written' });
      await say(page, 'write three files');
      await card(page).getByText('Run a script').waitFor();
      await card(page).locator('[data-line="5"]', { hasText: 'asyncio.gather' }).waitFor();
      await card(page).getByText('at most 60 s').waitFor();
      await assertAccessible(page, `the script waits, ${name}`);
      await yes(page).click();
      await until(async () => (await card(page).count()) === 3, 'its three calls wait together');
      await page.getByText('3 calls are waiting for your decision').waitFor();
      await assertAccessible(page, `calls of a script wait, ${name}`);
      const last = card(page).filter({ hasText: 'c.txt' });
      await last.getByRole('button', { name: /^Reject/ }).click();
      await last.getByLabel('Reason (sent to the model)').fill('two are enough');
      await last.getByRole('button', { name: 'Reject', exact: true }).click();
      await page.locator('button:enabled', { hasText: 'Approve all 2' }).click();
      await page.getByText('all written').waitFor();
      await rest(page);
      await list(page).getByText(/3 calls · 1 rejected/).waitFor();
      await calls(page, 'done').locator('> button').click();
      assert.deepEqual(await made(page).evaluateAll((v) => v.map((e) => e.dataset.state).sort()), ['done', 'done', 'rejected']);
      await page.getByText('Output: this goes to the model').waitFor();
      await page.locator('[data-result]').getByText(/Rejected/).waitFor();
      await assertAccessible(page, `a script and its calls, ${name}`);
      const told = JSON.stringify(bench.model.requests.at(-1).body.messages.at(-1).content);
      assert.match(told, /Rejected/, 'the model gets what was printed');
      assert.doesNotMatch(told, /two are enough/, 'and nothing else');

      await page.reload();
      await page.getByText('all written').waitFor();
      await list(page).getByText(/3 calls · 1 rejected/).waitFor();
      await assertAlive(page, `after a reload, ${name}`);
      await leave(page);
    });
  }

  test('JavaScript, with calls of a published server and of the sandbox', async () => {
    const page = await start();
    const code = `import tools from './tools.mjs';
const echo = await tools.everything.echo({ message: 'from a server' });
await tools.write_file({ path: 'said.txt', content: echo });
console.log((await tools.read_file({ path: 'said.txt' })).content);
`;
    bench.model.script.push({ calls: [{ name: 'run_script', args: { language: 'javascript', code } }] }, { text: 'it is said' });
    await say(page, 'say it');
    for (const text of ['Run a script', 'from a server', 'said.txt']) {
      await card(page).getByText(text).first().waitFor();
      await yes(page).click();
    }
    await page.getByText('it is said').waitFor();
    await rest(page);
    await calls(page, 'done').last().locator('> button').click();
    await page.locator('[data-result]').getByText('Echo: from a server').waitFor();
    await leave(page);
  });

  test('further calls are granted ahead, and revoked', async () => {
    const page = await start();
    const code = `import os, time
import tools
for n in range(5):
    tools.write_file(path=f"{n}.txt", content="same")
    while n == 2 and not os.path.exists("go"):
        time.sleep(0.01)
print("wrote 5")
`;
    bench.model.script.push({ calls: [script(code)] }, { text: 'five written' });
    await say(page, 'write five files');
    await card(page).getByText('Run a script').waitFor();
    assert.equal(await card(page).locator('option', { hasText: 'Further calls' }).count(), 0, 'not for the script itself');
    await yes(page).click();
    await card(page).getByText('0.txt').first().waitFor();
    await card(page).getByLabel('Remember for').selectOption({ label: 'Further calls of this script' });
    const form = page.locator('[data-grant-ahead]');
    await form.getByLabel('Calls, at most').fill('0');
    await form.getByText('From 1 to').waitFor();
    assert.equal(await yes(page).count(), 0, 'a grant that is not valid is not given');
    await form.getByLabel('Calls, at most').fill('3');
    await form.getByLabel('Minutes, at most').fill('5');
    await form.getByLabel(/content/).check();
    await assertAccessible(page, 'a grant ahead');
    await yes(page).click();
    const grants = page.locator('[data-script-grants]');
    await grants.getByText(/granted ahead: up to 3 calls, 1 left/).waitFor(); // two of them ran
    await grants.getByText('content = "same"').waitFor();
    await grants.getByRole('button', { name: /Revoke/ }).click();
    await grants.getByText('granted ahead, revoked').waitFor();
    const id = new URL(page.url()).pathname.split('/').at(-1);
    const put = await fetch(`${bench.server.url}/api/sessions/${id}/files/content?path=go`, { method: 'PUT', body: 'x' });
    assert.ok(put.ok, `${put.status}`);
    for (const n of [3, 4]) {
      await card(page).getByText(`${n}.txt`).first().waitFor(); // asked about again
      await yes(page).click();
    }
    await page.getByText('five written').waitFor();
    await leave(page);
  });

  test('the difference to the script before, and a line of it', async () => {
    const page = await start();
    const first = 'import tools\nprint(tools.read_file(path="none.txt"))\n';
    const second = 'import tools\nprint(tools.read_file(path="some.txt"))\nprint("end")\n';
    bench.model.script.push({ calls: [script(first)] }, { calls: [script(second)] }, { text: 'over' });
    await say(page, 'read it');
    await yes(page).click();
    await card(page).getByText('some.txt').first().waitFor();
    await card(page).getByRole('button', { name: 'Show changes' }).click();
    await card(page).getByText('compared with the script before').waitFor();
    await card(page).locator('.bg-del', { hasText: 'none.txt' }).waitFor();
    await card(page).locator('.bg-add', { hasText: 'some.txt' }).waitFor();
    await assertAccessible(page, 'the changes of a script');
    await card(page).getByRole('button', { name: 'Show the whole script' }).click();
    await yes(page).click();
    await page.getByText('over', { exact: true }).waitFor();
    await calls(page, 'failed').last().locator('> button').click(); // it opens by itself: closed, then opened
    await list(page).last().getByText('1 call').waitFor();
    if (!(await made(page).count())) await calls(page, 'failed').last().locator('> button').click();
    await made(page).last().getByRole('button', { name: 'line 2' }).click();
    await page.locator('[data-line="2"].bg-add').waitFor();
    await leave(page);
  });

  test('hundreds of calls: the newest are listed, the others on request', async () => {
    const page = await start();
    bench.model.script.push(
      { calls: [{ name: 'write_file', args: { path: 'big.txt', content: 'y'.repeat(100) } }] },
      { calls: [script(MANY)] }, { text: 'read them' });
    await say(page, 'go');
    await yes(page).click();
    await card(page).getByText('Run a script').waitFor();
    await yes(page).click();
    await page.getByText('read them').waitFor();
    await list(page).getByText('300 calls').waitFor();
    await page.locator('[data-tool-tokens]', { hasText: /tools: about \S+ tokens, \S+ saved/ }).waitFor();
    await calls(page, 'done').last().locator('> button').click();
    assert.equal(await made(page).count(), 50);
    await list(page).getByRole('button', { name: 'Show 250 earlier calls' }).click();
    await until(async () => (await made(page).count()) === 300, 'all of them');
    await made(page).first().locator('button').first().click();
    await made(page).first().locator('pre', { hasText: 'yyyy' }).waitFor();
    await leave(page);
  });

  test('how the model gets tools is chosen for the conversation', async () => {
    const page = await start();
    bench.model.script.push({ text: 'hello' });
    await say(page, 'hi');
    await page.getByText('hello', { exact: true }).waitFor();
    await page.locator('[data-tool-picker]').click();
    const offer = page.locator('[data-offer]');
    await offer.getByLabel(/^As configured/).and(page.locator(':checked')).waitFor();
    await offer.getByLabel(/^Scripts/).check();
    await assertAccessible(page, 'the choice of tools');
    const id = new URL(page.url()).pathname.split('/').at(-1);
    await until(async () => (await (await fetch(`${bench.server.url}/api/sessions/${id}`)).json()).offer === 'code', 'it is stored');
    await page.reload();
    await page.locator('[data-tool-picker]').click();
    await offer.getByLabel(/^Scripts/).and(page.locator(':checked')).waitFor();
    await leave(page);
  });
});
