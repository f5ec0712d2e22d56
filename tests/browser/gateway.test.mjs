// The views of the gateway: router, pending calls of MCP clients, audit log and
// its hash chain, statistics. A client with a hostile name stays connected.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import assert from 'node:assert/strict';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { until } from '../it/server.mjs';

import { Bench, approveByKey, assertAccessible, lacking, leave } from './kit.mjs';

const skip = await lacking();
const FAKE = fileURLToPath(new URL('../fakes/mcp.mjs', import.meta.url));
const EVIL = '<img src=x onerror=window.pwned=1>';
const fake = { command: process.execPath, args: [FAKE] };

const config = () => ({
  gateway: { expose: 'search' },
  mcpServers: {
    greeter: { ...fake, env: { MO_FAKE_EVIL: ` ${EVIL}` }, description: `Greets people ${EVIL}` },
    asleep: { ...fake, enabled: false, description: 'Greets people at night' },
    dead: { command: '/no/such/program', description: 'Greets nobody' },
  },
  approvals: { rules: [
    { tool: 'greet', args: { name: 'ask*' }, action: 'ask', reason: `better ask ${EVIL}` },
    { tool: 'greet', args: { name: 'no*' }, action: 'deny', reason: 'not that' },
  ] },
});

describe('the gateway on the page', { skip }, () => {
  let bench, client;
  before(async () => {
    bench = await Bench.open({ config });
    client = new Client({ name: EVIL, version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${bench.server.url}/mcp`)));
    await client.callTool({ name: 'list_capabilities', arguments: {} });
  });
  after(async () => {
    await client?.close();
    await bench?.close();
  });
  const run = (name) => client.callTool({ name: 'execute', arguments: { server: 'greeter', tool: 'greet', params: { name } } });
  const dark = { colorScheme: 'dark', reducedMotion: 'reduce' };

  test('the router: candidates, why, what is ruled out; taught and forgotten', async () => {
    const page = await bench.visit('/router', { reducedMotion: 'reduce' });
    const main = page.getByRole('main');
    await assertAccessible(page, 'an empty router');
    await main.getByLabel('Task').fill('greet somebody');
    const hit = main.locator('[data-hit]').first();
    await hit.getByRole('heading', { name: 'greet · greeter' }).waitFor();
    await hit.locator('[data-shared]').getByText('in its name').first().waitFor();
    await hit.getByText(EVIL).first().waitFor();
    assert.match(await hit.locator('[data-confidence]').textContent(), /^\d+(\.\d)?%$/);
    await main.locator('[data-out=disabled]').getByText('mcp enable asleep').waitFor();
    await main.locator('[data-out=unlisted]').getByText('dead').first().waitFor();
    await assertAccessible(page, 'the router');

    await main.locator('[data-habit]').getByText('has not learned').waitFor();
    await hit.getByRole('button', { name: 'Correct: greet' }).click();
    await hit.locator('[data-learnt]').getByText('chosen for these words').waitFor();
    await main.locator('[data-habit]').getByText('learned 3 pairs').waitFor();
    for (let i = 0; i < 2; i++) {
      const answer = page.waitForResponse((r) => r.url().includes('/api/route?'));
      await main.getByRole('button', { name: 'Wrong: greet' }).click();
      await answer;
    }
    await main.locator('[data-learnt]').getByText('marked wrong').waitFor();
    await main.getByRole('button', { name: 'Reset learning…' }).click();
    const sure = page.getByRole('dialog', { name: 'Reset learning?' });
    await assertAccessible(page, 'the question');
    await sure.getByRole('button', { name: 'Reset learning' }).click();
    await main.locator('[data-habit]').getByText('has not learned').waitFor();

    await main.getByRole('link', { name: 'Open tool' }).first().click();
    await main.getByLabel('name', { exact: true }).waitFor(); // its form is open
    assert.match(page.url(), /\/servers\/greeter\/tools\/greet$/);
    await page.goBack();
    await main.getByRole('heading', { name: 'greet · greeter' }).waitFor();
    assert.equal(await main.getByLabel('Task').inputValue(), 'greet somebody');
    await leave(page);
  });

  test('pending calls: a mark in the shell, a card in both tabs, by keys', async () => {
    const page = await bench.visit('/overview', { reducedMotion: 'reduce' });
    const first = run(`ask ${EVIL}\u202E`);
    await page.locator('[data-badge]').getByText('1').waitFor();
    await page.locator('[data-waiting]').getByText('greet').waitFor();
    await page.getByRole('link', { name: /^Approvals/ }).click();
    const pending = page.locator('[data-pending-calls] [data-card]');
    await pending.getByText('admin rule 1 (greet of any server)').waitFor();
    await pending.getByText(`better ask ${EVIL}`).waitFor();
    await pending.getByText(`${EVIL} 1`).waitFor(); // the program's name
    await pending.getByText(/expires in \d+:\d\d/).waitFor();
    assert.deepEqual(await pending.locator('.odd').allTextContents(), ['U+202E']);
    assert.equal(await pending.locator('img, iframe, script').count(), 0);
    assert.match(await page.title(), /^\(1\) /);
    await assertAccessible(page, 'a pending call');
    const other = await bench.look(page.context(), '/approvals');
    await other.locator('[data-card]').waitFor();
    await page.bringToFront();
    await approveByKey(page);
    assert.match((await first).content[0].text, /hello .*ask/);
    await pending.waitFor({ state: 'detached' });
    await other.locator('[data-card]').waitFor({ state: 'detached' });
    await other.close();

    const second = client.callTool({ name: 'execute', arguments: { request: 'greet', params: { name: 'ask again' } } });
    await pending.getByText('ask again').waitFor();
    await pending.locator('dd', { hasText: /^“greet”, \d+(\.\d)?% confidence$/ }).waitFor();
    await page.keyboard.press('F6');
    await page.keyboard.press('r');
    await page.keyboard.type('rather not');
    await page.keyboard.press('Enter');
    const rejected = await second;
    assert.equal(rejected.isError, true);
    assert.match(rejected.content[0].text, /rather not/);
    await pending.waitFor({ state: 'detached' });

    const edited = run('ask for this');
    await pending.getByText('ask for this').waitFor();
    await page.keyboard.press('F6');
    await page.keyboard.press('e');
    const field = pending.getByLabel('Arguments as JSON');
    await field.fill('{"name": 7}');
    await pending.getByRole('button', { name: 'Approve edited call' }).click();
    await pending.getByRole('alert').getByText('must be a string').waitFor();
    await assertAccessible(page, 'edited arguments that do not fit');
    await field.fill('{"name": "somebody else"}');
    await pending.locator('button:enabled', { hasText: 'Approve edited call' }).waitFor();
    await page.keyboard.press('Control+Enter');
    assert.match((await edited).content[0].text, /hello .*somebody else/);
    await pending.waitFor({ state: 'detached' });

    const third = run('ask for good');
    await pending.getByLabel('Remember for').selectOption('always');
    await pending.getByText('for every client and conversation').waitFor();
    await pending.getByRole('button', { name: /^Approve/ }).click();
    assert.ok(!(await third).isError);
    assert.ok(!(await run('ask no more')).isError, 'nobody is asked any more');
    assert.equal((await run('no way')).isError, true);
    await page.getByText('No call is waiting.').waitFor();
    await leave(page);
  });

  test('a tool that changed is ruled out until it is accepted', async () => {
    await fetch(`${bench.server.url}/api/mcp/greeter`, {
      method: 'PATCH', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ env: { MO_FAKE_CHANGED: '/dev/null' } }),
    });
    await until(async () => (await run('no')).content[0].text.includes('changed'), 'it is refused');
    const page = await bench.visit('/router?q=greet%20somebody', dark);
    const main = page.getByRole('main');
    await main.locator('[data-out=quarantined]').getByText('changed, not accepted').waitFor();
    await assertAccessible(page, 'the router in the dark');
    await page.getByRole('link', { name: 'Approvals' }).click();
    const changed = main.locator('[data-changed]');
    await changed.locator('.bg-add').getByText('passwords').waitFor();
    await assertAccessible(page, 'a changed tool in the dark');
    await changed.getByRole('button', { name: 'Accept new definition' }).click();
    await changed.waitFor({ state: 'detached' });
    await page.goBack();
    await main.getByRole('heading', { name: 'greet · greeter' }).waitFor();
    await leave(page);
  });

  test('the overview: figures, the audit log, its filters and its chain', async () => {
    await client.callTool({ name: 'find_tool', arguments: { query: `greet ${EVIL}` } });
    const page = await bench.visit('/overview', dark);
    const main = page.getByRole('main');
    const figures = main.locator('[data-gateway]');
    await figures.getByRole('button', { name: /^Gateway calls: \d+\. \d+ failed/ }).waitFor();
    await figures.locator('[data-server=greeter] [data-calls]').getByText(/^\d+$/).waitFor();
    await figures.locator('[data-server=greeter]').getByText('greet', { exact: true }).waitFor();

    const audit = main.locator('[data-audit]');
    const rows = audit.locator('[data-row]');
    // From a chart to the calls behind it, by keyboard: those of the whole range.
    await rows.first().waitFor(); // asked for apart from the figures
    const everything = await rows.count();
    await main.getByLabel('Time range').selectOption('Last 15 minutes');
    const chart = main.getByRole('button', { name: /^Calls: \d+\..*Show the calls$/ });
    await chart.press('Enter');
    await audit.locator('[data-span]').getByText(/^Rows from \d/).waitFor();
    assert.ok(await rows.count() > 0 && await rows.count() <= everything);
    const box = await chart.boundingBox();
    await chart.click({ position: { x: 2, y: box.height / 2 } }); // the oldest bar
    await audit.getByText('No row matches the filter.').waitFor();
    await audit.getByRole('button', { name: 'Show all' }).click();
    await audit.locator('[data-span]').waitFor({ state: 'detached' });
    await audit.locator('[data-chain][data-ok=true]').getByText(/^Hash chain verified up to row \d+/).waitFor();
    await audit.getByLabel('Outcome').selectOption('denied');
    await rows.getByText('denied').first().waitFor();
    const count = await rows.count();
    assert.ok(count >= 2, `${count} refused`);
    await audit.getByLabel('Who').selectOption(EVIL);
    await audit.getByLabel('Server', { exact: true }).selectOption('greeter');
    await audit.getByLabel('Tool', { exact: true }).selectOption('greet');
    assert.equal(await rows.count(), count);
    for (const name of ['Server', 'Tool', 'Who']) await audit.getByLabel(name, { exact: true }).selectOption('');
    await audit.getByLabel('Outcome').selectOption('routed');
    await rows.first().locator('summary').click();
    await rows.first().locator('[data-guesses]').getByText(/%$/).first().waitFor();
    await assertAccessible(page, 'the overview');
    assert.equal(await audit.locator('img, iframe, script').count(), 0);

    const file = join(bench.dir, (await readdir(bench.dir, { recursive: true })).find((f) => f.endsWith('audit.jsonl')));
    const bytes = await readFile(file);
    const bad = Buffer.from(bytes);
    bad[bytes.indexOf('\n') + 40] ^= 1; // in the second row
    await writeFile(file, bad);
    await audit.getByRole('button', { name: 'Verify again' }).click();
    await audit.locator('[data-chain][data-ok=false]').getByText('Hash chain broken at row 2').waitFor();
    await assertAccessible(page, 'a broken chain');
    await writeFile(file, bytes);
    await audit.getByRole('button', { name: 'Verify again' }).click();
    await audit.locator('[data-chain][data-ok=true]').waitFor();
    await leave(page);
  });

  test('a server that cannot be started: why, and when it is tried again', async () => {
    const page = await bench.visit('/servers/dead', { reducedMotion: 'reduce' });
    const health = page.locator('[data-health]');
    await health.getByText(/no\/such\/program/).first().waitFor();
    await health.getByText('1 process for all clients').waitFor();
    await health.getByText(/^Failed$/).waitFor();
    await assertAccessible(page, 'a dead server');
    await leave(page);
  });

  test('on a phone nothing sticks out', async () => {
    const page = await bench.visit('/router?q=greet', { viewport: { width: 390, height: 844 }, reducedMotion: 'reduce' });
    await page.locator('[data-hit]').first().waitFor();
    const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
    assert.ok(await fits(), 'router');
    for (const path of ['/approvals', '/overview']) {
      await page.goto(bench.server.url + path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      assert.ok(await fits(), path);
    }
    await leave(page);
  });
});
