// Revision 2026-07-28 behind a balancer without stickiness: questions, tasks and
// long results of one replica are answered, polled, cancelled and read through the
// other, by their own person only. A replica that dies takes them with it, and
// says so. Who has subscribed at one hears of updates at the other.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { StreamableHTTPClientTransport as Http } from '@modelcontextprotocol/client';

import { fixtureServer, script } from '../lib/gateway.mjs';
import { client2, text } from '../lib/mcp_talk.mjs';
import { balancer } from './balancer.mjs';
import { P, ask, events } from './modern.mjs';
import { Replicas, STORES } from './replicas_kit.mjs';
import { BIN, until } from './server.mjs';

const token = (who) => `${who}-has-this-0123456789abcdef`;
const bearer = (who) => ({ authorization: `Bearer ${token(who)}` });
const caps = { elicitation: {}, extensions: { [`${P}tasks`]: {} } };
const question = { name: 'test_elicitation', arguments: { message: 'who?' } };
const accepts = { action: 'accept', content: { username: 'ann', email: 'a@b.c', confirm: true } };
const inputOf = ({ inputRequests }) =>
  Object.fromEntries(Object.keys(inputRequests).map((key) => [key, accepts]));

const config = {
  mcpServers: { fixture: fixtureServer({ tools: { echo: { resultBytes: 1000 } } }) },
  server: { token: token('operator'), tokens: { alice: token('alice'), bob: token('bob') } },
};

/** One request at that replica. */
const at = (x, n) => async (method, params, who = 'alice') => {
  const { result, error } = await ask(`http://localhost:${x.front.ports[n]}/mcp`, method, params, caps, bearer(who));
  return result ?? { error };
};

/** Two replicas behind a balancer; fn gets them. */
async function pair(how, fn) {
  // Looking for leaks takes each process seconds: once is enough.
  const env = how.store === 'redis' ? { ASAN_OPTIONS: 'detect_leaks=0' } : {};
  const all = await Replicas.start({ headers: bearer('operator'), ...how, env, config: { ...config, ...how.config } });
  const front = await balancer(all.v.map((r) => r.server.port));
  const x = { all, front };
  for (const r of all.v) r.server.fresh.children += 4; // MCP servers, and their guards
  try {
    for (const n of [0, 1])
      await until(async () => (await at(x, n)('tools/list', {})).tools?.length > 10 &&
        (await at(x, n)('tools/call', question)).requestState.includes('.'), 'the lists and the key');
    await fn(x);
  } finally {
    await front.close();
    await all.stop();
  }
}

/** The status of a task, once it is that. */
async function statusOf(here, taskId, wanted) {
  let now;
  await until(async () => {
    now = await here('tasks/get', { taskId });
    return now.status === wanted;
  }, `${wanted} of the task`);
  return now;
}

async function official({ front }) {
  const { client, call } = client2('auto');
  await client.connect(new Http(front.url, { requestInit: { headers: bearer('alice') } }));
  try {
    for (let i = 0; i < 3; i++) {
      assert.match(text(await call(question)), /action=accept.*ann/);
      assert.ok((await client.listTools()).tools.length > 10); // shifts the turn
    }
  } finally {
    await client.close();
  }
  assert.equal(new Set(front.seen.map(([, port]) => port)).size, 2);
  assert.deepEqual(front.seen.filter(([, , status]) => status >= 400), []);
}

async function questions(x) {
  const [here, there] = [at(x, 0), at(x, 1)];
  const asked = await here('tools/call', question);
  assert.equal(asked.resultType, 'input_required');
  const { requestState } = asked;
  const answer = { ...question, requestState, inputResponses: inputOf(asked) };
  // Somebody else gets what anybody gets for a text that nobody gave.
  for (const ask of [here, there]) {
    const unknown = await ask('tools/call', { ...answer, requestState: 'A'.repeat(requestState.length) }, 'bob');
    assert.equal(unknown.error.code, -32602);
    assert.deepEqual(await ask('tools/call', answer, 'bob'), unknown);
    for (const where of [5, 60, requestState.length - 3]) {
      const changed = requestState[where] === 'A' ? 'B' : 'A';
      const forged = requestState.slice(0, where) + changed + requestState.slice(where + 1);
      assert.deepEqual(await ask('tools/call', { ...answer, requestState: forged }), unknown);
    }
    // It is for one call.
    assert.ok((await ask('tools/call', { ...answer, arguments: { message: 'other' } })).error);
  }
  assert.match(text(await there('tools/call', answer)), /action=accept.*ann/);
  // It was answered once.
  for (const ask of [there, here]) assert.match((await ask('tools/call', answer)).error.message, /no call waits/);
}

async function tasks(x) {
  const [here, there] = [at(x, 0), at(x, 1)];
  const { resultType, taskId } = await here('tools/call', { name: 'confirm_delete', arguments: {} });
  assert.equal(resultType, 'task');
  for (const ask of [here, there]) {
    const nobody = await ask('tasks/get', { taskId: `x${taskId.slice(1)}` }, 'bob');
    assert.equal(nobody.error.code, -32602);
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const { error } = await ask(method, { taskId, inputResponses: {} }, 'bob');
      assert.equal(error.code, -32602);
      assert.equal(error.message.replace(taskId, ''), nobody.error.message.replace(`x${taskId.slice(1)}`, ''));
    }
  }
  const stop = new AbortController();
  const heard = [];
  const listening = (async () => {
    const wanted = { notifications: { taskIds: [taskId] } };
    for await (const m of events(`http://localhost:${x.front.ports[1]}/mcp`, 'subscriptions/listen', wanted, caps, stop.signal, bearer('alice')))
      heard.push(m);
  })();
  listening.catch(() => {});
  await until(() => heard.length > 0, 'the acknowledgement');
  assert.deepEqual(heard[0].params.notifications.taskIds, [taskId]);
  const now = await statusOf(there, taskId, 'input_required');
  assert.equal(now.taskId, taskId);
  await there('tasks/update', { taskId, inputResponses: inputOf(now) });
  await until(() => heard.some(({ params }) => params.status === 'completed' && params.taskId === taskId), 'the news of the end');
  for (const ask of [there, here]) assert.equal(text((await statusOf(ask, taskId, 'completed')).result), 'deleted');
  stop.abort();
  const slow = await there('tools/call', { name: 'slow_compute', arguments: { seconds: 600 } });
  assert.deepEqual(Object.keys(await here('tasks/cancel', { taskId: slow.taskId })).includes('error'), false);
  await statusOf(here, slow.taskId, 'cancelled');
}

const LONG = 'grüße '.repeat(1000);
const RESULT = 'mcp-orchestrator/result';

/** A result that was cut, and how to read it at that replica. */
async function longResult(here) {
  const cut = await here('tools/call', { name: 'echo', arguments: { message: LONG } });
  const [{ handle }] = cut._meta[RESULT];
  return { handle, read: (ask, who, more = {}) => ask('tools/call', { name: 'read_result', arguments: { handle, ...more } }, who) };
}

async function results(x) {
  const [here, there] = [at(x, 0), at(x, 1)];
  const { handle, read } = await longResult(here);
  for (const ask of [here, there]) {
    assert.equal(text(await read(ask)), LONG);
    assert.equal(text(await read(ask, 'alice', { offset: 8, limit: 8 })), LONG.slice(6, 12));
    const no = await read(ask, 'bob');
    assert.match(text(no), /no result is kept under that handle/);
    const [random, home] = handle.split('.');
    for (const wrong of [random, `${random}.`, `.${home}`, `${random}.${home}.${home}`, `${random}.a/../b`, `${random}.${'x'.repeat(60)}`, `x.${home}`])
      assert.deepEqual(await read(ask, 'alice', { handle: wrong }), no, wrong);
    const nobody = await read(ask, 'alice', { handle: `${random}.iNobodyHasThisNam` });
    assert.match(nobody.error.message, /has ended: run the tool again/);
  }
}

/** What a listen at that replica hears of a resource, from its acknowledgement on. */
async function watching({ front }, n, uri) {
  const stop = new AbortController();
  const heard = [];
  (async () => {
    const wanted = { notifications: { resourceSubscriptions: [uri] } };
    for await (const m of events(`http://localhost:${front.ports[n]}/mcp`, 'subscriptions/listen', wanted, caps, stop.signal, bearer('alice')))
      heard.push(m);
  })().catch(() => {});
  await until(() => heard.length > 0, 'the acknowledgement');
  return { stop: () => stop.abort(), updates: () => heard.filter((m) => m.method === 'notifications/resources/updated' && m.params.uri === uri).length };
}

async function resources(x) {
  const uri = 'test://watched-resource';
  let touched = 0;
  const touch = (n) => {
    touched++;
    return at(x, n)('tools/call', { name: 'test_trigger_resource_update', arguments: {} });
  };
  for (const n of [0, 1]) await touch(n); // both have a server of their own
  const since = touched;
  const first = await watching(x, 0, uri);
  const second = await watching(x, 1, uri);
  // Each replica learns soon of those who listen at the other.
  for (const [who, n] of [[first, 1], [second, 0]])
    await until(async () => {
      await touch(n);
      await sleep(50);
      return who.updates() > 0;
    }, 'an update of the other server');
  for (let i = 0; i < 20; i++) {
    const before = [first.updates(), second.updates()];
    await touch(i % 2);
    await until(() => first.updates() > before[0] && second.updates() > before[1], 'an update at both');
  }
  await sleep(300); // a second one of the same would come
  for (const { updates } of [first, second])
    assert.ok(updates() <= touched - since, `${updates()} updates of ${touched - since} changes`);
  first.stop();
  await sleep(300);
  const before = second.updates();
  await touch(0);
  await until(() => second.updates() > before, 'the one that listens');
  second.stop();
}

async function lists({ all, front }) {
  const stop = new AbortController();
  const heard = front.ports.map(() => []);
  front.ports.forEach((port, n) => (async () => {
    const wanted = { notifications: { toolsListChanged: true } };
    for await (const m of events(`http://localhost:${port}/mcp`, 'subscriptions/listen', wanted, caps, stop.signal, bearer('alice')))
      heard[n].push(m.method);
  })().catch(() => {}));
  await until(() => heard.every((h) => h.length > 0), 'the acknowledgements');
  const mcp = (...words) => {
    const { status, stderr } = spawnSync(BIN, ['mcp', words[0], 'more', '--config', join(all.dirs[0], 'mcp-orchestrator.json'), ...words.slice(1)],
      { cwd: all.dirs[0], encoding: 'utf8', env: { ...process.env, HOME: all.dirs[0], ASAN_OPTIONS: 'detect_leaks=0' } });
    assert.equal(status, 0, stderr);
  };
  const changes = (n) => heard[n].filter((m) => m === 'notifications/tools/list_changed').length;
  const has = async (n) => (await at({ front }, n)('tools/list', {})).tools.some(({ name }) => /echo$/.test(name) && name !== 'echo');
  const { command, args } = script('mcp_sdk2.mjs');
  mcp('add', '--', command, ...args);
  await until(() => changes(0) > 0 && changes(1) > 0, 'the change at both');
  await until(() => has(0), 'the new tool');
  // The list was read at the first one only; the second one tells all the same.
  const before = changes(1);
  mcp('remove');
  await until(() => changes(1) > before, 'the next change');
  stop.abort();
  for (const n of [0, 1]) await until(async () => !(await has(n)), 'the end of the tool');
}

async function killed(x) {
  const [here, there] = [at(x, 0), at(x, 1)];
  const asked = await here('tools/call', question);
  const { taskId } = await here('tools/call', { name: 'slow_compute', arguments: { seconds: 600 } });
  const kept = await longResult(here);
  const heard = [];
  const listening = (async () => {
    const wanted = { notifications: { taskIds: [taskId] } };
    for await (const m of events(`http://localhost:${x.front.ports[1]}/mcp`, 'subscriptions/listen', wanted, caps, undefined, bearer('alice')))
      heard.push(m);
  })();
  await until(() => heard.length > 0, 'the acknowledgement');
  await statusOf(there, taskId, 'working');
  await x.all.v[0].signal('SIGKILL');
  await listening;
  assert.match(heard.at(-1).error.message, /has ended/);
  const lost = await kept.read(there);
  assert.match(lost.error.message, /the server that kept that result has ended/);
  const { requestState } = asked;
  const { error } = await there('tools/call', { ...question, requestState, inputResponses: inputOf(asked) });
  assert.equal(error.code, -32602);
  assert.match(error.message, /has ended; the call may have had an effect/);
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const lost = await there(method, { taskId, inputResponses: {} });
    assert.equal(lost.error.code, -32602);
    assert.match(lost.error.message, /no such task: the server that ran it has ended/);
    const nobody = await there(method, { taskId, inputResponses: {} }, 'bob');
    assert.doesNotMatch(nobody.error.message, /has ended/, 'only its person is told');
  }
  const again = await there('tools/call', question);
  assert.match(text(await there('tools/call', { ...question, requestState: again.requestState, inputResponses: inputOf(again) })), /accept/);
}

/** The one that passes a listen on ends: the stream ends with it, cleanly. */
async function ended(x) {
  const [here, there] = [at(x, 0), at(x, 1)];
  const { taskId } = await here('tools/call', { name: 'slow_compute', arguments: { seconds: 600 } });
  const heard = [];
  const listening = (async () => {
    const wanted = { notifications: { taskIds: [taskId] } };
    for await (const m of events(`http://localhost:${x.front.ports[1]}/mcp`, 'subscriptions/listen', wanted, caps, undefined, bearer('alice')))
      heard.push(m);
  })();
  await until(() => heard.length > 0, 'the acknowledgement');
  const mine = await there('tools/call', { name: 'slow_compute', arguments: { seconds: 600 } });
  await x.all.v[1].signal('SIGTERM');
  await listening;
  await statusOf(here, taskId, 'working');
  await here('tasks/cancel', { taskId });
  const lost = await here('tasks/get', { taskId: mine.taskId });
  assert.match(lost.error.message, /the server that ran it has ended/);
}

for (const { name: store, skip } of STORES) {
  test(`${store}: two replicas`, { skip }, async (t) => {
    await pair({ store }, async (x) => {
      await t.test('the official client is asked', () => official(x));
      await t.test('a question is answered at the other', () => questions(x));
      await t.test('a task is polled, answered and cancelled at the other', () => tasks(x));
      await t.test('a long result is read at the other', () => results(x));
      await t.test('a resource is updated at the other', () => resources(x));
      await t.test('a new server is told at both', () => lists(x));
      await t.test('the one with the task is killed', () => killed(x));
    });
  });
}

test('two gateways without boxes', async (t) => {
  await pair({ config: { sandbox: { driver: 'none' } } }, async (x) => {
    await t.test('the official client is asked', () => official(x));
    await t.test('a question is answered at the other', () => questions(x));
    await t.test('the one with the task is killed', () => killed(x));
  });
  await pair({ config: { sandbox: { driver: 'none' } } }, async (x) => {
    await t.test('the one between is ended', () => ended(x));
  });
});
