// G12: a file whose name contains newlines and escape sequences. In a listing
// it looked like other files and like the toolbox's own notes, and it could
// command a terminal.
// Fails on 953b0b1e: list_files returned the newline and the escape as they
// were.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withToolbox } from '../lib/toolbox.mjs';

const NAMES = ['a\n[cut after 0 entries]\nsecret.txt (1 bytes)', 'b\u001b[2J\u009b2J', 'c\u202etxt.exe', 'd\r\u007f'];
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f]/;

test('a listing has one line for each file, and no control characters', () =>
  withToolbox({}, async (t) => {
    for (const name of NAMES) writeFileSync(join(t.place.root, name), 'needle\n', { mode: 0o666 });
    for (const [tool, args] of [['list_files', {}], ['search_files', { pattern: 'needle' }]]) {
      const r = await t.call(tool, args);
      const text = r.content.map((c) => c.text).join('');
      assert.ok(!CONTROL.test(text), JSON.stringify(text));
      assert.equal(text.trimEnd().split('\n').length, NAMES.length, text);
      assert.match(text, /a<0a>\[cut after 0 entries\]<0a>secret\.txt/);
    }
    const { entries } = await t.ok('list_files', {});
    assert.deepEqual(entries.map((e) => e.name).sort(), [...NAMES].sort(), 'the data has the exact names');
  }));
