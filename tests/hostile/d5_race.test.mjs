// D5: yes and no at the same time; our death while a call runs. One outcome,
// and what nobody knows is called unknown and never tried again.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { House, run } from '../it/talk_kit.mjs';

let house;
before(async () => {
  house = await House.start();
});
after(() => house.stop());

const ROUNDS = 12;
const UNKNOWN = 5; // MO_CALL_UNKNOWN

test('yes and no, from two tabs, many times', async () => {
  const a = house.tab();
  await a.ready();
  const b = house.tab({ session: a.session });
  await b.ready();
  let yes = 0;
  for (let i = 1; i <= ROUNDS; i++) {
    house.model.script.push({ calls: [run('echo x >> ran')] });
    await a.say('go');
    const [card] = await b.event('tool:approval_required', i);
    const both = [() => a.decide(card, true), () => b.decide(card, false, { reason: 'no' })];
    if (i % 2) both.reverse();
    const acks = await Promise.all(both.map((f) => f()));
    assert.equal(acks.filter((k) => k.ok).length, 1);
    await a.event('agent:response', i);
    await b.event('agent:response', i);
    const told = [a, b].map((t) => t.events.filter(([e, r]) => e === 'tool:resolved' && r.callId === card.callId));
    for (const t of told) assert.equal(t.length, 1);
    assert.equal(told[0][0][1].approved, told[1][0][1].approved);
    yes += told[0][0][1].approved;
    assert.equal(house.results()[0].error, !told[0][0][1].approved);
  }
  const lines = await house.inBox(a, 'cat ran 2>/dev/null | wc -l');
  assert.equal(Number(lines), yes);
});

function row(id) {
  const file = readdirSync(house.dir, { recursive: true }).find((f) => f.endsWith('.db'));
  return JSON.parse(execFileSync('python3', ['-c',
    'import sqlite3,sys,json\nd=sqlite3.connect(sys.argv[1])\n' +
    'print(json.dumps(d.execute("SELECT state, doc FROM call WHERE id=?", [sys.argv[2]]).fetchall()))',
    join(house.dir, file), id]));
}

test('our death between "running" and its result', async () => {
  house.model.script.push({ calls: [run('echo x >> ran; sleep 1000')] });
  const tab = house.tab();
  await tab.ready();
  await tab.say('go');
  const [card] = await tab.event('tool:approval_required');
  assert.equal((await tab.decide(card, true)).ok, true);
  await tab.event('agent:thinking', 2);
  await house.kill();
  await house.up();

  const back = house.tab({ session: tab.session });
  const { history } = await back.ready();
  assert.deepEqual(history.pending, []);
  assert.match(JSON.stringify(await back.event('tool:output')), /Whether it had an effect is unknown/);
  await back.event('agent:response');
  const [result] = house.results();
  assert.equal(result.error, true);
  assert.match(result.text, /unknown; it was not run again/);
  assert.equal(row(card.callId)[0][0], UNKNOWN);
  assert.equal((await back.decide(card, true)).code, 'unknown_call');
  const [told] = (await house.audit(tab.session)).filter((r) => r.digest === card.digest);
  assert.match(JSON.stringify(told.content), /unknown/);
  const lines = (await house.inBox(back, 'cat ran 2>/dev/null | wc -l')).trim();
  assert.ok(Number(lines) <= 1, `ran ${lines} times`);
});
