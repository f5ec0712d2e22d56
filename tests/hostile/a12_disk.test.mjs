// A12: whatever a box writes is in its own bounded memory, never on a disk of
// the host. From outside: no mount that it may write is anything else.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

import { eachDriver } from '../lib/boxes.mjs';

const MIB = 1 << 20;

for (const [dir, size] of [['/workspace', 8], ['/tmp', 4]])
  eachDriver(`A12: ${dir} fills up`, async (d, t) => {
    if (d.unsized) return t.diagnostic('its volumes have no size');
    const { out } = await d.run(['fill', dir], {
      workspace: 8 * MIB,
      tmp: 4 * MIB,
      workspace_inodes: 300,
      tmp_inodes: 200,
      memory: 64 * MIB,
    });
    const [bytes, sparse, files] = out.trim().split('\n');
    assert.equal(bytes, `bytes ${size} ENOSPC`);
    assert.equal(sparse, 'sparse EFBIG');
    const n = Number(/^files (\d+) ENOSPC$/.exec(files)[1]);
    assert.ok(n > 100 && n < 300, files);
  });

eachDriver('A12: a single file has its limit', async (d) => {
  const { out } = await d.run(['fill', '/workspace'], { file_size: 2 * MIB });
  assert.match(out, /^bytes 2 EFBIG\n/);
});

eachDriver('A12: there is no other place', async (d) => {
  for (const dir of ['/', '/dev', '/dev/shm', '/etc', '/usr', '/var/tmp', '/run', '/proc'])
    assert.match((await d.run(['fill', dir])).out, /(EACCES|EROFS|ENOENT|EPERM)\n$/, dir);
});

eachDriver('A12: what may be written is memory', async (d) => {
  if (d.name !== 'native') return; // the engine's own mounts are inspected there
  const box = await d.start(['sleep', '1000'], { host: true });
  const mounts = readFileSync(`/proc/${box.pid}/mountinfo`, 'utf8').trim().split('\n');
  assert.ok(mounts.length > 5);
  for (const m of mounts) {
    const [left, right] = m.split(' - ');
    const [, , , , point, options] = left.split(' ');
    const type = right.split(' ')[0];
    assert.ok(/(^|,)nosuid(,|$)/.test(options), m);
    if (/^ro(,|$)/.test(options)) continue;
    if (point.startsWith('/dev/')) continue; // null and its like
    assert.match(type, /^(tmpfs|proc)$/, m);
    assert.match(point, /^\/(tmp|workspace|proc)$/, m);
  }
  await box.kill();
});
