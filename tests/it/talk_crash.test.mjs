// Our death at every point of a turn, and the next morning: what was
// acknowledged is there, nothing ran twice, what nobody knows is said.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { programsInBoxes } from '../lib/outside.mjs';
import { until, within } from './server.mjs';
import { House, run } from './talk_kit.mjs';

// What it leaves in the box tells how often it ran.
const CALL = run('echo ran >> ran; cat ran');

/** Points where we die; calls: what a call of that turn must have come to. */
const POINTS = [
  { at: 'saving', heard: false },
  { at: 'ahead' }, // the model is being asked, it is being written
  { at: 'asking' }, // said and acknowledged, the model may be heard
  { at: 'keeping' }, // it has answered, nothing of that is written
  { at: 'calls', pending: true },
  { at: 'deciding', pending: true, approve: true }, // the yes is not written
  { at: 'running', unknown: true, approve: true },
  { at: 'outcome', unknown: true, approve: true },
  { at: 'results', unknown: true, approve: true }, // one batch with the outcome
  { at: 'asking:2', approve: true, done: true },
  { at: 'keeping:2', approve: true, done: true },
  { at: 'idle:2', approve: true, done: true, over: true },
];

async function die(house, point) {
  await house.server.stop();
  await house.up(['--test-crash', point.at]);
  house.model.script.push({ text: 'Let me.', calls: [CALL] }, { text: 'first end' });
  const tab = house.tab();
  await tab.ready();
  const acks = [];
  tab.socket.emitWithAck('message', 'do it').then((a) => acks.push(a), () => {});
  if (point.approve)
    tab.event('tool:approval_required').then(([card]) =>
      tab.socket.emitWithAck('tool:approval', { callId: card.callId, approved: true, digest: card.digest })
        .then((a) => acks.push({ ...a, decided: true }), () => {}), () => {});
  await within(house.server.exit, `the end at ${point.at}`, 30_000);
  assert.equal(house.server.ended.signal, 'SIGKILL');
  await until(() => tab.count('(disconnect)'), 'the disconnect');
  house.model.script.length = 0;
  return { tab, acks };
}

/** Whoever is asked says yes, until the turn is over. */
async function goOn(tab, history) {
  for (const p of history.pending) await tab.decide(p, true, { digest: p.digest });
  await until(async () => {
    const { body } = await tab.house.get(`/api/sessions/${tab.session}/history`);
    return body.messages.at(-1)?.role === 'assistant' && !body.messages.at(-1).blocks.some((b) => b.type === 'call');
  }, 'the end of the turn');
}

for (const point of POINTS)
  test(`at ${point.at}`, async () => {
    // Leaks are looked for in it/talk; here it would take most of the time.
    const house = await House.start({ env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' } });
    try {
      const { tab, acks } = await die(house, point);
      await house.up();
      const back = house.tab({ session: tab.session });
      back.house = house;
      const { history } = await back.ready();
      const said = history.messages.filter((m) => m.role === 'user').length;
      if (acks.some((a) => a.ok && !a.decided)) assert.equal(said, 1, 'what was acknowledged is there');
      assert.ok(said <= 1, 'nothing is there twice');
      if (point.heard === false) assert.equal(said, 0);
      if (point.pending) assert.equal(history.pending.length, 1, 'it waits for a person, again');
      else assert.deepEqual(history.pending, []);
      if (point.over) assert.equal(history.turn, null);
      if (said) await goOn(back, history);

      const { body } = await house.get(`/api/sessions/${tab.session}/history`);
      const calls = body.messages.flatMap((m) => m.blocks ?? []).filter((b) => b.type === 'call');
      const results = body.messages.flatMap((m) => m.results ?? []);
      assert.equal(calls.length, results.length, 'every call has one outcome');
      const text = JSON.stringify(results);
      if (point.unknown) {
        assert.match(text, /Whether it had an effect is unknown; it was not run again/);
        assert.match(JSON.stringify(await back.event('tool:output')), /unknown/);
      }
      if (point.done || point.pending) assert.match(text, /"ran\\n?"/, 'it ran, once');
      assert.doesNotMatch(text, /ran\\nran/);
      const ran = (await house.audit(tab.session)).filter((r) => r.name === 'execute_command' && r.content);
      assert.ok(ran.length <= 1, `${ran.length} outcomes`);
      // The session works on.
      assert.match(await house.inBox(back, 'cat ran 2>/dev/null | wc -l'), /^[01]\s*$/, 'at most once');
    } finally {
      await house.stop();
    }
  });

test('messages in line survive, in order and once', async () => {
  const house = await House.start({ env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' } });
  try {
    house.model.script.push({ calls: [CALL] });
    const tab = house.tab();
    await tab.ready();
    await tab.say('one');
    await tab.event('tool:approval_required');
    const two = await tab.say('two');
    const three = await tab.say('three');
    assert.deepEqual([two.queued, three.queued], [1, 2]);
    await house.kill();
    await house.up();
    house.model.script.push({ text: 'first' }, { text: 'second' }, { text: 'third' }, { text: 'fourth' });
    const back = house.tab({ session: tab.session, early: 'four' });
    const { history } = await back.ready();
    assert.equal(history.turn.state, 'calls');
    assert.deepEqual(history.turn.waiting.map((m) => m.text), ['two', 'three']);
    assert.equal((await back.early).queued, 3, 'said before ready: it does not wait for the turn either');
    await back.decide(history.pending[0], true);
    await back.event('agent:response', 4);
    // They are not taken twice by a second start.
    await house.kill();
    await house.up();
    const last = house.tab({ session: tab.session });
    const after = (await last.ready()).history;
    assert.equal(after.turn, null);
    const said = after.messages.filter((m) => m.role === 'user');
    assert.deepEqual(said.map((m) => m.blocks[0].text), ['one', 'two', 'three', 'four']);
    assert.deepEqual(said.slice(1, 3).map((m) => m.id), [two.messageId, three.messageId]);
  } finally {
    await house.stop();
  }
});

test('a box that dies while its conversation opens is replaced', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'mo-opening-'));
  mkdirSync(join(dir, 'seen'), { mode: 0o755 });
  const house = await House.start({ dir, config: {
    sandbox: { driver: 'native', warm: 0, mounts: [`${dir}/seen:/seen`] },
    mcpServers: { slow: { command: 'sh', args: ['-c', 'sleep 4'] } }, // its list is waited for
  } });
  try {
    const tab = house.tab();
    await until(() => /"msg":"opened"/.test(house.server.log), 'its box'); // a box that never was one is an error
    programsInBoxes(new RegExp(`${dir.split('/').at(-1)}/seen`), '/seen').forEach((pid) => process.kill(pid, 'SIGKILL'));
    const { ready } = await tab.ready();
    assert.ok(ready.tools.some((t) => t.name === 'execute_command'), 'with the tools of the next one');
    assert.equal((await house.inBox(tab, 'echo here')).trim(), 'here');
    assert.equal(tab.count('error'), 0);
  } finally {
    house.server.fresh.children += 2; // of the slow server
    await house.stop();
  }
});
