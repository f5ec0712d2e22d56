// A5: overwriting the runtime while somebody enters a box (the shape of
// CVE-2019-5736). Nobody ever enters one: there is no such request in the
// program, an engine that watches sees none, and no box has root's uid.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { docker } from '../lib/box.mjs';
import { dockerd, noDocker } from '../lib/dockerd.mjs';

const skip = noDocker;
const top = fileURLToPath(new URL('../..', import.meta.url));
let engine;

before(async () => {
  if (!skip) engine = await dockerd();
}, { timeout: 120_000 });
after(() => engine?.cleanUp());

test('no request of ours enters or reads a box', () => {
  for (const room of ['engine', 'box'])
    for (const name of readdirSync(join(top, 'src', room))) {
      const literals = readFileSync(join(top, 'src', room, name), 'utf8')
        .replace(/\/\*[^]*?\*\//g, '').match(/"(?:[^"\\\n]|\\.)*"/g) ?? [];
      for (const text of literals)
        assert.doesNotMatch(text, /\/exec\b|\/archive\b/, `${room}/${name}`);
    }
});

test('a box that tries leaves the runtime as it was', { skip }, async () => {
  const runtimes = ['/usr/sbin/runc', '/usr/bin/runc', '/usr/bin/docker-init', '/usr/bin/tini']
    .flatMap((p) => { try { return [[p, readFileSync(p)]]; } catch { return []; } });
  assert.ok(runtimes.length > 0);
  const sum = (data) => createHash('sha256').update(data).digest('hex');
  const before_ = runtimes.map(([p, data]) => [p, sum(data)]);
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
  assert.deepEqual(before_.map(([p]) => [p, sum(readFileSync(p))]), before_);
  const events = await engine.api('GET',
    `/events?since=0&until=${Math.ceil(Date.now() / 1000) + 1}`);
  assert.ok(events.text.includes('"start"'));
  assert.ok(!events.text.includes('exec_'));
});
