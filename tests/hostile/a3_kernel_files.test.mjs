// A3: files that command the kernel cannot even be opened for writing, and
// are what they were.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

import { eachDriver } from '../lib/boxes.mjs';

const paths = [
  '/proc/sys/kernel/core_pattern',
  '/proc/sys/kernel/modprobe',
  '/proc/sys/kernel/hostname',
  '/proc/sys/vm/overcommit_memory',
  '/proc/sysrq-trigger',
  '/proc/irq/default_smp_affinity',
  '/proc/1/attr/current',
  '/proc/1/uid_map',
  '/sys/kernel/uevent_helper',
  '/sys/power/state',
  '/sys/fs/cgroup/cgroup.procs',
  '/sys/fs/cgroup/memory/memory.limit_in_bytes',
  '/sys/fs/cgroup/unified/cgroup.procs',
];
const watched = ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname'];

eachDriver('A3: opening is refused already', async (d) => {
  const before = watched.map((p) => readFileSync(p, 'utf8'));
  // Process 1 of a container is the box's own: what it may do to itself.
  const tried = paths.filter((p) => d.name === 'native' || !p.startsWith('/proc/1/'));
  const { out } = await d.run(['write', ...tried]);
  for (const [i, line] of out.trim().split('\n').entries())
    assert.match(line, new RegExp(`^${tried[i]} (EACCES|EPERM|EROFS|ENOENT|ENOTDIR)$`));
  assert.equal(out.trim().split('\n').length, tried.length);
  assert.deepEqual(watched.map((p) => readFileSync(p, 'utf8')), before);
});
