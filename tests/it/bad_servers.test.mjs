// Servers and entries that are wrong in every way we know: each says what is
// wrong with it, and costs the others nothing.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Place, isAlive, script, slay } from '../lib/gateway.mjs';
import { client1, text } from '../lib/mcp_talk.mjs';
import { Moody, error, until } from '../lib/moody.mjs';

const WHY = 'mcp-orchestrator/unavailable';

// Mood or entry, and what is said of it.
const none = { command: undefined, args: undefined };
const bad = {
  hangs: ['no-init', { startTimeoutMs: 1500 }, /initialize: no answer in time/],
  dies: ['no-start', {}, /ended \(exit 3\)/],
  nonsense: ['nonsense', {}, /on its standard output are not JSON/],
  missing: ['', { command: '/nonexistent/program', args: [] }, /No such file or directory/],
  unreachable: ['', { ...none, url: 'http://127.0.0.1:1/mcp' }, /cannot connect to/], // nobody listens there
  keyless: ['', { env: { TOKEN: '${secret:nobody-set-this}' } }, /nobody-set-this.*secrets set/],
  homeless: ['', { env: { TOKEN: '${env:NOBODY_SET_THIS}' } }, /NOBODY_SET_THIS/],
};

test('each says what is wrong, and the good ones do not notice', async (t) => {
  const entries = Object.entries(bad).map(([name, [, more]]) => [name, more]);
  const m = new Moody(t, { good: {}, noisy: {}, ...Object.fromEntries(entries) });
  for (const [name, [mood]] of Object.entries(bad)) if (mood) m.mood(name, mood);
  m.mood('noisy', 'noisy');
  const { client, run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 6, 'the tools of those that work');
  assert.equal(text(await run('good_work', 1)), 'good work 1');
  assert.equal(text(await run('noisy_work', 1)), 'noisy work 1');
  let why;
  await until(async () => {
    why = (await client.listTools())._meta[WHY];
    return Object.entries(bad).every(([name, [, , said]]) => said.test(why[name] ?? ''));
  }, 'all reasons').catch(() => assert.deepEqual(why, Object.fromEntries(Object.entries(bad).map(([n, r]) => [n, String(r[2])]))));
  assert.deepEqual(Object.keys(why).sort(), Object.keys(bad).sort());
  assert.equal(text(await run('good_work', 2)), 'good work 2');
});

test('100,000 tools: as many as there may be, and it says so', async (t) => {
  const m = new Moody(t, { good: {}, many: {} });
  m.mood('many', 'many:100000');
  const { client, run } = await m.open(t);
  let page, all = 0;
  await until(async () => {
    page = await client.listTools();
    return page._meta?.[WHY]?.many?.includes('beyond the limit');
  }, 'its tools');
  for (let cursor; ; cursor = page.nextCursor) {
    page = await client.listTools({ cursor });
    all += page.tools.length;
    if (!page.nextCursor) break;
  }
  assert.equal(all, 10_003);
  assert.match(page._meta[WHY].many, /90003 tools beyond the limit/);
  assert.equal(text(await run('many_t9996', 1)), 'many t9996 1');
  assert.equal(text(await run('good_work', 1)), 'good work 1');
});

test('50 MB at once: an error, and the next call is well again', async (t) => {
  const m = new Moody(t, { good: {}, big: {} });
  const { run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 6, 'their tools');
  m.mood('big', 'big:50000000');
  const said = error(run('big_work', 1));
  assert.equal(text(await run('good_work', 1)), 'good work 1');
  assert.match((await said).message, /big: the answer is longer than 16777216 bytes/);
  m.mood('big', 'ok');
  assert.equal(text(await run('big_work', 2)), 'big work 2');
});

/** A client over HTTP, of a `serve` that others use, too. */
async function joinServe(t, serve) {
  const it = client1();
  await it.client.connect(new Http1(serve.url));
  t.after(() => it.client.close());
  return { ...it, run: (name, n) => it.call({ name, arguments: { n } }) };
}

/** Two clients of one process of a server, its pid, and how many calls that took:
 *  each worker of ours has a process of its own. */
async function joinBoth(t, serve, m) {
  const seen = new Map();
  m.mood('shared', 'pid');
  for (let calls = 1; calls < 30; calls++) {
    const it = await joinServe(t, serve);
    if (calls === 1) await until(async () => (await it.client.listTools()).tools.length === 3, 'its tools');
    const pid = text(await it.run('shared_work', 1));
    if (seen.has(pid)) return { a: seen.get(pid), b: it, pid, calls };
    seen.set(pid, it);
  }
  return assert.fail('no two clients of one process');
}

// The held answer is written right behind the one that is too long.
for (const mood of ['big', 'big-last'])
  test(`${mood}: one answer is too long, the other client's arrives`, async (t) => {
    const m = new Moody(t, { shared: {} });
    const serve = await m.place.serve();
    t.after(() => serve.stop());
    const { a, b, pid, calls } = await joinBoth(t, serve, m);
    m.mood('shared', 'hold');
    const held = a.run('shared_work', 2);
    await until(() => m.done('shared').length === calls + 1, 'the held call');
    m.mood('shared', `${mood}:20000000`);
    const said = await error(b.run('shared_work', 3));
    assert.match(said.message, /shared: the answer is longer than 16777216 bytes/);
    assert.equal(text(await held), 'shared work 2');
    m.mood('shared', 'pid');
    assert.equal(text(await b.run('shared_work', 4)), pid);
    assert.equal(m.done('shared').length, calls + 3);
  });

// No call of ours could be told: the connection ends, and a new one works.
for (const mood of ['big-ask', 'big-tell'])
  test(`${mood}: too long and no answer`, async (t) => {
    const m = new Moody(t, { big: {} });
    const { run, tools } = await m.open(t);
    await until(async () => (await tools()).length === 3, 'its tools');
    m.mood('big', `${mood}:20000000`);
    assert.match((await error(run('big_work', 1))).message, /big: line too long: over 16777216 bytes/);
    m.mood('big', 'ok');
    assert.equal(text(await run('big_work', 2)), 'big work 2');
  });

// Answers of servers of the older era to server/discover.
const html = '<!doctype html><title>Oops</title>';
const refusals = {
  unknown: [200, 'application/json', (id) => ({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } })],
  internal: [500, 'application/json', (id) => ({ jsonrpc: '2.0', id, error: { code: -32603, message: 'no' } })],
  crash: [500, 'text/html', () => html],
  page: [200, 'text/html', () => html],
  bad: [400, 'text/plain', () => 'Bad Request: Server not initialized'],
  missing: [404, 'text/html', () => html],
  unavailable: [503, 'text/plain', () => ''],
};

/** A legacy server over HTTP at /NAME for each refusal; asked: the methods. */
async function older(t) {
  const asked = {};
  const web = createHttp(async (req, res) => {
    const name = req.url.slice(1);
    const body = JSON.parse(Buffer.concat(await req.toArray()).toString() || '{}');
    (asked[name] ??= []).push(body.method);
    const say = (status, type, answer) => {
      res.writeHead(status, { 'content-type': type });
      res.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
    };
    const result = (r) => say(200, 'application/json', { jsonrpc: '2.0', id: body.id, result: r });
    if (req.method !== 'POST') say(405, 'text/plain', '');
    else if (body.id === undefined) say(202, 'text/plain', '');
    else if (body.method === 'server/discover') {
      const [status, type, answer] = refusals[name];
      say(status, type, answer(body.id));
    } else if (body.method === 'initialize')
      result({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name, version: '1' } });
    else result({ tools: [{ name, inputSchema: { type: 'object' } }] });
  }).listen(0, '127.0.0.1');
  await once(web, 'listening');
  t.after(() => (web.closeAllConnections(), web.close()));
  return { asked, url: (name) => `http://127.0.0.1:${web.address().port}/${name}` };
}

test('server/discover answered with any error falls back to initialize', async (t) => {
  const { asked, url } = await older(t);
  const m = new Moody(t, {});
  const names = Object.keys(refusals);
  m.place.write({
    ...Object.fromEntries(names.map((n) => [n, { url: url(n) }])),
    told: { url: url('told'), era: 'legacy' },
    newest: { url: url('crash'), era: 'modern' },
  });
  const { client } = await m.open(t);
  const { tools, _meta } = await client.listTools();
  assert.deepEqual(tools.map((x) => x.name).sort(), [...names, 'told'].sort());
  assert.deepEqual(_meta[WHY], { newest: 'newest: the server refuses server/discover (HTTP status 500)' });
  assert.equal(asked.told[0], 'initialize');
  assert.equal(asked.crash.filter((x) => x === 'server/discover').length, 2);
});

test('the whole reason: the line with the error, the words of the server', async (t) => {
  const m = new Moody(t, { good: {} });
  const dir = m.place.dir;
  const odd = (name, answers) => {
    writeFileSync(join(dir, `${name}.json`), JSON.stringify(answers));
    return script('odd.mjs', join(dir, `${name}.json`));
  };
  const tools = { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] };
  const says = (message) => ({ error: { code: -32603, message } });
  const servers = {
    ...m.servers,
    crash: { command: process.execPath, args: ['-e', 'function a() { throw new Error("the port 4711 is taken"); }\nfunction b() { a(); }\nb();'] },
    listless: odd('listless', { 'tools/list': says('the database is locked') }),
    half: odd('half', { 'tools/list': tools, 'resources/list': says('no bucket'), 'prompts/list': says('no prompts today') }),
  };
  m.place.write(servers);
  m.place.legacy(...Object.values(servers));
  const { client } = await m.open(t);
  let names, _meta;
  await until(async () => {
    ({ tools: names, _meta } = await client.listTools());
    return names.length === 4 && Object.values(_meta[WHY]).every((w) => !/has not answered yet/.test(w));
  }, 'all lists');
  assert.deepEqual(names.map((x) => x.name).sort(), ['echo', 'look', 'set', 'work']);
  assert.deepEqual(Object.keys(_meta[WHY]).sort(), ['crash', 'listless']);
  assert.match(_meta[WHY].crash, /ended \(exit 1\); it said: .*Error: the port 4711 is taken.*Node\.js v/);
  assert.equal(_meta[WHY].listless, 'tools/list: the server answers error -32603: the database is locked');
  const resources = await client.listResources();
  assert.equal(resources._meta[WHY].half, 'its resources cannot be read: resources/list: the server answers error -32603: no bucket');
  assert.equal((await client.listPrompts())._meta[WHY].half, 'its prompts cannot be read: prompts/list: the server answers error -32603: no prompts today');
  assert.deepEqual((await client.callTool({ name: 'echo', arguments: {} })).content, []);
});

// Each ends the server in another way; so does the process that it started.
const ends = {
  'its client leaves': ({ client }) => client.close(),
  'SIGTERM of the gateway': ({ pid }) => process.kill(pid, 'SIGTERM'),
  'SIGKILL of the gateway': ({ pid }) => process.kill(pid, 'SIGKILL'),
  'SIGKILL of the server': (_, server) => process.kill(server, 'SIGKILL'),
  'a changed configuration': (_, __, m) => m.write({ leaves: { startTimeoutMs: 12_345 } }),
};

for (const [how, end] of Object.entries(ends)) for (const mood of ['stray', 'bare-stray'])
  test(`a process in a session of its own ends with its server: ${how}, ${mood}`, async (t) => {
    const m = new Moody(t, { leaves: {}, stays: {} });
    m.mood('leaves', mood);
    m.mood('stays', mood);
    const it = await m.open(t);
    await until(async () => (await it.tools()).length === 6, 'their tools');
    const [server, stray] = m.done('leaves')[0].split(' ').map(Number);
    const [, other] = m.done('stays')[0].split(' ').map(Number);
    t.after(() => [stray, other].filter(isAlive).forEach(slay));
    assert.ok(isAlive(stray) && isAlive(other));
    await end(it, server, m);
    await until(() => !isAlive(stray), 'the end of the process');
    if (how.includes('server') || how.includes('configuration')) assert.ok(isAlive(other));
    else await until(() => !isAlive(other), 'the end of the other process');
  });

test('two of one name, a fallback to nobody: not started at all', async (t) => {
  const place = new Place({});
  t.after(() => place.close());
  const check = (config) => {
    writeFileSync(place.file, config);
    const { command, args, env } = place.command();
    return new Promise((resolve) => execFile(command, args, { env }, (e, out, err) => resolve({ code: e?.code ?? 0, err })));
  };
  const twice = await check('{"mcpServers":{"a":{"command":"x"},\n"a":{"command":"y"}}}');
  assert.equal(twice.code, 3);
  assert.match(twice.err, /:2:1: 'mcpServers\.a' is given twice/);
  const nobody = await check('{"mcpServers":{"a":{"command":"x","tools":{"t":{"fallback":["b/t"]}}}}}');
  assert.equal(nobody.code, 3);
  assert.match(nobody.err, /'mcpServers\.a\.tools\.t\.fallback': there is no server 'b'/);
  const odd = await check('{"mcpServers":{"a":{"command":"x","tools":{"":{"hide":true}}}}}');
  assert.match(odd.err, /a tool's name has 1 to 256 bytes/);
});
