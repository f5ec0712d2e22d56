// Budgets: calls a minute, turns, tokens and money of people, views and
// servers; with SQLite in one server, with a real Redis in two.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { as, client, over, place, ran, rows } from '../lib/budgets.mjs';
import { bin, run } from '../lib/mcp.mjs';
import { missing as noRedis } from '../lib/redis.mjs';
import { until } from './server.mjs';
import { Tab } from './talk_kit.mjs';

describe('calls a minute', () => {
  test('of a person, with the time to wait', async (t) => {
    const { servers: [s] } = await place(t, { budgets: { people: { bob: { callsPerMinute: 3 } } } });
    const bob = await client(s, 'bob');
    for (let i = 0; i < 3; i++) assert.equal(over(await bob.call()), false);
    const no = await bob.call();
    assert.match(no.result.content[0].text, /^The limit of 3 calls a minute for bob is reached\. Try again in \d+ s\.$/);
    const { limit, retryAfterMs } = no.result._meta['mcp-orchestrator/budget'];
    assert.equal(limit, 'callsPerMinute');
    assert.ok(retryAfterMs > 0 && retryAfterMs <= 61_000);
    const ann = await client(s, 'ann');
    for (let i = 0; i < 5; i++) assert.equal(over(await ann.call()), false, 'ann has no limit');
    assert.equal(ran(s), 8);
    await until(() => rows(s).some((r) => JSON.stringify(r).includes('callsPerMinute') && JSON.stringify(r).includes('bob')),
      'the refusal in the audit log');
  });

  test('of each person, the operator too', async (t) => {
    const { servers: [s] } = await place(t, { budgets: { people: { '*': { callsPerMinute: 1 }, ann: { callsPerMinute: 2 } } } });
    for (const [who, n] of [['ann', 2], ['bob', 1], ['operator', 1]]) {
      const it = await client(s, who);
      for (let i = 0; i < n; i++) assert.equal(over(await it.call()), false, `${who} ${i}`);
      assert.equal(over(await it.call()), true, who);
    }
  });

  test('of a personal token, beside its owner\'s', async (t) => {
    const { servers: [s] } = await place(t, { budgets: { people: { bob: { callsPerMinute: 5 } }, tokens: { '*': { callsPerMinute: 2 } } } }, { house: true });
    const make = async () => (await (await fetch(`${s.url}/api/tokens`, { method: 'POST', body: JSON.stringify({ name: 'x' }),
      headers: { ...as('bob'), 'content-type': 'application/json' } })).json()).token;
    const by = async (token, version) => client(s, 'bob', '/mcp', { headers: { authorization: `Bearer ${token}` }, version });
    const [first, second] = [await make(), await make()];
    for (const token of [first, second]) {
      const it = await by(token), again = await by(token);
      assert.equal(over(await it.call()), false);
      assert.equal(over(await again.call()), false);
      const third = await it.call();
      assert.match(third.result?.content[0].text ?? JSON.stringify(third), /2 calls a minute for the token/);
    }
    const bob = await client(s, 'bob');
    assert.equal(over(await bob.call()), false);
    assert.match((await bob.call()).result.content[0].text, /5 calls a minute for bob/);
    assert.equal(ran(s), 5);
  });

  test('of a server and of a view, everybody together', async (t) => {
    const { servers: [s] } = await place(t, {
      mcpServers: { work: { callsPerMinute: 4 } },
      views: { small: { callsPerMinute: 2 } },
    });
    const [ann, bob] = [await client(s, 'ann', '/mcp/small'), await client(s, 'bob', '/mcp/small')];
    assert.equal(over(await ann.call()), false);
    assert.equal(over(await bob.call()), false);
    assert.match((await bob.call()).result.content[0].text, /2 calls a minute for the view small/);
    const all = await client(s, 'ann');
    assert.equal(over(await all.call()), false);
    assert.equal(over(await all.call()), false);
    assert.match((await all.call()).result.content[0].text, /4 calls a minute for the server work/);
    assert.equal(ran(s), 4);
  });

  test('two servers with one Redis, 64 connections: never one too many', { skip: noRedis }, async (t) => {
    const { servers } = await place(t, { budgets: { people: { bob: { callsPerMinute: 50 } } } }, { n: 2, shared: true });
    const clients = await Promise.all(Array.from({ length: 64 }, (_, i) => client(servers[i % 2], 'bob')));
    const answers = (await Promise.all(clients.map((c) => Promise.all([c.call(), c.call(), c.call()])))).flat();
    assert.equal(answers.filter((a) => !over(a)).length, 50);
    assert.equal(ran(servers[0]) + ran(servers[1]), 50);
  });

  test('64 connections of one server: never one too many', async (t) => {
    const { servers: [s] } = await place(t, { budgets: { people: { '*': { callsPerMinute: 50 } } } });
    const clients = await Promise.all(Array.from({ length: 64 }, () => client(s, 'bob')));
    const answers = (await Promise.all(clients.map((c) => Promise.all([c.call(), c.call(), c.call()])))).flat();
    assert.equal(answers.filter((a) => !over(a)).length, 50);
    assert.equal(ran(s), 50);
  });

  test('a Redis that is gone: who has a limit is refused, others are not', { skip: noRedis }, async (t) => {
    const oneProcess = 'without the store a worker does not find the MCP sessions of others';
    const { servers: [s], store } = await place(t, { budgets: { people: { bob: { callsPerMinute: 50 } } } }, { shared: true, oneProcess });
    const [ann, bob] = [await client(s, 'ann'), await client(s, 'bob')];
    assert.equal(over(await bob.call()), false);
    await store.kill();
    const no = await bob.call();
    assert.match(no.result.content[0].text, /limits of bob cannot be checked/);
    assert.equal((await ann.call()).result.isError ?? false, false);
  });

  test('the clock of Redis goes back: the wait stays below a minute', { skip: noRedis }, async (t) => {
    const { servers: [s], store } = await place(t, { budgets: { people: { bob: { callsPerMinute: 50 } } } }, { shared: true });
    const later = Math.floor(Date.now() / 1000) + 3600; // calls before it was set back
    store.cli('HSET', 'mcp:budget:{budget}:r:person:bob', `${later}`, '49', `${later - 1}`, '1');
    const no = await (await client(s, 'bob')).call();
    assert.equal(over(no), true);
    assert.ok(no.result._meta['mcp-orchestrator/budget'].retryAfterMs <= 61_000, JSON.stringify(no));
  });

  test('limits of nobody are a mistake in the configuration', async (t) => {
    for (const name of ['bobb', 'corp:bob'])
      await assert.rejects(place(t, { budgets: { people: { [name]: { callsPerMinute: 1 } } } }), /'budgets.people': '.*' is nobody/);
    await assert.rejects(place(t, { budgets: { tokens: { '*': { boxes: 1 } } } }), /'budgets.tokens': boxes are limited by person/);
  });
});

// --- conversations ---------------------------------------------------------

const PRICE = { prices: { 'claude-sonnet-5-5': { input: 2, output: 10 } } };

/** A server with a fake model behind it. */
async function talking(t, config, how = {}) {
  const model = await claude({ key: 'sk-ant-0123456789' });
  t.after(() => model.close?.());
  const env = { ANTHROPIC_API_KEY: model.key, ANTHROPIC_BASE_URL: model.url };
  const it = await place(t, { llm: { provider: 'claude', model: 'claude-sonnet-5-5' }, sessions: { idleMinutes: 1 }, ...config, mcpServers: config.mcpServers ?? {} },
    { house: true, ...how, env });
  return { ...it, model };
}
const tab = (t, server, who) => {
  const it = new Tab({ server, sessions: new Set(), headers: as(who) });
  t.after(() => it.close());
  return it;
};
const spend = async (server, who, query = '') => (await fetch(`${server.url}/api/spend${query}`, { headers: as(who) })).json();

const usage = (input, output) => ({ input_tokens: input, output_tokens: output, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 });
/** Say something and wait for what comes of it: the answer, or the error. */
async function turn(it, text = 'hi') {
  const n = it.count('agent:response') + it.count('agent:error');
  await it.say(text);
  await until(() => it.count('agent:response') + it.count('agent:error') > n, 'the end of the turn');
  const [name, message, more] = it.events.filter(([e]) => e === 'agent:response' || e === 'agent:error').at(-1);
  return { ok: name === 'agent:response', message, ...more };
}

describe('tokens, money and turns', () => {
  test('the provider\'s numbers count; the next turn does not start', async (t) => {
    const { servers: [s], model } = await talking(t, { ...PRICE, budgets: { people: { bob: { tokensPerDay: 30_000 } } } });
    const bob = tab(t, s, 'bob');
    await bob.ready();
    model.script.push({ text: 'hello', usage: usage(28_000, 100) });
    assert.equal((await turn(bob)).ok, true);
    const no = await turn(bob);
    assert.equal(no.code, 'over_budget');
    assert.match(no.message, /^The limit of 30000 model tokens a day for bob is reached\. Try again in /);
    assert.ok(no.retryAfterMs > 0 && no.retryAfterMs <= 86_400_000);
    assert.equal(model.requests.filter((r) => r.path === '/v1/messages').length, 1);
    const last = () => JSON.stringify(bob.events.filter(([e]) => e === 'session:entry').at(-1));
    await until(() => /over_budget/.test(last()), 'the conversation says why'); // its entry is stored first
    const ann = tab(t, s, 'ann');
    await ann.ready();
    model.script.push({ text: 'hello' });
    assert.equal((await turn(ann)).ok, true);
    // another conversation, and another server start, are no way around it
    const other = tab(t, s, 'bob');
    await other.ready();
    assert.equal((await turn(other)).code, 'over_budget');
  });

  test('money: whole millionths, by the table of prices', async (t) => {
    const { servers: [s], model } = await talking(t, { ...PRICE, llm: { provider: 'claude', model: 'claude-sonnet-5-5', maxOutputTokens: 100 },
      budgets: { people: { bob: { moneyPerDay: 0.5 } } } });
    const bob = tab(t, s, 'bob');
    await bob.ready();
    model.script.push({ text: 'hello', usage: usage(200_001, 9_900) }); // 0.400002 + 0.099
    assert.equal((await turn(bob)).ok, true);
    assert.match((await turn(bob)).message, /^The limit of 0\.5 a day for models for bob is reached\./);
    const { people } = await spend(s, 'bob');
    assert.deepEqual(people, [{ name: 'bob', tokens: 209_901, money: '0.499002', unpricedTokens: 0, limits: { moneyPerDay: '0.5' } }]);
  });

  test('a model without a price: unknown, and refused where money is limited', async (t) => {
    const { servers: [s], model } = await talking(t, { budgets: { people: { bob: { moneyPerDay: 5 } } } });
    const [ann, bob] = [tab(t, s, 'ann'), tab(t, s, 'bob')];
    await Promise.all([ann.ready(), bob.ready()]);
    assert.match((await turn(bob)).message, /the model claude-sonnet-5-5 has no price/);
    model.script.push({ text: 'hello', usage: usage(100, 1) });
    assert.equal((await turn(ann)).ok, true);
    await until(async () => (await spend(s, 'ann')).people[0].tokens === 101, 'the count');
    assert.deepEqual((await spend(s, 'ann')).people, [{ name: 'ann', tokens: 101, money: null, unpricedTokens: 101 }]);
  });

  test('a turn that passes its budget ends before the next request', async (t) => {
    const { servers: [s], model } = await talking(t, { ...PRICE, budgets: { people: { bob: { tokensPerDay: 30_000 } } } });
    const bob = tab(t, s, 'bob');
    await bob.ready();
    model.script.push({ calls: [{ name: 'read_file', args: { path: 'x' } }], usage: usage(29_000, 10) });
    const no = await turn(bob);
    assert.equal(no.code, 'over_budget');
    assert.equal(bob.count('tool:output'), 1, 'the call before it has run');
    assert.equal(model.requests.filter((r) => r.path === '/v1/messages').length, 1);
  });

  test('a provider that lies: nothing is free, nothing overflows', async (t) => {
    for (const lie of [usage(2 ** 63, 2 ** 63), usage('9'.repeat(40), -5), usage(-1, 'x'), usage(0, 0)]) {
      const { servers: [s], model } = await talking(t, { ...PRICE, budgets: { people: { bob: { tokensPerDay: 50_000 } } } });
      const bob = tab(t, s, 'bob');
      await bob.ready();
      model.script.push({ text: 'hello', usage: lie });
      await turn(bob);
      await until(async () => (await spend(s, 'bob')).people[0].tokens > 0, 'the count');
      const { tokens } = (await spend(s, 'bob')).people[0];
      assert.ok(tokens > 100 && tokens <= 1e9, `${JSON.stringify(lie)}: ${tokens}`);
    }
  });

  test('kill -9 in the middle of a request: the estimate stays counted', async (t) => {
    const { servers: [s], model, again } = await talking(t, { ...PRICE, budgets: { people: { bob: { tokensPerDay: 1_000_000 } } } });
    const bob = tab(t, s, 'bob');
    await bob.ready();
    model.script.push({ text: 'hello', fault: 'stall' });
    await bob.say('hi');
    await until(() => model.requests.some((r) => r.path === '/v1/messages'), 'the request');
    s.child.kill('SIGKILL');
    await s.exit;
    const next = await again(s);
    const { tokens } = (await spend(next, 'bob')).people[0];
    assert.ok(tokens >= 4096, `${tokens}`);
  });

  test('running turns at once, over two servers with one Redis', { skip: noRedis }, async (t) => {
    const { servers, model } = await talking(t, { ...PRICE, approvals: { default: 'ask', rules: [] }, budgets: { people: { bob: { turns: 1 } } } }, { n: 2, shared: true });
    const [a, b] = servers.map((s) => tab(t, s, 'bob'));
    await Promise.all([a.ready(), b.ready()]);
    model.script.push({ calls: [{ name: 'execute_command', args: { command: 'true' } }] }, { text: 'done' }, { text: 'hello' });
    await a.say('go');
    const [card] = await a.event('tool:approval_required');
    const no = await turn(b);
    assert.match(no.message, /^The limit of 1 running turns at once for bob is reached\. Try again when one has ended\.$/);
    await a.decide(card, true);
    await a.event('agent:response');
    await until(async () => (await turn(b)).ok, 'the end of the turn at the other server');
  });

  test('what is said at once is counted at once: two servers, one Redis', { skip: noRedis }, async (t) => {
    const { servers, model } = await talking(t, { ...PRICE, llm: { provider: 'claude', model: 'claude-sonnet-5-5', maxOutputTokens: 1000 },
      budgets: { people: { bob: { tokensPerDay: 60_000 } } } }, { n: 2, shared: true });
    const tabs = Array.from({ length: 8 }, (_, i) => tab(t, servers[i % 2], 'bob'));
    await Promise.all(tabs.map((x) => x.ready()));
    for (let i = 0; i < 64; i++) model.script.push({ text: 'hello', usage: usage(1_000, 900) });
    for (let round = 0; round < 6; round++) await Promise.all(tabs.map((x) => turn(x)));
    const { tokens } = (await spend(servers[0], 'bob')).people[0];
    assert.ok(tokens <= 60_000, `${tokens}`);
    assert.ok(tokens > 40_000, `${tokens}`);
  });

  test('calls of a conversation count for its person', async (t) => {
    const { servers: [s], model } = await talking(t, { ...PRICE, mcpServers: { work: {} }, budgets: { people: { bob: { callsPerMinute: 2 } } } });
    const bob = tab(t, s, 'bob');
    await bob.ready();
    const read = { name: 'read_file', args: { path: 'x' } };
    model.script.push({ calls: [read, read, read] }, { text: 'done' });
    assert.equal((await turn(bob)).ok, true);
    const outputs = JSON.stringify(bob.events.filter(([e]) => e === 'tool:output'));
    assert.match(outputs, /2 calls a minute for bob/);
    const it = await client(s, 'bob');
    assert.equal(over(await it.call()), true, 'the same count');
  });

  test('boxes at once, also those that nobody uses any more', async (t) => {
    const { servers: [s] } = await talking(t, { budgets: { people: { bob: { boxes: 1 } } } });
    const one = tab(t, s, 'bob');
    await one.ready();
    const two = tab(t, s, 'bob');
    await two.event('(disconnect)');
    assert.match(JSON.stringify(two.events), /limit of 1 boxes at once for bob/);
    one.close(); // its box stays for a minute
    const three = tab(t, s, 'bob');
    await three.event('(disconnect)');
    assert.match(JSON.stringify(three.events), /limit of 1 boxes at once for bob/);
    const again = new Tab({ server: s, sessions: new Set(), headers: as('bob') }, { session: one.session });
    await again.ready();
    await again.emit('session:close', {});
    await until(async () => {
      const next = tab(t, s, 'bob');
      await until(() => next.count('system:ready') + next.count('(disconnect)') > 0, 'the end of opening');
      return next.count('system:ready') > 0;
    }, 'a box of another session');
    const ann = tab(t, s, 'ann');
    await ann.ready();
  });

  test('a flood of names: the store does not grow, and nobody is free', { skip: noRedis }, async (t) => {
    const { servers: [s], store, model } = await talking(t, { ...PRICE, budgets: { people: { '*': { tokensPerDay: 100_000 } } } }, { shared: true });
    const key = `mcp:budget:{budget}:d:${Math.floor(Date.now() / 86_400_000)}`;
    store.cli('EVAL', "for i = 1, 20000 do redis.call('HSET', KEYS[1], 'person:x' .. i .. '\\ttokens', 1) end", '1', key);
    const before = Number(store.cli('HLEN', key));
    assert.equal(before, 20_000);
    const [ann, bob] = [tab(t, s, 'ann'), tab(t, s, 'bob')];
    await Promise.all([ann.ready(), bob.ready()]);
    model.script.push({ text: 'hello', usage: usage(99_000, 10) });
    assert.equal((await turn(ann)).ok, true);
    assert.equal((await turn(bob)).code, 'over_budget', 'they share what is left over');
    assert.ok(Number(store.cli('HLEN', key)) <= before + 3);
    assert.ok(Number(store.cli('PTTL', key)) > 0);
  });

  test('`spend` prints it', async (t) => {
    const { servers: [s], model } = await talking(t, PRICE);
    const bob = tab(t, s, 'bob');
    await bob.ready();
    model.script.push({ text: 'hello', usage: usage(1_000, 100) });
    await turn(bob);
    await until(async () => (await spend(s, 'bob')).people[0].tokens === 1_100, 'the count');
    const how = { cwd: s.dir, env: { MCP_ORCHESTRATOR_STATE_DIR: `${s.dir}/state` } };
    const text = await run(bin, ['spend', '--days', '2'], how);
    assert.match(text.out, /^\d{4}-\d\d-\d\d bob +1100 +0\.003$/m, text.err);
    const [today, yesterday] = JSON.parse((await run(bin, ['spend', '--days', '2', '--json'], how)).out);
    assert.deepEqual(today.people, [{ name: 'bob', tokens: 1_100, money: '0.003', unpricedTokens: 0 }]);
    assert.deepEqual(yesterday.people, []);
    assert.ok(JSON.parse((await run(bin, ['spend', '--prices'], how)).out).models.demo);
    assert.equal((await run(bin, ['spend', '--days', '33'], how)).code, 2);
  });
});
