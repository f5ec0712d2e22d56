// Servers with `credentials: exchange`: the caller's own access token is
// exchanged for one of the server (RFC 8693), and never goes there itself.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Idp } from '../lib/idp.mjs';
import { named } from '../lib/mcp.mjs';
import { Whose } from '../lib/whose.mjs';
import { Server, until } from './server.mjs';

const OPERATOR = 'op-0123456789abcdef012345', BOB = 'bob-0123456789abcdef0123';
let dir, idp, whose, server;
const seen = []; // Authorization headers at the MCP server
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-exchange-'));
  idp = await new Idp({ ann: { groups: ['staff'] }, eve: { groups: ['staff'] } }).start();
  whose = await new Whose(1).start();
  whose.lie = (rq, rs, url) => {
    if (url.pathname === '/s0/mcp') seen.push(rq.headers.authorization ?? '');
    return false;
  };
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: whose.config({ credentials: 'exchange', exchange: { url: `${whose.base}/s0/token`, clientId: 'us', clientSecret: 'pss/t', audience: 'files', scope: 'read' } }),
    approvals: { default: 'allow' }, server: { token: OPERATOR, tokens: { bob: BOB } },
    people: { providers: { corp: { issuer: idp.issuer } }, roles: { user: ['corp/staff'] } },
  }));
  server = await Server.start([], { dir, auth: true, env: { ...named(dir), MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
});
after(async () => {
  server.child.kill('SIGTERM');
  assert.equal((await server.exit).code, 0, server.log);
  assert.doesNotMatch(server.log, /runtime error|Sanitizer/);
  await whose.stop();
  await idp.stop();
  await rm(dir, { recursive: true, force: true });
});

const bearer = (sub) => idp.token({ sub, aud: `${server.url}/mcp`, groups: ['staff'], jti: `${sub}-${Date.now()}` });
let id = 0;
async function call(token) {
  const post = async (body, more = {}) => fetch(`${server.url}/mcp`, { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: ++id, ...body }),
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: `Bearer ${token}`, ...more } });
  const hello = await post({ method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'it', version: '1' } } });
  const session = { 'mcp-session-id': hello.headers.get('mcp-session-id') };
  assert.equal(hello.status, 200, await hello.text());
  await (await post({ method: 'tools/list' }, session)).text();
  return (await post({ method: 'tools/call', params: { name: 'whoami', arguments: { n: 1 } } }, session)).text();
}

test('the token of the caller is exchanged once, and the server gets the other one', async () => {
  const [ann, eve] = [bearer('ann'), bearer('eve')];
  assert.match(await call(ann), /user.{5}ann/);
  assert.match(await call(eve), /user.{5}eve/);
  assert.match(await call(ann), /user.{5}ann/);
  assert.equal(whose.exchanges.length, 2);
  const { authorization, subject_token, ...form } = whose.exchanges[0];
  assert.equal(subject_token, ann);
  assert.equal(authorization, `Basic ${Buffer.from('us:pss%2Ft').toString('base64')}`);
  const type = 'urn:ietf:params:oauth:token-type:access_token';
  assert.deepEqual(form, { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token_type: type,
    requested_token_type: type, resource: whose.url('s0'), audience: 'files', scope: 'read' });
  assert.ok(seen.every((h) => !h.includes(ann) && !h.includes(eve)), 'no token of the caller');
});

test('a token that the server refuses is exchanged again, but not all the time', async () => {
  const n = whose.exchanges.length;
  whose.forget('s0', 'ann');
  await until(async () => /user.{5}ann/.test(await call(bearer('ann'))), 'a new token');
  assert.equal(whose.exchanges.length, n + 1);
});

test('who has no token of a provider has nothing to exchange; tokens of ours stay here', async () => {
  const n = whose.exchanges.length;
  for (const token of [OPERATOR, BOB]) assert.match(await call(token), /credentials|sign|no such tool/);
  assert.equal(whose.exchanges.length, n);
  assert.ok(seen.every((h) => !h.includes(OPERATOR) && !h.includes(BOB)));
});

test('a refusal of the endpoint is an error, not a fallback', async () => {
  whose.denies = true;
  whose.forget('s0', 'eve');
  const text = await call(bearer('eve'));
  assert.doesNotMatch(text, /user.{5}/);
  const log = server.log + await readFile(join(dir, 'state/audit.jsonl'), 'utf8');
  for (const x of whose.exchanges) assert.ok(!log.includes(x.subject_token));
});
