// C1: a line that never ends. The stream is killed at the cap; memory shows
// no more than that. A line that begins as the answer to a call is read on, and
// not kept: when it ends, that call has failed; when it does not, the stream is
// killed at 16 times the cap.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';

import { alive, callEvil, release } from '../lib/mcp.mjs';

test('1 GB without a newline', async () => {
  const { code, out, err } = await callEvil('long-line');
  assert.match(err, /line too long: over 4194304 bytes/);
  assert.equal(code, 4);
  assert.equal(out, '');
  assert.deepEqual(alive('long-line'), []);
});

test('1 GB without a newline that begins as the answer', async () => {
  const { code, out, err } = await callEvil('long-answer');
  assert.match(err, /line too long: over 4194304 bytes/);
  assert.equal(code, 4);
  assert.equal(out, '');
  assert.deepEqual(alive('long-answer'), []);
});

test('an answer that is too long and ends: its call fails, once', async () => {
  const { code, out, err } = await callEvil('long-then-good');
  assert.match(err, /the answer is longer than 4194304 bytes/);
  assert.equal(code, 4);
  assert.equal(out, '');
  assert.deepEqual(alive('long-then-good'), []);
});

test('peak memory grows by less than 8 MiB', async (t) => {
  if (!existsSync(release)) return t.skip('the release build');
  const calm = await callEvil('ok', { program: release });
  assert.equal(calm.code, 0);
  for (const [how, says] of [
    ['long-line', /line too long/],
    ['long-answer', /line too long/],
    ['long-then-good', /the answer is longer/],
  ]) {
    const evil = await callEvil(how, { program: release });
    assert.match(evil.err, says);
    assert.ok(calm.peak > 0 && evil.peak > 0);
    assert.ok(evil.peak - calm.peak < 8 * 1024, `${how}: ${evil.peak} - ${calm.peak} KiB`);
  }
});
