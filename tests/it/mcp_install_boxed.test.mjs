// An installed server runs in a native box by default: it sees its own files
// read-only and a workspace, and reaches the hosts that were agreed to.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';

import { Hosts } from '../lib/egress.mjs';
import { dir, mcp, npm, ok, registry, servers, start } from '../lib/install.mjs';
import { row } from '../fakes/registry.mjs';
import { noNative } from '../lib/sessions.mjs';
import { once } from 'node:events';

/** The result of a script in the server's process. */
async function probe(name, script, more) {
  const child = start(['call', name, 'probe', JSON.stringify({ script })], more);
  const [code] = await once(child, 'close');
  assert.equal(code, 0, child.said.err);
  return child.said.out.trim();
}
const read = (path) => `return require('fs').readFileSync(${JSON.stringify(path)}, 'utf8').length`;
const write = (path) => `require('fs').writeFileSync(${JSON.stringify(path)}, 'x'); return 'written'`;

describe('an installed server', { skip: noNative && `needs ${noNative}` }, () => {
  test('sees its files read-only, a workspace, and nothing else of the host', async () => {
    await ok('install', 'npm:@ada/weather', '--yes', '--name', 'other');
    const out = await ok('install', 'npm:@ada/probe', '--yes', '--name', 'it');
    assert.match(out, /box +native: it sees its own files read-only and a \/workspace of its own/);
    assert.match(out, /hosts +none; --allow-host allows some/);
    const { it, other } = await servers();
    assert.deepEqual([it.sandbox, it.network], ['native', undefined]);
    const file = it.args[0];
    assert.match(await probe('it', read(file)), /^\d+$/);
    for (const path of [file, join(dirname(file), 'new'), join(dirname(file), '../../new')])
      assert.equal(await probe('it', write(path)), 'EROFS', path);
    assert.equal(await probe('it', write('/workspace/x')), '"written"');
    assert.equal(await probe('it', 'return require("fs").readdirSync(".")'), '["x"]', 'kept between starts');
    await writeFile(join(dir, 'secret'), 'x');
    for (const path of [other.args[0], join(dir, 'secret'), join(dir, 'state/audit.jsonl'), '/etc/shadow', '/root'])
      assert.equal(await probe('it', read(path)), 'ENOENT', path);
    assert.equal(await probe('it', 'return process.getuid() >= 20000'), 'true');
    assert.equal(await probe('it', 'return require("fs").readdirSync(process.cwd() + "/..").includes("home")'), 'false');
    assert.match(await ok('verify'), /it: unchanged/);
    await ok('uninstall', 'it');
    assert.ok(!existsSync(join(dir, 'state/workspaces/it')), 'uninstall removes the workspace');
  });

  test('reaches the hosts that were agreed to, and no others', async () => {
    const hosts = new Hosts();
    try {
      const port = await hosts.http((_, res) => res.end('hello'));
      // Not fetch: of Node 20 it never ends if the first connection is reset while its parser is being loaded.
      const get = (host) => `return new Promise((done, fail) => {
        require('http').get('http://${host}:${port}/', (r) => r.setEncoding('utf8').on('data', done)).on('error', fail);
      })`;
      await ok('install', 'npm:@ada/probe', '--yes', '--name', 'it', '--allow-host', `api.test=127.0.0.1:${port}`);
      assert.deepEqual((await servers()).it.network, { allow: [`api.test=127.0.0.1:${port}`] });
      assert.equal(await probe('it', get('api.test')), '"hello"');
      for (const host of ['other.test', '127.0.0.1', 'localhost'])
        assert.match(await probe('it', get(host)), /ENOTFOUND|ECONNREFUSED|ECONNRESET|EAI_AGAIN/, host);
      await ok('install', 'npm:@ada/probe', '--yes', '--name', 'none');
      assert.match(await probe('none', get('api.test')), /ENOTFOUND|EAI_AGAIN|EACCES|EPERM|EAFNOSUPPORT|ENETUNREACH/);
    } finally {
      hosts.close();
    }
  });

  test('hosts that the registry proposes are shown, and not allowed without a yes', async () => {
    registry.rows = [row({
      name: 'io.github.ada/weather', version: '7.0.0', description: 'Rain',
      repository: { url: 'https://github.com/ada/weather', source: 'github' },
      packages: [{
        registryType: 'npm', identifier: '@ada/weather', version: '1.0.0', transport: { type: 'stdio' },
        environmentVariables: [{ name: 'API', default: 'https://api.example.com/v1' }, { name: 'META', default: 'http://169.254.169.254/' }],
      }],
    })];
    const plan = await ok('install', 'io.github.ada/weather', '--dry-run');
    assert.match(plan, /^ {2}hosts +api\.example\.com:443$/m);
    await ok('install', 'io.github.ada/weather', '--yes', '--name', 'a');
    await ok('install', 'io.github.ada/weather', '--yes', '--name', 'b', '--allow-host', 'none');
    await ok('install', 'io.github.ada/weather', '--yes', '--name', 'c', '--allow-host', 'c.example');
    const { a, b, c } = await servers();
    assert.deepEqual([a.network, b.network, c.network], [{ allow: ['api.example.com:443'] }, undefined, { allow: ['c.example'] }]);
  });

  test('a host that is none', async () => {
    for (const host of ['https://a.example', 'a b', '*'])
      assert.match((await mcp(['install', 'npm:@ada/probe', '--yes', '--allow-host', host])).err, /--allow-host: /, host);
    assert.match((await mcp(['install', 'npm:@ada/probe', '--yes', '--unboxed', '--allow-host', 'a.example'])).err, /packages in a box/);
    assert.deepEqual(await servers(), {});
  });

  test('a large package opens all its modules at once', async () => {
    await ok('install', 'npm:@ada/large', '--yes', '--name', 'it');
    assert.match(await ok('test', 'it'), /^ok: fake/);
  });

  test('--unboxed: with the rights of the user', async () => {
    const out = await ok('install', 'npm:@ada/probe', '--yes', '--name', 'it', '--unboxed');
    assert.match(out, /box +none: it runs with the rights of your user/);
    const { it } = await servers();
    assert.equal(it.sandbox, undefined);
    await writeFile(join(dir, 'seen'), 'abc');
    assert.equal(await probe('it', read(join(dir, 'seen'))), '3');
    assert.equal(await probe('it', write(join(dirname(it.args[0]), 'new'))), 'EROFS');
  });

  test('a Node.js outside the system directories is shown as one file', async () => {
    const bin = join(dir, 'nvm/bin');
    await mkdir(bin, { recursive: true });
    await copyFile('/usr/bin/node', join(dir, 'nvm/real-node'));
    await chmod(join(dir, 'nvm/real-node'), 0o755);
    await symlink('../real-node', join(bin, 'node'));
    await writeFile(join(dir, 'nvm/key'), 'x');
    const more = { PATH: `${bin}:${process.env.PATH}` };
    assert.equal((await mcp(['install', 'npm:@ada/probe', '--yes', '--name', 'it'], more)).code, 0);
    const { it } = await servers();
    assert.equal(it.command, join(dir, 'nvm/real-node'));
    assert.equal(await probe('it', `return require('fs').readdirSync(${JSON.stringify(join(dir, 'nvm'))})`), '["real-node"]');
    assert.equal(npm.problems.length, 0);
    assert.ok((await readFile(it.args[0], 'utf8')).length > 0);
  });
});
