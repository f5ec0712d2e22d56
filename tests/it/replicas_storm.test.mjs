// Three replicas are killed and ended in turn while people speak at all of them:
// every message that was acknowledged is there, once, in the order of its
// sender; none that was refused is.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { until, within } from './server.mjs';
import { Replicas, STORES, messages } from './replicas_kit.mjs';

const env = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };

/** Says numbered messages, one after the other, until it is told to stop or its
 *  replica has gone. */
function chatter(tab, name) {
  const said = { name, sent: [], acked: [], busy: [], refused: [] };
  said.over = (async () => {
    for (let i = 0; !said.stop && tab.socket.connected; i++) {
      const text = `${name}-${i}`;
      said.sent.push(text);
      // Before it is sent: the answer may come before the acknowledgement.
      const answers = tab.count('agent:response') + tab.count('session:history');
      const gone = new Promise((resolve) => tab.socket.once('disconnect', () => resolve()));
      const a = await Promise.race([within(tab.socket.emitWithAck('message', text), `the answer to ${text}`, 60_000), gone]);
      if (a?.ok) said.acked.push(text);
      else if (a?.code === 'busy') said.busy.push(text);
      else if (a) said.refused.push(`${text}: ${JSON.stringify(a)}`);
      // The line has room for 16 messages: who speaks goes on when there was an answer.
      await Promise.race([gone, until(() => said.stop || tab.count('agent:response') + tab.count('session:history') > answers, 'an answer', 60_000)]);
    }
  })();
  return said;
}

for (const { name: store, skip } of STORES)
  test(`${store}: three replicas are killed and ended in turn while people speak`, { skip }, async () => {
    const all = await Replicas.start({ store, env, count: 3 });
    const session = `storm-${store}`;
    const everybody = [];
    try {
      const speak = async (replica, name) => {
        const tab = replica.tab({ session });
        await tab.event('session:history', 1, 60_000);
        const s = chatter(tab, name);
        everybody.push(s);
        return s;
      };
      for (const r of all.v) await speak(r, `r${r.n}`);
      for (let round = 0; round < 6; round++) {
        const r = all.v[round % 3];
        const others = everybody.filter((s) => !s.stop && !s.name.startsWith(`r${r.n}`));
        const before = others.map((s) => s.acked.length);
        await r.signal(round % 2 ? 'SIGTERM' : 'SIGKILL');
        // The others are heard again before the next one goes.
        await until(() => others.every((s, i) => s.acked.length > before[i] + 2), `round ${round}`, 60_000);
        for (const s of everybody) if (s.name.startsWith(`r${r.n}`)) s.stop = true;
        await r.up();
        await speak(r, `r${r.n}-${round}`);
      }
      for (const s of everybody) s.stop = true;
      await Promise.all(everybody.map((s) => s.over));
      assert.deepEqual(everybody.flatMap((s) => s.refused), []);
      let texts;
      await until(async () => {
        const list = await messages(all.v[0], session);
        texts = list.filter((m) => m.role === 'user').map((m) => m.blocks[0].text);
        return list.at(-1)?.role === 'assistant' && everybody.every((s) => s.acked.every((t) => texts.includes(t)));
      }, 'every message that was acknowledged', 60_000);
      assert.equal(new Set(texts).size, texts.length, 'none twice');
      assert.deepEqual(everybody.flatMap((s) => s.busy).filter((t) => texts.includes(t)), [], 'none that was refused');
      for (const { name, sent } of everybody) {
        const mine = texts.filter((t) => t.slice(0, t.lastIndexOf('-')) === name);
        assert.deepEqual(mine, sent.filter((t) => mine.includes(t)), `the order of ${name}`);
      }
    } finally {
      // A request that a killed server did not finish is no mistake of the program.
      const { problems } = all.model;
      problems.splice(0, problems.length, ...problems.filter((p) => !p.startsWith('Error: aborted')));
      await all.stop();
    }
  });
