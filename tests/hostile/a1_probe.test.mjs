// A1: every attempt of the probe, inside. One golden answer for all drivers;
// what a driver cannot forbid is named there.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

import { eachDriver } from '../lib/boxes.mjs';

const golden = readFileSync(new URL('probe.golden', import.meta.url), 'utf8');

eachDriver('A1: the probe finds nothing', async (d) => {
  const { out, end } = await d.run([]);
  assert.deepEqual(out.split('\n'), golden.split('\n').map((l) => d.allows?.includes(l.replace(/ DENIED$/, '')) ? l.replace('DENIED', 'ALLOWED') : l));
  assert.equal(end.cause, 'exited');
  assert.equal(end.code, 0);
});
