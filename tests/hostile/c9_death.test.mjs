// C9: the server goes in the middle of a call, in every way there is. One
// error with its cause, at once, and nothing stays behind.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { alive, callEvil } from '../lib/mcp.mjs';
import { eventually } from '../lib/outside.mjs';

for (const [how, says] of [
  ['leave', /^mcp-orchestrator: the server ended \(exit 0\); it said: last words\n$/],
  ['crash', /^mcp-orchestrator: the server ended \(killed by signal 9 \(Killed\)\)\n$/],
  ['grandchild', /^mcp-orchestrator: the server ended \(exit 7\)\n$/],
  ['close-stdout', /^mcp-orchestrator: the server ended \(killed by signal 9/],
  ['init-leave', /^mcp-orchestrator: the server ended \(exit 5\)\n$/],
])
  test(how, async () => {
    const { code, err, out } = await callEvil(how);
    assert.match(err, says);
    assert.equal(code, 4);
    assert.equal(out, '');
    await eventually(`the end of ${how}`, () => !alive(`evil_mcp ${how}`).length); // the kernel takes a moment to kill
  });

test('a paused server is a slow one, and is ended all the same', async () => {
  const { code, err } = await callEvil('stop', { timeout: 1 });
  assert.equal(code, 4);
  assert.match(err, /tools\/call: no /);
  await eventually('its end', () => !alive('evil_mcp stop').length);
});
