// C4: forged answers on stderr answer nothing; noise on stdout is counted and
// forgiven, unless it never stops, or nothing else comes.
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

for (const how of ['some-noise', 'much-noise'])
  test(`${how} is forgiven`, async () => {
    const { code, out } = await callEvil(how);
    assert.deepEqual([code, out], [0, 'grüß\n']);
  });

for (const [how, said] of [
  ['endless-noise', /flood: more than 2000 unrequested messages or other lines a second/],
  ['no-server', /the first 100 lines on its standard output are not JSON: it is no MCP server/],
])
  test(`${how} is not`, async () => {
    const { code, out, err } = await callEvil(how);
    assert.equal(code, 4);
    assert.match(err, said);
    assert.equal(out, '');
    assert.deepEqual(alive(how), []);
  });
