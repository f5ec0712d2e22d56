// The gateway with real servers behind it, and what becomes of them: started
// when used, gone when idle, killed, hung, replaced, and never left behind.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Place, below, fixtureServer, isAlive } from '../lib/gateway.mjs';
import { evil } from '../lib/mcp.mjs';
import { client1, client2, text } from '../lib/mcp_talk.mjs';

const WAIT_MS = 30_000;

async function until(check, what) {
  for (const end = Date.now() + WAIT_MS; !(await check()); await sleep(20))
    assert.ok(Date.now() < end, `never: ${what ?? check}`);
}

const small = (...args) => ({ command: evil, args: args.length ? args : ['ok'] });
const names = async (client) => (await client.listTools()).tools.map((t) => t.name).sort();

/** A place that goes with the test. */
function placeFor(t, ...args) {
  const place = new Place(...args);
  t.after(() => place.close());
  return place;
}

/** The gateway on stdio with a client of SDK 1.x: {client, on, call, pid}. */
async function open(t, place, ...args) {
  const it = client1();
  const transport = new Stdio1(place.command(...args));
  await it.client.connect(transport);
  t.after(() => it.client.close());
  return { ...it, pid: transport.pid };
}

/** `serve`, which must end well. */
async function serveFor(t, place) {
  const serve = await place.serve();
  t.after(async () => {
    const { code, log } = await serve.stop();
    assert.equal(code, 0, log);
    assert.doesNotMatch(log, /runtime error|Sanitizer/);
  });
  return serve;
}

/** A client of SDK 1.x over HTTP. */
async function connect(t, serve, options) {
  const it = client1();
  await it.client.connect(new Http1(serve.url, options));
  t.after(() => it.client.close());
  return it;
}

// --- their lives

const numbered = (n, server) =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`s${i}`, server]));
const always = { gateway: { prefix: 'always' } };

test('fifty servers: none runs before a call; lists are remembered', async (t) => {
  const servers = numbered(50, small());
  const place = placeFor(t, servers, always);
  const all = Object.keys(servers).map((s) => `${s}_t`).sort();
  place.legacy(small());
  const first = await open(t, place);
  assert.deepEqual(below(first.pid), [], 'nothing was started for a client alone');
  await until(async () => (await names(first.client)).length === 50, 'all lists');
  await until(() => place.cached().length === 50, 'all lists on disk');
  await first.client.close();
  const again = await open(t, place);
  assert.deepEqual(await names(again.client), all);
  assert.deepEqual(below(again.pid), [], 'nothing was started for that');
  assert.equal(text(await again.call({ name: 's7_t', arguments: {} })), 'grüß');
  assert.equal(below(again.pid).length, 1);
});

test('the end of the input is the end of everything', async (t) => {
  const place = placeFor(t, { a: small(), b: small('stubborn') }, always);
  const { command, args, env } = place.command();
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const end = once(child, 'exit');
  const said = [];
  let id = 0;
  createInterface({ input: child.stdout }).on('line', (l) => said.push(JSON.parse(l)));
  const tell = (m) => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n');
  const ask = async (method, params) => {
    const mine = ++id;
    tell({ id: mine, method, params });
    await until(() => said.some((m) => m.id === mine), method);
    return said.find((m) => m.id === mine).result;
  };
  await ask('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'x', version: '1' },
  });
  tell({ method: 'notifications/initialized' });
  await until(async () => (await ask('tools/list')).tools.length === 2, 'both tools');
  for (const name of ['a_t', 'b_t']) assert.ok(await ask('tools/call', { name, arguments: {} }));
  const children = below(child.pid);
  assert.equal(children.length, 2);
  child.stdin.end();
  assert.deepEqual(await end, [0, null]);
  assert.deepEqual(children.filter(isAlive), []);
  assert.ok(said.every((m) => m.jsonrpc === '2.0'), 'nothing else on stdout');
});

test('kill -9 leaves nobody, not even the stubborn', async (t) => {
  const place = placeFor(t, numbered(8, small('stubborn')), always);
  place.legacy(small('stubborn'));
  const { client, call, pid } = await open(t, place);
  await until(async () => (await names(client)).length === 8, 'all lists');
  for (let i = 0; i < 8; i++) await call({ name: `s${i}_t`, arguments: {} });
  const children = below(pid);
  assert.equal(children.length, 8);
  process.kill(pid, 'SIGKILL');
  await until(() => !children.some(isAlive), 'the end of all children');
});

test('killed: one error, then all is well', async (t) => {
  const place = placeFor(t, { fixture: fixtureServer() });
  const { client, call, pid } = await open(t, place);
  await until(async () => (await names(client)).includes('never'), 'its tools');
  assert.equal(text(await call({ name: 'echo', arguments: { message: 'a' } })), 'a');
  const lost = call({ name: 'never', arguments: {} });
  lost.catch(() => {});
  await call({ name: 'echo', arguments: { message: 'behind it' } });
  process.kill(below(pid)[0], 'SIGKILL');
  await assert.rejects(lost, /fixture/);
  assert.equal(text(await call({ name: 'echo', arguments: { message: 'again' } })), 'again');
});

test('hung: one error, then all is well', async (t) => {
  const place = placeFor(t, { fixture: fixtureServer({ timeoutMs: 8000 }) });
  const { client, call, pid } = await open(t, place);
  await until(async () => (await names(client)).includes('echo'), 'its tools');
  const echo = (message) => call({ name: 'echo', arguments: { message } });
  assert.equal(text(await echo('a')), 'a');
  const [child] = below(pid);
  process.kill(child, 'SIGSTOP');
  await assert.rejects(echo('b'), /fixture/);
  await until(() => !isAlive(child), 'the end of the stopped one');
  assert.equal(text(await echo('c')), 'c');
});

test('replaced by one with other tools: the client is told', async (t) => {
  const place = placeFor(t, {});
  const file = join(place.dir, 'tool');
  writeFileSync(file, 'old');
  place.write({ s: small('ok', file) });
  const { client, on, call, pid } = await open(t, place);
  await until(async () => (await names(client)).includes('old'), 'its tool');
  let told = 0;
  on('notifications/tools/list_changed', () => told++);
  await call({ name: 'old', arguments: {} });
  writeFileSync(file, 'young');
  process.kill(below(pid)[0], 'SIGKILL');
  await until(async () => {
    await call({ name: 'old', arguments: {} }).catch(() => {});
    return told > 0;
  }, 'list_changed');
  assert.deepEqual(await names(client), ['young']);
  assert.equal(text(await call({ name: 'young', arguments: {} })), 'grüß');
});

test('one that cannot be started costs only its own tools', async (t) => {
  const place = placeFor(t, {
    good: small(), bad: small('init-leave'), none: { command: '/nonexistent' },
  });
  const { client, call } = await open(t, place);
  let list;
  await until(async () => {
    list = await client.listTools();
    return list.tools.length === 1 && Object.keys(list._meta ?? {}).length > 0;
  }, 'the good one, and why the others are not there');
  const why = list._meta['mcp-orchestrator/unavailable'];
  assert.match(why.bad, /exit 5/);
  assert.match(why.none, /No such file/);
  assert.equal(text(await call({ name: 't', arguments: {} })), 'grüß');
});

test('a server for each session, gone when the clients vanish', async (t) => {
  const own = small();
  const place = placeFor(t, { s: { ...own, scope: 'session', idleSeconds: 8 } });
  place.legacy(own);
  const serve = await serveFor(t, place);
  const clients = [];
  for (let i = 0; i < 8; i++) clients.push(await connect(t, serve));
  await until(async () => (await names(clients[0].client)).length === 1, 'its tool');
  const said = await Promise.all(clients.map((it) => it.call({ name: 't', arguments: {} })));
  assert.ok(said.every((r) => text(r) === 'grüß'));
  assert.ok(below(serve.pid).length >= 8, 'each has one of its own');
  // No goodbye: only the connections end.
  for (const it of clients) await it.client.transport.close();
  await until(() => below(serve.pid).length === 0, 'the end of their servers');
});

test('a changed configuration is taken over', async (t) => {
  const place = placeFor(t, { a: small() });
  const serve = await serveFor(t, place);
  const { client, on, call } = await connect(t, serve);
  await until(async () => (await names(client)).length === 1, 'its tool');
  let told = 0;
  on('notifications/tools/list_changed', () => told++);
  await call({ name: 't', arguments: {} });
  const [before] = below(serve.pid);
  place.write({ a: small(), b: small('some-noise') });
  await until(async () => (await names(client)).includes('b_t'), 'the new one');
  await until(() => told > 0, 'its news');
  assert.ok(isAlive(before), 'the old one stays');
  await call({ name: 'a_t', arguments: {} });
  place.write({ b: small('some-noise') });
  await until(() => !isAlive(before), 'the end of the one that was taken out');
  await until(async () => (await names(client)).length === 1, 'one tool again');
});

// --- who may come in

test('/mcp is behind the same gate as the rest', async (t) => {
  const token = 'a-token-of-some-length';
  const page = 'https://page.example';
  const place = placeFor(t, {}, { server: { token, origins: [page] } });
  const serve = await serveFor(t, place);
  const authorization = `Bearer ${token}`;
  const ask = (headers, method = 'POST') => fetch(serve.url, {
    method,
    ...(method === 'POST' && { body: '{}' }),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
  });
  assert.equal((await ask({})).status, 401);
  assert.equal((await ask({ authorization, origin: 'http://evil.example' })).status, 403);
  assert.equal((await ask({ authorization })).status, 400);
  const listed = await ask({ authorization, origin: page });
  assert.equal(listed.headers.get('access-control-allow-origin'), page);
  assert.equal(listed.headers.get('access-control-expose-headers'), 'Mcp-Session-Id');
  const may = await ask({
    origin: page,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'mcp-method',
  }, 'OPTIONS');
  assert.match(may.headers.get('access-control-allow-headers'), /Mcp-Method/);
  const { client } = await connect(t, serve, { requestInit: { headers: { authorization } } });
  assert.deepEqual(await names(client), []);
});

test('eight clients at once: nobody hears what is another\'s', async (t) => {
  const place = placeFor(t, { fixture: fixtureServer() });
  const serve = await serveFor(t, place);
  const makers = [
    () => [client1(), new Http1(serve.url)],
    () => [client2('auto'), new v2.StreamableHTTPClientTransport(serve.url)],
  ];
  const clients = [];
  for (let i = 0; i < 8; i++) {
    const [it, transport] = makers[i % 2]();
    await it.client.connect(transport);
    t.after(() => it.client.close());
    clients.push(it);
  }
  await until(async () => (await names(clients[0].client)).includes('echo'), 'its tools');
  const many = async (it, who) => {
    for (let i = 0; i < 40; i++) {
      const message = `${who}/${i}`;
      const seen = [];
      const onprogress = (p) => seen.push(p.progress);
      const [said] = await Promise.all([
        it.call({ name: 'echo', arguments: { message } }),
        i % 8 === 0 && it.call({ name: 'test_tool_with_progress', arguments: {} }, { onprogress }),
      ]);
      assert.equal(text(said), message);
      if (i % 8 === 0) assert.deepEqual(seen, [0, 50, 100]);
    }
  };
  await Promise.all(clients.map(many));
});
