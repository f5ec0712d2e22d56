// redis_writer.mjs - writes to a store while servers of Redis die, and checks
// afterwards that nothing acknowledged is lost.
import assert from 'node:assert/strict';

import { until } from './redis.mjs';

export async function ok(s, ...words) {
  const a = await s.ask(...words);
  assert.equal(a.word, 'ok', `${words.join(' ')}: ${a.rest}`);
  return a.rest;
}

// Writes until told to stop; keeps what was acknowledged, by session. A session
// gets 500 entries at most, because one answer holds all of them.
export function writer(s, names) {
  const kept = {};
  const w = { kept, refused: 0, more: true, n: 0 };
  const session = async (name) => {
    const made = `${name}-${w.n}`;
    await until('a new session', async () => (await s.ask('session', made)).ok);
    kept[made] = [];
    return made;
  };
  const write = async (name) => {
    for (let at = await session(name), i = 1; w.more; i++) {
      if (i % 500 === 0) at = await session(name);
      const doc = `d${++w.n}`;
      const a = await s.ask('entry', at, doc);
      assert.ok(a.ok || a.word === 'unavailable', a.rest);
      if (a.ok) kept[at].push(doc);
      else w.refused++;
    }
  };
  w.done = Promise.all(names.map(write));
  w.count = () => Object.values(kept).reduce((sum, list) => sum + list.length, 0);
  w.grows = async (by = 50) => {
    const now = w.count();
    await until('more is written', () => w.count() >= now + by);
  };
  w.stop = async () => { w.more = false; await w.done; };
  return w;
}

// A refused write may have happened; an acknowledged one must have, in order.
export async function check(s, w) {
  for (const [name, docs] of Object.entries(w.kept)) {
    const there = (await ok(s, 'history', name)).split(' ').slice(1);
    assert.equal(new Set(there).size, there.length, 'nothing is doubled');
    assert.deepEqual(there.filter((d) => docs.includes(d)), docs, `${name}: none is lost, in order`);
  }
}
