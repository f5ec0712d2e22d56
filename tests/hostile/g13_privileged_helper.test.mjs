// G13: the server itself, taken over after it gave up root. It has the socket
// of the privileged helper and can send whatever it likes; nothing of that
// makes it root, shows it a file of root, or touches another user's boxes.
// There was no helper before: the server was root.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Native, boxClient, cgroupsOf, eventually, lives, moBox } from '../lib/boxes.mjs';

const USER = 19991;
const client = fileURLToPath(new URL('../../build-asan/tests/it/privileged_client', import.meta.url));
const notRoot = process.getuid() !== 0 && 'needs root, to give it up';

let home, dir, secret, config;
before(async () => {
  if (notRoot) return;
  home = await mkdtemp(join(tmpdir(), 'mo-g13-'));
  await chmod(home, 0o755);
  dir = join(home, 'boxes');
  await mkdir(dir, { mode: 0o700 });
  await chown(dir, USER, USER);
  await mkdir(join(home, 'roots', 'inner'), { recursive: true, mode: 0o700 });
  await chmod(join(home, 'roots'), 0o700);
  secret = join(home, 'roots', 'secret');
  await writeFile(secret, 'the secret of root', { mode: 0o600 });
  config = join(home, 'roots', 'c.json');
  await writeFile(config, 'the configuration', { mode: 0o600 });
});
after(() => home && rm(home, { recursive: true, force: true }));

/** One attack; {out, err, code, helper}. look(helper pid): before its end. */
async function attack(args, { file = config, look } = {}) {
  const child = spawn(client, [moBox, dir, String(USER), file, ...args],
    { stdio: ['pipe', 'pipe', 'pipe'], env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' } });
  let out = '', err = '';
  child.stdout.on('data', (d) => (out += d));
  child.stderr.on('data', (d) => (err += d));
  const closed = once(child, 'close');
  if (look) {
    await eventually('the attack is over', () => /alive|refused/.test(out) || child.exitCode !== null);
    await look(Number(/helper (\d+)/.exec(out)[1]));
  }
  child.stdin.end();
  const [code] = await closed;
  const helper = Number(/helper (\d+)/.exec(out)?.[1]);
  await eventually('the helper ends with its server', () => !lives(helper));
  return { out, err, code, helper };
}

const inBox = (options, ...command) => attack(['box', boxClient, dir, ...options, '--', ...command]);
const isRoots = (pid) => /^Uid:\s+0\s+0\s+0\s+0$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

test('what it may ask for works', { skip: notRoot }, async () => {
  const box = await inBox([], 'id', '-u');
  const uid = Number(/^\d+$/m.exec(box.out)?.[0]);
  assert.ok(uid >= 20000 && uid < 24096, box.out + box.err);
  assert.match((await attack(['file', '0'])).out, /^the configuration$/m);
});

// --- files -------------------------------------------------------------------

test('a file that is not in the list', { skip: notRoot }, async () => {
  for (const n of ['1', '3', '4', '255']) {
    const got = await attack(['file', n]);
    assert.match(got.out, /refused/);
    assert.doesNotMatch(got.out, /secret|configuration\n/);
  }
});

test('a file in its place: a link, a directory of the user', { skip: notRoot }, async () => {
  const own = join(home, 'own');
  await mkdir(own, { mode: 0o755 });
  await chown(own, USER, USER);
  await symlink(secret, join(own, 'c.json'));
  assert.match((await attack(['file', '0'], { file: join(own, 'c.json') })).out, /refused policy/);

  // root's link in root's directory, to a directory of the user
  const link = join(home, 'link');
  await symlink(own, link);
  assert.match((await attack(['file', '0'], { file: join(link, 'c.json') })).out, /refused policy/);
  await unlink(link);
  await rm(own, { recursive: true });

  await chmod(config, 0o602);
  assert.match((await attack(['file', '0'])).out, /refused policy/);
  await chmod(config, 0o600);
  assert.match((await attack(['file', '0'])).out, /^the configuration$/m);
});

test('what it gets is a copy that cannot be written', { skip: notRoot }, async () => {
  assert.doesNotMatch((await attack(['file', '0'])).out, /written/);
  assert.equal(readFileSync(config, 'utf8'), 'the configuration');
});

// --- boxes -------------------------------------------------------------------

test('directories that the user cannot read, as an image', { skip: notRoot }, async () => {
  for (const root of [join(home, 'roots'), join(home, 'roots', 'inner'), `/proc/${process.pid}/root/root`,
    `/proc/${process.pid}/cwd`, '/proc/1/root', '/root']) {
    if (root === '/root' && statSync(root).mode & 0o005) continue;
    const got = await inBox([`root=${root}`], '/bin/true');
    assert.equal(got.code, 72, `${root}: ${got.out}${got.err}`);
    assert.match(got.err, /REFUSED/);
  }
});

test('the whole host as an image shows nothing of root', { skip: notRoot }, async () => {
  const rest = home.slice(1);
  const got = await inBox(['root=/'], '/bin/sh', '-c',
    `cat /etc/shadow; cat /${rest}/roots/secret; ls /root; ls /proc/1/root; touch /usr/x; touch /etc/x; mknod /workspace/d b 8 0; ` +
    'cat /proc/self/status; su -c id; chroot /workspace; mount -t tmpfs x /workspace');
  assert.doesNotMatch(got.out, /root:.*:\d+:\d+:\d+|the secret|uid=0/);
  assert.match(got.out, /^CapEff:\s+0+$/m);
  assert.match(got.out, /^NoNewPrivs:\s+1$/m);
  assert.ok(!existsSync('/usr/x') && !existsSync('/etc/x'));
});

test('views of the host', { skip: notRoot }, async () => {
  for (const view of ['/etc', join(home, 'roots'), '/root', '/dev', '/proc', '/run'])
    assert.match((await inBox([`view=${view}`], 'true')).err, /REFUSED policy: views of the host/);
});

test("a socket in another's directory, or in one that others may enter", { skip: notRoot }, async () => {
  const open = join(home, 'open');
  await mkdir(open);
  await chown(open, USER, USER);
  await chmod(open, 0o755);
  const to = join(home, 'to');
  await symlink(join(home, 'roots'), to);
  for (const at of ['/root', '/run', '/tmp', '/etc', join(home, 'roots'), open, to, `/proc/${process.pid}/cwd`]) {
    const got = await attack(['box', boxClient, at, '--', 'true']);
    assert.equal(got.code, 72, `${at}: ${got.out}${got.err}`);
  }
  assert.deepEqual(readdirSync(join(home, 'roots')).sort(), ['c.json', 'inner', 'secret']);
});

test("ids and remains of another's box", { skip: notRoot }, async () => {
  const native = new Native();
  const victim = await native.start(['sleep', '60'], { host: true });
  try {
    // as its own box
    const twin = await inBox([`id=${victim.id}`], 'id', '-u');
    assert.equal(twin.code, 0, twin.err);
    assert.notEqual(Number(/^\d+$/m.exec(twin.out)[0]), victim.uid);
    assert.ok(lives(victim.pid));

    // as the remains of its own: a dead socket of that name
    const socket = join(dir, `${victim.id}.sock`);
    execFileSync(process.execPath, ['-e', `require('net').createServer().listen(${JSON.stringify(socket)}, () => process.kill(process.pid, 'SIGKILL'))`], { stdio: 'ignore' , timeout: 20000 , killSignal: 'SIGKILL' });
  } catch (e) {
    if (e.signal !== 'SIGKILL') throw e;
  }
  try {
    await chown(join(dir, `${victim.id}.sock`), USER, USER);
    const got = await attack(['sweep']);
    assert.match(got.out, /sweep 0/);
    assert.ok(!existsSync(join(dir, `${victim.id}.sock`)), 'swept');
    assert.ok(lives(victim.pid), 'the box of another lives');
    assert.notDeepEqual(cgroupsOf(victim.id), []);
  } finally {
    await victim.kill();
    await native.clean();
  }
});

test('a sweep follows no links out of the directory', { skip: notRoot }, async () => {
  const path = join(home, 'roots', 'live.sock');
  let calls = 0;
  const server = createServer((s) => { calls++; s.destroy(); }).listen(path);
  await once(server, 'listening');
  await symlink(path, join(dir, 'blive.sock'));
  assert.match((await attack(['sweep'])).out, /sweep 0/);
  assert.equal(calls, 0, 'root connected for the user');
  assert.ok(existsSync(path));
  server.close();
  await rm(join(dir, 'blive.sock'));
});

// --- the socket --------------------------------------------------------------

const fds = (pid) => readdirSync(`/proc/${pid}/fd`).length;

for (const what of [['forge'], ['odd'], ['many'], ['flood', '600']])
  test(`${what.join(' ')}: it stays, keeps nothing open and runs nothing`, { skip: notRoot }, async () => {
    const got = await attack(what, { look: async (helper) => {
      assert.ok(isRoots(helper));
      await eventually('its descriptors are closed', () => fds(helper) <= 7);
    } });
    assert.match(got.out, /^alive$/m, got.out + got.err);
    if (what[0] !== 'flood') return;
    const [, started, busy] = /started (\d+) busy (\d+)/.exec(got.out).map(Number);
    assert.equal(started + busy, 600);
    assert.ok(busy > 0 && started < 400, got.out);
  });
