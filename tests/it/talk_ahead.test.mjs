// The model is asked while what it is asked is still being written: nothing of
// its answer is seen, kept or run before that is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { until, within } from './server.mjs';
import { after, ALLOWED, live, open } from './slow_store.mjs';

const QUIET = 300; // ms in which something wrong would show itself

const since = (tab, n) => tab.events.slice(n)
  .map(([name, arg]) => (name === 'session:entry' ? `${name} ${arg.role}` : name))
  .filter((name, i, all) => name !== 'agent:delta' || all[i - 1] !== name);

test('what was said is kept before the answer is heard', async () => {
  await live({}, async (house, hold) => {
    const tab = house.tab();
    await tab.ready();
    await tab.say('first'); // the title, the tools: nothing else is under way
    await tab.event('agent:response');
    const asked = house.model.requests.length, seen = tab.events.length;
    const slow = hold();
    house.model.script.push({ text: 'an answer in pieces' });
    const ack = tab.say('second');
    let acked = false;
    ack.then(() => (acked = true), () => {});
    await until(() => house.model.requests.length > asked, 'the model is asked');
    const late = house.tab({ session: tab.session }); // somebody looks in
    const { history } = await late.ready();
    assert.deepEqual(since(tab, seen), []);
    assert.equal(acked, false);
    assert.deepEqual(history.messages.map((m) => m.role), ['user', 'assistant']);
    assert.equal(history.turn.state, 'saving');
    assert.equal(history.turn.text, '');
    slow.release();
    assert.equal((await ack).ok, true);
    await tab.event('agent:response', 2);
    assert.deepEqual(since(tab, seen), ['session:entry user', 'agent:thinking', 'agent:delta',
      'session:entry assistant', 'agent:response']);
    assert.equal(house.model.requests.length, asked + 1, 'asked once');
    await late.event('agent:response'); // on a connection of its own
    assert.equal(late.events.filter(([e]) => e === 'agent:delta').map(([, d]) => d.text).join(''),
      'an answer in pieces');
  }, 'another process needs the lease, which is in the locked file');
});

test('results are kept before the answer to them is heard', async () => {
  await live(ALLOWED, async (house, hold) => {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ calls: [after('it', 'echo ran >> ran; cat ran')] }, { text: 'the end' });
    await tab.say('do it');
    await until(() => tab.count('session:entry') === 2 && tab.count('agent:thinking') === 2, 'it runs');
    const seen = tab.events.length, asked = house.model.requests.length;
    const slow = hold();
    house.go('it');
    await until(() => house.model.requests.length > asked, 'the model has the results');
    assert.match(house.results()[0].text, /^ran/);
    await sleep(QUIET);
    assert.deepEqual(since(tab, seen).filter((e) => e !== 'tool:progress'), []);
    slow.release();
    await tab.event('agent:response');
    assert.deepEqual(since(tab, seen).filter((e) => e !== 'tool:progress'), ['tool:output', 'session:entry tool',
      'agent:thinking', 'agent:delta', 'session:entry assistant', 'agent:response']);
  });
});

test('what cannot be kept has no answer, and is the same when it is said again', async () => {
  await live({}, async (house, hold) => {
    const tab = house.tab();
    await tab.ready();
    await tab.say('first');
    await tab.event('agent:response');
    const asked = house.model.requests.length, seen = tab.events.length;
    const slow = hold();
    house.model.script.push({ text: 'never heard of' });
    const refused = await tab.say('second'); // the store's deadline
    assert.equal(refused.code, 'state_unavailable');
    assert.equal(house.model.requests.length, asked + 1);
    slow.release();
    assert.deepEqual(since(tab, seen), []);
    house.model.script.push({ text: 'heard' });
    assert.equal((await tab.say('second')).ok, true);
    await tab.event('agent:response', 2);
    const { body } = await house.get(`/api/sessions/${tab.session}/history`);
    assert.deepEqual(body.messages.map((m) => m.blocks[0].text), ['first', 'ok', 'second', 'heard']);
  });
});

test('an outcome that cannot be kept does not end the turn: the results have it', async () => {
  await live(ALLOWED, async (house) => {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ calls: [after('one'), after('two')] }, { text: 'the end' });
    await tab.say('do it');
    // A store that refuses: the call is not in the state from which it is to end.
    const db = open(house);
    const end = db.prepare('UPDATE call SET state = 3 WHERE state = 2 AND n = (SELECT min(n) FROM call)');
    await until(() => end.run().changes === 1, 'the first runs');
    db.close();
    house.go('one');
    await until(() => /the outcome of a call is not stored/.test(house.server.log), 'it is in the log');
    house.go('two');
    await tab.event('agent:response');
    assert.equal(tab.count('agent:error'), 0);
    const { body } = await house.get(`/api/sessions/${tab.session}/history`);
    assert.deepEqual(body.messages.flatMap((m) => m.results ?? []).map((r) => r.state), ['done', 'done']);
  });
});

test('an outcome that was not kept is, with the results, and the arguments go', async () => {
  await live({ ...ALLOWED, audit: { arguments: false } }, async (house) => {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ calls: [after('one'), after('two')] }, { text: 'the end' });
    await tab.say('do it');
    const db = open(house);
    const move = (from, to) => db.prepare('UPDATE call SET state = ? WHERE state = ? AND n = (SELECT min(n) FROM call)').run(to, from).changes;
    await until(() => move(2, 3) === 1, 'the first runs');
    house.go('one');
    await until(() => /the outcome of a call is not stored/.test(house.server.log), 'it is refused');
    assert.equal(move(3, 2), 1);
    house.go('two');
    await tab.event('agent:response');
    const rows = () => db.prepare('SELECT state, doc FROM call').all().map((r) => [r.state, 'args' in JSON.parse(r.doc)]);
    await until(() => rows().every(([, has]) => !has), 'the arguments are gone');
    assert.deepEqual(rows(), [[3, false], [3, false]]);
    db.close();
  });
});

test('a message in line that cannot be kept in its turn comes before the next', async () => {
  await live(ALLOWED, async (house) => {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ calls: [after('it')] });
    await tab.say('one');
    await until(() => tab.count('agent:thinking') === 2, 'it runs');
    const two = await tab.say('two');
    assert.equal(two.queued, 1);
    // A store that refuses: the session's row is away.
    const db = open(house);
    db.exec('CREATE TEMP TABLE away AS SELECT * FROM session; DELETE FROM session');
    house.go('it');
    // The results cannot be kept, which ends the turn, nor can the message.
    await until(() => tab.count('agent:error') === 2, 'both refusals');
    assert.deepEqual(tab.events.filter(([e]) => e === 'agent:error').map(([, , a]) => a.code),
      ['state_unavailable', 'state_unavailable']);
    db.exec('INSERT INTO session SELECT * FROM away');
    db.close();
    assert.equal((await tab.say('three')).ok, true);
    await tab.event('agent:response', 2, 30_000);
    const { body } = await house.get(`/api/sessions/${tab.session}/history`);
    const said = body.messages.filter((m) => m.role === 'user');
    assert.deepEqual(said.map((m) => m.blocks[0].text), ['one', 'two', 'three']);
    assert.equal(said[1].id, two.messageId);
  });
});

/** Points of an answer that came too early; kept: what the store has then. */
for (const [point, kept] of [['early', []], ['early-results', ['user', 'assistant']]])
  test(`our death at ${point}`, async () => {
    await live(ALLOWED, async (house, hold) => {
      await house.server.stop();
      await house.up(['--test-crash', point]);
      house.model.script.push({ calls: [after('it', 'echo ran >> ran')] }, { text: 'never heard of' });
      const tab = house.tab();
      await tab.ready();
      let ack = null;
      if (point !== 'early') {
        ack = await tab.say('do it');
        await until(() => tab.count('agent:thinking') === 2, 'it runs');
      }
      const slow = hold();
      house.go('it');
      if (point === 'early') tab.socket.emitWithAck('message', 'do it').then((a) => (ack = a), () => {});
      await within(house.server.exit, `the end at ${point}`, 30_000);
      assert.equal(house.server.ended.signal, 'SIGKILL');
      slow.release();
      await until(() => tab.count('(disconnect)'), 'the disconnect');
      house.model.script.length = 0;
      await house.up();
      const back = house.tab({ session: tab.session });
      const { history } = await back.ready();
      assert.deepEqual(history.messages.map((m) => m.role), kept);
      if (point === 'early') {
        assert.equal(ack, null);
        assert.equal(history.turn, null);
        return;
      }
      assert.equal(ack.ok, true);
      await back.event('agent:response'); // it goes on, and says what nobody knows
      const { body } = await house.get(`/api/sessions/${tab.session}/history`);
      assert.deepEqual(body.messages.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant']);
      assert.match(JSON.stringify(body.messages[2]), /Whether it had an effect is unknown; it was not run again/);
      assert.doesNotMatch(JSON.stringify(body.messages), /never heard of/);
    });
  });
