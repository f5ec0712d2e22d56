// A5, the engine's side: overwriting the runtime while somebody enters a box
// (the shape of CVE-2019-5736). Nobody ever enters one: the engine's own
// record has no such event, and its programs stay what they are.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { docker } from '../lib/box.mjs';
import { dockerd, noDocker } from '../lib/dockerd.mjs';

const skip = noDocker;
let engine;

before(async () => {
  if (!skip) engine = await dockerd();
}, { timeout: 120_000 });
after(() => engine?.cleanUp());

test('a box that tries leaves the runtime as it was', { skip }, async () => {
  const runtimes = ['/usr/sbin/runc', '/usr/bin/runc', '/usr/bin/docker-init', '/usr/bin/tini']
    .filter(existsSync);
  assert.ok(runtimes.length > 0);
  const sums = () =>
    runtimes.map((p) => createHash('sha256').update(readFileSync(p)).digest('hex'));
  const were = sums();
  const us = docker(engine);
  await us.start('x', { argv: ['/bin/sh', '-c', `
    i=0; while [ $i -lt 40 ]; do for p in /proc/[0-9]*; do
      (echo '#!/bin/sh' >$p/exe) 2>/dev/null && echo WROTE $p; done; i=$((i+1)); done
    (echo x >/proc/self/exe) 2>/dev/null && echo WROTE self; id -u; echo end; cat`] });
  us.tell('stats', { box: 'x' });
  await us.next('stats');
  const text = await us.until('x', 'end\n');
  assert.doesNotMatch(text, /WROTE/);
  assert.match(text, /^2[01]\d{3}$/m);
  await us.stop('x');
  await us.close();
  assert.deepEqual(sums(), were);
  const events = await engine.api('GET',
    `/events?since=0&until=${Math.ceil(Date.now() / 1000) + 1}`);
  assert.ok(events.text.includes('"start"'));
  assert.ok(!events.text.includes('exec_'));
});
