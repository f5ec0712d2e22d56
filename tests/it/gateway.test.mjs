// The gateway with real servers behind it, and what becomes of them: started
// when used, gone when idle, killed, hung, replaced, and never left behind.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Place, below, fixtureServer, isAlive, published } from '../lib/gateway.mjs';
import { evil } from '../lib/mcp.mjs';
import { client1, client2, text } from '../lib/mcp_talk.mjs';

const WAIT_MS = 30_000;

async function until(check, what) {
  for (const end = Date.now() + WAIT_MS; !(await check()); await sleep(20))
    assert.ok(Date.now() < end, `never: ${what ?? check}`);
}

const small = (...args) => ({ command: evil, args: args.length ? args : ['ok'] });
const names = async (client) => (await client.listTools()).tools.map((t) => t.name).sort();

/** The gateway on stdio with a client of SDK 1.x: {it, client, pid}. */
async function open(place, ...args) {
  const it = client1();
  const transport = new Stdio1(place.command(...args));
  await it.client.connect(transport);
  return { ...it, pid: transport.pid };
}

// --- many servers at once

describe('four servers at once', () => {
  const place = new Place({});
  const docs = join(place.dir, 'docs');
  let serve;

  mkdirSync(docs);
  writeFileSync(join(docs, 'a.txt'), 'in the file');
  place.write({
    fixture: fixtureServer(),
    everything: published('server-everything'),
    files: published('server-filesystem', docs),
    memory: { ...published('server-memory'), env: { MEMORY_FILE_PATH: join(docs, 'memory.json') } },
  });
  after(async () => {
    const { code, log } = await serve.stop();
    assert.equal(code, 0, log);
    place.close();
  });

  const kinds = [
    ['sdk 1.x, stdio', client1, () => new Stdio1(place.command())],
    ['sdk 1.x, http', client1, () => new Http1(serve.url)],
    ['client 2.x auto, http', () => client2('auto'),
      () => new v2.StreamableHTTPClientTransport(serve.url)],
  ];
  for (const [name, make, transport] of kinds) {
    test(name, async () => {
      serve ??= await place.serve();
      const it = make();
      await it.client.connect(transport());
      try {
        await until(async () => {
          const all = await names(it.client);
          return ['create_entities', 'get-sum', 'read_text_file', 'test_simple_text']
            .every((n) => all.includes(n));
        }, 'tools of all four');
        const all = await names(it.client);
        assert.ok(all.includes('fixture_echo'), 'two servers have an echo');
        assert.ok(all.includes('everything_echo'));
        assert.ok(!all.includes('echo'));
        const say = async (tool, args) => text(await it.call({ name: tool, arguments: args }));
        assert.equal(await say('fixture_echo', { message: 'hé' }), 'hé');
        assert.match(await say('everything_echo', { message: 'hé' }), /hé/);
        assert.match(await say('get-sum', { a: 2, b: 3 }), /5/);
        assert.equal(await say('read_text_file', { path: join(docs, 'a.txt') }), 'in the file');
        const entity = { name: `ann ${name}`, entityType: 'person', observations: ['kind'] };
        assert.match(await say('create_entities', { entities: [entity] }), /ann/);
        const { prompts } = await it.client.listPrompts();
        assert.ok(prompts.some((p) => p.name === 'test_simple_prompt'));
        assert.ok(prompts.length > 5, 'of more than one server');
        const { contents } = await it.client.readResource({ uri: 'test://static-text' });
        assert.match(contents[0].text, /./);
      } finally {
        await it.client.close();
      }
    });
  }
});

// --- their lives

test('fifty servers: none runs before a call; lists are remembered', async () => {
  const servers = Object.fromEntries(
    Array.from({ length: 50 }, (_, i) => [`s${i}`, small()]),
  );
  const place = new Place(servers, { gateway: { prefix: 'always' } });
  const all = Object.keys(servers).map((s) => `${s}_t`).sort();
  place.legacy(small());
  try {
    const first = await open(place);
    await until(async () => (await names(first.client)).length === 50, 'all lists');
    await until(() => place.cached().length === 50, 'all lists on disk');
    await first.client.close();
    const again = await open(place);
    assert.deepEqual(await names(again.client), all);
    assert.deepEqual(below(again.pid), [], 'nothing was started for that');
    assert.equal(text(await again.call({ name: 's7_t', arguments: {} })), 'grüß');
    assert.equal(below(again.pid).length, 1);
    await again.client.close();
  } finally {
    place.close();
  }
});

test('the end of the input is the end of everything', async () => {
  const place = new Place({ a: small(), b: small('stubborn') }, { gateway: { prefix: 'always' } });
  try {
    const { command, args, env } = place.command();
    const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
    const end = once(child, 'exit');
    const said = [];
    createInterface({ input: child.stdout }).on('line', (l) => said.push(JSON.parse(l)));
    const tell = (m) => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n');
    tell({
      id: 1, method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
    });
    await until(() => said.some((m) => m.id === 1));
    tell({ method: 'notifications/initialized' });
    tell({ id: 2, method: 'tools/call', params: { name: 'a_t', arguments: {} } });
    tell({ id: 3, method: 'tools/call', params: { name: 'b_t', arguments: {} } });
    tell({ id: 4, method: 'tools/list' });
    await until(() => said.some((m) => m.id === 4 && m.result.tools.length === 2)
      || (tell({ id: 4, method: 'tools/list' }), false));
    tell({ id: 5, method: 'tools/call', params: { name: 'b_t', arguments: {} } });
    await until(() => said.some((m) => m.id === 5));
    const children = below(child.pid);
    assert.equal(children.length, 2);
    child.stdin.end();
    const [code] = await end;
    assert.equal(code, 0);
    assert.deepEqual(children.filter(isAlive), []);
    assert.ok(said.every((m) => m.jsonrpc === '2.0'), 'nothing else on stdout');
  } finally {
    place.close();
  }
});

test('kill -9 leaves nobody, not even the stubborn', async () => {
  const servers = Object.fromEntries(
    Array.from({ length: 8 }, (_, i) => [`s${i}`, small('stubborn')]),
  );
  const place = new Place(servers, { gateway: { prefix: 'always' } });
  place.legacy(small('stubborn'));
  try {
    const { client, call, pid } = await open(place);
    await until(async () => (await names(client)).length === 8, 'all lists');
    for (const s of Object.keys(servers)) await call({ name: `${s}_t`, arguments: {} });
    const children = below(pid);
    assert.equal(children.length, 8);
    process.kill(pid, 'SIGKILL');
    await until(() => !children.some(isAlive), 'the end of all children');
    await client.close();
  } finally {
    place.close();
  }
});

test('killed: one error, then all is well', async () => {
  const place = new Place({ fixture: fixtureServer() });
  try {
    const { client, call, pid } = await open(place);
    await until(async () => (await names(client)).includes('never'), 'its tools');
    const lost = call({ name: 'never', arguments: {} });
    await until(() => below(pid).length === 1);
    await sleep(100);
    process.kill(below(pid)[0], 'SIGKILL');
    await assert.rejects(lost, /fixture/);
    assert.equal(text(await call({ name: 'echo', arguments: { message: 'again' } })), 'again');
    await client.close();
  } finally {
    place.close();
  }
});

test('hung: one error, then all is well', async () => {
  const place = new Place({ fixture: fixtureServer({ timeoutMs: 1500 }) });
  try {
    const { client, call, pid } = await open(place);
    await until(async () => (await names(client)).includes('echo'), 'its tools');
    const echo = (message) => call({ name: 'echo', arguments: { message } });
    assert.equal(text(await echo('a')), 'a');
    const [child] = below(pid);
    process.kill(child, 'SIGSTOP');
    await assert.rejects(echo('b'), /fixture/);
    await until(async () => (await echo('c').catch(() => null)) !== null, 'an answer');
    await client.close();
    await until(() => !isAlive(child), 'the end of the stopped one');
  } finally {
    place.close();
  }
});

test('replaced by one with other tools: the client is told', async () => {
  const place = new Place({});
  const file = join(place.dir, 'tool');
  writeFileSync(file, 'old');
  place.write({ s: small('ok', file) });
  try {
    const { client, on, call, pid } = await open(place);
    await until(async () => (await names(client)).includes('old'), 'its tool');
    let told = 0;
    on('notifications/tools/list_changed', () => told++);
    await call({ name: 'old', arguments: {} });
    writeFileSync(file, 'young');
    process.kill(below(pid)[0], 'SIGKILL');
    await call({ name: 'old', arguments: {} }).catch(() => {});
    await until(() => told > 0, 'list_changed');
    assert.deepEqual(await names(client), ['young']);
    assert.equal(text(await call({ name: 'young', arguments: {} })), 'grüß');
    await client.close();
  } finally {
    place.close();
  }
});

test('one that cannot be started costs only its own tools', async () => {
  const place = new Place({ good: small(), bad: small('init-leave'), none: { command: '/nonexistent' } });
  try {
    const { client, call } = await open(place);
    let list;
    await until(async () => {
      list = await client.listTools();
      return list.tools.length === 1 && Object.keys(list._meta ?? {}).length > 0;
    }, 'the good one, and why the others are not there');
    const why = list._meta['mcp-orchestrator/unavailable'];
    assert.match(why.bad, /./);
    assert.match(why.none, /nonexistent|No such file/);
    assert.equal(text(await call({ name: 't', arguments: {} })), 'grüß');
    await client.close();
  } finally {
    place.close();
  }
});

test('a server of one session each, gone when the clients vanish', async () => {
  const own = fixtureServer({ scope: 'session', idleSeconds: 1 });
  const place = new Place({ fixture: own });
  const serve = await place.serve();
  try {
    const clients = [];
    for (let i = 0; i < 8; i++) {
      const it = client1();
      await it.client.connect(new Http1(serve.url));
      clients.push(it);
    }
    await until(async () => (await names(clients[0].client)).includes('stats'), 'its tools');
    const count = async (it) =>
      JSON.parse(text(await it.call({ name: 'stats', arguments: {} }))).calls;
    const seen = await Promise.all(clients.map(count));
    assert.deepEqual(seen, seen.map(() => 1), 'each has one of its own');
    assert.ok(below(serve.pid).length >= 8);
    // No goodbye: only the connections end.
    for (const it of clients) await it.client.transport.close();
    await until(() => below(serve.pid).length === 0, 'the end of their servers');
  } finally {
    const { code, log } = await serve.stop();
    place.close();
    assert.equal(code, 0, log);
  }
});

test('a changed configuration is taken over', async () => {
  const place = new Place({ a: small() });
  const serve = await place.serve();
  try {
    const { client, on, call } = client1();
    await client.connect(new Http1(serve.url));
    await until(async () => (await names(client)).length === 1, 'its tool');
    let told = 0;
    on('notifications/tools/list_changed', () => told++);
    await call({ name: 't', arguments: {} });
    const [before] = below(serve.pid);
    place.write({ a: small(), b: small('some-noise') });
    await until(async () => (await names(client)).includes('b_t'), 'the new one');
    assert.ok(told > 0);
    assert.ok(isAlive(before), 'the old one stays');
    await call({ name: 'a_t', arguments: {} });
    place.write({ b: small('some-noise') });
    await until(() => !isAlive(before), 'the end of the one that was taken out');
    await until(async () => (await names(client)).length === 1, 'one tool again');
    await client.close();
  } finally {
    const { code, log } = await serve.stop();
    place.close();
    assert.equal(code, 0, log);
  }
});

test('/mcp is behind the same gate as the rest', async () => {
  const place = new Place({}, { server: { token: 'a-token-of-some-length' } });
  const serve = await place.serve();
  try {
    const post = (headers) => fetch(serve.url, {
      method: 'POST', body: '{}',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    });
    assert.equal((await post({})).status, 401);
    const authorization = 'Bearer a-token-of-some-length';
    assert.equal((await post({ authorization, origin: 'http://evil.example' })).status, 403);
    assert.notEqual((await post({ authorization })).status, 401);
    const { client } = client1();
    await client.connect(new Http1(serve.url, { requestInit: { headers: { authorization } } }));
    assert.deepEqual(await names(client), []);
    await client.close();
  } finally {
    await serve.stop();
    place.close();
  }
});
