// The table of roles (src/web/access.c): every route and every event with every
// role, and what the server says. The table decides what is tried here.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { io } from 'socket.io-client';

import { BIN, Server, until } from './server.mjs';

const ROLES = ['none', 'viewer', 'user', 'approver', 'operator'];
const { rows } = JSON.parse((await promisify(execFile)(BIN, ['roles', '--json'])).stdout);
const routes = rows.filter((r) => r.kind !== 'event' && r.path !== '/sign-out');
const token = (role) => `token-of-the-${role}-0123456789`;

let dir, server;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-roles-'));
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: {}, llm: { provider: 'demo' },
    server: {
      manage: true,
      tokens: Object.fromEntries(ROLES.slice(1).map((r) => [r, token(r)])),
    },
    people: { roles: { viewer: ['viewer'], approver: ['approver'], operator: ['operator'] } },
  }));
  server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
    dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
  });
  // the HTTP client keeps descriptors from its first use on, whichever route that is
  for (const row of routes) await ask('operator', row);
  server.fresh = await server.settled();
});
after(async () => {
  await server?.stop();
  await rm(dir, { recursive: true });
});

const headers = (role) => ({ connection: 'close', ...(role !== 'none' && { authorization: `Bearer ${token(role)}` }) });
const may = (role, least) => ROLES.indexOf(role) >= ROLES.indexOf(least);

/** The answer of the door: null if it let the request through. */
async function ask(role, { kind, path }) {
  const method = { any: 'GET', file: 'GET' }[kind] ?? kind;
  const url = server.url + path.replace('/socket.io/', '/socket.io/?EIO=4&transport=polling')
    .replace(/\{\w+\}/g, 'nothing');
  const answer = await fetch(url, { method, redirect: 'manual', headers: headers(role),
    ...(/POST|PATCH/.test(method) && { body: '{}', headers: { ...headers(role), 'content-type': 'application/json' } }) });
  const text = await answer.text();
  const code = answer.headers.get('content-type')?.includes('problem+json') ? JSON.parse(text).code : null;
  return ['token_required', 'too_many_tries', 'operator_only', 'role_required'].includes(code) ? { status: answer.status, code }
    : answer.status === 401 ? { status: 401, code: 'sign-in page' } : null;
}

describe('routes', () => {
  for (const row of routes)
    test(`${row.kind} ${row.path}: ${row.least}`, async () => {
      for (const role of ROLES) {
        const no = await ask(role, row);
        if (may(role, row.least)) assert.equal(no, null, `${role} may`);
        else if (role === 'none') assert.ok([401, 429].includes(no?.status), 'who is nobody must sign in, and not try too often');
        else assert.deepEqual(no, { status: 403, code: row.least === 'operator' ? 'operator_only' : 'role_required' }, role);
      }
    });

  test('every route is in the table, and nothing else', async () => {
    const doc = await (await fetch(`${server.url}/api/openapi.json`, { headers: headers('operator') })).json();
    const described = Object.entries(doc.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((m) => `${m.toUpperCase()} ${path}`));
    const inTable = new Set(rows.map((r) => `${r.kind} ${r.path}`));
    assert.deepEqual(described.filter((d) => !inTable.has(d)), []);
    const apis = rows.filter((r) => r.path.startsWith('/api/')).map((r) => `${r.kind} ${r.path}`);
    assert.deepEqual(apis.filter((r) => !described.includes(r)), []);
  });

  test('signing out needs somebody who is signed in', async () => {
    for (const role of ROLES)
      assert.equal((await fetch(`${server.url}/sign-out`, { method: 'POST', redirect: 'manual', headers: headers(role) })).status,
        role === 'none' ? 429 : 303); // this test tried too often
  });
});

describe('events', () => {
  const events = rows.filter((r) => r.kind === 'event');
  for (const role of ROLES)
    test(`as ${role}`, async (t) => {
      const socket = io(server.url, { extraHeaders: headers(role), query: { sessionId: `of-${role}` },
        transports: ['websocket'], reconnection: false });
      t.after(() => socket.close());
      const history = new Promise((ok) => socket.once('session:history', ok)); // it is open then
      const refused = new Promise((ok) => socket.once('error', ok));
      const connected = await new Promise((ok) => socket.once('connect', () => ok(true)).once('connect_error', () => ok(false)));
      assert.equal(connected, may(role, rows.find((r) => r.path === '/socket.io/').least));
      if (!connected) return;
      if (!may(role, 'user')) { // reads what is shared, and opens nothing: it/shares, h11
        assert.match(await refused, /no such session/);
        assert.deepEqual((await (await fetch(`${server.url}/api/sessions`, { headers: headers('operator') })).json()).sessions, []);
        return;
      }
      await history;
      // Closing comes last: it ends the session.
      for (const row of [...events].sort((a, b) => (a.path === 'session:close') - (b.path === 'session:close'))) {
        const ack = await socket.timeout(20_000).emitWithAck(row.path, {});
        if (may(role, row.least)) assert.notEqual(ack.code, 'operator_only', row.path);
        else assert.equal(ack.code, 'operator_only', row.path);
      }
      await until(async () => (await fetch(`${server.url}/api/sessions/of-${role}`, { headers: headers(role) })).status === 404, 'its end');
    });
  test('an event that is in no row is refused', async (t) => {
    const socket = io(server.url, { extraHeaders: headers('operator'), query: { sessionId: 'x' }, transports: ['websocket'] });
    t.after(() => socket.close());
    await new Promise((ok) => socket.once('session:history', ok));
    assert.equal((await socket.timeout(20_000).emitWithAck('tool:everything', {})).code, 'unknown_event');
    await socket.timeout(20_000).emitWithAck('session:close', {});
  });
});
