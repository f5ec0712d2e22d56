// G5: a call that is approved as one thing and runs as another. The arguments
// are edited into what a rule denies or the tool's schema forbids, or the yes
// names no digest, an empty one, or the digest of another card.
// Fails on e7a8afd0: the edit into what a rule denies was approved. Fails on
// 953b0b1e: edits that break the schema were approved, and so was an empty
// digest.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { until } from '../it/server.mjs';
import { House, write } from '../it/talk_kit.mjs';

let house, tab;
before(async () => {
  house = await House.start({
    config: { approvals: { rules: [{ tool: 'write_file', args: { path: 'secret*' }, action: 'deny', reason: 'hush' }] } },
    env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
  });
  tab = house.tab();
  await tab.ready();
});
after(() => house?.stop());

async function card(path = 'ok.txt') {
  const cards = tab.count('tool:approval_required');
  house.model.script.push({ calls: [write(path, 'x')] }, { text: 'done' });
  await tab.say('write');
  return (await tab.event('tool:approval_required', cards + 1))[0];
}

async function result(answers) {
  await tab.event('agent:response', answers + 1);
  return house.results()[0];
}

test('edits and digests that are refused; the card stays as it was', async () => {
  const answers = tab.count('agent:response');
  const shown = await card();
  const { digest } = shown;
  const other = '0'.repeat(64);
  for (const [more, code] of [
    [{ digest, args: { path: 'secret.txt', content: 'x' } }, 'denied'],
    [{ digest, args: { path: ['secret.txt'], content: 'x' } }, 'bad_request'], // the schema wants a text
    [{ digest, args: { path: 7, content: 'x' } }, 'bad_request'],
    [{ digest, args: { content: 'x' } }, 'bad_request'],
    [{ digest: undefined, args: { path: 'other.txt', content: 'x' } }, 'digest_required'],
    [{ digest: '', args: { path: 'other.txt', content: 'x' } }, 'bad_digest'],
    [{ digest: other, args: { path: 'other.txt', content: 'x' } }, 'changed'],
    [{ digest: '' }, 'bad_digest'],
    [{ digest: other }, 'changed'],
    [{ digest: 7 }, 'bad_request'],
  ]) {
    const no = await tab.decide(shown, true, more);
    assert.equal(no.code, code, JSON.stringify([more, no]));
  }
  const { history } = await house.tab({ session: tab.session }).ready();
  assert.deepEqual([history.pending[0].args, history.pending[0].digest], [shown.args, digest]);
  const yes = await tab.decide(shown, true, { args: { path: 'edited.txt', content: 'y' } });
  assert.equal(yes.ok, true, JSON.stringify(yes));
  assert.match((await result(answers)).text, /edited\.txt/);
});

test('a yes without a digest means the one card of that id, once', async () => {
  const answers = tab.count('agent:response');
  const shown = await card('plain.txt');
  assert.equal((await tab.decide(shown, true)).ok, true);
  assert.match((await result(answers)).text, /plain\.txt/);
  assert.equal((await tab.decide(shown, true)).code, 'unknown_call');
});

test('refused decisions are in the audit log', async () => {
  const has = async (code) => (await house.audit(tab.session)).some((r) => r.refused === code);
  for (const code of ['denied', 'bad_request', 'digest_required', 'bad_digest', 'changed', 'unknown_call'])
    await until(() => has(code), `a row for ${code}`);
});
