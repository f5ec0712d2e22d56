// What the configuration says of single tools and servers, what becomes of
// long results, and what the router says of all that.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { below, bin } from '../lib/gateway.mjs';
import { client1, text } from '../lib/mcp_talk.mjs';
import { Moody, error, until } from '../lib/moody.mjs';

const RESULT = 'mcp-orchestrator/result';
const search = { gateway: { expose: 'search' } };
const exec = promisify(execFile);

test('tools under other names and words, hidden, with other times', async (t) => {
  const m = new Moody(t, {
    a: {
      tools: {
        work: { rename: 'labour', describe: 'Paint the fence', timeoutMs: 6000 },
        set: { hide: true },
      },
    },
  }, { gateway: { prefix: 'never' } });
  const { client, run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 2, 'its tools');
  const listed = (await client.listTools()).tools;
  assert.deepEqual(listed.map((x) => [x.name, x.description]),
    [['labour', 'Paint the fence'], ['look', 'Look at the work']]);
  assert.equal(text(await run('labour', 1)), 'a work 1');
  for (const gone of ['work', 'set', 'a_set'])
    assert.match((await error(run(gone, 2))).message, /no such tool/);
  m.mood('a', 'hang');
  const began = Date.now();
  assert.match((await error(run('labour', 3))).message, /no sign of life/);
  assert.ok(Date.now() - began < 30_000, 'not the time of the server');
});

test('the four know the same', async (t) => {
  const m = new Moody(t, {
    a: {
      categories: ['Garden', 'home'], tags: ['paint'],
      tools: { work: { rename: 'labour', describe: 'Paint the fence' }, set: { hide: true } },
    },
    b: { categories: ['office'], description: 'letters and numbers' },
  }, search);
  const { call } = await m.open(t);
  const ask = async (name, args) => {
    const got = await call({ name, arguments: args });
    return got.structuredContent ?? JSON.parse(text(got));
  };
  const found = await ask('find_tool', { query: 'paint the fence' });
  assert.deepEqual([found.results[0].server, found.results[0].tool], ['a', 'labour']);
  assert.ok(!found.results.some((r) => r.server === 'a' && r.tool === 'set'));
  const ran = await call({ name: 'execute', arguments: { server: 'a', tool: 'labour', params: { n: 1 } } });
  assert.equal(text(ran), 'a work 1');
  assert.equal(ran._meta['mcp-orchestrator/route'].tool, 'labour');
  for (const tool of ['set', 'work']) {
    const no = await call({ name: 'execute', arguments: { server: 'a', tool, params: {} } });
    assert.equal(no.isError, true);
    assert.match(text(no), /no such tool/);
  }
  for (const [category, names] of [['garden', ['a']], ['PAINT', ['a']], ['office', ['b']], ['numbers', ['b']], ['sea', []]])
    assert.deepEqual((await ask('list_capabilities', { category })).servers.map((s) => s.server), names);
  assert.deepEqual((await ask('list_capabilities', { server: 'a' })).servers[0].categories, ['Garden', 'home', 'paint']);
  const about = await ask('explain_tool', { server: 'a', tool: 'labour' });
  assert.equal(about.description, 'Paint the fence');
  assert.equal(about.latency.calls, 1);
  assert.ok(about.latency.p50Ms > 0 && about.latency.p50Ms <= about.latency.p95Ms);
});

test('a changed setting is taken over, and restarts nobody', async (t) => {
  const m = new Moody(t, { a: {} });
  const { run, tools, pid } = await m.open(t);
  await until(async () => (await tools()).length === 3, 'its tools');
  await run('a_work', 1);
  const before = below(pid);
  m.write({ a: { tools: { work: { rename: 'toil' } } } }, { gateway: { prefix: 'always' } });
  process.kill(pid, 'SIGHUP');
  await until(async () => (await tools()).includes('a_toil'), 'its new name');
  assert.equal(text(await run('a_toil', 2)), 'a work 2');
  assert.deepEqual(below(pid), before);
});

// --- long results

/** All of a kept result, piece by piece. */
async function readAll(read, handle) {
  let all = '';
  for (let offset = 0; offset !== null;) {
    const got = await read({ handle, offset, limit: 7001 });
    assert.ok(Buffer.byteLength(text(got)) <= 7001);
    all += text(got);
    offset = got._meta[RESULT].next;
  }
  return all;
}

test('long results of execute are cut, and can be read on', async (t) => {
  const m = new Moody(t, { a: {} }, search);
  const { call, tools } = await m.open(t);
  const work = { name: 'execute', arguments: { server: 'a', tool: 'work', params: {} } };
  assert.equal(text(await call(work)), 'a work ');
  m.mood('a', 'big:200001');
  const cut = await call(work);
  const [kept] = cut._meta[RESULT];
  assert.equal(kept.bytes, 200_000);
  assert.ok(kept.shown <= 65_536 && kept.shown % 2 === 0, 'no half of a character');
  assert.match(text(cut), /^é+\n\[cut: 65536 of 200000 bytes; the rest by execute \{"tool":"read_result"/);
  const read = (params) => call({ name: 'execute', arguments: { tool: 'read_result', params } });
  assert.equal(await readAll(read, kept.handle), 'é'.repeat(100_000));
  assert.deepEqual((await tools()).length, 4, 'four are enough');
  assert.equal((await read({ handle: 'nonsense' })).isError, true);
});

test('with all tools shown nothing is cut, unless it is asked for', async (t) => {
  const m = new Moody(t, { a: {}, b: { tools: { work: { resultBytes: 1000 } } } });
  const serve = await m.place.serve();
  t.after(() => serve.stop());
  const clients = [];
  for (let i = 0; i < 2; i++) {
    const it = client1();
    await it.client.connect(new Http1(serve.url));
    t.after(() => it.client.close());
    clients.push(it);
  }
  const [one, other] = clients;
  await until(async () => (await one.client.listTools()).tools.length === 7, 'their tools');
  assert.equal((await one.client.listTools()).tools[0].name, 'read_result');
  for (const name of ['a', 'b']) m.mood(name, 'big:5000');
  const work = (name) => one.call({ name: `${name}_work`, arguments: {} });
  assert.equal(text(await work('a')).length, 2500);
  const { handle } = (await work('b'))._meta[RESULT][0];
  const read = (it) => (args) => it.call({ name: 'read_result', arguments: args });
  assert.equal(await readAll(read(one), handle), 'é'.repeat(2500));
  const no = await read(other)({ handle });
  assert.equal(no.isError, true, 'it is not the other one\'s');
});

// --- what the router says

test('find and /api/route say what fits, and what does not and why', async (t) => {
  const lock = createServer((req, res) => {
    res.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
  }).listen(0, '127.0.0.1');
  await once(lock, 'listening');
  t.after(() => lock.close());
  const m = new Moody(t, {
    a: { description: 'paints fences', tools: { set: { describe: 'Weld the pipes', hide: true } } },
    off: { description: 'bakes bread in an oven', enabled: false },
    sick: { description: 'flies to the moon in a rocket', tools: { work: { describe: 'Fly to the moon in a rocket' } } },
    locked: { command: undefined, args: undefined, url: `http://127.0.0.1:${lock.address().port}/mcp`,
      description: 'signs contracts with a notary', oauth: { enabled: false } },
  });
  const find = async (...args) => JSON.parse((await exec(
    bin, ['find', '--json', '-c', m.place.file, ...args], { env: m.place.env })).stdout);
  const why = (got, server) => got.ruledOut.find((r) => r.server === server)?.reason;

  const blank = await find('paint a fence');
  assert.deepEqual(blank.results, [], 'nothing is known, and nothing was started');
  assert.equal(why(blank, 'a'), 'unlisted');
  assert.deepEqual(m.place.cached(), []);
  const [first] = (await find('--refresh', 'look at the work of paint')).results;
  assert.deepEqual([first.server, first.tool], ['a', 'look']);
  assert.ok(m.place.cached().length > 0);
  assert.equal(why(await find('weld the pipes'), 'a'), 'hidden');
  assert.equal(why(await find('bake', 'bread', 'in an oven'), 'off'), 'disabled');
  assert.equal(why(await find('sign a contract with a notary'), 'locked'), 'unlisted');
  const pins = join(m.place.state, 'pins.json'); // of one who saw it otherwise
  writeFileSync(pins, JSON.stringify({ version: 1, tools: [{ server: 'a', tool: 'look', digest: 'another' }] }), { mode: 0o600 });
  assert.equal(why(await find('look at the work of paint'), 'a'), 'quarantined');
  rmSync(pins);
  assert.equal((await find('--limit', '1', 'the work')).results.length, 1);
  assert.deepEqual((await find('--threshold', '1', 'xyzzy')).results, []);
  const people = (await exec(bin, ['find', '-c', m.place.file, 'bake bread in an oven'], { env: m.place.env })).stdout;
  assert.match(people, /matching, but not usable:\n {2}0\.\d\d {2}off\n .*mcp enable off|matching, but not usable:\n {2}1\.00 {2}off/);

  const serve = await m.place.serve();
  t.after(() => serve.stop());
  const route = async (query) => {
    const res = await fetch(new URL(`/api/route?${new URLSearchParams(query)}`, serve.url), { headers: { connection: 'close' } });
    return { status: res.status, body: await res.json() };
  };
  assert.deepEqual((await route({ q: 'look at the work of paint', limit: 2 })).body,
    await find('--limit', '2', 'look at the work of paint'));
  for (const bad of [{}, { q: '' }, { q: 'x', limit: 51 }, { q: 'x', threshold: 2 }, { q: 'x', limit: 'many' }])
    assert.equal((await route(bad)).status, 400, JSON.stringify(bad));
  const it = client1();
  await it.client.connect(new Http1(serve.url));
  t.after(() => it.client.close());
  assert.equal((await route({ q: 'fly to the moon in a rocket' })).body.results[0].server, 'sick');
  m.mood('sick', 'die');
  for (let i = 0; i < 6; i++) await it.call({ name: 'sick_work', arguments: {} }).catch(() => {});
  let broken; // in the worker of that client
  await until(async () => {
    broken = (await route({ q: 'fly to the moon in a rocket' })).body;
    return why(broken, 'sick') === 'circuit-open';
  });
  assert.ok(!broken.results.some((r) => r.server === 'sick'));

  // Who looked, and what was found, stands in the audit log.
  const rows = () => readFileSync(join(m.place.state, 'audit.jsonl'), 'utf8').split('\n').slice(0, -1)
    .map((l) => JSON.parse(l).what).filter((w) => w?.kind === 'route');
  const last = () => rows().findLast((r) => r.via === '/api/route');
  await until(() => last()?.ruledOut.some((x) => x.reason === 'circuit-open'));
  assert.deepEqual([last().words, last().acted, last().outcome],
    ['fly to the moon in a rocket', false, 'looked']);
  assert.match(last().who, /^127\.0\.0\.1:\d+$|^\[?::/);
  const byHand = rows().find((r) => r.via === 'find' && r.words === 'look at the work of paint');
  assert.equal(byHand.who, `uid:${process.getuid()}`);
  assert.equal(byHand.outcome, 'looked');
  assert.deepEqual([byHand.candidates[0].server, byHand.candidates[0].tool], ['a', 'look']);
  assert.ok(byHand.candidates[0].confidence > 0 && byHand.candidates.length <= 3);
  const { stdout } = await exec(bin, ['audit', 'verify', '-c', m.place.file], { env: m.place.env });
  assert.match(stdout, /^ok: /);
});

test('choices are learnt, and forgotten when told', async (t) => {
  const words = 'look at the work';
  const m = new Moody(t, { a: {}, b: {} }, search);
  const find = async (it) => (await it.call({ name: 'find_tool', arguments: { query: words } }))
    .structuredContent.results.map((r) => `${r.server}/${r.tool}`);
  const open = await m.open(t);
  const before = await find(open);
  const [, second] = before; // the same tool, elsewhere
  const [server, tool] = second.split('/');
  for (let i = 0; i < 3; i++) {
    await find(open);
    await open.call({ name: 'execute', arguments: { server, tool, params: {} } });
  }
  assert.equal((await find(open))[0], second);
  await open.client.close();
  const again = await m.open(t);
  assert.equal((await find(again))[0], second, 'also the next time');
  await exec(bin, ['find', '--forget', '-c', m.place.file], { env: m.place.env });
  assert.deepEqual(await find(again), before);
});

// --- what is not left, and not said

test('an error of a server does not carry its secrets on', async (t) => {
  const m = new Moody(t, { a: { env: { API_TOKEN: 'sk-planted-secret-1' } } });
  const { run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 3, 'its tools');
  m.mood('a', 'error');
  const said = await error(run('a_work', 1));
  assert.match(said.message, /a says no, \[secret\]/);
});

test('what is remembered of a server goes with it', async (t) => {
  const m = new Moody(t, { a: {}, b: {}, c: {} });
  const { tools, pid } = await m.open(t);
  await until(async () => (await tools()).length === 9 && m.place.cached().length === 3, 'their lists');
  const { a, b } = m.servers;
  m.place.write({ a, b: { ...b, enabled: false } }, { gateway: { prefix: 'always' } });
  process.kill(pid, 'SIGHUP');
  await until(async () => (await tools()).length === 3, 'one is left');
  assert.equal(m.place.cached().length, 2, 'that of the one that is only off stays');
  await exec(bin, ['mcp', 'remove', 'b', '-c', m.place.file], { env: m.place.env });
  assert.equal(m.place.cached().length, 1);
});
