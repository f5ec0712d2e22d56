// mo-box by itself: what a box can do, who keeps whom alive, and that nothing
// is ever left behind.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Native, boxClient, cgroupsOf, eventually, lives, moBox, probe } from '../lib/boxes.mjs';

const d = new Native();
const skip = d.missing() ? `needs ${d.missing()}` : false;
const it = (name, body) => test(name, { skip }, body);

after(async () => assert.deepEqual(await d.clean(), []));

const sh = (script, opts = {}) => d.run(['sh', '-c', script], { host: true, ...opts });
const keeperOf = (box) =>
  Number(/\nPPid:\t(\d+)/.exec(readFileSync(`/proc/${box.pid}/status`, 'utf8'))[1]);

// --- what works inside ---------------------------------------------------------

it('a shell, files, pipes and exit codes', async () => {
  const { out, err, end, code } = await sh('pwd; echo a b | wc -w; echo oops >&2; id -un; exit 7');
  assert.equal(out, '/workspace\n2\nbox\n');
  assert.equal(err, 'oops\n');
  assert.equal(end.code, 7);
  assert.equal(code, 7);
});

// A box has a /tmp of its own, which hides what a checkout there could show it.
const missing = (file) => {
  if (file.startsWith('/tmp/')) return 'needs a checkout outside /tmp';
  return existsSync(file) ? false : `needs ${file}`;
};

for (const [name, needs, script, want] of [
  ['python3', '/usr/bin/python3', `/usr/bin/python3 -c 'import subprocess, threading, ssl
t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
print(subprocess.check_output(["echo", "child"]).decode(), end="")'`, 'thread\nchild\n'],
  ['git', '/usr/bin/git', `git init -q r && cd r && echo x > f && git add f &&
git -c user.name=n -c user.email=e commit -qm first && git log --format=%s && git status --short`, 'first\n'],
  ['gcc', '/usr/bin/gcc', `echo '#include <stdio.h>
int main(void) { puts("compiled"); }' > a.c && TMPDIR=/workspace gcc a.c && ./a.out`, 'compiled\n'],
  ['node', process.execPath, `${process.execPath} -e 'const { execSync } = require("child_process");
process.stdout.write(execSync("echo child"));
new (require("worker_threads").Worker)("require(\\"fs\\").writeSync(1, \\"worker\\\\n\\")", { eval: true })'`, 'child\nworker\n'],
])
  test(`${name} works`, { skip: skip || missing(needs) }, async () => {
    const views = name === 'node' ? [dirname(needs)] : []; // the tests' own
    const { out, err } = await sh(script, { memory: 512 << 20, pids: 128, cpu_milli: 2000, views });
    assert.equal(out, want, err);
  });

it('stdin reaches the program, and its end', async () => {
  const box = await d.start(['cat'], { host: true });
  box.stdin.end('hello\n');
  const { out, end } = await box.ended;
  assert.equal(out, 'hello\n');
  assert.equal(end.code, 0);
});

it('a large output comes whole', async () => {
  const { out } = await sh('head -c 3000000 /dev/zero | tr "\\0" x');
  assert.equal(out.length, 3000000);
});

it('background processes end with the program', async () => {
  const { out, end } = await sh('sleep 1000 & setsid sleep 1001 & echo done');
  assert.equal(out, 'done\n');
  assert.equal(end.cause, 'exited');
});

it('an unpacked image as root', async () => {
  const root = mkdtempSync('/tmp/mo-image-');
  try {
    chmodSync(root, 0o755);
    mkdirSync(join(root, 'bin'));
    cpSync(probe, join(root, 'bin/probe'));
    symlinkSync('/etc', join(root, 'dev')); // not what it seems
    symlinkSync('/root', join(root, 'workspace'));
    const { out, err, end } = await d.run(['/bin/probe', 'write', '/workspace/../bin/probe', '/dev/null'], { host: true, root });
    assert.equal(end?.code, 0, err);
    assert.match(out, /^\/workspace\/..\/bin\/probe (EROFS|EACCES|ETXTBSY)\n\/dev\/null ALLOWED\n$/);
    const all = await d.run(['/bin/probe'], { host: true, root });
    assert.equal(all.out, readFileSync(new URL('../hostile/probe.golden', import.meta.url), 'utf8'));
  } finally {
    rmSync(root, { recursive: true });
  }
});

// --- refusals ----------------------------------------------------------------------

for (const [name, argv, opts, why] of [
  ['a program that is not there', ['/nope'], {}, /^REFUSED not_found: cannot run \/nope: No such file/],
  ['a name that is in no directory', ['nope'], {}, /^REFUSED not_found: cannot run nope/],
  ['a directory', ['/usr'], {}, /^REFUSED not_found: cannot run \/usr: Permission denied/],
  ['an image that is not there', ['/x'], { root: '/nope' }, /^REFUSED .*image \/nope/],
])
  it(`refused with the reason: ${name}`, async () => {
    const { err, code, id } = await d.run(argv, { host: true, ...opts });
    assert.match(err, why);
    assert.equal(code, 72);
    assert.deepEqual(cgroupsOf(id), []);
  });

it('a limit that cannot be kept is refused', async () => {
  // no cgroup filesystem in sight: nothing could hold the limits
  const r = spawnSync('unshare', ['-m', 'sh', '-c',
    `umount -l /sys/fs/cgroup && exec "$0" run "$1" "$2" -- /bin/true`, boxClient, moBox, d.dir],
    { env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' } });
  assert.match(String(r.stderr), /^REFUSED (unavailable|unavail).*pids, memory and cpu/);
  assert.equal(r.status, 72);
});

it('the same id twice is refused', async () => {
  const box = await d.start(['sleep', '1000'], { host: true });
  const r = spawnSync(boxClient, ['run', moBox, d.dir, `id=${box.id}`, '--', '/bin/true'],
    { env: { ASAN_OPTIONS: 'detect_leaks=0' } });
  assert.match(String(r.stderr), /^REFUSED exists/);
  assert.equal(d.ask('describe', box.id).state, 0, 'the first is unharmed');
  box.kill();
});

it('a directory that others may enter is refused', () => {
  const dir = mkdtempSync('/tmp/mo-open-');
  chmodSync(dir, 0o755);
  const r = spawnSync(boxClient, ['run', moBox, dir, '--', '/bin/true'], { env: { ASAN_OPTIONS: 'detect_leaks=0' } });
  rmSync(dir, { recursive: true });
  assert.match(String(r.stderr), /^REFUSED policy: .*0700/);
});

// --- life -----------------------------------------------------------------------------

it('the orchestrator dies, the box lives and is found again', async () => {
  const box = await d.start(
    ['sh', '-c', 'echo first > f; while read l; do echo "got $l"; done; cat f'],
    { host: true });
  box.stdin.write('one\n');
  await eventually('an answer', () => box.out() === 'got one\n');
  // SIGKILL to who started it
  box.client.kill('SIGKILL');
  await box.ended;
  await eventually('nobody is attached', () => d.ask('describe', box.id).attached === 0);
  assert.equal(lives(box.pid), true);
  const again = spawnSync(boxClient, ['attach', d.dir, box.id],
    { input: 'two\n', env: { ASAN_OPTIONS: 'detect_leaks=0' } });
  assert.equal(String(again.stdout), 'got two\nfirst\n');
  assert.match(String(again.stderr), /^END {"cause":"exited","code":0/);
});

it('a second client takes over, the first is told', async () => {
  const box = await d.start(['cat'], { host: true });
  const second = spawn(boxClient, ['attach', d.dir, box.id],
    { stdio: ['pipe', 'pipe', 'ignore'], env: { ASAN_OPTIONS: 'detect_leaks=0' } });
  const first = await box.ended;
  assert.equal(first.code, 74);
  assert.match(first.err, /^TAKEN/m);
  second.stdin.end('x');
  let out = '';
  for await (const c of second.stdout) out += c;
  assert.equal(out, 'x');
});

it('the workspace survives the program, oom too', async () => {
  const box = await d.run(['eat', 'malloc', '100'], { memory: 32 << 20, keep: true });
  assert.deepEqual([box.end.cause, box.end.kept], ['oom', 1]);
  const restart = (argv) => spawnSync(boxClient, ['restart', d.dir, box.id, 'keep=1', '--', ...argv],
    { env: { ASAN_OPTIONS: 'detect_leaks=0' }, input: '' });
  assert.equal(restart(['sh', '-c', 'echo kept > f; sleep 1000 & kill -9 $$']).status, 71);
  const r = restart(['sh', '-c', 'cat f; ls /tmp; ps -e -o comm= | grep -c sleep']);
  assert.equal(String(r.stdout), 'kept\n0\n');
  assert.equal(d.ask('describe', box.id).starts, 3);
  assert.equal(d.ask('kill', box.id).cause, 'stopped');
  assert.deepEqual(cgroupsOf(box.id), []);
});

it('frozen: nothing moves; thawed: it goes on', async () => {
  const box = await d.start(['sh', '-c', 'i=0; while :; do i=$((i+1)); echo $i; done'], { host: true, cpu_milli: 200, keep: true });
  await eventually('it counts', () => box.out().length > 100);
  assert.equal(d.ask('freeze', box.id).state, 1);
  const cpu = box.stats().cpu_us;
  await sleep(50);
  assert.equal(box.stats().cpu_us, cpu);
  assert.equal(d.ask('thaw', box.id).state, 0);
  await eventually('it counts again', () => box.stats().cpu_us > cpu);
  d.ask('freeze', box.id);
  process.kill(box.pid, 'SIGKILL'); // also the frozen can be killed
  await eventually('it ended', () => d.ask('describe', box.id).state === 2);
  // and what comes after it is not frozen
  const again = spawnSync(boxClient, ['restart', d.dir, box.id, '--', 'echo', 'awake'],
    { env: { ASAN_OPTIONS: 'detect_leaks=0' }, input: '' });
  assert.equal(String(again.stdout), 'awake\n', String(again.stderr));
  assert.equal(lives(box.pid), false);
});

it('nobody comes back: it goes by itself', async () => {
  const box = await d.start(['sleep', '1000'], { host: true });
  assert.equal(d.ask('label', box.id, 's2', '200').session, 's2');
  box.client.kill('SIGKILL');
  await eventually('the socket is gone', () => !existsSync(join(d.dir, `${box.id}.sock`)));
  assert.equal(lives(box.pid), false);
  assert.deepEqual(cgroupsOf(box.id), []);
});

it('past its time with nobody attached: it goes', async () => {
  const id = `exp${process.pid}`;
  d.ids.add(id);
  const expires = Math.floor(Date.now() / 1000) + 1;
  execFileSync(boxClient, ['run', moBox, d.dir, `id=${id}`, `expires=${expires}`, 'detach=1', '--', 'sleep', '1000'],
    { env: { ASAN_OPTIONS: 'detect_leaks=0' } });
  await eventually('it is gone', () => !existsSync(join(d.dir, `${id}.sock`)));
  assert.ok(Date.now() / 1000 >= expires);
  assert.deepEqual(cgroupsOf(id), []);
});

it('a box that can no longer be found goes', async () => {
  const box = await d.start(['sleep', '1000'], { host: true });
  box.client.kill('SIGKILL');
  await box.ended;
  rmSync(join(d.dir, `${box.id}.sock`));
  await eventually('it is dead', () => !lives(box.pid) && cgroupsOf(box.id).length === 0);
});

it('SIGTERM to the keeper ends the box', async () => {
  const box = await d.start(['sleep', '1000'], { host: true });
  process.kill(keeperOf(box), 'SIGTERM');
  assert.equal((await box.ended).end.cause, 'stopped');
  assert.equal(lives(box.pid), false);
  assert.deepEqual(cgroupsOf(box.id), []);
});

it('SIGKILL to the keeper ends the box; the sweep takes the rest', async () => {
  const box = await d.start(['sh', '-c', 'trap "" TERM; setsid sleep 1000 & sleep 1001'], { host: true });
  const living = await d.start(['sleep', '1000'], { host: true });
  const inside = readFileSync(`/proc/${box.pid}/task/${box.pid}/children`, 'utf8').trim();
  process.kill(keeperOf(box), 'SIGKILL');
  await eventually('the box is dead', () => !lives(box.pid) && !lives(inside));
  await box.ended;
  assert.equal(String(execFileSync(moBox, ['--sweep', d.dir])), '1\n');
  assert.deepEqual(cgroupsOf(box.id), []);
  assert.equal(existsSync(join(d.dir, `${box.id}.sock`)), false);
  assert.equal(d.ask('describe', living.id).state, 0, 'the living one is left alone');
  living.kill();
});

/** Processes that run this very file. */
const running = (exe) =>
  readdirSync('/proc').filter((n) => {
    try {
      return /^\d+$/.test(n) && readlinkSync(`/proc/${n}/exe`) === exe;
    } catch {
      return false;
    }
  });

it('keepers killed at any moment of their start leave nothing', async () => {
  const own = join(d.home, 'mo-box'); // nobody else's keepers
  cpSync(moBox, own);
  const ids = [];
  for (let i = 0; i < 40; i++) {
    const id = `kill${process.pid}n${i}`;
    ids.push(id);
    d.ids.add(id);
    const child = spawn(boxClient, ['run', own, d.dir, `id=${id}`, '--', 'sleep', '1000'],
      { stdio: 'ignore', env: { ASAN_OPTIONS: 'detect_leaks=0' } });
    const closed = once(child, 'close');
    await eventually('it began', () => running(own).length > 0 || child.exitCode !== null);
    await sleep(Math.random() * 12);
    for (let left = running(own); left.length; left = running(own))
      for (const pid of left)
        try {
          // process 1 of a box runs the same file: only keepers are killed
          if (!/\nNSpid:\t\d+\t/.test(readFileSync(`/proc/${pid}/status`, 'utf8')))
            process.kill(Number(pid), 'SIGKILL');
        } catch {
          // it was faster
        }
    await closed;
  }
  await eventually('all are dead', () => running(own).length === 0);
  execFileSync(moBox, ['--sweep', d.dir]);
  for (const id of ids) assert.deepEqual(cgroupsOf(id), [], id);
  // a socket that had no name yet is swept when it is old
  for (const n of readdirSync(d.dir).filter((f) => f.endsWith('.new'))) rmSync(join(d.dir, n));
  rmSync(own);
});

it('a box cannot untie itself, nor reach its first process', async () => {
  const box = await d.start(
    ['/usr/bin/python3', '-c',
      'import ctypes, os, signal, time; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\n' +
      'for s in (9, 15, 19):\n  os.kill(1, s)\n' +
      'for f in ("environ", "mem", "exe", "root", "fd/3"):\n  assert not os.access("/proc/1/" + f, os.R_OK), f\n' +
      'print("tried", flush=True); time.sleep(1000)'],
    { host: true, memory: 128 << 20 });
  await eventually('it tried', () => box.out() === 'tried\n');
  assert.equal(lives(box.pid), true);
  process.kill(keeperOf(box), 'SIGKILL');
  await eventually('the box is dead', () => !lives(box.pid));
  await box.ended;
  execFileSync(moBox, ['--sweep', d.dir]);
});

it('many at once: no two share a user, none sees another', async () => {
  const boxes = await Promise.all(
    Array.from({ length: 24 }, (_, i) =>
      d.start(['sh', '-c', `echo ${i} > f; cat; cat f; ls /workspace | wc -l; ps -e -o comm= | wc -l`], { host: true })));
  assert.equal(new Set(boxes.map((b) => b.uid)).size, boxes.length);
  for (const b of boxes) b.stdin.end();
  for (const [i, b] of boxes.entries())
    assert.match((await b.ended).out, new RegExp(`^${i}\\n1\\n[2-5]\\n$`));
});

// --- a network ------------------------------------------------------------------------

/** Every address is local, the ports of the box listen, the rest is refused. */
const network = `import errno, socket
def tcp(host, port):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    return errno.errorcode.get(s.connect_ex((host, port)), "open")
print(*[tcp(h, p) for h in ("1.2.3.4", "127.0.0.1", "2001:db8::1") for p in (80, 8443, 53, 81)])
def made(*a):
    try: socket.socket(*a); return "made"
    except OSError as e: return errno.errorcode[e.errno]
print(made(socket.AF_INET, socket.SOCK_RAW, 1), made(socket.AF_NETLINK, socket.SOCK_RAW, 0), made(socket.AF_PACKET, socket.SOCK_RAW, 0))
print(open("/etc/resolv.conf").read(), end="")`;
const networkWant = `${'open open open ECONNREFUSED '.repeat(3).trim()}
EPERM EPERM EPERM
nameserver 127.0.0.1
`;

test('ports=: a network in which every address is local', {
  skip: skip || (existsSync('/usr/bin/python3') ? false : 'needs /usr/bin/python3'),
}, async () => {
  const { out, err } = await d.run(['/usr/bin/python3', '-c', network], { host: true, ports: '80,8443' });
  assert.equal(out, networkWant, err);
  for (const ports of ['0', '80,', '65536', 'x', Array.from({ length: 33 }, (_, i) => i + 100).join()]) {
    const bad = spawnSync(boxClient, ['run', moBox, d.dir, `ports=${ports}`, '--', '/bin/true'],
      { env: { ASAN_OPTIONS: 'detect_leaks=0' } });
    assert.match(String(bad.stderr), /REFUSED|out of its bounds/, ports);
  }
});

/** A program that an image can run alone. */
const busybox = () => (/not a dynamic executable/.test(String(spawnSync('ldd', ['/bin/busybox']).stderr)) ? false
  : 'needs a static /bin/busybox');

test('ports=: the name server of an image is replaced', { skip: skip || busybox() }, async () => {
  const root = mkdtempSync('/tmp/mo-image-');
  const look = () => d.run(['/bin/busybox', 'sh', '-c', 'busybox cat /etc/resolv.conf; busybox ls -A /'],
    { host: true, root, ports: '443', env: ['PATH=/bin'] });
  try {
    chmodSync(root, 0o755);
    for (const f of ['bin', 'etc']) mkdirSync(join(root, f));
    cpSync('/bin/busybox', join(root, 'bin/busybox'));
    writeFileSync(join(root, 'etc/resolv.conf'), 'nameserver 9.9.9.9\n');
    const { out, err } = await look();
    assert.equal(out, 'nameserver 127.0.0.1\nbin\ndev\netc\nproc\ntmp\nworkspace\n', err);
    rmSync(join(root, 'etc/resolv.conf'));
    symlinkSync('../run/systemd/resolve/stub-resolv.conf', join(root, 'etc/resolv.conf'));
    assert.match((await look()).err, /resolv.conf.*No such file/);
  } finally {
    rmSync(root, { recursive: true });
  }
});

// --- as an ordinary user -------------------------------------------------------------

/** Everything an ordinary user needs, in a directory of its own. */
function asUser(body) {
  const home = mkdtempSync('/tmp/mo-user-');
  const uid = 40000 + (process.pid % 10000);
  try {
    for (const f of [moBox, boxClient]) cpSync(f, join(home, f.split('/').at(-1)));
    mkdirSync(join(home, 'boxes'), { mode: 0o700 });
    for (const f of ['', 'boxes', 'mo-box', 'box_client']) chownSync(join(home, f), uid, uid);
    chmodSync(home, 0o755);
    const argv = [join(home, 'box_client'), 'run', join(home, 'mo-box'), join(home, 'boxes')];
    body(argv, { uid, gid: uid, env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' } });
    assert.deepEqual(readdirSync(join(home, 'boxes')), []);
  } finally {
    rmSync(home, { recursive: true });
  }
}

it('an ordinary user without a cgroup is refused with the reason', () => {
  asUser(([file, ...args], opts) => {
    const r = spawnSync(file, [...args, '--', '/bin/true'], opts);
    assert.match(String(r.stderr), /^REFUSED .*(delegated group|Delegate=yes)/);
    assert.equal(r.status, 72);
  });
});

/** Our own group in each hierarchy that limits boxes: directories. */
function ownGroups() {
  const own = Object.fromEntries(readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n').flatMap((l) => {
    const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(l);
    return names.split(',').map((n) => [n, path]);
  }));
  const v1 = readFileSync('/proc/self/mountinfo', 'utf8').split('\n').flatMap((l) => {
    const m = /^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup \S+ (\S+)$/.exec(l);
    const name = m?.[3].split(',').find((n) => ['pids', 'memory', 'cpu'].includes(n));
    return name && own[name].startsWith(m[1] === '/' ? '' : m[1]) ? [join(m[2], own[name])] : [];
  });
  return v1.length === 3 ? v1 : null;
}

test('an ordinary user with groups of its own gets a box', {
  skip: skip || (ownGroups() ? false : 'needs cgroup v1 controllers'),
}, () => {
  const dirs = ownGroups().map((g) => join(g, `mo-user-${process.pid}`));
  try {
    asUser((argv, { uid, env }) => {
      for (const g of dirs) {
        mkdirSync(g);
        for (const f of ['', 'cgroup.procs', 'tasks']) chownSync(join(g, f), uid, uid);
      }
      const enter = dirs.map((g) => `echo $$ > ${g}/cgroup.procs`).join(' && ');
      const r = spawnSync('sh', ['-c', `${enter} && exec setpriv --reuid ${uid} --regid ${uid} --clear-groups "$@"`, 'sh',
        ...argv, `by_fd=${probe}`, '--', 'probe'], { env });
      assert.equal(r.status, 0, String(r.stderr));
      assert.equal(String(r.stdout), readFileSync(new URL('../hostile/probe.golden', import.meta.url), 'utf8'));
      const f = spawnSync('sh', ['-c', `${enter} && exec setpriv --reuid ${uid} --regid ${uid} --clear-groups "$@"`, 'sh',
        ...argv, 'pids=20', '--', 'sh', '-c', 'id -u; echo x > f && cat f; cat /proc/self/uid_map'], { env });
      assert.match(String(f.stdout), new RegExp(`^20000\nx\n *20000 +${uid} +1\n$`), String(f.stderr));
      const left = spawnSync('sh', ['-c', `${enter} && exec setpriv --reuid ${uid} --regid ${uid} --clear-groups "$@"`, 'sh',
        ...argv, 'id=left', 'linger_ms=60000', 'detach=1', '--', 'sleep', '1000'], { env });
      assert.equal(left.status, 0, String(left.stderr));
      for (const [word, want] of [['describe', /"attached":0/], ['kill', /"cause":"stopped"/]]) {
        const r = spawnSync('setpriv', ['--reuid', uid, '--regid', uid, '--clear-groups', argv[0], word, argv[3], 'left'], { env });
        assert.match(String(r.stdout) + r.stderr, want);
      }
      const run = (...more) => spawnSync('sh', ['-c', `${enter} && exec setpriv --reuid ${uid} --regid ${uid} --clear-groups "$@"`, 'sh',
        ...argv, ...more], { env });
      const kept = join(argv[3], 'bkept.files');
      const wrote = run('files=bkept', '--', 'sh', '-c', 'mkdir d && echo precious > d/f && chmod 0 d/f d && ln -s d s');
      assert.equal(wrote.status, 0, String(wrote.stderr));
      assert.deepEqual([statSync(kept).uid, statSync(kept).mode & 0o777], [uid, 0o600]);
      const read = run('files=bkept', '--', 'sh', '-c', 'stat -c "%a %u" d; readlink s; chmod 700 d; chmod 600 d/f; cat d/f; head -c 100M /dev/zero > big; stat -c %s big');
      const lines = String(read.stdout).split('\n');
      assert.deepEqual(lines.slice(0, 3), ['0 20000', 'd', 'precious'], String(read.stderr));
      assert.ok(Number(lines[3]) < 100 << 20, `${lines[3]} bytes: the limit holds`);
      rmSync(kept);
      const docs = mkdtempSync('/tmp/mo-docs-');
      try {
        chmodSync(docs, 0o755);
        chownSync(docs, uid, uid);
        writeFileSync(join(docs, 'root'), 'of root\n', { mode: 0o600 });
        const st = statSync(docs, { bigint: true });
        const m = spawnSync('sh', ['-c', `${enter} && exec setpriv --reuid ${uid} --regid ${uid} --clear-groups "$@"`, 'sh',
          ...argv, `mount=${st.dev} ${st.ino} ${docs}:/docs:rw`, `mount=${st.dev} ${st.ino} ${docs}:/ro:ro`, '--',
          'sh', '-c', 'echo x > /docs/new; cat /ro/new; cat /docs/root; echo y > /ro/other; ls /docs'], { env });
        assert.equal(String(m.stdout), 'x\nnew\nroot\n', String(m.stderr));
        assert.equal(statSync(join(docs, 'new')).uid, uid);
      } finally {
        rmSync(docs, { recursive: true });
      }
      if (!existsSync('/usr/bin/python3')) return;
      const n = spawnSync('sh', ['-c', `${enter} && exec setpriv --reuid ${uid} --regid ${uid} --clear-groups "$@"`, 'sh',
        ...argv, 'ports=80,8443', '--', '/usr/bin/python3', '-c', network], { env });
      assert.equal(String(n.stdout), networkWant, String(n.stderr));
    });
  } finally {
    for (const g of dirs) spawnSync('rmdir', [join(g, 'mo-box'), g]);
  }
  for (const g of dirs) assert.equal(existsSync(g), false, g);
});
