// `mcp install` by root, whose server is another user: npm runs as that user,
// and the files are root's wherever nobody else can exchange them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { chmod, chown, lchown, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';

import { zip } from '../lib/zip.mjs';
import { SERVER, audit, dir, environment, mcp, start } from '../lib/install.mjs';
import { bin } from '../lib/mcp.mjs';

const USER = 19990; // beside the own user, not in any passwd
const state = () => join(dir, 'state');
const config = () => join(dir, 'config.json');
const more = () => ({ npm_config_cache: join(dir, 'cache') });

/** A state directory and a cache of USER, and a configuration of root. */
async function prepare({ parent = 0 } = {}) {
  await chmod(dirname(dir), 0o755);
  for (const name of ['state', 'cache']) {
    await mkdir(join(dir, name), { mode: 0o700 });
    await chown(join(dir, name), USER, USER);
  }
  await writeFile(config(), '{}', { mode: 0o644 });
  await chown(dir, parent, parent);
}
const root = async (...args) => {
  const got = await mcp([...args, '--config', config()], more());
  assert.equal(got.code, 0, got.err);
  return got.out;
};
const entries = async () => JSON.parse(await readFile(config(), 'utf8')).mcpServers ?? {};

/** Every file below it, and itself, belongs to that user; how many. */
function assertOwned(top, user) {
  const all = readdirSync(top, { recursive: true });
  for (const name of ['', ...all]) assert.equal(lstatSync(join(top, name)).uid, user, name);
  return all.length;
}
/** A shell command as USER; its exit status. */
async function asUser(command, env = environment(more())) {
  const child = spawn('/bin/sh', ['-c', command], { uid: USER, gid: USER, cwd: '/', env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const s of [child.stdout, child.stderr]) s.setEncoding('utf8').on('data', (d) => (said += d));
  const [code] = await once(child, 'close');
  return { code, said };
}

describe('root installs for the server of another user', { skip: process.getuid() !== 0 && 'needs root' }, () => {
  test('the files are root\'s; the other user runs them and cannot change them', async () => {
    await prepare();
    await root('install', 'npm:@ada/weather@1.0.0', '--yes');
    const place = join(dir, 'state.servers');
    assert.ok(assertOwned(place, 0) > 3);
    assertOwned(state(), USER);
    const { weather } = await entries();
    assert.ok(weather.args[0].startsWith(`${place}/weather/1.0.0-`), weather.args[0]);

    // as that user: `mcp test`, list and verify, which root starts too
    assert.match(await root('test', 'weather'), /^ok: fake 1\.0\.0 /);
    assert.match(await root('list'), /npm:@ada\/weather 1\.0\.0/);
    assert.match(await root('verify'), /weather: unchanged/);
    const file = weather.args[0];
    assert.equal((await asUser(`cat ${file} >/dev/null`)).code, 0);
    for (const attempt of [`echo >> ${file}`, `chmod u+w ${file}`, `rm -f ${file}`, `mv ${place} ${place}.old`,
      `mv ${dirname(file)} ${dirname(file)}x`, `touch ${place}/x`, `echo > ${place}.lock.json`])
      assert.notEqual((await asUser(attempt)).code, 0, attempt);
    assert.match(await root('verify'), /weather: unchanged/);

    const refused = await asUser(`${bin} mcp install npm:who --yes`, environment({ ...more(), HOME: join(dir, 'state.home') }));
    assert.match(refused.said, /state\.servers is root's: root installs and removes servers here/);

    const planned = await asUser(`${bin} mcp install npm:who --dry-run`, environment({ ...more(), HOME: join(dir, 'state.home') }));
    assert.match(planned.said, /note +a box cannot start for this user \(control groups: /);
    assert.doesNotMatch(await root('install', 'npm:who', '--dry-run'), /a box cannot start/);

    await root('update', 'weather', '--yes');
    assertOwned(place, 0);
    assert.match(await root('test', 'weather'), /^ok: fake 1\.1\.0 /);
    assert.equal((await readdir(join(place, 'weather'))).length, 1);
    assert.ok((await audit()).some((r) => r.includes('"install"')));

    await root('uninstall', 'weather');
    assert.deepEqual(await entries(), {});
    assert.ok(!existsSync(place) && !existsSync(`${place}.lock.json`));
    assertOwned(state(), USER);
  });

  test('the same for a PyPI package and a bundle', async () => {
    await prepare();
    const place = join(dir, 'state.servers');
    await root('install', 'pypi:ada-snake@1.0.0', '--yes', '--name', 'snake');
    assert.ok(assertOwned(place, 0) > 5);
    assertOwned(state(), USER);
    assert.match(await root('test', 'snake'), /^ok: snake 1\.0\.0 /);
    await root('update', 'snake', '--yes');
    assertOwned(place, 0);
    assert.match(await root('test', 'snake'), /^ok: snake 1\.1\.0 /);

    const bytes = zip({
      'manifest.json': JSON.stringify({
        name: 'b', version: '1.0.0', server: { type: 'node', entry_point: 'i.js', mcp_config: { command: 'node', args: ['${__dirname}/i.js'] } },
      }),
      'i.js': SERVER.replace("require('./package.json').version", '"9"'),
    });
    const host = http.createServer((_, rs) => rs.end(bytes)).listen(0, '127.0.0.1');
    await once(host, 'listening');
    const sum = createHash('sha256').update(bytes).digest('hex');
    await root('install', `mcpb:http://127.0.0.1:${host.address().port}/b.mcpb@sha256:${sum}`, '--yes');
    host.close();
    assertOwned(place, 0);
    assertOwned(state(), USER);
    assert.match(await root('test', 'b'), /^ok: fake 9 /);
    assert.match(await root('verify'), /snake: unchanged.*\nb: unchanged/);
    await root('uninstall', 'b');
    await root('uninstall', 'snake');
    assert.ok(!existsSync(place));
  });

  test('npm and agreed install scripts run as the other user', async () => {
    await prepare();
    await root('install', 'npm:who', '--yes', '--allow-scripts');
    const [program] = (await entries()).who.args;
    assert.match(await readFile(join(dirname(program), 'who.txt'), 'utf8'), /^19990\nNoNewPrivs:\t1\n$/);
    assertOwned(join(dir, 'state.servers'), 0);
  });

  test('where the other user could exchange them, the files are his', async () => {
    await prepare({ parent: USER });
    await root('install', 'npm:@ada/weather@1.0.0', '--yes');
    assert.ok(!existsSync(join(dir, 'state.servers')));
    assert.ok(assertOwned(state(), USER) > 5);
    assert.match(await root('test', 'weather'), /^ok: fake 1\.0\.0 /);
    await root('update', 'weather', '--yes');
    assertOwned(state(), USER);
    assert.match(await root('verify'), /weather: unchanged/);
    await root('uninstall', 'weather');
    assert.deepEqual([await entries(), existsSync(join(state(), 'servers'))], [{}, false]);
  });

  test('without a configuration of root everything is the other user\'s', async () => {
    await prepare();
    await lchown(config(), USER, USER);
    const env = { ...more(), HOME: join(dir, 'nobodys') };
    const got = await mcp(['install', 'npm:@ada/weather@1.0.0', '--yes'], env);
    assert.equal(got.code, 0, got.err);
    assertOwned(state(), USER);
    const own = JSON.parse(await readFile(join(dir, 'state.home/.config/mcp-orchestrator/config.json'), 'utf8'));
    assert.deepEqual(Object.keys(own.mcpServers), ['weather']);
    assert.match((await mcp(['test', 'weather'], env)).out, /^ok: fake 1\.0\.0 /);
    assert.equal((await mcp(['uninstall', 'weather'], env)).code, 0);
    assert.ok(!existsSync(join(state(), 'servers')));
  });

  test('interrupted: nothing stays', async () => {
    await prepare();
    const { npm } = await import('../lib/install.mjs');
    npm.hangs.add('@ada/weather');
    const hung = new Promise((done) => (npm.onHang = done));
    const child = start(['mcp', 'install', 'npm:@ada/weather', '--yes', '--config', config()], more());
    await hung;
    child.kill('SIGINT');
    await once(child, 'close');
    assert.match(child.said.err, /interrupted; nothing was installed/);
    assert.deepEqual([await entries(), readdirSync(join(dir, 'state.servers'))], [{}, []]);
  });
});
