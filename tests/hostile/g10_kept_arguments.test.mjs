// G10: somebody who can read the store finds what the operator did not want to
// keep.
// Fails on 953b0b1e: with audit.arguments=false the rows of calls had whole
// arguments, and a forgotten conversation left them in the audit rows; a call
// that a rule denied had no row, and an edited one lacked the first digest.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';

import { until } from '../it/server.mjs';
import { House, read, write } from '../it/talk_kit.mjs';

const rules = [{ tool: 'write_file', args: { path: 'denied*' }, action: 'deny', reason: 'not there' }];
const digest = (args) => createHash('sha256').update(JSON.stringify(args)).digest('hex');

for (const whole of [false, true])
  describe(`audit.arguments=${whole}`, async () => {
    const house = await House.start({ config: { audit: { arguments: whole }, approvals: { rules } } });
    const state = join(house.dir, '.local/state/mcp-orchestrator');
    after(() => house.stop());

    /** Rows of a table that contain the word. */
    const kept = (table, word) => JSON.parse(execFileSync('python3', ['-c',
      'import sqlite3,sys,json\nd=sqlite3.connect(sys.argv[1])\n' +
      `print(json.dumps(d.execute("SELECT doc FROM ${table} WHERE instr(doc, ?)", (sys.argv[2],)).fetchall()))`,
      join(state, readdirSync(state).find((f) => f.endsWith('.db'))), word], { encoding: 'utf8' }));

    async function talk(calls, decide) {
      const tab = house.tab();
      await tab.ready();
      house.model.script.push({ calls }, { text: 'done' });
      await tab.say('go');
      for (let i = 1; i <= calls.length; i++) await decide(tab, (await tab.event('tool:approval_required', i))[0]);
      await tab.event('agent:response');
      return tab;
    }

    test('arguments and results of calls that are over', async () => {
      const tab = await talk(
        [write('a', 'needle-one'), write('b', 'needle-two'), read('nothere-needle-three')],
        (t, card) => t.decide(card, !card.args.content?.includes('two')));
      const count = async (word) => (await kept('call', word)).length + (await kept('audit', word)).length;
      for (const word of ['needle-one', 'needle-two', 'needle-three'])
        if (whole) assert.ok(await count(word) > 0, `${word} is kept, as the operator wants`);
        else await until(async () => (await count(word)) === 0, `${word} to go`);
      assert.ok((await kept('entry', 'needle-one')).length > 0, 'the conversation has them');
      const { history } = await house.tab({ session: tab.session }).ready();
      assert.match(JSON.stringify(history), /needle-one/, 'and the page shows them');

      const answer = await fetch(`${house.server.url}/api/sessions/${tab.session}?forget=true`, { method: 'DELETE' });
      assert.ok(answer.ok);
      for (const table of ['call', 'audit', 'entry'])
        for (const word of ['needle-one', 'needle-two', 'needle-three'])
          assert.deepEqual(kept(table, word), [], `${word} in ${table} after it was forgotten`);
      const rows = await house.audit(tab.session);
      assert.ok(rows.length >= 3, 'the rows stay');
    });

    test('a call that a rule denies has a row', async () => {
      const tab = house.tab();
      await tab.ready();
      const call = write('denied-needle', 'x');
      house.model.script.push({ calls: [call] }, { text: 'done' });
      await tab.say('go');
      await tab.event('agent:response');
      const denied = () => house.audit(tab.session).then((rows) => rows.find((r) => r.tool === 'write_file'));
      await until(denied, 'its row');
      const row = await denied();
      assert.equal(row.by, 'rule');
      if (whole) assert.deepEqual(row.args, call.args);
      else assert.equal(row.argsDigest, digest(call.args));
      await until(() => readFileSync(join(state, 'audit.jsonl'), 'utf8').includes(digest(call.args)), 'the file');
    });

    test('an edited call has both digests', async () => {
      const call = write('e', 'theirs'), args = { path: 'e', content: 'mine' };
      const tab = await talk([call], (t, card) => t.decide(card, true, { digest: card.digest, args }));
      const row = (await house.audit(tab.session)).find((r) => r.tool === 'write_file');
      assert.equal(row.argsDigestBefore, digest(call.args));
      if (whole) assert.deepEqual(row.args, args);
      else assert.equal(row.argsDigest, digest(args));
    });
  });
