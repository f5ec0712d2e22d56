// Tokens of remote servers without a person: client credentials with a secret
// and with keys at oidc-provider, workload identity and enterprise-managed
// authorization at issuers of our own that note everything.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';

import { fixtureServer } from '../lib/gateway.mjs';
import { Idp } from '../lib/idp.mjs';
import { bin, named, run } from '../lib/mcp.mjs';
import { Server } from './server.mjs';

const HELLO = 'This is a simple text response for testing.\n';
const KEYS = {
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: generateKeyPairSync('ed25519'),
};
const pem = (pair) => pair.privateKey.export({ type: 'pkcs8', format: 'pem' });
let dir;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-machine-'));
});
after(() => rm(dir, { recursive: true }));

let n = 0;
/** Calls a tool of a server with this `oauth`. */
async function call(url, oauth, env = {}) {
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({ mcpServers: { r: { url, oauth } } }));
  return run(bin, ['call', 'r', 'test_simple_text'], { cwd: dir,
    env: { ...named(dir), MCP_ORCHESTRATOR_STATE_DIR: join(dir, `s${n++}`), ...env } });
}

describe('client credentials at oidc-provider', () => {
  let idp, server;
  before(async () => {
    const clients = [
      { client_id: 'robot', client_secret: 'a secret & more', token_endpoint_auth_method: 'client_secret_basic' },
      ...Object.entries(KEYS).map(([alg, pair]) => ({
        client_id: `robot-${alg}`, token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: alg,
        jwks: { keys: [{ ...pair.publicKey.export({ format: 'jwk' }), use: 'sig', alg }] } })),
    ].map((c) => ({ ...c, grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }));
    idp = new Idp({}, clients, { options: { extraTokenClaims: undefined,
      clientAuthMethods: ['client_secret_basic', 'private_key_jwt', 'none'],
      enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'EdDSA'], clientAuthSigningAlgValues: ['RS256', 'ES256', 'EdDSA'] } } });
    idp.features = { clientCredentials: { enabled: true } };
    await idp.start();
    await writeFile(join(dir, 'server.json'), JSON.stringify({
      mcpServers: { fixture: fixtureServer() },
      people: { providers: { corp: { issuer: idp.issuer, requiredScopes: ['mcp'] } },
        roles: { user: ['corp:robot', ...Object.keys(KEYS).map((a) => `corp:robot-${a}`)] } },
    }));
    server = await Server.start(['--config', join(dir, 'server.json')], {
      dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
  });
  after(async () => {
    await idp?.stop();
    server?.signal('SIGTERM');
    await server?.stopClean();
  });
  const url = () => `${server.url.replace('127.0.0.1', 'localhost')}/mcp`;

  test('with a secret', async () => {
    const oauth = { grant: 'client-credentials', clientId: 'robot', clientSecret: '${env:ROBOT}', issuer: idp.issuer };
    const got = await call(url(), oauth, { ROBOT: 'a secret & more' });
    assert.deepEqual([got.code, got.out], [0, HELLO], got.err);
    const wrong = await call(url(), oauth, { ROBOT: 'another' });
    assert.notEqual(wrong.code, 0);
    assert.match(wrong.err, /invalid_client/);
    assert.ok(!wrong.err.includes('another'), wrong.err);
  });

  for (const alg of Object.keys(KEYS))
    test(`with a key (${alg})`, async () => {
      const oauth = { grant: 'client-credentials', clientId: `robot-${alg}`, privateKey: '${env:KEY}', issuer: idp.issuer };
      const got = await call(url(), oauth, { KEY: pem(KEYS[alg]) });
      assert.deepEqual([got.code, got.out], [0, HELLO], got.err);
    });

  test('with another key, or one that is none', async () => {
    const oauth = { grant: 'client-credentials', clientId: 'robot-ES256', privateKey: '${env:KEY}', issuer: idp.issuer };
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    assert.match((await call(url(), oauth, { KEY: pem(other) })).err, /invalid_client/);
    for (const KEY of ['x', pem(generateKeyPairSync('ec', { namedCurve: 'P-384' })), pem(generateKeyPairSync('rsa', { modulusLength: 1024 })),
      KEYS.RS256.publicKey.export({ type: 'spki', format: 'pem' }),
      KEYS.RS256.privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'p' })]) {
      const got = await call(url(), oauth, { KEY });
      assert.notEqual(got.code, 0);
      assert.match(got.err, /oauth\.privateKey: not a private key/);
    }
  });
});

describe('assertions', () => {
  let issuer, idp, server, tell, asked, given;
  const json = (rs, status, body, more) => rs.writeHead(status, { 'content-type': 'application/json', ...more }).end(JSON.stringify(body));
  const body = async (rq) => {
    let all = '';
    for await (const p of rq) all += p;
    return Object.fromEntries(new URLSearchParams(all));
  };
  const open = async (handler) => {
    const s = http.createServer((rq, rs) => { handler(rq, rs).catch((e) => rs.destroy(e)); }).listen(0, '127.0.0.1');
    await once(s, 'listening');
    return s;
  };
  const at = (s, host = 'localhost') => `http://${host}:${s.address().port}`;
  before(async () => {
    issuer = await open(async (rq, rs) => {
      if (rq.url.startsWith('/.well-known/'))
        return json(rs, 200, { issuer: tell.issuer ?? at(issuer), token_endpoint: `${tell.issuer ?? at(issuer)}/token`,
          token_endpoint_auth_methods_supported: ['client_secret_basic', 'none'] });
      asked.push({ ...(await body(rq)), authorization: rq.headers.authorization });
      return tell.token ? tell.token(rs) : json(rs, 200, { access_token: `token-${asked.length}`, token_type: 'Bearer', expires_in: 60 });
    });
    idp = await open(async (rq, rs) => {
      given.push({ ...(await body(rq)), authorization: rq.headers.authorization });
      return tell.idp ? tell.idp(rs) : json(rs, 200, { access_token: 'the.id.jag', issued_token_type: 'urn:ietf:params:oauth:token-type:id-jag', token_type: 'N_A' });
    });
    server = await open(async (rq, rs) => {
      if (rq.url.startsWith('/.well-known/'))
        return json(rs, 200, { resource: `${at(server)}/mcp`, authorization_servers: [tell.issuer ?? at(issuer)] });
      tell.requests.push(rq.headers.authorization);
      return json(rs, 401, {}, { 'www-authenticate': `Bearer resource_metadata="${at(server)}/.well-known/oauth-protected-resource/mcp", scope="mcp"` });
    });
  });
  after(() => {
    for (const s of [issuer, idp, server]) {
      s.closeAllConnections();
      s.close();
    }
  });
  beforeEach(async () => {
    tell = { requests: [] };
    asked = [];
    given = [];
    await writeFile(join(dir, 'assertion'), 'header.claims.signature\n');
  });
  const workload = (more) => ({ grant: 'workload', assertionFile: join(dir, 'assertion'), ...more });
  const enterprise = (more) => ({ grant: 'enterprise', clientId: 'us', clientSecret: 's', assertionFile: join(dir, 'assertion'),
    identityProvider: { tokenEndpoint: `${at(idp, '127.0.0.1')}/token`, clientId: 'us-there' }, ...more });

  test('a workload: what is sent, and a server that refuses every token', async () => {
    const got = await call(`${at(server)}/mcp`, workload({ clientId: 'job' }));
    assert.equal(got.code, 4, got.err);
    assert.match(got.err, /refuses a new token/);
    assert.deepEqual(asked, [{ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: 'header.claims.signature', scope: 'mcp',
      resource: `${at(server)}/mcp`, client_id: 'job', authorization: undefined }]);
    assert.ok(tell.requests.includes('Bearer token-1'));
  });

  test('an issuer that refuses is asked once', async () => {
    for (const error of ['invalid_grant', 'invalid_scope', 'unauthorized_client']) {
      asked = [];
      tell.token = (rs) => json(rs, 400, { error });
      const got = await call(`${at(server)}/mcp`, workload());
      assert.equal(got.code, 4, got.err);
      assert.match(got.err, new RegExp(error));
      assert.equal(asked.length, 1);
    }
  });

  test('another host gets no assertion unless it is configured', async () => {
    tell.issuer = at(issuer, '127.0.0.1');
    const no = await call(`${at(server)}/mcp`, workload());
    assert.match(no.err, /is not sent to another host .*set oauth\.issuer to/);
    assert.deepEqual(asked, []);
    await call(`${at(server)}/mcp`, workload({ issuer: tell.issuer }));
    assert.equal(asked.length, 1);
  });

  test('a file that is missing, empty or no token', async () => {
    for (const [text, says] of [['', /is not a token/], ['a b', /is not a token/], ['x\r\ny', /is not a token/]]) {
      await writeFile(join(dir, 'assertion'), text);
      assert.match((await call(`${at(server)}/mcp`, workload())).err, says);
    }
    assert.match((await call(`${at(server)}/mcp`, workload({ assertionFile: join(dir, 'nowhere') }))).err, /nowhere/);
    assert.deepEqual(asked, []);
  });

  test('enterprise: both requests', async () => {
    await call(`${at(server)}/mcp`, enterprise());
    assert.deepEqual(given, [{ grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag', subject_token: 'header.claims.signature',
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token', audience: at(issuer), resource: `${at(server)}/mcp`,
      scope: 'mcp', client_id: 'us-there', authorization: undefined }]);
    assert.deepEqual(asked, [{ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: 'the.id.jag', scope: 'mcp',
      resource: `${at(server)}/mcp`, authorization: `Basic ${btoa('us:s')}` }]);
  });

  test('enterprise: an identity provider that refuses or lies', async () => {
    for (const [idpTells, says] of [
      [(rs) => json(rs, 400, { error: 'invalid_grant' }), /identity provider refused \(400\): invalid_grant/],
      [(rs) => json(rs, 503, {}), /identity provider refused \(503\)/],
      [(rs) => json(rs, 200, { access_token: 'an access token', issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' }), /another kind of token/],
      [(rs) => json(rs, 200, { access_token: 'x\r\ny: z', issued_token_type: 'urn:ietf:params:oauth:token-type:id-jag' }), /sent no token/],
      [(rs) => rs.end('<html>'), /not JSON/],
      [(rs) => rs.writeHead(302, { location: at(issuer) }).end(), /refused \(302\)/],
    ]) {
      tell.idp = idpTells;
      const got = await call(`${at(server)}/mcp`, enterprise());
      assert.equal(got.code, 4, got.err);
      assert.match(got.err, says);
    }
    assert.deepEqual(asked, []);
  });

  test('keys that do not fit are reported', async () => {
    for (const [oauth, says] of [
      [{ grant: 'client-credentials' }, /needs 'clientId'/],
      [{ grant: 'client-credentials', clientId: 'x' }, /needs 'clientSecret' or 'privateKey'/],
      [{ grant: 'workload' }, /needs 'assertionFile'/],
      [enterprise({ identityProvider: {} }), /needs 'identityProvider.tokenEndpoint'/],
      [{ grant: 'enterprise', assertionFile: 'x', identityProvider: { tokenEndpoint: 'https://x' } }, /needs 'identityProvider.clientId'/],
      [{ clientId: 'x', privateKey: 'x' }, /not used by the grant 'sign-in'/],
      [{ grant: 'password' }, /grant/],
    ]) {
      const got = await call(`${at(server)}/mcp`, oauth);
      assert.equal(got.code, 3, JSON.stringify(oauth) + got.err);
      assert.match(got.err, says);
    }
  });
});
