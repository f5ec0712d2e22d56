// Signing in with an OpenID Connect provider, as a browser does it.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { io } from 'socket.io-client';

import { Idp, Visitor } from '../lib/idp.mjs';
import { Server, until } from './server.mjs';

const LONG = `ann.${'x'.repeat(74)}@example.test`; // with "corp:" the longest name there is
const PEOPLE = {
  ann: { groups: ['staff'], email: 'ann@example.test', email_verified: true },
  olga: { groups: ['admins'] },
  nora: { groups: [] },
  [LONG]: { groups: ['staff'] },
};
let dir, idp, second, server;

const config = (more = {}) => ({
  mcpServers: {},
  llm: { provider: 'demo' },
  people: {
    providers: {
      corp: { issuer: idp.issuer, title: 'Corp & Co', clientId: 'page', clientSecret: 'a secret of this client',
        scopes: ['groups', 'email', 'offline_access'] },
      other: { issuer: second.issuer, clientId: 'page', clientSecret: 'a secret of this client' },
      tokens: { issuer: 'https://tokens.example.test' },
    },
    roles: { operator: ['corp/admins'], user: ['corp/staff'], viewer: ['other:*'], ...more },
  },
});
const write = (more) => writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify(config(more)));
const client = (port, name) => ({
  client_id: 'page', client_secret: 'a secret of this client',
  grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
  redirect_uris: [`http://localhost:${port}/sign-in/${name}/callback`],
});

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-oidc-'));
  idp = await new Idp(PEOPLE).start();
  second = await new Idp({ ann: {} }).start();
  await write();
  server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
    dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
  });
  const { port } = new URL(server.url);
  for (const [i, name] of [[idp, 'corp'], [second, 'other']]) {
    i.clients = [client(port, name)];
    i.make();
  }
  await signIn('ann'); // the connection to the provider stays open for a while
  server.fresh = await server.settled();
  if (server.hasWorkers) server.fresh.fds += 3; // each keeps one to every provider of these tests
});
after(async () => {
  try {
    await server?.stop();
  } finally {
    await idp?.stop();
    await second?.stop();
    await rm(dir, { recursive: true });
  }
});

const home = () => server.url.replace('127.0.0.1', 'localhost');
async function signIn(who, provider = 'corp', visitor = new Visitor()) {
  const end = await visitor.visit(`${home()}/sign-in/${provider}`, who);
  return { visitor, ...end };
}
const me = async (visitor) => {
  const answer = await visitor.fetch(`${home()}/api/me`);
  return answer.status === 200 ? answer.json() : answer.status;
};
/** The open event stream of an MCP client that has this cookie. */
async function eventStream(cookie) {
  const headers = { cookie, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const hello = await fetch(`${home()}/mcp`, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1,
    method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } } }) });
  assert.equal(hello.status, 200, await hello.text());
  const stream = await fetch(`${home()}/mcp`, { headers: { ...headers, 'mcp-session-id': hello.headers.get('mcp-session-id') } });
  assert.equal(stream.status, 200);
  return stream;
}
const rows = async (visitor, q) => (await (await visitor.fetch(`${home()}/api/audit?q=${q}`)).json()).rows;

describe('signing in', () => {
  test('the page offers the providers in which one can', async () => {
    for (const path of ['/', '/sign-in.html']) {
      const html = await (await fetch(home() + path)).text();
      assert.match(html, /href="\/sign-in\/corp">Sign in with Corp &#38; Co<\/a>/);
      assert.match(html, /href="\/sign-in\/other">Sign in with other/);
      assert.doesNotMatch(html, /\/sign-in\/tokens/);
    }
    assert.equal((await fetch(`${home()}/sign-in/tokens`)).status, 404);
    assert.equal((await fetch(`${home()}/sign-in/nobody`)).status, 404);
  });

  test('ends on the page, as oneself', async () => {
    const { visitor, at, answer } = await signIn('ann');
    assert.equal(at, `${home()}/`);
    assert.equal(answer.status, 200);
    assert.deepEqual(await me(visitor), { name: 'corp:ann', role: 'user' });
    const [name, value] = [...visitor.cookies(home())].find(([k]) => /^mo_\d+$/.test(k));
    assert.match(value, /^mol_[\w-]{40}$/);
    assert.ok(name);
    const olga = (await signIn('olga')).visitor;
    assert.deepEqual(await me(olga), { name: 'corp:olga', role: 'operator' });
    await until(async () => (await rows(olga, 'signed in')).some((r) => r.what.who === 'corp:ann' && r.what.door === 'sign-in'), 'its row');
  });

  test('the same name at another provider is somebody else', async () => {
    const { visitor } = await signIn('ann', 'other');
    assert.deepEqual(await me(visitor), { name: 'other:ann', role: 'viewer' });
  });

  test('nobody without a role', async () => {
    const { visitor, answer } = await signIn('nora');
    assert.equal(answer.status, 403);
    assert.equal((await answer.json()).code, 'no_role');
    assert.equal(await me(visitor), 401);
  });

  test('by another name of this machine leads to the right one', async () => {
    const visitor = new Visitor();
    const { at } = await visitor.visit(`${server.url.replace('localhost', '127.0.0.1')}/sign-in/corp`, 'ann');
    assert.equal(at, `${home()}/`);
    assert.deepEqual(await me(visitor), { name: 'corp:ann', role: 'user' });
  });

  test('a conversation of somebody with a long name', async (t) => {
    const { visitor } = await signIn(LONG);
    const cookie = [...visitor.cookies(home())].map(([k, v]) => `${k}=${v}`).join('; ');
    const socket = io(home(), { extraHeaders: { cookie }, query: { sessionId: 'long' }, transports: ['websocket'], reconnection: false });
    t.after(() => socket.close());
    await new Promise((ok, no) => socket.once('system:ready', ok).once('error', no).once('connect_error', no));
    const { sessions } = await (await visitor.fetch(`${home()}/api/sessions`)).json();
    assert.deepEqual(sessions.map((x) => x.id), ['long']);
    const olga = (await signIn('olga')).visitor;
    const refused = await visitor.fetch(`${home()}/api/rules`);
    assert.equal(refused.status, 403);
    await until(async () => (await rows(olga, 'refused')).some((r) => r.what.who === `corp:${LONG}`), 'its row');
  });

  test('a conversation is one\'s own', async (t) => {
    const ann = (await signIn('ann')).visitor, other = (await signIn('ann', 'other')).visitor;
    const cookie = (v) => [...v.cookies(home())].map(([k, x]) => `${k}=${x}`).join('; ');
    const socket = io(home(), { extraHeaders: { cookie: cookie(ann) }, query: { sessionId: 'anns' }, transports: ['websocket'] });
    t.after(() => socket.close());
    await new Promise((ok, no) => socket.once('agent:ready', ok).once('session:ready', ok).once('connect', ok).once('connect_error', no));
    await until(async () => (await (await ann.fetch(`${home()}/api/sessions`)).json()).sessions.length > 0, 'the session');
    assert.deepEqual((await (await other.fetch(`${home()}/api/sessions`)).json()).sessions, []);
    assert.equal((await other.fetch(`${home()}/api/sessions/anns`)).status, 404);
  });
});

describe('what must not work', () => {
  /** A sign-in that has come back from the provider and is not finished. */
  async function almost(who = 'ann') {
    const visitor = new Visitor();
    const { at } = await visitor.visit(`${home()}/sign-in/corp`, who, (u) => u.includes('/callback'));
    return { visitor, at };
  }

  test('finishing in another browser (login CSRF), or twice', async () => {
    const { visitor, at } = await almost();
    const victim = new Visitor();
    assert.equal((await victim.fetch(at)).status, 403);
    assert.equal(await me(victim), 401);
    await victim.visit(`${home()}/sign-in/corp`, 'ann', (u) => u.startsWith(idp.issuer)); // has a beginning of its own
    assert.equal((await victim.fetch(at)).status, 403);
    assert.equal((await visitor.fetch(at)).status, 200);
    assert.equal((await visitor.fetch(at)).status, 403, 'a code is good once');
  });

  test('another state, code, issuer or provider', async () => {
    for (const change of [
      (u) => u.searchParams.set('state', 'x'.repeat(32)),
      (u) => u.searchParams.delete('state'),
      (u) => u.searchParams.append('state', u.searchParams.get('state')),
      (u) => u.searchParams.set('code', 'guess'),
      (u) => u.searchParams.set('iss', second.issuer),
      (u) => u.searchParams.delete('iss'),
      (u) => { u.pathname = u.pathname.replace('/corp/', '/other/'); },
      (u) => u.searchParams.set('error', 'access_denied'),
    ]) {
      const { visitor, at } = await almost();
      const url = new URL(at);
      change(url);
      const answer = await visitor.fetch(url.href);
      assert.equal(answer.status, 403, change.toString());
      assert.equal(await me(visitor), 401);
    }
  });

  test('a session that somebody else fixed', async () => {
    const visitor = new Visitor();
    const port = new URL(server.url).port;
    visitor.cookies(home());
    await visitor.fetch(`${home()}/healthz`);
    visitor.cookies(home()).set(`mo_${port}`, 'mol_' + 'A'.repeat(40));
    await visitor.visit(`${home()}/sign-in/corp`, 'ann');
    assert.notEqual(visitor.cookies(home()).get(`mo_${port}`), 'mol_' + 'A'.repeat(40));
    assert.deepEqual(await me(visitor), { name: 'corp:ann', role: 'user' });
  });

  test('a cookie at another port or host', async () => {
    const { visitor } = await signIn('ann');
    const cookie = [...visitor.cookies(home())].map(([k, v]) => `${k}=${v}`).join('; ');
    const other = await fetch(`${home()}/api/me`, { headers: { cookie } });
    assert.equal(other.status, 200);
    const elsewhere = await fetch(`${server.url.replace('localhost', '127.0.0.1')}/api/me`, { headers: { cookie } });
    assert.equal(elsewhere.status, 401);
  });

  test('an open redirect', async () => {
    for (const path of ['/sign-in/corp?to=https://evil.test', '/sign-in/corp?redirect_uri=https://evil.test', '/sign-in/%2f%2fevil.test'])  {
      const answer = await fetch(home() + path, { redirect: 'manual' });
      assert.ok([303, 404].includes(answer.status));
      assert.doesNotMatch(answer.headers.get('location') ?? '', /evil/);
    }
  });

  test('an ID token with another nonce, audience or key', async () => {
    const now = Math.floor(Date.now() / 1000);
    let nonce;
    for (const make of [
      () => idp.token({ sub: 'ann', aud: 'page', groups: ['admins'], nonce: 'another' }, { alg: 'RS256' }),
      () => idp.token({ sub: 'ann', aud: 'page', groups: ['admins'] }, { alg: 'RS256' }),
      () => idp.token({ sub: 'ann', aud: 'other-client', groups: ['admins'], nonce }, { alg: 'RS256' }),
      () => idp.token({ sub: 'ann', aud: ['page', 'x'], groups: ['admins'], nonce }, { alg: 'RS256' }),
      () => idp.token({ sub: 'ann', aud: 'page', azp: 'x', groups: ['admins'], nonce }, { alg: 'RS256' }),
      () => idp.token({ sub: 'ann', aud: 'page', exp: now - 100, groups: ['admins'], nonce }, { alg: 'RS256' }),
      () => idp.token({ sub: 'ann', aud: 'page', groups: ['admins'], nonce }, { alg: 'none', signature: '' }),
      () => second.token({ iss: idp.issuer, sub: 'ann', aud: 'page', groups: ['admins'], nonce }, { alg: 'RS256' }),
      () => 7,
      () => undefined,
    ]) {
      const visitor = new Visitor();
      const { at } = await visitor.visit(`${home()}/sign-in/corp`, 'ann', (u) => {
        nonce = new URL(u).searchParams.get('nonce') ?? nonce;
        return u.includes('/callback');
      });
      idp.lie = (rq, rs) => {
        if (!rq.url.startsWith('/token')) return false;
        rs.setHeader('content-type', 'application/json');
        rs.end(JSON.stringify({ access_token: 'x', token_type: 'Bearer', id_token: make() }));
        return true;
      };
      const answer = await visitor.fetch(at);
      idp.lie = undefined;
      assert.equal(answer.status, 403, make.toString());
      assert.equal(await me(visitor), 401);
    }
  });
});

describe('afterwards', () => {
  test('signing out ends it everywhere, and what is open', async (t) => {
    const one = (await signIn('ann')).visitor, two = (await signIn('ann')).visitor;
    const cookie = [...two.cookies(home())].map(([k, v]) => `${k}=${v}`).join('; ');
    const socket = io(home(), { extraHeaders: { cookie }, query: { sessionId: 'anns2' }, transports: ['websocket'], reconnection: false });
    t.after(() => socket.close());
    await new Promise((ok, no) => socket.once('connect', ok).once('connect_error', no));
    const closed = new Promise((ok) => socket.once('disconnect', ok));
    const stream = await eventStream(cookie);
    const out = await one.fetch(`${home()}/sign-out`, { method: 'POST' });
    assert.equal(out.status, 303);
    await closed;
    await assert.rejects(stream.text(), /terminated/, 'the event stream stays open');
    assert.equal(await me(one), 401);
    assert.equal(await me(two), 401);
    const olga = (await signIn('olga')).visitor;
    await until(async () => (await rows(olga, 'signed out')).some((r) => r.what.who === 'corp:ann'), 'its row');
  });

  test('a login that was signed out is not read from the store again', async () => {
    for (let i = 0; i < 3; i++) { // its row is removed a moment later
      const one = (await signIn('ann')).visitor, two = (await signIn('ann')).visitor;
      await one.fetch(`${home()}/sign-out`, { method: 'POST' });
      assert.equal(await me(two), 401);
    }
  });

  test('a role that is taken away counts at once', async () => {
    const { visitor } = await signIn('ann');
    await write({ user: [], viewer: ['corp/staff'] });
    await until(async () => (await me(visitor)).role === 'viewer', 'the role');
    await write({ user: [], viewer: [] });
    await until(async () => (await me(visitor)) === 401, 'the end');
    await write();
    await until(async () => (await signIn('ann')).answer.status === 200, 'the old roles');
  });

  test('beginnings do not flood a provider that does not answer', async (t) => {
    let asked = 0;
    const silent = http.createServer((rq, rs) => { asked++; rs.writeHead(500).end(); }).listen(0, '127.0.0.1');
    t.after(() => silent.close());
    await new Promise((ok) => silent.once('listening', ok));
    const all = config();
    all.people.providers.silent = { issuer: `http://127.0.0.1:${silent.address().port}`, clientId: 'page' };
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify(all));
    const status = async () => (await fetch(`${home()}/sign-in/silent`, { redirect: 'manual', headers: { connection: 'close' } })).status;
    await until(async () => (await Promise.all(Array.from({ length: 20 }, status))).every((s) => s === 503), 'the provider, at every worker');
    for (let i = 0; i < 20; i++)
      assert.equal((await fetch(`${home()}/sign-in/silent`, { redirect: 'manual' })).status, 503);
    assert.ok(asked >= 1 && asked <= Number(process.env.MO_WORKERS ?? 1), `${asked}`); // each worker asks for itself
    await write();
    await until(async () => (await fetch(`${home()}/sign-in/silent`, { redirect: 'manual' })).status === 404, 'its end');
  });

  test('a provider that is down: nobody new, and who is signed in stays', async () => {
    const { visitor } = await signIn('ann', 'other');
    const port = second.port;
    await second.stop();
    assert.deepEqual(await me(visitor), { name: 'other:ann', role: 'viewer' });
    await second.start(port);
    assert.deepEqual(await me(visitor), { name: 'other:ann', role: 'viewer' });
  });
});
