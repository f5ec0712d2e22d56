// B2: a directory whose name begins with the root's name is not the root.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withToolbox } from '../lib/toolbox.mjs';

test('a twin is refused, the root by its own name is not', () =>
  withToolbox({}, async (t) => {
    const twin = `${t.place.root}-evil`;
    mkdirSync(twin);
    chmodSync(twin, 0o777);
    writeFileSync(join(twin, 'x'), t.place.secret, { mode: 0o666 });
    chmodSync(join(twin, 'x'), 0o666);
    t.place.settle();
    const paths = [
      `${twin}/x`, twin, `${t.place.root}/../workspace-evil/x`,
      '../workspace-evil/x', `${t.place.root}-evil/../workspace-evil/x`,
    ];
    for (const path of paths) {
      await t.refused('read_file', { path });
      await t.refused('write_file', { path, content: 'x' });
      await t.refused('edit_file', { path, old_string: 's', new_string: 'x' });
      await t.refused('list_files', { path });
      await t.refused('search_files', { path, pattern: 's' });
      await t.refused('execute_command', { argv: ['true'], cwd: path });
    }
    assert.equal(readFileSync(join(twin, 'x'), 'utf8'), t.place.secret);
    t.confined();

    await t.ok('write_file', { path: `${t.place.root}/a.txt`, content: 'mine' });
    assert.equal((await t.ok('read_file', { path: 'a.txt' })).content, 'mine');
    const { entries } = await t.ok('list_files', { path: `${t.place.root}/` });
    assert.deepEqual(entries.map((e) => e.name), ['a.txt']);
  }));
