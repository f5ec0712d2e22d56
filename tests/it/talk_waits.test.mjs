// A store that is away for a while ends no turn: what was acknowledged is answered
// when the store is back, once, and nothing is lost or asked for twice.
//
// A write fails after the store's deadline, 5 s.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { until, within } from './server.mjs';
import { after, ALLOWED, live as liveIn } from './slow_store.mjs';
import { run } from './talk_kit.mjs';

const WAITS = /The state store does not answer. The conversation goes on when it does/;
const waits = async (tab, n = 1) => assert.match((await tab.event('system:message', n))[0], WAITS);
const historyOf = async (house, tab) => (await house.get(`/api/sessions/${tab.session}/history`)).body.messages;
const roles = async (house, tab) => (await historyOf(house, tab)).map((m) => m.role);

/** An answer that the model gives at go(), or when the test is over. */
const gates = [];
function later(reply) {
  let go;
  const wait = new Promise((done) => (go = done));
  gates.push(go);
  return [{ ...reply, wait }, go];
}

const live = (config, f, oneProcess) => liveIn(config, async (...args) => {
  try {
    await f(...args);
  } finally {
    for (const go of gates.splice(0)) go();
  }
}, oneProcess);

/** The server is stopped while conversations are open, then the store is free. */
async function end(house, slow) {
  house.server.child.kill('SIGTERM');
  await sleep(300);
  slow?.release();
  await within(house.server.exit, 'the end', 30_000);
  assert.deepEqual(house.server.ended, { code: 0, signal: null });
}

test('a reply is stored when the store is back, and its call asks then', async () => {
  await live({}, async (house, hold) => {
    const [reply, go] = later({ calls: [run('echo ran >> ran; cat ran')] });
    const tab = house.tab();
    await tab.ready();
    house.model.script.push(reply, { text: 'the end' });
    assert.equal((await tab.say('do it')).ok, true);
    const slow = hold();
    go();
    await waits(tab);
    assert.equal(tab.count('tool:approval_required'), 0);
    slow.release();
    await tab.approve('execute_command');
    await tab.event('agent:response');
    assert.equal(house.results()[0].text.trim(), 'ran');
    assert.equal(tab.count('agent:error'), 0);
    assert.equal(tab.count('system:message'), 1);
    assert.deepEqual(await roles(house, tab), ['user', 'assistant', 'tool', 'assistant']);
    assert.equal(house.model.requests.length, 2, 'the reply was paid for once');
  });
});

test('results wait: a call that ran is known to have run', async () => {
  await live(ALLOWED, async (house, hold) => {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ calls: [after('it', 'echo ran >> ran; cat ran')] }, { text: 'the end' });
    await tab.say('do it');
    await until(() => tab.count('agent:thinking') === 2, 'it runs');
    const slow = hold();
    house.go('it');
    await waits(tab);
    const late = house.tab({ session: tab.session });
    assert.equal((await late.ready()).history.turn.state, 'saving');
    slow.release();
    await tab.event('agent:response');
    await late.event('agent:response');
    const said = await historyOf(house, tab);
    assert.deepEqual(said.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant']);
    assert.deepEqual(said[2].results.map((r) => r.state), ['done']);
    assert.equal(house.results()[0].text.trim(), 'ran');
    assert.equal(tab.count('agent:error'), 0);
  }, 'another process needs the lease, which is in the locked file');
});

test('a stop holds, also after a restart', async () => {
  await live({}, async (house, hold) => {
    const [reply, go] = later({ text: 'never heard of' });
    const tab = house.tab();
    await tab.ready();
    house.model.script.push(reply);
    await tab.say('do it');
    const slow = hold();
    assert.equal((await tab.emit('agent:cancel')).ok, true);
    assert.equal((await tab.event('agent:response'))[1].stopReason, 'canceled');
    await waits(tab);
    go();
    slow.release();
    await until(async () => (await roles(house, tab)).length === 2, 'the stop is stored');
    await end(house);
    await house.up();
    const { history } = await house.tab({ session: tab.session }).ready();
    assert.equal(history.turn, null);
    assert.deepEqual(history.messages.map((m) => m.role), ['user', 'assistant']);
  });
});

test('the failure of a turn is stored', async () => {
  await live({}, async (house, hold) => {
    const [reply, go] = later({ fault: 'error', type: 'invalid_request_error' });
    const tab = house.tab();
    await tab.ready();
    house.model.script.push(reply);
    await tab.say('do it');
    const slow = hold();
    go();
    await tab.event('agent:error');
    await waits(tab);
    slow.release();
    await until(async () => (await roles(house, tab)).length === 2, 'the failure is stored');
    assert.deepEqual(await roles(house, tab), ['user', 'note']);
  });
});

test('a message in line is answered without another one', async () => {
  await live(ALLOWED, async (house, hold) => {
    const [first, go] = later({ text: 'to one' });
    const tab = house.tab();
    await tab.ready();
    house.model.script.push(first, { text: 'to two' });
    await tab.say('one');
    assert.equal((await tab.say('two')).queued, 1);
    const slow = hold();
    go();
    await waits(tab);
    slow.release();
    await tab.event('agent:response', 2);
    const said = await historyOf(house, tab);
    assert.deepEqual(said.map((m) => m.blocks[0].text), ['one', 'to one', 'two', 'to two']);
    assert.equal(tab.count('agent:error'), 0);
  });
});

/** Our end while a reply with a call is on its way to the store, or waits for it. */
for (const [when, come] of [['is written', () => sleep(500)], ['waits', waits]])
  test(`a server that is stopped while a reply ${when} ends well`, async () => {
    await live({}, async (house, hold) => {
      const [reply, go] = later({ calls: [run('echo ran >> ran; cat ran')] });
      const tab = house.tab();
      await tab.ready();
      house.model.script.push(reply);
      await tab.say('do it');
      const slow = hold();
      go();
      await come(tab);
      await end(house, slow);
      await house.up();
      // The reply is stored, or the model is asked again.
      house.model.script.push(...when === 'waits' ? [{ calls: [run('echo ran >> ran; cat ran')] }] : [], { text: 'the end' });
      const back = house.tab({ session: tab.session });
      const { history } = await back.ready();
      const card = history.pending[0] ?? (await back.event('tool:approval_required'))[0];
      assert.equal((await back.decide(card, true)).ok, true);
      await back.event('agent:response');
      assert.equal(house.results()[0].text.trim(), 'ran');
    });
  });
