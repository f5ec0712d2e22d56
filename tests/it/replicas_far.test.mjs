// Replicas on different machines: each has a directory of its own, their unix
// sockets are out of reach, and they meet at the cluster's port.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { freePort } from '../lib/port.mjs';
import { missing as noRedis } from '../lib/redis.mjs';
import { Replicas, bothHear, messages, told } from './replicas_kit.mjs';
import { until, within } from './server.mjs';
import { run } from './talk_kit.mjs';

const env = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };
const far = { store: 'redis', far: true };
const COUNT = run('echo ran >> ran; cat ran');

/** A number of /metrics. */
const outcome = (replica, word) => replica.server.metric(`mo_cluster_connections_total{outcome="${word}"}`, replica.headers);

async function with2(how, fn) {
  const all = await Replicas.start({ ...far, ...how });
  try {
    await fn(all);
  } finally {
    await all.stop();
  }
}

test('two tabs hear the same, and either may speak and approve', { skip: noRedis }, () => with2({}, async (all) => {
  const { here, there } = await all.pair();
  const from = await bothHear(all, here, there);

  all.model.script.push({ calls: [COUNT] }, { text: 'done' });
  await here.say('run it');
  const [card] = await there.event('tool:approval_required');
  const both = await Promise.all([
    there.decide(card, true, { digest: card.digest }),
    here.decide(card, true, { digest: card.digest }),
  ]);
  assert.deepEqual(both.map((a) => a.ok).sort(), [false, true], 'one of two decisions counts');
  const [out] = await there.event('tool:output');
  assert.equal(JSON.parse(out)[0].text.trim(), 'ran');
  await here.event('agent:response', 3);
  await there.event('agent:response', 3);
  assert.deepEqual(told(there, from[1]), told(here, from[0]));

  assert.ok(await outcome(all.v[0], 'accepted') > 0, 'through the port');
  assert.equal(await outcome(all.v[0], 'bad_key'), 0);
  assert.equal((await there.emit('session:close')).ok, true);
  for (const tab of [here, there]) assert.deepEqual(await tab.event('session:closed'), [{ reason: 'killed' }]);
}));

test('big events, and many messages at once', { skip: noRedis }, () => with2({ env }, async (all) => {
  const { here, there } = await all.pair();
  const from = [here.events.length, there.events.length];
  const big = 'ü'.repeat(40_000);
  all.model.script.push({ text: big }, ...Array.from({ length: 8 }, (_, i) => ({ text: `answer ${i}` })));
  assert.equal((await there.say('big')).ok, true);
  const [answer] = await there.event('agent:response', 1, 60_000);
  assert.ok(JSON.stringify(answer).includes(big));
  const said = await Promise.all(Array.from({ length: 8 }, (_, i) => there.socket.emitWithAck('message', `m${i}`)));
  assert.ok(said.every((a) => a.ok), JSON.stringify(said));
  await here.event('agent:response', 9, 60_000);
  await there.event('agent:response', 9, 60_000);
  assert.deepEqual(told(there, from[1]), told(here, from[0]));
}));

for (const signal of ['SIGTERM', 'SIGKILL'])
  test(`the holder ends by ${signal}, and a message is on its way`, { skip: noRedis }, () => with2({ env }, async (all) => {
    const { there } = await all.pair();
    all.model.next = () => ({ text: 'hello' });
    const said = ['one', 'two', 'three'].map((t) => there.socket.emitWithAck('message', t));
    all.v[0].server.signal(signal);
    for (const a of await within(Promise.all(said), 'the answers', 40_000)) assert.equal(a.ok, true, JSON.stringify(a));
    const roles = async (role) => (await messages(all.v[1], there.session)).filter((m) => m.role === role);
    await until(async () => (await roles('assistant')).length === 3, 'three answers', 40_000);
    assert.deepEqual((await roles('user')).map((m) => m.blocks[0].text), ['one', 'two', 'three'], 'each is there once');
    assert.equal(there.count('(disconnect)'), 0);
    await within(all.v[0].server.exit, 'its end', 30_000);
  }));

test('the holder sleeps for longer than its lease', { skip: noRedis }, () => with2({ env }, async (all) => {
  const { here, there } = await all.pair();
  all.model.next = () => ({ text: 'hello' });
  await all.v[0].server.signalAll('SIGSTOP');
  const said = there.socket.emitWithAck('message', 'one');
  await there.event('session:history', 2, 40_000);
  assert.equal((await within(said, 'the answer')).ok, true);
  await all.v[0].server.signalAll('SIGCONT');
  // The tab of the replica that slept is relayed to the other one now.
  await here.event('session:history', 2, 40_000);
  assert.equal((await here.say('two')).ok, true);
  await there.event('agent:response', 2);
  assert.equal((await messages(all.v[1], there.session)).filter((m) => m.role === 'user').length, 2);
}));

test('a replica with another key gets nothing, and both say why', { skip: noRedis }, () => with2({ env, keys: ['a'.repeat(40), 'b'.repeat(40)] }, async (all) => {
  const here = all.v[0].tab();
  await here.ready();
  const there = all.v[1].tab({ session: here.session });
  await until(async () => await outcome(all.v[0], 'bad_key') > 0, 'the refusal');
  assert.equal(await outcome(all.v[0], 'accepted'), 0);
  assert.ok(await outcome(all.v[1], 'failed') > 0);
  await until(() => /it has another key.*/.test(all.v[0].server.log), 'the log of the one that refused');
  assert.match(all.v[0].server.log, /give all servers the same cluster\.key/);
  await until(() => /do all servers have the same cluster\.key\?/.test(all.v[1].server.log), 'the log of the other');
  assert.ok(!all.v.some((r) => /aaaaaaaa|bbbbbbbb/.test(r.server.log)), 'no key in a log');
  assert.equal(there.count('session:history'), 0);
}));

/** A port whose next one is free, too. */
async function twoPorts() {
  for (;;) {
    const port = await freePort();
    if (await freePort() === port + 1) return port;
  }
}

test('two machines with two workers each: every worker has its port', { skip: noRedis }, async () => {
  const ports = [await twoPorts(), await twoPorts()];
  const cluster = (n) => ({ config: () => ({ cluster: { listen: `127.0.0.1:${ports[n]}`, key: 'w'.repeat(32) } }) });
  await with2({ env, args: ['--workers', '2'], own: [cluster(0), cluster(1)] }, async (all) => {
    for (const [n, r] of all.v.entries())
      for (const port of [ports[n], ports[n] + 1]) assert.match(r.server.log, new RegExp(`reach this one at 127\\.0\\.0\\.1:${port}`));
    const here = all.v[0].tab();
    await here.ready();
    const tabs = Array.from({ length: 6 }, (_, i) => all.v[i % 2].tab({ session: here.session }));
    for (const tab of tabs) await tab.ready();
    all.model.next = () => ({ text: 'hello' });
    for (const [i, tab] of tabs.entries()) {
      assert.equal((await tab.say(`from ${i}`)).ok, true);
      for (const t of [here, ...tabs]) await t.event('agent:response', i + 1);
    }
  });
});
