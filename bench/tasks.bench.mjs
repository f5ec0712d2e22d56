// tasks.bench.mjs - ten tasks (tasks.mjs) with the tools offered in three ways:
// all definitions; four tools that find and run the others; scripts. The model
// follows a plan, so the figures show what the offer costs, not how clever a model
// is: it makes no mistakes, and calls that do not depend on each other together.
// Tokens are a quarter of the bytes of requests and replies. A task whose answer or
// files differ between the ways is an error.
import assert from 'node:assert/strict';
import { mkdtemp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { planner } from '../tests/fakes/plan.mjs';
import { House } from '../tests/it/talk_kit.mjs';
import { published } from '../tests/lib/gateway.mjs';
import { TASKS, scriptOf } from './tasks.mjs';

const say = (line) => process.stdout.write(`${line}\n`);
const MODES = ['all', 'search', 'code'];
const SERVERS = ['box', 'router', 'files', 'memory', 'everything'];

/** Calls of the plan under the names that the offer has. */
function* asAll(task, dir) {
  const plan = task.plain(dir);
  for (let step = plan.next(); ;) {
    if (step.done) return step.value;
    step = plan.next(yield step.value.map((c) => ({ name: c.server === 'box' ? c.tool : `${c.server}_${c.tool}`, args: c.args })));
  }
}

/** Each tool of a server is searched for once, then run by its name. */
function* asSearch(task, dir) {
  const plan = task.plain(dir);
  const known = new Set(['box']);
  for (let step = plan.next(); ;) {
    if (step.done) return step.value;
    const fresh = [...new Set(step.value.filter((c) => c.server !== 'box').map((c) => `${c.server} ${c.tool}`))].filter((k) => !known.has(k));
    if (fresh.length) {
      const found = yield fresh.map((k) => ({ name: 'find_tool', args: { query: k.replaceAll('_', ' '), limit: 3 } }));
      fresh.forEach((k, i) => assert.ok(found[i].text.includes(k.split(' ')[1]), `${k} is found: ${found[i].text.slice(0, 300)}`));
      fresh.forEach((k) => known.add(k));
    }
    step = plan.next(yield step.value.map((c) => (c.server === 'box' ? { name: c.tool, args: c.args }
      : { name: 'execute', args: { server: c.server, tool: c.tool, params: c.args } })));
  }
}

function* asCode(task, dir) {
  const [{ text, error }] = yield [{ name: 'run_script', args: { language: 'python', code: scriptOf(task, dir) } }];
  assert.ok(!error, text);
  return text;
}
const PLANS = { all: asAll, search: asSearch, code: asCode };

async function setUp(task, dir, graph) {
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir);
  for (const [name, text] of Object.entries(task.files ?? {})) await writeFile(join(dir, name), text);
  await writeFile(graph, (task.graph ?? []).map((e) => JSON.stringify(e)).join('\n'));
}

async function filesIn(dir) {
  const names = (await readdir(dir)).sort();
  return Promise.all(names.map(async (n) => [n, await readFile(join(dir, n), 'utf8')]));
}

/** The last line that a script has printed; the result has more around it. */
const answerOf = (text, answers) => answers.find((a) => a === text || text.split('\n').includes(a)) ?? text;

async function run(house, model, task, mode, dir) {
  const tab = house.tab();
  await tab.ready();
  const at = `http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}`;
  const set = await fetch(at, { method: 'PATCH', body: JSON.stringify({ offer: mode }), headers: { 'content-type': 'application/json' } });
  assert.equal(set.status, 200);
  for (const [name, text] of Object.entries(task.box ?? {}))
    assert.ok((await fetch(`${at}/files/content?path=${name}`, { method: 'PUT', body: text })).ok);
  model.follow(PLANS[mode](task, dir));
  await tab.say(task.said);
  const [text] = await tab.event('agent:response', 1, 60_000);
  assert.deepEqual(model.problems, []);
  const { body } = await house.get(`/api/sessions/${tab.session}/history`);
  const tools = body.messages.reduce((s, m) => ({ sent: s.sent + (m.toolTokens?.sent ?? 0), plain: s.plain + (m.toolTokens?.plain ?? 0) }), { sent: 0, plain: 0 });
  tab.close();
  return { ...model.used, text, tools, files: await filesIn(dir) };
}

const top = await mkdtemp(join(tmpdir(), 'mo-tasks-'));
const dir = join(top, 'files'), graph = join(top, 'graph.jsonl');
await mkdir(dir);
const model = await planner({ key: 'sk-ant-0123456789' });
const house = await House.start({
  model,
  env: { ANTHROPIC_API_KEY: model.key, ANTHROPIC_BASE_URL: model.url, ASAN_OPTIONS: 'detect_leaks=0' },
  config: {
    approvals: { rules: SERVERS.map((server) => ({ server, action: 'allow' })) },
    mcpServers: {
      files: published('server-filesystem', dir),
      memory: { ...published('server-memory'), env: { MEMORY_FILE_PATH: graph } },
      everything: published('server-everything'),
    },
  },
});
house.server.fresh.fds += 64; // servers stay open for the next
house.server.fresh.children += 9; // and their guards
const sums = Object.fromEntries(MODES.map((m) => [m, { input: 0, output: 0, trips: 0, sent: 0, plain: 0 }]));
const cell = (r) => `${r.input} | ${r.output} | ${r.trips}`;
try {
  say(`| task | ${MODES.map((m) => `\`${m}\` in | out | trips`).join(' | ')} |`);
  say(`|---|${MODES.map(() => '---|---|---|').join('')}`);
  for (const task of TASKS) {
    const got = {};
    for (const mode of MODES) {
      await setUp(task, dir, graph);
      got[mode] = await run(house, model, task, mode, dir);
      for (const k of ['input', 'output', 'trips']) sums[mode][k] += got[mode][k];
      for (const k of ['sent', 'plain']) sums[mode][k] += got[mode].tools[k];
    }
    for (const mode of MODES.slice(1)) {
      assert.equal(answerOf(got[mode].text, [got.all.text]), got.all.text, `${task.name}: the answer of ${mode}`);
      assert.deepEqual(got[mode].files, got.all.files, `${task.name}: the files of ${mode}`);
    }
    say(`| ${task.name} | ${MODES.map((m) => cell(got[m])).join(' | ')} |`);
  }
  say(`| all ten | ${MODES.map((m) => cell(sums[m])).join(' | ')} |`);
  for (const m of MODES.slice(1))
    say(`${m}: ${((100 * (sums[m].input + sums[m].output)) / (sums.all.input + sums.all.output)).toFixed(0)} % of the tokens of all; ` +
      `toolTokens: sent ${sums[m].sent}, plain ${sums[m].plain}`);
} finally {
  await house.stop().catch((e) => say(String(e).slice(0, 400)));
  await rm(top, { recursive: true, force: true });
}
