// script.bench.mjs - scripts of the toolbox: from tools/call to the answer of a
// script that prints one word, over the bare interpreter with the same script;
// and one call of a tool from inside, which a small host (script_host.c) answers
// at once. So all of it is more than the host's own call of that tool. Wall clock:
// somebody waits for both. The ping is how long the host waits for the toolbox.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PATH, Toolbox, programs } from '../tests/lib/toolbox.mjs';
import { inTurns, median, native, say } from './kit.mjs';

const TURNS = 21;
const CALL_TURNS = 9;
const CALLS = 2000;
const GOAL_MS = 5;
const GOAL_CALL_MS = 0.1;
const library = (name) => readFileSync(fileURLToPath(new URL(`../data/script/${name}`, import.meta.url)), 'utf8');
const files = Object.fromEntries(['tools.py', 'tools_shared.py', 'tools.mjs'].map((name) => [name, library(name)]));
const LANGUAGES = {
  python: {
    command: ['python3', '-B', '-u'], file: 'bare.py', plain: 'print("word")', with: 'import tools\nprint("word")',
    loop: `import time, tools
tools.echo(a=1)
took = []
for i in range(${CALLS}):
    t = time.perf_counter()
    tools.echo(a=i)
    took.append(time.perf_counter() - t)
print(sorted(took)[${CALLS} // 2] * 1000)`,
  },
  javascript: {
    command: ['node'], file: 'bare.mjs', plain: 'console.log("word")', with: 'import tools from "./tools.mjs";\nconsole.log("word", typeof tools)',
    loop: `import tools from './tools.mjs';
await tools.echo({ a: 1 });
const took = [];
for (let i = 0; i < ${CALLS}; i++) {
  const t = performance.now();
  await tools.echo({ a: i });
  took.push(performance.now() - t);
}
console.log(took.sort((a, b) => a - b)[${CALLS} / 2]);`,
  },
};

const toolbox = Toolbox.start({ program: 'musl' });
await toolbox.open();

const request = (language, code) => ({ name: 'run_script', arguments: { language, code },
  _meta: { progressToken: 1, 'mcp-orchestrator/script': { files } } });

async function run(language, code) {
  const began = performance.now();
  const r = await toolbox.call('run_script', { language, code }, { _meta: request(language, code)._meta });
  if (r.isError) throw new Error(r.content[0].text);
  return performance.now() - began;
}

async function bare({ command, file }) {
  const began = performance.now();
  const child = spawn(command[0], [...command.slice(1), join(toolbox.place.root, file)],
    { env: { PATH }, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.resume();
  child.stderr.resume();
  await once(child, 'close');
  return performance.now() - began;
}

/** The medians of a call inside a script and of a ping, in ms. */
async function calls(language, code) {
  const child = execFile(native('script_host')[0], [programs.musl, toolbox.place.root, String(CALLS)],
    { env: { PATH }, maxBuffer: 1 << 24 });
  let out = '';
  child.stdout.on('data', (d) => { out += d; });
  child.stdin.end(`${JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'tools/call', params: request(language, code) })}\n`);
  await once(child, 'close');
  const { ping_us, answer } = JSON.parse(out);
  if (answer.result.isError) throw new Error(answer.result.content[0].text);
  return { call: parseFloat(answer.result.structuredContent.stdout), ping: ping_us / 1000 };
}

for (const [name, l] of Object.entries(LANGUAGES)) {
  writeFileSync(join(toolbox.place.root, l.file), l.plain);
  const got = await inTurns({ bare: 0, plain: 1, tools: 2 }, TURNS, (which) =>
    [() => bare(l), () => run(name, l.plain), () => run(name, l.with)][which]());
  const over = (which) => median(got[which].map((ms, i) => ms - got.bare[i])).toFixed(1);
  say(`script start, ${name}: bare ${median(got.bare).toFixed(1)} ms, over it ${over('plain')} ms, ` +
    `with the library ${over('tools')} ms (goal <= ${GOAL_MS})`);
  const { one } = await inTurns({ one: 0 }, CALL_TURNS, () => calls(name, l.loop));
  say(`script call, ${name}: p50 ${median(one.map((o) => o.call)).toFixed(3)} ms, least of ${CALL_TURNS} turns ` +
    `${Math.min(...one.map((o) => o.call)).toFixed(3)} ms (goal <= ${GOAL_CALL_MS}); ` +
    `a ping of the toolbox ${median(one.map((o) => o.ping)).toFixed(3)} ms`);
}
await toolbox.close();
