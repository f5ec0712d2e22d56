// A10: a fork bomb of daemons that are deaf to SIGTERM stays within its
// number, does not disturb another box, and is gone after a kill.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

import { eachDriver, eventually, lives } from '../lib/boxes.mjs';

const LIMIT = 40;

function tasksOf(uid) {
  try {
    return execFileSync('ps', ['-U', String(uid), '-o', 'stat=']).toString().trim().split('\n').filter((s) => s && !s.startsWith('Z')).length;
  } catch {
    return 0; // ps finds none
  }
}

eachDriver('A10: a fork bomb', async (d) => {
  const box = await d.start(['bomb'], { pids: LIMIT, cpu_milli: 300 });
  await eventually('the bomb is as big as it gets', () => box.stats().pids === LIMIT);
  for (let i = 0; i < 20; i++) assert.ok(box.stats().pids <= LIMIT);
  assert.ok(tasksOf(box.uid) <= LIMIT + (d.others ?? 0));
  const other = await d.run(['forks', '30'], { pids: 64 });
  assert.equal(other.out, '30\n');
  await box.kill();
  // the answer to kill means: nothing is left
  assert.equal(lives(box.pid), false);
  assert.equal(tasksOf(box.uid), 0);
  assert.equal((await box.ended).end.cause, 'stopped');
});

eachDriver('A10: the number is exact', async (d) => {
  const { out } = await d.run(['forks', '100'], { pids: LIMIT });
  assert.ok(Number(out) < LIMIT && Number(out) >= LIMIT - 3, out);
});
