// G4: a client of the gateway that approves its own calls with the access token
// of a provider, with which it calls.
// Fails on a7c1f226: the operator's and the owner's token were answered 200, and
// the call ran.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { Server, until } from '../it/server.mjs';
import { fixtureServer } from '../lib/gateway.mjs';
import { Idp } from '../lib/idp.mjs';

let dir, idp, server;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-g4-'));
  idp = await new Idp({}).start();
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: { f: fixtureServer() },
    approvals: { rules: [
      { tool: 'echo', args: { message: 'own*' }, action: 'ask', approver: 'owner' },
      { tool: 'echo', args: { message: 'ask*' }, action: 'ask' }] },
    people: {
      providers: { corp: { issuer: idp.issuer } },
      roles: { operator: ['corp:olga'], approver: ['corp:pia'], user: ['corp:ann'] },
    },
  }));
  server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json'), '--provider', 'demo'], {
    dir, house: true, auth: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state'), ASAN_OPTIONS: 'detect_leaks=0' } });
});
after(async () => {
  server.fresh.children += 4; // the fixture stays
  server.fresh.fds += 32;
  await server.stop();
  await idp.stop();
  await rm(dir, { recursive: true, force: true });
});

const headers = (who) => ({ authorization: `Bearer ${idp.token({ sub: who, aud: `${server.url}/mcp` })}` });
const list = async (who) => (await (await fetch(`${server.url}/api/approvals`, { headers: headers(who) })).json()).approvals;
async function decide(who, { id, digest }) {
  const r = await fetch(`${server.url}/api/approvals/${id}`, { method: 'POST',
    headers: { 'content-type': 'application/json', ...headers(who) }, body: JSON.stringify({ approved: true, digest }) });
  return [r.status, (await r.json()).code];
}
async function call(t, who, message) {
  const client = new Client({ name: 'liar', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers: headers(who) } }));
  t.after(() => client.close());
  const running = client.callTool({ name: 'echo', arguments: { message } });
  await until(async () => (await list('olga')).length === 1, 'the pending call');
  return { running, card: (await list('olga'))[0] };
}

test('the owner\'s token does not decide, an approver\'s does', async (t) => {
  const { running, card } = await call(t, 'ann', 'own call');
  assert.equal(card.owner, 'corp:ann');
  assert.deepEqual(await decide('ann', card), [403, 'not_the_approver']);
  assert.deepEqual((await list('pia')).map((c) => c.id), [card.id], 'an approver sees calls of others');
  assert.deepEqual(await decide('pia', card), [200, undefined]);
  assert.equal((await running).content[0].text, 'own call');
});

test('an approver is none in their own matters', async (t) => {
  const { running, card } = await call(t, 'pia', 'ask for pia');
  assert.equal((await decide('pia', card))[0], 403);
  assert.deepEqual(await decide('olga', card), [200, undefined]);
  assert.equal((await running).content[0].text, 'ask for pia');
});

test('nor is the operator, with the token that called', async (t) => {
  const { running, card } = await call(t, 'olga', 'ask for olga');
  assert.deepEqual(await decide('olga', card), [403, 'not_the_approver']);
  assert.deepEqual(await decide('pia', card), [200, undefined]);
  assert.equal((await running).content[0].text, 'ask for olga');
});
