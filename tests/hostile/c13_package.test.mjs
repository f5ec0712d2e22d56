// C13: a package that attacks whoever installs it, and then the machine from its
// box; a registry that lies about it or is gone.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { row } from '../fakes/registry.mjs';
import { dir, fails, mcp, npm, ok, pypi, registry, servers, start } from '../lib/install.mjs';
import { noNative } from '../lib/sessions.mjs';

const DOWN = { MCP_REGISTRY_URL: 'http://127.0.0.1:1', npm_config_registry: 'http://127.0.0.1:1/' };
const canary = () => join(dir, 'canary');
/** Adds a package for this test. Its program answers `probe` calls. */
function publish(name, more = {}) {
  const probe = npm.packages.find((p) => p.name === '@ada/probe');
  npm.packages.push({ ...probe, ...more, name, files: { ...probe.files, ...more.files } });
}
async function probe(name, script, more) {
  const child = start(['call', name, 'probe', JSON.stringify({ script })], more);
  const [code] = await once(child, 'close');
  assert.equal(code, 0, child.said.err);
  return child.said.out.trim();
}

describe('while it is installed', () => {
  test('scripts of the package and of its dependency do not run', async () => {
    const scripts = Object.fromEntries(['preinstall', 'install', 'postinstall', 'prepare', 'preuninstall']
      .map((s) => [s, `echo ${s} >> ${canary()}`]));
    publish('c13-dep', { scripts });
    publish('c13-scripts', { scripts, dependencies: { 'c13-dep': '1.0.0' } });
    assert.match(await ok('install', 'npm:c13-scripts', '--yes'), /install scripts were not run: .*c13-dep/);
    await ok('verify');
    await ok('uninstall', 'c13-scripts');
    assert.ok(!existsSync(canary()));
  });

  test('code of a wheel that Python runs by itself does not run', async () => {
    const code = `open(${JSON.stringify(canary())}, "w").write("ran")`;
    pypi.packages.push({
      name: 'c13-wheel', version: '1.0.0', scripts: { it: 'c13_wheel:main' },
      files: {
        'c13_wheel/__init__.py': `${code}\n`, 'setup.py': `${code}\n`, 'sitecustomize.py': `${code}\n`, 'usercustomize.py': `${code}\n`,
        'c13.pth': `import os; ${code}\n`, 'pip/__init__.py': `${code}\n`, 'pip/__main__.py': `${code}\n`, 'json.py': `${code}\n`,
        'compileall.py': `${code}\n`,
      },
    });
    await ok('install', 'pypi:c13-wheel', '--yes');
    await ok('verify');
    assert.match(await ok('update', 'c13-wheel'), /up to date/);
    await ok('uninstall', 'c13-wheel');
    assert.ok(!existsSync(canary()));
  });

  test('files and links that lead out of the archive', async () => {
    publish('c13-paths', {
      files: {
        '../../../../canary': 'x', [`..${'/..'.repeat(12)}${canary()}`]: 'x', out: { link: dir }, 'out/canary': 'x',
        passwd: { link: '/etc/passwd' },
      },
    });
    const got = await mcp(['install', 'npm:c13-paths', '--yes']);
    assert.ok(!existsSync(canary()) && !existsSync(join(dir, 'state/canary')), got.err);
    if (got.code === 0) { // npm left those out
      const [program] = (await servers())['c13-paths'].args;
      const all = readdirSync(join(program, '..'));
      assert.ok(!all.includes('out/canary') && !all.includes('passwd'), all.join());
    }
  });

  test('an integrity and a SHA-256 that lie, and a name that squats', async () => {
    publish('c13-lies');
    npm.lies.set('c13-lies', `sha512-${Buffer.alloc(64, 7).toString('base64')}`);
    await fails(['install', 'npm:c13-lies', '--yes'], 4, /npm failed/);
    publish('server-memory');
    await fails(['install', 'npm:server-memory', '--yes'], 1, /resembles/);
    registry.rows = [row({
      name: 'io.github.mallory/weather', version: '1.0.0', repository: { url: 'https://github.com/mallory/weather' },
      packages: [{ registryType: 'npm', identifier: '@ada/weather', version: '1.0.0', transport: { type: 'stdio' }, fileSha256: '0'.repeat(64) }],
    })];
    await fails(['install', 'io.github.mallory/weather', '--yes', '--accept-warnings'], 1, /SHA-256/);
  });
});

describe('when it runs', { skip: noNative && `needs ${noNative}` }, () => {
  test('it changes nothing of this machine and sees none of its files', async () => {
    await ok('install', 'npm:@ada/weather', '--yes');
    publish('c13-runs');
    await ok('install', 'npm:c13-runs', '--yes');
    const all = await servers();
    const config = join(dir, '.config/mcp-orchestrator/config.json');
    const before = await readFile(config, 'utf8');
    const own = all['c13-runs'].args[0];
    const state = join(dir, 'state');
    const script = `
      const fs = require('fs'), cp = require('child_process'), did = [];
      const attempt = (name, f) => { try { f(); did.push(name); } catch {} };
      for (const f of ${JSON.stringify([own, all.weather.args[0], config, join(state, 'servers.lock.json'), join(state, 'audit.jsonl'), canary()])}) {
        attempt('write ' + f, () => fs.writeFileSync(f, 'x'));
        attempt('chmod ' + f, () => fs.chmodSync(f, 0o777));
        attempt('remove ' + f, () => fs.rmSync(f));
        attempt('rename ' + f, () => fs.renameSync(f, f + '.old'));
      }
      attempt('other server', () => fs.readFileSync(${JSON.stringify(all.weather.args[0])}));
      attempt('state', () => fs.readdirSync(${JSON.stringify(state)}).includes('audit.jsonl') || die());
      attempt('mount', () => cp.execFileSync('mount', ['-o', 'remount,rw', '/']));
      attempt('setuid', () => process.setuid(0));
      attempt('link', () => { fs.symlinkSync('/etc', '/workspace/etc'); fs.writeFileSync('/workspace/etc/canary', 'x'); });
      return did;`;
    assert.equal(await probe('c13-runs', script), '[]');
    assert.equal(await readFile(config, 'utf8'), before);
    assert.match(await ok('verify', 'c13-runs'), /c13-runs: unchanged/);
    assert.match(await ok('verify', 'weather'), /weather: unchanged/);
    assert.ok(!existsSync(canary()) && !existsSync('/etc/canary'));
  });

  test('registries that are gone do not matter to it', async () => {
    publish('c13-down');
    await ok('install', 'npm:c13-down', '--yes');
    assert.equal(await probe('c13-down', 'return 1', DOWN), '1');
    assert.equal((await mcp(['verify'], DOWN)).code, 0);
    const update = await mcp(['update', 'c13-down', '--yes'], DOWN);
    assert.equal(update.code, 4, update.err);
    assert.equal(await probe('c13-down', 'return 2', DOWN), '2');
    await writeFile(canary(), '');
    assert.equal((await mcp(['uninstall', 'c13-down'], DOWN)).code, 0);
    assert.deepEqual(await servers(), {});
  });
});
