// Budgets: calls a minute, turns, tokens and money of people, views and
// servers; with SQLite in one server, with a real Redis in two.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { script } from '../lib/gateway.mjs';
import { missing as noRedis, redis } from '../lib/redis.mjs';
import { Server } from './server.mjs';

const QUICK = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };
const TOKENS = { ann: 'ann-0123456789abcdef0123', bob: 'bob-0123456789abcdef0123' };
const OPERATOR = 'op-0123456789abcdef012345';
const as = (who) => ({ authorization: `Bearer ${TOKENS[who] ?? OPERATOR}` });

/** n servers with the same configuration and, with `shared`, the same Redis. */
async function place(t, config, { n = 1, shared, house } = {}) {
  const store = shared ? await redis() : null;
  const dirs = [], servers = [];
  t.after(async () => {
    for (const s of servers) if (!s.ended) s.child.kill('SIGKILL');
    for (const s of servers) await s.exit;
    await store?.stop();
    for (const d of dirs) await rm(d, { recursive: true, force: true });
  });
  const up = async (dir, env = {}) => {
    const s = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')],
      { dir, auth: true, house: house || shared, env: { ...QUICK, ...env, MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
    s.dir = dir;
    s.env = env;
    servers.push(s);
    return s;
  };
  for (let i = 0; i < n; i++) {
    const dir = await mkdtemp(join(tmpdir(), 'mo-budget-'));
    dirs.push(dir);
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      llm: { provider: 'demo' },
      sandbox: { driver: 'native', warm: 0 },
      server: { token: OPERATOR, tokens: TOKENS },
      approvals: { default: 'allow', rules: [] },
      ...config,
      mcpServers: Object.fromEntries(Object.entries(config.mcpServers ?? { work: {} }).map(([name, more]) =>
        [name, { ...script('moody.mjs', name, join(dir, 'mood'), join(dir, `${name}.log`)), ...more }])),
      ...(store && { store: { url: `redis://127.0.0.1:${store.port}` } }),
    }));
    await up(dir);
  }
  return { servers, store, again: (s) => up(s.dir, s.env) };
}
/** Calls that a server of the tests has really run. */
const ran = (s, name = 'work') => {
  const file = join(s.dir, `${name}.log`);
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter((l) => /work|look|set/.test(l)).length : 0;
};

/** A client in a session of its own. */
async function client(server, who, path = '/mcp') {
  const send = async (body, headers = {}) => {
    const r = await fetch(server.url + path, {
      method: 'POST', body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...as(who), ...headers },
    });
    const text = await r.text();
    const data = text.startsWith('event:') || text.startsWith('data:') || text.startsWith('id:')
      ? text.split('\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6))).at(-1)
      : text ? JSON.parse(text) : null;
    return { status: r.status, headers: r.headers, body: data };
  };
  const hello = await send({ jsonrpc: '2.0', id: 0, method: 'initialize', params: {
    protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'it', version: '1' } } });
  const session = { 'mcp-session-id': hello.headers.get('mcp-session-id') };
  await send({ jsonrpc: '2.0', method: 'notifications/initialized' }, session);
  let id = 0;
  return {
    ask: async (method, params) => (await send({ jsonrpc: '2.0', id: ++id, method, params }, session)).body,
    call: async (name = 'work', args = {}) =>
      (await send({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params: { name, arguments: args } }, session)).body,
  };
}
const over = (answer) => answer.result?.isError === true && /limit of/.test(answer.result.content[0].text);
const rows = (s) => readFileSync(join(s.dir, 'state/audit.jsonl'), 'utf8').split('\n').filter(Boolean).map((l) => JSON.parse(l).what);

describe('calls a minute', () => {
  test('of a person, with the time to wait', async (t) => {
    const { servers: [s] } = await place(t, { budgets: { people: { bob: { callsPerMinute: 3 } } } });
    const bob = await client(s, 'bob');
    for (let i = 0; i < 3; i++) assert.equal(over(await bob.call()), false);
    const no = await bob.call();
    assert.match(no.result.content[0].text, /^The limit of 3 calls a minute for bob is reached\. Try again in \d+ s\.$/);
    const { limit, retryAfterMs } = no.result._meta['mcp-orchestrator/budget'];
    assert.equal(limit, 'callsPerMinute');
    assert.ok(retryAfterMs > 0 && retryAfterMs <= 61_000);
    const ann = await client(s, 'ann');
    for (let i = 0; i < 5; i++) assert.equal(over(await ann.call()), false, 'ann has no limit');
    assert.equal(ran(s), 8);
    const row = rows(s).find((r) => r.budget || r.kind === 'budget' || JSON.stringify(r).includes('callsPerMinute'));
    assert.ok(row, 'the refusal is in the audit log');
    assert.match(JSON.stringify(row), /bob/);
  });

  test('of each person, the operator too', async (t) => {
    const { servers: [s] } = await place(t, { budgets: { people: { '*': { callsPerMinute: 1 }, ann: { callsPerMinute: 2 } } } });
    for (const [who, n] of [['ann', 2], ['bob', 1], ['operator', 1]]) {
      const it = await client(s, who);
      for (let i = 0; i < n; i++) assert.equal(over(await it.call()), false, `${who} ${i}`);
      assert.equal(over(await it.call()), true, who);
    }
  });

  test('of a server and of a view, everybody together', async (t) => {
    const { servers: [s] } = await place(t, {
      mcpServers: { work: { callsPerMinute: 4 } },
      views: { small: { callsPerMinute: 2 } },
    });
    const [ann, bob] = [await client(s, 'ann', '/mcp/small'), await client(s, 'bob', '/mcp/small')];
    assert.equal(over(await ann.call()), false);
    assert.equal(over(await bob.call()), false);
    assert.match((await bob.call()).result.content[0].text, /2 calls a minute for the view small/);
    const all = await client(s, 'ann');
    assert.equal(over(await all.call()), false);
    assert.equal(over(await all.call()), false);
    assert.match((await all.call()).result.content[0].text, /4 calls a minute for the server work/);
    assert.equal(ran(s), 4);
  });

  test('two servers with one Redis, 64 connections: never one too many', { skip: noRedis }, async (t) => {
    const { servers } = await place(t, { budgets: { people: { bob: { callsPerMinute: 50 } } } }, { n: 2, shared: true });
    const clients = await Promise.all(Array.from({ length: 64 }, (_, i) => client(servers[i % 2], 'bob')));
    const answers = (await Promise.all(clients.map((c) => Promise.all([c.call(), c.call(), c.call()])))).flat();
    assert.equal(answers.filter((a) => !over(a)).length, 50);
    assert.equal(ran(servers[0]) + ran(servers[1]), 50);
  });

  test('64 connections of one server: never one too many', async (t) => {
    const { servers: [s] } = await place(t, { budgets: { people: { '*': { callsPerMinute: 50 } } } });
    const clients = await Promise.all(Array.from({ length: 64 }, () => client(s, 'bob')));
    const answers = (await Promise.all(clients.map((c) => Promise.all([c.call(), c.call(), c.call()])))).flat();
    assert.equal(answers.filter((a) => !over(a)).length, 50);
    assert.equal(ran(s), 50);
  });

  test('a Redis that is gone: who has a limit is refused, others are not', { skip: noRedis }, async (t) => {
    const { servers: [s], store } = await place(t, { budgets: { people: { bob: { callsPerMinute: 50 } } } }, { shared: true });
    const [ann, bob] = [await client(s, 'ann'), await client(s, 'bob')];
    assert.equal(over(await bob.call()), false);
    await store.kill();
    const no = await bob.call();
    assert.match(no.result.content[0].text, /limits of bob cannot be checked/);
    assert.equal((await ann.call()).result.isError ?? false, false);
  });
});
