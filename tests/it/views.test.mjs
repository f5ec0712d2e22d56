// Views of the gateway: clients of several views and of everything, side by
// side, and no way to anything that a view does not show.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { Place, below, bin, metricsOf, script, slay, wordsOf } from '../lib/gateway.mjs';
import { client1, client2, text, until } from '../lib/mcp_talk.mjs';

const run = promisify(execFile);
const HIDDEN = /beta/;

const servers = (place) => ({
  alpha: { ...script('shelf.mjs', 'alpha', join(place?.dir ?? '/nowhere', 'stop')), resultBytes: 300, fallback: ['beta'] },
  beta: { ...script('shelf.mjs', 'beta'), resultBytes: 300 },
});
const views = {
  one: { description: 'only alpha', servers: ['alpha'] },
  some: { tools: ['*/*', '!*/delete_*', '!beta/*'] },
  look: { readOnly: true },
  search: { servers: ['alpha'], tools: ['alpha/*', '!*/write'], expose: 'search' },
  strict: { servers: ['alpha'], rules: [
    { tool: 'read', action: 'allow' },
    { tool: 'write', action: 'deny', reason: 'not through this view' },
  ] },
};

let place, serve;
const more = { approvals: { rules: [] } };
const at = (view) => new URL(view ? `${serve.url}/${view}` : serve.url);
before(async () => {
  place = new Place({}, {});
  place.write(servers(place), { ...more, views });
  serve = await place.serve();
});
after(async () => {
  const { code, log } = await serve.stop();
  assert.equal(code, 0, log);
  assert.doesNotMatch(log, /runtime error|Sanitizer/);
  place.close();
});

async function join1(t, view, make = client1) {
  const it = make();
  it.heard = [];
  for (const method of ['notifications/resources/updated', 'notifications/tools/list_changed', 'notifications/message'])
    it.on(method, (m) => it.heard.push(m));
  await it.client.connect(make === client1 ? new Http1(at(view)) : new v2.StreamableHTTPClientTransport(at(view)));
  t.after(() => it.client.close());
  return it;
}
const modern = () => client2('auto');
const names = async (it) => (await it.client.listTools()).tools.map((x) => x.name);
const say = async (it, name, args = {}) => text(await it.call({ name, arguments: args }));
/** What a call is answered with, whatever it is. */
async function outcome(fn) {
  try {
    return { ok: await fn() };
  } catch (e) {
    return { code: e.code, message: e.message, data: e.data };
  }
}
/** The same outcome, but for the name in it. */
function assertSame(hidden, a, unknown, b) {
  const plain = (v, name) => JSON.stringify(v).replaceAll(name, 'NAME');
  assert.equal(plain(hidden, a), plain(unknown, b));
}
/** One request over HTTP, by hand. */
const post = (view, body, headers = {}) => fetch(at(view), {
  method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }),
  headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
});
const hello = { method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'it', version: '1' } } };

/** Write a configuration and wait until the server has it. */
async function reload(now, how = {}) {
  place.write(servers(place), { ...more, ...how, views: now });
  process.kill(serve.pid, 'SIGHUP');
}

for (const [kind, make] of [['sdk 1.x', client1], ['client 2.x modern', modern]])
  describe(kind, () => {
    test('three views and everything, side by side', async (t) => {
      const [all, one, some, look] = await Promise.all(
        [undefined, 'one', 'some', 'look'].map((v) => join1(t, v, make)));
      const whole = await names(all);
      assert.ok(whole.includes('alpha_read') && whole.includes('beta_read'));
      assert.deepEqual((await names(one)).filter((n) => HIDDEN.test(n)), []);
      assert.ok((await names(one)).includes('delete_all'));
      assert.deepEqual(await names(some), ['read_result', 'read', 'write', 'long', 'touch', 'grow', 'chat', 'hang']);
      assert.deepEqual((await names(look)).sort(), ['alpha_long', 'alpha_read', 'beta_long', 'beta_read', 'read_result']);
      assert.equal(await say(all, 'beta_read'), 'beta read');
      assert.equal(await say(one, 'read'), 'alpha read');
      assert.equal(await say(look, 'beta_read'), 'beta read');
    });

    test('a hidden tool is answered like an unknown one', async (t) => {
      const one = await join1(t, 'one', make);
      const look = await join1(t, 'look', make);
      const some = await join1(t, 'some', make);
      for (const [it, name, like] of [
        [one, 'beta_read', 'beta_nope'], [look, 'alpha_write', 'alpha_nope0'],
        [some, 'delete_all', 'nope_12345'], [one, 'find_tool', 'nope_tool'],
      ])
        assertSame(await outcome(() => it.call({ name, arguments: {} })), name,
          await outcome(() => it.call({ name: like, arguments: {} })), like);
    });

    test('resources, templates, prompts and completions', async (t) => {
      const one = await join1(t, 'one', make);
      const { client } = one;
      assert.deepEqual((await client.listResources()).resources.map((r) => r.uri), ['alpha://page']);
      assert.deepEqual((await client.listResourceTemplates()).resourceTemplates.map((r) => r.uriTemplate), ['alpha://{n}']);
      assert.deepEqual((await client.listPrompts()).prompts.map((p) => p.name), ['alpha_prompt']);
      assert.equal((await client.readResource({ uri: 'alpha://page' })).contents[0].text, 'alpha page');
      // A URI of nobody goes to the only server that the view shows.
      for (const uri of ['beta://page', 'beta+beta://page', 'gamma+gamma://x'])
        assert.doesNotMatch(JSON.stringify(await outcome(() => client.readResource({ uri }))), /beta page/);
      assertSame(await outcome(() => client.getPrompt({ name: 'beta_prompt' })), 'beta_prompt',
        await outcome(() => client.getPrompt({ name: 'nope_prompt' })), 'nope_prompt');
      const complete = (ref) => outcome(() => client.complete({ ref, argument: { name: 'a', value: '' } }));
      assertSame(await complete({ type: 'ref/prompt', name: 'beta_prompt' }), 'beta_prompt',
        await complete({ type: 'ref/prompt', name: 'nope_prompt' }), 'nope_prompt');
      assertSame(await complete({ type: 'ref/resource', uri: 'beta://{n}' }), 'beta://{n}',
        await complete({ type: 'ref/resource', uri: 'nope://{n}' }), 'nope://{n}');
      assert.deepEqual((await complete({ type: 'ref/prompt', name: 'alpha_prompt' })).ok.completion.values, ['alpha']);
    });

    test('the four meta tools know only the view', async (t) => {
      const it = await join1(t, 'search', make);
      assert.deepEqual(await names(it), ['find_tool', 'execute', 'list_capabilities', 'explain_tool']);
      const all = JSON.stringify(await it.call({ name: 'list_capabilities', arguments: {} }));
      assert.match(all, /alpha/);
      assert.doesNotMatch(all, HIDDEN);
      for (const query of ['read a beta book', 'beta', 'writes a book', 'delete every beta book']) {
        const found = JSON.stringify(await it.call({ name: 'find_tool', arguments: { query, limit: 50 } }));
        assert.doesNotMatch(found, /"beta"|beta book|"write"/, query);
        assert.doesNotMatch(await say(it, 'execute', { request: query }), /beta (read|written|deleted)|alpha written/, query);
      }
      for (const name of ['explain_tool', 'execute']) {
        const ask = (server, tool) => outcome(() => it.call({ name, arguments: { server, tool } }));
        assertSame(await ask('beta', 'read'), 'beta', await ask('nope', 'read'), 'nope');
        assertSame(await ask('alpha', 'write'), 'write', await ask('alpha', 'nope1'), 'nope1');
        assertSame(await ask(undefined, 'beta_read'), 'beta_read', await ask(undefined, 'nope_read'), 'nope_read');
      }
      assertSame(await outcome(() => it.call({ name: 'list_capabilities', arguments: { server: 'beta' } })), 'beta',
        await outcome(() => it.call({ name: 'list_capabilities', arguments: { server: 'nope' } })), 'nope');
      assert.equal(await say(it, 'execute', { server: 'alpha', tool: 'read' }), 'alpha read');
    });

    test('a kept result is not read in another view', async (t) => {
      const all = await join1(t, undefined, make);
      const one = await join1(t, 'one', make);
      const cut = await all.call({ name: 'alpha_long', arguments: {} });
      const [{ handle }] = cut._meta['mcp-orchestrator/result'];
      assert.match(await say(all, 'read_result', { handle }), /alpha/);
      assert.equal(await say(one, 'read_result', { handle }), await say(one, 'read_result', { handle: 'nope' }));
    });
  });

test('a call does not fall back to a hidden server', async (t) => {
  const own = new Place({}, {});
  t.after(() => own.close());
  own.write(servers(own), { views: { one: views.one } });
  const its = await own.serve();
  t.after(() => its.stop());
  const [all, one] = [client1(), client1()];
  await all.client.connect(new Http1(its.url));
  await one.client.connect(new Http1(new URL(`${its.url}/one`)));
  t.after(() => Promise.all([all.client.close(), one.client.close()]));
  assert.equal(await say(one, 'read'), 'alpha read');
  await names(all);
  writeFileSync(join(own.dir, 'stop'), ''); // from now on it does not start
  for (const pid of below(its.pid)) if (wordsOf(pid).includes('alpha')) slay(pid);
  let failed;
  await until(async () => {
    failed = await outcome(() => one.call({ name: 'read', arguments: {} }));
    return !failed.ok || failed.ok.isError;
  });
  assert.doesNotMatch(JSON.stringify(failed), HIDDEN);
  assert.equal(await say(all, 'alpha_read'), 'beta read');
});

test('what a hidden server says does not arrive', async (t) => {
  const all = await join1(t);
  const one = await join1(t, 'one');
  await names(all);
  await names(one);
  await one.client.setLoggingLevel('debug');
  for (const uri of ['beta://page', 'alpha://page']) await one.client.subscribeResource({ uri });
  await all.client.subscribeResource({ uri: 'beta://page' });
  for (const tool of ['touch', 'grow', 'chat']) await say(all, `beta_${tool}`);
  // All of that has reached the one who sees everything.
  await until(() => all.heard.some((m) => m.method.endsWith('updated')) && all.heard.some((m) => m.method.endsWith('list_changed')));
  assert.deepEqual(one.heard.filter((m) => !/alpha/.test(JSON.stringify(m))), []);
  await say(one, 'touch');
  await until(() => one.heard.some((m) => m.params?.uri === 'alpha://page'));
  await say(one, 'grow');
  await until(() => one.heard.some((m) => m.method.endsWith('list_changed')));
  assert.equal(one.heard.filter((m) => m.method.endsWith('list_changed')).length, 1);
  assert.doesNotMatch(JSON.stringify(one.heard), HIDDEN);
  assert.doesNotMatch((await names(one)).join(), HIDDEN);
});

test('the same for a modern client that listens', async (t) => {
  const all = await join1(t, undefined, modern);
  const one = await join1(t, 'one', modern);
  await names(all);
  await names(one);
  const wants = { toolsListChanged: true, resourceSubscriptions: ['beta://page', 'alpha://page'] };
  for (const it of [all, one]) {
    const listen = await it.client.listen(wants);
    t.after(() => listen.close());
  }
  for (const tool of ['touch', 'grow']) await say(all, `beta_${tool}`);
  await until(() => all.heard.some((m) => m.method.endsWith('updated')) && all.heard.some((m) => m.method.endsWith('list_changed')));
  assert.deepEqual(one.heard, []);
  await say(one, 'touch');
  const heard = (what) => one.heard.some((m) => m.method.endsWith(what));
  // Each worker has its own alpha: one that grows to what the others know changes nothing.
  for (let i = 0; !heard('list_changed'); i++) {
    assert.ok(i < 3000, 'never told');
    if (i % 100 === 0) await say(one, 'grow');
    await sleep(10);
  }
  await until(() => heard('updated'));
  assert.doesNotMatch(JSON.stringify(one.heard), HIDDEN);
});

test('sessions of a view are valid there only', async () => {
  const opened = await post('one', hello);
  const id = opened.headers.get('mcp-session-id');
  assert.ok(id);
  const ask = async (view) => (await post(view, { method: 'tools/list' }, { 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' })).status;
  assert.equal(await ask('one'), 200);
  for (const other of [undefined, 'look', 'some']) assert.equal(await ask(other), 404);
  const made = await (await post('one', hello)).json();
  assert.equal(made.result.serverInfo.title, 'MCP Orchestrator: one');
  assert.equal(made.result.instructions, undefined);
});

test('an unknown view is answered like an unknown path', async () => {
  const ask = async (url) => {
    const r = await fetch(url, { method: 'POST', body: '{}' });
    return { status: r.status, ...(await r.json()) };
  };
  const plain = await ask(new URL('/nothing', serve.url));
  assert.equal(plain.status, 404);
  assert.deepEqual(await ask(at('nope')), plain);
});

test('rules of a view, audit rows and metrics', async (t) => {
  const strict = await join1(t, 'strict');
  const all = await join1(t);
  assert.equal(await say(all, 'alpha_write'), 'alpha written');
  assert.equal(await say(strict, 'read'), 'alpha read');
  const denied = await strict.call({ name: 'write', arguments: {} });
  assert.equal(denied.isError, true);
  assert.match(text(denied), /not through this view/);
  const file = join(place.state, 'audit.jsonl');
  const rows = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1).map((l) => JSON.parse(l).what) : []);
  const row = (outcome) => rows().find((r) => r?.view === 'strict' && r.outcome === outcome);
  await until(() => row('denied') && row('ok'));
  assert.equal(row('denied').tool, 'write');
  const metrics = await metricsOf(serve.url);
  assert.match(metrics, /mo_gateway_view_calls_total\{view="strict",outcome="denied"\} [1-9]/);
});

test('on stdio, and the commands', async () => {
  const it = client1();
  await it.client.connect(new StdioClientTransport(place.command('--view', 'look')));
  try {
    await until(async () => (await names(it)).includes('beta_read'));
    assert.ok(!(await names(it)).includes('alpha_write'));
    assertSame(await outcome(() => it.call({ name: 'alpha_write', arguments: {} })), 'alpha_write',
      await outcome(() => it.call({ name: 'alpha_nope0', arguments: {} })), 'alpha_nope0');
  } finally {
    await it.client.close();
  }
  const command = (...args) => run(bin, [...args, '--config', place.file], { env: place.env });
  await assert.rejects(command('gateway', '--view', 'nope'), /there is no view 'nope'/);
  const { stdout } = await command('views', 'list');
  assert.match(stdout, /^one +\d+ tools +only alpha$/m);
  assert.match(stdout, /^look +\d+ tools, read-only$/m);
  const shown = JSON.parse((await command('views', 'show', 'look', '--json')).stdout);
  assert.deepEqual(shown.tools.map((x) => x.name).sort(), ['alpha_long', 'alpha_read', 'beta_long', 'beta_read']);
  assert.match((await command('views', 'show', 'one')).stdout, /^tools:\n {2}read {2}\(alpha\)$/m);
  await assert.rejects(command('views', 'show', 'nope'), /there is no view 'nope'/);
});

test('a server that is hidden later cannot reach the client any more', async (t) => {
  const own = new Place({}, {});
  t.after(() => own.close());
  own.write(servers(own), { views: { one: {} } });
  const it = client1();
  const heard = [];
  for (const method of ['notifications/resources/updated', 'notifications/tools/list_changed', 'notifications/message'])
    it.on(method, (m) => heard.push(m));
  let asked = 0;
  it.client.setRequestHandler(types.CreateMessageRequestSchema, () => {
    asked++;
    return { role: 'assistant', model: 'm', content: { type: 'text', text: 'yes' } };
  });
  const transport = new StdioClientTransport({ ...own.command('--view', 'one'), stderr: 'ignore' });
  await it.client.connect(transport);
  t.after(() => it.client.close());
  await names(it);
  await it.client.setLoggingLevel('debug');
  await it.client.subscribeResource({ uri: 'alpha://page' });
  const answer = join(own.dir, 'stop.asked');
  const poke = async () => {
    for (const pid of below(transport.pid)) if (wordsOf(pid).includes('alpha')) process.kill(pid, 'SIGUSR2');
    await until(() => existsSync(answer) && readFileSync(answer, 'utf8'));
    const said = JSON.parse(readFileSync(answer, 'utf8'));
    rmSync(answer);
    return said;
  };
  assert.equal((await poke()).result.content.text, 'yes');
  await until(() => heard.length >= 2);
  assert.deepEqual([asked, heard.map((m) => m.method.split('/').at(-1)).sort()], [1, ['message', 'updated']]);

  own.write(servers(own), { views: { one: { servers: ['beta'] } } });
  process.kill(transport.pid, 'SIGHUP');
  await until(() => heard.some((m) => m.method.endsWith('list_changed')));
  heard.length = 0;
  assert.ok((await poke()).error, 'it is refused');
  assert.equal(await say(it, 'read'), 'beta read'); // whatever was on its way has arrived
  assert.deepEqual([asked, heard], [1, []]);
});

// Last: they change the configuration.

test('a changed view changes the lists of its clients', async (t) => {
  const one = await join1(t, 'one');
  const look = await join1(t, 'look');
  await names(look);
  assert.ok((await names(one)).includes('write'));
  await reload({ ...views, one: { servers: ['alpha'], tools: ['alpha/read'] }, extra: {} });
  await until(() => one.heard.some((m) => m.method.endsWith('list_changed')));
  assert.deepEqual(await names(one), ['read_result', 'read']);
  assertSame(await outcome(() => one.call({ name: 'write', arguments: {} })), 'write',
    await outcome(() => one.call({ name: 'nope0', arguments: {} })), 'nope0');
  assert.deepEqual(look.heard, [], 'another view is not told');
  assert.equal((await post('extra', hello)).status, 200);
});

test('a removed view ends its sessions', async (t) => {
  await reload(views);
  const one = await join1(t, 'one');
  await until(async () => (await names(one)).includes('hang'));
  const stdio = client1();
  t.after(() => stdio.client.close());
  await stdio.client.connect(new StdioClientTransport({ ...place.command('--view', 'one'), stderr: 'ignore' }));
  const closed = new Promise((resolve) => (stdio.client.onclose = resolve));
  await names(stdio);
  let started;
  const running = outcome(() => one.call({ name: 'hang', arguments: {} }, { onprogress: () => (started = true) }));
  await until(() => started);
  const { one: _, ...rest } = views;
  await reload(rest);
  assert.match((await running).message, /the view one was removed from the configuration/);
  await until(async () => (await post('one', hello)).status === 404);
  const after = await outcome(() => one.client.listTools());
  assert.ok(!after.ok, JSON.stringify(after));
  await closed;
});
