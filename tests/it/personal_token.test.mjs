// Personal tokens: made over HTTP and by command, used at the API, at /mcp and
// on sockets, bounded by their owner's role, expiring and revoked.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { io } from 'socket.io-client';

import { Idp, Visitor } from '../lib/idp.mjs';
import { missing as noRedis, redis } from '../lib/redis.mjs';
import { BIN, Server, until, within } from './server.mjs';

const OPERATOR = 'operator-0123456789abcdef';
const TOKENS = { alice: 'alice-0123456789abcdefgh', bob: 'bob-0123456789abcdefghij' };
const FORM = /^mop_[A-Za-z0-9_-]{22}_[A-Za-z0-9_-]{32}$/;

let dir, idp, server;

const config = (more = {}) => ({
  mcpServers: {},
  llm: { provider: 'demo' },
  sandbox: { driver: 'native', warm: 0 },
  server: { token: OPERATOR, tokens: more.tokens ?? TOKENS },
  people: {
    providers: { corp: { issuer: idp.issuer, clientId: 'page', clientSecret: 'a secret of this client', scopes: ['groups'] } },
    roles: { operator: ['corp/admins'], approver: ['alice'], user: ['corp/staff'], ...more.roles },
  },
  ...more.top,
});
const put = (to, more) => writeFile(join(to, 'mcp-orchestrator.json'), JSON.stringify(config(more)));

async function start(at, more) {
  await put(at, more);
  return Server.start([], { dir: at, auth: true, house: true });
}

const call = (method, path, token, body, to = server) => fetch(to.url + path, {
  method,
  redirect: 'manual',
  ...(body && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  headers: {
    connection: 'close', 'content-type': 'application/json', accept: 'application/json, text/event-stream',
    ...(token && { authorization: `Bearer ${token}` }),
  },
});
async function json(answer, status = 200) {
  const text = await answer.text();
  assert.equal(answer.status, status, text);
  return text && JSON.parse(text);
}
const make = async (by, wish = {}, to = server) => json(await call('POST', '/api/tokens', by, { name: 'test', ...wish }, to), 201);
/** By somebody who has signed in with a browser. */
async function makeOnPage(who, wish) {
  const visitor = new Visitor(), home = server.url.replace('127.0.0.1', 'localhost');
  await visitor.visit(`${home}/sign-in/corp`, who);
  return json(await visitor.fetch(`${home}/api/tokens`, { method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'test', ...wish }) }), 201);
}
const list = async (by, to = server) => (await json(await call('GET', '/api/tokens', by, undefined, to))).tokens;
const revoke = (by, id, to = server) => call('DELETE', `/api/tokens/${id}`, by, undefined, to);
const me = async (token, to = server) => {
  const answer = await call('GET', '/api/me', token, undefined, to);
  const body = await answer.json();
  return answer.status === 200 ? `${body.name} ${body.role}` : `${answer.status} ${body.code}`;
};
const initialize = {
  jsonrpc: '2.0', id: 1, method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
};
const mcp = async (token, path = '/mcp') => {
  const answer = await call('POST', path, token, initialize);
  return { status: answer.status, session: answer.headers.get('mcp-session-id'), text: await answer.text() };
};
const jwt = (sub, groups) => idp.token({ sub, aud: `${server.url}/mcp`, groups });

/** The server with another configuration, from when it is in use. */
async function reload(more, isThere) {
  await put(dir, more);
  server.child.kill('SIGHUP');
  await until(isThere, 'the new configuration');
}

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-tokens-'));
  idp = await new Idp({ ann: { groups: ['staff'] }, olga: { groups: ['admins'] } }).start();
  server = await start(dir);
  idp.clients = [{
    client_id: 'page', client_secret: 'a secret of this client',
    grant_types: ['authorization_code'], response_types: ['code'],
    redirect_uris: [`http://localhost:${new URL(server.url).port}/sign-in/corp/callback`],
  }];
  idp.make();
  await (await call('GET', '/api/me', jwt('ann', ['staff']))).text(); // opens a connection that stays
  server.fresh = await server.settled();
});
after(async () => {
  await server?.stopClean();
  await idp?.stop();
  await rm(dir, { recursive: true });
});

describe('a token', () => {
  test('is shown once, listed without its secret, and used', async () => {
    const made = await make(TOKENS.alice, { name: 'my laptop' });
    assert.match(made.token, FORM);
    assert.ok(made.token.includes(made.id));
    assert.deepEqual([made.owner, made.role, made.name, made.views], ['alice', 'user', 'my laptop', []]);
    assert.equal(Math.round((made.expires - made.created) / 864e5), 90);
    const { token, ...shown } = made;
    assert.deepEqual((await list(TOKENS.alice)).find((t) => t.id === made.id), shown, 'never used');
    assert.equal(await me(token), 'alice user');
    assert.equal((await mcp(token)).status, 200);
    let used; // another worker reads it from the store
    await until(async () => (used = (await list(TOKENS.alice)).find((t) => t.id === made.id)).used, 'its use');
    assert.ok(used.used >= made.created && used.used <= Date.now());
    const rows = (await json(await call('GET', '/api/audit?q=my%20laptop', OPERATOR))).rows.map((r) => r.what);
    assert.deepEqual(rows.map((r) => [r.kind, r.action, r.who, r.entry.id]), [['token', 'create', 'alice', made.id]]);
    await json(await revoke(TOKENS.alice, made.id));
    assert.equal(await me(token), '401 invalid_token');
    const after = (await json(await call('GET', `/api/audit?q=${made.id}`, OPERATOR))).rows.map((r) => r.what.action);
    assert.deepEqual(after.sort(), ['create', 'revoke']);
    assert.doesNotMatch(server.log, new RegExp(token.slice(27)));
  });

  test('has the role that was asked for, up to its owner\'s', async () => {
    for (const [by, role, expected] of [
      [TOKENS.alice, 'viewer', 'alice viewer'], [TOKENS.alice, 'approver', 'alice approver'],
      [TOKENS.bob, undefined, 'bob user'], [OPERATOR, 'operator', ' operator'],
    ]) {
      const made = await make(by, { role });
      assert.equal(await me(made.token), expected);
      await json(await revoke(by, made.id));
    }
    const viewer = await make(TOKENS.alice, { role: 'viewer' });
    assert.equal((await mcp(viewer.token)).status, 403);
    await json(await revoke(TOKENS.alice, viewer.id));
  });

  test("of the operator with a lesser role does not see everybody's data", async () => {
    const made = await make(OPERATOR, { role: 'user' });
    assert.equal(await me(made.token), `operator+${made.id} user`);
    assert.equal((await call('GET', '/api/stats', made.token)).status, 403);
    await json(await revoke(OPERATOR, made.id));
  });

  test('for views is refused everywhere else', async () => {
    const made = await make(TOKENS.alice, { views: ['docs'] });
    for (const path of ['/mcp', '/mcp/other', '/mcp/docs/x', '/mcp/'])
      assert.match((await mcp(made.token, path)).text, /view_required/, path);
    assert.equal(await me(made.token), '403 view_required');
    assert.doesNotMatch((await mcp(made.token, '/mcp/docs')).text, /view_required/);
    await json(await revoke(TOKENS.alice, made.id));
  });

  test('ends by itself, and what it has open with it', async () => {
    const made = await make(TOKENS.alice, { days: 10 / 86400 });
    const { session } = await mcp(made.token);
    const stream = await openStream(made.token, session);
    await within(stream.ended, 'the end of the stream', 40_000);
    assert.equal(await me(made.token), '401 invalid_token');
    assert.ok(Date.now() >= made.expires);
    assert.ok((await list(TOKENS.alice)).some((t) => t.id === made.id), 'still listed');
    await json(await revoke(TOKENS.alice, made.id));
  });
});

describe('what is refused', () => {
  const wishes = {
    'a higher role': [TOKENS.alice, { role: 'operator' }, 403],
    'a role that is none': [TOKENS.alice, { role: 'root' }, 400],
    'a role of another type': [OPERATOR, { role: 4 }, 400],
    'another person': [TOKENS.alice, { person: 'bob' }, 403],
    'the operator as a person': [TOKENS.alice, { person: '' }, 403],
    'nobody': [OPERATOR, { person: 'nobody' }, 400],
    "more than a person's role": [OPERATOR, { person: 'bob', role: 'approver' }, 403],
    'a person whom a provider may know': [OPERATOR, { person: 'corp:ann' }, 400],
    'no name': [TOKENS.alice, { name: '' }, 400],
    'a name with a line break': [TOKENS.alice, { name: 'a\nb' }, 400],
    'a name that is too long': [TOKENS.alice, { name: 'x'.repeat(65) }, 400],
    'no end': [TOKENS.alice, { days: 0 }, 400],
    'an end in the past': [TOKENS.alice, { days: -1 }, 400],
    'an end too far away': [TOKENS.alice, { days: 366 }, 400],
    'an end without a number': [TOKENS.alice, { days: '30' }, 400],
    'a view with a path': [TOKENS.alice, { views: ['../x'] }, 400],
    'views that are no list': [TOKENS.alice, { views: 'docs' }, 400],
  };
  for (const [name, [by, wish, status]] of Object.entries(wishes))
    test(name, async () => {
      await json(await call('POST', '/api/tokens', by, { name: 'test', ...wish }), status);
    });
  test('bodies that are none', async () => {
    for (const body of ['[]', '7', '{', 'null']) await json(await call('POST', '/api/tokens', TOKENS.alice, body), 400);
  });
  test('a cookie for it', async () => {
    const made = await make(TOKENS.alice);
    const link = await call('GET', `/?token=${made.token}`);
    assert.deepEqual([link.status, link.headers.get('set-cookie')], [401, null]);
    const form = await fetch(`${server.url}/sign-in`, { method: 'POST', redirect: 'manual', body: `token=${made.token}`,
      headers: { connection: 'close', 'content-type': 'application/x-www-form-urlencoded' } });
    assert.deepEqual([form.status, form.headers.get('set-cookie')], [303, null]);
    await json(await revoke(TOKENS.alice, made.id));
  });
});

describe('the owner', () => {
  test('sees and revokes only their own; the operator all', async () => {
    const made = await make(TOKENS.alice), other = await make(OPERATOR, { person: 'bob', name: 'for bob' });
    assert.equal(other.owner, 'bob');
    assert.equal(await me(other.token), 'bob user');
    assert.deepEqual((await list(TOKENS.bob)).map((t) => t.id), [other.id]);
    assert.equal((await revoke(TOKENS.bob, made.id)).status, 404);
    assert.equal(await me(made.token), 'alice user');
    const all = (await list(OPERATOR)).map((t) => t.id);
    assert.ok(all.includes(made.id) && all.includes(other.id));
    await json(await revoke(OPERATOR, made.id));
    await json(await revoke(TOKENS.bob, other.id));
    assert.equal((await revoke(OPERATOR, made.id)).status, 404);
  });

  test('loses a role, and is removed', async () => {
    const made = await make(TOKENS.alice, { role: 'approver' });
    assert.equal(await me(made.token), 'alice approver');
    await reload({ roles: { approver: [], viewer: ['alice'] } }, async () => await me(TOKENS.alice) === 'alice viewer');
    assert.equal(await me(made.token), 'alice viewer');
    await reload({ tokens: { bob: TOKENS.bob } }, async () => (await me(TOKENS.alice)).startsWith('401'));
    assert.equal(await me(made.token), '403 no_role');
    await reload({}, async () => await me(TOKENS.alice) === 'alice approver');
    assert.equal(await me(made.token), 'alice approver');
    await json(await revoke(TOKENS.alice, made.id));
  });

  test('is a person of a provider', async () => {
    assert.equal((await call('POST', '/api/tokens', jwt('olga', ['staff']), { name: 'outlives it' })).status, 403);
    const made = await makeOnPage('olga', { role: 'operator' });
    assert.equal(made.owner, 'corp:olga');
    assert.equal(await me(made.token), 'corp:olga operator');
    // The next sign-in says that the groups have changed. Another worker knows it a moment later.
    const becomes = (role) => until(async () => (await me(made.token)) === role, role);
    assert.equal(await me(jwt('olga', ['staff'])), 'corp:olga user');
    await becomes('corp:olga user');
    assert.equal(await me(jwt('olga', [])), '403 no_role');
    await becomes('403 no_role');
    assert.equal(await me(jwt('olga', ['staff'])), 'corp:olga user');
    // The operator takes the group's role away.
    await reload({ roles: { user: [] } }, async () => (await me(jwt('olga', ['staff']))) === '403 no_role');
    await becomes('403 no_role');
    await reload({}, async () => (await me(jwt('olga', ['staff']))) === 'corp:olga user');
    await becomes('corp:olga user');
    await json(await revoke(OPERATOR, made.id));
  });
});

/** An event stream of a legacy session; ended resolves when the server ends it. */
async function openStream(token, session) {
  const answer = await fetch(`${server.url}/mcp`, { headers: {
    authorization: `Bearer ${token}`, accept: 'text/event-stream', 'mcp-session-id': session, connection: 'close' } });
  assert.equal(answer.status, 200);
  const ended = (async () => {
    for await (const _ of answer.body);
  })().then(() => 'ended', () => 'cut');
  return { ended };
}

function connect(token, transport) {
  const socket = io(server.url, { query: { sessionId: `s-${transport}` }, transports: [transport], forceNew: true,
    reconnection: false, extraHeaders: { authorization: `Bearer ${token}` } });
  return {
    socket,
    ready: new Promise((resolve, reject) => {
      socket.on('connect', resolve);
      socket.on('connect_error', reject);
    }),
    ended: new Promise((resolve) => socket.on('disconnect', resolve)),
  };
}

describe('revoking while connected', () => {
  test('closes streams and sockets of that token, and no others', async () => {
    const made = await make(TOKENS.alice), stays = await make(TOKENS.alice);
    const open = [];
    for (const { token } of [made, stays]) {
      const { session } = await mcp(token);
      open.push({ stream: await openStream(token, session), ws: connect(token, 'websocket'), poll: connect(token, 'polling') });
    }
    for (const o of open) await within(Promise.all([o.ws.ready, o.poll.ready]), 'the sockets');
    await json(await revoke(TOKENS.alice, made.id));
    await within(Promise.all([open[0].stream.ended, open[0].ws.ended, open[0].poll.ended]), 'the end of all of them');
    assert.ok(open[1].ws.socket.connected && open[1].poll.socket.connected);
    assert.equal(await me(stays.token), 'alice user');
    await json(await revoke(OPERATOR, stays.id));
    await within(Promise.all([open[1].stream.ended, open[1].ws.ended, open[1].poll.ended]), 'the others');
  });
});

describe('commands', () => {
  const run = async (...args) => {
    const child = spawn(BIN, args, { cwd: dir, env: { PATH: process.env.PATH, HOME: dir, ASAN_OPTIONS: 'detect_leaks=0' } });
    let out = '', err = '';
    child.stdout.on('data', (d) => (out += d));
    child.stderr.on('data', (d) => (err += d));
    const code = await new Promise((done) => child.on('close', done));
    return { code, out, err };
  };
  test('create, list, revoke', async () => {
    const { code, out, err } = await run('token', 'create', '--name', 'ci', '--person', 'alice', '--role', 'viewer', '--days', '2', '--json');
    assert.equal(code, 0, err);
    const made = JSON.parse(out);
    assert.equal(await me(made.token), 'alice viewer');
    assert.equal(Math.round((made.expires - made.created) / 864e5), 2);
    const listed = await run('token', 'list');
    assert.match(listed.out, new RegExp(`${made.id}\n  name       ci\n  owner      alice\n  role       viewer\n  expires .*\n  last used  2`));
    assert.deepEqual(JSON.parse((await run('token', 'list', '--json')).out).map((t) => t.id), [made.id]);
    assert.equal((await run('token', 'revoke', made.id)).out, `revoked ${made.id}\n`);
    assert.equal(await me(made.token), '401 invalid_token');
    const again = await run('token', 'revoke', made.id);
    assert.equal(again.code, 1);
    assert.match(again.err, /there is no such token/);
    assert.match((await run('token', 'list')).out, /^there are no personal tokens/);
  });
  test('views, and the operator as the owner', async () => {
    const { out } = await run('token', 'create', '--name', 'views', '--view', 'a', '--view', 'b', '--role', 'operator');
    assert.match(out, /owner      the operator\n  role       operator\n  views      a, b\n/);
    assert.match(out, /shown only now:\nmop_/);
    const [one] = await list(OPERATOR);
    assert.deepEqual(one.views, ['a', 'b']);
    await json(await revoke(OPERATOR, one.id));
  });
  test('mistakes', async () => {
    assert.match((await run('token', 'create')).err, /--name/);
    assert.match((await run('token', 'create', '--name', 'x', '--person', 'nobody')).err, /nobody is nobody/);
    assert.match((await run('token', 'create', '--name', 'x', '--days', 'soon')).err, /--days needs a number/);
    assert.match((await run('token', 'revoke', '../x')).err, /no id/);
  });
});

test('tokens and their last use survive a restart', async () => {
  const made = await make(TOKENS.alice);
  assert.equal(await me(made.token), 'alice user');
  let used; // another worker reads it from the store
  await until(async () => ([{ used }] = await list(TOKENS.alice))[0].used, 'its use');
  await server.stopClean();
  server = await start(dir);
  const [kept] = await list(TOKENS.alice);
  assert.deepEqual([kept.id, kept.used], [made.id, used]);
  assert.equal(await me(made.token), 'alice user');
  await json(await revoke(TOKENS.alice, made.id));
});

test('two servers with one Redis', { skip: noRedis }, async () => {
  const store = await redis();
  const dirs = await Promise.all([1, 2].map(() => mkdtemp(join(tmpdir(), 'mo-tokens-'))));
  const more = { top: { store: { url: `redis://127.0.0.1:${store.port}` } } };
  const [a, b] = await Promise.all(dirs.map((d) => start(d, more)));
  try {
    const first = await make(TOKENS.alice, {}, a);
    await until(async () => await me(first.token, b) === 'alice user', 'it is known to both'); // at once, or in two seconds
    assert.deepEqual((await list(TOKENS.alice, b)).map((t) => t.id), [first.id]);
    await json(await revoke(TOKENS.alice, first.id, a));
    await until(async () => await me(first.token, b) !== 'alice user', 'the other refuses it', 40_000);
    assert.deepEqual(await list(TOKENS.alice, b), []);
  } finally {
    await Promise.all([a, b].map((s) => s.stopClean()));
    await store.stop?.();
    await Promise.all(dirs.map((d) => rm(d, { recursive: true })));
  }
});
