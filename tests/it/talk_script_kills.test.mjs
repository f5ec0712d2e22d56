// Scripts with approved calls while `serve` is killed at random points: each
// approved call has its side effect at most once, and each call ends with one
// known outcome or "unknown". Several people run a script at the same time; one
// kill hits all of them. A few kills here, 1,000 runs with MO_LONG=1 (make long).
// MO_SEED repeats the random choices, as far as timing allows.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { until } from './server.mjs';
import { House } from './talk_kit.mjs';

const long = process.env.MO_LONG === '1';
const RUNS = Number(process.env.MO_RUNS ?? (long ? 1000 : 24));
const PEOPLE = Math.min(long ? 20 : 8, RUNS); // at a time
const CALLS = 5; // of a script: two in turn, three together
const KILL_MS = 25; // at most so long after the event that was chosen
const SEED = Number(process.env.MO_SEED ?? Date.now() % 1e6);

// The tool with the side effect: it appends one line a call.
const COUNTER = `
const fs = require('node:fs');
const out = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') out({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'counter', version: '1' } } });
  else if (method === 'tools/list') out({ id, result: { tools: [{ name: 'add', description: 'Count one', inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] } }] } });
  else if (method === 'tools/call') {
    fs.appendFileSync(process.env.AT, params.arguments.id + '\\n');
    out({ id, result: { content: [{ type: 'text', text: 'added ' + params.arguments.id }] } });
  } else if (id !== undefined) out({ id, error: { code: -32601, message: 'no' } });
});
process.stdin.on('end', () => process.exit(0));
`;

const code = (run) => `
import asyncio
import tools
async def one(i):
  try:
    return await tools.aio.counter.add(id=f"${run}-{i}")
  except tools.ToolError as e:
    return type(e).__name__
async def main():
  print(await one(0), await one(1), await asyncio.gather(*[one(i) for i in range(2, ${CALLS})]))
asyncio.run(main())`;

/** Numbers from 0 to 1 that depend on the seed only (mulberry32). */
function numbers(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = numbers(SEED);
let house, at, scripts = 0;
before(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'mo-kills-'));
  at = join(dir, 'counted');
  await writeFile(`${at}.cjs`, COUNTER);
  await writeFile(at, '');
  house = await House.start({
    dir,
    // Leaks are looked for in it/talk; here it would take most of the time.
    env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
    oneProcess: 'a kill of the parent ends all',
    config: {
      approvals: { rules: [{ tool: 'run_script', action: 'allow' }] },
      mcpServers: { counter: { command: process.execPath, args: [`${at}.cjs`], env: { AT: at } } },
    },
  });
  // A person's message is answered with a script of its own, a result with "end".
  house.model.next = function next() {
    const { messages } = this.requests.at(-1).body;
    if (messages.at(-1).content.some((b) => b.type === 'tool_result')) return { text: 'end' };
    return { calls: [{ name: 'run_script', args: { language: 'python', code: code(`r${++scripts}`) } }] };
  };
});
after(async () => {
  house.server.fresh.fds += 16; // the counter stays open for the next
  house.server.fresh.children += 3; // and its guard
  await house.stop();
});

/** One person: decides about every card, and remembers what was shown. */
class Person {
  constructor(seen) {
    Object.assign(this, { seen, cards: new Map(), yes: new Set() });
  }

  sit(tab) {
    this.tab = tab;
    const decide = (card) => {
      if (card.name !== 'counter_add') return;
      this.seen();
      const approved = this.cards.get(card.callId)?.approved ?? random() < 0.85;
      this.cards.set(card.callId, { id: card.args.id, approved });
      if (approved) this.yes.add(card.args.id);
      tab.socket.emit('tool:approval', { callId: card.callId, approved, digest: card.digest }, () => this.seen());
    };
    tab.socket.on('tool:approval_required', decide);
    tab.socket.on('session:history', (h) => h.pending.forEach(decide));
    tab.socket.on('tool:output', () => this.seen());
  }
}

/** All runs of one kill, after so many steps at least: the people, when their turns are over. */
async function killOnce(people, least = 0) {
  let left = 1 + least + Math.floor(random() * (people * CALLS * 2.5 - least));
  let strike;
  const struck = new Promise((resolve) => (strike = resolve));
  const all = Array.from({ length: people }, () => new Person(() => --left === 0 && strike()));
  for (const p of all) p.sit(house.tab());
  await Promise.all(all.map((p) => p.tab.ready()));
  for (const p of all) p.tab.socket.emit('message', 'count');
  const over = Promise.all(all.map((p) => p.tab.event('agent:response', 1, 60_000))).catch(() => {});
  await Promise.race([struck, over]);
  await sleep(random() * KILL_MS);
  await house.kill();
  await until(() => all.every((p) => p.tab.count('(disconnect)')), 'the disconnects');
  await house.up();
  for (const p of all) p.sit(house.tab({ session: p.tab.session }));
  for (const p of all) {
    const { history } = await p.tab.ready();
    if (history.messages.length)
      await until(async () => {
        p.entries = (await house.get(`/api/sessions/${p.tab.session}/history`)).body.messages;
        return JSON.stringify(p.entries.at(-1)).includes('"end"');
      }, 'the end of the turn', 60_000);
  }
  return all;
}

/** The rows of the audit log that end a call of a script, by its argument. */
async function outcomes(session) {
  const { body } = await house.get('/api/audit?limit=1000'); // far more than one kill makes
  const ends = new Map();
  for (const { sessionId, what } of body.rows) {
    if (sessionId !== session || !what.script || !what.content) continue;
    ends.set(what.args.id, [...(ends.get(what.args.id) ?? []), what]);
  }
  return ends;
}

function kindOf(row) {
  if (!row.isError) return 'done';
  if (/Whether it had an effect is unknown/.test(JSON.stringify(row.content))) return 'unknown';
  return ['person', 'cancel'].includes(row.by) && /reject|not run|ended before/i.test(JSON.stringify(row.content)) ? 'rejected' : 'failed';
}

/** effects: a line for each time that the counter counted. */
async function check(all, effects, sum) {
  const ran = new Map();
  for (const id of effects) ran.set(id, (ran.get(id) ?? 0) + 1);
  for (const [id, n] of ran) {
    assert.equal(n, 1, `${id} was run ${n} times`);
    assert.ok(all.some((p) => p.yes.has(id)), `${id} was run, and nobody approved it`);
  }
  sum.effects += effects.length;
  for (const p of all) {
    if (!p.entries) {
      sum.unheard++;
      assert.equal(p.cards.size, 0, 'the message was not stored, and nothing was asked');
      continue;
    }
    const asked = new Set([...p.cards.values()].map((c) => c.id));
    const ends = await outcomes(p.tab.session);
    for (const id of asked) assert.ok(ends.has(id), `${id} has no outcome: ${JSON.stringify(await house.audit(p.tab.session))}`);
    for (const [id, rows] of ends) {
      assert.equal(rows.length, 1, `${id} has ${rows.length} outcomes: ${JSON.stringify(rows)}`);
      const kind = kindOf(rows[0]);
      const n = ran.get(id) ?? 0;
      sum.calls++;
      sum[kind]++;
      if (!asked.has(id)) sum.unasked++;
      if (kind === 'done') assert.equal(n, 1, `${id} is done, and ran ${n} times`);
      else if (kind !== 'unknown') assert.equal(n, 0, `${id} is ${kind}, and ran: ${JSON.stringify(rows)}`);
    }
    const results = p.entries.filter((m) => m.role === 'tool').flatMap((m) => m.results);
    assert.equal(results.length, 1, 'one result of the script');
    if (results[0].state === 'unknown') sum.cut++;
    else assert.equal(results[0].state, 'done');
  }
}

test(`${RUNS} runs with kills`, { timeout: long ? 6 * 3600_000 : 170_000 }, async (t) => {
  const sum = { kills: 0, runs: 0, calls: 0, done: 0, failed: 0, rejected: 0, unknown: 0, unasked: 0, effects: 0, unheard: 0, cut: 0 };
  t.diagnostic(`MO_SEED=${SEED}`);
  while (sum.runs < RUNS) {
    const people = Math.min(PEOPLE, RUNS - sum.runs);
    await writeFile(at, '');
    // The last one lets some calls end, if no other has.
    const all = await killOnce(people, sum.runs + people >= RUNS && !sum.done ? people * 4 : 0);
    sum.kills++;
    sum.runs += people;
    await check(all, (await readFile(at, 'utf8')).split('\n').filter(Boolean), sum);
    for (const p of all) {
      p.tab.close();
      await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${p.tab.session}?forget=true`, { method: 'DELETE' });
      house.sessions.delete(p.tab.session);
    }
    house.tabs.length = house.model.requests.length = 0;
  }
  t.diagnostic(JSON.stringify(sum));
  assert.ok(sum.done > 0 && sum.effects > 0, 'some calls were run');
  if (sum.kills > 2) assert.ok(sum.cut > 0, 'some kill hit a script');
});
