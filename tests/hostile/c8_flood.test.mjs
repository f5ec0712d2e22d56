// C8: as many messages as the pipe takes. Reading is held back, and a server
// that never stops is stopped; memory does not grow with the flood.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { alive, callEvil, driver, evil, release, run } from '../lib/mcp.mjs';

for (const how of ['flood', 'flood-requests'])
  test(how, async (t) => {
    if (!existsSync(release)) return t.skip('the release build');
    const calm = await callEvil('ok', { program: release });
    const { code, err, out, peak } = await callEvil(how, { program: release });
    assert.equal(code, 4);
    assert.match(err, /flood: more than 2000 unrequested messages|does not read the answers/);
    assert.equal(out, '');
    assert.ok(peak - calm.peak < 16 * 1024, `${peak} - ${calm.peak} KiB`);
    assert.deepEqual(alive(`evil_mcp ${how}`), []);
  });

// How late everybody else is served meanwhile: told, not judged, since it
// depends on who else uses this machine (50 ms at the 99th percentile is the
// aim).
for (const how of ['ok', 'flood', 'flood-requests'])
  test(`the loop goes on: ${how}`, async (t) => {
    const { code, out } = await run(join(dirname(driver), 'lag_driver'), [evil, how]);
    assert.equal(code, 0);
    const { why, samples, p50, p99, max } = JSON.parse(out);
    if (how !== 'ok') {
      assert.notEqual(why, 0);
      assert.ok(samples > 0);
    }
    t.diagnostic(`loop lag: p50 ${p50 / 1000} ms, p99 ${p99 / 1000} ms, ` +
      `max ${max / 1000} ms in ${samples} samples`);
    assert.deepEqual(alive(`evil_mcp ${how}`), []);
  });
