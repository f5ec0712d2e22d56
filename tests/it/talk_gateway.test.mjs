// Conversations and MCP clients behind one gateway: one process of a server for
// both, fallbacks and the operator's rules for both, one row in the audit log
// for a call. With many tools the model finds and runs them by words, and the
// person is asked about the tool that really runs.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { below, script, slay, wordsOf } from '../lib/gateway.mjs';
import { client1, text } from '../lib/mcp_talk.mjs';
import { until } from './server.mjs';
import { House } from './talk_kit.mjs';

const FOUR = ['execute', 'explain_tool', 'find_tool', 'list_capabilities'];

// Many tools, of which a few have words; it logs in the middle of a call.
const SHOP = `
const rl = require('readline').createInterface({ input: process.stdin });
const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
const pizza = { type: 'object', required: ['topping'], properties: { topping: { type: 'string' } } };
const tools = [
  { name: 'order_pizza', description: 'Order a pizza with a topping and have it delivered', inputSchema: pizza },
  { name: 'cancel_order', description: 'Cancel an order that was placed', inputSchema: { type: 'object' } },
  ...Array.from({ length: 40 }, (_, i) => ({ name: 'thing_' + i, description: 'Number ' + i, inputSchema: { type: 'object' } })),
];
rl.on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize')
    say({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {}, logging: {} }, serverInfo: { name: 'shop', version: '1' } } });
  else if (method === 'tools/list') say({ id, result: { tools } });
  else if (method === 'tools/call') {
    say({ method: 'notifications/message', params: { level: 'info', data: 'in the oven' } });
    say({ id, result: { content: [{ type: 'text', text: params.name + ' ' + JSON.stringify(params.arguments) }] } });
  } else if (id !== undefined) say({ id, error: { code: -32601, message: 'no' } });
});
process.stdin.on('end', () => process.exit(0));
`;

let house, dir, servers;
const file = (name, what) => join(dir, `${name}.${what}`);
const mood = (name, is) => writeFileSync(file(name, 'mood'), is);
const moody = (name, more) => ({ ...script('moody.mjs', name, file(name, 'mood'), file(name, 'log')), ...more });
const config = (more = {}) => ({
  llm: { provider: 'claude', model: 'claude-sonnet-5-5' },
  sandbox: { driver: 'native', warm: 0 },
  audit: { arguments: true },
  mcpServers: { ...servers, ...more },
  approvals: { rules: [
    { server: 'shop', tool: 'cancel_order', action: 'deny', reason: 'food is food' },
    { server: 'a|b|c', action: 'allow' },
    { server: 'n', action: 'deny', reason: 'not that one' },
  ] },
});

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-talk-'));
  servers = { a: moody('a', { fallback: ['b'] }), b: moody('b'), c: moody('c', { fallback: ['d'] }), d: moody('d', { fallback: ['b'] }),
    e: moody('e', { tools: { work: { fallback: ['b/nothing', 'd/set'] } } }), f: moody('f', { fallback: ['n'] }), n: moody('n') };
  for (const name of Object.keys(servers)) mood(name, 'ok');
  await writeFile(join(dir, 'shop.cjs'), SHOP);
  house = await House.start({ dir, config: config(), env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' } });
});
after(async () => {
  house.server.fresh.fds += 48; // the servers stay open for the next
  house.server.fresh.children += 9;
  await house.stop();
});

/** The model calls it, nobody is asked: what it hears. */
async function call(tab, name, args) {
  const n = tab.count('agent:response');
  house.model.script.push({ calls: [{ name, args }] }, { text: 'ok' });
  await tab.say('go');
  await tab.event('agent:response', n + 1);
  return house.results()[0];
}

/** The same with a question before it. */
async function asked(tab, name, args) {
  const n = tab.count('tool:approval_required');
  house.model.script.push({ calls: [{ name, args }] }, { text: 'ok' });
  await tab.say('go');
  return (await tab.event('tool:approval_required', n + 1))[0];
}

async function approve(tab, card) {
  const n = tab.count('agent:response');
  assert.deepEqual(await tab.decide(card, true, { digest: card.digest }), { ok: true });
  await tab.event('agent:response', n + 1);
  return house.results()[0];
}

const processes = (name) => below(house.server.pid).filter((pid) => {
  const words = wordsOf(pid);
  return words.some((w) => w.endsWith('moody.mjs')) && words.includes(name);
});
const rows = async () => (await house.get('/api/audit?limit=1000')).body.rows;

test('one process serves a conversation and an MCP client at once', async () => {
  const tab = house.tab();
  await tab.ready();
  const { client, call: ask } = client1();
  await client.connect(new Http1(new URL(`http://127.0.0.1:${house.server.port}/mcp`)));
  try {
    mood('a', 'slow');
    const [mine, theirs] = await Promise.all([call(tab, 'a_work', { n: 1 }), ask({ name: 'a_work', arguments: { n: 2 } })]);
    assert.deepEqual([mine.text, text(theirs)], ['a work 1', 'a work 2']);
    assert.ok(processes('a').length <= house.server.workers, 'one for all clients of a worker');
    const metrics = await (await fetch(`http://127.0.0.1:${house.server.port}/metrics`)).text();
    const counted = metrics.split('\n').filter((l) => /^\w*gateway_calls_total\{.*server="a"/.test(l));
    assert.equal(counted.reduce((n, l) => n + Number(l.split(' ').at(-1)), 0), 2, counted.join());
  } finally {
    mood('a', 'ok');
    await client.close();
  }
});

test('each call has its rows once, and those of a conversation say which', async () => {
  const tab = house.tab();
  await tab.ready();
  await call(tab, 'b_work', { n: 'audit' });
  const card = await asked(tab, 'd_work', { n: 'audit' });
  assert.equal((await approve(tab, card)).text, 'd work audit');
  const of = (await rows()).filter((r) => JSON.stringify(r.what).includes('audit'));
  assert.ok(of.every((r) => r.sessionId === tab.session));
  const done = of.filter((r) => r.what.content?.[0]);
  assert.deepEqual(done.map((r) => [r.what.server, r.what.tool, r.what.by]), [['d', 'work', 'person'], ['b', 'work', 'rule']]);
  assert.equal(of.length, 3, 'and the yes, before it ran');
  const { body } = await house.get('/api/audit/verify');
  assert.equal(body.ok, true);
});

test('a server that is down: another stands in, if that may run', async () => {
  const tab = house.tab();
  await tab.ready();
  for (const name of ['a', 'c']) {
    await call(tab, `${name}_work`, { n: 0 });
    mood(name, 'die');
    assert.match((await call(tab, `${name}_work`, { n: 1 })).text, /did not come back .*Whether it had an effect is unknown/);
    mood(name, 'no-start');
  }
  try {
    const got = await call(tab, 'a_work', { n: 2 });
    assert.equal(got.error, false);
    assert.match(got.text, /^b work 2\[b ran this call in the place of a, which is down: /);
    const { route } = (await tab.event('tool:output', tab.count('tool:output')))[1];
    assert.deepEqual([route.server, route.insteadOf], ['b', 'a']);
    const [row] = await house.audit(tab.session);
    assert.deepEqual([row.server, row.route.server, row.route.insteadOf], ['a', 'b', 'a']);
    // Nobody allowed d, and nobody was asked about it.
    const no = await call(tab, 'c_work', { n: 2 });
    assert.equal(no.error, true);
    assert.match(no.text, /d stands in for its server, and nobody was asked/);
    assert.ok(!readFileSync(file('d', 'log'), 'utf8').includes('work 2'));
    const states = (await house.get('/api/servers')).body.servers;
    assert.match(states.find((s) => s.name === 'a').state, /failed|broken/);
  } finally {
    for (const name of ['a', 'c']) mood(name, 'ok');
  }
});

/** Its server dies while the person thinks. */
async function down(name) {
  mood(name, 'no-start');
  processes(name).forEach(slay);
  await until(() => processes(name).length === 0, `${name} is gone`);
}

test('no rule allows whoever stands in: the person is asked about that one', async () => {
  const tab = house.tab();
  await tab.ready();
  try {
    const card = await asked(tab, 'e_work', { n: 'twice' });
    assert.deepEqual([card.server, card.route], ['e', undefined]);
    await down('e');
    assert.deepEqual(await tab.decide(card, true, { digest: card.digest }), { ok: true });
    const [second] = await tab.event('tool:approval_required', 2);
    assert.deepEqual([second.firstId, second.server, second.name, second.args], [card.callId, 'd', 'd_set', { n: 'twice' }]);
    assert.notEqual(second.callId, card.callId, 'asked about again under a new id');
    assert.equal((await tab.decide(card, true)).code, 'unknown_call', 'a yes to the first card means nothing any more');
    assert.deepEqual([second.route.insteadOf, second.route.tool], ['e', 'set']);
    assert.notEqual(second.digest, card.digest);
    assert.equal((await tab.decide(second, true, { digest: card.digest })).code, 'changed', 'the first yes is not for it');
    assert.ok(!readFileSync(file('d', 'log'), 'utf8').includes('twice'));

    await house.kill();
    await house.up();
    const back = house.tab({ session: tab.session });
    const { history } = await back.ready();
    const [again] = history.pending;
    assert.deepEqual([again.callId, again.server, again.digest, again.route], [second.callId, 'd', second.digest, second.route]);
    const got = await approve(back, again);
    assert.equal(got.error, false, got.text);
    assert.match(got.text, /^d set twice\[d ran this call in the place of e/);
    const [done] = await house.audit(tab.session);
    assert.deepEqual([done.server, done.tool, done.by, done.route.insteadOf], ['d', 'set', 'person', 'e']);
  } finally {
    mood('e', 'ok');
  }
});

test('a call that a person allowed: at whoever stands in, as the rules say of that one', async () => {
  const tab = house.tab();
  await tab.ready();
  try {
    // b is allowed by a rule.
    const card = await asked(tab, 'd_work', { n: 'there' });
    await down('d');
    const got = await approve(tab, card);
    assert.equal(got.error, false, got.text);
    assert.match(got.text, /^b work there\[b ran this call in the place of d, which is down: /);
    assert.equal(tab.count('tool:approval_required'), 1);
    const { route } = (await tab.event('tool:output', tab.count('tool:output')))[1];
    assert.deepEqual([route.server, route.insteadOf], ['b', 'd']);
    const [done, yes] = await house.audit(tab.session);
    assert.deepEqual([done.server, done.by, done.route.server, done.route.insteadOf], ['b', 'rule', 'b', 'd']);
    assert.deepEqual([yes.server, yes.by], ['d', 'person']);

    // n is denied by one.
    const other = await asked(tab, 'f_work', { n: 'denied' });
    await down('f');
    const no = await approve(tab, other);
    assert.equal(no.error, true);
    assert.match(no.text, /f is down \(.*\), and n, which stands in for it, may not run it: not that one/);
    assert.ok(!existsSync(file('n', 'log')));
  } finally {
    for (const name of ['d', 'f']) mood(name, 'ok');
  }
});

test('a server that is not tried any more: the same', async () => {
  const tab = house.tab();
  await tab.ready();
  mood('d', 'die'); // of each call, so the breaker opens; it starts all right
  try {
    let got;
    await until(async () => {
      got = await approve(tab, await asked(tab, 'd_work', { n: 'breaks' }));
      return got.text.includes('fails again and again');
    }, 'its breaker is open');
    assert.equal(got.error, false, got.text);
    assert.match(got.text, /^b work breaks\[b ran this call in the place of d, which is down: /);
  } finally {
    mood('d', 'ok');
  }
});

test('with many tools: four, and what execute would run is what is asked about', async () => {
  const tab = house.tab();
  await tab.ready();
  writeFileSync(join(dir, 'mcp-orchestrator.json'), JSON.stringify(config({
    shop: { command: process.execPath, args: [join(dir, 'shop.cjs')], description: 'Food to the door' },
  })));
  house.server.child.kill('SIGHUP');
  let offered = [];
  await until(async () => {
    await call(tab, 'find_tool', { query: 'order a pizza' });
    offered = house.asked().tools.map((t) => t.name);
    return FOUR.every((f) => offered.includes(f));
  }, 'the four tools');
  assert.ok(offered.includes('execute_command'), 'beside those of the box');
  assert.ok(!offered.some((n) => /^(a|b|c|d|shop)_/.test(n)), offered.join());

  const found = await call(tab, 'find_tool', { query: 'order a pizza with mushrooms' });
  assert.match(found.text, /order_pizza/);
  assert.equal(tab.count('tool:approval_required'), 0, 'that asks nobody');
  const unsure = await call(tab, 'execute', { request: 'zzz qqq', params: {} });
  assert.equal(unsure.error, true);
  assert.match(unsure.text, /nothing was done/);

  const card = await asked(tab, 'execute', { request: 'order a pizza with mushrooms', params: { topping: 'mushrooms' } });
  assert.deepEqual([card.server, card.name, card.args], ['shop', 'shop_order_pizza', { topping: 'mushrooms' }]);
  assert.equal(card.words, 'order a pizza with mushrooms');
  assert.match(card.description, /have it delivered/);
  const got = await approve(tab, card);
  assert.deepEqual([got.error, got.text], [false, 'order_pizza {"topping":"mushrooms"}']);
  const log = (await tab.event('tool:log')).at(0);
  assert.deepEqual([log.callId, log.data], [card.callId, 'in the oven']);
  const [row] = await house.audit(tab.session);
  assert.deepEqual([row.server, row.tool, row.args], ['shop', 'order_pizza', { topping: 'mushrooms' }]);
});

test('execute: what is denied is not run, wrong params are said', async () => {
  const tab = house.tab();
  await tab.ready();
  const no = await call(tab, 'execute', { server: 'shop', tool: 'cancel_order', params: {} });
  assert.equal(no.error, true);
  assert.match(no.text, /not allowed here: food is food/);
  const wrong = await call(tab, 'execute', { server: 'shop', tool: 'order_pizza', params: { topping: 7 } });
  assert.match(wrong.text, /params do not fit/);
  const free = await call(tab, 'execute', { server: 'b', tool: 'work', params: { n: 'x' } });
  assert.equal(free.text, 'b work x');
  assert.equal(tab.count('tool:approval_required'), 0);
});

test('execute: asked about before a restart, run after it', async () => {
  const tab = house.tab();
  await tab.ready();
  const card = await asked(tab, 'execute', { server: 'shop', tool: 'order_pizza', params: { topping: 'ham' } });
  await house.kill();
  await house.up();
  const back = house.tab({ session: tab.session });
  const { history } = await back.ready();
  const [again] = history.pending;
  assert.deepEqual([again.callId, again.server, again.name, again.digest], [card.callId, 'shop', 'shop_order_pizza', card.digest]);
  assert.equal((await approve(back, again)).text, 'order_pizza {"topping":"ham"}');
});
