// Servers installed by name from the page: search, plan, agree.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { row } from '../fakes/registry.mjs';
import { environment, registry } from '../lib/install.mjs';
import { Bench, assertAccessible, lacking, leave } from './kit.mjs';

const skip = await lacking();

describe('servers by name', { skip }, () => {
  let bench, servers;
  before(async () => {
    bench = await Bench.open({
      config: () => ({}),
      env: (dir) => environment({}, dir),
    });
    servers = async () => JSON.parse(await readFile(join(bench.dir, 'mcp-orchestrator.json'), 'utf8')).mcpServers ?? {};
  });
  after(() => bench?.close());

  test('found, looked at, given a value, agreed to', async () => {
    registry.rows = [row({
      name: 'io.github.ada/weather', version: '7.0.0', description: '<b>Rain</b>',
      repository: { url: 'https://github.com/ada/weather', source: 'github' },
      packages: [{
        registryType: 'npm', identifier: '@ada/weather', version: '1.0.0', transport: { type: 'stdio' },
        packageArguments: [{ type: 'positional', value: 'serve' }],
        environmentVariables: [{ name: 'PLACE', isRequired: true, description: 'Where' }, { name: 'KEY', isRequired: true, isSecret: true }],
      }],
    })];
    const page = await bench.visit('/servers', { reducedMotion: 'reduce' });
    const main = page.getByRole('main');
    await main.getByRole('button', { name: 'Install…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Install a server' });
    await dialog.getByLabel('Name or words').fill('weather');
    await dialog.getByRole('button', { name: 'Search' }).click();
    await dialog.getByText('<b>Rain</b>').waitFor();
    await assertAccessible(page, 'servers found');
    await dialog.getByRole('button', { name: /io\.github\.ada\/weather/ }).click();
    await dialog.getByRole('alert').getByText(/needs the variable PLACE/).waitFor();
    await dialog.getByText('@ada/weather', { exact: true }).waitFor();
    await dialog.getByText('In a box, without access to your files').waitFor();
    await dialog.getByText('mcp-orchestrator secrets set weather.KEY').waitFor();
    assert.ok(await dialog.getByRole('button', { name: 'Install', exact: true }).isDisabled());
    await dialog.getByLabel('PLACE (required)').fill('here');
    await dialog.getByText('You changed something.').waitFor();
    await dialog.getByRole('button', { name: 'Show the plan' }).click();
    await dialog.getByRole('button', { name: 'Install', exact: true }).and(dialog.locator(':enabled')).waitFor();
    await assertAccessible(page, 'a plan');
    assert.deepEqual(await servers(), {}, 'only a plan');
    await dialog.getByRole('button', { name: 'Install', exact: true }).click();
    await main.getByRole('heading', { name: 'weather' }).waitFor({ timeout: 60_000 });
    const { weather } = await servers();
    assert.deepEqual(weather.env, { PLACE: 'here', KEY: '${secret:weather.KEY}' });
    assert.equal(weather.args.at(-1), 'serve');
    await leave(page);
  });

  test('a package whose name looks like another: a second yes', async () => {
    const page = await bench.visit('/servers');
    await page.getByRole('main').getByRole('button', { name: 'Install…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Install a server' });
    await dialog.getByLabel('Name or words').fill('npm:@evil/server-memory');
    await dialog.getByRole('button', { name: 'Search' }).click();
    await dialog.getByText('Warning:').waitFor();
    const go = dialog.getByRole('button', { name: 'Install', exact: true });
    assert.ok(await go.isDisabled());
    await dialog.getByLabel('Install it nevertheless').check();
    assert.ok(await go.isEnabled());
    await assertAccessible(page, 'a warning');
    await dialog.getByRole('button', { name: 'Back' }).click();
    await dialog.getByLabel('Name or words').fill('nothing like that');
    await dialog.getByRole('button', { name: 'Search' }).click();
    await dialog.getByText('No server found.').waitFor();
    await leave(page);
  });

  test('a package that does not exist: the reason', async () => {
    const page = await bench.visit('/servers');
    await page.getByRole('main').getByRole('button', { name: 'Install…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Install a server' });
    await dialog.getByLabel('Name or words').fill('npm:@ada/not-there');
    await dialog.getByRole('button', { name: 'Search' }).click();
    await dialog.getByRole('alert').getByText(/not-there/).waitFor();
    await leave(page);
  });
});
