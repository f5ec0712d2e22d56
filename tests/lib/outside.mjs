// What can be seen of boxes and processes from outside.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Until it holds; the deadline only ends a test that has failed anyway. */
export async function eventually(what, holds, ms = 30000) {
  const end = Date.now() + ms;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `never: ${what}`);
    await sleep(10);
  }
}

/** Alive and not a zombie that its parent has not collected yet. */
export function lives(pid) {
  try {
    return !/\nState:\s+Z/.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Every cgroup directory of that name, in whichever hierarchy. */
export function cgroupsOf(id, dir = '/sys/fs/cgroup', depth = 0) {
  let found = [];
  let names;
  try {
    names = readdirSync(dir, { withFileTypes: true });
  } catch {
    return found;
  }
  for (const n of names) {
    if (!n.isDirectory()) continue;
    if (n.name === id) found.push(join(dir, n.name));
    else if (depth < 6) found = found.concat(cgroupsOf(id, join(dir, n.name), depth + 1));
  }
  return found;
}

/** The processes inside a native box, by the uid only it has. */
export const processesOf = (uid) =>
  readdirSync('/proc').filter((p) => /^\d+$/.test(p)).filter((p) => {
    try {
      return new RegExp(`\nUid:\t${uid}\t`).test(readFileSync(`/proc/${p}/status`, 'utf8'));
    } catch {
      return false;
    }
  });

/** The programs (their ids) in native boxes where a directory of that name is
 *  mounted at `place`. */
export function programsInBoxes(name, place) {
  const of = (pid, file) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'utf8');
    } catch {
      return '';
    }
  };
  return readdirSync('/proc').filter((p) => /^\d+$/.test(p) && /mo-toolbox/.test(of(p, 'cmdline'))).filter((p) => {
    const mounts = of(p, 'mountinfo');
    return name.test(mounts) && mounts.includes(` ${place} `);
  }).map(Number);
}
