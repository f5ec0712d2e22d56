// Views of the gateway on the page: added with a preview, changed, connected,
// removed.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Bench, assertAccessible, lacking } from './kit.mjs';

const skip = await lacking();
const shelf = fileURLToPath(new URL('../it/shelf.mjs', import.meta.url));
const people = ['ann'];
const config = () => ({
  mcpServers: Object.fromEntries(['alpha', 'beta'].map((n) => [n, { command: process.execPath, args: [shelf, n] }])),
  views: { old: { servers: ['beta'], people } },
});

describe('views of the gateway', { skip }, () => {
  let bench, views;
  before(async () => {
    bench = await Bench.open({ config });
    views = async () => JSON.parse(await readFile(join(bench.dir, 'mcp-orchestrator.json'), 'utf8')).views;
    for (const name of ['alpha', 'beta'])
      assert.equal((await fetch(`http://127.0.0.1:${bench.server.port}/api/servers/${name}/test`, { method: 'POST' })).status, 200);
  });
  after(() => bench?.close());

  test('added, previewed, changed, connected, removed', async () => {
    const page = await bench.visit('/views', { reducedMotion: 'reduce' });
    const main = page.getByRole('main');
    const seen = main.locator('[data-seen]');
    await main.getByRole('button', { name: /^old/ }).waitFor();
    await main.getByRole('button', { name: 'Add view' }).click();
    await seen.getByText('alpha_read').waitFor();
    await main.getByLabel('Name', { exact: true }).fill('old');
    await main.getByText('There is a view with this name.').waitFor();
    await main.getByLabel('Name', { exact: true }).fill('desk');
    await main.getByLabel('alpha', { exact: true }).check();
    await seen.getByText('delete_all', { exact: true }).waitFor();
    assert.equal(await seen.getByText('beta').count(), 0);
    await main.locator('[data-view-tools]').fill('alpha/*\n!*/delete_*');
    await seen.getByText('delete_all', { exact: true }).waitFor({ state: 'detached' });
    await assertAccessible(page, 'a new view');
    assert.equal((await views()).desk, undefined, 'a preview saves nothing');
    await main.locator('[data-view-tools]').fill('alpha');
    await main.getByRole('alert').getByText(/must be SERVER\/TOOL/).waitFor();
    await main.locator('[data-view-tools]').fill('alpha/*\n!*/delete_*');
    await main.getByRole('button', { name: 'Save' }).click();
    await main.getByRole('button', { name: /^desk/ }).waitFor();
    assert.deepEqual((await views()).desk, { servers: ['alpha'], tools: ['alpha/*', '!*/delete_*'] });

    await main.getByRole('button', { name: /^old/ }).click();
    await main.getByRole('heading', { name: 'old' }).waitFor();
    await main.getByLabel('Read-only tools only').check();
    await seen.getByText('write', { exact: true }).waitFor({ state: 'detached' });
    await main.getByRole('button', { name: 'Save' }).click();
    await main.getByRole('button', { name: /^old.*read-only/ }).waitFor();
    assert.deepEqual((await views()).old, { people, servers: ['beta'], readOnly: true }, 'the rest stays');

    await main.getByRole('button', { name: 'Connect a client…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Connect a client' });
    await dialog.locator('[data-snippet]').getByText(/"--view",\s+"old"/).waitFor();
    await dialog.getByText(/\/mcp\/old$/).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await main.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await main.getByRole('button', { name: /^old/ }).waitFor({ state: 'detached' });
    assert.deepEqual(Object.keys(await views()), ['desk']);
    await page.context().close();
  });
});
