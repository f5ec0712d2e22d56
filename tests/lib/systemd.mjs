// A real systemd as PID 1 of a fresh Debian system: what scripts/systemd-root has
// packed, and namespaces for processes, mounts, host name, IPC and cgroups. The network is
// this machine's, so a test connects as any client. Needs root.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rmdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { until, within } from '../it/server.mjs';
import { good, run, top } from './package.mjs';

// They would change settings of the machine's kernel, or wait for hardware.
const MASKED = ['systemd-sysctl.service', 'systemd-binfmt.service', 'systemd-modules-load.service',
  'systemd-remount-fs.service', 'systemd-random-seed.service', 'systemd-logind.service',
  'systemd-networkd.service', 'systemd-resolved.service', 'systemd-timesyncd.service',
  'console-getty.service', 'getty.target', 'apt-daily.timer', 'apt-daily-upgrade.timer',
  'dpkg-db-backup.timer', 'e2scrub_all.timer', 'network-online.target'];

// Each hierarchy of cgroups gets a group that is the root in there.
const V1 = ['cpu', 'cpuacct', 'memory', 'pids', 'systemd', 'unified'];

const BOOT = `set -e
mount --make-rprivate /
mount --rbind "$0" "$0" && cd "$0"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
mknod -m 666 dev/null c 1 3; mknod -m 666 dev/zero c 1 5; mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8; mknod -m 666 dev/urandom c 1 9; mknod -m 666 dev/tty c 5 0
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd
mount -t tmpfs tmpfs dev/shm
if [ "$1" = v2 ]; then
    mount -t cgroup2 cgroup2 sys/fs/cgroup
else
    mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
    for c in cpu cpuacct memory pids; do
        mkdir sys/fs/cgroup/$c; mount -t cgroup -o $c cgroup sys/fs/cgroup/$c
    done
    mkdir sys/fs/cgroup/systemd sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd,xattr cgroup sys/fs/cgroup/systemd
    mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
fi
mkdir run/old && pivot_root . run/old && umount -l /run/old && rmdir /run/old
exec env -i container=mo PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd \\
    --log-target=journal --show-status=no </dev/null`;

/** Directories of the groups: one per hierarchy, below our own group there. */
async function makeGroups() {
  const name = `mo-systemd-${process.pid}`;
  const own = (await readFile('/proc/self/cgroup', 'utf8')).trim().split('\n').map((l) => l.split(':'));
  if ((await run('stat', ['-f', '-c', '%T', '/sys/fs/cgroup'])).out.trim() === 'cgroup2fs') {
    await writeFile('/sys/fs/cgroup/cgroup.subtree_control', '+cpu +memory +pids');
    await mkdir(`/sys/fs/cgroup/${name}`);
    return { kind: 'v2', dirs: [`/sys/fs/cgroup/${name}`] };
  }
  const dirs = [];
  for (const c of V1) {
    const [, , path] = own.find(([, n]) => n === (c === 'systemd' ? 'name=systemd' : c === 'unified' ? '' : c));
    dirs.push(`/sys/fs/cgroup/${c}${path.replace(/\/$/, '')}/${name}`);
    await mkdir(dirs.at(-1));
  }
  return { kind: 'v1', dirs };
}

export class Machine {
  static async boot(dir) {
    const m = new Machine();
    m.root = join(dir, 'root');
    await mkdir(m.root);
    await good('tar', ['-C', m.root, '-xpf', join(top, 'build-deb/systemd-root.tar')]);
    for (const unit of MASKED) await symlink('/dev/null', join(m.root, 'etc/systemd/system', unit));
    m.groups = await makeGroups();
    const enter = m.groups.dirs.map((d) => `echo $$ >'${d}/cgroup.procs'`).join(' && ');
    m.child = spawn('sh', ['-c', `${enter} && exec setpriv --pdeathsig KILL unshare --pid --mount --uts --ipc --cgroup --fork ` +
      '--kill-child sh -c "$0" "$@"', BOOT, m.root, m.groups.kind], { stdio: ['ignore', 'inherit', 'inherit'] });
    m.exit = once(m.child, 'exit');
    await until(async () => {
      m.pid ??= (await run('pgrep', ['-P', `${m.child.pid}`])).out.trim() || undefined;
      return m.pid && /running|degraded/.test((await m.try('systemctl', 'is-system-running')).out);
    }, 'systemd to be up', 60_000);
    return m;
  }

  /** {code, out, err} of a program in there. */
  try(...command) {
    return run('nsenter', ['-t', this.pid, '-m', '-u', '-i', '-p', '-C', '-r', '-w', '--', ...command]);
  }

  /** What it prints; it must succeed. */
  async do(...command) {
    const r = await this.try(...command);
    assert.equal(r.code, 0, `${command.join(' ')}: ${r.err}${r.out}`);
    return r.out;
  }

  async write(path, text, mode = '644') {
    await mkdir(join(this.root, path, '..'), { recursive: true });
    await writeFile(join(this.root, path), text);
    await this.do('chmod', mode, `/${path}`);
  }

  /** The lines that a unit has logged. */
  log(unit) {
    return this.do('journalctl', '--no-pager', '-o', 'cat', '-u', unit);
  }

  async show(unit, property) {
    return (await this.do('systemctl', 'show', '-p', property, '--value', unit)).trim();
  }

  /** All its processes end with PID 1. */
  async halt() {
    if (this.pid) process.kill(Number(this.pid), 'SIGKILL');
    await within(this.exit, 'the end of PID 1');
    for (const d of this.groups.dirs) {
      const below = (await run('find', [d, '-depth', '-type', 'd'])).out.split('\n').filter(Boolean);
      for (const g of below) await until(() => rmdir(g).then(() => true, () => false), `${g} to be empty`);
    }
  }
}
