// start.bench.mjs - from exec to the first 200 over HTTP, and what the
// program weighs when it then rests: `serve` and a hello in Node's http; and
// `serve` with nothing stored against `serve` with 1 GB of audited calls.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fillState } from '../tests/lib/state.mjs';
import { first, inTurns, median, node, program, say } from './kit.mjs';

const TURNS = 9;
const IDLE_MS = 300;
const GOAL_MS = 10;
const GOAL_MIB = 5;
const GOAL_STORED = 1.5;
const MB = 1_000_000;

const data = await mkdtemp(join(tmpdir(), 'mo-bench-'));
process.chdir(data);
const PARTIES = {
  ours: { path: '/healthz', command: [program, 'serve', '--port', '@PORT@'] },
  node: { path: '/', command: [...node('peer_http.mjs'), '@PORT@'] },
};
const got = await inTurns(PARTIES, TURNS, (p) => first(IDLE_MS, p.path, p.command));

// --- with much stored ---------------------------------------------------------

const serveIn = (dir) => ({ path: '/healthz', command: [
  'env', `MCP_ORCHESTRATOR_STATE_DIR=${dir}`, program, 'serve', '--port', '@PORT@'] });
const STATES = { none: serveIn(join(data, 'none')), much: serveIn(join(data, 'much')) };
for (const s of Object.values(STATES)) await first(IDLE_MS, s.path, s.command); // makes the files
fillState(join(data, 'much'), 'mcp-orchestrator.db', { table: 700 * MB, files: 300 * MB });
const stored = await inTurns(STATES, TURNS, (s) => first(IDLE_MS, s.path, s.command));
await rm(data, { recursive: true, force: true });

const of = (name, member, unit) =>
  median(got[name].map((g) => g[member])) / unit;
for (const name of Object.keys(PARTIES)) {
  const best = Math.min(...got[name].map((g) => g.wall_ns)) / 1e6;
  say(`start to first 200: ${name} ${of(name, 'wall_ns', 1e6).toFixed(1)} ms ` +
    `(best ${best.toFixed(1)}), CPU ${of(name, 'cpu_ns', 1e6).toFixed(1)} ms`);
}
say(`start to first 200: ours ${of('ours', 'wall_ns', 1e6).toFixed(1)} ms ` +
  `(goal <= ${GOAL_MS}), ratio to node ` +
  `${(of('ours', 'wall_ns', 1) / of('node', 'wall_ns', 1)).toFixed(3)}`);
say(`at rest: ours RSS ${of('ours', 'rss', 1048576).toFixed(1)} MiB ` +
  `(goal <= ${GOAL_MIB}), PSS ${of('ours', 'pss', 1048576).toFixed(1)} MiB; ` +
  `node RSS ${of('node', 'rss', 1048576).toFixed(1)} MiB`);
const startMs = (name) => median(stored[name].map((g) => g.wall_ns)) / 1e6;
say(`start with 1 GB stored: ${startMs('much').toFixed(1)} ms, with none ` +
  `${startMs('none').toFixed(1)} ms, ratio ${(startMs('much') / startMs('none')).toFixed(2)} ` +
  `(goal <= ${GOAL_STORED})`);
