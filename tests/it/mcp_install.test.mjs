// `mcp install`, `uninstall` and `verify` of npm packages, with the real npm.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { audit, dir, fails, installed, lock, mcp, npm, ok, servers, start } from '../lib/install.mjs';

describe('an npm package', () => {
  test('planned, installed, tested, verified, uninstalled', async () => {
    const plan = JSON.parse(await ok('install', 'npm:@ada/weather', '--dry-run', '--json'));
    assert.equal(plan.installed, false);
    assert.deepEqual([plan.plan.package, plan.plan.version, plan.plan.warnings], ['@ada/weather', '1.1.0', []]);
    assert.deepEqual(await installed(), []);

    const out = await ok('install', 'npm:@ada/weather', '--yes', '--env', 'UNIT=celsius', '--', '--fast', 'x y');
    assert.match(out, /integrity +sha512-/);
    assert.match(out, /repository +git\+https:\/\/github\.com\/ada\/weather\.git/);
    const { weather } = await servers();
    const [program, ...args] = weather.args;
    assert.match(weather.command, /^\/.*node$/);
    assert.deepEqual([args, weather.env], [['--fast', 'x y'], { UNIT: 'celsius' }]);
    assert.match(program, /\/state\/servers\/weather\/1\.1\.0-[0-9a-f]{16}\/node_modules\/@ada\/weather\/it\.js$/);
    assert.equal((await stat(program)).mode & 0o777, 0o555); // npm makes programs executable
    const top = program.slice(0, program.indexOf('/node_modules'));
    assert.equal((await stat(top)).mode & 0o777, 0o555);

    const pinned = (await lock()).weather;
    assert.equal(pinned.source, 'npm:@ada/weather');
    assert.deepEqual(Object.keys(pinned.packages).sort(), ['node_modules/@ada/rain', 'node_modules/@ada/weather']);
    assert.equal(pinned.packages['node_modules/@ada/weather'].integrity, pinned.integrity);
    assert.ok(top.endsWith(pinned.path) && pinned.path.endsWith(pinned.digest.slice(0, 16)));
    assert.ok((await audit()).some((r) => r.includes('"install"') && r.includes(pinned.integrity)), 'no audit row');

    assert.match(await ok('test', 'weather'), /^ok: fake 1\.1\.0 /);
    assert.match(await ok('list'), /weather .*npm:@ada\/weather 1\.1\.0/);
    assert.equal(await ok('verify'), 'weather: unchanged, npm:@ada/weather\n');
    assert.deepEqual(npm.problems, []);

    await ok('uninstall', 'weather');
    assert.ok((await audit()).some((r) => r.includes('"uninstall"') && r.includes(pinned.integrity)), 'no audit row');
    assert.deepEqual([await servers(), await installed()], [{}, []]);
    const left = await readdir(join(dir, 'state'));
    assert.ok(!left.includes('servers') && !left.includes('servers.lock.json'), left.join());
  });

  test('an exact version, under another name; the same tree gives the same digest', async () => {
    await ok('install', 'npm:@ada/weather@1.0.0', '--yes', '--name', 'one');
    await ok('install', 'npm:@ada/weather@1.0.0', '--yes', '--name', 'two');
    const { one, two } = await lock();
    assert.deepEqual([one.version, one.digest], ['1.0.0', two.digest]);
    await ok('uninstall', 'one');
    assert.deepEqual(Object.keys(await lock()), ['two']);
    assert.match(await ok('test', 'two'), /^ok: fake 1\.0\.0 /);
  });

  test('asks first: without a terminal and without --yes nothing happens', async () => {
    await fails(['install', 'npm:@ada/weather'], 1, /nobody can be asked here; --yes/);
  });

  test('a server of that name is not overwritten', async () => {
    await ok('add', 'weather', '--url', 'https://weather.example.com/mcp');
    const got = await mcp(['install', 'npm:@ada/weather', '--yes']);
    assert.equal(got.code, 1);
    assert.match(got.err, /there is a server 'weather' already: .*--name/);
    assert.deepEqual(Object.keys(await servers()), ['weather']);
  });

  test('install scripts do not run unless agreed', async () => {
    const out = await ok('install', 'npm:scripted', '--yes');
    assert.match(out, /scripts +the package has install scripts; they do not run/);
    assert.match(out, /install scripts were not run: scripted\n/);
    const { path } = (await lock()).scripted;
    const files = await readdir(join(dir, 'state/servers', path, 'node_modules/scripted'));
    assert.ok(!files.includes('ran.txt'), files.join());
    await ok('uninstall', 'scripted');

    const got = await mcp(['install', 'npm:scripted', '--yes', '--allow-scripts'], { SOME_KEY: 'abc' });
    assert.match(got.out, /install scripts were run: scripted\n/);
    const ran = join(dir, 'state/servers', (await lock()).scripted.path, 'node_modules/scripted/ran.txt');
    assert.equal(await readFile(ran, 'utf8'), 'ran, key \n'); // none of our variables
  });

  test('an integrity that the tarball does not have', async () => {
    npm.lies.set('@ada/weather', `sha512-${Buffer.alloc(64).toString('base64')}`);
    await fails(['install', 'npm:@ada/weather', '--yes'], 4, /npm failed \(exit 1\): .*(integrity|EINTEGRITY|sha512)/i);
  });

  test('--bin chooses the program', async () => {
    await ok('install', 'npm:two-bins', '--yes', '--bin', 'b');
    assert.match(await ok('test', 'two-bins'), /^ok: fake/);
  });

  test('a name like that of a well-known package needs its own yes', async () => {
    const got = await fails(['install', 'npm:@evil/server-memory', '--yes'], 1, /because of the warning: .*resembles.*@modelcontextprotocol\/server-memory/);
    assert.match(got.out, /WARNING/);
    await ok('install', 'npm:@evil/server-memory', '--yes', '--accept-warnings');
  });

  test('no Node.js here: the error says what to install', async () => {
    await fails(['install', 'npm:@ada/weather', '--yes'], 4, /needs Node\.js.*install Node\.js/, { PATH: '/nowhere' });
  });

  test('npm drops links out of a package', async () => {
    await ok('install', 'npm:linked', '--yes');
    const files = await readdir(join(dir, 'state/servers', (await lock()).linked.path, 'node_modules/linked'));
    assert.ok(!files.includes('out'), files.join());
  });

  test('interrupted: nothing stays, and npm is gone', async () => {
    npm.hangs.add('@ada/weather');
    const hung = new Promise((done) => (npm.onHang = done));
    const child = start(['mcp', 'install', 'npm:@ada/weather', '--yes']);
    await hung;
    const [temp] = await installed();
    assert.match(temp, /^\.new-/);
    child.kill('SIGINT');
    const [, signal] = await once(child, 'close');
    assert.match(child.said.err, /interrupted; nothing was installed/);
    assert.equal(signal, 'SIGINT');
    assert.deepEqual([await installed(), await servers()], [[], {}]);
  });

  test('killed: the next installation removes what was left', async () => {
    npm.hangs.add('@ada/weather');
    const hung = new Promise((done) => (npm.onHang = done));
    const child = start(['mcp', 'install', 'npm:@ada/weather', '--yes']);
    await hung;
    const second = await mcp(['install', 'npm:two-bins', '--yes', '--bin', 'a']);
    assert.deepEqual([second.code, /another installation is running/.test(second.err)], [1, true]);
    child.kill('SIGKILL');
    await once(child, 'close');
    assert.equal((await installed()).length, 1);
    npm.hangs.clear();
    await ok('install', 'npm:@ada/weather', '--yes');
    assert.deepEqual(await installed(), ['weather']);
  });

  test('files that were changed, added or removed are noticed', async () => {
    await ok('install', 'npm:@ada/weather', '--yes');
    const file = (await servers()).weather.args[0];
    const text = await readFile(file, 'utf8');
    await chmod(file, 0o755);
    await writeFile(file, `${text}// more\n`);
    const got = await mcp(['verify', 'weather']);
    assert.equal(got.code, 1);
    assert.match(got.out, /^weather: its files were changed after the installation/);
    assert.equal(JSON.parse((await mcp(['verify', '--json'])).out)[0].ok, false);
    await writeFile(file, text);
    await ok('verify', 'weather'); // write bits do not count
    await chmod(join(file, '..'), 0o755);
    await rm(file);
    assert.equal((await mcp(['verify'])).code, 1);
    await ok('uninstall', 'weather'); // also then
    assert.deepEqual(await installed(), []);
    assert.equal((await mcp(['verify', 'weather'])).code, 3);
  });

  test('uninstall: only what was installed, and also without an entry', async () => {
    await ok('add', 'mine', '--url', 'https://mine.example.com/mcp');
    assert.match((await mcp(['uninstall', 'mine'])).err, /was not installed by `mcp install`/);
    await ok('install', 'npm:@ada/weather', '--yes');
    assert.match(await ok('remove', 'weather'), /its files stay; .*mcp uninstall weather/);
    await ok('uninstall', 'weather');
    assert.deepEqual([await installed(), Object.keys(await servers())], [[], ['mine']]);
  });
});
