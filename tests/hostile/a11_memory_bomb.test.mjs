// A11: every way to eat memory ends at the box's limit, and only the box
// feels it. The judge is the kernel's own account of the box.
import assert from 'node:assert/strict';

import { eachDriver } from '../lib/boxes.mjs';
import { memoryCauses } from '../lib/dockerd.mjs';

const MIB = 1 << 20;
const LIMIT = 48 * MIB;

async function assertCause(d, id, end) {
  const noticed = await d.noticedMemory(id);
  assert.ok(memoryCauses(noticed).includes(end.cause), `${end.cause}, ${noticed}`);
}

for (const how of ['malloc', 'memfd', 'shm'])
  eachDriver(`A11: ${how}`, async (d) => {
    const { id, out, end } = await d.run(['eat', how, '200'], { memory: LIMIT });
    assert.equal(out, '', 'it got all of it');
    await assertCause(d, id, end);
    assert.equal(end.signal, 9);
  });

eachDriver('A11: files in the workspace count', async (d) => {
  const { id, out, end } = await d.run(['eat', 'tmpfs', '100'], {
    memory: LIMIT,
    workspace: 200 * MIB,
    file_size: 200 * MIB,
  });
  assert.equal(out, '');
  await assertCause(d, id, end);
});

eachDriver('A11: the account never passes the limit', async (d) => {
  const box = await d.start(['sh', '-c', 'while :; do "$0" -c "x=0; while :; do x=\\$x\\$x; done"; done', 'sh'], {
    host: true,
    memory: LIMIT,
    pids: 32,
    cpu_milli: 500,
  });
  let s;
  do s = box.stats();
  while (s.oom_kills < 3);
  assert.ok(s.peak <= LIMIT, `${s.peak} of ${LIMIT}`);
  // a child was killed, the program was not
  assert.equal(box.stats().pids > 0, true);
  await box.kill();
  assert.equal((await box.ended).end.cause, 'stopped');
});
