// mcp.bench.mjs - tools/call of `echo` on our fixture, on server-everything and
// on a bare echo of the request: CPU time a call costs the server, the time a
// single caller waits, and what a session that is left keeps in memory.
import { fileURLToPath } from 'node:url';
import {
  against,
  inTurns,
  median,
  native,
  node,
  ratio,
  run,
  say,
  start,
} from './kit.mjs';

const TURNS = 5;
const everything = fileURLToPath(
  import.meta.resolve(
    '../tests/node_modules/@modelcontextprotocol/server-everything/dist/index.js',
  ),
);
const us = (list) => (median(list) / 1000).toFixed(1);
const cpu = (list) => list.map((got) => got.cpu_ns / got.ops);
const p50 = (list) => list.map((got) => got.p50_ns);

function compare(what, figures) {
  const line = (pick) =>
    Object.entries(figures)
      .map(([name, list]) => `${name} ${us(pick(list))}`)
      .join(', ');
  say(`${what}: CPU us/call ${line(cpu)}`);
  say(`${what}: p50 us ${line(p50)}`);
}

// --- stdio: a fresh child each time, warmed up

const ON_STDIO = {
  ours: { command: native('mcp_fixture'), warm: 1000, calls: 20_000 },
  floor: { command: native('floor_stdio'), warm: 1000, calls: 20_000 },
  'blocking read': {
    command: [...native('floor_stdio'), 'read'],
    warm: 1000,
    calls: 20_000,
  },
  everything: {
    command: [process.execPath, everything, 'stdio'],
    warm: 3000,
    calls: 3000,
  },
};
const stdio = await inTurns(ON_STDIO, TURNS, (p) =>
  run('load_mcp', ['stdio', p.warm, p.calls, ...p.command]),
);
compare('mcp stdio', stdio);
say(
  `mcp stdio: CPU ratio to server-everything ` +
    `${ratio(cpu(stdio.ours), cpu(stdio.everything)).toFixed(3)}`,
);
against('mcp stdio p50', 'floor', p50(stdio.ours), p50(stdio.floor), 2);

// --- http: servers that stay up, a session for each connection

const ON_HTTP = {
  ours: { command: [...native('mcp_fixture'), '--http', '0'], warm: 1000, calls: 20_000 },
  floor: { command: native('floor_http'), warm: 1000, calls: 20_000 },
  everything: { command: node('peer_mcp.mjs'), warm: 100, calls: 1000 },
};
for (const p of Object.values(ON_HTTP)) {
  p.at = await start(p.command);
  await run('load_mcp', ['http', p.at.port, p.at.pid, 8, 1, 2 * p.calls]);
}
for (const connections of [32, 1]) {
  const figures = await inTurns(ON_HTTP, TURNS, (p) =>
    run('load_mcp', ['http', p.at.port, p.at.pid, connections, p.warm, p.calls]),
  );
  const what = `mcp http, ${connections} connection${connections > 1 ? 's' : ''}`;
  compare(what, figures);
  say(
    `${what}: CPU ratio to server-everything ` +
      `${ratio(cpu(figures.ours), cpu(figures.everything)).toFixed(3)} ` +
      `(goal <= 0.05)`,
  );
  if (connections === 1)
    against(`${what} p50`, 'floor', p50(figures.ours), p50(figures.floor), 2);
}
for (const p of Object.values(ON_HTTP)) await p.at.stop();

// --- sessions: fresh servers

const SESSIONS = { ours: 4000, everything: 300 };
for (const [name, count] of Object.entries(SESSIONS)) {
  const at = await start(ON_HTTP[name].command);
  const got = await run('load_mcp', ['sessions', at.port, at.pid, count]);
  await at.stop();
  const each = (got.rss - got.rss0) / count / 1024;
  say(
    `mcp http, ${count} sessions left: ${name} ${each.toFixed(2)} KB each` +
      (name === 'ours' ? ' (goal <= 4)' : ''),
  );
}
