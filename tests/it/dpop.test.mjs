// Tokens that are bound to a key (DPoP, RFC 9449): as a client of strict
// servers, for persons with their own connections, and at our own /mcp.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { Proofs, Prover } from '../lib/dpop.mjs';
import { Idp } from '../lib/idp.mjs';
import { bin, cleanEnv, driver, named, run } from '../lib/mcp.mjs';
import { Whose, connect } from '../lib/whose.mjs';
import { Issuer, runAttended } from './issuer.mjs';
import { Server } from './server.mjs';

const initialize = JSON.stringify({
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
});
const MCP = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const post = (url, headers) => fetch(url, { method: 'POST', body: initialize, headers: { ...MCP, ...headers } });

describe('a client', () => {
  const HELLO = 'This is a simple text response for testing.\n';
  let fixture, upstream, dir, state, issuer;

  before(async () => {
    fixture = spawn(join(dirname(driver), '../fixture/fixture'), ['--http', '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(fixture.stdout.setEncoding('utf8'), 'data');
    upstream = line.trim();
  });
  after(async () => {
    const ended = once(fixture, 'exit');
    fixture.kill('SIGTERM');
    await ended;
  });
  beforeEach(async (t) => {
    dir = await mkdtemp(join(tmpdir(), 'mo-dpop-'));
    state = join(dir, 'state');
    issuer = new Issuer();
    issuer.dpop = { issuer: new Proofs(), server: new Proofs() };
    await issuer.start(upstream);
    t.after(async () => {
      await issuer.stop();
      await rm(dir, { recursive: true });
    });
  });

  const env = () => ({ ...named(dir), MCP_ORCHESTRATOR_STATE_DIR: state });
  const hello = () => ['call', '--url', issuer.resource, 'test_simple_text'];
  const cli = () => run(bin, hello(), { cwd: dir, env: env() });
  const kept = async () => JSON.parse(await readFile(join(state, 'tokens.json'), 'utf8')).tokens[0];
  const signIn = async () => {
    const got = await runAttended(bin, [...hello(), '--sign-in'], { cwd: dir, env: cleanEnv(env()) });
    assert.deepEqual([got.code, got.out], [0, HELLO], got.err);
    return got;
  };

  test('proves its key with every request; who steals the token has nothing', async () => {
    const { out, err } = await signIn();
    const { access_token: stolen, refresh_token, dpop_key, client_id } = await kept();
    assert.match(issuer.lastAuthorize.dpop_jkt, /^[\w-]{43}$/);
    assert.equal(issuer.access.get(stolen).jkt, issuer.lastAuthorize.dpop_jkt);
    assert.ok(!(out + err).includes(dpop_key.split('\n')[1]));
    assert.equal(issuer.dpop.issuer.count, 1);
    assert.ok(issuer.dpop.server.count >= 2, 'every request has a proof');
    assert.deepEqual(issuer.wrong, []);
    const thief = new Prover();
    for (const headers of [
      { authorization: `Bearer ${stolen}` },
      { authorization: `DPoP ${stolen}` },
      { authorization: `DPoP ${stolen}`, dpop: thief.prove('POST', issuer.resource, stolen) },
    ])
      assert.equal((await post(issuer.resource, headers)).status, 401);
    const refreshed = await fetch(`${issuer.issuer}/token`, {
      method: 'POST', headers: { dpop: thief.prove('POST', `${issuer.issuer}/token`), 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token, client_id, resource: issuer.resource }).toString() });
    assert.deepEqual([refreshed.status, await refreshed.json()], [400, { error: 'invalid_grant' }]);
  });

  test('refreshes in another process with the same key', async () => {
    await signIn();
    const first = await kept();
    for (let i = 1; i <= 2; i++) {
      issuer.expireAll();
      const { code, out, err } = await cli();
      assert.deepEqual([code, out, err], [0, HELLO, '']);
      assert.equal(issuer.seen.refreshed, i);
    }
    const now = await kept();
    assert.equal(now.dpop_key, first.dpop_key);
    assert.notEqual(now.access_token, first.access_token);
    assert.deepEqual([issuer.seen.codes, issuer.wrong], [1, []]);
  });

  test('uses the nonces of both servers, which differ and change', async () => {
    issuer.dpop.issuer.turn();
    issuer.dpop.server.turn();
    await signIn();
    assert.deepEqual([issuer.dpop.issuer.asked, issuer.dpop.server.asked], [1, 1]);
    issuer.expireAll();
    issuer.dpop.issuer.turn();
    issuer.dpop.server.turn();
    const { code, out, err } = await cli();
    assert.deepEqual([code, out, err], [0, HELLO, '']);
    assert.deepEqual([issuer.seen.codes, issuer.seen.refreshed, issuer.wrong], [1, 1, []]);
  });

  test('gives up at a server that never accepts its own nonce', async () => {
    await signIn();
    const { check } = Proofs.prototype;
    issuer.dpop.server.check = function (...args) { // a new one for each request
      this.turn();
      return check.apply(this, args);
    };
    const before = issuer.dpop.server.asked;
    const { code, err } = await cli();
    assert.notEqual(code, 0);
    assert.match(err, /nonce/);
    assert.ok(issuer.dpop.server.asked - before <= 4, `${issuer.dpop.server.asked}`);
    assert.deepEqual([issuer.seen.codes, issuer.seen.refreshed], [1, 0]);
  });

  test('sends Bearer to a server that asks for it, although its issuer knows proofs', async () => {
    issuer.dpop.bearer = true;
    await signIn();
    assert.equal(issuer.lastAuthorize.dpop_jkt, undefined);
    assert.equal((await kept()).dpop_key, undefined);
    issuer.expireAll();
    assert.equal((await cli()).code, 0);
    assert.deepEqual([issuer.seen.refreshed, issuer.wrong], [1, []]);
  });
});

describe('connections of persons', () => {
  const TOKENS = { ann: 'ann-0123456789abcdef0123', bob: 'bob-0123456789abcdef0123' };
  const as = (who) => ({ authorization: `Bearer ${TOKENS[who]}` });
  let dir, whose, server;

  const start = async () => {
    server = await Server.start([], { dir, auth: true, env: { ...named(dir), MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
  };
  const end = async () => {
    server.child.kill('SIGTERM');
    assert.equal((await server.exit).code, 0, server.log);
    assert.doesNotMatch(server.log, /runtime error|Sanitizer/);
  };
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-dpop-'));
    whose = await new Whose(1, { dpop: new Proofs() }).start();
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      mcpServers: whose.config(), gateway: { prefix: 'always' }, approvals: { default: 'allow' },
      server: { token: 'op-0123456789abcdef012345', tokens: TOKENS },
    }));
    await start();
  });
  after(async () => {
    await end();
    await whose.stop();
    await rm(dir, { recursive: true, force: true });
  });

  async function whoami(who, n) {
    const c = new Client({ name: 'it', version: '1' });
    await c.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers: as(who) } }));
    const r = await c.callTool({ name: 's0_whoami', arguments: { n } });
    await c.close();
    return JSON.parse(r.content[0].text).user;
  }

  test('each person has a key; it is sealed and outlives a restart', async () => {
    whose.dpop.turn();
    for (const who of ['ann', 'bob']) assert.equal((await connect(server.url, as(who), 's0', `${who}@there`)).status, 200);
    assert.deepEqual(await Promise.all(['ann', 'bob', 'ann'].map(whoami)), ['ann@there', 'bob@there', 'ann@there']);
    const keys = [...whose.server('s0').access.values()].map((t) => t.jkt);
    assert.equal(new Set(keys).size, 2);
    assert.ok(keys.every((k) => /^[\w-]{43}$/.test(k)));
    await end();
    const files = await readdir(join(dir, 'state', 'connections'));
    for (const f of files) assert.doesNotMatch(await readFile(join(dir, 'state', 'connections', f), 'latin1'), /PRIVATE KEY|dpop_key/);
    await start();
    whose.expireAll();
    whose.dpop.turn();
    assert.equal(await whoami('bob', 1), 'bob@there');
    assert.equal(whose.seen.refreshed, 1);
    assert.equal([...whose.server('s0').access.values()].at(-1).jkt, keys[1]);
    assert.deepEqual([whose.seen.codes, whose.wrong], [2, []]);
  });
});

describe('our /mcp', () => {
  let dir, idp, server, resource, seen;

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-dpop-'));
    idp = await new Idp({ ann: { groups: ['staff'] } }).start();
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      mcpServers: {},
      people: { providers: { corp: { issuer: idp.issuer } }, roles: { user: ['corp/staff'] } },
    }));
    server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
      dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
    });
    resource = `${server.url}/mcp`;
    seen = new Prover();
  });
  after(async () => {
    server.child.kill('SIGTERM');
    assert.equal((await server.exit).code, 0, server.log);
    await idp.stop();
    await rm(dir, { recursive: true });
  });

  const token = (cnf) => idp.token({ sub: 'ann', aud: resource, groups: ['staff'], jti: String(Math.random()), ...(cnf && { cnf }) });
  const bound = (who = seen) => token({ jkt: who.jkt });
  const ask = (t, dpop) => post(resource, { authorization: `DPoP ${t}`, ...(dpop && { dpop }) });

  test('its metadata says so', async () => {
    const meta = await (await fetch(`${server.url}/.well-known/oauth-protected-resource/mcp`)).json();
    assert.deepEqual(meta.dpop_signing_alg_values_supported, ['RS256', 'ES256', 'EdDSA']);
  });

  for (const alg of ['ES256', 'EdDSA', 'RS256'])
    test(`a proof with ${alg} is good once, again and again with new ones`, async () => {
      const who = new Prover(alg);
      const t = bound(who);
      const proof = who.prove('POST', resource, t);
      assert.deepEqual([(await ask(t, proof)).status, (await ask(t, proof)).status], [200, 401]);
      assert.equal((await ask(t, who.prove('POST', `${resource}?q=1#f`, t))).status, 200);
    });

  test('the address of another path is proved there', async () => {
    const t = bound();
    const me = (url) => fetch(`${server.url}/api/me`, { headers: { authorization: `DPoP ${t}`, dpop: seen.prove('GET', url, t) } });
    assert.equal((await me(`${server.url}/api/me`)).status, 200);
    assert.equal((await me(resource)).status, 401);
  });

  test('a bound token is not taken as Bearer, nor another one as bound', async () => {
    const t = bound();
    const no = await post(resource, { authorization: `Bearer ${t}` });
    assert.equal(no.status, 401);
    assert.match(no.headers.get('www-authenticate'), /^DPoP algs="RS256 ES256 EdDSA", resource_metadata="[^"]+", error="invalid_dpop_proof"$/);
    assert.match((await no.json()).detail, /bound to a key: send it as DPoP/);
    assert.equal((await post(resource, { authorization: `Bearer ${t}`, dpop: seen.prove('POST', resource, t) })).status, 401);
    const plain = token();
    assert.equal((await post(resource, { authorization: `Bearer ${plain}` })).status, 200);
    assert.equal((await ask(plain, seen.prove('POST', resource, plain))).status, 401);
    assert.match((await post(resource, {})).headers.get('www-authenticate'), /^Bearer /);
  });

  const rows = {
    'no proof': () => undefined,
    'the key of a thief': (t) => new Prover().prove('POST', resource, t),
    'the owner\'s key with the signature of a thief': (t) => new Prover().prove('POST', resource, t, { header: { jwk: seen.jwk } }),
    'for GET': (t) => seen.prove('GET', resource, t),
    'for another server': (t) => seen.prove('POST', 'https://evil.test/mcp', t),
    'for another token': () => seen.prove('POST', resource, 'x'),
    'without the token': () => seen.prove('POST', resource),
    'old': (t) => seen.prove('POST', resource, t, { claims: { iat: Math.floor(Date.now() / 1000) - 90 } }),
    'of tomorrow': (t) => seen.prove('POST', resource, t, { claims: { iat: Math.floor(Date.now() / 1000) + 90 } }),
    'without a date': (t) => seen.prove('POST', resource, t, { claims: { iat: undefined } }),
    'without an id': (t) => seen.prove('POST', resource, t, { claims: { jti: undefined } }),
    'of another type': (t) => seen.prove('POST', resource, t, { header: { typ: 'JWT' } }),
    'alg none': (t) => seen.prove('POST', resource, t, { header: { alg: 'none' } }),
    'alg HS256': (t) => seen.prove('POST', resource, t, { header: { alg: 'HS256' } }),
    'with the private key in it': (t) => seen.prove('POST', resource, t, { header: { jwk: seen.key } }),
    'with a critical extension': (t) => seen.prove('POST', resource, t, { header: { crit: ['x'], x: 1 } }),
    'no JWT': () => 'x.y',
  };
  for (const [name, make] of Object.entries(rows))
    test(`refused: ${name}`, async () => {
      const t = bound();
      const no = await ask(t, make(t));
      assert.equal(no.status, 401);
      assert.match(no.headers.get('www-authenticate'), /^DPoP .*error="invalid_dpop_proof"$/);
    });

  // From another address: too many refusals of one peer are answered with 429.
  async function elsewhere(headers) {
    const rq = request(resource, { method: 'POST', localAddress: '127.0.0.2', headers: { ...MCP, ...headers } }).end(initialize);
    const [rs] = await once(rq, 'response');
    rs.resume();
    return rs.statusCode;
  }

  test('refused: two proofs', async () => {
    const t = bound();
    const proof = () => seen.prove('POST', resource, t);
    assert.equal(await elsewhere({ authorization: `DPoP ${t}`, dpop: [proof(), proof()] }), 401);
    assert.equal(await elsewhere({ authorization: `DPoP ${t}`, dpop: proof() }), 200);
  });

  test('refused: bound to a certificate, or to what nobody knows', async () => {
    for (const cnf of [{ 'x5t#S256': seen.jkt }, { jkt: seen.jkt, 'x5t#S256': seen.jkt }, { jwk: seen.jwk }, {}, 'x']) {
      const t = token(cnf);
      assert.equal(await elsewhere({ authorization: `Bearer ${t}` }), 401, JSON.stringify(cnf));
      assert.equal(await elsewhere({ authorization: `DPoP ${t}`, dpop: seen.prove('POST', resource, t) }), 401, JSON.stringify(cnf));
    }
  });
});
