// Access tokens that only their provider can read: it is asked (RFC 7662), its
// answers are kept for a while, and nobody can make us flood it.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { auth } from '@modelcontextprotocol/sdk/client/auth.js';

import { Idp, Visitor } from '../lib/idp.mjs';
import { Server, until } from './server.mjs';

const BACK = 'http://127.0.0.1:1/back';
const PEOPLE = { ann: { groups: ['staff'] }, nora: { groups: [] } };
const CLIENT = { client_id: 'gate', client_secret: 'of the gate: 100%', redirect_uris: [], response_types: [],
  grant_types: [] };

let dir, idp, server;

async function start(provider = {}) {
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: {},
    people: {
      providers: { corp: { issuer: idp.issuer, introspect: true, clientId: CLIENT.client_id,
        clientSecret: CLIENT.client_secret, requiredScopes: ['mcp'], ...provider } },
      roles: { user: ['corp/staff'] },
    },
  }));
  return Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
    dir, auth: true, house: true, oneProcess: 'each process asks the provider once', env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
}

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-opaque-'));
  idp = await new Idp(PEOPLE, [CLIENT], { format: 'opaque', options: {
    issueRefreshToken: () => true,
  } }).start();
  server = await start();
});
after(async () => {
  server?.signal('SIGTERM'); // its connection to the provider may be open
  await server?.stopClean();
  await idp?.stop();
  await rm(dir, { recursive: true });
});

/** The tokens of a person, as an official client gets them. */
async function tokens(person, { scope = 'mcp', resource = `${server.url}/mcp` } = {}) {
  const k = {
    redirectUrl: BACK,
    clientMetadata: { redirect_uris: [BACK], grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'], token_endpoint_auth_method: 'none' },
    clientInformation: () => k.client,
    saveClientInformation: (c) => { k.client = c; },
    tokens: () => k.kept,
    saveTokens: (t) => { k.kept = t; },
    saveCodeVerifier: (v) => { k.verifier = v; },
    codeVerifier: () => k.verifier,
    validateResourceURL: () => new URL(resource),
    async redirectToAuthorization(to) {
      const { at } = await new Visitor().visit(String(to), person, (u) => u.startsWith(BACK));
      k.code = new URL(at).searchParams.get('code');
    },
  };
  const how = { serverUrl: `${server.url}/mcp`, scope };
  await auth(k, how);
  await auth(k, { ...how, authorizationCode: k.code });
  assert.equal(k.kept.access_token.split('.').length, 1);
  return k.kept;
}

const once = (token) => fetch(`${server.url}/api/me`, { headers: { authorization: `Bearer ${token}` } });
/** Again while the provider is asked too often: this test knows no pause. */
async function ask(token) {
  let answer;
  await until(async () => {
    answer = await once(token);
    return answer.status !== 503;
  }, 'an answer');
  return answer;
}
const asked = () => idp.requests.filter((r) => r === '/token/introspection').length;

test('a good token, asked about once, also by many at the same time', async () => {
  const { access_token } = await tokens('ann');
  const before = asked();
  const all = await Promise.all(Array.from({ length: 20 }, () => once(access_token)));
  for (const answer of all)
    assert.deepEqual(await answer.json(), { name: 'corp:ann', role: 'user' });
  assert.equal((await ask(access_token)).status, 200);
  assert.equal(asked() - before, 1);
});

describe('refused', () => {
  test('unknown, and asked about once', async () => {
    const before = asked();
    for (let i = 0; i < 5; i++) {
      const answer = await ask('nonsense');
      assert.equal(answer.status, 401);
      assert.match(answer.headers.get('www-authenticate'), /error="invalid_token"/);
      assert.equal((await answer.json()).code, 'invalid_token');
    }
    assert.equal(asked() - before, 1);
  });
  test('for another audience', async () => {
    const { access_token } = await tokens('ann', { resource: 'https://other.test/mcp' });
    const answer = await ask(access_token);
    assert.equal(answer.status, 401);
    assert.match((await answer.json()).detail, /audience/);
  });
  test('a refresh token', async () => {
    const { refresh_token } = await tokens('ann');
    assert.equal((await ask(refresh_token)).status, 401);
  });
  test('a person without a role', async () => {
    const { access_token } = await tokens('nora');
    const answer = await ask(access_token);
    assert.equal(answer.status, 403);
    assert.equal((await answer.json()).code, 'no_role');
  });
  test('without a scope, with the list of them', async () => {
    const { access_token } = await tokens('ann', { scope: 'tools' });
    const answer = await ask(access_token);
    assert.equal(answer.status, 403);
    assert.match(answer.headers.get('www-authenticate'), /error="insufficient_scope", scope="mcp"/);
  });
  test('odd bytes and lengths', async () => {
    for (const odd of ['&token=x', 'a b', '%00', '"', 'é', 'x'.repeat(5000)])
      assert.equal((await ask(encodeURI(odd) === odd ? odd : `${encodeURI(odd)}`)).status, 401, odd);
  });
});

describe('the provider', () => {
  const lies = {
    'says yes and nothing else': { active: true },
    'says yes in quotes': { active: 'true' },
    'names another issuer': { iss: 'https://evil.test' },
    'names no audience': { aud: undefined },
    'names no end': { exp: undefined },
    'names an end in the past': { exp: 1000 },
    'has another type of token': { token_type: 'DPoP' },
    'has no type of token': { token_type: undefined },
    'names nobody': { sub: undefined },
  };
  const answer = (more) => (rq, rs) => {
    if (rq.url !== '/token/introspection') return false;
    rs.setHeader('content-type', 'application/json');
    rs.end(typeof more === 'string' ? more : JSON.stringify(more));
    return true;
  };
  const good = () => ({ active: true, iss: idp.issuer, aud: `${server.url}/mcp`, token_type: 'Bearer',
    exp: Date.now() / 1000 + 600, sub: 'ann', groups: ['staff'], scope: 'mcp' });

  test('other servers of its kind: a list of audiences, no issuer', async () => {
    idp.lie = answer({ ...good(), iss: undefined, aud: ['x', `${server.url}/mcp`], token_type: 'bearer' });
    assert.equal((await ask('another one')).status, 200);
  });
  for (const [name, more] of Object.entries(lies))
    test(name, async () => {
      idp.lie = answer(name.startsWith('says') ? more : { ...good(), ...more });
      assert.equal((await ask(`token of ${name}`.replaceAll(' ', '-'))).status, 401);
    });
  test('answers nonsense or an error: try again later, the token may be good', async () => {
    for (const [i, text] of ['<html>', '[]', ''].entries()) {
      idp.lie = answer(text);
      assert.equal((await once(`nonsense-${i}`)).status, 503);
    }
    idp.lie = (rq, rs) => rq.url === '/token/introspection' && !!rs.writeHead(500).end();
    assert.equal((await once('failing')).status, 503);
  });
  test('is not flooded by those who guess', async () => {
    idp.lie = undefined;
    const before = asked(), begun = Date.now();
    const all = await Promise.all(Array.from({ length: 300 }, (v, i) => once(`guess-${i}`)));
    const seconds = Math.ceil((Date.now() - begun) / 1000) + 1;
    assert.ok(asked() - before <= 20 * seconds, `${asked() - before} in ${seconds} s`);
    for (const a of all) assert.ok([401, 429, 503].includes(a.status), String(a.status));
  });
  test('is down: who is known stays for a while, nobody new comes in', async () => {
    await server.signal('SIGTERM');
    await server.stopClean();
    server = await start();
    const { access_token } = await tokens('ann');
    assert.equal((await ask(access_token)).status, 200);
    const other = (await tokens('ann')).access_token;
    idp.lie = (rq) => rq.url === '/token/introspection' && !!rq.socket.destroy();
    assert.equal((await ask(access_token)).status, 200);
    assert.equal((await once(other)).status, 503);
    idp.lie = undefined;
  });
});
