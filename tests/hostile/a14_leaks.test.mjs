// A14: what is inherited: three descriptors, the environment that was given,
// and no secret of ours in any byte of the box's memory.
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, readSync, readdirSync } from 'node:fs';

import { eachDriver, eventually } from '../lib/boxes.mjs';

const secret = ['sk', 'mo', process.pid, Date.now().toString(36), 'secret'].join('-');

/** Every readable byte of a process, in pieces. */
function* memory(pid) {
  const fd = openSync(`/proc/${pid}/mem`, 'r');
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
      const m = /^([0-9a-f]+)-([0-9a-f]+) r/.exec(line);
      if (!m || line.includes('[v')) continue;
      const [from, to] = [parseInt(m[1], 16), parseInt(m[2], 16)];
      const piece = Buffer.alloc(Math.min(to - from, 8 << 20));
      try {
        yield piece.subarray(0, readSync(fd, piece, 0, piece.length, from));
      } catch {
        // a page that is not there
      }
    }
  } finally {
    closeSync(fd);
  }
}

const childrenOf = (pid) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);

eachDriver('A14: the environment is what was given', async (d) => {
  const { out } = await d.run(['env'], { env: ['GIVEN=1'], clientEnv: { API_KEY: secret } });
  const lines = out.trim().split('\n');
  assert.ok(lines.includes('GIVEN=1'));
  for (const l of lines) assert.match(l, /^(PATH|HOME|LANG|HOSTNAME|GIVEN)=/);
  assert.ok(!out.includes(secret));
});

eachDriver('A14: three descriptors', async (d) => {
  const { out } = await d.run(['fds']);
  const lines = out.trim().split('\n');
  assert.deepEqual(lines.map((l) => l.split(' ')[0]), ['0', '1', '2']);
  for (const l of lines) assert.match(l, /^\d (pipe:|socket:|\/dev\/null)/);
});

eachDriver('A14: no secret in its memory', async (d) => {
  const box = await d.start(['sleep', '1000'], { host: true, clientEnv: { API_KEY: secret } });
  await eventually('its program', () => childrenOf(box.pid).length > 0);
  const pids = [String(box.pid), ...childrenOf(box.pid)];
  // the keeper is above it; what it does not have, nobody can get from it
  pids.push(/\nPPid:\t(\d+)/.exec(readFileSync(`/proc/${box.pid}/status`, 'utf8'))[1]);
  let bytes = 0;
  for (const pid of pids) {
    assert.ok(!readFileSync(`/proc/${pid}/environ`).includes(secret), `environment of ${pid}`);
    for (const piece of memory(pid)) {
      bytes += piece.length;
      assert.ok(!piece.includes(secret), `memory of ${pid}`);
    }
  }
  assert.ok(bytes > 100000);
  assert.deepEqual(readdirSync(`/proc/${pids[1]}/fd`).sort(), ['0', '1', '2']);
  await box.kill();
});
