// B4: a directory and a symbolic link out of the root change places all the
// time while the tools use them. Not once may a tool get outside.
//
// MO_RACE_SECONDS makes it longer than the few seconds here.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { helper, nobody, programs, withToolbox } from '../lib/toolbox.mjs';

const seconds = Number(process.env.MO_RACE_SECONDS ?? 3);

async function storm(t, seen) {
  const results = await Promise.all([
    t.call('read_file', { path: 'd/marker' }),
    t.call('write_file', { path: 'd/marker', content: 'inside' }),
    t.call('write_file', { path: 'd/new/deep', content: 'inside' }),
    t.call('edit_file',
      { path: 'd/marker', old_string: 'inside', new_string: 'inside' }),
    t.call('list_files', { path: 'd', recursive: true }),
    t.call('search_files', { pattern: 'secret-' }),
    t.call('search_files', { pattern: 'secret-', path: 'd' }),
    t.call('search_files', { pattern: 'secret-', path: 'd/marker' }),
  ]);
  for (const r of results) seen[r.isError ? 'refused' : 'ok']++;
  assert.ok(!t.said.includes(t.place.secret), 'the marker was read');
  t.said = '';
}

for (const program of Object.keys(programs)) {
  test(`the race is never won (${program})`, () =>
    withToolbox({ program }, async (t) => {
      const { root, outside } = t.place;
      mkdirSync(join(root, 'd'));
      if (nobody.uid) chownSync(join(root, 'd'), nobody.uid, nobody.gid);
      symlinkSync(outside, join(root, 'link'));
      await t.ok('write_file', { path: 'd/marker', content: 'inside' });

      const swap = spawn(helper('swap'), [join(root, 'd'), join(root, 'link')]);
      let swaps = '';
      swap.stdout.on('data', (d) => (swaps += d));
      const gone = once(swap, 'close');
      const seen = { ok: 0, refused: 0 };
      const end = Date.now() + seconds * 1000;
      try {
        while (Date.now() < end) await storm(t, seen);
      } finally {
        swap.stdin.end();
        await gone;
      }
      assert.ok(Number(swaps) > 10_000, `${swaps} swaps`);
      assert.ok(seen.ok > 0 && seen.refused > 0, JSON.stringify(seen));
      assert.deepEqual(readdirSync(outside), ['marker']);
      t.confined();
    }));
}
