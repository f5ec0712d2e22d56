// C2: a good message in the worst pieces (one byte per write, CRLF, a UTF-8
// character cut in two) is the same message.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { callEvil } from '../lib/mcp.mjs';

test('one byte per read', async () => {
  const whole = await callEvil('ok');
  const pieces = await callEvil('bytes');
  assert.equal(whole.code, 0);
  assert.equal(whole.out, 'grüß\n');
  assert.deepEqual([pieces.code, pieces.out, pieces.err], [0, whole.out, '']);
});
