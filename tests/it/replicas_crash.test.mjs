// The replica that runs a turn dies at every point of it, is asked to end, or
// sleeps. A tab at the other replica stays connected: its message is there once,
// a call runs at most once, every request is answered.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { until, within } from './server.mjs';
import { Replicas, STORES, messages } from './replicas_kit.mjs';
import { run } from './talk_kit.mjs';

const env = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };
const CALL = run('echo ran >> ran; cat ran');

/** As in it/talk_crash; unknown: the call was running. */
const POINTS = [
  { at: 'saving' }, { at: 'ahead' }, { at: 'asking' }, { at: 'keeping' },
  { at: 'calls' }, { at: 'deciding' },
  { at: 'running', unknown: true }, { at: 'outcome', unknown: true }, { at: 'results', unknown: true },
  { at: 'asking:2' }, { at: 'keeping:2' }, { at: 'idle:2' },
];

/** A model that answers by what it is asked, whoever asks and how often. */
function think(model) {
  model.next = function () {
    const last = JSON.parse(this.requests.at(-1).bytes).messages.at(-1).content;
    const text = JSON.stringify(last);
    if (/tool_result/.test(text)) return { text: 'the end' };
    if (/do it/.test(text)) return { text: 'Let me.', calls: [CALL] };
    if (/count/.test(text)) return { calls: [run('cat ran 2>/dev/null | wc -l')] };
    return { text: 'hello' };
  };
}

/** Says yes to every card, once; answers: what it was told. */
function approve(tab) {
  const answers = [], asked = new Set();
  const yes = ({ callId, digest }) => {
    if (asked.has(callId)) return;
    asked.add(callId);
    answers.push(tab.socket.emitWithAck('tool:approval', { callId, approved: true, digest }));
  };
  tab.socket.on('tool:approval_required', yes);
  tab.socket.on('session:history', (h) => h.pending.forEach(yes));
  return answers;
}

const isOver = (all) => all.at(-1)?.role === 'assistant' && !all.at(-1).blocks.some((b) => b.type === 'call');

async function checkOnce(all, tab, answers, { unknown } = {}) {
  const replica = all.v[1];
  await until(async () => isOver(await messages(replica, tab.session)), 'the end of the turn');
  const list = await messages(replica, tab.session);
  assert.deepEqual(list.filter((m) => m.role === 'user').map((m) => m.blocks[0].text), ['do it'], 'it is there once');
  const calls = list.flatMap((m) => m.blocks ?? []).filter((b) => b.type === 'call');
  const results = JSON.stringify(list.flatMap((m) => m.results ?? []));
  assert.equal(calls.length, 1);
  if (unknown) assert.match(results, /Whether it had an effect is unknown; it was not run again/);
  else assert.match(results, /"ran\\n?"/, 'it ran');
  for (const a of await within(Promise.all(answers), 'the answers to the decisions'))
    assert.ok(a.ok || a.code === 'unknown', JSON.stringify(a));
  // It goes on, in the same box.
  await tab.emit('message', 'count');
  await until(async () => /the end/.test(JSON.stringify((await messages(replica, tab.session)).slice(list.length))), 'the count');
  const [out] = tab.events.filter(([e]) => e === 'tool:output').at(-1).slice(1);
  assert.match(JSON.parse(out)[0].text, unknown ? /^[01]\s*$/ : /^1\s*$/, 'at most once');
  assert.equal(tab.count('(disconnect)'), 0);
  assert.equal(tab.count('session:closed'), 0);
}

async function begin(how) {
  const all = await Replicas.start({ env, ...how });
  think(all.model);
  const { there } = await all.pair();
  return { all, there, answers: approve(there) };
}

for (const point of POINTS)
  test(`the holder dies at ${point.at}`, async () => {
    const { all, there, answers } = await begin({ crash: [point.at] });
    try {
      const said = there.socket.emitWithAck('message', 'do it');
      await within(all.v[0].server.exit, `the end at ${point.at}`, 30_000);
      assert.equal((await within(said, 'the answer')).ok, true);
      await there.event('session:history', 2);
      await checkOnce(all, there, answers, point);
    } finally {
      await all.stop();
    }
  });

for (const { name: store, skip } of STORES) {
  test(`${store}: the holder is asked to end while a call runs`, { skip }, async () => {
    const { all, there, answers } = await begin({ store });
    try {
      assert.equal((await there.say('do it')).ok, true);
      await there.event('tool:resolved');
      await all.v[0].signal('SIGTERM');
      await there.event('session:history', 2);
      const results = await until(async () => isOver(await messages(all.v[1], there.session)), 'the end of the turn')
        .then(async () => JSON.stringify((await messages(all.v[1], there.session)).flatMap((m) => m.results ?? [])));
      await checkOnce(all, there, answers, { unknown: /unknown/.test(results) });
    } finally {
      await all.stop();
    }
  });

  test(`${store}: the holder is killed, and a message is on its way`, { skip }, async () => {
    const { all, there } = await begin({ store });
    try {
      const said = ['one', 'two', 'three'].map((t) => there.socket.emitWithAck('message', t));
      all.v[0].server.signal('SIGKILL');
      for (const a of await within(Promise.all(said), 'the answers', 40_000)) assert.equal(a.ok, true, JSON.stringify(a));
      await until(async () => (await messages(all.v[1], there.session)).filter((m) => m.role === 'assistant').length === 3, 'three answers');
      assert.deepEqual((await messages(all.v[1], there.session)).filter((m) => m.role === 'user').map((m) => m.blocks[0].text), ['one', 'two', 'three']);
    } finally {
      await all.stop();
    }
  });

  test(`${store}: the holder sleeps for longer than its lease`, { skip }, async () => {
    const { all, there, answers } = await begin({ store });
    const [first] = all.tabs;
    try {
      await all.v[0].server.signalAll('SIGSTOP');
      const said = there.socket.emitWithAck('message', 'do it');
      await there.event('session:history', 2, 40_000);
      assert.equal((await within(said, 'the answer')).ok, true);
      await all.v[0].server.signalAll('SIGCONT');
      // The tab of the replica that slept is relayed to the other one now.
      await first.event('session:history', 2, 40_000);
      await checkOnce(all, there, answers);
      await first.event('agent:response');
      assert.equal(first.count('(disconnect)'), 0);
      assert.equal((await first.say('hello')).ok, true);
      await there.event('agent:response', 3);
    } finally {
      await all.stop();
    }
  });
}

test('redis: the holder is killed, and its directory is another one', { skip: STORES[1].skip }, async () => {
  const { all, there } = await begin({ store: 'redis', apart: true });
  try {
    assert.equal((await there.say('one')).ok, true);
    await there.event('agent:response');
    all.v[0].server.signal('SIGKILL');
    await there.event('session:history', 2);
    // Its lease is not waited for: its lock file says that it is dead.
    assert.equal((await there.say('two')).ok, true);
    await there.event('agent:response', 2);
    assert.deepEqual((await messages(all.v[1], there.session)).filter((m) => m.role === 'user').map((m) => m.blocks[0].text), ['one', 'two']);
  } finally {
    await all.stop();
  }
});
