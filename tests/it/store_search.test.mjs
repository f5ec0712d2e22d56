// Full-text search in Redis: a cluster, entries older than the index, several
// processes at once, and a process that is killed before it has indexed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';

import { missing, redis, store, until } from '../lib/redis.mjs';

async function ok(s, ...words) {
  const a = await s.ask(...words);
  assert.equal(a.word, 'ok', `${words.join(' ')}: ${a.rest}`);
  return a.rest;
}

/** The documents found, sorted. */
async function found(s, ...words) {
  const [n, ...docs] = (await ok(s, 'search', ...words)).split(' ');
  assert.equal(docs.length, Number(n));
  return docs.sort();
}

const url = (server) => `redis://127.0.0.1:${server.port}`;

/** What the index of the first conversation of a session says. */
const index = (server, name, field) =>
  server.cli('HGET', `mcp:conversation:{${name}}:1:find`, field);

test('cluster: sessions of every slot are found', { skip: missing }, async (t) => {
  const nodes = [];
  for (let i = 0; i < 2; i++) {
    nodes.push(await redis({ args: ['--cluster-enabled', 'yes'] }));
    t.after(() => nodes[i].stop());
  }
  nodes[0].cli('CLUSTER', 'ADDSLOTSRANGE', '0', '8191');
  nodes[1].cli('CLUSTER', 'ADDSLOTSRANGE', '8192', '16383');
  nodes[0].cli('CLUSTER', 'MEET', '127.0.0.1', String(nodes[1].port));
  for (const node of nodes)
    await until('the cluster is whole', () =>
      /cluster_state:ok[^]*cluster_known_nodes:2/.test(node.cli('CLUSTER', 'INFO')));

  const s = await store(url(nodes[0]), { deadline: 20_000, leaks: true });
  t.after(async () => assert.equal(await s.close(), 0));
  const names = [...Array(24).keys()].map((i) => `s${i}`);
  for (const name of names) {
    await ok(s, 'session', name);
    await ok(s, 'entry', name, `green_tea_${name}`);
  }
  assert.deepEqual(await found(s, 'TEA'), names.map((n) => `green_tea_${n}`).sort());
  assert.deepEqual(await found(s, 's7'), ['green_tea_s7']);
  assert.deepEqual(await found(s, 'tea', 's3,s4'), ['green_tea_s3', 'green_tea_s4']);
  await ok(s, 'forget', 's3');
  assert.deepEqual(await found(s, 'tea', 's3,s4'), ['green_tea_s4']);
  for (const node of nodes)
    assert.doesNotMatch(node.cli('KEYS', '*{s3}*'), /find/, 'the index is gone, too');
});

test('entries older than the index, by two processes at once', { skip: missing }, async (t) => {
  const server = await redis();
  t.after(() => server.stop());
  const names = [...Array(40).keys()].map((i) => `old${i}`);
  const before = await store(url(server), { env: { MO_NO_INDEX: '1' } });
  for (const name of names) {
    await ok(before, 'session', name);
    for (let i = 1; i <= 40; i++) await ok(before, 'entry', name, `line_${i}_of_${name}`);
  }
  assert.equal((await before.ask('search', 'line')).word, 'unavailable');
  await before.close();
  assert.equal(index(server, 'old0', 'n'), '');

  const two = await Promise.all([1, 2].map(() => store(url(server), { deadline: 20_000 })));
  t.after(() => Promise.all(two.map((s) => s.close())));
  // the walk comes by itself: nobody searches
  await until('all are indexed', () => names.every((n) => index(server, n, 'n') === '40'));
  await until('the lease is given back', () =>
    server.cli('EXISTS', 'mcp:lock:{index:full-text}') === '0');
  for (const name of names)
    assert.equal(index(server, name, 'd'), '40', 'each entry once');
  const rows = await Promise.all(two.map((s) => found(s, '17')));
  for (const docs of rows)
    assert.deepEqual(docs, names.map((n) => `line_17_of_${n}`).sort());
});

test('two searches at once index the same entries once', { skip: missing }, async (t) => {
  const server = await redis();
  t.after(() => server.stop());
  const before = await store(url(server), { env: { MO_NO_INDEX: '1' } });
  await ok(before, 'session', 'a');
  for (let i = 1; i <= 200; i++) await ok(before, 'entry', 'a', `word_${i}`);
  await before.close();
  const two = await Promise.all([1, 2].map(() => store(url(server), { deadline: 20_000 })));
  t.after(() => Promise.all(two.map((s) => s.close())));
  const rows = await Promise.all([0, 1, 0, 1].map((i) => found(two[i], 'word')));
  for (const docs of rows) assert.equal(docs.length, 200);
  assert.equal(index(server, 'a', 'd'), '200');
  assert.equal(index(server, 'a', 't'), '400');
});

test('killed before it has indexed: the next search finds it', { skip: missing }, async (t) => {
  const server = await redis();
  t.after(() => server.stop());
  const other = await store(url(server));
  t.after(() => other.close());
  for (let i = 0; i < 5; i++) {
    const s = await store(url(server));
    await ok(s, 'session', 'k');
    const gone = once(s.child, 'exit');
    await ok(s, 'entry', 'k', `last_words_${i}`);
    s.child.kill('SIGKILL');
    await gone;
    assert.deepEqual(await found(other, `${i}`, 'k'), [`last_words_${i}`]);
  }
  assert.equal((await found(other, 'words')).length, 5);
});

test('an index that was lost or spoiled is built again', { skip: missing }, async (t) => {
  const server = await redis();
  t.after(() => server.stop());
  const s = await store(url(server), { leaks: true });
  t.after(async () => assert.equal(await s.close(), 0));
  await ok(s, 'session', 'a');
  for (let i = 1; i <= 3; i++) await ok(s, 'entry', 'a', `tea_${i}`);
  assert.equal((await found(s, 'tea')).length, 3);
  server.cli('DEL', 'mcp:conversation:{a}:1:find');
  assert.equal((await found(s, 'tea')).length, 3);
  // of another life of the conversation: it begins elsewhere, or ends later
  server.cli('HSET', 'mcp:conversation:{a}:1:find', 'b', '7');
  assert.equal((await found(s, 'tea')).length, 3);
  server.cli('HSET', 'mcp:conversation:{a}:1:find', 'n', '99');
  assert.equal((await found(s, 'tea')).length, 3);
  assert.equal(index(server, 'a', 'd'), '3');
});
