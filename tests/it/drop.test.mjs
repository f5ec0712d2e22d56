// `serve` started by root gives root up: it becomes the owner of its state
// directory, and everything goes on working: boxes, low ports, reload, TLS,
// and the commands that root runs beside it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect as tlsConnect } from 'node:tls';
import { promisify } from 'node:util';

import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { eventually, lives } from '../lib/outside.mjs';
import { BIN, Server, until, within } from './server.mjs';
import { House } from './talk_kit.mjs';

const USER = 19990; // beside the own user, not in any passwd
const notRoot = process.getuid() !== 0 && 'needs root, to give it up';
const ENV = { ASAN_OPTIONS: 'detect_leaks=0' };

/** A directory that others may search, and in it a state directory. */
async function place({ owner = USER } = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'mo-drop-'));
  const state = join(dir, 'state');
  await chmod(dir, 0o755);
  if (owner !== null) {
    await mkdir(state, { mode: 0o700 });
    await chown(state, owner, owner);
  }
  return { dir, state, env: { ...ENV, MCP_ORCHESTRATOR_STATE_DIR: state } };
}

/** A field of /proc/PID/status. */
const field = (pid, name) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
const uids = (pid) => field(pid, 'Uid').split(/\s+/).map(Number);

/** Of every process that serves. */
async function assertDropped(server, ...who) {
  for (const pid of await server.processes()) assertDroppedOne(pid, ...who);
}

function assertDroppedOne(pid, user = USER, groups = '') {
  assert.deepEqual(uids(pid), [user, user, user, user]);
  assert.deepEqual(field(pid, 'Gid').split(/\s+/).map(Number), [user, user, user, user]);
  assert.equal(field(pid, 'Groups').trim(), groups);
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
    assert.match(field(pid, set), /^0+$/, set);
  assert.equal(field(pid, 'NoNewPrivs'), '1');
  assert.equal(field(pid, 'Seccomp'), '2');
}

/** Every file below it belongs to that user. */
function assertOwned(dir, user = USER) {
  for (const name of readdirSync(dir, { recursive: true })) {
    const at = statSync(join(dir, name), { throwIfNoEntry: false });
    if (at) assert.equal(at.uid, user, name);
  }
}

const helperOf = async (server) =>
  (await server.children()).find((pid) => field(pid, 'Name') === 'mo-privileged');

/** A command of root; {code, out, err}. */
function command(args, { dir, env }, bin = BIN) {
  return new Promise((resolve) =>
    execFile(bin, args, { cwd: dir, env: { PATH: process.env.PATH, HOME: dir, ...env } }, (e, out, err) =>
      resolve({ code: e?.code ?? 0, out, err })));
}

const list = (url) => fetch(`${url}/mcp`, {
  method: 'POST',
  headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-06-18' },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } } }),
}).then(async (r) => {
  await r.text();
  return fetch(`${url}/mcp`, {
    method: 'POST', signal: AbortSignal.timeout(20_000),
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18', 'mcp-session-id': r.headers.get('mcp-session-id') ?? '' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' }),
  }).then((a) => a.text(), () => '');
});

test('it becomes the owner of its state directory; boxes survive it', { skip: notRoot }, async () => {
  const { dir, state, env } = await place();
  const house = await House.start({ dir, env });
  try {
    await assertDropped(house.server);
    assert.deepEqual(uids(await helperOf(house.server)), [0, 0, 0, 0]);
    const tab = house.tab();
    await tab.ready();
    const uid = Number(await house.inBox(tab, 'id -u; echo mine > kept'));
    assert.ok(uid >= 20000 && uid < 24096, `${uid}`);
    assertOwned(state);

    const before = house.server;
    const helper = await helperOf(before);
    await house.kill();
    await eventually('the helper ends with the server', () => !lives(helper));
    await house.up();
    const again = house.tab({ session: tab.session });
    await again.ready();
    assert.match(await house.inBox(again, 'cat kept'), /mine/, 'adopted after SIGKILL');

    house.server.signal('SIGTERM');
    await within(house.server.exit, 'the end');
    await house.up();
    const third = house.tab({ session: tab.session });
    await third.ready();
    assert.match(await house.inBox(third, 'cat kept'), /mine/, 'adopted after a restart');
    await assertDropped(house.server);
    assertOwned(state);
  } finally {
    await house.stop();
  }
});

test("Docker's boxes work through the group of its socket", { skip: notRoot || noDocker }, async () => {
  const GROUP = 19980;
  const engine = await dockerd();
  const { dir, env } = await place();
  let house;
  try {
    await chmod(engine.dir, 0o755);
    await chown(engine.sock, 0, GROUP);
    await chmod(engine.sock, 0o660);
    house = await House.start({ dir, env, config: { sandbox: { driver: 'docker', dockerHost: engine.host, warm: 0 } } });
    await assertDropped(house.server, USER, String(GROUP));
    const tab = house.tab();
    await tab.ready();
    assert.match(await house.inBox(tab, 'echo in a box'), /in a box/);
  } finally {
    await house?.stop();
    engine.cleanUp();
  }
});

test('a plain server is the same user, in a HOME of its own', { skip: notRoot }, async () => {
  const { dir, state, env } = await place();
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({ mcpServers: { plain: {
    command: '/bin/sh',
    args: ['-c', 'cat /proc/self/status > "$HOME/a"; ls -A "${HOME%.home}" > "$HOME/b"; mv "$HOME/a" "$HOME/status"; sleep 60'],
  } } }));
  const server = await Server.start([], { dir, env });
  try {
    const listed = list(server.url);
    await until(() => existsSync(`${state}.home/status`), 'the server');
    const said = await readFile(`${state}.home/status`, 'utf8');
    assert.match(said, new RegExp(`^Uid:\\s+${USER}\\s+${USER}\\s`, 'm'));
    assert.match(said, /^CapEff:\s+0+$/m);
    assert.match(said, /^NoNewPrivs:\s+1$/m);
    assert.equal(await readFile(`${state}.home/b`, 'utf8'), '', 'the state directory is hidden');
    assert.equal(statSync(`${state}.home`).mode & 0o777, 0o700);
    server.signal('SIGTERM');
    await listed.catch(() => {});
  } finally {
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  }
});

/** A port below 1024 that nobody has. */
async function lowPort() {
  for (let port = 1000; port > 600; port--) {
    const free = await new Promise((resolve) => {
      const s = createServer().once('error', () => resolve(false));
      s.listen(port, '127.0.0.1', () => s.close(() => resolve(true)));
    });
    if (free) return port;
  }
  throw new Error('no port below 1024 is free');
}

test('--user makes a missing directory for that user; a low port works', { skip: notRoot }, async () => {
  const { dir, state, env } = await place({ owner: null });
  const port = await lowPort();
  const server = await Server.start(['--user', String(USER), '--port', String(port)],
    // each process is searched for seconds: of several, none
    { dir, env: { ...env, ...(!process.env.MO_WORKERS && { ASAN_OPTIONS: 'detect_leaks=1' }) } });
  try {
    assert.equal(server.port, port);
    await assertDropped(server);
    assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
    assert.equal(statSync(state).uid, USER);
    assert.equal(statSync(state).mode & 0o777, 0o700);
  } finally {
    await server.stopClean();
    await rm(dir, { recursive: true, force: true });
  }
});

test('a unix socket in a directory of root is bound before', { skip: notRoot }, async () => {
  const { dir, env } = await place();
  const path = join(dir, 's.sock');
  const config = join(dir, 'mcp-orchestrator.json');
  await writeFile(config, JSON.stringify({ server: { listen: `unix:${path}` } }));
  const child = execFile(BIN, ['serve', '--test-bare', '--no-auth'], { cwd: dir, env: { PATH: process.env.PATH, HOME: dir, ...env } });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  try {
    await until(() => existsSync(path) && statSync(path).uid === USER, "the socket, and that it is the user's");
    await until(() => new Promise((resolve) => {
      const s = connect(path, () => resolve(true)).once('error', () => resolve(false));
      s.once('connect', () => s.destroy());
    }), 'a connection');
    assertDroppedOne(child.pid);
  } finally {
    child.kill('SIGTERM');
    await within(ended, 'the end');
    await rm(dir, { recursive: true, force: true });
  }
});

test('a configuration that only root can read is reloaded', { skip: notRoot }, async () => {
  const { dir, env } = await place();
  const config = join(dir, 'conf', 'c.json');
  await mkdir(join(dir, 'conf'), { mode: 0o700 });
  await writeFile(config, JSON.stringify({ log: { level: 'info' } }), { mode: 0o600 });
  const server = await Server.start(['--config', config], { dir, env });
  const loaded = (n) => () => server.log.includes(`generation ${n} loaded`);
  try {
    await assertDropped(server);
    await writeFile(config, JSON.stringify({ log: { level: 'debug' } }));
    await until(loaded(2), 'the watch');
    assert.match(server.log, /log\.level changed/);
    server.child.kill('SIGHUP');
    await until(loaded(3), 'SIGHUP');
    await chmod(join(dir, 'conf'), 0o777); // now others can exchange it
    server.child.kill('SIGHUP');
    await until(() => /others than root can change it/.test(server.log), 'the refusal');
    await chmod(join(dir, 'conf'), 0o700);
    server.child.kill('SIGHUP');
    await until(loaded(4), 'the next one');
  } finally {
    await server.stopClean();
    await rm(dir, { recursive: true, force: true });
  }
});

/** NAME.crt and NAME.key. */
const certificate = (dir, name) => promisify(execFile)('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt',
  'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', `/CN=${name}`,
  '-keyout', join(dir, `${name}.key`), '-out', join(dir, `${name}.crt`)]);

/** The name in the certificate that it shows now. */
const nameAt = (port) => new Promise((resolve, reject) => {
  const s = tlsConnect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
    resolve(s.getPeerCertificate().subject.CN);
    s.destroy();
  }).once('error', reject);
});

test('keys that only root can read are used and renewed, also behind a link', { skip: notRoot }, async () => {
  const { dir, env } = await place();
  const keys = join(dir, 'keys');
  await mkdir(keys, { mode: 0o700 });
  await Promise.all([certificate(keys, 'first'), certificate(keys, 'second')]);
  const point = async (name) => {
    for (const end of ['crt', 'key']) {
      await rm(join(keys, `live.${end}`), { force: true });
      await symlink(`${name}.${end}`, join(keys, `live.${end}`));
    }
  };
  await point('first');
  const server = await Server.start(['--tls-cert', join(keys, 'live.crt'), '--tls-key', join(keys, 'live.key')], { dir, env });
  try {
    await assertDropped(server);
    assert.equal(await nameAt(server.port), 'first');
    await point('second');
    server.child.kill('SIGHUP');
    await until(async () => (await nameAt(server.port)) === 'second', 'the new certificate');
  } finally {
    await server.stopClean();
    await rm(dir, { recursive: true, force: true });
  }
});

test("commands of root run beside it as its user", { skip: notRoot }, async () => {
  const at = await place();
  const { dir, state, env } = at;
  const config = join(dir, 'mcp-orchestrator.json');
  await writeFile(config, '{}', { mode: 0o600 });
  const server = await Server.start([], { dir, env, auth: true });
  try {
    const open = await command(['open'], at);
    assert.equal(open.code, 0, open.err);
    const page = await fetch(open.out.trim(), { redirect: 'manual' });
    assert.ok(page.status < 400, `${page.status}`);
    assert.match(page.headers.get('set-cookie') ?? '', /=/);

    const add = await command(['mcp', 'add', 'x', '--', '/bin/true'], at);
    assert.equal(add.code, 0, add.err);
    assert.equal(add.err, '');
    assert.match(await readFile(config, 'utf8'), /"\/bin\/true"/);
    assert.equal(statSync(config).uid, 0);
    const audit = await command(['audit', 'list', '--json'], at);
    assert.equal(audit.code, 0, audit.err);
    assert.match(audit.out, /"managed"/);
    assert.equal((await command(['audit', 'verify'], at)).code, 0);
    assert.equal((await command(['sessions', 'list'], at)).code, 0);
    const boxed = await command(['box', 'run', '--', 'id', '-u'], at);
    assert.equal(boxed.code, 0, boxed.err);
    assert.ok(Number(boxed.out) >= 20000 && Number(boxed.out) < 24096, boxed.out);
    assertOwned(state);
  } finally {
    await server.stopClean();
    await rm(dir, { recursive: true, force: true });
  }
});

test('without its helper it goes on, and says what is missing', { skip: notRoot }, async () => {
  const { dir, env } = await place();
  const house = await House.start({ dir, env });
  try {
    const helper = await helperOf(house.server);
    process.kill(helper, 'SIGKILL');
    await until(() => /the privileged helper has ended/.test(house.server.log), 'the log');
    const tab = house.tab();
    house.model.script.push({ text: 'still here' });
    const failed = await within(Promise.race([
      tab.event('system:error').then(([e]) => JSON.stringify(e)),
      until(() => /privileged helper of this server has ended; restart/.test(house.server.log), 'the reason').then(() => 'restart the server'),
    ]), 'a reason');
    assert.match(failed, /restart\s+the server/);
    assert.equal((await fetch(`${house.server.url}/healthz`)).status, 200);
    house.server.fresh.children -= 1;
    house.sessions.clear();
  } finally {
    await house.stop();
  }
});

const REFUSED = [
  ['another user than the owner', {}, ['--user', '12345'], /belongs to user 19990, not to 12345/],
  ['root in a directory of another', {}, ['--user', 'root'], /belongs to user 19990, not to 0/],
  ["a user in root's directory", { owner: 0 }, ['--user', '12345'], /chown -R 12345: /],
  ['an unknown user', {}, ['--user', 'nosuchuser'], /there is no user nosuchuser/],
  ["a box's user", { owner: null }, ['--user', '20007'], /those of boxes/],
];
for (const [what, how, args, says] of REFUSED)
  test(`refused: ${what}`, { skip: notRoot }, async () => {
    const at = await place(how);
    try {
      const got = await command(['serve', '--port', '0', '--test-bare', ...args], at);
      assert.notEqual(got.code, 0);
      assert.match(got.err, says);
    } finally {
      await rm(at.dir, { recursive: true, force: true });
    }
  });

test('refused: what it could not do as that user, with what to do', { skip: notRoot }, async () => {
  const at = await place();
  const serve = () => command(['serve', '--port', '0', '--test-bare'], at);
  try {
    await writeFile(join(at.dir, 'mcp-orchestrator.json'), JSON.stringify({ audit: { anchor: `file:${at.dir}/anchor` } }));
    assert.match((await serve()).err, /audit\.anchor: user 19990 cannot write .*change its owner/);
    await rm(join(at.dir, 'mcp-orchestrator.json'));
    await writeFile(join(at.state, 'token'), 'x', { mode: 0o600 });
    assert.match((await serve()).err, /cannot read token in it: `chown -R 19990: /);
    await rm(join(at.state, 'token'));
    await chmod(at.dir, 0o700);
    assert.match((await serve()).err, /cannot reach the state directory.*chmod o\+x/);
    await chmod(at.dir, 0o755);
  } finally {
    await rm(at.dir, { recursive: true, force: true });
  }
});

test("the page cannot change a file of root, and says who can", { skip: notRoot }, async () => {
  const { dir, env } = await place();
  const house = await House.start({ dir, env });
  try {
    const answer = await fetch(`${house.server.url}/api/mcp/add`, { method: 'POST',
      headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name: 'x', command: '/bin/true' }) });
    assert.equal(answer.status, 403);
    assert.match((await answer.json()).detail, /is root's and this server is not root.*mcp-orchestrator mcp/);
  } finally {
    await house.stop();
  }
});

test("root's own directory keeps a server of root, with a warning", { skip: notRoot }, async () => {
  const { dir, env } = await place({ owner: 0 });
  for (const [args, says] of [[[], /running as root.*chown -R 19999: /], [['--user', 'root'], /running as root, as asked for/]]) {
    const server = await Server.start(args, { dir, env });
    assert.deepEqual(uids(server.pid), [0, 0, 0, 0]);
    assert.equal(await helperOf(server), undefined);
    assert.match(server.log, says);
    await server.stopClean();
  }
  await rm(dir, { recursive: true, force: true });
});

test('the first start of all makes a place for a user of its own', { skip: notRoot }, async () => {
  const { dir } = await place({ owner: null });
  const inside = join(dir, 'inside');
  await writeFile(inside, `#!/bin/sh
exec unshare --mount --propagation private sh -c 'mount -t tmpfs none /var/lib && exec ${BIN} "$@"' sh "$@"
`, { mode: 0o755 });
  const server = await Server.start([], { dir, bin: inside, env: { ...ENV, HOME: undefined }, auth: true, house: true });
  const at = (p) => `/proc/${server.pid}/root/var/lib/mcp-orchestrator${p}`;
  try {
    const own = uids(server.pid)[0]; // of /etc/passwd, if it has one
    assert.notEqual(own, 0);
    assert.notEqual(own, 65534);
    await assertDropped(server, own);
    assert.equal(statSync(at('')).uid, 0);
    for (const d of ['/state', '/home']) {
      assert.equal(statSync(at(d)).uid, own);
      assert.equal(statSync(at(d)).mode & 0o777, 0o700);
    }
    const open = await command(['-t', String(server.pid), '-m', BIN, 'open'], { dir, env: { ...ENV, HOME: undefined } }, 'nsenter');
    assert.equal(open.code, 0, open.err);
    // the page can add a server: the configuration is the user's own
    const page = await fetch(open.out.trim(), { redirect: 'manual' });
    const cookie = page.headers.get('set-cookie').split(';')[0];
    const added = await fetch(`${server.url}/api/mcp/add`, { method: 'POST',
      headers: { cookie, origin: server.url, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'x', command: '/bin/true' }) });
    assert.ok(added.status < 300, `${added.status} ${await added.text()}`);
    assert.match(await readFile(at('/home/.config/mcp-orchestrator/config.json'), 'utf8'), /true/);
    server.fresh.fds += 32; // of warm boxes
  } finally {
    await server.stopClean();
    await rm(dir, { recursive: true, force: true });
  }
});
