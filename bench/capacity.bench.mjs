// The cost of a session, a tab and a turn in one server with its state in Redis:
// memory of server, box and Redis, CPU of server and Redis, commands of Redis.
// docs/capacity.md calculates from these figures.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws';

import { program, say } from './kit.mjs';

const { noNative } = await import('../tests/lib/sessions.mjs');
const { missing: noRedis, redis } = await import('../tests/lib/redis.mjs');
const SESSIONS = Number(process.env.MO_SESSIONS ?? 500), TURNS = 4, IDLE_S = 20;
const HZ = 100; // clock ticks in /proc/PID/stat

const read = (path) => {
  try { return readFileSync(path, 'utf8'); } catch { return ''; }
};
const cpuMs = (pid) => {
  const v = read(`/proc/${pid}/stat`).split(') ')[1].split(' ');
  return (Number(v[11]) + Number(v[12])) * 1000 / HZ;
};
const kb = (text, key) => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
const rssKb = (pid) => kb(read(`/proc/${pid}/status`), 'VmRSS');

/** Memory that is in use only because of boxes, KB: theirs alone or shared among
 *  them, each page once. */
function boxesKb() {
  let sum = 0;
  for (const pid of readdirSync('/proc').filter((p) => /^\d+$/.test(p)))
    if (/^(\S*\/)?mo-(box|toolbox)/.test(read(`/proc/${pid}/cmdline`))) sum += kb(read(`/proc/${pid}/smaps_rollup`), 'Pss');
  return sum;
}

async function serve(dir) {
  const child = spawn(program, ['serve', '--no-auth', '--port', '0', '--provider', 'demo'], {
    cwd: dir, stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: process.env.PATH, HOME: dir } });
  process.on('exit', () => child.kill('SIGKILL'));
  for await (const line of createInterface({ input: child.stdout })) {
    const port = Number(/is ready: https?:\/\/[^:]+:(\d+)\//.exec(line)?.[1] ?? 0);
    if (!port) continue;
    while (!(await fetch(`http://127.0.0.1:${port}/readyz`)).ok) await sleep(20);
    return { child, port };
  }
  throw new Error('it is not ready');
}

async function openTab(port, id) {
  const ws = new WebSocket(`ws://127.0.0.1:${port}/socket.io/?EIO=4&transport=websocket&sessionId=${id}`, { perMessageDeflate: false });
  const tab = { ws };
  const next = (head) => new Promise((done) => Object.assign(tab, { head, done }));
  ws.on('message', (data) => {
    const text = data.toString('latin1');
    if (text === '2') ws.send('3');
    else if (tab.done && text.startsWith(tab.head)) tab.done();
  });
  tab.turn = async () => {
    const answered = next('42["agent:response"');
    ws.send('420["message","hello"]');
    await answered;
  };
  await once(ws, 'open');
  const ready = next('42["session:history"');
  ws.send('40');
  await ready;
  return tab;
}

/** In lots of 20. */
async function each(n, what) {
  const made = [];
  for (let i = 0; i < n; i += 20)
    made.push(...(await Promise.all([...Array(Math.min(20, n - i)).keys()].map((k) => what(i + k)))));
  return made;
}

function look(server, store) {
  const info = store.cli('INFO');
  const number = (key) => Number(new RegExp(`^${key}:(\\d+)`, 'm').exec(info)[1]);
  return {
    server: rssKb(server.child.pid), boxes: boxesKb(), redis: number('used_memory') / 1024,
    commands: number('total_commands_processed'), cpu: cpuMs(server.child.pid), redisCpu: cpuMs(store.child.pid),
  };
}

async function measure(server, store) {
  const at = [look(server, store)];
  const per = (a, b, key, n) => (at[b][key] - at[a][key]) / n;
  const tabs = await each(SESSIONS, (i) => openTab(server.port, `cap-${i}`));
  at.push(look(server, store));
  say(`  a session with its box and a tab, of ${SESSIONS}: server ${per(0, 1, 'server', SESSIONS).toFixed(1)} KB, ` +
    `box ${per(0, 1, 'boxes', SESSIONS).toFixed(0)} KB, Redis ${per(0, 1, 'redis', SESSIONS).toFixed(1)} KB; ` +
    `CPU ${per(0, 1, 'cpu', SESSIONS).toFixed(2)} ms, Redis ${per(0, 1, 'redisCpu', SESSIONS).toFixed(2)} ms`);
  const more = await each(SESSIONS, (i) => openTab(server.port, `cap-${i}`));
  at.push(look(server, store));
  say(`  a further tab: server ${per(1, 2, 'server', SESSIONS).toFixed(1)} KB`);
  await sleep(IDLE_S * 1000);
  at.push(look(server, store));
  const idle = SESSIONS * IDLE_S;
  say(`  an idle session: Redis ${per(2, 3, 'commands', idle).toFixed(3)} commands a second, ` +
    `CPU ${(per(2, 3, 'cpu', idle) * 1000).toFixed(1)} us a second, Redis ${(per(2, 3, 'redisCpu', idle) * 1000).toFixed(1)} us`);
  for (let t = 0; t < TURNS; t++) await each(SESSIONS, (i) => tabs[i].turn());
  at.push(look(server, store));
  const turns = SESSIONS * TURNS;
  say(`  a turn: CPU ${per(3, 4, 'cpu', turns).toFixed(3)} ms, Redis ${per(3, 4, 'redisCpu', turns).toFixed(3)} ms and ` +
    `${per(3, 4, 'commands', turns).toFixed(1)} commands; stored ${per(3, 4, 'redis', turns).toFixed(2)} KB`);
  for (const t of [...tabs, ...more]) t.ws.terminate();
}

if (noNative || noRedis) {
  say(`  needs ${noNative || noRedis}`);
} else {
  const dir = mkdtempSync(join(tmpdir(), 'mo-capacity-'));
  const store = await redis();
  writeFileSync(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    sandbox: { driver: 'native', warm: 0 }, store: { url: `redis://127.0.0.1:${store.port}/0` },
  }));
  const server = await serve(dir);
  try {
    await measure(server, store);
  } finally {
    const gone = once(server.child, 'exit');
    server.child.kill('SIGTERM');
    await gone;
    await store.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}
