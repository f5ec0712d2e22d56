// G12: code in a box takes the processor from everybody, by a scheduling policy
// or priority that it asks for or inherits.
// Fails on 953b0b1e: sched_setparam and sched_setattr worked in a box, so that
// with the limits RTPRIO and NICE of its starter, which it kept, it could become
// a realtime process. Fails on 332c3b5a: a box kept the negative niceness of the
// server.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { getPriority, setPriority } from 'node:os';
import { after, test } from 'node:test';

import { Native } from '../lib/boxes.mjs';

const native = new Native();
const lacks = native.missing();
const skip = lacks ? `needs ${lacks}` : false;
after(async () => assert.deepEqual(await native.clean(), []));

// Everything that leads to a higher share; prints what worked. struct
// sched_attr: size, policy, flags, nice, priority.
const ATTACK = `
import ctypes, os, platform, resource, struct
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == 'aarch64'
param = lambda n: struct.pack('i', n)
attr = lambda policy, nice, priority: struct.pack('IIQiIQQQ', 48, policy, 0, nice, priority, 0, 0, 0)
def call(arm64, amd64, *args):
    return libc.syscall(arm64 if arm else amd64, *args) == 0
got = []
def attempt(name, worked):
    if worked: got.append(name)
for name in 'RTPRIO', 'NICE':
    attempt('limit ' + name, any(resource.getrlimit(getattr(resource, 'RLIMIT_' + name))))
attempt('a negative niceness', os.getpriority(os.PRIO_PROCESS, 0) < 0)
attempt('a realtime policy', os.sched_getscheduler(0) not in (0, 3, 5))
for name, policy in ('fifo', 1), ('rr', 2):
    attempt('sched_setscheduler ' + name, call(119, 144, 0, policy, param(1)))
    attempt('sched_setattr ' + name, call(274, 314, 0, attr(policy, 0, 1), 0))
attempt('sched_setparam', call(118, 142, 0, param(0)))
attempt('sched_setattr', call(274, 314, 0, attr(0, 0, 0), 0))
attempt('setpriority', call(140, 141, 0, 0, ctypes.c_int(-10)))
print(','.join(got))
`;

async function assertNothing() {
  const { out, err, end } = await native.run(['python3', '-c', ATTACK], { host: true });
  assert.equal(end?.code, 0, err);
  assert.equal(out, '\n');
}

test('a box takes no more of the processor than others', { skip }, async () => {
  // Root may set such limits, unless this machine is a container.
  const { status } = spawnSync('prlimit', ['--pid', String(process.pid), '--rtprio=50', '--nice=40'], { stdio: 'ignore' });
  if (status === 0) {
    const outside = execFileSync('setpriv', ['--reuid=65534', '--clear-groups', 'python3', '-c', ATTACK], { encoding: 'utf8' });
    assert.match(outside, /sched_setscheduler fifo/, 'with these limits somebody without rights may');
  }
  await assertNothing();
});

test('nor if the server that starts it has more', { skip }, async () => {
  const before = getPriority();
  setPriority(-10);
  try {
    await assertNothing();
  } finally {
    setPriority(before);
  }
});

test('nor if that is a realtime process', { skip }, async () => {
  const me = String(process.pid);
  execFileSync('chrt', ['--all-tasks', '--fifo', '--pid', '1', me]);
  try {
    await assertNothing();
  } finally {
    execFileSync('chrt', ['--all-tasks', '--other', '--pid', '0', me]);
  }
});
