// axe-core on every view in both themes, and a restart of the server.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { until } from '../it/server.mjs';

import {
  Bench, approve, approveByKey, assertAccessible, calls, card, lacking, leave, ready, rest,
  say,
} from './kit.mjs';

const skip = await lacking();

const config = (dir) => ({
  mcpServers: {
    greeter: {
      command: process.execPath,
      args: [fileURLToPath(new URL('../fakes/mcp.mjs', import.meta.url))],
      env: { MO_FAKE_CHANGED: join(dir, 'changed') },
    },
    dead: { command: '/no/such/program' },
  },
  approvals: { rules: [{ tool: 'fail', action: 'deny', reason: 'it only fails' }] },
});

describe('views', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open({ config });
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
      await approveByKey(page);
      await card(page).getByText('false').first().waitFor();
      await approveByKey(page);
      await rest(page);
      await calls(page, 'failed').waitFor();
      await assertAccessible(page, 'an answer');
      await page.getByRole('tab', { name: 'Sandbox' }).click();
      await assertAccessible(page, 'box');
      await page.getByRole('link', { name: 'Servers' }).click();
      await page.getByRole('link', { name: 'greeter' }).click();
      await page.getByRole('button', { name: /^greet/ }).click();
      await page.getByLabel('name', { exact: true }).waitFor();
      await assertAccessible(page, 'servers');
      for (const view of ['Overview', 'Settings']) {
        await page.getByRole('link', { name: view }).click();
        await page.getByRole('heading', { name: view }).waitFor();
        if (view === 'Overview') await page.getByRole('button', { name: /^Calls: \d+\. \d+ failed/ }).waitFor();
        await assertAccessible(page, view);
      }
      await leave(page);
    });

  test('servers: one that is dead, a tool that is tried, one that changed', async () => {
    const page = await bench.visit('/servers/dead');
    const main = page.getByRole('main');
    await main.getByRole('button', { name: 'Connect', exact: true }).click();
    await main.getByRole('status').getByText(/Failed after .*no\/such\/program/).waitFor();
    await main.getByRole('heading', { name: 'Last error' }).waitFor();
    await main.getByRole('link', { name: 'greeter' }).click();
    await main.getByRole('button', { name: /^(Connect|Test)$/ }).click();
    await main.getByText(/Connected in .*: 3 tools/).waitFor();
    await main.locator('[data-stderr]').getByText('greeter: listening').waitFor();
    await main.getByRole('button', { name: /^greet/ }).click();
    await main.getByRole('button', { name: 'Try it' }).click();
    await main.getByText('This field is required.').waitFor();
    await main.getByLabel('name', { exact: true }).fill('Ada');
    await main.getByLabel(/^tone/).selectOption('stiff');
    await main.getByLabel(/^extra/).fill('{"a":[1]}');
    await main.getByRole('button', { name: 'Try it' }).click();
    await main.locator('[data-ask]').getByText('Ada').waitFor();
    await main.getByRole('button', { name: 'Run', exact: true }).click();
    await main.locator('[data-result]').getByText('hello').waitFor();
    assert.deepEqual(JSON.parse((await main.locator('[data-result]').textContent()).slice(6)),
      { name: 'Ada', times: 1, tone: 'stiff', extra: { a: [1] } });
    await writeFile(join(bench.dir, 'changed'), '');
    await page.reload();
    await main.getByText('changed', { exact: true }).waitFor();
    await main.getByRole('button', { name: /^greet/ }).click();
    await main.locator('[data-change] .bg-add').getByText('passwords').waitFor();
    await main.getByRole('button', { name: 'Accept new definition' }).click();
    await main.locator('[data-change]').waitFor({ state: 'detached' });
    await leave(page);
  });

  test('a tool that changed is accepted beside the conversation', async () => {
    await writeFile(join(bench.dir, 'changed'), ' And the keys.');
    const page = await bench.visit();
    await ready(page);
    await page.getByRole('tab', { name: 'Sandbox' }).click();
    const tool = page.locator('details').filter({ hasText: 'greeter_greet' });
    await tool.locator('summary').getByText('changed').waitFor();
    await tool.locator('summary').click();
    await tool.locator('[data-change] .bg-add').getByText('And the keys').waitFor();
    await assertAccessible(page, 'a changed tool');
    await tool.getByRole('button', { name: 'Accept new definition' }).click();
    await tool.locator('[data-change]').waitFor({ state: 'detached' });
    await page.reload();
    await ready(page);
    await page.getByRole('tab', { name: 'Sandbox' }).click();
    await tool.waitFor();
    assert.equal(await tool.locator('summary').getByText('changed').count(), 0);
    await leave(page);
  });

  test('rules are tried, written, kept and removed; keys are states', async () => {
    const page = await bench.visit('/settings');
    const form = page.locator('[data-try]');
    const says = (text) => form.locator('[data-verdict]').getByText(text).waitFor();
    await page.locator('[data-operator-rule]').getByText('it only fails').waitFor();
    await page.locator('[data-provider=claude]').getByText('no API key').waitFor();
    await form.getByLabel('Server').fill('greeter');
    await form.getByLabel('Tool').fill('fail');
    await says('Denied: decided by admin rule 1.');
    await form.getByLabel('Tool').fill('greet');
    await form.getByLabel('Arguments').fill('{"name": "Ada"}');
    await says('Needs approval: no rule matches');
    await form.getByText('is for another tool').waitFor();
    await form.getByLabel('Always allow').check();
    await says('Runs without asking: decided by the new rule.');
    await form.getByRole('button', { name: 'Add condition' }).click();
    await form.getByLabel('Argument', { exact: true }).fill('name');
    await form.getByLabel('Condition', { exact: true }).fill('> x');
    await form.getByText(/args\.name/).waitFor();
    assert.ok(await form.getByRole('button', { name: 'Save rule' }).isDisabled());
    await form.getByLabel('Condition', { exact: true }).fill('B*');
    await form.getByText('the condition on name is not met').waitFor();
    await assertAccessible(page, 'a rule that is tried');
    await form.getByLabel('Condition', { exact: true }).fill('A*');
    await says('decided by the new rule');
    await form.getByRole('button', { name: 'Save rule' }).click();
    await page.locator('[data-rule]').getByText('name A*').waitFor();
    await says('Runs without asking: decided by your rule 1.');
    await page.getByRole('button', { name: 'Remove the rule for greet' }).click();
    await page.locator('[data-rule]').waitFor({ state: 'detached' });
    await leave(page);
  });

  test('the server restarts under the page, and 3,000 messages stay few elements', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'write later to l.txt');
    await card(page).waitFor();
    const { sessions } = await (await fetch(`${bench.server.url}/api/sessions`)).json();
    const old = sessions.find((s) => s.box && s.title && !page.url().endsWith(s.id));
    await bench.stopServer();
    await page.locator('[data-lost]').waitFor();
    await bench.seed(page.url().split('/').at(-1), 3000);
    await bench.age(old.id, 3_600_000);
    await writeFile(join(bench.dir, 'mcp-orchestrator.json'),
      JSON.stringify({ ...config(bench.dir), sessions: { idleMinutes: 1, sweepSeconds: 1 } }));
    await bench.startServer();
    await page.locator('[data-lost]').waitFor({ state: 'hidden' });
    await page.getByText('Answer 3000').waitFor(); // no more what it was before
    await card(page).getByText('l.txt').first().waitFor();
    const log = page.getByRole('log', { name: 'Conversation' });
    const fromEnd = () => log.evaluate((b) => b.scrollHeight - b.scrollTop - b.clientHeight);
    await until(async () => await fromEnd() < 60, 'the end, where the page stood before');
    assert.equal(await page.getByRole('button', { name: 'Scroll to the end' }).count(), 0);
    const rows = page.locator('[role=log] [data-user], [role=log] .md');
    assert.ok(await rows.count() < 100, `${await rows.count()} of them`);
    await approve(page).click();
    await calls(page, 'done').waitFor();
    await rest(page);
    await until(async () => await fromEnd() < 60, 'the end again');
    const first = page.locator('[data-user]').getByText('question 1', { exact: true });
    while (!(await first.count())) { // what was before comes in pages
      await log.hover();
      await page.mouse.wheel(0, -1e6);
      await page.waitForTimeout(50);
    }
    assert.ok(await rows.count() < 100, `${await rows.count()} of them`);
    await page.getByRole('button', { name: 'Scroll to the end' }).click();
    await calls(page, 'done').waitFor();
    // The janitor: warns the one who is here, has taken the box of the other.
    const warning = page.getByText(/Its sandbox is removed in \d+:\d\d; its files stay/);
    await warning.waitFor();
    await assertAccessible(page, 'a warning');
    await say(page, 'list the files');
    await card(page).waitFor();
    assert.equal(await warning.count(), 0);
    await approve(page).click();
    await rest(page);
    const list = page.getByRole('navigation', { name: 'Conversations' });
    await list.locator(`li:has(a[href="/s/${old.id}"]) [data-asleep]`).getByText('inactive').waitFor();
    await leave(page);
  });
});
