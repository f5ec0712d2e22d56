// A crowd (lib/crowd.mjs) with native boxes, whose programs are killed. 160 people
// talk, 40 call tools. One minute; ten with MO_LONG=1 (make long).
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { crowd, limit, missing } from '../lib/crowd.mjs';

/** The program in a box, of any of them. */
async function aBox() {
  const found = [];
  for (const pid of (await readdir('/proc')).filter((p) => /^\d+$/.test(p))) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    const root = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
    if (/mo-toolbox/.test(line) && /mo-crowd-[^ ]*\/effects/.test(root) && / \/effects /.test(root)) found.push(Number(pid));
  }
  return found[Math.floor(Math.random() * found.length)];
}

test('nothing is lost, doubled, mixed up or out of order', { skip: missing, timeout: limit }, (t) => crowd(t, {
  talkers: Number(process.env.MO_CROWD ?? 160),
  sandbox: (place) => ({ driver: 'native', warm: 0, mounts: [`${place.effects}:/effects:rw`] }),
  effects: '/effects/box',
  written: (place) => [join(place.effects, 'box')],
  async killBox() {
    const pid = await aBox();
    if (pid) process.kill(pid, 'SIGKILL');
    return pid ? 1 : 0;
  },
}));
