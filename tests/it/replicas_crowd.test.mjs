// A crowd (lib/crowd.mjs) with native boxes, whose programs are killed. 160 people
// talk, 40 call tools. One minute; ten with MO_LONG=1 (make long).
import { join } from 'node:path';
import { test } from 'node:test';

import { crowd, limit, missing } from '../lib/crowd.mjs';
import { programsInBoxes } from '../lib/outside.mjs';

test('nothing is lost, doubled, mixed up or out of order', { skip: missing, timeout: limit }, (t) => crowd(t, {
  talkers: Number(process.env.MO_CROWD ?? 160),
  sandbox: (place) => ({ driver: 'native', warm: 0, mounts: [`${place.effects}:/effects:rw`] }),
  effects: '/effects/box',
  written: (place) => [join(place.effects, 'box')],
  async killBox() {
    const all = programsInBoxes(/mo-crowd-[^ ]*\/effects/, '/effects');
    const pid = all[Math.floor(Math.random() * all.length)];
    if (pid) process.kill(pid, 'SIGKILL');
    return pid ? 1 : 0;
  },
}));
