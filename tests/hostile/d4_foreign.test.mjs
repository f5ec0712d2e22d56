// D4: approvals that are not this person's to give, or not any more. All are
// refused in the same words, stand in the audit log, and nothing runs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { until } from '../it/server.mjs';
import { House, run } from '../it/talk_kit.mjs';

let house;
before(async () => {
  house = await House.start();
});
after(() => house.stop());

const EVIL = run('touch evil');

async function pending(tab) {
  const n = tab.count('tool:approval_required');
  house.model.script.push({ calls: [EVIL] });
  await tab.say('go');
  return (await tab.event('tool:approval_required', n + 1))[0];
}

const words = new Set();

/** Refused, told in the audit log with who it was; the box is as it was. */
async function assertRefused(tab, card, more = {}) {
  const ack = await tab.decide(card, true, { digest: card.digest, ...more });
  assert.equal(ack.ok, false);
  assert.equal(ack.code, 'unknown_call');
  words.add(ack.message);
  let row;
  await until(async () => {
    row = (await house.audit(tab.session)).find((r) => r.refused && r.call === card.callId);
    return row;
  }, 'its row of the audit log');
  assert.equal(row.refused, 'unknown_call');
  assert.match(row.who, /127\.0\.0\.1/);
}

async function assertNothingRan(tab) {
  assert.doesNotMatch(await house.inBox(tab, 'ls -A'), /evil/);
}

test('of another session', async () => {
  const a = house.tab();
  await a.ready();
  const b = house.tab();
  await b.ready();
  const card = await pending(a);
  await assertRefused(b, card);
  assert.equal(a.count('tool:resolved'), 0, 'nobody else hears of it');
  await a.decide(card, false);
  await a.event('agent:response');
  await assertNothingRan(a);
  await assertNothingRan(b);
});

test('a guess', async () => {
  const tab = house.tab();
  await tab.ready();
  const card = await pending(tab);
  const { callId } = card;
  const last = callId.at(-1) === '0' ? '1' : '0';
  for (const guess of [callId.slice(0, -1), `${callId}0`, callId.slice(0, -1) + last, callId.toUpperCase() + 'x', 'c0', '../..'])
    await assertRefused(tab, { ...card, callId: guess });
  assert.ok(callId.replace(/-\d+$/, '').length >= 13, 'too long to guess');
  await tab.decide(card, false);
  await tab.event('agent:response');
});

test('after its time', async () => {
  const patient = house;
  house = await House.start({ config: { approvals: { timeoutSeconds: 10 } } });
  try {
    const tab = house.tab();
    await tab.ready();
    const card = await pending(tab);
    const [resolved] = await tab.event('tool:resolved');
    assert.deepEqual([resolved.approved, resolved.by], [false, 'time']);
    await assertRefused(tab, card);
    await tab.event('agent:response');
    assert.match(house.results()[0].text, /Nobody answered in time/);
    await assertNothingRan(tab);
  } finally {
    await house.stop();
    house = patient;
  }
});

test('after a no, and after the history was cleared', async () => {
  const tab = house.tab();
  await tab.ready();
  const card = await pending(tab);
  await tab.decide(card, false);
  await assertRefused(tab, card);
  await tab.event('agent:response');
  assert.equal((await tab.emit('history:reset')).ok, true);
  await assertRefused(tab, card);
  await assertNothingRan(tab);
});

test('after the turn was stopped', async () => {
  const tab = house.tab();
  await tab.ready();
  const card = await pending(tab);
  await tab.emit('agent:cancel');
  await tab.event('agent:response');
  await assertRefused(tab, card);
  await assertNothingRan(tab);
});

test('after the session ended and another box took its name', async () => {
  const tab = house.tab();
  const { ready } = await tab.ready();
  const card = await pending(tab);
  await tab.emit('session:close');
  await tab.event('(disconnect)');
  const back = house.tab({ session: tab.session });
  const again = await back.ready();
  assert.notEqual(again.ready.containerId, ready.containerId);
  // Nobody answered, so it waits again, for what it was: that is no replay.
  for (const p of again.history.pending) assert.equal(p.digest, card.digest);
  if (again.history.pending.length) await back.decide(card, false);
  await assertRefused(back, card);
  await back.event('agent:response');
  await assertNothingRan(back);
});

test('all in the same words', () => {
  assert.equal(words.size, 1);
});
