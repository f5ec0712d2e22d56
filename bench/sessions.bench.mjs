// Sessions: from "I want one" to a box whose MCP server has answered.
//
// The server is tests/it/session_driver.c in release: store (SQLite, durable),
// lease, box, connection, row; nothing is left out. Docker is measured where
// dockerd can be started, beside the least its API can do.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

process.env.MO_SESSION_DRIVER = `${process.env.MO_BUILD}/bench/session_driver`;
const { dockerd, noDocker } = await import('../tests/lib/dockerd.mjs');
const { Home, noNative } = await import('../tests/lib/sessions.mjs');
const { House } = await import('../tests/it/talk_kit.mjs');

const at = (v, q) => v[Math.min(v.length - 1, Math.floor(v.length * q))];
const ms = (us) => (us / 1000).toFixed(us < 10_000 ? 2 : 0);
function say(what, us, goal) {
  const v = [...us].sort((a, b) => a - b);
  console.log(`  ${what.padEnd(34)} p50 ${ms(at(v, 0.5)).padStart(6)} ms  p95 ${
    ms(at(v, 0.95)).padStart(6)} ms   ${goal}`);
  return at(v, 0.5);
}

async function end(server, id) {
  server.tell('end', { session: id });
  await server.next((e) => e.ev === 'ended' && e.session === id);
}

/** Acquire and end, one after the other. */
async function acquires(opts, n) {
  const home = new Home(opts);
  const us = [];
  try {
    const server = await home.server();
    for (let i = 0; i < n + 2; i++) {
      while (opts.warm && (await server.stats()).warm < opts.warm) await sleep(5);
      const ready = await server.hold(`h${i}`, `s${i}`);
      if (i >= 2) us.push(ready.us);
      await end(server, `s${i}`);
    }
    await server.close();
  } finally {
    home.removeAll();
  }
  return us;
}

/** n of them at once: how long until the last is ready. */
async function atOnce(opts, n, rounds) {
  const home = new Home(opts);
  const us = [];
  try {
    const server = await home.server();
    for (let r = 0; r < rounds; r++) {
      const began = process.hrtime.bigint();
      const all = [...Array(n).keys()].map((i) => `s${r}-${i}`);
      await Promise.all(all.map((id) => server.hold(id, id)));
      us.push(Number(process.hrtime.bigint() - began) / 1000);
      await Promise.all(all.map((id) => end(server, id)));
    }
    await server.close();
  } finally {
    home.removeAll();
  }
  return us;
}

/** A reload of the page: the only tab closes, and its session is opened again
 *  at once over `serve` and the published Socket.IO client. */
async function reopens(n) {
  const us = { cold: [], again: [] };
  const house = await House.start();
  const open = async (session, to) => {
    const began = process.hrtime.bigint();
    const tab = house.tab({ session });
    await tab.ready();
    to.push(Number(process.hrtime.bigint() - began) / 1000);
    return tab;
  };
  try {
    for (let i = 0; i < n; i++) {
      let tab = await open(`reload-${i}`, us.cold);
      tab.close();
      tab = await open(`reload-${i}`, us.again);
      tab.close();
    }
  } finally {
    await house.stop();
  }
  return us;
}

async function memory(n) {
  const home = new Home();
  const rss = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
  try {
    const server = await home.server();
    await server.hold('first', 'first');
    const before = rss(server.child.pid);
    await Promise.all([...Array(n).keys()].map((i) => server.hold(`h${i}`, `s${i}`)));
    const after = rss(server.child.pid);
    console.log(`  ${`memory of a session, of ${n}`.padEnd(34)} ${
      ((after - before) / n).toFixed(1)} KB   goal 120 KB`);
    for (let i = 0; i < n; i++) server.tell('end', { session: `s${i}` });
    await server.close();
  } finally {
    home.removeAll();
  }
}

// --- Docker's own price ---------------------------------------------------------

const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {
  protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'b', version: '1' } } };

/** create, attach, start, initialize by hand; then remove. */
async function floor(engine, image) {
  const began = process.hrtime.bigint();
  const { json } = await engine.api('POST', '/containers/create', {
    Image: image, OpenStdin: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
    NetworkDisabled: true, HostConfig: { NetworkMode: 'none', LogConfig: { Type: 'none' } },
  });
  const socket = await new Promise((resolve, reject) => {
    http.request({ socketPath: engine.sock, method: 'POST',
      path: `/containers/${json.Id}/attach?stream=1&stdin=1&stdout=1&stderr=1`,
      headers: { Connection: 'Upgrade', Upgrade: 'tcp' } })
      .on('upgrade', (_, s) => resolve(s)).on('error', reject).end();
  });
  await engine.api('POST', `/containers/${json.Id}/start`);
  socket.write(`${JSON.stringify(hello)}\n`);
  await new Promise((resolve) => socket.once('data', resolve));
  const us = Number(process.hrtime.bigint() - began) / 1000;
  socket.destroy();
  await engine.api('DELETE', `/containers/${json.Id}?force=1&v=1`);
  return us;
}

/** What people type: `docker run`, to the first answer. */
async function byHand(engine, image) {
  const began = process.hrtime.bigint();
  const child = spawn('docker', ['-H', engine.host, 'run', '-i', '--rm', '--network', 'none', image],
    { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.write(`${JSON.stringify(hello)}\n`);
  await once(child.stdout, 'data');
  const us = Number(process.hrtime.bigint() - began) / 1000;
  child.stdin.end();
  await once(child, 'exit');
  return us;
}

if (noNative) {
  console.log(`  native: needs ${noNative}`);
} else {
  say('native, cold', await acquires({ warm: 0 }, 60), 'goal 8 ms');
  say('native, warm', await acquires({ warm: 4 }, 60), 'goal 2 ms');
  say('native, 20 at once', await atOnce({ warm: 0 }, 20, 7), 'goal 300 ms');
  const reopened = await reopens(40);
  say('a new session, Socket.IO', reopened.cold, '');
  say('reopening a session, Socket.IO', reopened.again, 'goal 15 ms');
  await memory(200);
}

if (noDocker) {
  console.log(`  docker: needs ${noDocker}`);
} else {
  const engine = await dockerd();
  const docker = { driver: 'docker', engine: engine.host };
  try {
    const cold = await acquires({ ...docker, warm: 0 }, 12);
    const [image] = (await engine.api('GET', '/images/json')).json;
    const floors = [];
    for (let i = 0; i < 12; i++) floors.push(await floor(engine, image.Id));
    const ours = say('docker, cold', cold, 'goal 1.1 of the floor');
    const least = say('docker, floor of its API', floors, '');
    console.log(`  ${'docker, cold to the floor'.padEnd(34)} ${(ours / least).toFixed(2)}   goal 1.1`);
    const typed = [];
    for (let i = 0; i < 8; i++) typed.push(await byHand(engine, image.Id));
    say('docker run', typed, '');
    say('docker, warm', await acquires({ ...docker, warm: 3 }, 12), 'goal 15 ms');
    say('docker, 20 at once', await atOnce({ ...docker, warm: 0 }, 20, 3), 'goal 3 s');
  } finally {
    engine.cleanUp();
  }
}
