// H7: a client of a view looks for a way around it: another person's view, a
// session of another view, a call that waits for a person while the view is
// tightened or removed, and everything that could tell a hidden tool from one
// that does not exist.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';

import { script } from '../lib/gateway.mjs';
import { named } from '../lib/mcp.mjs';
import { Server, until } from '../it/server.mjs';

const TOKENS = { ann: 'ann-0123456789abcdef0123', bob: 'bob-0123456789abcdef0123' };
const OPERATOR = 'op-0123456789abcdef012345';
const base = {
  mcpServers: { alpha: script('shelf.mjs', 'alpha'), beta: script('shelf.mjs', 'beta') },
  server: { token: OPERATOR, tokens: TOKENS },
  approvals: { rules: [{ tool: 'write', action: 'ask', reason: 'who is it' }] },
};
const views = {
  anns: { servers: ['alpha'], people: ['ann'] },
  all: {},
  ask: { servers: ['alpha'], rules: [{ tool: 'read', action: 'ask' }] },
};
let dir, server;
const write = (now) => writeFileSync(join(dir, 'mcp-orchestrator.json'), JSON.stringify({ ...base, views: now }));
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-views-'));
  write(views);
  server = await Server.start([], { dir, auth: true, env: { ...named(dir), ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' } });
});
after(async () => {
  server.child.kill('SIGTERM');
  assert.equal((await server.exit).code, 0, server.log);
  await rm(dir, { recursive: true, force: true });
});

async function reload(now) {
  const loads = () => server.log.match(/generation \d+ loaded/g)?.length ?? 0;
  const n = loads();
  write(now);
  server.child.kill('SIGHUP');
  await until(() => loads() > n, 'the reload');
}
const url = (path) => new URL(`http://127.0.0.1:${server.port}${path}`);
const as = (token) => ({ authorization: `Bearer ${token}` });
const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'it', version: '1' } } };
async function post(path, token, body = hello, headers = {}) {
  const r = await fetch(url(path), {
    method: 'POST', body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...as(token), ...headers },
  });
  const { instance: _, ...rest } = await r.json().catch(() => ({}));
  return { status: r.status, id: r.headers.get('mcp-session-id'), body: rest };
}
async function connect(t, path, token = OPERATOR) {
  const client = new Client({ name: 'it', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(url(path), { requestInit: { headers: as(token) } }));
  t.after(() => client.close());
  return client;
}
const pending = async () => (await (await fetch(url('/api/approvals'), { headers: as(OPERATOR) })).json()).approvals;
const approve = async ({ id, digest }) => (await fetch(url(`/api/approvals/${id}`), {
  method: 'POST', headers: { 'content-type': 'application/json', ...as(OPERATOR) }, body: JSON.stringify({ approved: true, digest }),
})).status;
const outcome = (promise) => promise.then((ok) => ({ ok }), (e) => ({ code: e.code, message: e.message }));
const rows = () => readFileSync(join(dir, '.local/state/mcp-orchestrator/audit.jsonl'), 'utf8').split('\n').slice(0, -1).map((l) => JSON.parse(l).what);

test('the view of another person is not there', async () => {
  assert.equal((await post('/mcp/anns', TOKENS.ann)).status, 200);
  assert.equal((await post('/mcp/anns', OPERATOR)).status, 200);
  const nobody = await post('/mcp/nope', TOKENS.bob);
  assert.equal(nobody.status, 404);
  assert.deepEqual(await post('/mcp/anns', TOKENS.bob), nobody);
  assert.equal((await post('/mcp/anns', 'wrong-token')).status, 401);
  // Nor with a session that ann has open.
  const { id } = await post('/mcp/anns', TOKENS.ann);
  const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' };
  const by = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' };
  assert.equal((await post('/mcp/anns', TOKENS.ann, list, by)).status, 200);
  assert.equal((await post('/mcp/anns', TOKENS.bob, list, by)).status, 404);
  for (const path of ['/mcp', '/mcp/all', '/mcp/ask']) assert.equal((await post(path, TOKENS.ann, list, by)).status, 404);
  for (const path of ['/mcp/anns/', '/mcp//anns', '/mcp/ANNS', '/mcp/an%6es', '/mcp/anns%00', '/mcp/..%2fmcp'])
    assert.notEqual((await post(path, TOKENS.bob)).status, 200, path);
});

test('who is taken from the list loses the session', async () => {
  const { id } = await post('/mcp/anns', TOKENS.ann);
  const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' };
  const by = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' };
  await reload({ ...views, anns: { ...views.anns, people: ['bob'] } });
  assert.equal((await post('/mcp/anns', TOKENS.ann, list, by)).status, 404);
  assert.equal((await post('/mcp/anns', OPERATOR, list, by)).status, 404, 'it has ended');
  assert.equal((await post('/mcp/anns', TOKENS.bob)).status, 200);
  await reload(views);
});

for (const [what, after] of [
  ['loses its person', { ...views, anns: { ...views.anns, people: ['bob'] } }],
  ['is removed', { all: views.all, ask: views.ask }],
])
  test(`a request that is still arriving when its view ${what} finds nothing`, async () => {
    await reload(views);
    const body = JSON.stringify(hello);
    const rq = request(url('/mcp/anns'), { method: 'POST', agent: false, headers: {
      'content-type': 'application/json', accept: 'application/json, text/event-stream', 'content-length': body.length, ...as(TOKENS.ann) } });
    const answered = once(rq, 'response');
    rq.write(body.slice(0, 20));
    await until(async () => (await post('/mcp/anns', TOKENS.ann)).status === 200, 'a later request is answered');
    await reload(after);
    rq.end(body.slice(20));
    const [res] = await answered;
    assert.equal(res.statusCode, 404);
    res.resume();
    await once(res, 'end');
  });

for (const [what, after] of [
  ['hides the tool', { ...views, all: { tools: ['!*/write'] } }],
  ['hides the server', { ...views, all: { servers: ['beta'] } }],
  ['shows only what reads', { ...views, all: { readOnly: true } }],
])
  test(`a waiting call does not run after a reload that ${what}`, async (t) => {
    await reload(views);
    for (const client of [await connect(t, '/mcp/all')]) {
      const { tools } = await client.listTools();
      const name = tools.find((x) => /Writes a alpha/.test(x.description)).name;
      const running = outcome(client.callTool({ name, arguments: {} }));
      await until(async () => (await pending()).length === 1, 'it is pending');
      const [card] = await pending();
      assert.deepEqual([card.view, card.tool], ['all', 'write']);
      await reload(after);
      const end = await running;
      assert.equal(end.code, -32602);
      assert.match(end.message, new RegExp(`no such tool: ${name}$`));
      const unknown = await outcome(client.callTool({ name: `${name}x`, arguments: {} }));
      assert.deepEqual({ ...unknown, message: unknown.message.replace(`${name}x`, name) }, end);
      assert.equal(await approve(card), 404);
    }
    assert.ok(!rows().some((r) => r?.tool === 'write' && r.outcome === 'ok'));
    await until(() => rows().some((r) => r?.tool === 'write' && r.view === 'all' && r.outcome === 'denied'), 'the row');
  });

test('a waiting call of a removed view ends with the reason', async (t) => {
  await reload(views);
  const client = await connect(t, '/mcp/all');
  const { tools } = await client.listTools();
  const running = outcome(client.callTool({ name: tools.find((x) => /Writes a alpha/.test(x.description)).name, arguments: {} }));
  await until(async () => (await pending()).length === 1, 'it is pending');
  const { all: _, ...rest } = views;
  await reload(rest);
  assert.match((await running).message, /the view all was removed from the configuration/);
  assert.deepEqual(await pending(), []);
  assert.equal((await post('/mcp/all', OPERATOR)).status, 404);
  await reload(views);
});

test('rules of the view hold to the end', async (t) => {
  await reload(views);
  const client = await connect(t, '/mcp/ask', TOKENS.bob);
  const running = outcome(client.callTool({ name: 'read', arguments: {} }));
  await until(async () => (await pending()).length === 1, 'it is pending');
  const [card] = await pending();
  assert.equal(card.rule.by, 'view');
  await reload({ ...views, ask: { ...views.ask, rules: [{ tool: 'read', action: 'deny', reason: 'not now' }] } });
  const { ok } = await running;
  assert.equal(ok.isError, true);
  assert.match(ok.content[0].text, /not now/);
  await reload(views);
  const allowed = outcome(client.callTool({ name: 'read', arguments: {} }));
  await until(async () => (await pending()).length === 1, 'it is pending');
  assert.equal(await approve((await pending())[0]), 200);
  assert.equal((await allowed).ok.content[0].text, 'alpha read');
});
