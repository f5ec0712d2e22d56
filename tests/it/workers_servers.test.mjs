// Servers as the workers of `serve --workers` know them together: every answer
// is the same, whichever worker gives it.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Server } from './server.mjs';

const FAKE = fileURLToPath(new URL('../fakes/mcp.mjs', import.meta.url));
const ASKED = 16; // connections: all of them at one worker is one case in 32,768

let server, dir, changed;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-workers-servers-'));
  changed = join(dir, 'changed');
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    llm: { provider: 'demo' },
    sandbox: { driver: 'native', warm: 0 },
    mcpServers: {
      greeter: { command: process.execPath, args: [FAKE], env: { MO_FAKE_CHANGED: changed }, description: 'Greets people' },
      dead: { command: '/no/such/program' },
    },
    approvals: { rules: [{ tool: 'greet', action: 'allow' }] },
  }));
  server = await Server.start(['--workers', '2'], { dir, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
});
after(async () => {
  if (server) server.fresh = { ...server.fresh, fds: server.fresh.fds + 40, children: server.fresh.children + 4 }; // a server of each worker
  await server?.stopClean();
  await rm(dir, { recursive: true, force: true });
});

/** One request on a connection of its own. */
const api = async (path, method = 'GET', body) => {
  const answer = await fetch(`${server.url}${path}`, {
    method, headers: { connection: 'close', ...(body && { 'content-type': 'application/json' }) }, body: body && JSON.stringify(body),
  });
  return { status: answer.status, ...(await answer.json()) };
};
/** The answers of as many connections, without what follows the clock. */
const everywhere = async (path, pick) => {
  const all = [];
  for (let n = 0; n < ASKED; n++) all.push(pick(await api(path)));
  return all;
};
const assertSame = (all) => {
  for (const one of all) assert.deepEqual(one, all[0]);
  return all[0];
};
const greet = () => api('/api/servers/greeter/tools/greet/call', 'POST', { args: { name: 'all' } });

test('both workers answer', async () => {
  const before = server.log.length;
  await everywhere('/api/mcp', () => 0);
  const seen = [...server.log.slice(before).matchAll(/"worker":(\d).*GET \/api\/mcp"/g)].map((m) => m[1]);
  assert.equal(new Set(seen).size, 2, server.log.slice(before));
});

test('the lists of a server that one of them has read', async () => {
  const find = ({ results }) => results.map((h) => `${h.server}/${h.tool}`);
  assert.deepEqual(assertSame(await everywhere('/api/route?q=greet%20somebody', find)), []);
  assert.equal((await api('/api/mcp/greeter/tools')).status, 200);
  assert.ok(assertSame(await everywhere('/api/route?q=greet%20somebody', find)).includes('greeter/greet'));
  assert.ok(assertSame(await everywhere('/api/mcp/greeter', (s) => s.tools)) > 0);
});

test('its state, and that of one which cannot be started', async () => {
  assert.notEqual((await api('/api/mcp/dead/tools')).status, 200);
  const state = ({ name, state, error, gateway }) => ({ name, state, error, starts: gateway.starts, children: gateway.children, fails: gateway.fails });
  const one = assertSame(await everywhere('/api/mcp/dead', state));
  assert.equal(one.state, 'failed');
  assert.match(one.error, /no\/such\/program/);
  const list = assertSame(await everywhere('/api/mcp', ({ servers }) => servers.map(state)));
  assert.deepEqual(list.map((s) => s.state), ['ok', 'failed']);
  assert.equal(list[0].children, 1);
  assert.deepEqual(assertSame(await everywhere('/api/mcp/health', ({ servers }) => servers.map(state))), list);
  assert.deepEqual(assertSame(await everywhere('/api/mcp/health', ({ summary }) => summary)),
    { total: 2, healthy: 1, unhealthy: 1, reconnecting: 0, disconnected: 0 });
  assert.deepEqual(assertSame(await everywhere('/api/servers', ({ servers }) => servers.map((s) => s.state))), ['ok', 'failed']);
});

test('the calls of all workers in the figures and in the metrics', async () => {
  for (let n = 0; n < ASKED; n++) assert.equal((await greet()).status, 200);
  const calls = ({ gateway: g }) => ({ calls: g.calls, errors: g.errors, minutes: g.perMinute.reduce((a, b) => a + b), p50: g.p50Ms, children: g.children,
    servers: g.servers.map((s) => [s.name, s.calls, s.children, s.tools.map((t) => [t.name, t.calls])]), keys: Object.keys(g).sort() });
  const sum = assertSame(await everywhere('/api/stats', calls));
  assert.equal(sum.calls, ASKED);
  assert.equal(sum.minutes, ASKED);
  assert.equal(sum.children, 2, 'each worker has a process of its own');
  assert.equal(typeof sum.p50, 'number'); // 0 where a call takes no millisecond
  assert.deepEqual(sum.servers, [['greeter', ASKED, 2, [['greet', ASKED]]], ['dead', 0, 0, []]]);
  assert.ok(!sum.keys.includes('took') && !sum.keys.includes('longest'));
  assert.equal(await server.metric('mo_gateway_calls_total{server="greeter",tool="greet"}'), ASKED);
});

test('a lesson, and that all was forgotten', async () => {
  const learnt = ({ learnt: n }) => n;
  assert.equal(assertSame(await everywhere('/api/route?q=salute', learnt)), 0);
  assert.equal((await api('/api/route/teach', 'POST', { words: 'salute', server: 'greeter', tool: 'greet', right: true })).status, 200);
  assert.equal(assertSame(await everywhere('/api/route?q=salute', learnt)), 2);
  assert.equal((await api('/api/route/learnt', 'DELETE')).status, 200);
  assert.equal(assertSame(await everywhere('/api/route?q=salute', learnt)), 0);
});

test('a tool that changed: listed by all, and accepted for all', async () => {
  await writeFile(changed, '');
  assert.equal((await api('/api/mcp/greeter', 'PATCH', { env: { MO_FAKE_CHANGED: changed, AGAIN: '1' } })).status, 200);
  const held = await greet();
  assert.equal(held.state, 'changed', JSON.stringify(held));
  const list = ({ changed: all }) => all.map(({ server: s, tool, digest }) => ({ server: s, tool, digest }));
  const [one, ...more] = assertSame(await everywhere('/api/approvals', list));
  assert.deepEqual([one.server, one.tool, more.length], ['greeter', 'greet', 0]);
  for (let n = 0; n < 4; n++) assert.equal((await greet()).state, 'changed');
  assert.equal((await api('/api/approvals/tools', 'POST', one)).status, 200);
  assert.deepEqual(assertSame(await everywhere('/api/approvals', list)), []);
  for (let n = 0; n < ASKED; n++) assert.equal((await greet()).state, 'done');
});
