// H5: a client of the gateway with a token of its own that wants a yes for its
// own call: by its form, over HTTP, by the command line's socket, with forged
// ids and digests, with rules, as another person. The call never runs, and the
// attempts are in the audit log.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { io } from 'socket.io-client';

import { until } from '../it/server.mjs';
import { DOORS, Target, attempts } from '../lib/attack.mjs';
import { fixtureServer } from '../lib/gateway.mjs';

const TOKENS = { operator: 'the-operator-0123456789abcdef', alice: 'alice-has-this-0123456789abcdef', bob: 'bob-has-another-0123456789abcd' };
const bearer = (who) => ({ authorization: `Bearer ${TOKENS[who]}` });
let it;
before(async () => {
  it = await Target.start({
    mcpServers: { fixture: fixtureServer() },
    approvals: { rules: [{ tool: 'echo', action: 'ask' }] },
    server: { token: TOKENS.operator, tokens: { alice: TOKENS.alice, bob: TOKENS.bob } },
  });
});
after(() => it?.remove());

async function caller(who) {
  const client = new Client({ name: 'liar', version: '1' }, { capabilities: { elicitation: {} } });
  const it2 = { client, asked: 0 };
  client.setRequestHandler(ElicitRequestSchema, () => {
    it2.asked++;
    return { action: 'accept', content: { decision: 'approve', approved: true } };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${it.url}/mcp`), { requestInit: { headers: bearer(who) } }));
  return it2;
}

async function send(method, path, headers, body) {
  const r = await fetch(`${it.url}${path}`, { method, headers: { 'content-type': 'application/json', ...headers },
    body: method === 'GET' ? undefined : JSON.stringify(body) });
  return { status: r.status, code: (await r.json().catch(() => ({}))).code };
}

const counted = { not_the_approver: 0, operator_only: 0 };

for (const who of ['operator', 'alice'])
  test(`with the token of ${who}, its call waits whatever it does`, async () => {
    const liar = await caller(who);
    let over = false;
    const call = liar.client.callTool({ name: 'echo', arguments: { message: 'run me' } }).finally(() => { over = true; });
    await until(async () => (await it.get('/api/approvals')).approvals.length > 0, 'the call is pending');
    const [held] = (await it.get('/api/approvals')).approvals;

    const bodies = [{ approved: true, digest: held.digest }, { approved: true }, { approved: true, digest: '' },
      { approved: true, digest: '0'.repeat(64) }, { approved: true, digest: held.digest, args: { message: 'other' } },
      { approved: true, digest: held.digest, reason: 'I am a person' }, { approved: 'true', digest: held.digest }];
    for (const body of bodies) {
      const { status, code } = await send('POST', `/api/approvals/${held.id}`, bearer(who), body);
      assert.ok(status >= 400, JSON.stringify([body, status]));
      if (code === 'not_the_approver') counted[code]++;
    }
    // with a personal token that it makes for itself
    const made = await fetch(`${it.url}/api/tokens`, { method: 'POST', headers: { ...bearer(who), 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'of mine', role: who === 'operator' ? 'operator' : 'user' }) });
    assert.equal(made.status, 201);
    const own = { authorization: `Bearer ${(await made.json()).token}` };
    const { status: refused, code: why } = await send('POST', `/api/approvals/${held.id}`, own, bodies[0]);
    assert.ok(refused >= 400, `${refused}`);
    if (why === 'not_the_approver') counted[why]++;
    if (who !== 'operator') { // whoever has the operator's token is the operator
      const others = [['POST', '/api/rules', { server: 'fixture', tool: 'echo', action: 'allow' }],
        ['PATCH', '/api/mcp/fixture', { enabled: true }], ['POST', '/api/mcp', { name: 'x', command: '/bin/sh' }],
        ['GET', '/api/mcp/snippets'], ['POST', '/api/servers/fixture/tools/echo/call', { args: {} }]];
      for (const [method, path, body] of others) {
        const { status, code } = await send(method, path, bearer(who), body);
        assert.deepEqual([status, code], [403, 'operator_only'], path);
        counted.operator_only++;
      }
      // on the page, as the same person; and as another one
      const page = await fetch(`${it.url}/?token=${TOKENS[who]}`, { redirect: 'manual' });
      const cookie = page.headers.get('set-cookie').split(';')[0];
      for (const headers of [{ cookie }, bearer('bob'), { cookie, ...bearer('bob') }])
        assert.equal((await send('POST', `/api/approvals/${held.id}`, headers, bodies[0])).status, 404, 'not theirs to see');
    }
    // in a conversation's socket, where it has no such call
    const socket = io(it.url, { query: { sessionId: `of-${who}-${Date.now()}` }, extraHeaders: bearer(who), forceNew: true, reconnection: false, transports: ['websocket'] });
    await new Promise((resolve, reject) => { socket.on('system:ready', resolve); socket.on('connect_error', reject); });
    const ack = await socket.timeout(20_000).emitWithAck('tool:approval', { callId: held.id, approved: true, digest: held.digest });
    assert.equal(ack.ok, false, JSON.stringify(ack));
    socket.close();

    assert.equal(over, false, 'the call still waits');
    assert.equal(liar.asked, 0, 'nobody asked its form');
    assert.equal((await it.command('approvals', 'reject', held.id, '--config', it.file)).code, 0, 'a person says no');
    assert.match((await call).content[0].text, /did not allow this call/);
    await liar.client.close();
  });

test('a person\'s token opens what is theirs, and nothing of the operator', async () => {
  for (const [method, path] of DOORS.filter(([, p]) => p.startsWith('/api/') && !p.startsWith('/api/sessions') && p !== '/api/tokens')) {
    const { status, code } = await send(method, path, bearer('bob'), JSON.parse(it.body));
    if (code === 'operator_only') counted.operator_only++;
    assert.ok(status >= 400 || method === 'GET', `${method} ${path}: ${status}`);
  }
  assert.ok(counted.operator_only > 20);
});

test('the attempts are in the audit log', async () => {
  const mine = (await it.get('/api/sessions')).sessions.map((s) => s.id); // of the sockets above
  for (const id of mine)
    await fetch(`${it.url}/api/sessions/${id}?forget=true`, { method: 'DELETE', headers: bearer('operator') });
  const rows = await it.end({ secrets: Object.values(TOKENS) });
  assert.ok(counted.not_the_approver >= 2);
  for (const [reason, n] of Object.entries(counted)) assert.equal(attempts(rows, { reason, door: 'token' }), n, reason);
  assert.deepEqual(rows.filter((r) => r.outcome === 'signed in').map((r) => [r.door, r.who]), [['link', 'alice']]);
  assert.ok(!existsSync(it.proof));
});
