// H9: somebody wants the account of another person at a server that gets its
// users' own credentials: by another's callback, a mixed-up issuer, a page of
// another site, a moved or forged file, a look-alike name, or a server that
// lies about where it moved.
import assert from 'node:assert/strict';
import { copyFile, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';

import { Whose, connect } from '../lib/whose.mjs';
import { named } from '../lib/mcp.mjs';
import { Server, until } from '../it/server.mjs';

const OPERATOR = 'op-0123456789abcdef012345';
const NAMES = ['ann', 'bob', 'an', 'n', 'Ann', 'ANN', 'ann.', '.ann', '..', 's0', 'p-ann', 'connections', 'ann@s0'];
const TOKENS = Object.fromEntries(NAMES.map((n, i) => [n, `token-${i}-0123456789abcdef0123`]));
let dir, whose, server;
const write = (servers = whose.config()) => writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
  mcpServers: servers, gateway: { prefix: 'always' }, approvals: { default: 'allow' },
  server: { token: OPERATOR, tokens: TOKENS },
}));
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-h9-'));
  whose = await new Whose(3).start();
  await write();
  server = await Server.start([], { dir, auth: true, env: { ...named(dir), MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
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
const state = async (who) => (await (await fetch(`${server.url}/api/connections`, { headers: as(who) })).json()).connections;
const connected = async (who) => (await state(who)).filter((c) => c.connected && !c.error).map((c) => c.server);
const begin = async (who, name = 's0') => new URL((await (await fetch(`${server.url}/api/connections/${name}`, { method: 'POST', headers: as(who) })).json()).url);
const authorize = async (there, login) => new URL((await fetch(`${there}&login=${login}`, { redirect: 'manual' })).headers.get('location'));
const finish = async (who, query, headers = {}) => {
  const r = await fetch(`${server.url}/connections/finish${query}`, { headers: { ...(who === null ? {} : as(who)), ...headers } });
  return { status: r.status, text: await r.text() };
};
let id = 0;
async function call(who, tool) {
  const post = async (body, more = {}) => fetch(`${server.url}/mcp`, { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: ++id, ...body }),
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...as(who), ...more } });
  const hello = await post({ method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'it', version: '1' } } });
  const session = { 'mcp-session-id': hello.headers.get('mcp-session-id') };
  await hello.text();
  await (await post({ method: 'tools/list' }, session)).text();
  return (await post({ method: 'tools/call', params: { name: tool, arguments: { n: 1 } } }, session)).text();
}

test('another person\'s callback: neither gets anything', async () => {
  const back = await authorize(await begin('bob'), 'bob');
  const r = await finish('ann', back.search); // bob sent her his link
  assert.equal(r.status, 403);
  assert.deepEqual([await connected('ann'), await connected('bob')], [[], []]);
  assert.equal((await finish('bob', back.search)).status, 200); // his own still waits
  assert.deepEqual([await connected('ann'), await connected('bob')], [[], ['s0']]);
});

test('an attacker\'s code in the sign-in of the victim, and the other way round', async () => {
  const [hers, his] = [await authorize(await begin('ann'), 'ann'), await authorize(await begin('bob', 's1'), 'bob')];
  const mixed = new URL(hers);
  mixed.searchParams.set('state', his.searchParams.get('state'));
  assert.equal((await finish('ann', mixed.search)).status, 403); // his state, her code
  assert.deepEqual(await connected('ann'), []);
  const forced = new URL(his);
  forced.searchParams.set('state', hers.searchParams.get('state')); // if he knew it
  assert.equal((await finish('ann', forced.search)).status, 403); // the issuer is another one
  assert.deepEqual(await connected('ann'), []);
});

test('answers that are no answers', async () => {
  const back = await authorize(await begin('ann'), 'ann');
  for (const query of ['', '?', '?code=x', '?state=&code=x', `?state=${'a'.repeat(32)}&code=x`, `?state=${'a'.repeat(1000)}`,
    `?code=x&state=${back.searchParams.get('state').slice(0, -1)}`, `?code=x&state=${back.searchParams.get('state')}x`])
    assert.equal((await finish('ann', query)).status, 403, query);
  const twice = `${back.search}&state=${back.searchParams.get('state')}`;
  assert.equal((await finish('ann', twice)).status, 403);
  assert.equal((await finish(null, back.search)).status, 401);
  assert.equal((await finish('ann', back.search, { 'sec-fetch-site': 'cross-site' })).status, 403);
  assert.deepEqual(await connected('ann'), []);
  assert.equal((await finish('ann', back.search)).status, 200);
  assert.equal((await finish('ann', back.search)).status, 403); // a replay
  assert.deepEqual(await connected('ann'), ['s0']);
  await fetch(`${server.url}/api/connections/s0`, { method: 'DELETE', headers: as('ann') });
});

test('the callback redirects to our own page only, and is no HTML of others', async () => {
  for (const query of ['?x="><script>1</script>', '?url=https://evil.example/', '?a=1;url=https://evil.example/', '?%22%3E=1', '?a=\'"']) {
    const r = await fetch(`${server.url}/connections/callback${query}`);
    const text = await r.text();
    assert.equal(r.headers.get('location'), null);
    if (r.status === 400) continue;
    assert.match(text, /content="0;url=\/connections\/finish\?[^"<>]*">/);
    assert.doesNotMatch(text.replace(/content="[^"]*"/, ''), /evil|script/);
  }
  assert.equal((await fetch(`${server.url}/connections/callback`)).status, 400);
});

test('a page of another site cannot begin or end a connection', async () => {
  for (const method of ['POST', 'DELETE']) {
    const r = await fetch(`${server.url}/api/connections/s0`, { method, headers: { ...as('bob'), origin: 'https://evil.example' } });
    assert.equal(r.status, 403, method);
  }
  assert.deepEqual((await connected('bob')), ['s0']);
});

test('names that look alike are different people', async () => {
  const mine = NAMES.filter((n) => n !== 'ann' && n !== 'bob');
  for (const n of mine) assert.equal((await connect(server.url, as(n), 's2', encodeURIComponent(n))).status, 200, n);
  for (const n of mine) {
    assert.deepEqual(await connected(n), ['s2'], n);
    assert.match(await call(n, 's2_whoami'), new RegExp(JSON.stringify(JSON.stringify({ user: encodeURIComponent(n) })).slice(1, -3).replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')), n);
  }
  assert.match(await call('ann', 's2_whoami'), /not connected/);
  assert.equal((await readdir(join(dir, 'state/connections'))).filter((f) => !/^[0-9a-f]{64}$/.test(f)).length, 0);
});

test('a file that is copied to another person, changed or planted does not open', async () => {
  const files = join(dir, 'state/connections');
  const old = new Set(await readdir(files));
  assert.equal((await connect(server.url, as('ann'), 's1', 'ann')).status, 200);
  const hers = (await readdir(files)).filter((f) => !old.has(f));
  const seen = new Set(await readdir(files));
  assert.equal((await connect(server.url, as('bob'), 's1', 'bob')).status, 200);
  const his = (await readdir(files)).find((f) => !seen.has(f));
  const ann = (await Promise.all(hers.map(async (f) => [f, (await stat(join(files, f))).mtimeMs]))).sort((a, b) => b[1] - a[1])[0][0];
  for (const spoil of [(f) => copyFile(join(files, ann), f), (f) => writeFile(f, 'MOSEAL1\n'), (f) => writeFile(f, ''), (f) => writeFile(f, JSON.stringify({ version: 1, tokens: [] }))]) {
    await spoil(join(files, his));
    assert.deepEqual((await connected('bob')).includes('s1'), false);
    assert.doesNotMatch(await call('bob', 's1_whoami'), /\\"user\\":\\"ann/);
  }
  assert.match(await call('ann', 's1_whoami'), /\\"user\\":\\"ann/);
});

test('a server that moves to another address does not get the old tokens', async () => {
  const seen = [];
  whose.lie = (rq) => {
    if (/moved/.test(rq.url)) seen.push(rq.headers.authorization);
    return false;
  };
  const servers = whose.config();
  servers.s0 = { ...servers.s0, url: `${whose.base}/s1/mcp?moved` };
  const loads = () => server.log.match(/generation \d+ loaded/g)?.length ?? 0;
  const n = loads();
  await write(servers);
  server.child.kill('SIGHUP');
  await until(() => loads() > n, 'the reload');
  await call('bob', 's0_whoami');
  assert.deepEqual(seen.filter(Boolean), []);
  await write();
  server.child.kill('SIGHUP');
  await until(() => loads() > n + 1, 'the reload');
  whose.lie = undefined;
});

test('a person who is removed cannot be used', async () => {
  assert.equal((await connect(server.url, as('an'), 's0', 'an')).status, 200);
  const kept = TOKENS.an;
  delete TOKENS.an;
  const loads = () => server.log.match(/generation \d+ loaded/g)?.length ?? 0;
  const n = loads();
  await write();
  server.child.kill('SIGHUP');
  await until(() => loads() > n, 'the reload');
  const r = await fetch(`${server.url}/api/connections`, { headers: { authorization: `Bearer ${kept}` } });
  assert.equal(r.status, 401);
});

test('one person who is refused delays nobody else', async () => {
  assert.equal((await connect(server.url, as('Ann'), 's0', 'Ann')).status, 200);
  assert.equal((await connect(server.url, as('bob'), 's0', 'bob')).status, 200);
  whose.forget('s0', 'Ann');
  assert.match(await call('Ann', 's0_whoami'), /sign-in|not connected|connect/);
  assert.match(await call('bob', 's0_whoami'), /\\"user\\":\\"bob/); // no pause for him
});
