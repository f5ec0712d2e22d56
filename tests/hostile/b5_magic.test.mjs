// B5: the links of /proc that the kernel resolves without a path, tried from
// a root that holds them.
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withToolbox } from '../lib/toolbox.mjs';

test('magic links by name and through links of our own', () =>
  withToolbox({}, async (t) => {
    const names = [
      '/proc/self/root', '/proc/self/cwd', '/proc/1/root', '/dev/fd/0',
      '/proc/self/fd/0', '/proc/thread-self/root', '/proc/self/exe',
    ];
    for (const name of names) {
      const base = `l${name.replaceAll('/', '_')}`;
      symlinkSync(name, join(t.place.root, base));
      for (const path of [name, `${name}${t.place.marker}`, base,
        `${base}${t.place.marker}`]) {
        await t.refused('read_file', { path });
        await t.refused('write_file', { path, content: 'x' });
        await t.refused('list_files', { path });
        await t.refused('execute_command', { argv: ['true'], cwd: path });
      }
    }
    t.confined();
  }));

test('with / as the root they are refused all the same', () =>
  withToolbox({ root: '/' }, async (t) => {
    for (const path of [
      `/proc/self/root${t.place.marker}`, `/proc/self/cwd${t.place.marker}`,
      '/proc/self/fd/0', '/dev/fd/0', 'proc/self/exe', '/dev/stdin',
    ]) {
      await t.refused('read_file', { path });
      await t.refused('write_file', { path, content: 'x' });
    }
    assert.ok(!t.said.includes(t.place.secret));
    t.confined();
    // without a magic link in it the same file is inside this root
    assert.match((await t.ok('read_file', { path: t.place.marker })).content,
      /^secret-/);
  }));
