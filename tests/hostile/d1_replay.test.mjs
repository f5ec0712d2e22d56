// D1: one approval, sent again and again: from one socket, from two tabs,
// after a reconnect, after the end, after a restart. The call runs once.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { House, run } from '../it/talk_kit.mjs';

const MARK = 'echo ran >> ran';
const TIMES = 25;

let house;
before(async () => {
  house = await House.start();
});
after(() => house.stop());

const isRefused = (ack) => ack.ok === false && ack.code === 'unknown_call';

async function storm(tabs, card) {
  const acks = [];
  for (let i = 0; i < TIMES; i++)
    for (const tab of tabs) acks.push(tab.decide(card, true, i % 2 ? { digest: card.digest } : {}));
  return Promise.all(acks);
}

test('the side effect happens once', async () => {
  house.model.script.push({ calls: [run(MARK)] }, { text: 'done' });
  const a = house.tab();
  await a.ready();
  const b = house.tab({ session: a.session });
  await b.ready();
  await a.say('go');
  const [card] = await b.event('tool:approval_required');

  const first = await storm([a, b], card);
  assert.equal(first.filter((ack) => ack.ok).length, 1);
  assert.equal(first.filter(isRefused).length, first.length - 1);
  await a.event('agent:response');
  assert.ok((await storm([a, b], card)).every(isRefused), 'after the end');

  a.close();
  const c = house.tab({ session: a.session });
  await c.ready();
  assert.ok((await storm([c], card)).every(isRefused), 'after a reconnect');
  assert.equal((await house.inBox(c, 'cat ran')).trim(), 'ran');
  assert.equal(b.events.filter(([e, r]) => e === 'tool:resolved' && r.callId === card.callId).length, 1);

  await house.kill();
  await house.up();
  const d = house.tab({ session: a.session });
  await d.ready();
  assert.ok((await storm([d], card)).every(isRefused), 'after a restart');
  const ran = (await house.audit(a.session)).filter((r) => r.digest === card.digest && r.by === 'person');
  assert.equal(new Set(ran.map((r) => r.args.command)).size, 1);
});

test('twenty calls of one reply, each approved by two tabs at once', async () => {
  house.model.script.push({ calls: Array.from({ length: 20 }, (_, i) => run(`echo ${i} >> each`)) }, { text: 'done' });
  const a = house.tab();
  await a.ready();
  const b = house.tab({ session: a.session });
  await b.ready();
  await a.say('go');
  const [last] = await b.event('tool:approval_required', 20);
  assert.equal(last.totalInQueue, 20);
  const cards = b.events.filter(([e]) => e === 'tool:approval_required').map(([, c]) => c);
  const acks = await Promise.all(cards.flatMap((c) => [a.decide(c, true), b.decide(c, true)]));
  assert.equal(acks.filter((k) => k.ok).length, 20);
  await a.event('agent:response');
  const lines = (await house.inBox(a, 'sort -n each')).trim().split('\n');
  assert.deepEqual(lines, Array.from({ length: 20 }, (_, i) => `${i}`));
});
