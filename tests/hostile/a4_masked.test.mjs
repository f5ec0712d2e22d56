// A4: files that tell about the machine give no byte.
import assert from 'node:assert/strict';

import { eachDriver } from '../lib/boxes.mjs';

const paths = [
  '/proc/keys',
  '/proc/kcore',
  '/proc/interrupts',
  '/proc/kallsyms',
  '/proc/timer_list',
  '/proc/sched_debug',
  '/proc/scsi/scsi',
  '/proc/acpi/wakeup',
  '/sys/firmware/fdt',
  '/sys/firmware/acpi/tables/DSDT',
  '/sys/devices/virtual/powercap/uevent',
  '/etc/shadow',
  '/etc/ssl/private',
  '/root',
  '/home',
];

eachDriver('A4: nothing to read', async (d) => {
  const tried = paths.filter((p) => !d.shown?.includes(p));
  const { out } = await d.run(['read', ...tried]);
  assert.deepEqual(out.trim().split('\n'), tried.map((p) => `${p} 0`));
});
