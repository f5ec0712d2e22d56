// Replicas on different networks: one runs in a network namespace of its own,
// with one cable to Redis and one to the other replica. A cable that is pulled
// tells nobody: no packet comes, and none says so.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { fixtureServer } from '../lib/gateway.mjs';
import { freePort } from '../lib/port.mjs';
import { missing as noRedis } from '../lib/redis.mjs';
import { Replicas, messages, told } from './replicas_kit.mjs';
import { BIN, until, within } from './server.mjs';

const env = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };
const ip = (line) => {
  const r = spawnSync('ip', line.split(' '), { encoding: 'utf8' });
  assert.equal(r.status, 0, `ip ${line}: ${r.stderr}`);
};
const NAME = `mofar${process.pid % 100_000}`;
const PROBE = `${NAME}p`;

/** Whether namespaces and cables can be made here. */
const skip = noRedis || (() => {
  if (process.getuid() !== 0) return 'needs root, for a network namespace';
  const ok = spawnSync('ip', ['netns', 'add', PROBE]).status === 0 && spawnSync('ip', ['link', 'add', PROBE, 'type', 'veth', 'peer', 'name', `${PROBE}q`]).status === 0;
  spawnSync('ip', ['link', 'del', PROBE]);
  spawnSync('ip', ['netns', 'del', PROBE]);
  return ok ? false : 'needs network namespaces (ip netns) and veth';
})();

/** A namespace with two cables: a to Redis, b to the other replica. */
class Machine {
  async make() {
    const n = process.pid % 200;
    this.dir = await mkdtemp(join(tmpdir(), 'mo-netns-'));
    this.nets = { a: `10.89.${n}`, b: `10.90.${n}` };
    ip(`netns add ${NAME}`);
    ip(`-n ${NAME} link set lo up`);
    for (const [end, prefix] of Object.entries(this.nets)) {
      ip(`link add ${NAME}${end} type veth peer name cable-${end} netns ${NAME}`);
      ip(`addr add ${prefix}.1/30 dev ${NAME}${end}`);
      ip(`link set ${NAME}${end} up`);
      ip(`-n ${NAME} addr add ${prefix}.2/30 dev cable-${end}`);
      ip(`-n ${NAME} link set dev cable-${end} up`);
    }
    await this.console();
    this.made = true;
  }

  /** Its port on this side, by a way that no cable is part of. */
  async console() {
    this.port = await freePort();
    const path = join(this.dir, 'console');
    const code = `const net = require('node:net');
      net.createServer((s) => { const t = net.connect(${this.port}, '127.0.0.1'); s.pipe(t).pipe(s); s.on('error', () => t.destroy()); t.on('error', () => s.destroy()); })
        .listen(${JSON.stringify(path)}, () => console.log('ready'));`;
    this.inside = spawn('nsenter', [`--net=/run/netns/${NAME}`, process.execPath, '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
    await within(once(this.inside.stdout, 'data'), 'the console');
    this.front = net.createServer((s) => {
      const t = net.connect(path);
      s.pipe(t).pipe(s);
      s.on('error', () => t.destroy());
      t.on('error', () => s.destroy());
    }).listen(this.port, '127.0.0.1');
    await once(this.front, 'listening');
    // The program, with this port: replicas_kit gives it "serve --port 0 ...".
    this.bin = join(this.dir, 'program');
    await writeFile(this.bin, `#!/bin/sh\nshift 3\nexec nsenter --net=/run/netns/${NAME} ${BIN} serve --port ${this.port} "$@"\n`);
    await chmod(this.bin, 0o755);
  }

  cable(end, state) {
    ip(`link set ${NAME}${end} ${state}`);
  }

  async drop() {
    this.inside?.kill();
    this.front?.close();
    spawnSync('ip', ['netns', 'del', NAME]);
    for (const end of 'ab') spawnSync('ip', ['link', 'del', `${NAME}${end}`]);
    if (this.dir) await rm(this.dir, { recursive: true, force: true });
  }
}

/** Two replicas, the first one on another network; fn gets them. */
async function apart(fn, how = {}) {
  const m = new Machine();
  let all;
  try {
    await m.make();
    const cluster = (prefix) => ({ listen: `${prefix}:0`, key: 'a key that both of them have, 0123456789' });
    all = await Replicas.start({
      store: 'redis', far: true, env, ...how,
      redisArgs: ['--bind', `127.0.0.1 ${m.nets.a}.1`, '--protected-mode', 'no'],
      own: [
        { bin: m.bin, config: ({ redis }) => ({ store: { url: `redis://${m.nets.a}.1:${redis.port}/0` }, cluster: cluster(`${m.nets.b}.2`) }) },
        { config: () => ({ cluster: cluster(`${m.nets.b}.1`) }) },
      ],
    });
    all.model.next = () => ({ text: 'hello' });
    await fn(all, m);
  } finally {
    for (const end of m.made ? 'ab' : '') m.cable(end, 'up');
    try {
      await all?.stop();
    } finally {
      await m.drop();
    }
  }
}

test('a conversation across networks, whose other half vanishes and comes back', { skip }, () => apart(async (all, m) => {
  const { here, there } = await all.pair();
  // The model is out of reach of the first machine: the turn fails there.
  assert.equal((await there.say('anybody?')).ok, true, 'the far machine has it');
  await here.event('session:entry');
  await until(() => there.count('session:entry') > 0, 'the same on this side');
  assert.deepEqual(told(there)[0], told(here)[0]);

  const before = there.count('session:history');
  const began = Date.now();
  for (const end of 'ab') m.cable(end, 'down');
  const said = there.socket.emitWithAck('message', 'still there?');
  await there.event('session:history', before + 1, 60_000);
  assert.equal((await within(said, 'the answer', 30_000)).ok, true, 'the next holder took it');
  const took = Date.now() - began;
  await until(async () => (await messages(all.v[1], there.session)).some((x) => x.role === 'assistant'), 'an answer of the model, here', 40_000);
  assert.equal((await messages(all.v[1], there.session)).filter((x) => JSON.stringify(x).includes('still there?')).length, 1, 'once');
  assert.equal(there.count('(disconnect)'), 0);
  assert.ok(took < 45_000, `${took} ms`);

  for (const end of 'ab') m.cable(end, 'up');
  await here.event('session:history', 2, 60_000);
  const answers = here.count('agent:response');
  assert.equal((await here.say('I am back')).ok, true);
  await here.event('agent:response', answers + 1, 40_000);
  assert.equal((await messages(all.v[1], there.session)).filter((x) => JSON.stringify(x).includes('I am back')).length, 1);
}));

test('a holder that only its peers cannot reach keeps the conversation', { skip }, () => apart(async (all, m) => {
  const { here, there } = await all.pair();
  m.cable('b', 'down');
  const [error] = await there.event('(disconnect)', 1, 90_000).then(() => there.events.filter(([e]) => /error/.test(e)).at(-1)?.slice(1) ?? [{}]);
  assert.match(JSON.stringify(error), /cannot be reached/, JSON.stringify(there.events.slice(-4)));
  assert.equal(here.count('session:closed'), 0);
  assert.equal(here.count('session:history'), 1, 'it stayed where it is');
  m.cable('b', 'up');
  const again = all.v[1].tab({ session: here.session });
  await again.ready();
}));

test('an MCP session whose machine vanishes while a call runs', { skip }, () => apart(async (all, m) => {
  for (const r of all.v) r.server.fresh.children += 2; // the MCP server, and its guard
  const ask = async (n, id, body) => {
    const answer = await fetch(`http://127.0.0.1:${all.v[n].server.port}/mcp`, {
      method: 'POST',
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...(id && { 'mcp-session-id': id }) },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    });
    return { status: answer.status, id: answer.headers.get('mcp-session-id'), text: answer.text() };
  };
  const begin = async () => (await ask(0, undefined, { id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } } })).id;
  let id;
  await until(async () => { id = await begin(); return id.length > 60; }, 'the key of ids');
  await ask(1, id, { method: 'notifications/initialized' });
  const list = await ask(1, id, { id: 2, method: 'tools/list' });
  assert.equal(list.status, 200);
  assert.match(await list.text, /"never"/, 'of the far machine');
  const running = ask(1, id, { id: 3, method: 'tools/call', params: { name: 'echo', arguments: { message: 'x' } } }).then(({ text }) => text);
  await until(async () => (await all.v[1].get('/api/approvals')).body.approvals.length === 1, 'the call in the list of this side');
  for (const end of 'ab') m.cable(end, 'down');
  assert.match(await within(running, 'the end of the call', 30_000), /has ended; the request may have had an effect/);
  // While its lease runs, requests wait; then the session goes on here.
  const next = await within(ask(1, id, { id: 4, method: 'tools/list' }), 'the next request', 60_000);
  assert.equal(next.status, 200);
  assert.match(await next.text, /"never"/);
  // The list of pending calls does without it.
  const began = Date.now();
  assert.equal((await all.v[1].get('/api/approvals')).status, 200);
  assert.ok(Date.now() - began < 10_000);
}, { config: { mcpServers: { fixture: fixtureServer() }, approvals: { timeoutSeconds: 600, rules: [{ tool: 'echo', action: 'ask' }] } } }));
