// A16: a mount is used to reach more of the host than it names. mo-box itself
// is asked, as root, for another user and with lies that a server which was
// taken over could tell; the folder is exchanged while boxes start; and the
// program in the box tries to write what it may only read.
// There were no mounts before: only copies went into a box.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Native, boxClient, moBox } from '../lib/boxes.mjs';

const d = new Native();
const skip = d.missing() ? `needs ${d.missing()}` : false;
const USER = 19993;
const client = fileURLToPath(new URL('../../build-asan/tests/it/privileged_client', import.meta.url));
const swapper = fileURLToPath(new URL('../../build-asan/tests/it/swap', import.meta.url));

let top, data;
const at = (...names) => join(top, ...names);
const inode = (path) => {
  const st = lstatSync(path, { bigint: true });
  return `${st.dev} ${st.ino}`;
};
const mount = (host, box = '/docs', mode = 'ro') => `${inode(host)} ${host}:${box}:${mode}`;
const sh = (script, mounts, opts = {}) => d.run(['sh', '-c', script], { host: true, mounts, ...opts });

before(() => {
  if (skip) return;
  top = mkdtempSync(join(tmpdir(), 'mo-a16-'));
  chmodSync(top, 0o755);
  data = at('data');
  mkdirSync(data);
  writeFileSync(at('data', 'file'), 'content\n');
  writeFileSync(at('data', 'private'), 'of the owner\n', { mode: 0o600 });
  for (const f of [data, at('data', 'file'), at('data', 'private')]) chownSync(f, USER, USER);
  mkdirSync(at('secret'), { mode: 0o700 });
  writeFileSync(at('secret', 'key'), 'the key\n', { mode: 0o644 });
});
after(async () => {
  if (skip) return;
  assert.deepEqual(await d.clean(), []);
  rmSync(top, { recursive: true, force: true });
});

// --- what it is for ------------------------------------------------------------

test('read-only: everything is read as its owner, nothing is written', { skip }, async () => {
  const { out, err } = await sh('cat /docs/file /docs/private; for c in "echo x > /docs/new" "echo x >> /docs/file" '
    + '"rm -f /docs/file" "chmod 777 /docs/file" "mv /docs/file /docs/b" "ln /docs/file /docs/b" "mkdir /docs/b" '
    + '"touch /docs" "mount -o remount,rw,bind /docs" "umount /docs" "mount --bind /workspace /docs"; '
    + 'do sh -c "$c" 2>/dev/null && echo "DID $c"; done; true', [mount(data)]);
  assert.equal(out, 'content\nof the owner\n', err);
  assert.deepEqual(readdirSync(data).sort(), ['file', 'private']);
  assert.equal(statSync(at('data', 'file')).mode & 0o777, 0o644);
});

test('read-write: new files belong to the owner of the folder', { skip }, async () => {
  const { out, err } = await sh('echo x > /docs/new && mkdir /docs/dir && echo y > /docs/dir/in && cat /docs/private; '
    + 'id -u; stat -c %u /docs/new', [mount(data, '/docs', 'rw')]);
  const [secret, uid, file] = out.trim().split('\n');
  assert.equal(secret, 'of the owner', err);
  assert.equal(uid, file);
  assert.ok(Number(uid) >= 20000);
  for (const f of ['new', 'dir', 'dir/in']) {
    assert.equal(statSync(at('data', f)).uid, USER);
    assert.equal(statSync(at('data', f)).gid, USER);
  }
  rmSync(at('data', 'dir'), { recursive: true });
  rmSync(at('data', 'new'));
});

test('a single file, and a folder instead of the workspace', { skip }, async () => {
  const { out, err } = await sh('cat /note; echo more >> /note; pwd; ls; echo x > here; ls /docs 2>&1',
    [mount(at('data', 'file'), '/note', 'rw'), mount(data, '/workspace', 'rw')]);
  assert.match(out, /^content\n\/workspace\nfile\nprivate\nls: cannot access '\/docs'/, err);
  assert.equal(readFileSync(at('data', 'file'), 'utf8'), 'content\nmore\n');
  assert.equal(statSync(at('data', 'here')).uid, USER);
  writeFileSync(at('data', 'file'), 'content\n');
  rmSync(at('data', 'here'));
});

// --- from inside -----------------------------------------------------------------

const python = '/usr/bin/python3';
test('no setuid file and no device is left on the host', { skip }, async () => {
  const script = `
import os, ctypes, struct
def attempt(f):
    try: f()
    except OSError: pass
attempt(lambda: os.chmod('/docs/file', 0o4755))
attempt(lambda: os.chmod('/docs/file', 0o2755))
attempt(lambda: os.open('/docs/a', os.O_CREAT | os.O_WRONLY, 0o6755))
attempt(lambda: os.mknod('/docs/b', 0o104755))
attempt(lambda: os.mknod('/docs/c', 0o020666, os.makedev(1, 1)))
attempt(lambda: os.setxattr('/docs/file', 'security.capability', bytes(20)))
libc = ctypes.CDLL(None, use_errno=True)
how = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0)
print('openat2', libc.syscall(437, -100, b'/docs/e', how, 24), ctypes.get_errno())
print('fchmodat2', libc.syscall(452, -100, b'/docs/file', 0o4755, 0), ctypes.get_errno())
os.umask(0)
open('/docs/plain', 'w').close(); os.chmod('/docs/plain', 0o777)`;
  const { out, err } = await d.run([python, '-c', script], { host: true, mounts: [mount(data, '/docs', 'rw')], memory: 128 << 20 });
  assert.equal(out, 'openat2 -1 38\nfchmodat2 -1 38\n', err);
  for (const f of readdirSync(data)) {
    const st = lstatSync(at('data', f));
    assert.ok(st.isFile(), f);
    assert.equal(st.mode & 0o6000, 0, f);
    assert.equal(st.uid, USER, f);
  }
  assert.equal(statSync(at('data', 'plain')).mode & 0o777, 0o777, 'plain modes work');
  for (const f of readdirSync(data)) if (!['file', 'private'].includes(f)) unlinkSync(at('data', f));
});

test('links, .. and other users’ files lead nowhere', { skip }, async () => {
  symlinkSync(at('secret', 'key'), at('data', 'out'));
  symlinkSync('../secret', at('data', 'up'));
  writeFileSync(at('data', 'root'), 'of root\n', { mode: 0o600 });
  writeFileSync(at('data', 'open'), 'for all\n', { mode: 0o666 });
  chmodSync(at('data', 'open'), 0o666);
  try {
    const { out } = await sh('cat /docs/out /docs/up/key /docs/../secret/key /docs/root 2>/dev/null; '
      + 'cat /docs/open; echo x >> /docs/open; ls -n /docs/root | cut -d" " -f3', [mount(data, '/docs', 'rw')]);
    assert.equal(out, 'for all\n65534\n');
    assert.equal(readFileSync(at('data', 'open'), 'utf8'), 'for all\n', 'only the owner’s files are written');
  } finally {
    for (const f of ['out', 'up', 'root', 'open']) unlinkSync(at('data', f));
  }
});

// --- what is mounted elsewhere ----------------------------------------------------

test('a folder with another mount in it is refused', { skip }, () => {
  mkdirSync(at('data', 'sub'));
  try {
    const line = (what) => `mount ${what} && exec "$0" run "$1" "$2" "mount=$3" -- cat /docs/sub/key`;
    for (const what of [`--bind ${at('secret')} ${at('data', 'sub')}`, `-t proc proc ${at('data', 'sub')}`, `-t tmpfs x ${at('data', 'sub')}`]) {
      let said = '';
      try {
        execFileSync('unshare', ['-m', 'sh', '-c', line(what), boxClient, moBox, d.dir, mount(data)],
          { env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' }, stdio: 'pipe' });
      } catch (e) {
        said = String(e.stderr) + String(e.stdout);
      }
      assert.match(said, /REFUSED \w+: mount .*data: (something else is mounted in it \(in the box: \/docs\/sub\)|its file system cannot map user ids)/, what);
      assert.doesNotMatch(said, /the key/);
    }
  } finally {
    rmSync(at('data', 'sub'), { recursive: true });
  }
});

test('files of the kernel are refused wherever they are', { skip }, async () => {
  for (const host of ['/proc/self', '/proc', '/sys/kernel', '/dev']) {
    const { err, code } = await sh('ls /docs', [mount(host)]);
    assert.equal(code, 72, host);
    assert.match(err, /^REFUSED/);
  }
});

// --- lies and races ---------------------------------------------------------------

for (const [name, text, why] of [
  ['another inode', () => `1 2 ${data}:/docs:ro`, /replaced meanwhile/],
  ['no inode', () => `${data}:/docs:ro`, /without an inode/],
  ['a link', () => `${inode(data)} ${at('link')}:/docs:ro`, /part of it is a link/],
  ['a link on the way', () => `${inode(at('data', 'file'))} ${at('link', 'file')}:/docs:ro`, /part of it is a link/],
  ['..', () => `${inode(data)} ${at('secret')}/../data:/docs:ro`, /not a plain path/],
  ['a place of the box', () => `${inode(data)} ${data}:/proc:rw`, /its own \/proc/],
  ['programs of the box', () => `${inode(data)} ${data}:/usr/bin:ro`, /its own \/usr/],
  ['a socket', () => `${inode(at('sock'))} ${at('sock')}:/sock:rw`, /neither a folder nor a file/],
])
  test(`refused: ${name}`, { skip }, async () => {
    rmSync(at('link'), { force: true });
    symlinkSync(data, at('link'));
    if (name === 'a socket') execFileSync(python, ['-c', 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])', at('sock')]);
    const { err, code } = await sh('cat /docs/*', [text()]);
    assert.equal(code, 72, err);
    assert.match(err, why);
  });

test('an image whose links lead out cannot place a mount on the host', { skip }, async () => {
  const root = at('image');
  mkdirSync(root, { mode: 0o755 });
  for (const n of ['usr', 'bin', 'lib']) symlinkSync('/nowhere', join(root, n));
  symlinkSync(at('secret'), join(root, 'srv'));
  const { err, code } = await sh('true', [mount(data, '/srv/new')], { root });
  assert.equal(code, 72);
  assert.match(err, /\/srv\/new in the box/);
  assert.deepEqual(readdirSync(at('secret')), ['key']);
});

test('the folder is exchanged for a link while boxes start', { skip, timeout: 120000 }, async () => {
  const spare = at('spare');
  mkdirSync(spare);
  symlinkSync(at('secret'), at('trap'));
  const text = mount(spare);
  // the names `spare` and `trap` change places as fast as the kernel allows
  const swap = spawn(swapper, [at('spare'), at('trap')], { stdio: ['pipe', 'ignore', 'ignore'] });
  try {
    const seen = { ran: 0, refused: 0 };
    for (let i = 0; i < 40; i++) {
      const { out, err, code } = await sh('cat /docs/key', [text]);
      assert.doesNotMatch(out, /the key/);
      if (code === 72) assert.match(err, /is a link|replaced|cannot be opened/);
      seen[code === 72 ? 'refused' : 'ran']++;
    }
    assert.ok(seen.refused > 0, 'the exchange was met');
  } finally {
    swap.kill('SIGKILL');
  }
});

// --- for another user ---------------------------------------------------------------

/** A server that gave up root asks the helper for a box with these mounts. */
async function asUser(mounts, script) {
  const dir = at('boxes');
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  chownSync(dir, USER, USER);
  writeFileSync(at('c.json'), '{}');
  const child = spawn(client, [moBox, dir, String(USER), at('c.json'), 'box', boxClient, dir,
    ...mounts.map((m) => `mount=${m}`), '--', 'sh', '-c', script],
    { stdio: ['pipe', 'pipe', 'pipe'], env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' } });
  let said = '';
  child.stdout.on('data', (b) => (said += b));
  child.stderr.on('data', (b) => (said += b));
  child.stdin.end();
  await new Promise((done) => child.on('close', done));
  return said;
}

test('a server that gave up root: its own rights, no more', { skip }, async () => {
  const own = await asUser([mount(data, '/docs', 'rw')], 'cat /docs/private; echo x > /docs/new; ls -n /docs');
  assert.match(own, /of the owner/);
  assert.equal(statSync(at('data', 'new')).uid, USER);
  unlinkSync(at('data', 'new'));

  // a folder of root that everybody may enter: what is not for all stays closed
  mkdirSync(at('roots'), { mode: 0o755 });
  writeFileSync(at('roots', 'open'), 'for all\n');
  writeFileSync(at('roots', 'closed'), 'for root\n', { mode: 0o600 });
  const roots = await asUser([mount(at('roots'), '/docs', 'rw')],
    'cat /docs/open; cat /docs/closed; echo x >> /docs/open; echo y > /docs/new');
  assert.match(roots, /for all/);
  assert.doesNotMatch(roots, /for root/);
  assert.deepEqual(readdirSync(at('roots')).sort(), ['closed', 'open']);
  assert.equal(readFileSync(at('roots', 'open'), 'utf8'), 'for all\n');

  // behind a door that only root may pass
  const behind = await asUser([mount(at('secret', 'key'), '/key')], 'cat /key');
  assert.match(behind, /refused|REFUSED/);
  assert.match(behind, /Permission denied/);
  assert.doesNotMatch(behind, /the key/);
  assert.doesNotMatch(await asUser([mount('/etc/shadow', '/shadow')], 'cat /shadow'), /root:/);
  // through the descriptors of the process of root
  assert.match(await asUser([`${inode('/root')} /proc/self/cwd/root:/docs:ro`], 'ls /docs'), /REFUSED/);
});
