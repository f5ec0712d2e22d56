// Servers that get the credentials of the person who calls: signing in on the
// page and through a client, whose token a call carries, refresh, sign-out, and
// everything that must not cross from one person to another.
import assert from 'node:assert/strict';
import { readFile, readdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, LoggingMessageNotificationSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

import { Whose, connect } from '../lib/whose.mjs';
import { bin, named, run } from '../lib/mcp.mjs';
import { Server, until } from './server.mjs';

const OPERATOR = 'op-0123456789abcdef012345';
const TOKENS = { ann: 'ann-0123456789abcdef0123', bob: 'bob-0123456789abcdef0123', cat: 'cat-0123456789abcdef0123' };
let dir, whose, server;
const state = () => join(dir, 'state');
const config = (more = {}) => writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
  mcpServers: whose.config(), gateway: { prefix: 'always' }, approvals: { default: 'allow' },
  server: { token: OPERATOR, tokens: TOKENS }, ...more,
}));
const env = () => ({ ...named(dir), MCP_ORCHESTRATOR_STATE_DIR: state() });

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-connections-'));
  whose = await new Whose(3).start();
  await config();
  server = await Server.start([], { dir, auth: true, env: env() });
});
after(async () => {
  server.child.kill('SIGTERM');
  assert.equal((await server.exit).code, 0, server.log);
  assert.doesNotMatch(server.log, /runtime error|Sanitizer/);
  await whose.stop();
  await rm(dir, { recursive: true, force: true });
});
afterEach(() => assert.deepEqual(whose.wrong, []));

const as = (who) => ({ authorization: `Bearer ${who === '' ? OPERATOR : TOKENS[who]}` });
const api = async (who, method, path) => (await fetch(`${server.url}/api/connections${path}`, { method, headers: as(who) })).json();
const connected = async (who) => (await api(who, 'GET', '')).connections.filter((c) => c.connected).map((c) => c.server);

async function client(who, { capabilities = {}, t } = {}) {
  const c = new Client({ name: 'it', version: '1' }, { capabilities });
  await c.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers: as(who) } }));
  t?.after(() => c.close());
  return c;
}
const said = (r) => JSON.parse(r.content[0].text);
const call = async (c, name, n, more = {}) => c.callTool({ name, arguments: { n } }, undefined, more);

/** The same of a tool that another worker may hear of a moment later. */
async function callSoon(...args) {
  let got;
  const unknown = (e) => assert.match(e.message, /no such tool/);
  await until(async () => (got = await call(...args).catch(unknown)), 'the tool');
  return got;
}

test('who has not connected is told where to; nobody else is asked', async (t) => {
  const c = await client('ann', { t });
  assert.deepEqual(await connected('ann'), []);
  assert.deepEqual((await c.listTools()).tools, []);
  assert.equal((await connect(server.url, as('bob'), 's0', 'bob@there')).status, 200);
  const his0 = await client('bob', { t });
  let list = [];
  await until(async () => (list = (await his0.listTools()).tools).length && (await c.listTools()).tools.length, 'tools in all workers');
  assert.deepEqual(list.map((x) => x.name), ['s0_whoami', 's0_chatty', 's0_ask']);
  assert.deepEqual((await c.listTools()).tools, list);
  const r = await call(c, 's0_whoami', 1);
  assert.equal(r.isError, true);
  assert.match(r.content[0].text, new RegExp(`s0: you are not connected.*${server.url}/connections\\?server=s0`));
  assert.equal(whose.seen.calls, 0);
  assert.deepEqual(await connected('ann'), []);
  const [his, other] = (await api('bob', 'GET', '')).connections;
  assert.deepEqual(Object.keys(his), ['server', 'connected', 'since', 'issuer']);
  assert.deepEqual(other, { server: 's1', connected: false });
});

test('each call carries the token of its caller', async (t) => {
  assert.equal((await connect(server.url, as('ann'), 's0', 'ann@there')).status, 200);
  const [ann, bob] = [await client('ann', { t }), await client('bob', { t })];
  const all = await Promise.all(Array.from({ length: 20 }, (_, n) => call(n % 2 ? ann : bob, 's0_whoami', n)));
  all.forEach((r, n) => assert.deepEqual(said(r), { user: n % 2 ? 'ann@there' : 'bob@there', server: 's0', n }));
});

test('the operator is a person too', async (t) => {
  assert.equal((await connect(server.url, as(''), 's0', 'root@there')).status, 200);
  assert.equal(said(await call(await client('', { t }), 's0_whoami', 1)).user, 'root@there');
});

test('progress, logs, questions and updates stay with their person', async (t) => {
  const heard = { ann: [], bob: [] };
  const people = await Promise.all(Object.keys(heard).map(async (who) => {
    const c = await client(who, { capabilities: { elicitation: {} }, t });
    c.setRequestHandler(ElicitRequestSchema, (r) => {
      heard[who].push(r.params.message);
      return { action: 'accept', content: { who: `${who}@there` } };
    });
    c.setNotificationHandler(LoggingMessageNotificationSchema, (n) => heard[who].push(JSON.stringify(n.params.data)));
    c.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => heard[who].push(n.params.uri));
    await c.setLoggingLevel('debug');
    await c.subscribeResource({ uri: 's0+file:///ann@there/diary' }).catch(() => {});
    return [who, c];
  }));
  await Promise.all(people.flatMap(([who, c]) => Array.from({ length: 5 }, async (_, n) => {
    const r = await call(c, n % 2 ? 's0_ask' : 's0_chatty', n, { onprogress: (p) => heard[who].push(p.message) });
    assert.equal(said(r).user, `${who}@there`);
  })));
  for (const who of ['ann', 'bob']) {
    assert.ok(heard[who].length >= 10, `${who}: ${heard[who]}`);
    for (const text of heard[who]) assert.match(text, new RegExp(`${who}@there`), `${who} heard ${text}`);
  }
});

test('nobody sees the list of a person\'s resources; everybody reads their own', async (t) => {
  const [ann, bob] = [await client('ann', { t }), await client('bob', { t })];
  assert.deepEqual((await ann.listResources()).resources, []);
  for (const [c, who] of [[ann, 'ann'], [bob, 'bob']])
    assert.equal((await c.readResource({ uri: 's0+file:///x' })).contents[0].text, `read by ${who}@there`);
});

test('a client that can opens the page, and its call goes on by itself', async (t) => {
  assert.equal((await connect(server.url, as('ann'), 's1', 'ann@s1')).status, 200);
  await (await client('ann', { t })).listTools();
  const bob = await client('bob', { capabilities: { elicitation: { url: {} } }, t });
  const asked = [];
  bob.setRequestHandler(ElicitRequestSchema, (r) => {
    asked.push(r.params);
    void connect(server.url, as('bob'), 's1', 'bob@s1');
    return { action: 'accept' };
  });
  assert.equal(said(await callSoon(bob, 's1_whoami', 7)).user, 'bob@s1');
  assert.equal(asked.length, 1);
  assert.equal(asked[0].mode, 'url');
  assert.equal(asked[0].url, `${server.url}/connections?server=s1`);
  const cat = await client('cat', { capabilities: { elicitation: { url: {} } }, t });
  cat.setRequestHandler(ElicitRequestSchema, () => ({ action: 'decline' }));
  assert.match((await callSoon(cat, 's1_whoami', 1)).content[0].text, /not connected/);
});

test('expired tokens are refreshed once', async (t) => {
  const c = await client('ann', { t });
  const before = whose.seen.refreshed;
  whose.expireAll();
  const all = await Promise.all(Array.from({ length: 10 }, (_, n) => call(c, 's0_whoami', n)));
  for (const r of all) assert.equal(said(r).user, 'ann@there');
  assert.equal(whose.seen.refreshed, before + 1);
});

test('a token that the issuer no longer knows: the person is asked again', async (t) => {
  await connect(server.url, as('cat'), 's2', 'cat@s2');
  const c = await client('cat', { t });
  await c.listTools();
  assert.equal(said(await call(c, 's2_whoami', 1)).user, 'cat@s2');
  whose.forget('s2', 'cat@s2');
  await assert.rejects(call(c, 's2_whoami', 2), /sign-in by a person/);
  assert.match((await call(c, 's2_whoami', 3)).content[0].text, /not connected/);
  assert.deepEqual(await connected('cat'), []);
});

test('disconnecting revokes the token and ends the connection, of this person only', async (t) => {
  const [ann, bob] = [await client('ann', { t }), await client('bob', { t })];
  const { sessions, streams } = whose.server('s0');
  const listening = () => [...streams.keys()].map((id) => sessions.get(id));
  await call(ann, 's0_whoami', 1);
  await until(() => listening().includes('ann@there'), 'her stream');
  assert.deepEqual(await api('ann', 'DELETE', '/s0'), { ok: true, revoked: true });
  assert.equal(whose.seen.revoked, 1);
  await until(() => !listening().includes('ann@there'), 'the end of her connection');
  assert.match((await call(ann, 's0_whoami', 2)).content[0].text, /not connected/);
  assert.equal(said(await call(bob, 's0_whoami', 3)).user, 'bob@there');
  assert.equal((await api('ann', 'DELETE', '/s0')).code, 'not_found');
});

test('the tokens are sealed, and in no log', async () => {
  const files = await readdir(join(state(), 'connections'));
  assert.ok(files.length >= 4);
  const tokens = whose.servers.flatMap((s) => [...s.access.keys(), ...s.refresh.keys()]);
  for (const name of files) {
    assert.match(name, /^[0-9a-f]{64}$/);
    const bytes = await readFile(join(state(), 'connections', name), 'latin1');
    for (const t of [...tokens, 'there', 'ann', 'http']) assert.ok(!bytes.includes(t), `${name} has ${t}`);
  }
  let audit, rows; // outcomes are written in groups, after the answer
  const at = (who, said) => rows.findIndex((r) => r.who === who && (r.action ?? r.outcome) === said);
  await until(async () => {
    audit = await readFile(join(state(), 'audit.jsonl'), 'utf8');
    rows = audit.split('\n').slice(0, -1).map((l) => JSON.parse(l).what).filter((r) => r.kind === 'account');
    return [['ann', 'connected'], ['ann', 'disconnected'], ['cat', 'could not refresh']].every(([who, said]) => at(who, said) >= 0);
  }, 'the rows of accounts');
  for (const t of tokens) assert.ok(!(server.log + audit).includes(t));
  assert.ok(at('ann', 'connect') < at('ann', 'connected') && at('ann', 'disconnect') < at('ann', 'disconnected'));
  assert.ok(at('ann', 'connect') >= 0 && at('ann', 'disconnect') >= 0, 'the record comes first');
});

test('the command lists connections and removes them; the server notices', async (t) => {
  const cli = (...args) => run(bin, ['connections', ...args], { cwd: dir, env: env() });
  await connect(server.url, as('cat'), 's1', 'cat@s1');
  const c = await client('cat', { t });
  assert.equal(said(await call(c, 's1_whoami', 1)).user, 'cat@s1');
  const list = JSON.parse((await cli('list', '--json')).out).connections;
  assert.deepEqual(list.filter((x) => x.person === 'cat').map((x) => x.server), ['s1']);
  assert.ok(list.some((x) => x.person === '' && x.server === 's0'), JSON.stringify(list));
  assert.match((await cli('list')).out, /s1 +cat /);
  const revoked = whose.seen.revoked;
  const gone = await cli('remove', 's1', '--person', 'cat');
  assert.equal(gone.code, 0, gone.err);
  assert.equal(whose.seen.revoked, revoked + 1);
  assert.match((await call(c, 's1_whoami', 2)).content[0].text, /not connected/);
  assert.equal((await cli('remove', 's1', '--person', 'cat')).code, 1);
});

test('a wrong configuration says why', async () => {
  for (const [entry, why] of [
    [{ command: 'x', credentials: 'user' }, /needs 'url'/],
    [{ url: 'http://127.0.0.1:1/', credentials: 'user', headers: { Authorization: 'x' } }, /header 'Authorization'/],
    [{ url: 'http://127.0.0.1:1/', credentials: 'user', scope: 'session' }, /'scope'/],
    [{ url: 'http://127.0.0.1:1/', credentials: 'user', oauth: { enabled: false } }, /oauth.enabled/],
    [{ url: 'http://127.0.0.1:1/', credentials: 'mine' }, /credentials/],
  ]) {
    const own = await mkdtemp(join(tmpdir(), 'mo-connections-'));
    await writeFile(join(own, 'mcp-orchestrator.json'), JSON.stringify({ mcpServers: { x: entry } }));
    const r = await run(bin, ['config', 'check'], { cwd: own, env: named(own) });
    assert.notEqual(r.code, 0, JSON.stringify(entry));
    assert.match(r.out + r.err, why);
    await rm(own, { recursive: true });
  }
});
