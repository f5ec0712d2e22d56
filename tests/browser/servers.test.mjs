// MCP servers managed from the page: add, test, try, disable, enable, remove,
// import, and the configuration for other clients.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Bench, assertAccessible, lacking, leave } from './kit.mjs';

const skip = await lacking();
const FAKE = fileURLToPath(new URL('../fakes/mcp.mjs', import.meta.url));
const data = (name) => fileURLToPath(new URL(`../data/import/${name}`, import.meta.url));
const KEY = 'sk-ant-typed-0123456789abcdef';

const config = () => ({
  mcpServers: { mortal: { command: process.execPath, args: ['-e', `console.error('<b>boom</b>'); process.exit(1)`], description: '<script>pwned=1</script>' } },
});

describe('servers', { skip }, () => {
  let bench, servers;
  before(async () => {
    bench = await Bench.open({ config });
    servers = async () => JSON.parse(await readFile(join(bench.dir, 'mcp-orchestrator.json'), 'utf8')).mcpServers;
  });
  after(() => bench?.close());

  test('added, tried, disabled, enabled, removed', async () => {
    const page = await bench.visit('/servers', { reducedMotion: 'reduce' });
    const main = page.getByRole('main');
    await main.getByRole('button', { name: 'Add server' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add server' });
    await dialog.getByRole('button', { name: 'Test and save' }).click();
    assert.equal(await dialog.getByText('This field is required.').count(), 2);
    await dialog.getByLabel('Name', { exact: true }).fill('helper');
    await dialog.getByLabel('Command', { exact: true }).fill(`${process.execPath} -e "console.error('no luck'); process.exit(4)"`);
    await dialog.getByRole('button', { name: 'Test', exact: true }).click();
    await dialog.getByRole('alert').getByText(/Connection failed: .*exit 4/).first().waitFor();
    await dialog.getByRole('alert').locator('pre').getByText('no luck').waitFor();
    await assertAccessible(page, 'a failed test');
    await dialog.getByRole('button', { name: 'Test and save' }).click();
    await dialog.getByRole('button', { name: 'Save anyway' }).waitFor();
    assert.equal((await servers()).helper, undefined, 'what does not work is not saved');
    await dialog.getByLabel('Command', { exact: true }).fill(`${process.execPath} '${FAKE}'`);
    await dialog.getByRole('button', { name: 'Add variable' }).click();
    await dialog.locator('[data-pair]').getByLabel('Name').fill('MY_API_KEY');
    assert.ok(await dialog.getByLabel('secret', { exact: true }).isChecked(), 'guessed by its name');
    await dialog.locator('[data-pair]').getByLabel('Value').fill(KEY);
    await dialog.getByRole('button', { name: 'Test', exact: true }).click();
    await dialog.locator('[data-works]').getByText(/^Connected in .*: 3 tools/).waitFor();
    assert.equal((await servers()).helper, undefined, 'a test saves nothing');
    await dialog.getByRole('button', { name: 'Test and save' }).click();
    await main.getByRole('heading', { name: 'helper' }).waitFor();
    await main.getByText(/^helper is saved\. Connected in .*: 3 tools\.$/).waitFor();
    await main.getByRole('button', { name: /^greet/ }).waitFor();
    assert.deepEqual((await servers()).helper, {
      command: process.execPath, args: [FAKE], env: { MY_API_KEY: '${secret:helper.MY_API_KEY}' },
    });

    await main.getByRole('button', { name: 'Test', exact: true }).click();
    await main.getByText(/^Connected in .*: 3 tools/).waitFor();
    await main.getByRole('button', { name: /^greet/ }).click();
    await main.getByLabel('name', { exact: true }).fill('Ada');
    await main.getByRole('button', { name: 'Try it' }).click();
    await main.getByRole('button', { name: 'Run', exact: true }).click();
    await main.locator('[data-result]').getByText('hello').waitFor();
    await main.locator('[data-health]').getByText('Healthy').waitFor();
    await main.locator('[data-health]').getByRole('img', { name: /^Last 1 call: median/ }).waitFor();
    await assertAccessible(page, 'a server');

    await main.getByRole('button', { name: 'Disable' }).click();
    await main.getByRole('link', { name: /helper disabled/ }).waitFor();
    assert.equal((await servers()).helper.enabled, false);
    assert.equal(await main.locator('[data-tool]').count(), 0);
    await main.getByRole('button', { name: 'Enable' }).click();
    await main.getByRole('button', { name: 'Disable' }).waitFor();
    assert.equal((await servers()).helper.enabled, true);

    await main.getByRole('button', { name: 'Remove…' }).click();
    const sure = page.getByRole('dialog', { name: 'Remove helper?' });
    await assertAccessible(page, 'the question');
    await sure.getByRole('button', { name: 'Cancel' }).click();
    assert.ok((await servers()).helper, 'not without a yes');
    await main.getByRole('button', { name: 'Remove…' }).click();
    await sure.getByRole('button', { name: 'Remove' }).click();
    await main.getByRole('link', { name: /helper/ }).waitFor({ state: 'detached' });
    assert.equal((await servers()).helper, undefined);
    const { rows } = await (await fetch(`${bench.server.url}/api/audit?q=helper`)).json();
    assert.deepEqual(rows.map((r) => r.what.managed).filter((m) => m && m !== 'test').toSorted(), ['add', 'change', 'change', 'remove']);
    assert.ok(!JSON.stringify(rows).includes(KEY));
    await leave(page);
  });

  test('edited in place: tested first, secrets stay, other settings too', async () => {
    const post = (path, body, method = 'POST') => fetch(`${bench.server.url}/api/mcp${path}`, { method, body: JSON.stringify(body) });
    assert.equal((await post('', { name: 'editable', config: { command: process.execPath, args: [FAKE], env: { MY_API_KEY: KEY, MODE: 'a' }, startTimeoutMs: 20000, idleSeconds: 1 } })).status, 200);
    for (const width of [1440, 390]) {
      const page = await bench.visit('/servers/editable', { reducedMotion: 'reduce', viewport: { width, height: 844 } });
      const main = page.getByRole('main');
      await main.getByRole('button', { name: 'Edit…' }).click();
      const dialog = page.getByRole('dialog', { name: 'Edit editable' });
      await dialog.locator('[data-pair]').nth(1).waitFor();
      assert.ok(!(await dialog.innerHTML()).includes(KEY));
      assert.equal(await dialog.getByLabel('Command', { exact: true }).inputValue(), `${process.execPath} ${FAKE}`);
      await assertAccessible(page, 'editing');
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing sticks out');
      await dialog.getByLabel('Command', { exact: true }).fill(`${process.execPath} -e "console.error('first line'); console.error('Error: no luck'); console.error('  at x'); process.exit(4)"`);
      await dialog.getByRole('button', { name: 'Test and save' }).click();
      const alert = dialog.getByRole('alert');
      await alert.getByText('Error: no luck', { exact: true }).first().waitFor();
      assert.equal((await alert.locator('pre').textContent()).trim(), 'first line\nError: no luck\n  at x');
      assert.deepEqual((await servers()).editable.args, [FAKE], 'what does not work is not kept');
      await dialog.getByLabel('Command', { exact: true }).fill(`${process.execPath} '${FAKE}'`);
      await dialog.getByLabel('Description').fill(`says hello at ${width}`);
      await dialog.getByLabel('Other settings (JSON)').fill(JSON.stringify({ startTimeoutMs: width * 100, idleSeconds: 1 }));
      await dialog.getByRole('button', { name: 'Test and save' }).click();
      await main.getByText(/^editable is saved\. Connected in .*: 3 tools\.$/).waitFor();
      assert.deepEqual((await servers()).editable, {
        command: process.execPath, args: [FAKE], env: { MY_API_KEY: '${secret:editable.MY_API_KEY}', MODE: 'a' },
        startTimeoutMs: width * 100, idleSeconds: 1, description: `says hello at ${width}`,
      });
      await leave(page);
    }
    // Once it sleeps its tools stay, marked as such.
    const page = await bench.visit('/servers/editable', { reducedMotion: 'reduce' });
    const main = page.getByRole('main');
    await main.locator('[data-old]').waitFor();
    assert.equal(await main.locator('[data-tool]').count(), 3);
    await assertAccessible(page, 'asleep');
    await leave(page);
    assert.equal((await post('/editable', {}, 'DELETE')).status, 200);
  });

  test('tried: progress, cancel, a question answered in place', async () => {
    const add = (name, args) => fetch(`${bench.server.url}/api/mcp`, { method: 'POST', body: JSON.stringify({ name, config: { command: process.execPath, args } }) });
    const drop = (name) => fetch(`${bench.server.url}/api/mcp/${name}`, { method: 'DELETE' });
    await add('slow', [fileURLToPath(new URL('../fakes/slow_tool.mjs', import.meta.url)), join(bench.dir, 'canceled.txt')]);
    await add('asking', [FAKE]);
    const page = await bench.visit('/servers/slow', { reducedMotion: 'reduce', viewport: { width: 390, height: 844 } });
    const main = page.getByRole('main');
    await main.getByRole('button', { name: 'Connect', exact: true }).click();
    await main.getByRole('button', { name: /^count/ }).click();
    await main.getByRole('button', { name: 'Try it' }).click();
    await main.getByRole('button', { name: 'Run', exact: true }).click();
    await main.locator('[data-live]').getByText(/of 10 counting$/).waitFor();
    await main.getByRole('progressbar', { name: 'Progress of count' }).waitFor();
    await assertAccessible(page, 'progress');
    await main.getByRole('button', { name: 'Cancel the call' }).click();
    await main.getByText('The call was canceled.').waitFor();
    await leave(page);
    const other = await bench.visit('/servers/asking', { reducedMotion: 'reduce' });
    const there = other.getByRole('main');
    await there.getByRole('button', { name: 'Connect', exact: true }).click();
    await there.getByRole('button', { name: /^ask/ }).click();
    await there.getByRole('button', { name: 'Try it' }).click();
    await there.getByRole('button', { name: 'Run', exact: true }).click();
    const question = there.locator('[data-try-question]');
    await question.getByText('How big shall it be?').waitFor();
    await question.getByLabel('Size').selectOption({ label: 'Large' });
    await assertAccessible(other, 'a question');
    await question.getByRole('button', { name: 'Send' }).click();
    await there.locator('[data-result]').getByText(/answered .*"size":"l"/).waitFor();
    await leave(other);
    await drop('slow');
    await drop('asking');
  });

  test('one that dies: the reason and its last lines, as text', async () => {
    const page = await bench.visit('/servers');
    const main = page.getByRole('main');
    await main.getByRole('button', { name: 'Connect', exact: true }).click();
    await main.getByRole('heading', { name: 'Last error' }).waitFor();
    await main.locator('[data-stderr]').getByText('<b>boom</b>').waitFor();
    await main.getByText('<script>pwned=1</script>').waitFor();
    await leave(page);
  });

  test('imported: a plan first, then written', async () => {
    const page = await bench.visit('/servers', { colorScheme: 'dark', reducedMotion: 'reduce' });
    const main = page.getByRole('main');
    await main.getByRole('button', { name: 'Import…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Import servers' });
    await dialog.getByLabel('Or paste its content').fill('servers: nonsense');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByRole('alert').waitFor();
    for (const name of ['claude_desktop_config.json', 'vscode_mcp.json', 'windsurf_mcp_config.json']) {
      await dialog.getByLabel('Choose a file').setInputFiles(data(name));
      await dialog.locator('[data-plan]').getByText('add', { exact: true }).first().waitFor();
      await dialog.getByLabel('Or paste its content').fill(''); // and the plan is gone
      await dialog.locator('[data-plan]').waitFor({ state: 'detached' });
    }
    await dialog.getByLabel('Choose a file').setInputFiles(data('cursor_mcp.json'));
    const plan = dialog.locator('[data-plan]');
    await plan.getByText('Found 5 servers (mcpServers)').waitFor();
    await plan.getByText(/workspaceFolder.*only inside the editor/).waitFor();
    await plan.getByText('Secret sentry.X-Api-Key: saved in the secret store').waitFor();
    await assertAccessible(page, 'a plan');
    assert.deepEqual(Object.keys(await servers()).length, 1, 'only a plan');
    await dialog.getByRole('button', { name: 'Import 4 servers' }).click();
    await plan.getByText('Imported 4 servers.').waitFor();
    assert.deepEqual(Object.keys(await servers()).slice(1), ['linear', 'figma', 'playwright', 'sentry']);
    await dialog.getByRole('button', { name: 'Close' }).click();
    await main.getByRole('link', { name: /sentry disabled/ }).waitFor();
    await leave(page);
  });

  test('on a phone and by keyboard: what other programs need', async () => {
    const page = await bench.visit('/servers', {
      viewport: { width: 390, height: 844 }, reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write'],
    });
    await page.getByRole('button', { name: 'Connect a client…' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Connect a client' });
    for (const [name, entry] of [['Claude Desktop', /"mcpServers"/], ['Cursor', /"mcpServers"/], ['Windsurf', /"mcpServers"/]]) {
      await dialog.getByLabel(name, { exact: true }).check();
      assert.match(await dialog.locator('[data-snippet]').textContent(), entry);
    }
    await dialog.getByLabel('VS Code').check();
    await dialog.getByLabel('Connect to this server (HTTP)').check();
    const said = await dialog.locator('[data-snippet]').textContent();
    assert.deepEqual(JSON.parse(said), { servers: { orchestrator: { type: 'http', url: `${bench.server.url}/mcp` } } });
    await dialog.getByRole('button', { name: 'Copy the entry for VS Code' }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), said);
    await assertAccessible(page, 'snippets');
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing sticks out');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await leave(page);
  });

  test('where the operator forbids it, nothing offers it', async () => {
    const file = join(bench.dir, 'mcp-orchestrator.json');
    await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), server: { manage: false } }));
    const page = await bench.visit('/servers');
    await page.getByText('Servers cannot be changed from this page').waitFor();
    for (const name of ['Add server', 'Import…', 'Disable', 'Remove…'])
      assert.equal(await page.getByRole('button', { name }).count(), 0, name);
    await leave(page);
  });
});

test('definitions that strict clients refuse: what was corrected, what is not there, and why', { skip }, async () => {
  const odd = fileURLToPath(new URL('../it/odd.mjs', import.meta.url));
  const tools = [{ name: 'bent' }, { name: 'wrong', inputSchema: { type: 'string' } }];
  const bench = await Bench.open({
    config: (dir) => ({ mcpServers: { odd: { command: process.execPath, args: [odd, join(dir, 'answers.json')] } } }),
  });
  try {
    await writeFile(join(bench.dir, 'answers.json'), JSON.stringify({ 'tools/list': { tools } }));
    const page = await bench.visit('/servers/odd');
    const main = page.getByRole('main');
    await main.getByRole('button', { name: 'Connect', exact: true }).click();
    const fact = (name) => main.getByRole('term').filter({ hasText: name }).locator('+ dd');
    await fact('Corrected').getByText(/1 tool.* mended.*bent/).waitFor();
    await fact('Not available').getByText(/1 tool.* left out.*wrong/).waitFor();
    await leave(page);
  } finally {
    await bench.close();
  }
});
