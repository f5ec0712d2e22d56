// The store while masters of a Redis Cluster of six die, one after the other:
// every acknowledged write is there afterwards.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { missing, redis, store, until } from '../lib/redis.mjs';
import { six } from '../lib/redis_cluster.mjs';
import { check, writer } from '../lib/redis_writer.mjs';

test('a cluster of six: masters die one after the other, the first of the URL too', { skip: missing }, async (t) => {
  const { nodes, url, failOver } = await six(t);
  const s = await store(url, { deadline: 20_000, leaks: true, replicas: 1 });
  t.after(async () => assert.equal(await s.close(), 0));
  const w = writer(s, [...Array(12).keys()].map((i) => `c${i}`));
  await w.grows();
  for (const dead of nodes.slice(0, 2)) {
    await failOver(dead);
    await w.grows();
  }
  await w.stop();
  await check(s, w);
});

/** Two servers, each of which takes itself for all of the cluster. */
async function twoWholes(t, ...args) {
  const nodes = [];
  while (nodes.length < 2) {
    const node = await redis({ args: ['--cluster-enabled', 'yes', ...args] });
    t.after(() => node.stop());
    node.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await until('the cluster is whole', () => /cluster_state:ok/.test(node.cli('CLUSTER', 'INFO')));
    nodes.push(node);
  }
  const s = await store(`redis://127.0.0.1:${nodes[0].port},127.0.0.1:${nodes[1].port}`, { deadline: 10_000 });
  t.after(() => s.close());
  assert.equal((await s.ask('session', 's')).word, 'ok');
  return { s, nodes };
}

test('a server that says that the cluster is down is left for another one', { skip: missing }, async (t) => {
  const { s, nodes: [old, next] } = await twoWholes(t);
  old.cli('CLUSTER', 'DELSLOTS', '0');
  assert.match((await s.ask('session', 's')).rest, /CLUSTERDOWN/);
  await until('the other one is used', async () => (await s.ask('session', 's')).ok);
  assert.equal(next.cli('EXISTS', 'mcp:session:{s}'), '1');
});

test('a slot that nobody serves does not cost the connection', { skip: missing }, async (t) => {
  const { s, nodes: [only] } = await twoWholes(t, '--cluster-require-full-coverage', 'no');
  only.cli('CLUSTER', 'DELSLOTS', only.cli('CLUSTER', 'KEYSLOT', 's'));
  for (let i = 0; i < 3; i++) assert.match((await s.ask('entry', 's', 'x')).rest, /CLUSTERDOWN Hash slot not served/);
  assert.equal((await s.ask('session', 'other')).word, 'ok');
  assert.match((await s.ask('health')).rest, /^up 0/);
});

test('several hosts that are no cluster are refused: they would be several stores', { skip: missing }, async (t) => {
  const [a, b] = [await redis(), await redis()];
  for (const server of [a, b]) t.after(() => server.stop());
  const s = await store(`redis://127.0.0.1:${a.port},127.0.0.1:${b.port}`, { deadline: 3000 });
  t.after(() => s.close());
  const got = await s.ask('session', 's');
  assert.equal(got.word, 'unavailable');
  assert.match(got.rest, /cluster support disabled/);
});
