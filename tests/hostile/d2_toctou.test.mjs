// D2: what is approved is what was shown. The call changes between the two:
// by the model, by another tab's edit, in the store while nobody looks.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { House, run, write } from '../it/talk_kit.mjs';

let house;
before(async () => {
  house = await House.start();
});
after(() => house.stop());

async function shown(tab, ...calls) {
  const n = tab.count('tool:approval_required');
  house.model.script.push({ calls });
  await tab.say('go');
  const cards = [];
  for (let i = 1; i <= calls.length; i++) cards.push((await tab.event('tool:approval_required', n + i))[0]);
  return cards;
}

test('the digest of another call, of other arguments, of another session', async () => {
  const tab = house.tab();
  await tab.ready();
  const other = house.tab();
  await other.ready();
  const [foreign] = await shown(other, run('echo same'));
  const [good, evil] = await shown(tab, run('echo same'), run('touch evil'));
  const digests = new Set([good, evil, foreign].map((c) => c.digest));
  assert.equal(digests.size, 3, 'equal arguments, different digests');
  for (const digest of [good.digest, foreign.digest, '0'.repeat(64), 'x', evil.digest.toUpperCase()]) {
    const ack = await tab.decide(evil, true, { digest });
    assert.equal(ack.code, 'changed');
  }
  await tab.decide(evil, false);
  await tab.decide(good, true, { digest: good.digest });
  await other.decide(foreign, false);
  await tab.event('agent:response');
  await other.event('agent:response');
  assert.doesNotMatch(await house.inBox(tab, 'ls -A'), /evil/);
});

test('an edit needs the digest of what it edits, and is used up by it', async () => {
  const tab = house.tab();
  await tab.ready();
  const [card] = await shown(tab, write('e', 'theirs'));
  const wrong = await tab.decide(card, true, { digest: 'f'.repeat(64), args: { path: 'evil', content: 'x' } });
  assert.equal(wrong.code, 'changed');
  const args = { path: 'e', content: 'mine' };
  const acks = await Promise.all([
    tab.decide(card, true, { digest: card.digest, args }),
    tab.decide(card, true, { digest: card.digest }),
    tab.decide(card, true, { digest: card.digest, args: { path: 'evil', content: 'x' } }),
  ]);
  assert.deepEqual(acks.map((a) => a.ok), [true, false, false]);
  await tab.event('agent:response');
  assert.equal((await house.inBox(tab, 'ls; cat e')).trim(), 'e\nmine');
  const [ran] = (await house.audit(tab.session)).filter((r) => r.name === 'write_file' && r.content);
  assert.deepEqual(ran.args, args, 'the audit tells the edited arguments');
  assert.notEqual(ran.digest, card.digest);
});

test('a second message while a call waits does not touch it', async () => {
  const tab = house.tab();
  await tab.ready();
  const [card] = await shown(tab, run('echo shown >> out'));
  const later = tab.say('no, run something else');
  await tab.event('message:queued');
  const again = house.tab({ session: tab.session });
  const { history } = await again.ready();
  assert.deepEqual(history.pending.map((p) => [p.callId, p.digest]), [[card.callId, card.digest]]);
  assert.deepEqual(history.pending[0].args, card.args);
  await tab.decide(history.pending[0], true, { digest: card.digest });
  await later;
  await tab.event('agent:response', 2);
  assert.equal((await house.inBox(tab, 'cat out')).trim(), 'shown');
});

function edit(dir, sql) {
  const file = readdirSync(dir, { recursive: true }).find((f) => f.endsWith('.db'));
  execFileSync('python3', ['-c',
    'import sqlite3,sys\nd=sqlite3.connect(sys.argv[1])\nn=d.execute(sys.argv[2]).rowcount\nd.commit()\nassert n>0,n',
    join(dir, file), sql]);
}

for (const [where, sql] of [
  ['the entry', "UPDATE entry SET doc=replace(doc,'echo good','touch evil') WHERE doc LIKE '%echo good%'"],
  ['the call', "UPDATE call SET doc=replace(doc,'echo good','touch evil') WHERE doc LIKE '%echo good%'"],
  ['both', "UPDATE entry SET doc=replace(doc,'echo good','touch evil') WHERE doc LIKE '%echo good%'"],
])
  test(`the store is edited while nobody looks: ${where}`, async () => {
    const tab = house.tab();
    await tab.ready();
    const [card] = await shown(tab, run('echo good'));
    await house.kill();
    edit(house.dir, sql);
    if (where === 'both') edit(house.dir, sql.replaceAll('entry', 'call'));
    await house.up();
    const back = house.tab({ session: tab.session });
    const { history } = await back.ready();
    for (const p of history.pending) assert.deepEqual(p.args, card.args, 'only what was shown is shown again');
    await back.decide(card, true, { digest: card.digest });
    await back.decide(card, true);
    await back.event('agent:response');
    assert.doesNotMatch(await house.inBox(back, 'ls -A'), /evil/);
  });
