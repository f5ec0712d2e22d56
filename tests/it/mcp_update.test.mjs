// `mcp update`: the differences first, then the switch; and a person who is
// asked at a terminal.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { row } from '../fakes/registry.mjs';
import { audit, dir, environment, installed, lock, mcp, npm, ok, registry, servers } from '../lib/install.mjs';
import { bin } from '../lib/mcp.mjs';
import { Server, until } from './server.mjs';

const versions = () => readdir(join(dir, 'state/servers/weather'));

describe('update', () => {
  test('shows version, integrity and packages, asks, switches, removes the old', async () => {
    await ok('install', 'npm:@ada/weather@1.0.0', '--yes', '--env', 'UNIT=celsius', '--', 'mine');
    const was = (await lock()).weather;
    const dry = await ok('update', 'weather', '--dry-run');
    assert.match(dry, /version +1\.0\.0 -> 1\.1\.0\n/);
    assert.match(dry, /integrity +sha512-\S+ -> sha512-\S+\n/);
    assert.match(dry, /packages +1 -> 2\n {2}~ node_modules\/@ada\/weather 1\.0\.0 -> 1\.1\.0\n {2}\+ node_modules\/@ada\/rain 2\.0\.1\n/);
    assert.deepEqual([(await lock()).weather, await versions()], [was, [was.path.split('/')[1]]]);

    const refused = await mcp(['update', 'weather']);
    assert.deepEqual([refused.code, /nobody can be asked/.test(refused.err)], [1, true]);
    assert.deepEqual(await versions(), [was.path.split('/')[1]]);

    assert.match(await ok('update', 'weather', '--yes'), /\nupdated 'weather'\n$/);
    const now = (await lock()).weather;
    assert.deepEqual([now.version, await versions()], ['1.1.0', [now.path.split('/')[1]]]);
    const { weather } = await servers();
    assert.ok(weather.args[0].includes(now.path), weather.args[0]);
    assert.deepEqual([weather.args.slice(1), weather.env], [['mine'], { UNIT: 'celsius' }]);
    assert.match(await ok('test', 'weather'), /^ok: fake 1\.1\.0 /);
    assert.equal((await mcp(['verify'])).code, 0);
    assert.ok((await audit()).some((r) => r.includes('"update"') && r.includes(now.integrity)), 'no audit row');

    assert.equal(await ok('update', 'weather'), "'weather' is up to date: 1.1.0\n");
    await ok('update', 'weather', '--yes', '--to', '1.0.0');
    assert.deepEqual((await lock()).weather.digest, was.digest);
  });

  test('what the registry fixes changes with it; what the person gave stays', async () => {
    const entry = (version, args, vars) => row({
      name: 'io.github.ada/weather', version, repository: { url: 'https://github.com/ada/weather', source: 'github' },
      packages: [{
        registryType: 'npm', identifier: '@ada/weather', version, transport: { type: 'stdio' },
        packageArguments: args.map((value) => ({ type: 'positional', value })), environmentVariables: vars,
      }],
    });
    registry.rows = [entry('1.0.0', ['serve', 'old'], [])];
    await ok('install', 'io.github.ada/weather', '--yes', '--', 'mine');
    registry.rows = [entry('1.1.0', ['serve'], [{ name: 'PLACE' }])];
    const got = JSON.parse(await ok('update', 'weather', '--yes', '--json'));
    assert.deepEqual([got.updated, got.from.args, got.to.args, got.to.variables], [true, ['serve', 'old'], ['serve'], ['PLACE']]);
    assert.deepEqual((await servers()).weather.args.slice(1), ['serve', 'mine']);
  });

  test('another repository is a warning', async () => {
    await ok('install', 'npm:@ada/moved@1.0.0', '--yes');
    const got = await mcp(['update', 'moved', '--yes']);
    assert.equal(got.code, 1);
    assert.match(got.out, /WARNING +the repository changed from https:\/\/github\.com\/ada\/moved to https:\/\/github\.com\/mallory\/moved<1b>/);
    assert.equal((await lock()).moved.version, '1.0.0');
  });

  test('an update that fails leaves the old one', async () => {
    await ok('install', 'npm:@ada/weather@1.0.0', '--yes');
    npm.lies.set('@ada/weather', `sha512-${Buffer.alloc(64).toString('base64')}`);
    assert.equal((await mcp(['update', 'weather', '--yes'])).code, 4);
    npm.lies.clear();
    assert.match(await ok('test', 'weather'), /^ok: fake 1\.0\.0 /);
    assert.equal((await mcp(['verify'])).code, 0);
    assert.equal((await versions()).length, 1);
  });

  test('an entry that the person changed, and servers without a package', async () => {
    await ok('install', 'npm:@ada/weather@1.0.0', '--yes');
    const file = join(dir, '.config/mcp-orchestrator/config.json');
    await writeFile(file, (await readFile(file, 'utf8')).replace(/"args": \[[^\]]*\]/, '"args": ["/x.js"]'));
    const got = await mcp(['update', 'weather', '--yes']);
    assert.match(got.err, /does not start 'weather' from/);
    assert.deepEqual([got.code, (await lock()).weather.version, (await versions()).length], [3, '1.0.0', 1]);
    await ok('install', 'https://notes.example.com/mcp', '--yes', '--name', 'notes');
    assert.match((await mcp(['update', 'notes'])).err, /has no files here/);
    assert.equal((await mcp(['update', 'nothing'])).code, 3);
  });
});

describe('at a terminal', () => {
  /** Runs the command in a terminal of its own; types the answer when asked. */
  async function typed(answer, ...args) {
    const line = [bin, 'mcp', ...args].map((w) => `'${w}'`).join(' ');
    const child = spawn('script', ['-qec', line, '/dev/null'], { cwd: dir, env: environment() });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (d) => {
      const asked = said.includes('[y/N]');
      said += d;
      if (!asked && said.includes('[y/N]')) child.stdin.write(answer);
    });
    const [code] = await once(child, 'close');
    return { code, said };
  }

  test('y installs, anything else and Ctrl-C do not', async () => {
    for (const answer of ['n\n', '\n', '\u0003']) {
      const got = await typed(answer, 'install', 'npm:@ada/weather');
      assert.notEqual(got.code, 0, got.said);
      assert.match(got.said, /nothing was changed/);
      assert.deepEqual(await installed(), []);
    }
    const got = await typed('y\n', 'install', 'npm:@ada/weather');
    assert.equal(got.code, 0, got.said);
    assert.deepEqual(await installed(), ['weather']);
  });
});

describe('a server that runs', () => {
  test('installed and uninstalled while `serve` runs: it starts from its place, and is gone', async () => {
    await ok('add', 'other', '--url', 'https://other.example.com/mcp', '--disabled'); // a file to watch
    const serve = await Server.start(['--sandbox', 'native', '--provider', 'demo'], { env: environment(), dir, house: true });
    serve.fresh.fds += 8; // a server that was tested, and its guard
    serve.fresh.children += 4;
    try {
      const api = async (path, how) => (await fetch(`${serve.url}/api/mcp${path}`, how)).json();
      await ok('install', 'npm:@ada/weather', '--yes');
      await until(async () => (await api('/weather')).name === 'weather', 'the reload');
      const tested = await api('/weather/test', { method: 'POST' });
      assert.equal(tested.ok, true, JSON.stringify(tested));
      await ok('uninstall', 'weather');
      await until(async () => (await api('/weather')).name === undefined, 'the reload');
    } finally {
      await serve.stop();
    }
  });
});
