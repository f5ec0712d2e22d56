// B6: what is no regular file is refused, at once; a file that grows or is
// huge is read up to the cap.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, truncateSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { withToolbox } from '../lib/toolbox.mjs';

const CAP = 262144;

// An answer at all is the oracle: a FIFO without its other end, or /dev/zero,
// would hold whoever opens or reads it for ever.
async function everyTool(t, path) {
  await t.refused('read_file', { path });
  await t.refused('write_file', { path, content: 'x' });
  await t.refused('edit_file', { path, old_string: 'a', new_string: 'b' });
}

test('FIFO, socket, directory', () =>
  withToolbox({}, async (t) => {
    const at = (n) => join(t.place.root, n);
    execFileSync('mkfifo', ['-m', '666', at('fifo')]);
    mkdirSync(at('dir'));
    const server = createServer().listen(at('socket'));
    await once(server, 'listening');
    try {
      for (const name of ['fifo', 'socket', 'dir']) await everyTool(t, name);
      const { matches } = await t.ok('search_files', { pattern: 'x' });
      assert.deepEqual(matches, []);
      const { entries } = await t.ok('list_files', {});
      assert.deepEqual(entries.map((e) => e.type), ['directory', 'other', 'other']);
    } finally {
      server.close();
    }
    t.confined();
  }));

test('devices', (c) => {
  if (process.getuid() !== 0) return c.skip('root, to make devices');
  return withToolbox({}, async (t) => {
    const at = (n) => join(t.place.root, n);
    execFileSync('mknod', ['-m', '666', at('zero'), 'c', '1', '5']);
    execFileSync('mknod', ['-m', '666', at('null'), 'c', '1', '3']);
    await everyTool(t, 'zero');
    await everyTool(t, 'null');
    t.confined();
  });
});

test('a growing file and a huge one', () =>
  withToolbox({}, async (t) => {
    const at = t.place.file('grows', 'x\n');
    const writer = spawn('sh', ['-c', `while :; do echo yyyyyyyyyyyy; done >>'${at}'`],
      { stdio: 'ignore' });
    try {
      for (let i = 0; i < 20; i++) {
        const r = await t.ok('read_file', { path: 'grows' });
        assert.ok(r.content.length <= CAP && r.bytes <= CAP);
      }
      await t.ok('search_files', { pattern: 'no such text' });
    } finally {
      writer.kill('SIGKILL');
      await once(writer, 'exit');
    }
    truncateSync(t.place.file('huge', 'begin\n'), 2 ** 40);
    const some = await t.ok('read_file', { path: 'huge', limit: 6 });
    assert.deepEqual([some.content, some.truncated, some.size, some.next_offset],
      ['begin\n', true, 2 ** 40, 6]);
    const late = await t.call('read_file', { path: 'huge', start_line: 9 });
    assert.equal(late.isError, true);
    const edit = await t.call('edit_file',
      { path: 'huge', old_string: 'begin', new_string: 'x' });
    assert.equal(edit._meta['mo.error'], 'too_big');
    const { files_skipped } = await t.ok('search_files', { pattern: 'begin' });
    assert.ok(files_skipped >= 1);
    t.confined();
  }));
