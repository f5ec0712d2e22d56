// Calls through the gateway that need a person's yes: asked through the client
// where it can, else held until somebody decides; and the audit log of it all.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { Place, bin, fixtureServer, metricsOf } from '../lib/gateway.mjs';

const WAIT_MS = 30_000;
const info = { name: 'it', version: '1' };
const run = promisify(execFile);
const text = (result) => result.content[0].text;

async function until(check, what) {
  for (const end = Date.now() + WAIT_MS; ; await sleep(20)) {
    const got = await check();
    if (got) return got;
    assert.ok(Date.now() < end, `never: ${what ?? check}`);
  }
}

const rules = [
  { tool: 'echo', args: { message: 'ask*' }, action: 'ask', reason: 'better ask' },
  { tool: 'echo', args: { message: 'deny*' }, action: 'deny', reason: 'not that' },
];
/** The client that made the call may answer it by its own form. */
const byClient = rules.map((r) => (r.action === 'ask' ? { ...r, approver: 'client' } : r));
const config = (more = {}) => ({ approvals: { rules, timeoutSeconds: 600 }, ...more });

function placeFor(t, more) {
  const place = new Place({ fixture: fixtureServer() }, more);
  t.after(() => place.close());
  return place;
}

async function serveFor(t, place) {
  const serve = await place.serve();
  t.after(async () => {
    const { code, log } = await serve.stop();
    assert.equal(code, 0, log);
    assert.doesNotMatch(log, /runtime error|Sanitizer/);
  });
  return serve;
}

/** A command of ours: {code, stdout, stderr}. */
async function command(place, ...args) {
  try {
    const { stdout, stderr } = await run(bin, [...args, '--config', place.file], { env: place.env });
    return { code: 0, stdout, stderr };
  } catch (e) {
    return { code: e.code, stdout: e.stdout, stderr: e.stderr };
  }
}

const rows = (place) => {
  const file = join(place.state, 'audit.jsonl');
  return existsSync(file)
    ? readFileSync(file, 'utf8').split('\n').slice(0, -1).map((l) => JSON.parse(l)) : [];
};

/** Clients that answer questions with what `answer` holds; without: they
 *  cannot be asked. */
function make1(answer) {
  const client = new Client1(info, { capabilities: answer ? { elicitation: {} } : {} });
  const asked = [];
  if (answer)
    client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => (asked.push(params), answer()));
  const call = (params, options) => client.callTool(params, undefined, options);
  return { client, asked, call };
}

function make2(mode, answer) {
  const client = new v2.Client(info, {
    capabilities: answer ? { elicitation: {} } : {}, versionNegotiation: { mode },
  });
  const asked = [];
  if (answer)
    client.setRequestHandler('elicitation/create', ({ params }) => (asked.push(params), answer()));
  return { client, asked, call: (params, options) => client.callTool(params, options) };
}

const say = (it, message, options) => it.call({ name: 'echo', arguments: { message } }, options);

// --- asked through the client

describe('asked through the client', () => {
  const place = new Place({ fixture: fixtureServer() }, { approvals: { rules: byClient } });
  let serve;
  let reply;
  const kinds = [
    ['sdk 1.x, stdio', () => make1(() => reply), () => new Stdio1(place.command())],
    ['sdk 1.x, http', () => make1(() => reply), () => new Http1(serve.url)],
    ['client 2.x modern, stdio', () => make2('auto', () => reply), () => new Stdio2(place.command())],
    ['client 2.x modern, http', () => make2('auto', () => reply),
      () => new v2.StreamableHTTPClientTransport(serve.url)],
  ];
  after(async () => {
    const { code, log } = await serve.stop();
    assert.equal(code, 0, log);
    place.close();
  });

  for (const [name, make, transport] of kinds)
    test(name, async () => {
      serve ??= await place.serve();
      const it = make();
      await it.client.connect(transport());
      try {
        assert.equal(text(await say(it, 'plain')), 'plain', 'no rule is about it');
        assert.equal(it.asked.length, 0);
        const denied = await say(it, 'deny me');
        assert.equal(denied.isError, true);
        assert.match(text(denied), /not allowed here: not that/);

        reply = { action: 'accept', content: { decision: 'approve' } };
        assert.equal(text(await say(it, 'ask\u202e me')), 'ask\u202e me');
        const { message, requestedSchema } = it.asked[0];
        assert.match(message, /server: fixture\ntool: echo\narguments: \{"message":"ask\\u202e me"\}/);
        assert.match(message, /better ask/);
        assert.deepEqual(requestedSchema.properties.decision.enum, ['approve', 'reject']);

        reply = { action: 'accept', content: { decision: 'reject', reason: 'no time' } };
        const rejected = await say(it, 'ask again');
        assert.equal(rejected.isError, true);
        assert.match(text(rejected), /did not allow this call: no time/);
        reply = { action: 'decline' };
        assert.equal((await say(it, 'ask more')).isError, true);
      } finally {
        await it.client.close();
      }
    });

  test('each is in the audit log, which is as it was written', async () => {
    const want = ['ok by=', 'denied by=rule', 'agreed by=client', 'ok by=client',
      'denied by=client', 'denied by=client'];
    const all = await until(() => {
      const got = rows(place).filter((r) => r.what);
      return got.length >= kinds.length * want.length && got;
    }, 'all rows');
    assert.equal(all.length, kinds.length * want.length);
    for (const { what } of all) {
      assert.equal(what.server, 'fixture');
      assert.equal(what.tool, 'echo');
      assert.equal(what.client.name, 'it');
      assert.match(what.argsDigest, /^[0-9a-f]{64}$/);
      assert.equal(what.args, undefined, 'only a digest');
      assert.deepEqual([what.door, what.byRequester], what.by === 'client' ? ['client', true] : [undefined, undefined]);
    }
    const got = all.map(({ what }) =>
      `${what.kind === 'agreed' ? 'agreed' : what.outcome} by=${what.by ?? ''}`);
    assert.deepEqual(got.sort(), Array(kinds.length).fill(want).flat().sort());
    const file = join(place.state, 'audit.jsonl');
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal((await command(place, 'audit', 'verify')).code, 0);
    const api = await (await fetch(new URL('/api/audit/verify', serve.url))).json();
    assert.equal(api.ok, true);
    assert.equal(api.rows, all.length);

    const bytes = readFileSync(file);
    for (const at of [0, 100, bytes.length >> 1, bytes.length - 2]) {
      const bad = Buffer.from(bytes);
      bad[at] ^= 1;
      writeFileSync(file, bad);
      const { code, stdout } = await command(place, 'audit', 'verify', '--json');
      assert.equal(code, 1);
      assert.equal(JSON.parse(stdout).ok, false);
    }
    writeFileSync(file, bytes);
    const listed = await command(place, 'audit', 'list', '-n', '3', '--json');
    assert.deepEqual(listed.stdout.trim().split('\n').map((l) => JSON.parse(l)),
      rows(place).slice(-3));
    assert.match((await command(place, 'audit', 'tail')).stdout, /fixture\.echo = denied/);
  });
});

// --- held

const listed = async (place) => JSON.parse((await command(place, 'approvals', 'list', '--json')).stdout);

test('held: approved and rejected on the command line', async (t) => {
  const place = placeFor(t, config());
  const it = make1();
  await it.client.connect(new Stdio1(place.command()));
  t.after(() => it.client.close());
  await it.client.listTools(); // the wait for its start has a progress of its own
  const progress = [];
  const first = say(it, 'ask one', { onprogress: (p) => progress.push(p) });
  const [held] = await until(async () => {
    const all = await listed(place);
    return all.length && all;
  }, 'it is listed');
  assert.equal(held.tool, 'echo');
  assert.deepEqual(held.args, { message: 'ask one' });
  assert.equal(held.reason, 'better ask');
  assert.equal(held.client.name, 'it');
  assert.ok(held.expiresAt > Date.now());
  assert.match((await command(place, 'approvals', 'list')).stdout, /ask one/);
  assert.equal((await command(place, 'approvals', 'approve', 'nobody')).code, 1);
  const done = await command(place, 'approvals', 'approve', held.id);
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /approved .*ask one/s);
  assert.equal(text(await first), 'ask one');
  assert.match(progress[0].message, /waiting for a person/);
  assert.equal((await command(place, 'approvals', 'approve', held.id)).code, 1, 'once');

  const second = say(it, 'ask two');
  const [other] = await until(async () => {
    const all = await listed(place);
    return all.length && all;
  });
  const no = await command(place, 'approvals', 'reject', other.id, '--reason', 'not today');
  assert.equal(no.code, 0, no.stderr);
  assert.match(text(await second), /did not allow this call: not today/);
  assert.deepEqual(await listed(place), []);
  const all = rows(place);
  const agreed = all.find((r) => r.what?.kind === 'agreed');
  assert.equal(agreed.what.id, held.id);
  assert.deepEqual([agreed.what.by, agreed.what.door, agreed.what.byRequester], ['person', 'socket', false]);
});

/** A client of `serve`, and what decides about its calls by plain HTTP. */
async function overHttp(t) {
  const place = placeFor(t, config({ audit: { arguments: true } }));
  const serve = await serveFor(t, place);
  const it = make2('auto');
  await it.client.connect(new v2.StreamableHTTPClientTransport(serve.url));
  t.after(() => it.client.close());
  return {
    place, serve, it,
    get: async () => (await (await fetch(new URL('/api/approvals', serve.url))).json()).approvals,
    send: (id, body) => fetch(new URL(`/api/approvals/${id}`, serve.url), {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
    }),
  };
}

test('held: decided over HTTP, for what was shown and once', async (t) => {
  const { place, serve, it, get, send } = await overHttp(t);
  const post = async (id, body) => (await send(id, body)).status;
  const running = say(it, 'ask http');
  const [held] = await until(async () => {
    const all = await get();
    return all.length && all;
  });
  assert.equal(await post(held.id, { approved: true }), 400, 'a digest is wanted');
  assert.equal(await post(held.id, { approved: true, digest: '' }), 400, 'an empty one is none');
  assert.equal(await post(held.id, { approved: true, digest: '0'.repeat(64) }), 409);
  assert.equal(await post('nobody', { approved: true, digest: held.digest }), 404);
  assert.equal((await get()).length, 1, 'it still waits');
  const metrics = () => metricsOf(serve.url);
  assert.match(await metrics(), /^mo_gateway_approvals_waiting 1$/m);
  const both = await Promise.all([1, 2].map(() =>
    post(held.id, { approved: true, digest: held.digest, reason: 'fine' })));
  assert.deepEqual(both.sort(), [200, 404]);
  assert.equal(text(await running), 'ask http');
  const page = await metrics();
  assert.match(page, /^mo_gateway_calls_total\{server="fixture",tool="echo"\} 1$/m);
  assert.match(page, /^mo_gateway_call_seconds_count\{server="fixture",tool="echo"\} 1$/m);
  assert.match(page, /^mo_gateway_approval_seconds_count 1$/m);
  assert.match(page, /^mo_gateway_approvals_waiting 0$/m);
  assert.match(page, /^mo_gateway_breaker\{server="fixture"\} 0$/m);
  assert.match(page, /^mo_gateway_children\{server="fixture"\} 1$/m);
  const row = await until(() => rows(place).find((r) => r.what?.outcome === 'ok'));
  assert.deepEqual(row.what.args, { message: 'ask http' });
  assert.equal(row.what.reason, 'fine');
});

test('held: run with other arguments, which must fit the tool and the rules', async (t) => {
  const { place, it, get, send } = await overHttp(t);
  const post = async (id, body) => {
    const r = await send(id, body);
    return [r.status, (await r.json()).detail];
  };
  const holds = () => until(async () => (await get())[0], 'it is held');
  let running = say(it, 'ask for this');
  let held = await holds();
  const yes = { approved: true, digest: held.digest };
  for (const [body, status, why] of [
    [{ ...yes, args: { message: 7 } }, 400, /do not fit the tool's schema: args\.message: must be a string/],
    [{ ...yes, args: {} }, 400, /schema/],
    [{ ...yes, args: 'ask' }, 400, /args\?: object/],
    [{ ...yes, args: { message: 'deny that' } }, 400, /denies these arguments: not that/],
    [{ ...yes, digest: '0'.repeat(64), args: { message: 'ask' } }, 409, /not what was shown/],
    [{ approved: false, args: { message: 'ask' } }, 400, /a no needs/],
  ]) {
    const [got, detail] = await post(held.id, body);
    assert.equal(got, status, JSON.stringify(body));
    assert.match(detail, why);
  }
  assert.deepEqual((await get())[0].args, { message: 'ask for this' }, 'it still waits as it was');
  const long = `that ${'instead '.repeat(8000)}`;
  assert.deepEqual(await post(held.id, { ...yes, args: { message: long } }), [200, undefined]);
  let got = await running;
  assert.equal(text(got), long);
  assert.deepEqual(got._meta['mcp-orchestrator/route'],
    { server: 'fixture', tool: 'echo', editedArguments: { message: long } }, 'its client hears of it');

  // On the command line; and a call that execute found.
  running = it.call({ name: 'echo', arguments: { message: 'ask the terminal' } });
  held = await holds();
  const bad = await command(place, 'approvals', 'approve', held.id, '--args', '[1]');
  assert.equal(bad.code, 2);
  const misfit = await command(place, 'approvals', 'approve', held.id, '--args', '{"message":1}');
  assert.equal(misfit.code, 1);
  assert.match(misfit.stderr, /must be a string/);
  const done = await command(place, 'approvals', 'approve', held.id, '--args', '{"message": "from here"}');
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /arguments {2}\{"message": ?"from here"\}/);
  got = await running;
  assert.equal(text(got), 'from here');

  const all = await until(() => {
    const found = rows(place).filter((r) => r.what?.outcome === 'ok');
    return found.length === 2 && found;
  }, 'both rows');
  const agreed = rows(place).filter((r) => r.what?.kind === 'agreed');
  const digest = (v) => createHash('sha256').update(JSON.stringify(v)).digest('hex');
  for (const [i, from, to] of [[0, 'ask for this', long], [1, 'ask the terminal', 'from here']])
    for (const { what } of [agreed[i], all[i]]) {
      assert.equal(what.argsDigestBefore, digest({ message: from }));
      assert.equal(what.argsDigest, digest({ message: to }));
      assert.deepEqual(what.args, { message: to });
    }
});

test('nobody answers: a no', async (t) => {
  const place = placeFor(t, { approvals: { rules, timeoutSeconds: 1 } });
  const it = make1();
  await it.client.connect(new Stdio1(place.command()));
  t.after(() => it.client.close());
  const late = await say(it, 'ask nobody');
  assert.equal(late.isError, true);
  assert.match(text(late), /Nobody allowed this call in time/);
});

test('killed while a call is held: it never ran', async (t) => {
  const place = placeFor(t, config());
  const it = make1();
  const transport = new Stdio1(place.command());
  await it.client.connect(transport);
  const before = JSON.parse(text(await it.call({ name: 'stats', arguments: {} })));
  const running = say(it, 'ask and die');
  running.catch(() => {});
  await until(async () => (await listed(place)).length);
  await until(() => rows(place).some((r) => r.what?.tool === 'stats')); // the log is there
  process.kill(transport.pid, 'SIGKILL');
  await assert.rejects(running);
  assert.deepEqual(await listed(place), []);
  assert.ok(before);
  const { code, stdout } = await command(place, 'audit', 'verify');
  assert.equal(code, 0, stdout);
  assert.ok(!rows(place).some((r) => r.what?.tool === 'echo'));
});

// --- modes, and tools that change

test('gateway.approvals: ask about the rest, or nothing at all', async (t) => {
  for (const [mode, plain, denied] of [['ask', false, false], ['off', true, true]]) {
    const place = placeFor(t, {
      ...config({ gateway: { approvals: mode } }),
    });
    const it = make1(() => ({ action: 'decline' }));
    await it.client.connect(new Stdio1(place.command()));
    try {
      const running = say(it, 'plain');
      if (mode === 'ask') { // a person, and not the client that called
        const [held] = await until(async () => {
          const all = await listed(place);
          return all.length && all;
        }, 'it is listed');
        assert.equal(held.approver, 'operator');
        assert.equal((await command(place, 'approvals', 'reject', held.id)).code, 0);
      }
      assert.equal(!(await running).isError, plain, mode);
      assert.equal(it.asked.length, 0);
      assert.equal(!(await say(it, 'deny it')).isError, denied, mode);
    } finally {
      await it.client.close();
    }
  }
});

test('a tool that its server changed is not run until accepted', async (t) => {
  const dir = placeFor(t, {});
  const server = (description) => `
    import { createInterface } from 'node:readline';
    const tell = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
    createInterface({ input: process.stdin }).on('line', (l) => {
      const { id, method } = JSON.parse(l);
      if (method === 'initialize')
        tell({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} },
          serverInfo: { name: 'x', version: '1' } } });
      else if (method === 'tools/list')
        tell({ id, result: { tools: [{ name: 'work', description: ${JSON.stringify(description)},
          inputSchema: { type: 'object' } }] } });
      else if (method === 'tools/call') tell({ id, result: { content: [{ type: 'text', text: 'ran' }] } });
      else if (id !== undefined) tell({ id, error: { code: -32601, message: 'no' } });
    });`;
  const file = join(dir.dir, 'server.mjs');
  dir.write({ it: { command: process.execPath, args: [file] } });
  const start = async (description) => {
    writeFileSync(file, server(description));
    const it = make1();
    await it.client.connect(new Stdio1(dir.command()));
    await until(async () => (await it.client.listTools()).tools[0]?.description, 'its tools');
    return it;
  };
  const work = (it) => it.call({ name: 'work', arguments: {} });
  const first = await start('harmless');
  assert.equal(text(await work(first)), 'ran');
  await first.client.close();
  const second = await start('deletes everything');
  t.after(() => second.client.close());
  // The list that was remembered is read anew when the server starts.
  const refused = await until(async () => {
    const got = await work(second);
    return got.isError && got;
  }, 'it is refused');
  assert.match(text(refused), /changed this tool/);
  const [changed] = await listed(dir);
  assert.equal(changed.tool, 'work');
  assert.equal(changed.before.description, 'harmless');
  assert.equal(changed.now.description, 'deletes everything');

  // Those who find it are told, and not what its server says of it now.
  const third = make1();
  await third.client.connect(new Stdio1(dir.command('--expose', 'search')));
  t.after(() => third.client.close());
  await third.client.listTools();
  const ask = (name, args) => third.call({ name, arguments: args });
  const hit = await until(async () =>
    (await ask('find_tool', { query: 'work' })).structuredContent.results[0], 'it is found');
  assert.deepEqual([hit.server, hit.tool, hit.reason], ['it', 'work', 'quarantined']);
  assert.match(hit.why, /approvals accept it work$/);
  assert.deepEqual([hit.description, hit.inputSchema], [undefined, undefined]);
  const explained = await ask('explain_tool', { server: 'it', tool: 'work' });
  assert.equal(explained.isError, true);
  assert.match(text(explained), /changed it since it was first seen/);
  const unsure = await ask('execute', { request: 'zzz work qqq', params: {} });
  assert.equal(unsure.isError, true);
  assert.doesNotMatch(JSON.stringify(unsure), /deletes everything/);
  const run = await ask('execute', { server: 'it', tool: 'work', params: {} });
  assert.match(text(run), /changed this tool/);

  const done = await command(dir, 'approvals', 'accept', 'it', 'work');
  assert.equal(done.code, 0, done.stderr);
  assert.equal(text(await work(second)), 'ran');
});

test('words, trace context and secrets', async (t) => {
  const place = placeFor(t, {
    gateway: { expose: 'search' },
    audit: { arguments: true },
    server: { token: 'tok-planted-secret-77' },
  });
  const it = make1();
  await it.client.connect(new Stdio1(place.command()));
  t.after(() => it.client.close());
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await it.call({ name: 'find_tool', arguments: { query: 'echo a message' } });
  await it.call({
    name: 'execute', _meta: { traceparent },
    arguments: { server: 'fixture', tool: 'echo', params: { message: 'tok-planted-secret-77' } },
  });
  const all = await until(() => {
    const got = rows(place);
    return got.length >= 2 && got;
  });
  const [route, call] = all.map((r) => r.what);
  assert.equal(route.kind, 'route');
  assert.equal(route.words, 'echo a message');
  assert.equal(route.candidates[0].server, 'fixture');
  assert.ok(route.candidates[0].confidence > 0);
  assert.equal(call.traceparent, traceparent);
  assert.equal(call.route.confidence, 1);
  assert.deepEqual(call.args, { message: '[secret]' });
  assert.doesNotMatch(readFileSync(join(place.state, 'audit.jsonl'), 'utf8'), /planted/);
});
