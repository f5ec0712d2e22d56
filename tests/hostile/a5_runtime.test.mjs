// A5: the programs that run the box cannot be overwritten from inside, and we
// never enter a box that runs (the shape of CVE-2019-5736).
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { eachDriver, moBox, probe } from '../lib/boxes.mjs';

const hash = (f) => createHash('sha256').update(readFileSync(f)).digest('hex');

eachDriver('A5: what runs stays what it is', async (d) => {
  const before = [moBox, probe].map(hash);
  const { out } = await d.run(['exe']);
  const lines = out.trim().split('\n');
  assert.equal(lines.length, 4);
  for (const l of lines.slice(0, 3)) assert.doesNotMatch(l, /ALLOWED/);
  assert.deepEqual([moBox, probe].map(hash), before);
});

/** A source without the one request that starts a pod's relay: in a container that
 *  no program of the box is in. tests/kube/net sees that no other is sent. */
const withoutRelay = (f) => {
  const text = readFileSync(f, 'utf8');
  return f.pathname.endsWith('/src/box/kube_net.c') ? text.replace('/exec?container=" MO_POD_NET', '') : text;
};

test('A5: no driver enters a running box', () => {
  const top = new URL('../../', import.meta.url);
  const sources = ['launcher/', 'src/box/', 'src/engine/'].flatMap((dir) => {
    try {
      return readdirSync(new URL(dir, top)).map((f) => new URL(dir + f, top));
    } catch {
      return []; // a layer that is not there yet
    }
  });
  assert.ok(sources.length > 0);
  for (const f of sources.filter((u) => u.pathname.endsWith('.c')))
    assert.doesNotMatch(withoutRelay(f), /\/exec"|\/exec\?|setns\s*\(/, fileURLToPath(f));
});
