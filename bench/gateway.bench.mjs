// gateway.bench.mjs - one stdio child behind a gateway: ours (serve at /mcp, and
// gateway on stdio), npm's mcp-proxy and supergateway, next to the same child
// spoken to directly. CPU time a call costs the gateway, the time a caller
// waits, calls a second with 32 sessions, memory, and the start with 50 servers.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { inTurns, median, native, program, ratio, run, say, start, startAt } from './kit.mjs';

const TURNS = 3;
const [fixture] = native('mcp_fixture');
const peer = (path) => fileURLToPath(new URL(`node_modules/${path}`, import.meta.url));
const us = (list) => (median(list) / 1000).toFixed(1);
const cpu = (list) => list.map((got) => got.cpu_ns / got.ops);
const p50 = (list) => list.map((got) => got.p50_ns);
const rate = (list) => list.map((got) => got.ops / (got.wall_ns / 1e9));
const mib = (pid) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

const dir = mkdtempSync(join(tmpdir(), 'mo-bench-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
function config(name, count) {
  const servers = Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`s${i}`, { command: fixture, toolPrefix: i ? undefined : '' }]),
  );
  const file = join(dir, `${name}.json`);
  writeFileSync(file, JSON.stringify({ mcpServers: servers, sandbox: { driver: 'none' } }));
  return file;
}
const env = { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state'), HOME: dir, XDG_DATA_HOME: dir };
const one = config('one', 1);
const fifty = config('fifty', 50);

const PARTIES = {
  ours: { command: [program, 'serve', '--port', 'PORT', '--config', one], calls: 20_000 },
  'mcp-proxy': {
    command: [process.execPath, peer('mcp-proxy/dist/bin/mcp-proxy.mjs'), '--host', '127.0.0.1',
      '--port', 'PORT', '--server', 'stream', '--', fixture],
    calls: 1000,
  },
  supergateway: {
    command: [process.execPath, peer('supergateway/dist/index.js'), '--stdio', fixture,
      '--outputTransport', 'streamableHttp', '--stateful', '--port', 'PORT', '--logLevel', 'none'],
    calls: 1000,
  },
};

// --- HTTP in front of one child
const floor = await start([fixture, '--http', '0']);
for (const p of Object.values(PARTIES)) {
  p.at = await startAt(p.command, env);
  p.idle = mib(p.at.pid);
  await run('load_mcp', ['http', p.at.port, p.at.pid, 1, 1, p.calls]);
}
const all = { direct: { at: floor, calls: 20_000 }, ...PARTIES };
for (const connections of [1, 32]) {
  const got = await inTurns(all, TURNS, (p) =>
    run('load_mcp', ['http', p.at.port, p.at.pid, connections, 100, p.calls]));
  const line = (pick) => Object.entries(got).map(([name, list]) => `${name} ${pick(list)}`).join(', ');
  const what = `gateway http, ${connections} session${connections > 1 ? 's' : ''}`;
  say(`${what}: p50 us ${line((l) => us(p50(l)))}${connections === 1 ? ' (goal 50)' : ''}`);
  say(`${what}: CPU us/call ${line((l) => us(cpu(l)))} (goal 20)`);
  say(`${what}: calls/s ${line((l) => median(rate(l)).toFixed(0))}${connections > 1 ? ' (goal 40000)' : ''}`);
  for (const name of Object.keys(PARTIES).slice(1))
    say(`${what}: ours to ${name}: p50 ${ratio(p50(got.ours), p50(got[name])).toFixed(3)}, ` +
      `CPU ${ratio(cpu(got.ours), cpu(got[name])).toFixed(3)}`);
}
for (const [name, p] of Object.entries(PARTIES))
  say(`gateway http: ${name} ready after ${p.at.ms.toFixed(0)} ms, idle ${p.idle.toFixed(1)} MiB, ` +
    `after 32 sessions ${mib(p.at.pid).toFixed(1)} MiB${name === 'ours' ? ' (goals 5, 10)' : ''}`);
for (const p of Object.values(all)) await p.at.stop();

// --- stdio in front of one child
const stdio = await inTurns({
  ours: [program, 'gateway', '--config', one],
  direct: [fixture],
}, TURNS, (command) => run('load_mcp', ['stdio', 500, 10_000, ...command]));
say(`gateway stdio: p50 us ours ${us(p50(stdio.ours))}, direct ${us(p50(stdio.direct))} (goal 30)`);

// --- fifty servers: from the start to the list, lists kept from an earlier run
const first = async () => {
  const got = await run('load_mcp', ['list', program, 'gateway', '--config', fifty]);
  return got.ns;
};
await first(); // reads them once
say(`gateway stdio, 50 servers: start to tools/list ` +
  `${(median([await first(), await first(), await first()]) / 1e6).toFixed(1)} ms (goal 5)`);
