// A server asks the person in the middle of a call: forms and pages, in both
// eras, through the whole house.
import assert from 'node:assert/strict';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { BIN } from './server.mjs';
import { House } from './talk_kit.mjs';

const fixture = join(process.env.MO_BUILD ?? join(dirname(BIN), '../..'), 'tests/fixture/fixture');

// A server of the older era: its questions are requests of its own.
const OLD = `
const rl = require('readline').createInterface({ input: process.stdin });
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
const flat = { type: 'object', required: ['name'], properties: {
  name: { type: 'string', minLength: 2 }, age: { type: 'integer', minimum: 0, default: 7 } } };
const deep = { type: 'object', properties: { a: { type: 'object', properties: {} } } };
const asks = {
  ask: { message: 'Who are you?', requestedSchema: flat },
  deep: { message: 'Deep', requestedSchema: deep },
  page: { mode: 'url', message: 'Sign in', url: 'https://example.com/in', elicitationId: 'e1' },
  trap: { mode: 'url', message: 'Sign in', url: 'https://example.com@evil.example/in', elicitationId: 'e2' },
  withdraw: { message: 'Never mind', requestedSchema: flat },
};
const calls = new Map();
let n = 1000, can = null;
rl.on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  const text = (to, t) => send({ id: to, result: { content: [{ type: 'text', text: t }] } });
  if (method === 'initialize') {
    can = params.capabilities;
    send({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } } });
  } else if (method === 'tools/list')
    send({ id, result: { tools: [...Object.keys(asks), 'can'].map((name) => ({ name, inputSchema: { type: 'object' } })) } });
  else if (method === 'tools/call' && params.name === 'can') text(id, JSON.stringify(can));
  else if (method === 'tools/call') {
    calls.set(++n, id);
    send({ id: n, method: 'elicitation/create', params: asks[params.name] });
    if (params.name === 'withdraw') {
      setTimeout(() => send({ method: 'notifications/cancelled', params: { requestId: n } }), 300);
      setTimeout(() => text(id, 'withdrawn'), 400);
    }
  } else if (method === undefined && calls.has(id))
    text(calls.get(id), 'heard ' + JSON.stringify(result ?? error));
  else if (id !== undefined && method !== undefined)
    send({ id, error: { code: -32601, message: 'no' } });
});
process.stdin.on('end', () => process.exit(0));
`;

async function open(more = {}, env = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'mo-talk-'));
  await writeFile(join(dir, 'old.cjs'), OLD);
  return House.start({
    dir,
    env,
    config: {
      llm: { provider: 'claude', model: 'claude-sonnet-5-5', tools: 'all' },
      mcpServers: {
        old: { command: process.execPath, args: [join(dir, 'old.cjs')] },
        modern: { command: fixture },
      },
      approvals: { rules: [{ server: 'old|modern', action: 'allow' }], ...more },
    },
  });
}

async function shut(house) {
  house.server.fresh.fds += 16; // the servers stay open for the next
  house.server.fresh.children += 3; // and their guard
  await house.stop();
}

let house;
before(async () => {
  house = await open();
});
after(() => shut(house));

/** The model calls it; the question that follows, as the tab sees it. */
async function asked(tab, name, args = {}) {
  const n = tab.count('elicitation:required');
  house.model.script.push({ calls: [{ name, args }] }, { text: 'ok' });
  await tab.say('go');
  return (await tab.event('elicitation:required', n + 1))[0];
}

async function answer(tab, question, action, content) {
  const n = tab.count('agent:response');
  const ack = await tab.emit('elicitation:response', { requestId: question.requestId, action, content });
  assert.deepEqual(ack, { ok: true });
  await tab.event('agent:response', n + 1);
  return house.results()[0];
}

for (const [era, tool, message] of [['legacy', 'old_ask', 'Who are you?'],
  ['modern', 'modern_test_elicitation', 'Your name?']])
  describe(`${era}: a form`, () => {
    const good = era === 'legacy' ? { name: 'Ada', age: 36 } : { username: 'ada', email: 'a@b.c' };

    test('shown with what is asked, answered, heard by the server and the model', async () => {
      const tab = house.tab();
      await tab.ready();
      const other = house.tab({ session: tab.session });
      await other.ready();
      const q = await asked(tab, tool, { message });
      assert.match(q.requestId, /^[\w-]{20,}$/);
      assert.equal(q.mode, 'form');
      assert.equal(q.message, message);
      assert.equal(q.server, era === 'legacy' ? 'old' : 'modern');
      assert.equal(q.schema.type, 'object');
      assert.equal(q.url, undefined);
      assert.ok(q.expiresAt > Date.now());
      assert.deepEqual((await other.event('elicitation:required'))[0], q);

      const wrong = (action, content) => tab.emit('elicitation:response', { requestId: q.requestId, action, content });
      const missing = await wrong('accept', {});
      assert.equal(missing.code, 'bad_request');
      assert.match(missing.message, /name/);
      assert.match((await wrong('accept', { ...good, more: 1 })).message, /"more" was not asked for/);
      assert.equal((await wrong('accept', Object.fromEntries(Object.keys(good).map((k) => [k, {}])))).code, 'bad_request');
      assert.equal((await wrong('maybe', good)).code, 'bad_request');
      assert.equal(tab.count('elicitation:resolved'), 0);

      const got = await answer(other, q, 'accept', good);
      assert.equal(got.error, false);
      for (const v of Object.values(good)) assert.ok(got.text.includes(JSON.stringify(v)), got.text);
      const [done] = await tab.event('elicitation:resolved');
      assert.deepEqual(done, { requestId: q.requestId, action: 'accept', by: 'person' });
      assert.equal((await wrong('accept', good)).code, 'unknown_request', 'once');

      const row = (await house.audit(tab.session)).find((r) => r.asked === 'form');
      assert.equal(row.action, 'accept');
      assert.match(row.who, /127/);
      assert.doesNotMatch(JSON.stringify(row), /Ada|ada/, 'what was said is not in it');
    });

    for (const action of ['decline', 'cancel'])
      test(action, async () => {
        const tab = house.tab();
        await tab.ready();
        const q = await asked(tab, tool, { message });
        assert.match((await answer(tab, q, action)).text, new RegExp(action));
      });

    test('told again to who comes later; the answer of a page that was reloaded counts', async () => {
      const tab = house.tab();
      await tab.ready();
      const q = await asked(tab, tool, { message });
      tab.close();
      const back = house.tab({ session: tab.session });
      const { history } = await back.ready();
      assert.equal(history.turn.state, 'calls');
      assert.deepEqual((await back.event('elicitation:required'))[0], q);
      assert.equal((await answer(back, q, 'accept', good)).error, false);
    });

    test('stopped with the turn', async () => {
      const tab = house.tab();
      await tab.ready();
      const q = await asked(tab, tool, { message });
      await tab.emit('agent:cancel');
      const [done] = await tab.event('elicitation:resolved');
      assert.equal(done.requestId, q.requestId);
      assert.equal(done.action, 'cancel');
      const [, about] = await tab.event('agent:response');
      assert.equal(about.stopReason, 'canceled');
      house.model.script.length = 0;
      assert.equal((await tab.emit('elicitation:response', { requestId: q.requestId, action: 'accept', content: good })).code, 'unknown_request');
    });

    test('nobody else is asked', async () => {
      const tab = house.tab();
      await tab.ready();
      const stranger = house.tab();
      await stranger.ready();
      const q = await asked(tab, tool, { message });
      assert.equal((await stranger.emit('elicitation:response', { requestId: q.requestId, action: 'accept', content: good })).code, 'unknown_request');
      await answer(tab, q, 'decline');
      assert.equal(stranger.count('elicitation:required'), 0);
    });
  });

test('what is left out is what the server proposed', async () => {
  const tab = house.tab();
  await tab.ready();
  const q = await asked(tab, 'modern_test_elicitation_sep1034_defaults');
  const { text } = await answer(tab, q, 'accept', { age: 31 });
  assert.match(text, /"age":31/);
  assert.match(text, /"name":"John Doe"/);
  assert.match(text, /"verified":true/);
  const old = await asked(tab, 'old_ask');
  assert.match((await answer(tab, old, 'accept', { name: 'Al' })).text, /"age":7/);
});

test('lists to choose from', async () => {
  const tab = house.tab();
  await tab.ready();
  const q = await asked(tab, 'modern_test_elicitation_sep1330_enums');
  const props = q.schema.properties;
  assert.ok(Object.keys(props).length >= 3);
  const bad = Object.fromEntries(Object.keys(props).map((k) => [k, props[k].type === 'array' ? ['no such'] : 'no such']));
  assert.equal((await tab.emit('elicitation:response', { requestId: q.requestId, action: 'accept', content: bad })).code, 'bad_request');
  await answer(tab, q, 'decline');
});

for (const tool of ['old_page', 'modern_test_elicitation_url'])
  test(`a page: ${tool}`, async () => {
    const tab = house.tab();
    await tab.ready();
    const q = await asked(tab, tool);
    assert.equal(q.mode, 'url');
    assert.match(q.url, /^https:\/\/example\.com\//);
    assert.equal(q.schema, undefined);
    assert.match((await answer(tab, q, 'accept')).text, /accept/);
  });

test('what must not be shown is refused, and said to the server', async () => {
  const tab = house.tab();
  await tab.ready();
  for (const tool of ['old_deep', 'old_trap']) {
    const n = tab.count('agent:response');
    house.model.script.push({ calls: [{ name: tool, args: {} }] }, { text: 'ok' });
    await tab.say('go');
    await tab.event('agent:response', n + 1);
    assert.match(house.results()[0].text, /heard .*-32602/);
  }
  assert.equal(tab.count('elicitation:required'), 0);
});

test('a server that does not want to know any more', async () => {
  const tab = house.tab();
  await tab.ready();
  const q = await asked(tab, 'old_withdraw');
  const [done] = await tab.event('elicitation:resolved');
  assert.deepEqual(done, { requestId: q.requestId, action: 'cancel', by: 'server' });
  await tab.event('agent:response');
  assert.match(house.results()[0].text, /withdrawn/);
});

test('a server that all share is told what all their clients can', async () => {
  const tab = house.tab();
  await tab.ready();
  house.model.script.push({ calls: [{ name: 'old_can', args: {} }] }, { text: 'ok' });
  await tab.say('go');
  await tab.event('agent:response');
  const can = JSON.parse(house.results()[0].text);
  assert.deepEqual(can.elicitation, { form: {}, url: {} });
});

test('a question that nobody answers', async () => {
  const usual = house;
  // Leaks were looked for in the other one.
  const impatient = (house = await open({ timeoutSeconds: 1 }, { ASAN_OPTIONS: 'detect_leaks=0' }));
  try {
    const tab = house.tab();
    await tab.ready();
    const q = await asked(tab, 'old_ask');
    const [done] = await tab.event('elicitation:resolved');
    assert.deepEqual(done, { requestId: q.requestId, action: 'cancel', by: 'time' });
    await tab.event('agent:response');
    assert.match(house.results()[0].text, /heard .*cancel/);
  } finally {
    house = usual;
    await shut(impatient);
  }
});
