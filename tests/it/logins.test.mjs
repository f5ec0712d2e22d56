// Logins with a provider: they survive a restart, count in every replica, are
// renewed once for all of them, and end everywhere.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { io } from 'socket.io-client';

import { Idp, Visitor } from '../lib/idp.mjs';
import { missing as noRedis, redis } from '../lib/redis.mjs';
import { slowly } from '../lib/slowly.mjs';
import { Server, until, within } from './server.mjs';

const ROTATE = { options: { rotateRefreshToken: () => true } };
const KEY = 'ab'.repeat(32);
const people = () => ({ ann: { groups: ['staff'] }, bob: { groups: ['staff'] } });

/** A name that stays: passes requests on to `to`, with their Host. */
async function door() {
  const d = { server: http.createServer((rq, rs) => {
    const on = http.request({ host: '127.0.0.1', port: d.to, method: rq.method, path: rq.url, headers: rq.headers }, (answer) => {
      rs.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(rs);
    });
    on.on('error', () => rs.destroy());
    rq.pipe(on);
  }).listen(0, '127.0.0.1') };
  await once(d.server, 'listening');
  d.port = d.server.address().port;
  d.url = `http://localhost:${d.port}`;
  d.stop = () => { d.server.closeAllConnections(); d.server.close(); };
  return d;
}

class House {
  /** A provider, a name, and as many servers as wanted. */
  static async open({ more = {}, how = ROTATE } = {}) {
    const h = new House();
    h.people = people();
    h.front = await door();
    h.idp = await new Idp(h.people, [{
      client_id: 'page', client_secret: 'a secret of this client', grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'], redirect_uris: [`${h.front.url}/sign-in/corp/callback`],
    }], how).start();
    h.dirs = [];
    h.servers = [];
    h.more = more;
    return h;
  }

  configure(dir, { people: keys = {} } = {}) {
    return writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      mcpServers: {}, llm: { provider: 'demo' }, ...this.more,
      people: {
        url: this.front.url,
        providers: { corp: { issuer: this.idp.issuer, clientId: 'page', clientSecret: 'a secret of this client', scopes: ['groups', 'offline_access'] } },
        roles: { user: ['corp/staff'] }, ...keys,
      },
    }));
  }

  async serve(dir, { env = {}, people: keys = {} } = {}) {
    if (!dir) {
      dir = await mkdtemp(join(tmpdir(), 'mo-logins-'));
      this.dirs.push(dir);
    }
    await this.configure(dir, { people: keys });
    const server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
      dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state'), ...env } });
    server.dir = dir;
    this.servers.push(server);
    this.use(server);
    return server;
  }

  use(server) {
    this.front.to = Number(new URL(server.url).port);
  }

  async signIn(who = 'ann') {
    const visitor = new Visitor();
    const end = await visitor.visit(`${this.front.url}/sign-in/corp`, who);
    assert.equal(end.answer.status, 200);
    return visitor;
  }

  async me(visitor) {
    const answer = await visitor.fetch(`${this.front.url}/api/me`);
    return answer.status === 200 ? (await answer.json()).name : answer.status;
  }

  refreshes() {
    return this.idp.requests.filter((p) => p === '/token').length;
  }

  async close() {
    for (const s of this.servers)
      if (!s.ended) {
        s.signal('SIGTERM');
        await s.stopClean();
      }
    await this.idp.stop().catch(() => {});
    this.front.stop();
    for (const dir of this.dirs) await rm(dir, { recursive: true, force: true });
  }
}

const cookieOf = (visitor, url) => [...visitor.cookies(url)].map(([k, v]) => `${k}=${v}`).join('; ');

describe('a restart', () => {
  let house, server;
  before(async () => {
    house = await House.open();
    server = await house.serve();
  });
  after(() => house.close());

  test('is not noticed, however it came', async () => {
    const ann = await house.signIn(), bob = await house.signIn('bob');
    server.signal('SIGTERM');
    await server.stopClean();
    server = await house.serve(server.dir);
    assert.equal(await house.me(ann), 'corp:ann');
    server.signal('SIGKILL');
    await server.exit;
    server = await house.serve(server.dir);
    assert.equal(await house.me(bob), 'corp:bob');
    assert.equal(await house.me(ann), 'corp:ann');
  });

  test('signing in and dying at once', async () => {
    const ann = await house.signIn();
    server.signal('SIGKILL');
    await server.exit;
    server = await house.serve(server.dir);
    assert.equal(await house.me(ann), 'corp:ann');
  });

  test('who has signed out stays out, also if that is the first request', async () => {
    const one = await house.signIn(), two = await house.signIn(), three = await house.signIn();
    await one.fetch(`${house.front.url}/sign-out`, { method: 'POST' });
    server.signal('SIGTERM');
    await server.stopClean();
    server = await house.serve(server.dir);
    for (const v of [one, two, three]) assert.equal(await house.me(v), 401);
    const four = await house.signIn(), five = await house.signIn();
    const copy = cookieOf(four, house.front.url);
    server.signal('SIGKILL');
    await server.exit;
    server = await house.serve(server.dir);
    await five.fetch(`${house.front.url}/sign-out`, { method: 'POST' });
    await until(async () => (await fetch(`${house.front.url}/api/me`, { headers: { cookie: copy } })).status === 401, 'the end');
  });

  test('a request whose body comes after the sign-out does nothing', async () => {
    const one = await house.signIn(), two = await house.signIn(), bob = await house.signIn('bob');
    const post = (who) => slowly(server.url.replace('127.0.0.1', 'localhost'), 'POST', '/api/tokens',
      { host: `localhost:${house.front.port}`, cookie: cookieOf(who, house.front.url) }, '{"name":"late"}');
    const late = await post(one), other = await post(bob);
    await two.fetch(`${house.front.url}/sign-out`, { method: 'POST' });
    // Another worker knows it a little later (docs/scale.md).
    if (process.env.MO_WORKERS) await within(late.closed, 'its end at the other worker', 40_000);
    assert.equal(await late.finish(), '', 'the connection is closed, without an answer');
    assert.match(await other.finish(), /^HTTP\/1\.1 201 /, "another person's is not");
    const ann = await house.signIn();
    assert.deepEqual((await (await ann.fetch(`${house.front.url}/api/tokens`)).json()).tokens, []);
  });

  test('a role that was taken away meanwhile, or another key', async () => {
    const ann = await house.signIn();
    server.signal('SIGTERM');
    await server.stopClean();
    server = await house.serve(server.dir, { people: { roles: { user: ['corp:bob'] } } });
    assert.equal(await house.me(ann), 401);
    server.signal('SIGTERM');
    await server.stopClean();
    server = await house.serve(server.dir, { env: { MCP_ORCHESTRATOR_SECRET_KEY: KEY } });
    assert.equal(await house.me(ann), 401);
    server.signal('SIGTERM');
    await server.stopClean();
    server = await house.serve(server.dir);
    assert.equal(await house.me(ann), 'corp:ann');
  });

  test('the database gives nothing away', async () => {
    const ann = await house.signIn();
    const [, secret] = [...ann.cookies(house.front.url)].find(([k]) => /^mo_\d+$/.test(k));
    let all = Buffer.alloc(0);
    for (const name of await readdir(join(server.dir, 'state')))
      if (name.startsWith('mcp-orchestrator.db')) all = Buffer.concat([all, await readFile(join(server.dir, 'state', name)).catch(() => Buffer.alloc(0))]);
    assert.ok(all.includes('login:'));
    for (const text of [secret, secret.slice(4), 'staff', 'refresh'])
      assert.ok(!all.includes(text), text);
  });

  test('unknown and malformed cookies are nobody', async () => {
    const name = `mo_${house.front.port}`;
    for (const value of ['mol_' + 'A'.repeat(40), 'mol_', 'mol_' + 'A'.repeat(4000), 'mol_%00', 'x'])
      assert.equal((await fetch(`${house.front.url}/api/me`, { headers: { cookie: `${name}=${value}` } })).status, 401);
  });
});

describe('renewal', () => {
  let house, server;
  const SOON = { people: { renewSeconds: 10 } }; // asked again after 5
  before(async () => {
    house = await House.open();
    server = await house.serve(undefined, SOON);
  });
  after(() => house.close());

  test('rotates refresh tokens, again and again, and over a restart', async () => {
    const ann = await house.signIn();
    const row = () => execFileSync('sqlite3', ['-readonly', join(server.dir, 'state/mcp-orchestrator.db'),
      "select doc from mark where id like 'login:%'"], { encoding: 'utf8' });
    for (let i = 0; i < 2; i++) {
      const before = house.refreshes(), kept = row();
      await until(async () => {
        assert.equal(await house.me(ann), 'corp:ann');
        return house.refreshes() > before && row() !== kept; // not killed between the two
      }, 'a renewal', 20_000);
    }
    server.signal('SIGKILL');
    await server.exit;
    server = await house.serve(server.dir, SOON);
    const before = house.refreshes();
    await until(async () => {
      assert.equal(await house.me(ann), 'corp:ann');
      return house.refreshes() > before;
    }, 'a renewal', 20_000);
  });

  test('an account that is gone is out, and what it has open', async (t) => {
    const bob = await house.signIn('bob');
    const socket = io(server.url.replace('127.0.0.1', 'localhost'), { extraHeaders: { cookie: cookieOf(bob, house.front.url), host: `localhost:${house.front.port}` },
      query: { sessionId: 'bobs' }, transports: ['websocket'], reconnection: false });
    t.after(() => socket.close());
    await new Promise((ok, no) => socket.once('connect', ok).once('connect_error', no));
    const closed = new Promise((ok) => socket.once('disconnect', ok));
    delete house.people.bob;
    await until(async () => (await house.me(bob)) === 401, 'the end', 20_000);
    await closed;
    house.people.bob = people().bob;
  });

  test('a role that is lowered closes what is open, of that person', async (t) => {
    const roles = (approver) => ({ ...SOON, people: { ...SOON.people, roles: { approver: [approver], user: ['corp/staff'] } } });
    const open = async (who) => {
      const socket = io(server.url.replace('127.0.0.1', 'localhost'), { extraHeaders: { cookie: cookieOf(who, house.front.url), host: `localhost:${house.front.port}` },
        query: { sessionId: `role-${++opened}` }, transports: ['websocket'], reconnection: false });
      t.after(() => socket.close());
      await new Promise((ok, no) => socket.once('connect', ok).once('connect_error', no));
      return { socket, closed: new Promise((ok) => socket.once('disconnect', ok)) };
    };
    const role = async (who) => (await (await who.fetch(`${house.front.url}/api/me`)).json()).role;
    let opened = 0;
    await house.configure(server.dir, roles('corp/leads'));
    await server.reload();
    house.people.ann = { groups: ['staff', 'leads'] };
    const ann = await house.signIn(), bob = await house.signIn('bob');
    assert.equal(await role(ann), 'approver');
    const other = await open(bob);
    const one = await open(ann);
    house.people.ann = people().ann; // at the provider
    await until(async () => (await role(ann)) === 'user', 'the renewal', 20_000);
    await within(one.closed, 'the end of the socket');
    house.people.ann = { groups: ['staff', 'leads'] };
    const again = await house.signIn();
    const two = await open(again);
    await house.configure(server.dir, roles('corp/nobody')); // here
    await server.reload();
    await within(two.closed, 'the end of the socket');
    assert.equal(await role(again), 'user');
    assert.ok(other.socket.connected, "another's stays");
    house.people.ann = people().ann;
    await house.configure(server.dir, SOON);
    await server.reload();
  });

  test('a changed role counts after it', async () => {
    const ann = await house.signIn();
    house.people.ann = { groups: [] };
    await until(async () => (await house.me(ann)) === 401, 'the end', 20_000);
    house.people.ann = people().ann;
  });

  test('a provider that is down: signed in until the time is over', async () => {
    const signed = Date.now(); // before the identity begins
    const ann = await house.signIn();
    house.idp.lie = (rq, rs) => { rs.writeHead(503).end(); return true; };
    for (;;) {
      const name = await house.me(ann);
      if (Date.now() - signed > 7500) break; // too late to be judged
      assert.equal(name, 'corp:ann');
      await new Promise((r) => setTimeout(r, 250));
    }
    await until(async () => (await house.me(ann)) === 401, 'the end', 20_000);
    house.idp.lie = undefined;
  });
});

describe('two servers with one Redis', { skip: noRedis }, () => {
  let house, store, a, b;
  before(async () => {
    store = await redis();
    house = await House.open({ more: { store: { url: `redis://127.0.0.1:${store.port}` } } });
    const how = { env: { MCP_ORCHESTRATOR_SECRET_KEY: KEY }, people: { renewSeconds: 10 } };
    a = await house.serve(undefined, how);
    b = await house.serve(undefined, how);
  });
  after(async () => {
    await house.close();
    await store.stop?.();
  });

  test('a login counts in both, and is renewed once', async () => {
    house.use(a);
    const ann = await house.signIn();
    house.use(b);
    assert.equal(await house.me(ann), 'corp:ann');
    const before = house.refreshes();
    // a refresh token that is used twice ends the login: oidc-provider revokes all of it
    for (let n = 0; n < 3; n++) {
      await until(async () => {
        for (const s of [a, b]) {
          house.use(s);
          assert.equal(await house.me(ann), 'corp:ann');
        }
        return house.refreshes() > before + n;
      }, 'a renewal', 20_000);
    }
  });

  test('signing out at one ends it at the other, and what is open there', async (t) => {
    house.use(a);
    const one = await house.signIn(), two = await house.signIn();
    house.use(b);
    assert.equal(await house.me(one), 'corp:ann');
    assert.equal(await house.me(two), 'corp:ann');
    // The conversation runs at the first; the socket at the second is relayed.
    const open = async (server, visitor) => {
      const socket = io(server.url.replace('127.0.0.1', 'localhost'), {
        extraHeaders: { cookie: cookieOf(visitor, house.front.url), host: `localhost:${house.front.port}` },
        query: { sessionId: 'anns' }, transports: ['websocket'], reconnection: false });
      t.after(() => socket.close());
      await new Promise((ok, no) => socket.once('session:history', ok).once('connect_error', no).once('error', (e) => no(new Error(e))));
      return { closed: new Promise((ok) => socket.once('disconnect', ok)) };
    };
    const ends = [await open(a, one), await open(b, two)];
    house.use(a);
    const copies = [one, two].map((v) => cookieOf(v, house.front.url));
    await one.fetch(`${house.front.url}/sign-out`, { method: 'POST' });
    for (const { closed } of ends) await closed;
    house.use(b);
    for (const cookie of copies)
      await until(async () => (await fetch(`${house.front.url}/api/me`, { headers: { cookie } })).status === 401, 'the end');
  });
});
