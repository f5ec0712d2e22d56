// /mcp as a protected resource: access tokens of a real provider, and tokens
// that nobody should be able to use.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { io } from 'socket.io-client';

import { Idp, newKey } from '../lib/idp.mjs';
import { Server, until, within } from './server.mjs';

const PEOPLE = {
  ann: { groups: ['staff'], email: 'ann@example.test', email_verified: true },
  olga: { groups: ['admins', 'staff'] },
  nora: { groups: [] },
};

let dir, idp, server, resource;

const configure = (people = {}, more = {}) => writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
  mcpServers: {},
  people: {
    providers: { corp: { issuer: idp.issuer, ...people.provider } },
    roles: { operator: ['corp/admins'], user: ['corp/staff'], viewer: ['corp:vic'], ...people.roles },
  },
  ...more,
}));

async function start(people = {}) {
  await configure(people);
  const s = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
    dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
    oneProcess: 'each process reads the keys of an issuer; here they are counted and withheld',
  });
  resource = `${s.url}/mcp`;
  await warm(s);
  return s;
}

// The connection to the provider stays open for a while.
async function warm(s) {
  const answer = await fetch(`${s.url}/api/me`, {
    headers: { authorization: `Bearer ${idp.token({ sub: 'ann', aud: `${s.url}/mcp`, groups: ['staff'] })}` } });
  await answer.text();
  s.fresh = await s.settled();
}

const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
});
const ask = (token, path = '/mcp', options = {}) => fetch(server.url + path, {
  method: path === '/mcp' ? 'POST' : 'GET',
  ...(path === '/mcp' && { body: initialize }),
  ...options,
  headers: {
    'content-type': 'application/json', accept: 'application/json, text/event-stream',
    ...(token && { authorization: `Bearer ${token}` }), ...options.headers,
  },
});

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-jwt-'));
  idp = await new Idp(PEOPLE).start();
  server = await start();
});
after(async () => {
  await server?.stop();
  await idp?.stop();
  await rm(dir, { recursive: true });
});

const good = (more, how) => idp.token({ sub: 'ann', aud: resource, groups: ['staff'], ...more }, how);

describe('what a client is told', () => {
  test('the challenge names the metadata, the metadata the provider', async () => {
    const no = await ask();
    assert.equal(no.status, 401);
    const challenge = no.headers.get('www-authenticate');
    const url = challenge.match(/resource_metadata="([^"]+)"/)[1];
    assert.equal(url, `${server.url}/.well-known/oauth-protected-resource/mcp`);
    assert.doesNotMatch(challenge, /error=/);
    const meta = await (await fetch(url)).json();
    assert.equal(meta.resource, resource);
    assert.deepEqual(meta.authorization_servers, [idp.issuer]);
    assert.deepEqual(meta.bearer_methods_supported, ['header']);
    const root = await (await fetch(`${server.url}/.well-known/oauth-protected-resource`)).json();
    assert.deepEqual(root, meta);
  });

  test('the Host header changes nothing of it', async () => {
    const answer = await fetch(`${server.url}/.well-known/oauth-protected-resource/mcp`, { headers: { 'x-forwarded-host': 'evil.test' } });
    assert.equal((await answer.json()).resource, resource);
  });
});

describe('tokens that are good', () => {
  for (const alg of ['RS256', 'ES256', 'EdDSA'])
    test(alg, async () => {
      const answer = await ask(good({}, { alg }));
      assert.equal(answer.status, 200, await answer.clone().text());
      await answer.text();
    });
  test('an audience among others, a date with a fraction', async () => {
    assert.equal((await ask(good({ aud: ['x', resource], exp: Date.now() / 1000 + 60.5 }))).status, 200);
  });
  test('a key without a name is found by trying', async () => {
    assert.equal((await ask(good({}, { header: { kid: undefined } }))).status, 200);
  });
});

describe('tokens that are not', () => {
  const rows = {
    'expired': () => good({ exp: Math.floor(Date.now() / 1000) - 60 }),
    'without an end': () => good({ exp: undefined }),
    'not valid yet': () => good({ nbf: Math.floor(Date.now() / 1000) + 600 }),
    'for another audience': () => good({ aud: 'https://other.test/mcp' }),
    'for the server, not /mcp': () => good({ aud: server.url }),
    'without an audience': () => good({ aud: undefined }),
    'of another issuer': () => good({ iss: 'https://evil.test' }),
    'of the issuer with a slash': () => good({ iss: `${idp.issuer}/` }),
    'with issuers in a list': () => good({ iss: [idp.issuer] }),
    'alg none': () => good({}, { alg: 'none', signature: '' }),
    'alg none with a signature': () => good({}, { alg: 'none', signature: 'c2ln' }),
    'signed by another key of that name': () => good({}, { key: newKey('ES256', 'ES256-1') }),
    'signed with a key it brings along': () => {
      const key = newKey('ES256', 'ES256-1');
      return good({}, { key, header: { jwk: { ...key, d: undefined }, jku: 'https://evil.test/keys' } });
    },
    'signed by an RSA key that is said to be EC': () => good({}, {
      alg: 'RS256', header: { alg: 'ES256' } }),
    'an HMAC with the public key': () => {
      const jwk = idp.keys.find((k) => k.alg === 'RS256');
      const [head, body] = good({}, { alg: 'RS256', signature: '', header: { alg: 'HS256' } }).split('.');
      return `${head}.${body}.${createHmac('sha256', jwk.n).update(`${head}.${body}`).digest('base64url')}`;
    },
    'with a changed claim': () => {
      const [head, , sig] = good().split('.');
      const body = Buffer.from(JSON.stringify({ iss: idp.issuer, sub: 'olga', aud: resource,
        groups: ['admins'], exp: 4e9 })).toString('base64url');
      return `${head}.${body}.${sig}`;
    },
    'with a critical extension': () => good({}, { header: { crit: ['exp'] } }),
    'without a name': () => good({ sub: undefined }),
    'with a number for a name': () => good({ sub: 7 }),
    'with an empty name': () => good({ sub: '' }),
    'with an endless name': () => good({ sub: 'x'.repeat(5000) }),
    'cut': () => good().slice(0, -3),
  };
  for (const [name, make] of Object.entries(rows))
    test(name, async () => {
      const answer = await ask(make());
      assert.equal(answer.status, 401, name);
      assert.match(answer.headers.get('www-authenticate'), /error="invalid_token"/);
      const problem = await answer.json();
      assert.equal(problem.code, 'invalid_token');
      assert.ok(problem.detail.length > 10);
    });

  test('far too long', async () => {
    assert.equal((await ask(good({ pad: 'x'.repeat(13000) }))).status, 431);
  });

  test('the refusal is in the audit log, the token is nowhere', async () => {
    const bad = good({ exp: 1000 });
    await ask(bad);
    await until(async () => (await (await fetch(`${server.url}/api/audit?q=invalid_token`, {
      headers: { authorization: `Bearer ${good({ sub: 'olga', groups: ['admins'] })}` } })).json()).rows.length > 0,
    'a row about the refusal');
    for (const name of await readdir(join(dir, 'state'), { recursive: true }))
      if (!name.endsWith('.sock'))
        assert.equal((await readFile(join(dir, 'state', name)).catch(() => Buffer.alloc(0)))
          .includes(bad.split('.')[2]), false, name);
  });
});

describe('roles', () => {
  const me = async (claims) => (await ask(good(claims), '/api/me')).json();
  test('from a group, by name, the highest counts', async () => {
    assert.deepEqual(await me(), { name: 'corp:ann', role: 'user' });
    assert.deepEqual(await me({ sub: 'olga', groups: ['staff', 'admins'] }), { name: 'corp:olga', role: 'operator' });
    assert.deepEqual(await me({ sub: 'vic', groups: [] }), { name: 'corp:vic', role: 'viewer' });
    assert.deepEqual(await me({ sub: 'one', groups: 'staff' }), { name: 'corp:one', role: 'user' });
  });
  test('claims of odd types give no role', async () => {
    for (const groups of [{ admins: true }, 7, [['admins']], [null], true, null, 'Admins', ['admins ']]) {
      const answer = await ask(good({ sub: 'nora', groups }), '/api/me');
      assert.equal(answer.status, 403, JSON.stringify(groups));
      assert.equal((await answer.json()).code, 'no_role');
    }
  });
  test('a name cannot pass for another', async () => {
    for (const sub of ['corp:vic', 'vic\n', ' vic', 'VIC', 'vic%', '*', 'vic/../x'])
      assert.equal((await ask(good({ sub, groups: [] }), '/api/me')).status, 403, sub);
    const odd = await me({ sub: 'a b"\n<c>' });
    assert.equal(odd.name, 'corp:a%20b%22%0A%3Cc%3E');
    // A long name is replaced by its digest, and nobody else has that.
    const long = (await me({ sub: 'x'.repeat(200) })).name;
    assert.match(long, /^corp:~[0-9a-f]{32}$/);
    for (const sub of [long.slice(5), long.slice(6)]) assert.notEqual((await me({ sub })).name, long);
    assert.notEqual((await me({ sub: 'x'.repeat(201) })).name, long);
  });
  test('a viewer calls no tools, a user changes no rules', async () => {
    assert.equal((await ask(good({ sub: 'vic', groups: [] }))).status, 403);
    assert.equal((await ask(good(), '/api/rules')).status, 403);
    assert.equal((await ask(good({ sub: 'olga', groups: ['admins'] }), '/api/rules')).status, 200);
  });
  test('changed roles close the sockets that a token has open, another change does not', async (t) => {
    const token = good({ sub: 'olga', groups: ['admins', 'staff'] });
    const socket = io(server.url, { extraHeaders: { authorization: `Bearer ${token}` }, transports: ['websocket'],
      query: { sessionId: 'olgas' }, reconnection: false });
    t.after(async () => {
      socket.close();
      await configure();
      await server.reload();
    });
    await new Promise((ok, no) => socket.once('connect', ok).once('connect_error', no));
    const closed = new Promise((ok) => socket.once('disconnect', ok));
    await configure({}, { log: { level: 'debug' } });
    await server.reload();
    assert.equal((await (await ask(token, '/api/me')).json()).role, 'operator');
    assert.ok(socket.connected);
    await configure({ roles: { operator: ['corp/others'] } });
    await server.reload();
    await within(closed, 'the end of the socket');
    assert.equal((await (await ask(token, '/api/me')).json()).role, 'user');
  });
});

describe('the provider', () => {
  test('new keys are found when a token needs them, and not asked for by every guess', async () => {
    idp.rotate(2);
    const seen = idp.requests.length;
    for (let i = 0; i < 5; i++)
      assert.equal((await ask(good({}, { key: newKey('ES256', `guess-${i}`) }))).status, 401);
    assert.ok(idp.requests.length - seen <= 2, 'one reading of metadata and keys');
  });

  test('is slow, lies, is down: who has a token stays, nobody new comes in', async (t) => {
    const other = await mkdtemp(join(tmpdir(), 'mo-jwt-'));
    const own = await new Idp(PEOPLE).start();
    await writeFile(join(other, 'mcp-orchestrator.json'), JSON.stringify({ mcpServers: {},
      people: { providers: { corp: { issuer: own.issuer } }, roles: { user: ['corp:*'] } } }));
    const s = await Server.start(['--config', join(other, 'mcp-orchestrator.json')], {
      oneProcess: 'each worker reads the keys of a provider by itself',
      dir: other, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(other, 'state') } });
    t.after(async () => {
      await s.stop();
      await rm(other, { recursive: true });
    });
    const claims = { sub: 'ann', aud: `${s.url}/mcp` };
    const me = (token) => fetch(`${s.url}/api/me`, { headers: { authorization: `Bearer ${token}` } });
    // It names another issuer in its metadata.
    own.lie = (rq, rs) => {
      if (!rq.url.includes('.well-known')) return false;
      rs.setHeader('content-type', 'application/json');
      rs.end(JSON.stringify({ issuer: 'https://evil.test', authorization_endpoint: `${own.issuer}/auth`,
        token_endpoint: `${own.issuer}/token`, jwks_uri: `${own.issuer}/jwks`,
        code_challenge_methods_supported: ['S256'] }));
      return true;
    };
    assert.equal((await me(own.token(claims))).status, 401);
    own.lie = undefined;
    const first = own.token(claims);
    // It was asked a moment ago: the next question is allowed ten seconds later.
    let answer;
    for (let i = 0; i < 60; i++) {
      answer = await me(first);
      if (answer.status === 200) break;
      await new Promise((r) => setTimeout(r, 500));
    }
    assert.equal(answer.status, 200);
    s.fresh = await s.settled();
    await own.stop();
    assert.equal((await me(first)).status, 200);
    assert.equal((await me(own.token({ ...claims, sub: 'olga' }))).status, 200, 'the keys are known');
    assert.equal((await me(own.token(claims, { key: newKey('ES256', 'new') }))).status, 401);
  });
});

describe('scopes and names', () => {
  test('a missing scope is named, so that the client can ask for it', async (t) => {
    await server.stop();
    server = await start({ provider: { requiredScopes: ['mcp', 'tools:call'], nameClaim: 'email' } });
    const email = { email: 'ann@example.test', email_verified: true };
    const no = await ask(good({ scope: 'openid mcp', ...email }));
    assert.equal(no.status, 403);
    assert.match(no.headers.get('www-authenticate'), /error="insufficient_scope", scope="mcp tools:call"/);
    assert.equal((await ask(good({ scope: 'tools:call mcp', ...email }))).status, 200);
    assert.equal((await ask(good({ scp: ['tools:call', 'mcp'], ...email }))).status, 200);
    assert.equal((await ask(good({ scope: 'tools:callmcp', ...email }))).status, 403);
    assert.equal((await ask(good({ scope: ['mcp', 'tools:call'], ...email }))).status, 403);
    const meta = await (await fetch(`${server.url}/.well-known/oauth-protected-resource/mcp`)).json();
    assert.deepEqual(meta.scopes_supported, ['mcp', 'tools:call']);
  });
  test('an e-mail address counts only if it is verified', async () => {
    const scope = 'mcp tools:call', email = 'ann@example.test';
    assert.equal((await ask(good({ scope, email }))).status, 401);
    assert.equal((await ask(good({ scope, email, email_verified: false }))).status, 401);
    assert.equal((await ask(good({ scope, email, email_verified: 'true' }))).status, 401);
    const answer = await ask(good({ scope, email, email_verified: true }), '/api/me');
    assert.equal((await answer.json()).name, 'corp:ann@example.test');
  });
});
