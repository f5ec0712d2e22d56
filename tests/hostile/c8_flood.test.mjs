// C8: as many messages as the pipe takes. Reading is held back, and a server
// that never stops is stopped; memory does not grow with the flood.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';

import { alive, callEvil, release } from '../lib/mcp.mjs';

for (const how of ['flood', 'flood-requests'])
  test(how, async (t) => {
    if (!existsSync(release)) return t.skip('the release build');
    const calm = await callEvil('ok', { program: release });
    const { code, err, out, peak } = await callEvil(how, { program: release });
    assert.equal(code, 4);
    assert.match(err, /flood: more than 2000 unasked messages|takes no answers/);
    assert.equal(out, '');
    assert.ok(peak - calm.peak < 16 * 1024, `${peak} - ${calm.peak} KiB`);
    assert.deepEqual(alive(`evil_mcp ${how}`), []);
  });
