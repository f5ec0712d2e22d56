// Tokens that tools cost a turn, and would have cost as plain calls: stored with
// each reply, the same after a restart, counted in the metrics, negative if a
// script costs more than it saves.
import assert from 'node:assert/strict';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { House } from './talk_kit.mjs';

const BIG = 8000; // bytes of a result
// 30 tools with long descriptions; page returns much, ping little.
const SERVER = `
const out = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
const schema = { type: 'object', properties: { n: { type: 'integer' } } };
const tools = ['page', 'ping', ...Array.from({ length: 28 }, (_, i) => 'other' + i)].map((name) => ({ name, description: name + ' ' + 'x'.repeat(400), inputSchema: schema }));
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') out({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } });
  else if (method === 'tools/list') out({ id, result: { tools } });
  else if (method === 'tools/call') out({ id, result: { content: [{ type: 'text', text: params.name === 'page' ? 'y'.repeat(${BIG}) : 'pong' }] } });
  else if (id !== undefined) out({ id, error: { code: -32601, message: 'no' } });
});
process.stdin.on('end', () => process.exit(0));
`;

let house;
before(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'mo-tokens-'));
  await writeFile(join(dir, 'server.cjs'), SERVER);
  house = await House.start({
    dir,
    // Leaks are looked for in it/talk; here it would take most of the time.
    env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
    config: {
      llm: { provider: 'claude', model: 'claude-sonnet-5-5', tools: 'all' },
      approvals: { rules: ['box', 'router', 'pages'].map((server) => ({ server, action: 'allow' })) },
      mcpServers: { pages: { command: process.execPath, args: [join(dir, 'server.cjs')] } },
    },
  });
});
after(async () => {
  house.server.fresh.fds += 16; // the server stays open for the next
  house.server.fresh.children += 3; // and its guard
  await house.stop();
});

const python = (code) => ({ name: 'run_script', args: { language: 'python', code: `import tools\n${code}` } });
const PAGES = python(`print(sum(len(tools.pages.page(n=i)) for i in range(6)))`);

/** The sums of a turn in which the model makes these steps. */
async function turn(offer, ...steps) {
  const tab = house.tab();
  await tab.ready();
  const set = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}`, {
    method: 'PATCH', body: JSON.stringify({ offer }), headers: { 'content-type': 'application/json' },
  });
  assert.equal(set.status, 200);
  house.model.script.push(...steps.map((calls) => ({ calls })), { text: 'end' });
  await tab.say('go');
  await tab.event('agent:response', 1, 60_000);
  return { tab, ...(await read(tab.session)) };
}

async function read(session) {
  const { body } = await house.get(`/api/sessions/${session}/history`);
  const all = body.messages.map((m) => m.toolTokens).filter(Boolean);
  const sum = (k) => all.reduce((n, x) => n + x[k], 0);
  return { all, sent: sum('sent'), plain: sum('plain'), messages: body.messages };
}

async function metrics() {
  const of = async (kind) => (await house.server.metric(`mo_model_tool_tokens_total{kind="${kind}"}`)) ?? 0;
  return { sent: await of('sent'), plain: await of('plain') };
}

test('plain calls with all tools: nothing is saved, and nothing is stored', async () => {
  const { all } = await turn('all', [{ name: 'pages_page', args: { n: 1 } }]);
  assert.deepEqual(all, []);
});

test('with all tools, a script saves the results it keeps to itself', async () => {
  const before = await metrics();
  const { tab, all, sent, plain, messages } = await turn('all', [PAGES]);
  assert.equal(all.length, 1, 'definitions are the same; the script counts in the second request');
  const { args } = messages.flatMap((m) => m.blocks ?? []).find((b) => b.type === 'call');
  const { results, scripts } = messages.find((m) => m.role === 'tool');
  const code = JSON.stringify(args).length + 'run_script'.length;
  const output = JSON.stringify(results[0].content).length;
  assert.ok(scripts[0].resultBytes >= 6 * BIG && scripts[0].resultBytes < 6 * (BIG + 100), `${scripts[0].resultBytes}`);
  // Written once and sent once, both ways.
  const want = (2 * scripts[0].callBytes + scripts[0].resultBytes - 2 * code - output) / 4;
  assert.ok(Math.abs(plain - sent - want) < 20, `saved ${plain - sent}, expected about ${want}`);
  const later = await metrics();
  assert.ok(later.plain - later.sent - (before.plain - before.sent) === plain - sent, 'the metrics count the same');
  await house.kill();
  await house.up();
  const back = await read(tab.session);
  assert.deepEqual(back.all, all, 'the same after a restart');
});

test('a script for one small call costs more than it saves', async () => {
  const { sent, plain } = await turn('all', [python('# A long comment about nothing.\nprint("the answer is", tools.pages.ping(n=1))')]);
  assert.ok(plain < sent, `sent ${sent}, plain ${plain}`);
});

test('scripts and searches save definitions, in each request', async () => {
  const code = await turn('code', [PAGES]);
  assert.equal(code.all.length, 2);
  for (const one of code.all) assert.ok(one.plain - one.sent > (28 * 400) / 4 - 2500, JSON.stringify(one));
  assert.ok(code.all[1].plain - code.all[1].sent > (6 * BIG) / 4, JSON.stringify(code.all));
  const search = await turn('search',
    [{ name: 'find_tool', args: { query: 'page', limit: 20 } }],
    [{ name: 'execute', args: { server: 'pages', tool: 'page', params: { n: 1 } } }]);
  assert.equal(search.all.length, 3);
  const [first, second, third] = search.all.map((x) => x.plain - x.sent);
  assert.ok(first > second, 'what a search has found is not free');
  assert.ok(Math.abs(second - third) < 200, 'a call by its name costs what it costs');
});
