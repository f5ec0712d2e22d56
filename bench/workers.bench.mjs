// workers.bench.mjs - `serve --workers 2` against one process: calls of a tool
// through /mcp, as many as the processors give.
//
// The load generator and the tool's process need processors too, so calls a
// second by the clock say nothing on a machine with two cores. Counted is what
// limits a server whose workers have a core each: calls by the CPU time of the
// process that used most of it. Two workers reach 2 if they share the
// connections evenly and a call costs as much as in one process.
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { inTurns, median, native, program, ratio, run, say, startAt, TOKEN } from './kit.mjs';

const TURNS = 5, CONNECTIONS = 400, CALLS = 40_000, GOAL = 1.7;
const [fixture] = native('mcp_fixture');
const dir = mkdtempSync(join(tmpdir(), 'mo-bench-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const config = join(dir, 'one.json');
writeFileSync(config, JSON.stringify({
  mcpServers: { s: { command: fixture, toolPrefix: '' } },
  sandbox: { driver: 'none' },
}));

/** Nanoseconds of all threads of a process. */
const cpu = (pid) =>
  readdirSync(`/proc/${pid}/task`)
    .map((t) => Number(readFileSync(`/proc/${pid}/task/${t}/schedstat`, 'utf8').split(' ')[0]))
    .reduce((a, b) => a + b, 0);
const childrenOf = (pid) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

const PARTIES = { one: { workers: 1 }, two: { workers: 2 } };
for (const [name, p] of Object.entries(PARTIES)) {
  p.at = await startAt(
    [program, 'serve', '--port', 'PORT', '--config', config, '--workers', p.workers],
    {
      MCP_ORCHESTRATOR_STATE_DIR: join(dir, name), MCP_ORCHESTRATOR_TOKEN: TOKEN,
      HOME: dir, XDG_DATA_HOME: dir, XDG_STATE_HOME: dir, XDG_CONFIG_HOME: dir,
    });
  // the second worker starts when the first one listens
  while (p.workers > 1 && childrenOf(p.at.pid).length < p.workers) await sleep(10);
  p.pids = p.workers > 1 ? childrenOf(p.at.pid) : [p.at.pid];
}

const figures = await inTurns(PARTIES, TURNS, async (p) => {
  const before = p.pids.map(cpu);
  const got = await run('load_mcp', ['--tool', 'echo', 'http', p.at.port, p.at.pid, CONNECTIONS, CONNECTIONS, CALLS]);
  const spent = p.pids.map((pid, i) => cpu(pid) - before[i]);
  return { calls: got.ops / (Math.max(...spent) / 1e9), clock: got.ops / (got.wall_ns / 1e9), spent };
});
for (const p of Object.values(PARTIES)) await p.at.stop();

const rate = (name) => figures[name].map((f) => f.calls);
const share = median(figures.two.map((f) => Math.max(...f.spent) / f.spent.reduce((a, b) => a + b, 0)));
say(`  calls a second of CPU of the busiest process: one ${median(rate('one')).toFixed(0)}, ` +
  `two workers ${median(rate('two')).toFixed(0)}; ratio ${ratio(rate('two'), rate('one')).toFixed(2)} (goal >= ${GOAL})`);
say(`  the busier worker did ${(share * 100).toFixed(0)} % of the work; by the clock, load and tool included: ` +
  `${median(figures.one.map((f) => f.clock)).toFixed(0)} and ${median(figures.two.map((f) => f.clock)).toFixed(0)} calls a second`);
