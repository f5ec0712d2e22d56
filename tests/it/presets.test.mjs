// Presets: each person's own, kept, bounded, and without any right.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Team } from '../lib/team.mjs';

let team;
before(async () => {
  team = await Team.start();
});
after(() => team?.stop());

const all = async (who) => (await team.api(who, 'GET', '/api/presets')).presets;
const full = { name: 'Brief French', model: 'demo', system: 'Answer in French.\nBe brief.', toolsOff: [{ server: 'fixture' }, { server: 'box', tool: 'write_file' }], mode: 'reads' };

test('saved, renamed, changed, deleted; kept over a restart', async () => {
  const { status, id, ...kept } = await team.api('ann', 'POST', '/api/presets', full);
  assert.equal(status, 201);
  assert.deepEqual(kept, full);
  assert.deepEqual(await all('ann'), [{ id, ...full }]);
  assert.equal((await team.api('ann', 'PATCH', `/api/presets/${id}`, { name: 'French', mode: 'ask' })).name, 'French');
  await team.restart();
  assert.deepEqual(await all('ann'), [{ id, ...full, name: 'French', mode: 'ask' }]);
  assert.equal((await team.api('ann', 'DELETE', `/api/presets/${id}`)).status, 200);
  assert.deepEqual(await all('ann'), []);
  assert.equal((await team.api('ann', 'DELETE', `/api/presets/${id}`)).status, 404);
});

test('nobody has those of others', async () => {
  const { id } = await team.api('ann', 'POST', '/api/presets', { name: 'Mine' });
  for (const who of ['bea', 'operator', 'zoe']) {
    assert.deepEqual(await all(who), [], who);
    assert.equal((await team.api(who, 'PATCH', `/api/presets/${id}`, { name: 'Theirs' })).status, 404);
    assert.equal((await team.api(who, 'DELETE', `/api/presets/${id}`)).status, 404);
  }
  assert.equal((await team.api('vera', 'GET', '/api/presets')).status, 403);
  assert.equal((await team.api(null, 'GET', '/api/presets')).status, 401);
  assert.equal((await all('ann'))[0].name, 'Mine');
  await team.api('ann', 'DELETE', `/api/presets/${id}`);
});

test('nonsense is refused, and there is an end', async () => {
  for (const body of [{}, [], { name: '' }, { name: ' ' }, { name: 'a\nb' }, { name: 'x'.repeat(81) }, { name: 'a', mode: 'all' }, { name: 'a', system: 7 },
    { name: 'a', system: 'x'.repeat(8193) }, { name: 'a', toolsOff: 'x' }, { name: 'a', toolsOff: [{}] }, { name: 'a', toolsOff: [{ server: 's', allow: true }] },
    { name: 'a', rules: [] }, { name: 'a', id: 'x' }, { name: 'a', model: 7 }])
    assert.equal((await team.api('bea', 'POST', '/api/presets', body)).status, 400, JSON.stringify(body).slice(0, 80));
  const made = [];
  for (let i = 0; i < 64; i++) made.push((await team.api('bea', 'POST', '/api/presets', { name: `p${i}` })).status);
  assert.deepEqual([...new Set(made)], [201]);
  assert.equal((await team.api('bea', 'POST', '/api/presets', { name: 'one more' })).code, 'too_many');
  assert.equal((await all('bea')).length, 64);
});
