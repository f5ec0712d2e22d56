// A9: setuid programs, crashes: no right is gained, no core is left.
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { eachDriver, probe } from '../lib/boxes.mjs';

eachDriver('A9: a crash leaves no core', async (d) => {
  const pattern = readFileSync('/proc/sys/kernel/core_pattern', 'utf8').trim();
  const cores = () =>
    [process.cwd(), '/', '/tmp', '/var/crash', '/var/lib/systemd/coredump']
      .filter(existsSync)
      .flatMap((p) => readdirSync(p).filter((n) => /^core(\.|$)/.test(n)));
  const before = cores();
  const { end } = await d.run(['crash']);
  assert.equal(end.cause, 'killed');
  assert.equal(end.signal, 11);
  assert.deepEqual(cores(), before, pattern);
});

eachDriver('A9: a setuid program of root runs as the box', async (d) => {
  if (d.name !== 'native') return; // an image of ours has none
  const dir = mkdtempSync('/opt/mo-a9-');
  const file = join(dir, 'suid');
  try {
    copyFileSync(probe, file);
    chmodSync(dir, 0o755);
    chmodSync(file, 0o4755);
    const { out, end } = await d.run([file, 'whoami'], { host: true, views: [dir] });
    const [, uid, euid] = /^uid (\d+) euid (\d+)$/m.exec(out);
    assert.ok(Number(uid) >= 20000, out);
    assert.equal(uid, euid);
    assert.match(out, /^CapEff:\t0{16}$/m);
    assert.match(out, /^NoNewPrivs:\t1$/m);
    assert.equal(end.code, 0);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

eachDriver('A9: su, chroot and mount of the host do nothing', async (d) => {
  if (d.name !== 'native') return;
  const { out } = await d.run(
    ['sh', '-c', 'for c in "su -c id" "chroot / id" "mount -t tmpfs x /tmp" "unshare -r id"; do $c </dev/null >/dev/null 2>&1 && echo "$c"; done; id -u'],
    { host: true },
  );
  assert.match(out, /^2\d{4}\n$/);
});
