// Two replicas on one store: whoever is connected to either hears the same and
// may speak, approve and stop; one of them runs the turn.
import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { until } from './server.mjs';
import { Replicas, STORES, bothHear, told } from './replicas_kit.mjs';
import { run } from './talk_kit.mjs';

const COUNT = run('echo ran >> ran; cat ran');

for (const { name: store, skip } of STORES) {
  test(`${store}: two tabs on two replicas hear the same`, { skip }, async () => {
    const all = await Replicas.start({ store });
    try {
      const { here, there } = await all.pair();
      const from = await bothHear(all, here, there);

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

  test(`${store}: twenty tabs at two replicas`, { skip }, async () => {
    const all = await Replicas.start({ store });
    try {
      // All at once: some wait for the lease of another, some for a chat that
      // is just ending because its session is elsewhere.
      const session = `crowd-${store}`;
      const tabs = Array.from({ length: 20 }, (_, i) => all.v[i % 2].tab({ session }));
      await Promise.all(tabs.map((t) => t.ready()));
      const from = tabs.map((t) => t.events.length);
      all.model.script.push(...tabs.map((_, i) => ({ text: `answer ${i}` })));
      const acks = await Promise.all(tabs.slice(0, 10).map((t, i) => t.say(`message ${i}`)));
      assert.ok(acks.every((a) => a.ok), JSON.stringify(acks));
      await Promise.all(tabs.map((t) => t.event('agent:response', 10)));
      for (const [i, t] of tabs.entries()) assert.deepEqual(told(t, from[i]), told(tabs[0], from[0]), `tab ${i}`);
      const { body } = await all.v[0].get(`/api/sessions/${session}/history`);
      assert.deepEqual(body.messages.filter((m) => m.role === 'user').map((m) => m.blocks[0].text).sort(),
        tabs.slice(0, 10).map((_, i) => `message ${i}`).sort());
    } finally {
      await all.stop();
    }
  });

  test(`${store}: of three replicas the one with the lease ends`, { skip }, async () => {
    const all = await Replicas.start({ store, count: 3 });
    try {
      const { here, there } = await all.pair();
      const third = all.v[2].tab({ session: here.session });
      await third.ready();
      await all.v[0].signal('SIGTERM');
      await Promise.all([there, third].map((t) => t.event('session:history', 2)));
      const from = [there.events.length, third.events.length];
      all.model.script.push({ text: 'one' }, { text: 'two' });
      assert.equal((await there.say('to the next')).ok, true);
      await third.event('agent:response');
      assert.equal((await third.say('and back')).ok, true);
      await Promise.all([there, third].map((t) => t.event('agent:response', 2)));
      assert.deepEqual(told(third, from[1]), told(there, from[0]));
      assert.equal(there.count('(disconnect)') + third.count('(disconnect)'), 0);
    } finally {
      await all.stop();
    }
  });

  test(`${store}: another person's session is not there, relayed or not`, { skip }, async () => {
    const token = (who) => `${who}-has-this-0123456789abcdef`;
    const headers = (who) => ({ authorization: `Bearer ${token(who)}` });
    const all = await Replicas.start({ store, headers: headers('operator'),
      config: {
        server: { token: token('operator'), tokens: { alice: token('alice'), bob: token('bob') } },
      } });
    try {
      const mine = all.v[0].tab({ headers: headers('alice') });
      await mine.ready();
      for (const replica of all.v) {
        const tab = replica.tab({ session: mine.session, headers: headers('bob') });
        assert.deepEqual(await tab.event('error'), ['Failed to initialize session: there is no such session']);
        await tab.event('(disconnect)');
        assert.equal(tab.count('system:ready'), 0);
      }
      const operator = all.v[1].tab({ session: mine.session, headers: headers('operator') });
      await operator.ready();
      const also = all.v[1].tab({ session: mine.session, headers: headers('alice') });
      await also.ready();
      all.model.script.push({ text: 'for alice' });
      assert.equal((await also.say('hello')).ok, true);
      await mine.event('agent:response');
      const always = await also.emit('tool:accept', { name: 'x', digest: 'x' });
      assert.equal(always.code, 'operator_only', 'her own gate has judged it');
    } finally {
      await all.stop();
    }
  });
}

test('a holder that cannot be reached is waited for, then named', async () => {
  const all = await Replicas.start();
  try {
    const files = (await readdir(all.dirs[0], { recursive: true })).filter((f) => f.endsWith('.peer'));
    assert.equal(files.length, 2 * Number(process.env.MO_WORKERS ?? 1));
    for (const f of files) await rm(join(all.dirs[0], f));
    const here = all.v[0].tab(), other = all.v[0].tab();
    await Promise.all([here.ready(), other.ready()]);
    const waits = all.v[1].tab({ session: here.session, early: 'kept' });
    const fails = all.v[1].tab({ session: other.session });
    const lost = fails.socket.emitWithAck('message', 'never');
    here.close();
    await waits.ready();
    assert.equal((await waits.early).ok, true, 'the message has waited, too');
    const [text] = await fails.event('error', 1, 60_000);
    assert.match(text, /session \S+ is in use by instance i\S+, which cannot be reached: /);
    await fails.event('(disconnect)');
    lost.catch(() => {});
  } finally {
    await all.stop();
  }
});
