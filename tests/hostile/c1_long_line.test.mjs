// C1: a line that never ends. The stream is killed at the cap; memory shows
// no more than that.
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

test('peak memory grows by less than 8 MiB', async (t) => {
  if (!existsSync(release)) return t.skip('the release build');
  const calm = await callEvil('ok', { program: release });
  const evil = await callEvil('long-line', { program: release });
  assert.equal(calm.code, 0);
  assert.match(evil.err, /line too long/);
  assert.ok(calm.peak > 0 && evil.peak > 0);
  assert.ok(evil.peak - calm.peak < 8 * 1024, `${evil.peak} - ${calm.peak} KiB`);
});
