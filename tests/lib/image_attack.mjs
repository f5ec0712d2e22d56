// Hostile images against the Docker driver: an engine of its own, and a file
// outside that nothing may touch.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { docker } from './box.mjs';
import { dockerd, noDocker } from './dockerd.mjs';
import { load } from './image.mjs';

export const skip = noDocker;
export const link = (path, to) => ({ path, type: '2', link: to });
const program = { Entrypoint: ['/bin/sh', '-c', 'echo owned >/workspace/x; cat'] };

/** For one test file: {engine, us, marker} from its first test on. */
export function underAttack() {
  const it = {
    /** Give the engine an image of these layers. */
    load: (tag, layers) => load(it.engine, tag, layers, program),
  };
  before(async () => {
    if (skip) return;
    it.engine = await dockerd();
    it.us = docker(it.engine);
    it.marker = join(it.engine.dir, 'marker');
    writeFileSync(it.marker, 'untouched');
  }, { timeout: 120_000 });
  after(async () => {
    await it.us?.close();
    it.engine?.cleanUp();
  });
  return it;
}

/** The test after all attacks. */
export const nothingHappened = (it) => test('nothing was made, nothing was touched', { skip }, async () => {
  assert.deepEqual((await it.engine.api('GET', '/containers/json?all=1')).json, []);
  assert.equal(readFileSync(it.marker, 'utf8'), 'untouched');
});
