// B1: paths that climb, start elsewhere, or are no paths. Each tool refuses
// them, and nothing outside the root is read or changed.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { programs, withToolbox } from '../lib/toolbox.mjs';

const climbing = (t) => [
  '../outside/marker',
  '../../../../../../../../etc/passwd',
  '/etc/passwd',
  '/',
  '//etc/passwd',
  t.place.marker,
  'a/../../outside/marker',
  './../outside/marker',
  'a/./../../outside/marker',
  '..',
  'a/..',
  'a/../..',
  '../',
  `${t.place.root}/../outside/marker`,
  `${t.place.root}/..`,
  'marker\u0000.txt',
  '../outside/marker\u0000',
  'x'.repeat(4096),
  `${'y/'.repeat(2047)}yy`,
  'd/'.repeat(300) + 'f',
];

const uses = [
  ['read_file', (path) => ({ path })],
  ['write_file', (path) => ({ path, content: 'overwritten' })],
  ['edit_file', (path) => ({ path, old_string: 'secret', new_string: 'x' })],
  ['list_files', (path) => ({ path, recursive: true })],
  ['search_files', (path) => ({ path, pattern: 'secret' })],
  ['execute_command', (cwd) => ({ argv: ['true'], cwd })],
];

for (const program of Object.keys(programs)) {
  test(`every tool refuses (${program})`, () =>
    withToolbox({ program }, async (t) => {
      await t.ok('write_file', { path: 'a/in.txt', content: 'inside' });
      for (const path of climbing(t)) {
        for (const [tool, args] of uses) await t.refused(tool, args(path));
      }
      t.confined();
    }));
}

test('empty and "." name no file', () =>
  withToolbox({}, async (t) => {
    for (const path of ['', '.', './', 'a/.']) {
      await t.refused('write_file', { path, content: 'x', create_dirs: false })
        .catch((e) => assert.match(e.message, /does not exist/));
    }
    for (const path of ['', '.', './']) await t.refused('read_file', { path });
    t.confined();
  }));

test('a percent sign is a percent sign', () =>
  withToolbox({}, async (t) => {
    const path = '..%2foutside%2fmarker';
    const r = await t.call('read_file', { path });
    assert.equal(r._meta['mo.error'], 'not_found');
    await t.ok('write_file', { path, content: 'literal' });
    assert.equal(readFileSync(join(t.place.root, path), 'utf8'), 'literal');
    assert.ok(!existsSync(join(t.place.outside, 'x')));
    t.confined();
  }));

test('dots that stay inside are allowed', () =>
  withToolbox({}, async (t) => {
    await t.ok('write_file', { path: 'a/b/c.txt', content: 'deep' });
    assert.equal((await t.ok('read_file', { path: 'a/../a/b/c.txt' })).content, 'deep');
    await t.ok('write_file', { path: 'a/b/../d.txt', content: 'up' });
    assert.equal((await t.ok('read_file', { path: 'a/d.txt' })).content, 'up');
    t.confined();
  }));
