// A second provider: Debian's glewlwyd. Its discovery, its keys of each kind,
// and access tokens that an official client got there.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { Glewlwyd, noGlewlwyd } from '../lib/glewlwyd.mjs';
import { fixtureServer } from '../lib/gateway.mjs';
import { client1, text } from '../lib/mcp_talk.mjs';
import { Server } from './server.mjs';

const HELLO = 'This is a simple text response for testing.';
const BACK = 'http://127.0.0.1:1/back';

/** Both programs; how: of glewlwyd; provider: more of our configuration. */
async function start(t, how, provider = {}) {
  const glewlwyd = await new Glewlwyd().settle();
  const dir = await mkdtemp(join(tmpdir(), 'mo-glewlwyd-'));
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: { fixture: fixtureServer() },
    people: {
      providers: { g: { issuer: glewlwyd.issuer, requiredScopes: ['mcp'], nameClaim: 'username', ...provider } },
      roles: { user: ['g:gwen'] },
    },
  }));
  const server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
    dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
  });
  await glewlwyd.start({ ...how, resources: [`${server.url}/mcp`] });
  t.after(async () => {
    await glewlwyd.stop();
    server.signal('SIGTERM');
    await server.stopClean();
    await rm(dir, { recursive: true });
  });
  return { server, glewlwyd };
}

/** What the SDK asks of a program; Gwen agrees to everything. */
function keeper(glewlwyd) {
  const k = {
    redirectUrl: BACK,
    clientMetadata: { client_name: 'a program', redirect_uris: [BACK], response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'client_secret_basic' },
    clientInformation: () => k.client,
    saveClientInformation: (c) => { k.client = c; },
    tokens: () => k.kept,
    saveTokens: (v) => { k.kept = v; },
    saveCodeVerifier: (v) => { k.verifier = v; },
    codeVerifier: () => k.verifier,
    async redirectToAuthorization(to) {
      await glewlwyd.agree(to.searchParams.get('client_id'), to.searchParams.get('scope'));
      const answer = await glewlwyd.gwen.fetch(`${to}&g_continue`);
      const back = new URL(answer.headers.get('location'));
      k.code = back.searchParams.get('code');
      assert.ok(k.code, String(back));
    },
  };
  return k;
}

/** A client that has signed in. */
async function connect(server, glewlwyd) {
  const authProvider = keeper(glewlwyd), it = client1();
  const transport = () => new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { authProvider });
  const first = transport();
  await assert.rejects(it.client.connect(first), UnauthorizedError);
  await first.finishAuth(authProvider.code);
  await it.client.connect(transport());
  return { ...it, claims: JSON.parse(Buffer.from(authProvider.kept.access_token.split('.')[1], 'base64url')) };
}

describe('glewlwyd', { skip: noGlewlwyd ? `needs ${noGlewlwyd}` : false }, () => {
  for (const alg of ['RS256', 'ES256', 'EdDSA'])
    test(`an official client registers, signs in and calls (${alg})`, async (t) => {
      const { server, glewlwyd } = await start(t, { alg });
      const it = await connect(server, glewlwyd);
      assert.equal(it.claims.aud, `${server.url}/mcp`);
      assert.ok((await it.client.listTools()).tools.some((tool) => tool.name === 'test_simple_text'));
      assert.equal(text(await it.call({ name: 'test_simple_text', arguments: {} })), HELLO);
      await it.client.close();
    });

  test('without resource indicators the audience is the list of scopes', async (t) => {
    const how = { parameters: { 'resource-allowed': false } };
    const strict = await start(t, how);
    await assert.rejects(connect(strict.server, strict.glewlwyd), /401/);
    const told = await start(t, how, { audiences: ['mcp'] });
    const it = await connect(told.server, told.glewlwyd);
    assert.equal(it.claims.aud, 'mcp');
    assert.equal(text(await it.call({ name: 'test_simple_text', arguments: {} })), HELLO);
    await it.client.close();
  });
});
