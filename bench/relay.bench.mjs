// Two servers on one store: what it adds to an event that the conversation runs
// in the other one, and how long the conversation is away when that one is killed.
//
// A tab at each, in one session. `agent:cancel` without a turn is answered at
// once, so its round trip is the way of a message and of an event and little
// else. The two tabs take turns; half of the difference is one way. Then the server
// that runs the conversation gets SIGKILL: the time until the other one has
// answered an event of its tab.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws';

import { median, program, say } from './kit.mjs';

const { noNative } = await import('../tests/lib/sessions.mjs');
const now = () => Number(process.hrtime.bigint()) / 1e6;
const ROUNDS = 20, TRIPS = 200, GOAL = 0.15, KILLS = 10, KILL_GOAL = 3000;

const children = [];
process.on('exit', () => children.forEach((c) => c.kill('SIGKILL')));

async function serve(dir) {
  const child = spawn(program, ['serve', '--no-auth', '--port', '0', '--provider', 'demo'], {
    cwd: dir, stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: process.env.PATH, HOME: dir } });
  children.push(child);
  let port = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    port = Number(/is ready: https?:\/\/[^:]+:(\d+)\//.exec(line)?.[1] ?? 0);
    if (port) break;
  }
  while (!(await fetch(`http://127.0.0.1:${port}/readyz`)).ok) await sleep(20);
  return { child, port };
}

async function openTab(port) {
  const ws = new WebSocket(`ws://127.0.0.1:${port}/socket.io/?EIO=4&transport=websocket&sessionId=relay`,
    { perMessageDeflate: false });
  const tab = { ws };
  ws.on('message', (data) => {
    const text = data.toString('latin1');
    if (text === '2') ws.send('3');
    else if (tab.done && text.startsWith(tab.head)) tab.done(text);
  });
  const next = (head) => new Promise((done) => Object.assign(tab, { head, done }));
  tab.trip = async () => {
    const answered = next('430');
    const began = now();
    ws.send('420["agent:cancel"]');
    tab.said = await answered;
    return now() - began;
  };
  await once(ws, 'open');
  const ready = next('42["session:history"');
  ws.send('40');
  await ready;
  return tab;
}

/** ms from SIGKILL of the server that has the conversation to an answer of the other. */
async function takeover(dir) {
  const servers = [await serve(dir), await serve(dir)];
  const [, tab] = [await openTab(servers[0].port), await openTab(servers[1].port)];
  await tab.trip();
  const began = now();
  servers[0].child.kill('SIGKILL');
  do await tab.trip(); while (!/"ok":true/.test(tab.said));
  const took = now() - began;
  tab.ws.terminate();
  const gone = once(servers[1].child, 'exit');
  servers[1].child.kill('SIGTERM');
  await gone;
  return took;
}

if (noNative) {
  say(`  needs ${noNative}`);
} else {
  const dir = mkdtempSync(join(tmpdir(), 'mo-relay-'));
  writeFileSync(join(dir, 'mcp-orchestrator.json'), JSON.stringify({ sandbox: { driver: 'native', warm: 0 } }));
  const servers = [await serve(dir), await serve(dir)];
  try {
    const tabs = [await openTab(servers[0].port), await openTab(servers[1].port)];
    const got = [[], []];
    for (let r = 0; r < ROUNDS; r++)
      for (const i of r % 2 ? [1, 0] : [0, 1]) {
        const trips = [];
        for (let k = 0; k < TRIPS; k++) trips.push(await tabs[i].trip());
        got[i].push(median(trips));
      }
    const over = median(got[1].map((v, i) => v - got[0][i])) / 2;
    say(`  round trip: here p50 ${median(got[0]).toFixed(3)} ms, relayed ${median(got[1]).toFixed(3)} ms; ` +
      `one way over it ${over.toFixed(3)} ms (goal ${GOAL})`);
    for (const t of tabs) t.ws.terminate();
  } finally {
    for (const { child } of servers) {
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await gone;
    }
  }
  try {
    const took = [];
    for (let i = 0; i < KILLS; i++) took.push(await takeover(dir));
    say(`  after SIGKILL: p50 ${median(took).toFixed(0)} ms, longest ${Math.max(...took).toFixed(0)} ms (goal ${KILL_GOAL})`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
