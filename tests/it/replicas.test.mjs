// Two replicas on one store: whoever is connected to either hears the same and
// may speak, approve and stop; one of them runs the turn.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { until } from './server.mjs';
import { Replicas, STORES, told } from './replicas_kit.mjs';
import { run } from './talk_kit.mjs';

const COUNT = run('echo ran >> ran; cat ran');

for (const { name: store, skip } of STORES) {
  test(`${store}: two tabs on two replicas hear the same`, { skip }, async () => {
    const all = await Replicas.start({ store });
    try {
      const { here, there } = await all.pair();
      const from = [here.events.length, there.events.length];
      all.model.script.push({ text: 'Hello to both of you.' }, { text: 'And to you.' });
      assert.equal((await here.say('one')).ok, true);
      await there.event('agent:response');
      assert.equal((await there.say('two')).ok, true, 'from the tab whose replica relays');
      await here.event('agent:response', 2);
      await there.event('agent:response', 2);
      assert.deepEqual(told(there, from[1]), told(here, from[0]));
      assert.ok(there.count('agent:delta') > 0);

      // The other asks for a call, this one approves it: it runs once.
      all.model.script.push({ calls: [COUNT] }, { text: 'done' });
      await here.say('run it');
      const [card] = await there.event('tool:approval_required');
      const [first, second] = await Promise.all([
        there.decide(card, true, { digest: card.digest }),
        here.decide(card, true, { digest: card.digest }),
      ]);
      assert.deepEqual([first.ok, second.ok].sort(), [false, true], 'one of two decisions counts');
      const [out] = await there.event('tool:output');
      assert.equal(JSON.parse(out)[0].text.trim(), 'ran');
      await here.event('agent:response', 3);
      await there.event('agent:response', 3);
      assert.deepEqual(told(there, from[1]), told(here, from[0]));
    } finally {
      await all.stop();
    }
  });

  test(`${store}: stop, start afresh and close from the relayed tab`, { skip }, async () => {
    const all = await Replicas.start({ store });
    try {
      const { here, there } = await all.pair();
      all.model.script.push({ calls: [COUNT] });
      await here.say('run it');
      await there.event('tool:approval_required');
      assert.equal((await there.emit('agent:cancel')).ok, true);
      await here.event('agent:response');
      await until(async () => (await there.emit('history:reset')).ok, 'the end of the turn');
      const [history] = await here.event('session:history', 2);
      assert.deepEqual(history.messages, []);
      await there.event('session:history', 2);
      assert.equal((await there.emit('session:close')).ok, true);
      for (const tab of [here, there]) {
        assert.deepEqual(await tab.event('session:closed'), [{ reason: 'killed' }]);
        await tab.event('(disconnect)');
      }
    } finally {
      await all.stop();
    }
  });

  test(`${store}: a message that is said before the seat is taken`, { skip }, async () => {
    const all = await Replicas.start({ store });
    try {
      const here = all.v[0].tab();
      await here.ready();
      all.model.script.push({ text: 'heard' });
      const there = all.v[1].tab({ session: here.session, early: 'early' });
      assert.equal((await there.early).ok, true);
      await here.event('agent:response');
      const [history] = await there.event('session:history');
      const { body } = await all.v[0].get(`/api/sessions/${here.session}/history`);
      assert.deepEqual(body.messages.filter((m) => m.role === 'user').map((m) => m.blocks[0].text), ['early']);
      assert.ok(history);
    } finally {
      await all.stop();
    }
  });
}
