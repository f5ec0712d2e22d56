// The store while masters of a Redis Cluster of six die, one after the other:
// every acknowledged write is there afterwards.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { freePort, missing, redis, store, until } from '../lib/redis.mjs';
import { check, writer } from '../lib/redis_writer.mjs';

async function six(t) {
  const nodes = [];
  while (nodes.length < 6) {
    const port = await freePort();
    if (port >= 50_000) continue; // its bus has a port of its own, 10000 above
    const node = await redis({ port, args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', '5000', '--repl-diskless-sync-delay', '0'] });
    t.after(() => node.stop());
    nodes.push(node);
  }
  const made = spawnSync('redis-cli', ['--cluster', 'create', ...nodes.map((n) => `127.0.0.1:${n.port}`), '--cluster-replicas', '1', '--cluster-yes'], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stdout);
  const says = (n) => n.cli('INFO', 'replication');
  const whole = () => nodes.every((n) => /cluster_state:ok/.test(n.cli('CLUSTER', 'INFO')) &&
    (/role:master/.test(says(n)) ? /connected_slaves:1/ : /master_link_status:up/).test(says(n)));
  await until('the cluster is whole', whole);
  return { nodes, says, whole };
}

test('a cluster of six: masters die one after the other, the first of the URL too', { skip: missing }, async (t) => {
  const { nodes, says, whole } = await six(t);
  const url = `redis://${nodes.slice(0, 3).map((n) => `127.0.0.1:${n.port}`).join(',')}`;
  const s = await store(url, { deadline: 20_000, leaks: true, replicas: 1 });
  t.after(async () => assert.equal(await s.close(), 0));
  const w = writer(s, [...Array(12).keys()].map((i) => `c${i}`));
  await w.grows();
  for (const dead of nodes.slice(0, 2)) {
    const next = nodes.find((n) => says(n).includes(`master_port:${dead.port}`));
    await dead.kill();
    await until('its replica takes over', () => /role:master/.test(says(next)));
    await dead.start(); // until then the new master has no replica, and refuses
    await until('it is a replica now, and has all', () => /role:slave/.test(says(dead)) && whole());
    await w.grows();
  }
  await w.stop();
  await check(s, w);
});

test('several hosts that are no cluster are refused: they would be several stores', { skip: missing }, async (t) => {
  const [a, b] = [await redis(), await redis()];
  for (const server of [a, b]) t.after(() => server.stop());
  const s = await store(`redis://127.0.0.1:${a.port},127.0.0.1:${b.port}`, { deadline: 1000 });
  t.after(() => s.close());
  const got = await s.ask('session', 's');
  assert.equal(got.word, 'unavailable');
  assert.match(got.rest, /cluster support disabled/);
});
