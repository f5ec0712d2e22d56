// `mcp install` of MCPB bundles: zip files with a manifest, made here and by the
// real zip.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';

import { row } from '../fakes/registry.mjs';
import { zip } from '../lib/zip.mjs';
import { PYTHON, SERVER, audit, dir, fails, installed, lock, mcp, ok, registry, servers, start } from '../lib/install.mjs';
import { noNative } from '../lib/sessions.mjs';

const native = { skip: noNative && `needs ${noNative}` };
const NODE = SERVER.replace("require('./package.json').version", "process.env.UNIT ?? 'none'");
const sum = (bytes) => createHash('sha256').update(bytes).digest('hex');

const manifest = (more = {}, config = {}) => JSON.stringify({
  manifest_version: '0.3', name: 'weather', version: '1.2.0', description: 'Rain', author: { name: 'Ada' },
  repository: { type: 'git', url: 'https://github.com/ada/weather' },
  server: {
    type: 'node', entry_point: 'server/index.js',
    mcp_config: { command: 'node', args: ['${__dirname}/server/index.js'], env: {}, ...config },
  },
  ...more,
});
const bundle = (more, config, files = {}) => zip({ 'manifest.json': manifest(more, config), 'server/index.js': NODE, ...files });

let host, files, requests;
before(async () => {
  host = http.createServer((rq, rs) => {
    requests.push(rq.url);
    const got = files[rq.url];
    if (got === undefined) rs.writeHead(404).end();
    else if (got === 'hang') rs.writeHead(200).write('PK');
    else if (typeof got === 'string') rs.writeHead(302, { location: got }).end('moved');
    else rs.writeHead(200, { 'content-type': 'application/octet-stream' }).end(got);
  });
  host.listen(0, '127.0.0.1');
  await once(host, 'listening');
  host.url = `http://127.0.0.1:${host.address().port}`;
});
after(() => { host.closeAllConnections(); host.close(); });
beforeEach(() => { files = {}; requests = []; });

/** The registry offers these bytes; returns the name to install. */
function offer(bytes, more = {}) {
  files['/x.mcpb'] ??= bytes;
  registry.rows = [row({
    name: 'io.github.ada/weather', version: '7.0.0', repository: { url: 'https://github.com/ada/weather', source: 'github' },
    packages: [{ registryType: 'mcpb', identifier: `${host.url}/x.mcpb`, fileSha256: sum(bytes), transport: { type: 'stdio' }, ...more }],
  })];
  return 'io.github.ada/weather';
}

describe('an MCPB bundle', () => {
  test('planned, installed, tested, verified, uninstalled', async () => {
    const bytes = bundle({
      user_config: { unit: { type: 'string', title: 'Unit', description: 'Of the wind', default: 'knots' } },
    }, { env: { UNIT: '${user_config.unit}', DATA: '${__dirname}/data' } }, { 'data/a.txt': 'x', 'empty/': { body: '' } });
    const name = offer(bytes);
    const plan = JSON.parse(await ok('install', name, '--dry-run', '--json')).plan;
    assert.deepEqual([plan.kind, plan.version, plan.integrity, plan.boxed, plan.warnings], ['mcpb', '1.2.0', `sha256:${sum(bytes)}`, true, []]);
    assert.deepEqual(await installed(), []);

    const out = await ok('install', name, '--yes', '--', '--fast');
    assert.match(out, /bundle +http:.*\/x\.mcpb\n +version +1\.2\.0\n +integrity +sha256:/);
    assert.match(out, /UNIT = knots \(optional\): Of the wind/);
    const { weather } = await servers();
    const [program, ...args] = weather.args;
    assert.match(weather.command, /^\/.*node$/);
    assert.match(program, /\/state\/servers\/weather\/1\.2\.0-[0-9a-f]{16}\/server\/index\.js$/);
    const top = join(program, '../..');
    assert.deepEqual([args, weather.env, weather.sandbox, weather.workspace], [['--fast'], { UNIT: 'knots', DATA: `${top}/data` }, 'native', true]);
    assert.equal((await stat(join(top, 'data/a.txt'))).mode & 0o777, 0o444);
    assert.ok((await stat(join(top, 'empty'))).isDirectory());
    assert.ok((await audit()).some((r) => r.includes('"install"') && r.includes(sum(bytes))), 'no audit row');
    assert.equal(await ok('verify'), `weather: unchanged, mcpb:${host.url}/x.mcpb\n`);
    assert.match((await mcp(['update', 'weather'])).err, /is a bundle, which is pinned by its SHA-256/);
    if (!noNative) assert.match(await ok('test', 'weather'), /^ok: fake knots /);
    await ok('uninstall', 'weather');
    assert.deepEqual([await servers(), await installed()], [{}, []]);
  });

  test('directly by its address, made by the real zip, behind redirects', async () => {
    const from = join(dir, 'bundle');
    await mkdir(join(from, 'server'), { recursive: true });
    await writeFile(join(from, 'manifest.json'), manifest());
    await writeFile(join(from, 'server/index.js'), NODE);
    execFileSync('zip', ['-qr', '../made.mcpb', '.'], { cwd: from });
    const bytes = await readFile(join(dir, 'made.mcpb'));
    Object.assign(files, { '/x.mcpb': '/y', '/y': `${host.url}/z`, '/z': bytes });
    await ok('install', `mcpb:${host.url}/x.mcpb@sha256:${sum(bytes)}`, '--yes', '--name', 'made');
    assert.deepEqual(requests, ['/x.mcpb', '/y', '/z']);
    assert.equal((await lock()).made.source, `mcpb:${host.url}/x.mcpb`);
  });

  test('values that the person gives: secrets, numbers, folders, a missing one', async () => {
    const bytes = bundle({
      user_config: {
        api_key: { type: 'string', title: 'Key', description: 'The key', sensitive: true, required: true },
        other: { type: 'string', title: 'Other', sensitive: true },
        limit: { type: 'number', title: 'Limit', default: 5 },
        place: { type: 'string', title: 'Place', description: 'Where', required: true },
        folders: { type: 'directory', title: 'Folders', multiple: true, default: ['${HOME}/Desktop'] },
      },
    }, {
      args: ['${__dirname}/server/index.js', '--limit=${user_config.limit}', '${user_config.folders}'],
      env: { API_KEY: 'Bearer ${user_config.api_key}', OTHER: '${user_config.other}', PLACE: '${user_config.place}', LIMIT: '${user_config.limit}' },
    });
    const name = offer(bytes);
    await fails(['install', name, '--yes'], 2, /needs the variable PLACE: --env PLACE=VALUE/);
    const out = await ok('install', name, '--yes', '--env', 'PLACE=here', '--', '/workspace');
    assert.match(out, /API_KEY = Bearer \$\{secret:weather\.api_key\} \(needed, secret\): The key/);
    assert.match(out, /set its key: mcp-orchestrator secrets set weather\.api_key\n/);
    const { weather } = await servers();
    assert.deepEqual(weather.args.slice(1), ['--limit=5', '/workspace']);
    assert.deepEqual(weather.env, { API_KEY: 'Bearer ${secret:weather.api_key}', PLACE: 'here', LIMIT: '5' });
  });

  test('a Python bundle', native, async () => {
    const python = PYTHON.replace("importlib.metadata.version('ada-snake')", "'1'");
    offer(zip({
      'manifest.json': manifest({ server: {
        type: 'python', entry_point: 'server/main.py',
        mcp_config: { command: 'python', args: ['${__dirname}/server/main.py'], env: { PYTHONPATH: '${__dirname}/lib' } },
      } }),
      'lib/snake.py': python, 'server/main.py': 'from snake import main\nmain()\n',
    }));
    await ok('install', 'io.github.ada/weather', '--yes');
    assert.match((await servers()).weather.command, /^\/usr\/bin\/python3/);
    assert.match(await ok('test', 'weather'), /^ok: snake 1 /);
  });

  test('a binary needs its own yes', native, async () => {
    offer(zip({
      'manifest.json': manifest({ server: {
        type: 'binary', entry_point: 'bin/it', mcp_config: { command: '${__dirname}/bin/it', args: ['a'], platform_overrides: { linux: { args: ['b'] }, win32: { command: 'it.exe' } } },
      } }),
      'bin/it': `#!/bin/sh\nexec /usr/bin/env node "$(dirname "$0")/it.js"\n`, 'bin/it.js': NODE,
    }));
    const got = await fails(['install', 'io.github.ada/weather', '--yes'], 1, /because of the warning: it is a compiled program/);
    assert.match(got.out, /WARNING/);
    await ok('install', 'io.github.ada/weather', '--yes', '--accept-warnings');
    const { weather } = await servers();
    assert.match(weather.command, /\/1\.2\.0-[0-9a-f]{16}\/bin\/it$/);
    assert.deepEqual(weather.args, ['b']);
    assert.equal((await stat(weather.command)).mode & 0o777, 0o555);
  });

  test('several bundles: the one for this machine', async () => {
    const bytes = bundle();
    const arch = process.arch === 'arm64' ? 'arm64' : 'x64', foreign = process.arch === 'arm64' ? 'amd64' : 'arm64';
    offer(bytes);
    registry.rows[0].server.packages.push({ registryType: 'npm', identifier: '@ada/weather', version: '1.0.0', transport: { type: 'stdio' } });
    assert.equal(JSON.parse(await ok('install', 'io.github.ada/weather', '--dry-run', '--json')).plan.kind, 'npm');
    assert.equal(JSON.parse(await ok('install', 'io.github.ada/weather', '--dry-run', '--json', '--kind', 'mcpb')).plan.kind, 'mcpb');
    assert.match((await mcp(['install', 'io.github.ada/weather', '--kind', 'pypi'])).err, /nothing of the kind pypi/);
    requests = [];
    const [first] = registry.rows[0].server.packages;
    files[`/w-linux-${arch}.mcpb`] = bytes;
    registry.rows[0].server.packages = ['w-darwin-arm64.mcpb', 'w-windows.exe.mcpb', `w-linux-${foreign}.mcpb`, `w-linux-${arch}.mcpb`]
      .map((f) => ({ ...first, identifier: `${host.url}/${f}` }));
    await ok('install', 'io.github.ada/weather', '--yes');
    assert.deepEqual(requests, [`/w-linux-${arch}.mcpb`]);
  });

  const big = Buffer.alloc(80 << 20);
  for (const [what, make, says, code = 1] of [
    ['another hash', () => offer(bundle(), { fileSha256: 'ab'.repeat(32) }), /should have the SHA-256 (ab){32}, and it has/],
    ['no hash', () => offer(bundle(), { fileSha256: undefined }), /has no SHA-256/, 2],
    ['an http address elsewhere', () => offer(bundle(), { identifier: 'http://weather.example.com/x.mcpb' }), /is not https/, 2],
    ['a file address', () => offer(bundle(), { identifier: 'file:///etc/passwd' }), /is not https/, 2],
    ['a redirect to http', () => { files['/x.mcpb'] = 'http://weather.example.com/y'; return offer(bundle()); }, /redirects to an address that is not https/],
    ['redirects without end', () => { files['/x.mcpb'] = '/x.mcpb'; return offer(bundle()); }, /redirects more than 5 times/, 4],
    ['a missing file', () => { offer(bundle()); files = {}; }, /status 404/, 4],
    ['no zip', () => offer(Buffer.from('#!/bin/sh\n')), /no zip file/],
    ['no manifest', () => offer(zip({ 'x.json': '{}' })), /no manifest\.json/],
    ['a manifest that is none', () => offer(zip({ 'manifest.json': 'x' })), /no valid JSON/],
    ['a path out of it', () => offer(bundle({}, {}, { '../evil.js': 'x' })), /leads out of its folder/],
    ['an absolute path', () => offer(bundle({}, {}, { '/tmp/evil.js': 'x' })), /leads out of its folder/],
    ['a backslash', () => offer(bundle({}, {}, { 'a\\..\\..\\b': 'x' })), /leads out of its folder/],
    ['a link out of it', () => offer(bundle({}, {}, { out: { link: '../../../../etc/passwd' } })), /has a link/],
    ['a link and a file behind it', () => offer(bundle({}, {}, { d: { link: '/tmp' }, 'd/x': 'x' })), /has a link/],
    ['a file twice', () => offer(zip([['manifest.json', manifest()], ['server/index.js', NODE], ['server/index.js', 'x']])), /server\/index\.js twice/],
    ['a file where a directory is', () => offer(zip([['manifest.json', manifest()], ['server/index.js', NODE], ['server/index.js/x', 'x']])), /server\/index\.js/],
    ['a bomb', () => offer(bundle({}, {}, { zeros: big })), /too many bytes/],
    ['a bomb that lies about its size', () => offer(bundle({}, {}, { zeros: { body: big, size: 10 } })), /longer than it says|damaged/],
    ['entries that share bytes', () => offer(zip([['manifest.json', manifest()], ['server/index.js', NODE], ...Array.from({ length: 9 }, () => ['server/index.js', { body: NODE, at: 0, local: 'manifest.json' }])])), /damaged|overlap/],
    ['another name in front of the data', () => offer(bundle({}, {}, { a: { body: 'x', local: 'b' } })), /damaged/],
    ['a wrong CRC', () => offer(bundle({}, {}, { a: { body: 'x', crc: 1 } })), /damaged/],
    ['an encrypted file', () => offer(bundle({}, {}, { a: { body: 'x', flags: 1 } })), /encrypted/],
    ['bytes behind its end', () => offer(zip({ 'manifest.json': manifest() }, { tail: Buffer.from('x') })), /no zip file/],
    ['more files than it has', () => offer(zip({ 'manifest.json': manifest() }, { count: 70 })), /damaged|lacks/],
    ['a program outside', () => offer(zip({ 'manifest.json': manifest({ server: { type: 'node', entry_point: '../x.js', mcp_config: { command: 'node', args: [] } } }) })), /outside the bundle/],
    ['a program that is missing', () => offer(zip({ 'manifest.json': manifest() })), /lacks its program server\/index\.js/],
    ['a command of the host', () => offer(bundle({}, { command: 'npx' })), /starts npx, which is not in the bundle/],
    ['a secret of somebody else', () => offer(bundle({}, { env: { A: '${secret:github-token}' } })), /the reference \$\{secret:github-token\}/],
    ['a file of the host', () => offer(bundle({}, { args: ['${file:/etc/passwd}'] })), /the reference \$\{file:/],
    ['a secret of somebody else as a default', () => offer(bundle({ user_config: { a: { type: 'string', default: '${secret:github-token}', required: true } } }, { env: { A: '${user_config.a}' } })), /needs the variable A/, 2],
    ['a value that is not declared', () => offer(bundle({}, { env: { A: '${user_config.b}' } })), /does not declare/],
    ['another type', () => offer(bundle({ server: { type: 'uv', entry_point: 'x.py', mcp_config: { command: 'uv' } } })), /of the type uv/, 2],
    ['another system', () => offer(bundle({ compatibility: { platforms: ['darwin', 'win32'] } })), /not for Linux/, 2],
    ['a version that is a path', () => offer(bundle({ version: '../../x' })), /has no version/],
  ])
    test(`refused: ${what}`, async () => {
      make();
      const got = await fails(['install', 'io.github.ada/weather', '--yes', '--accept-warnings'], code, says);
      assert.ok(![...got.err].some((x) => x < ' ' && x !== '\n'), JSON.stringify(got.err));
    });

  test('interrupted: nothing stays', async () => {
    offer(bundle());
    files['/x.mcpb'] = 'hang';
    const asked = once(host, 'request');
    const child = start(['mcp', 'install', 'io.github.ada/weather', '--yes']);
    await asked;
    child.kill('SIGINT');
    await once(child, 'close');
    assert.match(child.said.err, /interrupted; nothing was installed/);
    assert.deepEqual([await installed(), await servers()], [[], {}]);
  });
});

describe('references that the registry writes', () => {
  const entry = (more) => row({
    name: 'io.github.ada/weather', version: '7.0.0', repository: { url: 'https://github.com/ada/weather', source: 'github' },
    packages: [{ registryType: 'npm', identifier: '@ada/weather', version: '1.0.0', transport: { type: 'stdio' }, ...more }],
  });
  for (const [what, more] of [
    ['a value', { environmentVariables: [{ name: 'A', value: '${secret:github-token}' }] }],
    ['a default', { environmentVariables: [{ name: 'A', default: '${file:/etc/passwd}' }] }],
    ['a part', { environmentVariables: [{ name: 'A', value: 'x{y}', variables: { y: { value: '${secret:z}' } } }] }],
    ['an argument', { packageArguments: [{ type: 'positional', value: '${env:HOME}' }] }],
  ])
    test(`refused: ${what}`, async () => {
      registry.rows = [entry(more)];
      await fails(['install', 'io.github.ada/weather', '--yes'], 1, /writes a reference \(\$\{\.\.\.\}\) into a value/);
    });
  test('refused: a header', async () => {
    registry.rows = [row({ name: 'a.b/c', version: '1', remotes: [{ type: 'sse', url: 'https://c.example.com/', headers: [{ name: 'X', value: '${secret:github-token}' }] }] })];
    await fails(['install', 'a.b/c', '--yes'], 1, /writes a reference/);
  });
});
