// Servers that fail in every way, behind the gateway: what is tried again, who
// stands in, and that each call has exactly one outcome.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { below, isAlive, metricsOf, slay } from '../lib/gateway.mjs';
import { client1, text } from '../lib/mcp_talk.mjs';
import { Moody, error, until } from '../lib/moody.mjs';

const ROUTE = 'mcp-orchestrator/route';

// --- one outcome each

test('killed in the middle of calls: what may be repeated is, all else is not known', async (t) => {
  const m = new Moody(t, { a: { tools: { set: { retries: 5 } } } });
  const { run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 3, 'its tools');
  m.mood('a', 'die');
  const unknown = await error(run('a_work', 1));
  assert.match(unknown.message, /a: .*not known whether the call was done/);
  assert.deepEqual(unknown.data, { server: 'a', outcome: 'unknown' });
  assert.equal(m.done('a').length, 1, 'it was not sent again');
  // A read is sent once more, and then is not known either.
  assert.match((await error(run('a_look', 2))).message, /not known/);
  assert.equal(m.done('a').length, 3);
  m.mood('a', 'die-once'); // of the first try
  assert.equal(text(await run('a_set', 3)), 'a set 3');
  assert.equal(m.done('a').filter((l) => l.startsWith('a set 3')).length, 2);
});

// Whichever of them the gateway sees first, nothing but the server's death
// happened to the call, and reading again does no harm.
test('a read of a server that is killed at that moment is always repeated', async (t) => {
  const m = new Moody(t, { a: {} });
  const { run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 3, 'its tools');
  const orders = [
    (kill, look) => (kill(), look()),
    (kill, look) => { const got = look(); kill(); return got; },
    async (kill, look) => { kill(); await new Promise(setImmediate); return look(); },
    async (kill, look) => { kill(); await sleep(1); return look(); },
  ];
  for (let i = 0; i < 16; i++) {
    m.mood('a', 'pid');
    const pid = Number(text(await run('a_look', 0)));
    m.mood('a', 'ok');
    const got = await orders[i % orders.length](() => slay(pid), () => run('a_look', i));
    assert.equal(text(got), `a look ${i}`);
  }
});

test('a fallback serves while a server is down, and says so', async (t) => {
  const m = new Moody(t, { a: { fallback: ['b'] }, b: {} });
  m.mood('a', 'ok');
  const { run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 6, 'their tools');
  assert.equal((await run('a_work', 0))._meta?.[ROUTE], undefined);
  m.mood('a', 'no-start');
  const [child] = below((await m.open(t)).pid);
  assert.equal(child, undefined, 'a second gateway starts nothing by itself');
  // It is lost, and cannot be started any more.
  m.mood('a', 'die');
  await error(run('a_work', 1));
  m.mood('a', 'no-start');
  const got = await run('a_work', 2);
  assert.equal(text(got), 'b work 2');
  assert.equal(got._meta[ROUTE].insteadOf, 'a');
  assert.deepEqual([got._meta[ROUTE].server, got._meta[ROUTE].tool], ['b', 'work']);
  assert.match(got._meta[ROUTE].why, /a: /);
  assert.ok(!m.done('b').some((l) => l.includes('work 1')), 'what may have been done is not done again');
});

test('the breaker opens, the fallback serves, the breaker closes', async (t) => {
  const m = new Moody(t, { a: { fallback: ['b'], timeoutMs: 60_000 }, b: {} });
  const { run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 6, 'their tools');
  m.mood('a', 'die');
  let instead;
  for (let i = 0; i < 20 && !instead; i++) {
    const got = await run('a_work', i).catch((e) => e);
    if (got instanceof Error) assert.match(got.message, /not known/);
    else instead = got;
  }
  assert.match(instead._meta[ROUTE].why, /again and again/);
  const tried = m.done('a').length;
  for (let i = 0; i < 5; i++) assert.equal(text(await run('a_work', `x${i}`)), `b work x${i}`);
  assert.equal(m.done('a').length, tried, 'it is left alone');
  m.mood('a', 'ok');
  await until(async () => text(await run('a_work', 'again')) === 'a work again', 'closed again');
  assert.equal((await run('a_work', 'end'))._meta?.[ROUTE], undefined);
});

test('hung and slow: one outcome each, and the others do not wait', async (t) => {
  const m = new Moody(t, { a: { timeoutMs: 12_000 }, b: {} }); // slow: 700
  const { run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 6, 'their tools');
  m.mood('a', 'slow');
  const slow = run('a_work', 'slow');
  assert.equal(text(await run('b_work', 1)), 'b work 1');
  assert.equal(text(await slow), 'a work slow');
  m.mood('a', 'hang');
  const hung = error(run('a_look', 'hung'));
  assert.equal(text(await run('b_work', 2)), 'b work 2');
  assert.match((await hung).message, /no sign of life.*not known/);
  assert.equal(m.done('a').filter((l) => l.includes('hung')).length, 1, 'its time was over');
});

test('flapping under load: each call has one outcome, and nothing is done twice', async (t) => {
  const m = new Moody(t, { a: { fallback: ['b'] }, b: {} });
  const { client, run, tools, pid } = await m.open(t);
  await until(async () => (await tools()).length === 6, 'their tools');
  const outcomes = { a: 0, b: 0, unknown: 0, other: [] };
  const one = async (n) => {
    const got = await run('a_work', n).catch((e) => e);
    if (got instanceof Error && /not known/.test(got.message)) outcomes.unknown++;
    else if (got instanceof Error) outcomes.other.push(got.message);
    else if (text(got) === `a work ${n}`) outcomes.a++;
    else if (text(got) === `b work ${n}`) outcomes.b++;
    else outcomes.other.push(text(got));
  };
  const words = (p) => {
    try {
      return readFileSync(`/proc/${p}/cmdline`, 'utf8');
    } catch {
      return ''; // it has just ended
    }
  };
  let n = 0;
  for (let round = 0; round < 6; round++) {
    const some = Array.from({ length: 20 }, () => one(n++));
    const [child] = below(pid).filter((p) => words(p).includes('a.mood'));
    await sleep(5);
    if (child) slay(child);
    await Promise.all(some);
  }
  assert.deepEqual(outcomes.other, []);
  assert.equal(outcomes.a + outcomes.b + outcomes.unknown, n);
  const done = [...m.done('a'), ...m.done('b')].map((l) => l.split(' ')[2]);
  assert.equal(new Set(done).size, done.length, 'nothing twice');
  const children = below(pid);
  assert.ok(children.length > 0);
  process.kill(pid, 'SIGKILL');
  await until(() => !children.some(isAlive), 'the end of all children');
  await client.close();
});

// --- who is next, and how much there may be

test('a shared server with a limit: nobody waits behind all of another\'s calls', async (t) => {
  const m = new Moody(t, { a: { maxCalls: 1 } });
  const serve = await m.place.serve('--workers', '1'); // each has a line of its own
  t.after(() => serve.stop());
  const connect = async () => {
    const it = client1();
    await it.client.connect(new Http1(serve.url));
    t.after(() => it.client.close());
    return (n) => it.call({ name: 'a_work', arguments: { n } });
  };
  const [ann, bob] = [await connect(), await connect()];
  await until(async () => text(await ann('first').catch(() => ({ content: [{}] }))) === 'a work first', 'its tool');
  m.mood('a', 'wait');
  const some = Array.from({ length: 4 }, (_, i) => ann(i));
  await until(() => m.done('a').length === 2, 'the first of hers');
  some.push(bob('b'));
  await until(async () => /^mo_gateway_queue\{server="a"\} 4$/m.test(await metricsOf(serve.url)), 'four that wait');
  m.mood('a', 'ok');
  await Promise.all(some);
  assert.equal(m.done('a')[2], 'a work b ok', m.done('a').join(', '));
  assert.equal(m.done('a').length, 6);
});

test('a plain command with a limit of memory', async (t) => {
  const m = new Moody(t, { a: { memoryMb: 700 }, b: {} });
  const { run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 6, 'their tools');
  assert.equal(text(await run('a_work', 1)), 'a work 1');
  m.mood('a', 'eat');
  assert.match((await error(run('a_work', 2))).message, /a: the server ended/);
  m.mood('a', 'ok');
  assert.equal(text(await run('a_work', 3)), 'a work 3');
  assert.equal(text(await run('b_work', 4)), 'b work 4');
});
