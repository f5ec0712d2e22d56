// Servers and entries that are wrong in every way we know: each says what is
// wrong with it, and costs the others nothing.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Place } from '../lib/gateway.mjs';
import { client1, text } from '../lib/mcp_talk.mjs';
import { Moody, error, until } from '../lib/moody.mjs';

const WHY = 'mcp-orchestrator/unavailable';

/** A port at which nobody listens. */
async function deadPort() {
  const s = createServer().listen(0, '127.0.0.1');
  await once(s, 'listening');
  const { port } = s.address();
  s.close();
  await once(s, 'close');
  return port;
}

// Mood or entry, and what is said of it.
const none = { command: undefined, args: undefined };
const bad = (port) => ({
  hangs: ['no-init', { startTimeoutMs: 1500 }, /initialize: no answer in time/],
  dies: ['no-start', {}, /ended \(exit 3\)/],
  nonsense: ['nonsense', {}, /on its standard output are not JSON/],
  missing: ['', { command: '/nonexistent/program', args: [] }, /No such file or directory/],
  unreachable: ['', { ...none, url: `http://127.0.0.1:${port}/mcp` }, /cannot connect to/],
  keyless: ['', { env: { TOKEN: '${secret:nobody-set-this}' } }, /nobody-set-this.*secrets set/],
  homeless: ['', { env: { TOKEN: '${env:NOBODY_SET_THIS}' } }, /NOBODY_SET_THIS/],
});

test('each says what is wrong, and the good ones do not notice', async (t) => {
  const rows = bad(await deadPort());
  const entries = Object.entries(rows).map(([name, [, more]]) => [name, more]);
  const m = new Moody(t, { good: {}, noisy: {}, ...Object.fromEntries(entries) });
  for (const [name, [mood]] of Object.entries(rows)) if (mood) m.mood(name, mood);
  m.mood('noisy', 'noisy');
  const { client, run, tools } = await m.open(t);
  await until(async () => (await tools()).length === 6, 'the tools of those that work');
  assert.equal(text(await run('good_work', 1)), 'good work 1');
  assert.equal(text(await run('noisy_work', 1)), 'noisy work 1');
  let why;
  await until(async () => {
    why = (await client.listTools())._meta[WHY];
    return Object.entries(rows).every(([name, [, , said]]) => said.test(why[name] ?? ''));
  }, 'all reasons').catch(() => assert.deepEqual(why, Object.fromEntries(Object.entries(rows).map(([n, r]) => [n, String(r[2])]))));
  assert.deepEqual(Object.keys(why).sort(), Object.keys(rows).sort());
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
async function join(t, serve) {
  const it = client1();
  await it.client.connect(new Http1(serve.url));
  t.after(() => it.client.close());
  return { ...it, run: (name, n) => it.call({ name, arguments: { n } }) };
}

// The held answer is written right behind the one that is too long.
for (const mood of ['big', 'big-last'])
  test(`${mood}: one answer is too long, the other client's arrives`, async (t) => {
    const m = new Moody(t, { shared: {} });
    const serve = await m.place.serve();
    t.after(() => serve.stop());
    const [a, b] = [await join(t, serve), await join(t, serve)];
    await until(async () => (await a.client.listTools()).tools.length === 3, 'its tools');
    m.mood('shared', 'pid');
    const pid = text(await a.run('shared_work', 1));
    m.mood('shared', 'hold');
    const held = a.run('shared_work', 2);
    await until(() => m.done('shared').length === 2, 'the held call');
    m.mood('shared', `${mood}:20000000`);
    const said = await error(b.run('shared_work', 3));
    assert.match(said.message, /shared: the answer is longer than 16777216 bytes/);
    assert.equal(text(await held), 'shared work 2');
    m.mood('shared', 'pid');
    assert.equal(text(await b.run('shared_work', 4)), pid);
    assert.equal(m.done('shared').length, 4);
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
