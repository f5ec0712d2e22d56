// Ten thousand calls while servers come, go and change: none is lost, none is
// wrong.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Place, below, fixtureServer, isAlive } from '../lib/gateway.mjs';

const CALLS = 10_000;
const AT_ONCE = 48;
const RELOADS = 24;
const STUCK_MS = 60_000;

/** A client that counts: every id has to be answered exactly once. */
class Wire {
  constructor(child) {
    this.child = child;
    this.open = new Map();
    this.id = 0;
    this.strays = [];
    createInterface({ input: child.stdout }).on('line', (line) => this.hear(JSON.parse(line)));
  }

  hear(m) {
    if (m.id === undefined) return;
    const done = this.open.get(m.id);
    this.open.delete(m.id);
    if (done) done(m);
    else this.strays.push(m);
  }

  ask(method, params) {
    const id = ++this.id;
    this.child.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\n');
    return new Promise((resolve) => this.open.set(id, resolve));
  }
}

test('reload under load', async (t) => {
  // One stays as it is, one is another at every turn, one comes and goes.
  const servers = (turn) => ({
    stays: fixtureServer(),
    changes: fixtureServer({ instances: 1 + (turn % 2), idleSeconds: 300 + turn }),
    ...(turn % 3 !== 1 && { comes: fixtureServer() }),
    ...(turn % 4 === 2 && { [`new${turn}`]: fixtureServer() }),
  });
  const more = { gateway: { prefix: 'always' } };
  const place = new Place(servers(0), more);
  t.after(() => place.close());
  place.legacy(fixtureServer());
  const { command, args, env } = place.command();
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const end = once(child, 'exit');
  const wire = new Wire(child);
  await wire.ask('initialize', {
    protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' },
  });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  await wire.ask('tools/list', {});

  const names = ['stays', 'changes', 'stays', 'changes', 'comes'];
  const wrong = [];
  let next = 0, answered = 0, absent = 0, reloads = 0, last = Date.now();
  const one = async (i) => {
    const server = names[i % names.length];
    const message = `m${i}`;
    const m = await wire.ask('tools/call', { name: `${server}_echo`, arguments: { message } });
    const said = m.result?.content?.[0]?.text;
    const gone = /no such tool|not offered any more/.test(m.error?.message ?? '');
    answered++;
    last = Date.now();
    if (server === 'comes' && gone) absent++;
    else if (said !== message) wrong.push(`${server} ${message}: ${JSON.stringify(m.error ?? m.result)}`);
  };
  const worker = async () => { while (next < CALLS) await one(next++); };
  const all = Promise.all(Array.from({ length: AT_ONCE }, worker));
  const reload = async () => {
    for (let turn = 1; turn <= RELOADS || answered < CALLS; turn++) {
      // Spread over the calls, not over the time they take here.
      while (turn <= RELOADS && answered < (turn * CALLS) / (RELOADS + 2)) {
        assert.ok(Date.now() - last < STUCK_MS, `stuck at ${answered}, ${wire.open.size} open`);
        await sleep(2);
      }
      if (turn > RELOADS) break;
      place.write(servers(turn), more);
      child.kill('SIGHUP');
      reloads++;
    }
  };
  await reload();
  const stuck = setInterval(() => {
    if (Date.now() - last > STUCK_MS) child.kill('SIGKILL');
  }, 1000);
  await Promise.race([all, end]);
  clearInterval(stuck);
  assert.equal(answered, CALLS, `${wire.open.size} were lost`);
  assert.deepEqual(wrong, []);
  assert.deepEqual(wire.strays, [], 'no answer twice');
  assert.equal(reloads, RELOADS);
  assert.ok(absent < CALLS / 5);
  const children = below(child.pid);
  child.stdin.end();
  assert.deepEqual(await end, [0, null]);
  assert.deepEqual(children.filter(isAlive), []);
});
