// trace.bench.mjs - OpenTelemetry on a call through the gateway: CPU time a call
// costs `serve` with traces off, on for 1 % and for all calls, and with metrics
// (each second) and logs, next to a second server without any, which shows how
// much two equal servers differ. Many short turns: on a busy machine the medians
// differ by more than the goal, the least of each party does not. The collector
// takes everything, in this process.
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { inTurns, median, native, program, ratio, run, say, startAt, TOKEN } from './kit.mjs';

const TURNS = 25;
const [fixture] = native('mcp_fixture');
const cpu = (list) => list.map((got) => got.cpu_ns / got.ops);
const us = (ns) => (ns / 1000).toFixed(2);

const dir = mkdtempSync(join(tmpdir(), 'mo-bench-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));

const got = { bytes: 0, requests: {} };
const collector = createServer((req, res) => {
  got.requests[req.url] = (got.requests[req.url] ?? 0) + 1;
  req.on('data', (part) => (got.bytes += part.length)).on('end', () => res.end());
}).listen(0, '127.0.0.1');
await once(collector, 'listening');
const endpoint = `http://127.0.0.1:${collector.address().port}`;

async function serve(name, telemetry) {
  const file = join(dir, `${name}.json`);
  writeFileSync(file, JSON.stringify({
    mcpServers: { s: { command: fixture, toolPrefix: '' } }, sandbox: { driver: 'none' }, telemetry,
  }));
  return startAt([program, 'serve', '--port', 'PORT', '--config', file], {
    MCP_ORCHESTRATOR_STATE_DIR: join(dir, name), MCP_ORCHESTRATOR_TOKEN: TOKEN,
    HOME: dir, XDG_DATA_HOME: dir, XDG_STATE_HOME: dir, XDG_CONFIG_HOME: dir,
  });
}

const traces = (sample) => ({ endpoint, sample, parentsPerSecond: 0 });
const parties = {
  off: await serve('off', {}),
  'off again': await serve('again', {}),
  'on for 1 %': await serve('one', traces(0.01)),
  'on for all': await serve('all', traces(1)),
  metrics: await serve('metrics', { endpoint, traces: false, metrics: true, metricsSeconds: 1 }),
  logs: await serve('logs', { endpoint, traces: false, logs: true }),
};
const GOALS = { 'on for 1 %': ' (goal 1)' };
const load = (at, sessions, calls) => run('load_mcp', ['--tool', 'echo', 'http', at.port, at.pid, sessions, 200, calls]);

for (const at of Object.values(parties)) await load(at, 1, 2000);
for (const sessions of [1, 32]) {
  const figures = await inTurns(parties, TURNS, (at) => load(at, sessions, 2000));
  const off = cpu(figures.off);
  const what = `trace, ${sessions} session${sessions > 1 ? 's' : ''}`;
  const least = Math.min(...off);
  say(`${what}: off ${us(median(off))} us of CPU a call, at least ${us(least)}`);
  for (const name of Object.keys(parties).slice(1)) {
    const on = cpu(figures[name]);
    const more = median(on.map((ns, i) => ns - off[i]));
    say(`${what}: ${name}: ratio to off ${ratio(on, off).toFixed(3)}, ${us(more)} us more a call; ` +
      `least to least ${(Math.min(...on) / least).toFixed(3)}, ${us(Math.min(...on) - least)} us more${GOALS[name] ?? ''}`);
  }
}
for (const at of Object.values(parties)) await at.stop();
say(`trace: the collector took ${JSON.stringify(got.requests)}, ${(got.bytes / 1e6).toFixed(0)} MB`);
collector.close();
collector.closeAllConnections();
