// The store while masters of a Redis Cluster of six die, one after the other:
// every acknowledged write is there afterwards.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { missing, redis, store } from '../lib/redis.mjs';
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

test('several hosts that are no cluster are refused: they would be several stores', { skip: missing }, async (t) => {
  const [a, b] = [await redis(), await redis()];
  for (const server of [a, b]) t.after(() => server.stop());
  const s = await store(`redis://127.0.0.1:${a.port},127.0.0.1:${b.port}`, { deadline: 3000 });
  t.after(() => s.close());
  const got = await s.ask('session', 's');
  assert.equal(got.word, 'unavailable');
  assert.match(got.rest, /cluster support disabled/);
});
