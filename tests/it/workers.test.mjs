// `serve --workers`: several processes serve one port.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

import { claude } from '../fakes/claude.mjs';
import { freePort } from '../lib/port.mjs';
import { missing as noRedis, redis } from '../lib/redis.mjs';
import { BIN, Server, until, within } from './server.mjs';
import { Tab, run } from './talk_kit.mjs';

const exists = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const lines = (server) => server.log.split('\n').slice(0, -1).filter((l) => l.startsWith('{')).map((l) => JSON.parse(l));
/** pid of each worker, by its number, as the log tells. */
const pids = (server) => {
  const found = {};
  for (const { msg } of lines(server)) {
    const m = /^worker (\d+) started, pid (\d+)$/.exec(msg);
    if (m) found[m[1]] = Number(m[2]);
  }
  return found;
};

/** A server without conversations; ended with the test, whatever happens. */
async function bare(t, count, ...args) {
  const dir = await mkdtemp(join(tmpdir(), 'mo-workers-'));
  const server = await Server.start(['--workers', String(count), ...args], { dir });
  t.after(() => {
    if (server.alive) server.child.kill('SIGKILL');
    return rm(dir, { recursive: true, force: true });
  });
  await until(() => Object.keys(pids(server)).length === count, 'the pids');
  return server;
}

/** A server with two workers, conversations and a fake model. */
class House {
  static async start({ config = {}, args = [], dir } = {}) {
    const h = new House();
    Object.assign(h, { sessions: new Set(), tabs: [], headers: {} });
    h.dir = dir ?? await mkdtemp(join(tmpdir(), 'mo-workers-'));
    h.model = await claude({ key: 'sk-ant-0123456789' });
    h.file = join(h.dir, 'mcp-orchestrator.json');
    h.config = {
      llm: { provider: 'claude', model: 'claude-sonnet-5-5' },
      sandbox: { driver: 'native', warm: 0 },
      ...config,
    };
    await writeFile(h.file, JSON.stringify(h.config));
    h.env = { ANTHROPIC_API_KEY: h.model.key, ANTHROPIC_BASE_URL: h.model.url };
    await h.up(args);
    return h;
  }

  async up(args = []) {
    this.server = await Server.start(['--workers', '2', ...args], { dir: this.dir, env: this.env, house: true });
    this.server.fresh.fds += 40; // connections to the model and between workers
  }

  tab(how) {
    const tab = new Tab(this, how);
    this.tabs.push(tab);
    return tab;
  }

  /** Two tabs of one session, at different workers. */
  async pair() {
    const here = this.tab();
    await here.ready();
    for (;;) {
      const there = this.tab({ session: here.session });
      await there.ready();
      if ((await this.workerOf(there)) !== (await this.workerOf(here))) return { here, there };
      there.close();
    }
  }

  /** Which worker has this tab's connection, as the kernel says. */
  async workerOf(tab) {
    const local = tab.socket.io.engine.transport.ws._socket.localPort;
    return holder(pids(this.server), this.server.port, local);
  }

  async stop() {
    for (const tab of this.tabs) tab.close();
    for (const id of this.sessions)
      await until(async () => {
        const r = await fetch(`http://127.0.0.1:${this.server.port}/api/sessions/${id}?forget=true`, { method: 'DELETE' });
        return [200, 204, 404].includes(r.status);
      }, `the end of ${id}`);
    try {
      await this.server.stopClean();
    } finally {
      if (this.server.alive) this.server.child.kill('SIGKILL');
      await this.end();
    }
    assert.deepEqual(this.model.problems, []);
  }

  async end() {
    await this.model.close();
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** The number of the worker that has the connection port <- remote. */
async function holder(workers, port, remote) {
  const hex = (n) => n.toString(16).toUpperCase().padStart(4, '0');
  const table = await readFile('/proc/net/tcp', 'utf8');
  const row = table.split('\n').map((l) => l.trim().split(/\s+/)).find((f) => f[1]?.endsWith(`:${hex(port)}`) && f[2]?.endsWith(`:${hex(remote)}`));
  for (const [number, pid] of Object.entries(workers)) {
    const fds = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const fd of fds)
      if (row && (await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')) === `socket:[${row[9]}]`) return number;
  }
  return undefined;
}

async function refused(args) {
  const child = spawn(BIN, ['serve', '--test-bare', '--no-auth', ...args], { stdio: ['ignore', 'pipe', 'pipe'], cwd: tmpdir() });
  let said = '';
  child.stdout.on('data', (d) => (said += d));
  child.stderr.on('data', (d) => (said += d));
  const [code] = await once(child, 'close');
  return { code, said };
}

test('numbers of workers that are refused', async () => {
  for (const n of ['0', '65', '-1', 'x', '']) {
    const { code, said } = await refused([`--workers=${n}`, '--port', '0']);
    assert.notEqual(code, 0, n);
    assert.match(said, /server\.workers.*whole number from 1 to 64/, n);
  }
});

test('a port in use is told once', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { code, said } = await refused(['--workers', '2', '--port', String(other.address().port)]);
  assert.equal(code, 4);
  assert.equal(said.match(/is in use by another program/g)?.length, 1, said);
  other.close();
  const first = await bare(t, 2);
  const second = await refused(['--workers', '2', '--port', String(first.port)]);
  assert.equal(second.code, 4, 'also if the other one has workers itself');
  await first.stopClean();
});

test('an error of the start is told once', async () => {
  const { code, said } = await refused(['--workers', '2', '--port', '0', '--tls-cert', '/nowhere', '--tls-key', '/nowhere']);
  assert.equal(code, 3, said);
  assert.equal(said.match(/cannot start/g)?.length, 1, said);
});

test('the ready line once, reload reaches all, SIGTERM drains', async (t) => {
  const server = await bare(t, 3);
  assert.equal(server.log.match(/is ready: /g).length, 1);
  const workers = Object.values(pids(server));
  assert.equal(workers.length, 3);
  assert.deepEqual((await server.processes()).slice(1).sort(), workers.sort());
  server.child.kill('SIGHUP');
  const reloaded = () => new Set(lines(server).filter(({ room, msg }) => room === 'config' && /loaded/.test(msg)).map((l) => l.worker)).size;
  await until(() => reloaded() === 3, 'three reloads');
  // as a service manager does: to all of them
  for (const pid of workers) process.kill(pid, 'SIGTERM');
  await server.stopClean();
  assert.doesNotMatch(server.log, /second signal/);
  assert.ok(workers.every((pid) => !exists(pid)));
});

test('a worker that dies again and again ends the server', async (t) => {
  const server = await bare(t, 2);
  for (let last; !server.ended; ) {
    const pid = pids(server)[1];
    if (pid === last) {
      await Promise.race([server.exit, once(server.child.stderr, 'data')]);
      continue;
    }
    last = pid;
    process.kill(pid, 'SIGKILL');
  }
  assert.deepEqual(server.ended, { code: 1, signal: null }, server.log);
  assert.match(server.log, /worker 1 has ended 5 times soon after its start \(the last time: killed by signal 9/);
  assert.ok(Object.values(pids(server)).every((pid) => !exists(pid)));
});

test('the workers do not survive the parent', async (t) => {
  const server = await bare(t, 2);
  const workers = Object.values(pids(server));
  server.signal('SIGKILL');
  await server.exit;
  await until(() => workers.every((pid) => !exists(pid)), 'their end');
  const next = await bare(t, 2, '--port', String(server.port));
  assert.equal(next.port, server.port, 'the port is free at once');
  await next.stopClean();
});

test('two tabs at two workers hear the same', async () => {
  const h = await House.start();
  try {
    const { here, there } = await h.pair();
    h.model.script.push({ text: 'Hello to both of you.' });
    assert.equal((await there.say('one')).ok, true);
    await here.event('agent:response');
    await there.event('agent:response');
    const heard = (tab) => tab.events.filter(([e]) => e.startsWith('agent:')).map((e) => JSON.stringify(e));
    assert.deepEqual(heard(there), heard(here));
  } finally {
    await h.stop();
  }
});

test('a worker is killed: its clients come back, nothing is lost', async () => {
  const h = await House.start();
  try {
    const { here, there } = await h.pair();
    h.model.script.push({ text: 'first answer' });
    await here.say('one');
    await there.event('agent:response');
    const dead = await h.workerOf(here);
    const was = pids(h.server)[dead];
    process.kill(was, 'SIGKILL');
    await here.event('(disconnect)');
    h.model.script.push({ text: 'second answer' });
    assert.equal((await there.say('two')).ok, true, 'the other worker takes over');
    await there.event('agent:response', 2);
    const back = h.tab({ session: here.session });
    const { history } = await back.ready();
    const said = history.messages.filter((m) => m.role === 'user').map((m) => /"(one|two)"/.exec(JSON.stringify(m))?.[1]);
    assert.deepEqual(said, ['one', 'two']);
    await until(() => pids(h.server)[dead] !== was, 'the worker');
    assert.match(h.server.log, new RegExp(`worker ${dead} has ended \\(killed by signal 9`));
  } finally {
    await h.stop();
  }
});

test('the parent is killed: the next one takes the conversation over', async () => {
  const h = await House.start();
  try {
    const { here } = await h.pair();
    h.model.script.push({ calls: [run('echo kept > kept')] }, { text: 'written' });
    await here.say('write it');
    const [card] = await here.event('tool:approval_required');
    await here.decide(card, true, { digest: card.digest });
    await here.event('agent:response');
    const workers = Object.values(pids(h.server));
    h.server.signal('SIGKILL');
    await h.server.exit;
    await until(() => workers.every((pid) => !exists(pid)), 'their end');
    await h.up();
    const again = h.tab({ session: here.session });
    await again.ready();
    h.model.script.push({ calls: [run('cat kept')] }, { text: 'read' });
    await again.say('read it');
    const [card2] = await again.event('tool:approval_required');
    await again.decide(card2, true, { digest: card2.digest });
    const [out] = await again.event('tool:output');
    assert.match(out, /kept/, 'in the same box');
  } finally {
    await h.stop();
  }
});

test('200 sockets spread over both workers', async (t) => {
  const server = await bare(t, 2, '--test-echo');
  const { io } = await import('socket.io-client');
  const sockets = Array.from({ length: 200 }, () => io(`http://127.0.0.1:${server.port}`, { transports: ['websocket'], forceNew: true, reconnection: false }));
  try {
    await within(Promise.all(sockets.map((s) => new Promise((resolve, reject) => s.on('connect', resolve).on('connect_error', reject)))), '200 sockets', 60_000);
    const count = async (pid) => {
      const fds = await readdir(`/proc/${pid}/fd`);
      const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
      return links.filter((l) => l.startsWith('socket:')).length;
    };
    const shares = await Promise.all(Object.values(pids(server)).map(count));
    // 200 throws of a coin: below 50 once in 10^13 runs
    assert.ok(shares.every((n) => n >= 50), String(shares));
  } finally {
    for (const s of sockets) s.disconnect();
    await server.stopClean();
    }
});

/** Each says eight words and hears them again. */
async function echo(sockets) {
  for (const s of sockets) {
    await within(new Promise((resolve, reject) => (s.connected ? resolve() : s.on('connect', resolve).on('connect_error', reject))), 'a socket');
    for (let n = 0; n < 8; n++) {
      const back = once(s, 'again');
      s.emit('again', n);
      assert.equal((await within(back, 'the echo'))[0], n);
    }
  }
}

test('polling: requests reach the worker that has the socket', async (t) => {
  const server = await bare(t, 2, '--test-echo');
  const { io } = await import('socket.io-client');
  const sockets = Array.from({ length: 16 }, () => io(`http://127.0.0.1:${server.port}`, { transports: ['polling'], forceNew: true, reconnection: false }));
  try {
    await echo(sockets);
    // and a session that nobody has
    for (const first of ['0', '1', '2', '-'])
      assert.equal((await fetch(`${server.url}/socket.io/?EIO=4&transport=polling&sid=${first}nobody`)).status, 400);
  } finally {
    for (const s of sockets) s.disconnect();
    await server.stopClean();
  }
});

test('polling and its upgrade with TLS, as a page does it', async (t) => {
  const keys = await mkdtemp(join(tmpdir(), 'mo-workers-keys-'));
  t.after(() => rm(keys, { recursive: true, force: true }));
  const [cert, key] = ['cert', 'key'].map((name) => join(keys, `${name}.pem`));
  await promisify(execFile)('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert]);
  const ca = await readFile(cert);
  const server = await bare(t, 2, '--test-echo', '--tls-cert', cert, '--tls-key', key);
  const { io } = await import('socket.io-client');
  const home = `https://localhost:${server.port}`;
  const open = (transports) => Array.from({ length: 16 }, () => io(home, { transports, ca, extraHeaders: { origin: home }, forceNew: true, reconnection: false }));
  const polling = open(['polling']), upgraded = open(['polling', 'websocket']);
  try {
    await echo(polling);
    await echo(upgraded);
    await until(() => upgraded.every((s) => s.io.engine.transport.name === 'websocket'), 'the upgrades');
    await echo(upgraded);
    // another page is refused, whichever worker its request is passed to
    const strange = io(home, { transports: ['polling'], ca, extraHeaders: { origin: 'https://evil.example' }, forceNew: true, reconnection: false });
    await within(once(strange, 'connect_error'), 'the refusal');
  } finally {
    for (const s of [...polling, ...upgraded]) s.disconnect();
    await server.stopClean();
  }
});

/** Sessions begin while the store is stopped. Log, and statuses of their requests;
 *  none if this took longer than a worker lets them wait. */
async function beginEarly(t) {
  const store = await redis();
  t.after(() => store.stop());
  const dir = await mkdtemp(join(tmpdir(), 'mo-workers-'));
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({ sandbox: { driver: 'none' }, store: { url: `redis://127.0.0.1:${store.port}` } }));
  const port = await freePort();
  store.child.kill('SIGSTOP');
  const server = { log: '' };
  const child = spawn(BIN, ['serve', '--no-auth', '--workers', '2', '--port', String(port)],
    { cwd: dir, env: { PATH: process.env.PATH, HOME: dir, ASAN_OPTIONS: 'detect_leaks=0' } });
  t.after(async () => {
    child.kill('SIGKILL');
    await rm(dir, { recursive: true, force: true });
  });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (d) => (server.log += d));
  const post = (body, headers = {}) => fetch(`http://localhost:${port}/mcp`, {
    method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }),
    headers: { connection: 'close', 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
  });
  await until(() => Object.keys(pids(server)).length === 2, 'the workers').catch((e) => assert.fail(`${e.message}\n${server.log}`));
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'it', version: '1' } };
  const asked = Array.from({ length: 8 }, () => post({ method: 'initialize', params }));
  await Promise.race([...asked, sleep(500)]); // time in which they would begin alone
  store.child.kill('SIGCONT');
  const seen = [];
  for (const answer of await Promise.all(asked)) {
    seen.push([answer.status, await answer.text()]);
    const session = { 'mcp-session-id': answer.headers.get('mcp-session-id') };
    for (let i = 0; i < 6; i++) seen.push([(await post({ method: 'ping' }, session)).status, server.log]);
  }
  child.kill('SIGTERM');
  assert.deepEqual(await within(once(child, 'exit'), 'the end'), [0, null], server.log);
  return server.log.includes('has not answered for 5 s') ? [] : seen;
}

test('sessions that begin before the store answers are known to all workers', { skip: noRedis }, async (t) => {
  let seen = [];
  for (let left = 3; left && seen.length === 0; left--) seen = await beginEarly(t);
  assert.equal(seen.length, 8 * 7, 'it never took 5 s');
  for (const [status, what] of seen) assert.equal(status, 200, what);
});

test('metrics of any worker show all of them', async (t) => {
  const server = await bare(t, 2);
  const scrape = async () => {
    const answer = await fetch(`${server.url}/metrics`, { headers: { connection: 'close' } });
    return answer.text();
  };
  for (let n = 0; n < 40; n++) await (await fetch(`${server.url}/healthz`, { headers: { connection: 'close' } })).text();
  const healthz = (page) => [...page.matchAll(/^\w*requests_total\{worker="(\d)",.*healthz.*\} (\d+)$/gm)];
  const page = await scrape();
  assert.equal(healthz(page).reduce((sum, m) => sum + Number(m[2]), 0), 40, page);
  assert.equal(new Set(healthz(page).map((m) => m[1])).size, 2, page);
  const helps = [...page.matchAll(/^# HELP (\S+)/gm)].map((m) => m[1]);
  assert.equal(new Set(helps).size, helps.length, 'each metric is described once');
  assert.doesNotMatch(page, /^[a-z_]+ /m, 'every series names its worker');
  await server.stopClean();
});
