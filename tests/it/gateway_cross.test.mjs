// What crosses the gateway besides calls and answers: tasks and news of them
// between the eras, roots and their changes, a second try with other headers,
// and answers that are still on their way when the gateway is told to end.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { Place, fixtureServer, published } from '../lib/gateway.mjs';
import { client1, text, until } from '../lib/mcp_talk.mjs';
import { MODERN, P, ask, events } from './modern.mjs';

function placeFor(t, servers, more) {
  const place = new Place(servers, more);
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

// --- tasks

const tasks = { elicitation: {}, extensions: { [`${P}tasks`]: {} } };

for (const era of ['modern', 'legacy']) {
  test(`tasks of a ${era} server: news, questions and the end cross`, async (t) => {
    const place = placeFor(t, { fixture: fixtureServer() });
    if (era === 'legacy') place.legacy(fixtureServer());
    const serve = await serveFor(t, place);
    await until(async () => (await ask(serve.url, 'tools/list', {})).result.tools.length > 10);
    const { result: task } = await ask(
      serve.url, 'tools/call', { name: 'confirm_delete', arguments: {} }, tasks);
    assert.equal(task.resultType, 'task');
    const { taskId } = task;
    const stop = new AbortController();
    t.after(() => stop.abort());
    const heard = [];
    const listening = (async () => {
      const wanted = { notifications: { taskIds: [taskId] } };
      for await (const m of events(serve.url, 'subscriptions/listen', wanted, tasks, stop.signal))
        heard.push(m);
    })();
    listening.catch(() => {});
    await until(() => heard.length > 0);
    assert.equal(heard[0].method, 'notifications/subscriptions/acknowledged');
    let now;
    await until(async () => {
      now = (await ask(serve.url, 'tasks/get', { taskId }, tasks)).result;
      return now.status === 'input_required';
    });
    const [[key, question]] = Object.entries(now.inputRequests);
    assert.equal(question.method, 'elicitation/create');
    const inputResponses = { [key]: { action: 'accept', content: { confirm: true } } };
    await ask(serve.url, 'tasks/update', { taskId, inputResponses }, tasks);
    const done = () => heard.find((m) => m.params.status === 'completed');
    await until(done);
    assert.equal(done().method, 'notifications/tasks');
    assert.equal(done().params.taskId, taskId);
    assert.equal(text(done().params.result), 'deleted');
    const end = (await ask(serve.url, 'tasks/get', { taskId }, tasks)).result;
    assert.equal(text(end.result), 'deleted');
    assert.equal(end.result._meta?.[`${P}related-task`], undefined);
    // Somebody else's name for it means nothing.
    const other = await ask(serve.url, 'tasks/get', { taskId: `x${taskId}` }, tasks);
    assert.equal(other.error.code, -32602);
  });
}

for (const era of ['modern', 'legacy'])
  test(`a task of a ${era} server belongs to the view of its call`, async (t) => {
    const place = placeFor(t, { fixture: fixtureServer() }, { views: { mine: {}, other: {} } });
    if (era === 'legacy') place.legacy(fixtureServer());
    const serve = await serveFor(t, place);
    const at = (view) => new URL(view ? `${serve.url}/${view}` : serve.url);
    await until(async () => (await ask(at('mine'), 'tools/list', {})).result.tools.length > 10);
    const { result: { taskId } } = await ask(
      at('mine'), 'tools/call', { name: 'confirm_delete', arguments: {} }, tasks);
    const stop = new AbortController();
    t.after(() => stop.abort());
    const heard = { mine: [], other: [], '': [] };
    for (const view of Object.keys(heard))
      (async () => {
        for await (const m of events(at(view), 'subscriptions/listen', { notifications: { taskIds: [taskId] } }, tasks, stop.signal))
          heard[view].push(m);
      })().catch(() => {});
    await until(() => Object.values(heard).every((v) => v.length > 0));
    for (const view of ['other', '']) {
      const nobody = await ask(at(view), 'tasks/get', { taskId: `x${taskId.slice(1)}` }, tasks);
      const get = await ask(at(view), 'tasks/get', { taskId }, tasks);
      assert.equal(get.error.code, -32602);
      assert.equal(get.error.message.replace(taskId, ''), nobody.error.message.replace(`x${taskId.slice(1)}`, ''));
      assert.ok((await ask(at(view), 'tasks/cancel', { taskId }, tasks)).error);
    }
    let now;
    await until(async () => {
      now = (await ask(at('mine'), 'tasks/get', { taskId }, tasks)).result;
      return now.status === 'input_required';
    });
    const inputResponses = { [Object.keys(now.inputRequests)[0]]: { action: 'accept', content: { confirm: true } } };
    assert.ok((await ask(at('other'), 'tasks/update', { taskId, inputResponses }, tasks)).error);
    await ask(at('mine'), 'tasks/update', { taskId, inputResponses }, tasks);
    await until(() => heard.mine.some((m) => m.params.status === 'completed'));
    for (const view of ['other', '']) assert.deepEqual(heard[view].filter((m) => m.method === 'notifications/tasks'), []);
  });

// What the fixture says when its job fails is made a secret.
test('what is said of a failed task holds no secret', async (t) => {
  const place = placeFor(t, { fixture: fixtureServer() },
    { llm: { claude: { apiKey: 'the job failed' } } });
  const serve = await serveFor(t, place);
  await until(async () => (await ask(serve.url, 'tools/list', {})).result.tools.length > 10);
  let taskId, end;
  for (let tries = 0; !end && tries < 10; tries++) { // it may fail before anybody listens
    ({ result: { taskId } } = await ask(serve.url, 'tools/call', { name: 'failing_job', arguments: {} }, tasks));
    const stop = new AbortController();
    const told = (async () => {
      for await (const m of events(serve.url, 'subscriptions/listen', { notifications: { taskIds: [taskId] } }, tasks, stop.signal))
        if (m.params.status === 'failed' || m.params.result) return m;
    })().catch(() => {});
    await until(async () => (await ask(serve.url, 'tasks/get', { taskId }, tasks)).result.status !== 'working');
    end = await Promise.race([told, sleep(2000)]);
    stop.abort();
  }
  assert.ok(end, 'nobody was told');
  const asked = (await ask(serve.url, 'tasks/get', { taskId }, tasks)).result;
  for (const said of [end.params, asked]) {
    assert.match(JSON.stringify(said), /\[secret\]/);
    assert.doesNotMatch(JSON.stringify(said), /the job failed/);
  }
});

test('a legacy server\'s task is cancelled by its modern client', async (t) => {
  const place = placeFor(t, { fixture: fixtureServer() });
  place.legacy(fixtureServer());
  const serve = await serveFor(t, place);
  const slow = { name: 'slow_compute', arguments: { seconds: 600 } };
  await until(async () => (await ask(serve.url, 'tools/list', {})).result.tools.length > 10);
  const { result: { taskId } } = await ask(serve.url, 'tools/call', slow, tasks);
  assert.deepEqual((await ask(serve.url, 'tasks/cancel', { taskId }, tasks)).error, undefined);
  const { result } = await ask(serve.url, 'tasks/get', { taskId }, tasks);
  assert.equal(result.status, 'cancelled');
  // Without tasks the gateway waits for it.
  const { result: waited } = await ask(
    serve.url, 'tools/call', { name: 'slow_compute', arguments: { seconds: 0.1 } });
  assert.equal(waited.resultType, 'complete');
  assert.equal(text(waited), 'computed');
});

test('what a modern client lacks is said as such', async (t) => {
  const place = placeFor(t, { fixture: fixtureServer() });
  place.legacy(fixtureServer());
  const serve = await serveFor(t, place);
  await until(async () => (await ask(serve.url, 'tools/list', {})).result.tools.length > 10);
  const call = { name: 'test_missing_capability', arguments: {} };
  const { error } = await ask(serve.url, 'tools/call', call);
  assert.equal(error.code, -32021);
  assert.deepEqual(error.data.requiredCapabilities, { sampling: {} });
});

// --- roots

const allowed = async (it) => text(await it.call({ name: 'list_allowed_directories', arguments: {} }));

/** server-filesystem asks for roots as soon as it runs, and again when told. */
async function rootsCross(t, place, it, dirs) {
  let now = dirs[0];
  it.client.setRequestHandler(types.ListRootsRequestSchema,
    () => ({ roots: [{ uri: `file://${now}` }] }));
  await until(async () => (await allowed(it)).includes(dirs[0]));
  [, now] = dirs;
  await it.client.sendRootsListChanged();
  await until(async () => (await allowed(it)).includes(dirs[1]));
  assert.ok(!(await allowed(it)).includes(dirs[0]));
}

function rooms(place) {
  const dirs = ['first', 'one', 'two'].map((d) => join(place.dir, d));
  dirs.forEach((d) => mkdirSync(d));
  return dirs;
}

test('on stdio every server has the client\'s roots', async (t) => {
  const place = placeFor(t, {});
  const [given, ...dirs] = rooms(place);
  place.write({ files: published('server-filesystem', given) });
  const it = client1({ roots: { listChanged: true } });
  await it.client.connect(new Stdio1(place.command()));
  t.after(() => it.client.close());
  await rootsCross(t, place, it, dirs);
});

test('over HTTP a server of its own has, a shared one has nobody\'s', async (t) => {
  const place = placeFor(t, {});
  const [given, ...dirs] = rooms(place);
  const connect = async (server) => {
    const it = client1({ roots: { listChanged: true } });
    const { url } = await serveFor(t, placeFor(t, { files: server }));
    await it.client.connect(new Http1(url));
    t.after(() => it.client.close());
    return it;
  };
  const own = { ...published('server-filesystem', given), scope: 'session' };
  await rootsCross(t, place, await connect(own), dirs);
  const it = await connect(published('server-filesystem', given));
  it.client.setRequestHandler(types.ListRootsRequestSchema,
    () => ({ roots: [{ uri: `file://${dirs[0]}` }] }));
  await until(async () => (await allowed(it).catch(() => '')).includes(given));
  await it.client.sendRootsListChanged();
  assert.ok(!(await allowed(it)).includes(dirs[0]));
});

// --- headers that do not fit any more

/** A modern server whose tool begins to want its argument in a header. */
async function changing(t) {
  const seen = [];
  let wants = false;
  const tool = () => ({
    name: 'where', description: 'd',
    inputSchema: {
      type: 'object',
      properties: { region: { type: 'string', ...(wants && { 'x-mcp-header': 'Region' }) } },
    },
  });
  const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
  const answers = {
    'server/discover': () => ({
      ...complete, supportedVersions: [MODERN], capabilities: { tools: {} },
      _meta: { [`${P}serverInfo`]: { name: 'changing', version: '1' } },
    }),
    'tools/list': () => ({ ...complete, tools: [tool()] }),
    'tools/call': () => ({ resultType: 'complete', content: [{ type: 'text', text: 'there' }] }),
  };
  const server = http.createServer(async (req, res) => {
    let body = '';
    for await (const piece of req.setEncoding('utf8')) body += piece;
    const { id, method } = JSON.parse(body);
    const say = (status, more) => {
      res.writeHead(status, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ jsonrpc: '2.0', id, ...more }));
    };
    if (method === 'tools/call') seen.push(req.headers['mcp-param-region']);
    if (method === 'tools/call' && wants && !req.headers['mcp-param-region'])
      return say(400, { error: { code: -32020, message: 'Mcp-Param-Region is missing' } });
    if (!answers[method])
      return say(404, { error: { code: -32601, message: 'no such method' } });
    return say(200, { result: answers[method]() });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${server.address().port}/mcp`, seen, change: () => (wants = true),
  };
}

test('a call whose headers do not fit is sent once more', async (t) => {
  const far = await changing(t);
  // A tool that changes is held back, unless nobody minds.
  const place = placeFor(t, { far: { url: far.url } }, { gateway: { approvals: 'off' } });
  const it = client1();
  await it.client.connect(new Stdio1(place.command()));
  t.after(() => it.client.close());
  await until(async () => (await it.client.listTools()).tools.length === 1);
  const call = () => it.call({ name: 'where', arguments: { region: 'north' } });
  assert.equal(text(await call()), 'there');
  far.change();
  assert.equal(text(await call()), 'there');
  assert.deepEqual(far.seen, [undefined, undefined, 'north']);
  assert.equal(text(await call()), 'there');
  assert.equal(far.seen.length, 4, 'from now on at the first try');
});

// --- the end

test('answers on their way come before the end', async (t) => {
  const place = placeFor(t, { fixture: fixtureServer() });
  const serve = await place.serve();
  let stopped;
  t.after(() => stopped ?? serve.stop('SIGKILL'));
  const it = client1();
  await it.client.connect(new Http1(serve.url));
  t.after(() => it.client.close());
  await until(async () => (await it.client.listTools()).tools.length > 10);
  const begun = [];
  const tool = { name: 'test_tool_with_progress', arguments: {} };
  const legacy = it.call(tool, { onprogress: (p) => begun.push(p) });
  const modern = ask(serve.url, 'tools/call', tool);
  let over = 0;
  for (const p of [legacy, modern]) p.then(() => over++, () => over++);
  const open = async () => JSON.parse(text(await it.call({ name: 'stats', arguments: {} }))).calls;
  await until(async () => over > 0 || (begun.length > 0 && (await open()) >= 3)); // both, and this
  stopped = serve.stop();
  assert.equal(text(await legacy), 'Progress completed');
  assert.equal(text((await modern).result), 'Progress completed');
  const { code, log } = await stopped;
  assert.equal(code, 0, log);
});

// --- what the client can, and its early answers

test('a server of one client is told what that client can', async (t) => {
  const everything = published('server-everything');
  const place = placeFor(t, { everything });
  const names = async (capabilities, how) => {
    const client = new Client1({ name: 'it', version: '1' }, { capabilities });
    await client.connect(new Stdio1({ ...how, stderr: 'ignore' }));
    t.after(() => client.close());
    let list = [];
    await until(async () => (list = (await client.listTools()).tools.map((x) => x.name).sort()).length > 0);
    await client.close();
    return list;
  };
  const all = { sampling: {}, elicitation: {}, roots: {} };
  const direct = await names({}, everything);
  assert.deepEqual(await names({}, place.command()), direct);
  // From the cache at first: the server has to start before its list is new.
  assert.ok((await names(all, everything)).length > direct.length);
  const other = placeFor(t, { everything });
  assert.deepEqual(await names(all, other.command()), await names(all, everything));
});

test('answers without a state of ours reach a modern server', async (t) => {
  const seen = [];
  const web = http.createServer(async (req, res) => {
    const { id, method, params } = JSON.parse(Buffer.concat(await req.toArray()).toString());
    const results = {
      'server/discover': {
        supportedVersions: [MODERN], capabilities: { tools: {} }, serverInfo: { name: 'm', version: '1' },
      },
      'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [] },
    };
    if (method === 'tools/call') seen.push(params.inputResponses);
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...results[method] } }));
  }).listen(0, '127.0.0.1');
  await once(web, 'listening');
  t.after(() => (web.closeAllConnections(), web.close()));
  const place = placeFor(t, { m: { url: `http://127.0.0.1:${web.address().port}/mcp` } });
  const serve = await serveFor(t, place);
  await until(async () => (await ask(serve.url, 'tools/list', {})).result.tools.length === 1);
  const inputResponses = { who: { action: 'accept', content: { name: 'Ann' } } };
  await ask(serve.url, 'tools/call', { name: 'echo', arguments: {}, inputResponses });
  await ask(serve.url, 'tools/call', { name: 'echo', arguments: {} });
  assert.deepEqual(seen, [inputResponses, undefined]);
});
