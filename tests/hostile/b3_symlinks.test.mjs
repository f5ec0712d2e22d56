// B3: symbolic links that lead out of the root, in every position, and none
// at all is followed by a write.
import assert from 'node:assert/strict';
import { lstatSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withToolbox } from '../lib/toolbox.mjs';

test('links out of the root are refused', () =>
  withToolbox({}, async (t) => {
    const link = (to, name) => symlinkSync(to, join(t.place.root, name));
    link(t.place.marker, 'file');
    link('../outside/marker', 'relative');
    link(t.place.outside, 'dir');
    link('..', 'up');
    link(join(t.place.outside, 'new'), 'dangling');
    link('../outside/new', 'dangling2');
    link('/', 'slash');
    link('/proc/self/root', 'magic');
    for (let i = 0; i < 41; i++)
      link(i === 40 ? t.place.marker : `chain${i + 1}`, `chain${i}`);

    const reading = [
      'file', 'relative', 'dir/marker', 'up/outside/marker', 'dangling',
      'slash/etc/passwd', 'magic/etc/passwd', 'chain0', 'chain40', 'dir/../x',
    ];
    for (const path of reading) await t.refused('read_file', { path });
    const writing = [
      ...reading, 'dangling2', 'dir/new', 'dir/deep/new', 'up/outside/new',
      'up/new', 'slash/tmp/mo-b3', 'dir/sub/../new',
    ];
    for (const path of writing) {
      await t.refused('write_file', { path, content: 'overwritten' });
      const r = await t.call('edit_file',
        { path, old_string: t.place.secret, new_string: 'x' });
      assert.equal(r.isError, true);
    }
    for (const path of ['dir', 'up', 'slash', 'magic'])  {
      await t.refused('list_files', { path });
      await t.refused('search_files', { path, pattern: 'secret' });
      await t.refused('execute_command', { argv: ['true'], cwd: path });
    }
    // A walk names links and enters none.
    const { entries } = await t.ok('list_files', { recursive: true });
    assert.ok(entries.every((e) => e.type === 'symlink'), JSON.stringify(entries));
    const found = await t.ok('search_files', { pattern: t.place.secret });
    assert.deepEqual(found.matches, []);
    t.said = t.said.replaceAll(JSON.stringify(t.place.secret), '');
    t.confined();
  }));

test('links that stay inside are read through, never written through', () =>
  withToolbox({}, async (t) => {
    await t.ok('write_file', { path: 'real/f.txt', content: 'one' });
    symlinkSync('real', join(t.place.root, 'alias'));
    symlinkSync('real/f.txt', join(t.place.root, 'short'));
    assert.equal((await t.ok('read_file', { path: 'alias/f.txt' })).content, 'one');
    assert.equal((await t.ok('read_file', { path: 'short' })).content, 'one');
    for (const path of ['alias/f.txt', 'alias/new', 'short'])
      await t.refused('write_file', { path, content: 'two' });
    await t.refused('edit_file',
      { path: 'short', old_string: 'one', new_string: 'two' });
    assert.equal(readFileSync(join(t.place.root, 'real/f.txt'), 'utf8'), 'one');
    assert.ok(lstatSync(join(t.place.root, 'short')).isSymbolicLink());
    mkdirSync(join(t.place.root, 'empty'));
    t.confined();
  }));
