// gateway.bench.mjs - one stdio child behind a gateway: ours (serve at /mcp, and
// gateway on stdio), npm's mcp-proxy, supergateway and mcp-hub, next to the same
// child spoken to directly. CPU time a call costs the gateway, the time a caller
// waits, calls a second with 32 sessions, memory, and results of 2 MB; and the
// part of a call that proves who calls and puts it on record.
//
// mcp-hub only speaks HTTP+SSE, the transport before the others', and is loaded
// by a client of that kind (load_sse).
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  inTurns, median, mib, native, npm, OldClient, program, ratio, run, say, start, startAt, TOKEN,
} from './kit.mjs';

const TURNS = 3;
const BIG = 2_000_000;
const [fixture] = native('mcp_fixture');
const us = (list) => (median(list) / 1000).toFixed(1);
const cpu = (list) => list.map((got) => got.cpu_ns / got.ops);
const p50 = (list) => list.map((got) => got.p50_ns);
const rate = (list) => list.map((got) => got.ops / (got.wall_ns / 1e9));

const dir = mkdtempSync(join(tmpdir(), 'mo-bench-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const write = (name, value) => {
  const file = join(dir, name);
  writeFileSync(file, JSON.stringify(value));
  return file;
};
const one = write('one.json', {
  mcpServers: { s: { command: fixture, toolPrefix: '' } },
  sandbox: { driver: 'none' },
});
const hub = write('hub.json', { mcpServers: { s: { command: fixture, args: [] } } });
const env = {
  MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state'), MCP_ORCHESTRATOR_TOKEN: TOKEN,
  HOME: dir, XDG_DATA_HOME: dir, XDG_STATE_HOME: dir, XDG_CONFIG_HOME: dir,
};
const big = { arguments: JSON.stringify({ bytes: BIG }), want: '"text":"' };

const overHttp = (p, n, warm, calls, what = {}) =>
  run('load_mcp', [...options({ tool: 'echo', ...what }), 'http', p.at.port, p.at.pid, n, warm, calls]);
const overSse = (p, n, warm, calls, what = {}) =>
  run('load_sse', [...options({ ...what, tool: `s__${what.tool ?? 'echo'}` }), '/mcp', p.at.port,
    p.at.pid, n, warm, calls]);
const options = (what) => Object.entries(what).flatMap(([k, v]) => [`--${k}`, v]);

const PARTIES = {
  ours: { command: [program, 'serve', '--port', 'PORT', '--config', one], load: overHttp, calls: 20_000 },
  'mcp-proxy': {
    command: [...npm('mcp-proxy/dist/bin/mcp-proxy.mjs'), '--host', '127.0.0.1',
      '--port', 'PORT', '--server', 'stream', '--', fixture],
    load: overHttp, calls: 1000,
  },
  supergateway: {
    command: [...npm('supergateway/dist/index.js'), '--stdio', fixture,
      '--outputTransport', 'streamableHttp', '--stateful', '--port', 'PORT', '--logLevel', 'none'],
    load: overHttp, calls: 1000,
  },
  'mcp-hub': {
    command: [...npm('mcp-hub/dist/cli.js'), '--port', 'PORT', '--config', hub],
    load: overSse, calls: 1000,
    ready: (p) => OldClient.tools(p.at.port, '/mcp', 1),
  },
};
const PEERS = Object.keys(PARTIES).slice(1);
const line = (got, pick) => Object.entries(got).map(([name, list]) => `${name} ${pick(list)}`).join(', ');
const against = (what, got, parts) => {
  for (const name of PEERS)
    say(`${what}: ours to ${name}: ` + Object.entries(parts)
      .map(([part, pick]) => `${part} ${ratio(pick(got.ours), pick(got[name])).toFixed(3)}`).join(', '));
};

// --- HTTP in front of one child
const direct = { at: await start([fixture, '--http', '0']), load: overHttp, calls: 20_000 };
for (const p of Object.values(PARTIES)) {
  p.at = await startAt(p.command, env);
  await p.ready?.(p);
  p.idle = mib(p.at.pid);
  await p.load(p, 1, 1, p.calls);
}
for (const connections of [1, 32]) {
  const got = await inTurns({ direct, ...PARTIES }, TURNS, (p) => p.load(p, connections, 100, p.calls));
  const what = `gateway http, ${connections} session${connections > 1 ? 's' : ''}`;
  say(`${what}: p50 us ${line(got, (l) => us(p50(l)))}${connections === 1 ? ' (goal 50)' : ''}`);
  say(`${what}: CPU us/call ${line(got, (l) => us(cpu(l)))} (goal 20)`);
  say(`${what}: calls/s ${line(got, (l) => median(rate(l)).toFixed(0))}${connections > 1 ? ' (goal 40000)' : ''}`);
  against(what, got, { p50, CPU: cpu, 'calls/s': rate });
}
for (const [name, p] of Object.entries(PARTIES))
  say(`gateway http: ${name} ready after ${p.at.ms.toFixed(0)} ms, idle ${p.idle.toFixed(1)} MiB, ` +
    `after 32 sessions ${mib(p.at.pid).toFixed(1)} MiB${name === 'ours' ? ' (goals 5, 10)' : ''}`);

// --- results of 2 MB: bytes a second of CPU time
{
  const got = await inTurns({ direct, ...PARTIES }, TURNS, (p) =>
    p.load(p, 1, 2, p.calls / 100, { tool: 'big', ...big }));
  const speed = (list) => cpu(list).map((ns) => (BIG / ns) * 1000);
  say(`gateway http, 2 MB results: MB/s of CPU time ${line(got, (l) => median(speed(l)).toFixed(0))} (goal 300)`);
  say(`gateway http, 2 MB results: p50 ms ${line(got, (l) => (median(p50(l)) / 1e6).toFixed(2))}`);
  against('gateway http, 2 MB results', got, { CPU: cpu, p50 });
  say(`gateway http, 2 MB results: ours then ${mib(PARTIES.ours.at.pid).toFixed(1)} MiB`);
}
for (const p of [direct, ...Object.values(PARTIES)]) await p.at.stop();

// --- a token, and the record that a call leaves before it is sent
{
  const serve = (name, ...more) => startAt([program, 'serve', '--port', 'PORT', '--config', one, ...more],
    { ...env, MCP_ORCHESTRATOR_STATE_DIR: join(dir, name) });
  const got = {};
  for (const sessions of [1, 32]) {
    const doors = { token: { at: await serve('token') }, open: { at: await serve('open', '--no-auth') } };
    got[sessions] = await inTurns(doors, 2 * TURNS, (p) => overHttp(p, sessions, 500, 20_000));
    for (const p of Object.values(doors)) await p.at.stop();
  }
  const rows = await inTurns({ before: 'before', after: 'after' }, 2 * TURNS, (when) => {
    const state = mkdtempSync(join(dir, 'record-'));
    return run('record', [when, state, 20_000]);
  });
  const over = (a, b, pick) => median(pick(a).map((v, i) => v - pick(b)[i])) / 1000;
  const record = { cpu: over(rows.before, rows.after, cpu), p50: over(rows.before, rows.after, p50) };
  for (const [sessions, { token, open }] of Object.entries(got)) {
    const door = { cpu: over(token, open, cpu), p50: over(token, open, p50) };
    const part = (k) => `${door[k].toFixed(1)} + ${record[k].toFixed(1)} = ${(door[k] + record[k]).toFixed(1)}`;
    say(`gateway http, ${sessions} session${sessions > 1 ? 's' : ''}: token + record before the call: ` +
      `CPU us ${part('cpu')} (goal 5)` + (sessions > 1 ? '' : `, p50 us ${part('p50')} (goal 10)`));
  }
}

// --- stdio in front of one child
const stdio = await inTurns({
  ours: [program, 'gateway', '--config', one],
  direct: [fixture],
}, TURNS, (command) => run('load_mcp', ['stdio', 500, 10_000, ...command], env));
say(`gateway stdio: p50 us ours ${us(p50(stdio.ours))}, direct ${us(p50(stdio.direct))} (goal 30)`);
say(`gateway stdio: CPU us/call ours ${us(cpu(stdio.ours))}, direct ${us(cpu(stdio.direct))}`);
