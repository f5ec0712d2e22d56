// C4: forged answers on stderr answer nothing; noise on stdout is counted,
// forgiven in small amounts, and deadly in large ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { alive, callEvil } from '../lib/mcp.mjs';

test('stderr is never parsed', async () => {
  const { code, out, err } = await callEvil('forge-stderr', { timeout: 1 });
  assert.equal(code, 4);
  assert.match(err, /tools\/call: no /);
  assert.equal(out, '');
  assert.doesNotMatch(err, /forged/);
  assert.deepEqual(alive('forge-stderr'), []);
});

test('some noise is forgiven', async () => {
  const { code, out } = await callEvil('some-noise');
  assert.deepEqual([code, out], [0, 'grüß\n']);
});

test('much noise is not', async () => {
  const { code, out, err } = await callEvil('much-noise');
  assert.equal(code, 4);
  assert.match(err, /20 lines on its standard output are not JSON/);
  assert.equal(out, '');
  assert.deepEqual(alive('much-noise'), []);
});
