// C7: a server that does not answer, at any stage. (Answers after a timeout
// or a cancel: the unit test of conn.)
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { alive, bin, callEvil, evil, run } from '../lib/mcp.mjs';

let dir;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-c7-'));
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: {
      mute: { command: evil, args: ['init-silent'], startTimeoutMs: 1000 },
    },
  }));
});
after(() => rm(dir, { recursive: true }));

test('a tool that never answers', async () => {
  const { code, err } = await callEvil('silent', { timeout: 1 });
  assert.equal(code, 4);
  assert.match(err, /tools\/call: no /);
  assert.deepEqual(alive('silent'), []);
});

test('initialize that is never answered', async () => {
  const { code, err } = await run(bin, ['mcp', 'test', 'mute'], { cwd: dir });
  assert.equal(code, 4);
  assert.match(err, /mute: initialize: no answer in time/);
  assert.deepEqual(alive('init-silent'), []);
});

test('a probe that is never answered costs a child, not the server', async () => {
  const { code, out } = await callEvil('probe-silent');
  assert.deepEqual([code, out], [0, 'grüß\n']);
});

test('a probe that kills the server costs a child, not the server', async () => {
  const { code, out } = await callEvil('probe-leave');
  assert.deepEqual([code, out], [0, 'grüß\n']);
});
