// F4: Redis restarts, loads, is full, is a replica, breaks off in the middle
// of a reply, stalls, answers byte by byte, is emptied. The store says "not
// available", never nothing; what it acknowledged is there; what it did not is
// not made up; and it comes back by itself. The oracle is redis-cli.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';

import { flaky } from '../lib/flaky.mjs';
import { missing, redis, store, until } from '../lib/redis.mjs';

const AOF = ['--appendonly', 'yes', '--appendfsync', 'always'];
const url = (proxy) => `redis://127.0.0.1:${proxy.port}`;

// Run body with a server, a proxy before it and a store behind that.
async function setUp(t, { args = AOF, deadline, leaks } = {}) {
  const server = await redis({ args });
  const proxy = await flaky({ host: '127.0.0.1', port: server.port });
  const s = await store(url(proxy), { deadline, leaks });
  t.after(async () => {
    proxy.ways.stall = false;
    const code = await s.close();
    await proxy.close();
    await server.stop();
    assert.equal(code, 0, 'the store ended well');
  });
  await until('there is a session', async () => (await s.ask('session', 's')).ok);
  return { server, proxy, s };
}

const worksAgain = (s) =>
  until('the store works again', async () => (await s.ask('entry', 's', 'again')).ok);

async function docs(s) {
  const { ok, rest } = await s.ask('history', 's');
  assert.ok(ok);
  return rest.split(' ').slice(1);
}

test('restart: what was acknowledged is there, the rest is an error', { skip: missing }, async (t) => {
  const { server, s } = await setUp(t, { leaks: true });
  const asked = [];
  for (let i = 0; i < 50; i++) asked.push(s.ask('entry', 's', `a${i}`));
  await server.kill();
  const answers = await Promise.all(asked);
  for (const a of answers) assert.match(a.word, /^(ok|unavailable)$/);
  assert.equal((await s.ask('entry', 's', 'away')).word, 'unavailable');
  assert.match((await s.ask('health')).rest, /^down /);
  await server.start();
  await worksAgain(s);
  assert.match((await s.ask('health')).rest, /^up [1-9]/);
  const there = await docs(s);
  answers.forEach((a, i) => a.ok && assert.ok(there.includes(`a${i}`), `a${i}`));
  assert.ok(!there.includes('away'), 'what failed in the queue never happens');
});

test('no approval is lost or spent twice across a restart', { skip: missing }, async (t) => {
  const { server, s } = await setUp(t);
  assert.ok((await s.ask('call', 's', 'c1')).ok);
  assert.ok((await s.ask('call', 's', 'c2')).ok);
  assert.ok((await s.ask('run', 's', 'c1')).ok);
  await server.kill();
  assert.equal((await s.ask('run', 's', 'c2')).word, 'unavailable');
  await server.start();
  await worksAgain(s);
  assert.equal((await s.ask('run', 's', 'c1')).word, 'policy');
  assert.ok((await s.ask('run', 's', 'c2')).ok);
  assert.equal((await s.ask('run', 's', 'c2')).word, 'policy');
});

// Replies that Redis gives instead of the work.
for (const [name, on, off, says] of [
  ['-OOM', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0'], /OOM/],
  ['-READONLY', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE'], /READONLY|redis/],
  ['-NOREPLICAS', ['CONFIG', 'SET', 'min-replicas-to-write', '3'],
    ['CONFIG', 'SET', 'min-replicas-to-write', '0'], /NOREPLICAS/],
])
  test(name, { skip: missing }, async (t) => {
    const { server, s } = await setUp(t);
    assert.ok((await s.ask('entry', 's', 'before')).ok);
    assert.ok((await s.ask('call', 's', 'c')).ok);
    server.cli(...on);
    for (const [what, ...args] of [['entry', 's', 'x'], ['run', 's', 'c']]) {
      const a = await s.ask(what, ...args);
      assert.equal(a.word, 'unavailable', `${what}: ${a.rest}`);
      assert.match(a.rest, says);
    }
    server.cli(...off);
    await worksAgain(s);
    const there = await docs(s);
    assert.deepEqual(there, ['before', ...there.slice(1).map(() => 'again')]);
    assert.equal((await s.ask('state', 's', 'c')).rest, '1 0', 'still pending');
  });

test('-LOADING: waits, then says so', { skip: missing }, async (t) => {
  const { server, s } = await setUp(t, { deadline: 1000 });
  // enough to load, slowly: loading stops for a while after each key
  server.cli('EVAL', "for i = 1, 20000 do redis.call('SET', 'filler' .. i, '') end", '0');
  await server.kill();
  const loading = redis({ port: server.port, dir: server.dir,
    args: [...AOF, '--key-load-delay', '500', '--loading-process-events-interval-bytes', '1024'] });
  t.after(async () => (await loading).kill());
  const again = await loading;
  await until('it is loading', () => /LOADING/.test(again.cli('GET', 'x')));
  await until('the store has seen it', async () => /LOADING/.test((await s.ask('health')).rest));
  await until('it says so', async () => { // with no word of Redis in time, it says that
    const a = await s.ask('entry', 's', 'x');
    assert.equal(a.word, 'unavailable');
    return /LOADING/.test(a.rest);
  });
  again.cli('CONFIG', 'SET', 'key-load-delay', '0');
  await worksAgain(s);
});

test('-BUSY: a script that does not end', { skip: missing }, async (t) => {
  const { server, s } = await setUp(t, { deadline: 1000 });
  server.cli('CONFIG', 'SET', 'busy-reply-threshold', '50');
  const busy = spawn('redis-cli', ['-p', String(server.port), 'EVAL', 'while true do end', '0'], { stdio: 'ignore' });
  t.after(() => busy.kill('SIGKILL'));
  await until('it is busy', () => /BUSY/.test(server.cli('GET', 'x')));
  const a = await s.ask('entry', 's', 'x');
  assert.equal(a.word, 'unavailable');
  assert.match(a.rest, /BUSY|no answer/);
  server.cli('SCRIPT', 'KILL');
  await worksAgain(s);
});

test('broken off in the middle of a reply', { skip: missing }, async (t) => {
  const { proxy, s } = await setUp(t, { leaks: true });
  for (let i = 0; i < 20; i++) assert.ok((await s.ask('entry', 's', `e${i}`)).ok);
  // a reading is repeated on the next connection; a write is not
  for (const limit of [700, 801, 900]) {
    proxy.ways.limit = limit;
    proxy.reset();
    const r = s.ask('history', 's');
    await until('it has tried', () => proxy.connections > 3);
    proxy.ways.limit = 0;
    const a = await r;
    assert.match(a.word, /^(ok|unavailable)$/);
    if (a.ok) assert.match(a.rest, /^20 e0 /);
    await until('it is up', async () => (await s.ask('who', 'x')).ok);
  }
  proxy.ways.stall = true;
  const write = s.ask('entry', 's', 'unknown');
  await new Promise((done) => setTimeout(done, 50));
  proxy.reset();
  assert.equal((await write).word, 'unavailable');
  proxy.ways.stall = false;
  await worksAgain(s);
});

test('answers byte by byte', { skip: missing }, async (t) => {
  const { proxy, s } = await setUp(t, { deadline: 30_000 });
  for (let i = 0; i < 20; i++) assert.ok((await s.ask('entry', 's', `e${i}`)).ok);
  proxy.ways.slice = 1;
  assert.match((await s.ask('history', 's')).rest, /^20 e0 .* e19$/);
  const all = await Promise.all([...Array(20).keys()].map((i) => s.ask('entry', 's', `s${i}`)));
  assert.deepEqual(all.map((a) => a.rest), [...Array(20).keys()].map((i) => String(21 + i)));
});

test('a stall is over after the deadline, not after the stall', { skip: missing }, async (t) => {
  const { proxy, s } = await setUp(t, { deadline: 700 });
  proxy.ways.stall = true;
  const [w, r] = await Promise.all([s.ask('entry', 's', 'x'), s.ask('history', 's')]);
  assert.equal(w.word, 'unavailable');
  assert.equal(r.word, 'unavailable');
  proxy.ways.stall = false;
  await worksAgain(s);
});

test('emptied: a session that vanished does not come back', { skip: missing }, async (t) => {
  const { server, s } = await setUp(t);
  const fence = (await s.ask('take', 's', 0)).rest;
  assert.ok((await s.ask('entry', 's', 'x', fence)).ok);
  assert.ok((await s.ask('call', 's', 'c')).ok);
  assert.equal(server.cli('FLUSHALL'), 'OK');
  assert.equal((await s.ask('entry', 's', 'y', fence)).word, 'policy');
  assert.equal((await s.ask('entry', 's', 'y')).word, 'not_found');
  assert.equal((await s.ask('run', 's', 'c')).word, 'not_found');
  await until('the lease is lost', () => s.lost.includes('s'));
  assert.equal(server.cli('KEYS', 'mcp:*{s}*'), '', 'nothing was made again');
  const next = await s.ask('take', 's', 0);
  assert.ok(BigInt(next.rest) > BigInt(fence), 'fences grow all the same');
});

test('failover to an empty server', { skip: missing }, async (t) => {
  const { proxy, s } = await setUp(t);
  const other = await redis();
  t.after(() => other.stop());
  const fence = (await s.ask('take', 's', 0)).rest;
  proxy.target = { host: '127.0.0.1', port: other.port };
  proxy.reset();
  await until('the store is up', async () => (await s.ask('who', 'other')).ok);
  assert.equal((await s.ask('entry', 's', 'y', fence)).word, 'policy');
  assert.equal((await s.ask('entry', 's', 'y')).word, 'not_found');
  assert.equal(other.cli('KEYS', 'mcp:*'), 'mcp:marks', 'only the version is recorded');
  assert.equal(other.cli('HKEYS', 'mcp:marks'), 'format');
  assert.ok((await s.ask('session', 's')).ok, 'a new one may begin');
});

test('scripts that were flushed are sent again', { skip: missing }, async (t) => {
  const { server, s } = await setUp(t);
  server.cli('SCRIPT', 'FLUSH');
  assert.ok((await s.ask('entry', 's', 'x')).ok);
  assert.deepEqual(await docs(s), ['x']);
});

test('nobody there: told within the deadline, and no storm of dials', { skip: missing }, async (t) => {
  const { proxy, s } = await setUp(t, { deadline: 500 });
  proxy.ways.refuse = true;
  proxy.reset();
  const before = proxy.connections, began = Date.now();
  const all = await Promise.all([...Array(100)].map(() => s.ask('entry', 's', 'x')));
  assert.ok(all.every((a) => a.word === 'unavailable'));
  proxy.ways.refuse = false;
  await worksAgain(s);
  const most = 2 + (Date.now() - began) / 500; // one that is not answered in time is made again
  assert.ok(proxy.connections - before <= most, `${proxy.connections - before} of ${most}`);
});
