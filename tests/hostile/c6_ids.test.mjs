// C6: answers under ids that look like ours. Only the first one under exactly
// our number counts. (The unit test of conn has one row per trick.)
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { callEvil } from '../lib/mcp.mjs';

test('the right answer wins', async () => {
  const { code, out, err } = await callEvil('ids');
  assert.deepEqual([code, out, err], [0, 'grüß\n', '']);
});
