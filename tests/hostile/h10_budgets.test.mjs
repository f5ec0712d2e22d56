// H10: a person looks for a way around their budget: more sessions, other
// headers, views, batches, cancelled and parallel calls, `execute` instead of
// the tool, a fallback server, a conversation, a restart. Whatever is tried, no
// more calls run than the limit allows; and nobody can use up the budget of
// somebody else.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { TOKENS, as, client, over, place, ran, rows } from '../lib/budgets.mjs';
import { script } from '../lib/gateway.mjs';
import { missing as noRedis } from '../lib/redis.mjs';
import { until } from '../it/server.mjs';

const LIMIT = 5;
const budgets = { people: { bob: { callsPerMinute: LIMIT } } };
/** Calls so often; how many of them ran. */
async function exhaust(it, most = 3 * LIMIT, name = 'work') {
  let n = 0;
  for (let i = 0; i < most; i++) {
    const { result } = await it.call(name);
    n += result && !result.isError ? 1 : 0;
  }
  return n;
}

test('more sessions, other clients, other headers: one person, one count', async (t) => {
  const { servers: [s] } = await place(t, { budgets });
  const disguises = [
    {}, { name: 'another-client' }, { version: '2025-03-26' }, { headers: { 'user-agent': 'curl/8' } },
    { headers: { 'x-forwarded-for': '10.1.2.3', 'x-real-ip': '10.1.2.3', forwarded: 'for=10.1.2.3' } },
    { headers: { 'x-forwarded-user': 'ann', 'x-remote-user': 'ann', 'x-user': 'ann' } },
    { headers: { 'x-request-id': 'new', traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` } },
  ];
  let n = 0;
  for (const how of disguises) n += await exhaust(await client(s, 'bob', '/mcp', how), 2);
  assert.equal(n, LIMIT);
  assert.equal(ran(s), LIMIT);
});

test('the cookie of the page is the same person as the token', async (t) => {
  const { servers: [s] } = await place(t, { budgets });
  assert.equal(await exhaust(await client(s, 'bob'), LIMIT), LIMIT);
  const signedIn = await fetch(`${s.url}/sign-in`, { method: 'POST', redirect: 'manual',
    headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: `token=${TOKENS.bob}` });
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0];
  assert.ok(cookie, `${signedIn.status}`);
  const page = await client(s, 'bob', '/mcp', { headers: { authorization: '', cookie } });
  assert.equal(over(await page.call()), true);
});

test('views are no second budget, and /mcp is not one beside a view', async (t) => {
  const { servers: [s] } = await place(t, {
    budgets, views: { a: {}, b: { servers: ['work'] }, look: { readOnly: true }, four: { expose: 'search' } },
  });
  let n = 0;
  for (const path of ['/mcp/a', '/mcp/b', '/mcp', '/mcp/look', '/mcp/%61'])
    n += await exhaust(await client(s, 'bob', path), 3, 'look');
  const four = await client(s, 'bob', '/mcp/four');
  const answer = await four.call('execute', { tool: 'look', server: 'work', arguments: {} });
  assert.equal(over(answer), true, JSON.stringify(answer));
  assert.equal(n, LIMIT);
  assert.equal(ran(s), LIMIT);
});

test('the four tools and the tool itself share the count', async (t) => {
  const { servers: [s] } = await place(t, { budgets, views: { four: { expose: 'search' } } });
  const four = await client(s, 'bob', '/mcp/four');
  for (let i = 0; i < 3; i++) {
    const said = await four.call('execute', { tool: 'work', arguments: {} });
    assert.equal(over(said), false, JSON.stringify(said));
  }
  assert.equal(await exhaust(await client(s, 'bob'), 4), LIMIT - 3);
  // what runs nothing is not counted, and not refused
  assert.equal(over(await four.call('find_tool', { request: 'do the work' })), false);
});

test('a batch is as many calls as it has', async (t) => {
  const { servers: [s] } = await place(t, { budgets });
  const bob = await client(s, 'bob', '/mcp', { version: '2025-03-26' });
  const batch = Array.from({ length: 20 }, (_, i) => ({ jsonrpc: '2.0', id: `b${i}`, method: 'tools/call', params: { name: 'work', arguments: {} } }));
  await bob.send(batch).catch(() => null);
  await exhaust(bob, LIMIT);
  assert.ok(ran(s) <= LIMIT, `${ran(s)}`);
});

test('cancelled and dropped calls count', async (t) => {
  const { servers: [s] } = await place(t, { budgets });
  const bob = await client(s, 'bob');
  assert.equal(over(await bob.call()), false);
  writeFileSync(join(s.dir, 'work.mood'), 'slow');
  const calls = Array.from({ length: 3 }, (_, i) => bob.send({ jsonrpc: '2.0', id: `c${i}`, method: 'tools/call', params: { name: 'work', arguments: {} } }));
  await until(() => ran(s) === 4, 'the calls');
  for (let i = 0; i < 3; i++)
    await bob.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: `c${i}` } });
  await Promise.all(calls.map((c) => c.catch(() => null)));
  const stop = new AbortController(); // a client that hangs up
  const gone = fetch(`${s.url}/mcp`, { method: 'POST', signal: stop.signal,
    body: JSON.stringify({ jsonrpc: '2.0', id: 'd', method: 'tools/call', params: { name: 'work', arguments: {} } }),
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...as('bob'), ...bob.session } });
  await until(() => ran(s) === 5, 'the last call');
  stop.abort();
  await gone.catch(() => null);
  writeFileSync(join(s.dir, 'work.mood'), 'ok');
  for (let i = 0; i < 3; i++) assert.equal(over(await bob.call()), true);
  assert.equal(ran(s), LIMIT);
});

test('resources, prompts and completions count, and are refused as errors', async (t) => {
  const { servers: [s] } = await place(t, { budgets, mcpServers: { shelf: script('shelf.mjs', 'shelf') } });
  const bob = await client(s, 'bob');
  const answers = [];
  for (let i = 0; i < LIMIT; i++)
    answers.push(await bob.ask(i % 2 ? 'prompts/get' : 'resources/read', i % 2 ? { name: 'shelf_prompt' } : { uri: 'shelf://page' }));
  assert.deepEqual(answers.map((a) => a.error), answers.map(() => undefined));
  const no = await bob.ask('resources/read', { uri: 'shelf://page' });
  assert.match(no.error.message, /limit of 5 calls a minute for bob/);
  assert.equal(no.error.data.limit, 'callsPerMinute');
  assert.ok(no.error.data.retryAfterMs > 0);
  assert.match((await bob.ask('completion/complete', { ref: { type: 'ref/prompt', name: 'shelf_prompt' }, argument: { name: 'a', value: '' } })).error.message, /limit of/);
});

test('a fallback server keeps its own limit', async (t) => {
  const { servers: [s] } = await place(t, {
    mcpServers: { main: { fallback: ['spare'], retries: 0 }, spare: { callsPerMinute: 2, tools: { work: { idempotent: true }, look: { idempotent: true } } } },
  });
  const it = await client(s, 'ann');
  assert.equal(over(await it.call('main_look')), false);
  writeFileSync(join(s.dir, 'main.mood'), 'die');
  const said = [];
  for (let i = 0; i < 4; i++) said.push(JSON.stringify(await it.call('main_look')));
  assert.equal(ran(s, 'spare'), 2, said.join('\n'));
  assert.match(said[3], /limit of 2 calls a minute for the server spare/);
});

test('a reload, and a changed view, do not begin a new minute', async (t) => {
  const { servers: [s] } = await place(t, { budgets, views: { v: {} } });
  const bob = await client(s, 'bob');
  assert.equal(await exhaust(bob, LIMIT), LIMIT);
  const file = join(s.dir, 'mcp-orchestrator.json');
  const config = JSON.parse(readFileSync(file, 'utf8'));
  const loads = () => s.log.match(/generation \d+ loaded/g)?.length ?? 0;
  const n = loads();
  writeFileSync(file, JSON.stringify({ ...config, views: { v: { description: 'other' } }, budgets: { people: { bob: { callsPerMinute: LIMIT, turns: 3 } } } }));
  s.child.kill('SIGHUP');
  await until(() => loads() > n, 'the reload');
  assert.equal(over(await bob.call()), true);
  assert.equal(ran(s), LIMIT);
});

test('a restarted replica does not begin a new minute', { skip: noRedis }, async (t) => {
  const { servers: [s], again } = await place(t, { budgets }, { shared: true });
  assert.equal(await exhaust(await client(s, 'bob'), LIMIT), LIMIT);
  s.child.kill('SIGKILL');
  await s.exit;
  const next = await again(s);
  assert.equal(await exhaust(await client(next, 'bob'), 3), 0);
});

test('nobody uses up the budget of somebody else', async (t) => {
  const { servers: [s] } = await place(t, { budgets });
  const bob = await client(s, 'bob');
  const ann = await client(s, 'ann');
  for (let i = 0; i < 10; i++) await ann.call();
  for (const headers of [{ authorization: 'Bearer bob' }, { authorization: 'Bearer wrong-0123456789abcdef' }, { authorization: '' }])
    for (let i = 0; i < 3; i++)
      assert.notEqual((await fetch(`${s.url}/mcp`, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json', ...headers, ...bob.session } })).status, 200);
  // a session of bob in ann's hands
  const stolen = await fetch(`${s.url}/mcp`, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...as('ann'), ...bob.session },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'work', arguments: {} } }) });
  await stolen.text();
  assert.equal(await exhaust(bob, LIMIT), LIMIT);
});

test('trying a tool on the page: 429 with the time to wait', async (t) => {
  const { servers: [s] } = await place(t, { budgets: { people: { operator: { callsPerMinute: 1 } } } }, { house: true });
  const tryIt = () => fetch(`${s.url}/api/servers/work/tools/look/call`, { method: 'POST', headers: { 'content-type': 'application/json', ...as('operator') }, body: '{"args":{}}' });
  assert.equal((await tryIt()).status, 200);
  const no = await tryIt();
  assert.equal(no.status, 429);
  assert.ok(Number(no.headers.get('retry-after')) >= 1);
  const problem = await no.json();
  assert.equal(problem.code, 'over_budget');
  assert.match(problem.detail, /limit of 1 calls a minute for the operator/);
});

test('refusals are in the audit log, a flood of them as a few rows', async (t) => {
  const { servers: [s] } = await place(t, { budgets });
  await exhaust(await client(s, 'bob'), 50);
  const about = () => rows(s).filter((r) => JSON.stringify(r).includes('callsPerMinute'));
  await until(() => about().length, 'its row');
  const found = about();
  assert.equal(found.length, 1, JSON.stringify(found));
  assert.match(JSON.stringify(found[0]), /"bob"/);
});

test('spend: one\'s own row only', async (t) => {
  const { servers: [s] } = await place(t, { budgets }, { house: true });
  const get = async (who, query = '') => {
    const r = await fetch(`${s.url}/api/spend${query}`, { headers: as(who) });
    return { status: r.status, body: await r.json() };
  };
  assert.deepEqual((await get('bob')).body.people.map((p) => p.name), ['bob']);
  assert.deepEqual((await get('bob', '?person=ann&name=ann&who=ann')).body.people.map((p) => p.name), ['bob']);
  assert.deepEqual((await get('bob')).body.tokens, []);
  assert.deepEqual((await get('operator')).body.people, []);
  for (const ago of ['-1', '32', '1e1', '99999999999999999999', 'x'])
    assert.equal((await get('operator', `?ago=${ago}`)).status, 400, ago);
});
