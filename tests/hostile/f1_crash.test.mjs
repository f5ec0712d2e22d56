// F1: SIGKILL of the server at random points under load, again and again.
//
// The oracle is outside: sockets, keepers, cgroups and mounts of native boxes
// against the sessions in the store. Whatever was acknowledged must be there:
// every message, every line in a file, every box of a session that was once
// ready. MO_KILLS is how often (nightly: 200), MO_SEED repeats a run.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { Home, noNative, sleep } from '../lib/sessions.mjs';

const KILLS = Number(process.env.MO_KILLS ?? 52);
const LOOK_EVERY = 13;
const SESSIONS = 6;
const seed = Number(process.env.MO_SEED ?? Math.floor(Math.random() * 2 ** 31));

const sqlite = ['/usr/bin/sqlite3', '/usr/local/bin/sqlite3'].find(existsSync);
const lacks = noNative || (sqlite ? false : 'the program sqlite3');
const skip = lacks ? `needs ${lacks}` : false;

let state = seed;
const random = (n) => {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return (state >>> 8) % n;
};

const home = new Home({ warm: 2 });
after(() => home.removeAll());

// What the outside was told and may rely on.
const known = new Map(); // session -> { ready, acked: [..], lines: [..] }
const memory = (id) => {
  if (!known.has(id)) known.set(id, { ready: false, acked: [], lines: [] });
  return known.get(id);
};
let count = 0;

/** One user of one session until the server dies. */
async function work(server, id, k) {
  const m = memory(id);
  const h = `${id}.${k}`;
  try {
    for (;;) {
      const ready = await server.hold(h, id);
      if (m.ready) assert.equal(ready.workspace, 'kept', `${id} had files (seed ${seed})`);
      m.ready = true;
      for (let i = random(4); i >= 0; i--) {
        const n = ++count;
        const line = server.sh(h, `echo ${n} >> log`).then(() => m.lines.push(n));
        await Promise.all([line, server.append(h, { n }).then(() => m.acked.push(n))]);
      }
      if (random(3) === 0) {
        known.delete(id); // from now on nobody can say
        server.tell('end', { session: id });
        await server.next((e) => e.ev === 'closed' && e.h === h);
        return;
      }
      server.tell('release', { h });
    }
  } catch (e) {
    if (e instanceof assert.AssertionError || !/the server has ended/.test(e.message)) throw e;
  }
}

async function crash(kill) {
  const server = await home.server();
  const users = [];
  for (let i = 0; i < SESSIONS; i++) users.push(work(server, `s${i}`, kill));
  await sleep(random(350));
  await server.kill();
  await Promise.all(users);
}

const rowsOf = (sql) =>
  execFileSync(sqlite, ['-readonly', join(home.dir, 'mcp-orchestrator.db'), sql]).toString().trim();

/** All is as it should be, soon after a new server has begun. */
async function look() {
  const began = Date.now();
  const server = await home.server();
  const opened = Date.now();
  let left;
  do {
    await server.sweep();
    const { warm } = await server.stats();
    const boxes = home.sessions().map((s) => s.box);
    left = home.remains(boxes);
    const mine = left.filter((l) => l.startsWith('socket')).map((l) => l.split(' ')[1]);
    if (mine.length === warm) left = left.filter((l) => !mine.some((id) => l.includes(id)));
    if (left.length) await sleep(50);
  } while (left.length && Date.now() - began < 60_000);
  assert.deepEqual(left, [], `orphans (seed ${seed})`);
  const took = Date.now() - opened;

  assert.equal(rowsOf('PRAGMA integrity_check'), 'ok');
  for (const [id, m] of known) {
    const kept = new Set(rowsOf(`SELECT doc FROM entry WHERE session = '${id}'`).split('\n')
      .filter(Boolean).map((d) => JSON.parse(d).n));
    for (const n of m.acked) assert.ok(kept.has(n), `${id}: message ${n} (seed ${seed})`);
    if (!m.ready) continue;
    const { workspace } = await server.hold('look', id);
    assert.equal(workspace, 'kept', `${id} (seed ${seed})`);
    const lines = new Set((await server.sh('look', 'cat log || true')).split('\n').map(Number));
    for (const n of m.lines) assert.ok(lines.has(n), `${id}: line ${n} (seed ${seed})`);
    server.tell('release', { h: 'look' });
  }
  await server.kill();
  return took;
}

test(`${KILLS} SIGKILLs under load`, { skip, timeout: 170_000 }, async (t) => {
  let longest = 0;
  t.diagnostic(`seed ${seed}`);
  await (await home.server()).kill();
  home.watch();
  for (let i = 1; i <= KILLS; i++) {
    await crash(i);
    if (i % LOOK_EVERY === 0) longest = Math.max(longest, await look());
  }
  t.diagnostic(`${count} writes begun, orphans gone after at most ${longest} ms`);

  // With the last session everything goes.
  const server = await home.server();
  for (const { id } of home.sessions()) {
    server.tell('end', { session: id });
    const { why } = await server.next((e) => e.ev === 'ended' && e.session === id);
    assert.equal(why, null);
  }
  await server.close();
  assert.deepEqual(home.remains(), []);
});
