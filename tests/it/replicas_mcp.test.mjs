// Legacy MCP sessions behind a balancer without stickiness: the official client
// talks to two replicas in turn and notices nothing; the one that has the
// session may die.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { StreamableHTTPClientTransport as Http } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { fixtureServer } from '../lib/gateway.mjs';
import { client1 } from '../lib/mcp_talk.mjs';
import { balancer } from './balancer.mjs';
import { Replicas, STORES } from './replicas_kit.mjs';
import { until } from './server.mjs';

const text = (result) => result.content[0].text;
const token = (who) => `${who}-has-this-0123456789abcdef`;
const bearer = (who) => ({ authorization: `Bearer ${token(who)}` });
const both = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

const config = {
  mcpServers: { fixture: fixtureServer() },
  server: { token: token('operator'), tokens: { alice: token('alice'), bob: token('bob'), carol: token('carol') } },
  people: { roles: { approver: ['carol'] } },
  approvals: { timeoutSeconds: 600, rules: [{ tool: 'echo', args: { message: 'ask*' }, action: 'ask' }] },
};

/** The id of a session that is begun there. */
async function idFrom(port) {
  const answer = await fetch(`http://localhost:${port}/mcp`, {
    method: 'POST',
    headers: { ...both, ...bearer('alice') },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } } }),
  });
  await answer.text();
  return answer.headers.get('mcp-session-id');
}

/** Two replicas behind a balancer; fn gets them. */
async function pair(how, fn) {
  // Looking for leaks takes each process seconds: once is enough.
  const env = how.store === 'redis' ? { ASAN_OPTIONS: 'detect_leaks=0' } : {};
  const all = await Replicas.start({ headers: bearer('operator'), ...how, env, config: { ...config, ...how.config } });
  for (const r of all.v) r.server.fresh.children += 2; // the MCP server, and its guard
  for (const r of all.v) await until(async () => (await idFrom(r.server.port)).length > 60, 'the key of ids');
  const front = await balancer(all.v.map((r) => r.server.port));
  const clients = [];
  /** A client through the balancer, whose session is at the first replica. */
  const connect = async (who = 'alice') => {
    const c = client1();
    const transport = new Http(front.url, { requestInit: { headers: bearer(who) } });
    clients.push(c.client);
    front.next(front.ports[0]);
    const streams = () => front.seen.filter(([method, , status]) => method === 'GET' && status === 200).length;
    const had = streams();
    await c.client.connect(transport);
    await until(() => streams() > had, 'the GET stream');
    return { ...c, transport, id: transport.sessionId };
  };
  try {
    await fn({ all, front, connect });
  } finally {
    for (const c of clients) await c.close().catch(() => {});
    await front.close();
    await all.stop();
  }
}

/** The status of one request with that session id, at each port. */
async function statuses(ports, id, headers = bearer('alice'), method = 'POST') {
  const got = [];
  for (const port of ports) {
    const stop = new AbortController();
    const answer = await fetch(`http://localhost:${port}/mcp`, {
      method,
      signal: stop.signal,
      headers: { ...both, 'mcp-session-id': id, ...headers },
      ...(method === 'POST' && { body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'ping' }) }),
    });
    got.push(answer.status);
    stop.abort();
  }
  return got;
}

async function anywhere({ front, connect }) {
  const { client, call, on, id } = await connect();
  let changed = 0;
  on('notifications/tools/list_changed', () => { changed += 1; });
  for (let i = 0; i < 4; i++) assert.ok((await client.listTools()).tools.length > 5);
  for (let i = 0; i < 2; i++) {
    const progress = [];
    const done = await call({ name: 'test_tool_with_progress', arguments: {} }, { onprogress: (p) => progress.push(p.progress) });
    assert.ok(!done.isError);
    assert.deepEqual(progress, [0, 50, 100]);
    assert.match(text(await call({ name: 'test_elicitation', arguments: { message: 'who?' } })), /accept/);
  }
  // Big answers come piece by piece.
  const message = 'ü'.repeat(100_000);
  for (let i = 0; i < 2; i++) assert.equal(text(await call({ name: 'echo', arguments: { message } })).length, message.length);
  await call({ name: 'test_trigger_tool_change', arguments: {} });
  await until(() => changed > 0, 'the change on the GET stream');
  const used = new Set(front.seen.map(([, port]) => port));
  assert.equal(used.size, 2, 'both replicas were asked');
  assert.deepEqual(front.seen.filter(([method, , status]) => method === 'POST' && status >= 400), []);
  assert.deepEqual(await statuses(front.ports, id), [200, 200]);
}

async function farStream({ front }) {
  const answers = [];
  const post = async (port, id, body) => {
    const r = await fetch(`http://localhost:${port}/mcp`, {
      method: 'POST', headers: { ...both, ...bearer('alice'), ...(id && { 'mcp-session-id': id }) }, body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    });
    answers.push(`${body.method} ${r.status} ${(await r.text()).slice(0, 300)}`);
  };
  const id = await idFrom(front.ports[0]);
  await post(front.ports[1], id, { method: 'notifications/initialized' });
  await post(front.ports[1], id, { id: 2, method: 'tools/list' });
  // Told when the stream is there: nobody has read the list again since.
  await post(front.ports[0], id, { id: 3, method: 'tools/call', params: { name: 'test_trigger_tool_change', arguments: {} } });
  const stop = new AbortController();
  const answer = await fetch(`http://localhost:${front.ports[1]}/mcp`, {
    headers: { accept: 'text/event-stream', 'mcp-session-id': id, ...bearer('alice') }, signal: stop.signal,
  });
  assert.equal(answer.status, 200);
  const heard = (async () => {
    let seen = '';
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      seen += piece;
      if (seen.includes('tools/list_changed')) return true;
    }
    return false;
  })();
  assert.equal(await Promise.race([heard, sleep(20_000, 'nothing')]), true, answers.join('\n'));
  stop.abort();
  assert.deepEqual(await statuses(front.ports, id), [200, 200]);
}

async function foreign({ front, connect }) {
  const { id } = await connect();
  assert.deepEqual(await statuses(front.ports, id, bearer('alice')), [200, 200]);
  assert.deepEqual(await statuses(front.ports, id, bearer('bob')), [404, 404]);
  for (const at of [3, 60, id.length - 3]) {
    const forged = id.slice(0, at) + (id[at] === 'A' ? 'B' : 'A') + id.slice(at + 1);
    assert.deepEqual(await statuses(front.ports, forged, bearer('alice')), [404, 404], `changed at ${at}`);
  }
  // What only a replica may state means nothing here.
  const stated = Buffer.from(['1', 'alice', 'alice', '2', '', 'token', 'x', '', ''].join('\0')).toString('base64url');
  assert.deepEqual(await statuses(front.ports, id, { ...bearer('bob'), 'mo-relay': stated }), [404, 404]);
  assert.deepEqual(await statuses(front.ports, id, { 'mo-relay': stated }), [401, 401]);
}

async function decided({ all, connect }) {
  const api = async (n, who, path, body) => {
    const answer = await fetch(`http://localhost:${all.v[n].server.port}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { ...bearer(who), 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: await answer.json() };
  };
  const { call } = await connect();
  for (const approved of [true, false]) {
    const answer = call({ name: 'echo', arguments: { message: 'ask me' } });
    answer.catch(() => {}); // told below
    let held;
    await until(async () => {
      [held] = (await api(1, 'carol', '/api/approvals')).body.approvals;
      return held;
    }, 'the call in the list of the other replica');
    assert.equal((await api(0, 'carol', '/api/approvals')).body.approvals.length, 1, 'once');
    assert.deepEqual((await api(1, 'bob', '/api/approvals')).body.approvals, [], "not another person's");
    const at = `/api/approvals/${held.id}`;
    const says = { approved, digest: held.digest };
    for (const n of [0, 1]) assert.equal((await api(n, 'bob', at, says)).status, 404, 'who may is judged where it waits');
    for (const n of [0, 1]) assert.equal((await api(n, 'alice', at, { ...says, approved: true })).status, 404, 'nor the one who called');
    assert.equal((await api(1, 'carol', at, { ...says, approved: true, digest: 'x' })).status, 409);
    assert.deepEqual((await api(1, 'carol', at, says)).status, 200);
    assert.equal((await api(1, 'carol', at, says)).status, 404, 'once');
    assert.equal(!(await answer).isError, approved);
  }
  assert.equal((await api(1, 'carol', '/api/approvals/none', { approved: false })).status, 404);
  return api;
}

async function held(x) {
  const api = await decided(x);
  await until(async () => {
    const { body } = await api(1, 'operator', '/api/audit?limit=100');
    return body.rows.some(({ what }) => what.decidedBy === 'carol' && what.door === 'token');
  }, 'the person in the audit log');
}

async function killed({ all, front, connect }) {
  const ended = await connect();
  assert.deepEqual(await statuses([front.ports[1]], ended.id, undefined, 'DELETE'), [204]);
  assert.deepEqual(await statuses(front.ports, ended.id), [404, 404]);
  assert.deepEqual(await statuses(front.ports, ended.id, undefined, 'GET'), [404, 404]);
  await ended.client.close();
  const { client, call, id } = await connect();
  assert.ok((await client.listTools()).tools.length > 5);
  const before = front.seen.length;
  // Through the other one, so it can say what became of the call.
  front.next(front.ports[1]);
  const lost = call({ name: 'never', arguments: {} }, { timeout: 30_000 }).then(() => 'answered', (e) => e.message);
  await until(() => front.seen.slice(before).some(([method, port]) => method === 'POST' && port === front.ports[1]), 'the stream of the call');
  await all.v[0].signal('SIGKILL');
  assert.match(await lost, /has ended/);
  // The next requests begin it again, all at once, under the same id.
  const lists = await Promise.all(Array.from({ length: 5 }, () => client.listTools()));
  assert.ok(lists.every(({ tools }) => tools.length > 5));
  assert.match(text(await call({ name: 'test_elicitation', arguments: { message: 'still?' } })), /accept/);
  assert.deepEqual(await statuses([front.ports[1]], id), [200]);
  assert.deepEqual(await statuses([front.ports[1]], id, bearer('bob')), [404], "not another person's");
  assert.deepEqual(await statuses([front.ports[1]], ended.id), [404], 'an ended one stays ended');
}

for (const { name: store, skip } of STORES) {
  test(`${store}: two replicas`, { skip }, async (t) => {
    await pair({ store }, async (x) => {
      await t.test('a session goes on at whichever', () => anywhere(x));
      await t.test('a GET stream at the one that has not the session', () => farStream(x));
      await t.test('ids of others and forged ones', () => foreign(x));
      await t.test('a held call is decided at the other', () => held(x));
      await t.test('the one with the session is killed', () => killed(x));
    });
  });

  test(`${store}: three replicas, and two of them end`, { skip }, async () => {
    await pair({ store, count: 3 }, async ({ all, front, connect }) => {
      const { client, id } = await connect();
      await all.v[0].signal('SIGKILL');
      await Promise.all(Array.from({ length: 6 }, () => client.listTools()));
      // One of the two has it now; the other passes requests on.
      assert.deepEqual(await statuses(front.ports.slice(1), id), [200, 200]);
      const holds = all.v.slice(1).filter((r) => r.server.log.includes('continues here'));
      assert.equal(holds.length, 1, 'one of them began it again');
      await holds[0].signal('SIGTERM');
      const left = all.v.find((r) => r.server.alive);
      assert.deepEqual(await statuses([left.server.port], id), [200]);
      assert.ok((await client.listTools()).tools.length > 5);
    });
  });
}

test('two gateways without boxes', async (t) => {
  await pair({ config: { sandbox: { driver: 'none' } } }, async (x) => {
    await t.test('a session goes on at whichever', () => anywhere(x));
    await t.test('ids of others and forged ones', () => foreign(x));
    await t.test('a held call is decided at the other', () => decided(x));
    await t.test('the one with the session is killed', () => killed(x));
  });
});

// it/replicas_far has the conversations.
const { skip: noRedis } = STORES.find(({ name }) => name === 'redis');
test('redis: two replicas on different machines', { skip: noRedis }, async (t) => {
  await pair({ store: 'redis', far: true }, async (x) => {
    await t.test('a session goes on at whichever', () => anywhere(x));
    await t.test('a GET stream at the one that has not the session', () => farStream(x));
    await t.test('ids of others and forged ones', () => foreign(x));
    await t.test('a held call is decided at the other', () => held(x));
    await t.test('the one with the session is killed', () => killed(x));
  });
});
