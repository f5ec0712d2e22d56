// Workspaces that outlive their boxes, with real native boxes: an idle box
// goes, its files stay, until the conversation is deleted.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { Home, eventually, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : false;
const homes = [];
const home = (opts) => {
  const h = new Home(opts);
  homes.push(h);
  return h;
};
after(() => homes.forEach((h) => h.removeAll()));

/** The session loses its box as if nobody had used it for a while. */
async function sleepNow(h, s, hold, id) {
  s.tell('release', { h: hold });
  await eventually('it is let go', async () => (await s.stats()).open === 0);
  h.age(id, 16);
  await s.sweep();
  const row = h.sessions().find((r) => r.id === id);
  assert.deepEqual([row.box, row.asleep], [null, true]);
  assert.deepEqual(h.sockets(), []);
}

const keepers = (h) => h.sockets().map((id) => {
  const line = readdirSync('/proc').filter((p) => /^\d+$/.test(p)).find((p) => {
    try {
      return readFileSync(`/proc/${p}/comm`, 'utf8').startsWith('mo-box') &&
        execFileSync('ls', ['-l', `/proc/${p}/fd`], { stdio: ['ignore', 'pipe', 'ignore'] }).includes(h.boxes);
    } catch { return false; }
  });
  return { id, pid: Number(line) };
});

// One line for each name: what is in a tree.
const list = 'find . -mindepth 1 -printf "%P|%y|%m|%s|%l|%n|%T@\\n" | sort';

test('an idle box goes, its files stay', { skip }, async () => {
  const h = home({ warm: 1 });
  const s = await h.server();
  await eventually('a warm box', async () => (await s.stats()).warm === 1);
  const { box, workspace } = await s.hold('a', 'one');
  assert.equal(workspace, 'fresh');
  await s.sh('a', `mkdir -p deep/er empty && echo precious > deep/er/file && chmod 640 deep/er/file &&
    ln deep/er/file linked && ln -s deep/er/file soft && ln -s /nowhere broken && mkfifo pipe &&
    printf x > sparse && truncate -s 2M sparse && printf '#!/bin/sh\\necho runs\\n' > run && chmod 755 run &&
    head -c 200000 /dev/urandom > noise && touch -d 2001-02-03T04:05:06 old && touch "$(printf 'a\\nb')" &&
    touch .hidden && mkdir shut && echo in > shut/in && touch -d 2002-02-02 deep && chmod 0 shut`);
  const before = await s.sh('a', list);
  const sum = await s.sh('a', 'sha256sum noise sparse');
  s.tell('release', { h: 'a' });
  await eventually('it is let go', async () => (await s.stats()).open === 0);
  h.age('one', 16);
  await s.sweep();
  await eventually('only the warm box is left', () => h.sockets().length === 1);
  assert.equal(h.kept().length, 1);
  assert.ok(statSync(join(h.boxes, h.kept()[0])).size < 300_000, 'holes are not written');
  assert.equal(statSync(join(h.boxes, h.kept()[0])).mode & 0o777, 0o600);

  const again = await s.hold('b', 'one');
  assert.deepEqual([again.workspace, again.resumed], ['kept', true]);
  assert.notEqual(again.box, box);
  assert.equal(await s.sh('b', list), before);
  assert.equal(await s.sh('b', 'sha256sum noise sparse'), sum);
  assert.equal(await s.sh('b', './run; echo more >> linked; cat deep/er/file; chmod 700 shut; cat shut/in'),
    'runs\nprecious\nmore\nin\n');
  assert.equal(await s.sh('b', 'find . ! -user "$(id -u)"'), '');
  await s.close();
});

test('they survive kill -9 of the server, then of the keeper', { skip }, async () => {
  const h = home();
  const first = await h.server();
  const { box } = await first.hold('a', 'one');
  await first.sh('a', 'echo precious > file');
  await first.kill();
  const second = await h.server();
  assert.equal((await second.hold('a', 'one')).box, box);
  await second.sh('a', 'echo and more >> file');
  await eventually('it is saved while it runs', () => h.saved('and more'));
  await second.kill();
  for (const { pid } of keepers(h)) process.kill(pid, 'SIGKILL');
  const third = await h.server();
  const ready = await third.hold('a', 'one');
  assert.deepEqual([ready.workspace, ready.box === box], ['kept', false]);
  assert.equal(await third.sh('a', 'cat file'), 'precious\nand more\n');
  third.tell('end', { session: 'one', forget: true });
  assert.equal((await third.next((e) => e.ev === 'ended')).why, null);
  assert.deepEqual([h.kept(), h.remains()], [[], []]);
  await third.close();
});

test('the keeper is killed under a session: it goes on with the saved files', { skip }, async () => {
  const h = home();
  const s = await h.server();
  await s.hold('a', 'one');
  await s.sh('a', 'echo precious > file');
  await eventually('it is saved', () => h.saved('precious'));
  for (const { pid } of keepers(h)) process.kill(pid, 'SIGKILL');
  await s.next((e) => e.ev === 'lost');
  s.tell('use', { h: 'a' });
  const used = await s.next((e) => e.ev === 'used');
  assert.deepEqual([used.why, used.workspace], [null, 'kept']);
  assert.equal(await s.sh('a', 'cat file'), 'precious\n');
  await s.close();
});

test('the limits of a workspace hold before and after', { skip }, async () => {
  const h = home();
  const s = await h.server();
  await s.hold('a', 'one');
  const fill = 'head -c 20M /dev/zero > big; echo $?; stat -c %s big; rm big';
  const [, size] = (await s.sh('a', fill)).split('\n');
  assert.ok(Number(size) <= 8 << 20, `${size} bytes of 8 MiB`);
  await s.sh('a', 'head -c 6M /dev/urandom > most; for i in 1 2 3 4 5 6 7 8; do truncate -s 8M hole$i; done');
  await sleepNow(h, s, 'a', 'one');
  assert.ok(statSync(join(h.boxes, h.kept()[0])).size < 7 << 20);
  await s.hold('a', 'one');
  const [, left] = (await s.sh('a', fill)).split('\n');
  assert.ok(Number(left) <= 2 << 20, `${left} bytes beside 6 MiB of 8`);
  assert.equal((await s.sh('a', 'df --output=itotal . | tail -1')).trim(), '65536');
  s.tell('end', { session: 'one' });
  await s.next((e) => e.ev === 'ended');
  assert.deepEqual([h.kept(), h.remains()], [[], []]);
  await s.close();
});

test('a lower limit does not take files away', { skip }, async () => {
  const h = home();
  const s = await h.server();
  await s.hold('a', 'one');
  await s.sh('a', 'head -c 6M /dev/urandom > most; sha256sum most > sum');
  await sleepNow(h, s, 'a', 'one');
  await s.close();
  const config = JSON.parse(readFileSync(h.config, 'utf8'));
  config.sandbox.workspaceMb = 2;
  writeFileSync(h.config, JSON.stringify(config));
  const t = await h.server();
  assert.equal((await t.hold('a', 'one')).workspace, 'kept');
  assert.equal(await t.sh('a', 'sha256sum -c sum'), 'most: OK\n');
  assert.match(await t.sh('a', 'echo x > more || echo full; rm most; echo x > more && echo fits'), /fits/);
  await t.close();
});

test('hostile trees are kept, and removed', { skip }, async () => {
  const h = home();
  const s = await h.server();
  await s.hold('a', 'one');
  await s.sh('a', `ln -s / root; ln -s /etc/shadow shadow; ln -s ../../../../.. up; ln -s . loop; ln -s self self
    mkdir d; cd d; i=0; while [ $i -lt 400 ]; do mkdir -p d && cd d; i=$((i+1)); done; echo low > low`);
  await s.sh('a', 'mkdir many; cd many; seq 1 4000 | xargs touch; cd ..; chmod 0 many; mkdir -m 0 closed; ls -A | wc -l');
  await s.sh('a', 'echo secret > unreadable; chmod 0 unreadable; touch -- -rf "a b" "*"; python3 -c "import socket;socket.socket(socket.AF_UNIX).bind(\'sock\')" || true');
  await sleepNow(h, s, 'a', 'one');
  await s.hold('a', 'one');
  assert.equal(await s.sh('a', 'readlink root shadow up loop self'), '/\n/etc/shadow\n../../../../..\n.\nself\n');
  assert.equal(await s.sh('a', 'chmod 700 many unreadable; ls many | wc -l; cat unreadable; find d -type d | wc -l'),
    '4000\nsecret\n200\n', 'folders below the 200th level are left out');
  await s.sh('a', 'echo end > end');
  s.tell('end', { session: 'one', forget: true });
  assert.equal((await s.next((e) => e.ev === 'ended')).why, null);
  assert.deepEqual([h.kept(), h.remains()], [[], []]);
  await s.close();
});

test('a sweep removes workspaces of no session, and no others', { skip }, async () => {
  const h = home();
  const s = await h.server();
  await s.hold('a', 'one');
  await s.sh('a', 'echo precious > file');
  await sleepNow(h, s, 'a', 'one');
  const [mine] = h.kept();
  const bytes = readFileSync(join(h.boxes, mine));
  const put = (name, change = (b) => b) => writeFileSync(join(h.boxes, name), change(Buffer.from(bytes)), { mode: 0o600 });
  const store = bytes.subarray(10, 10 + bytes.readUInt16LE(8)).toString();
  put('bdead01.files'); // of the session, but not the one that its row names
  put('bdead02.files', (b) => Buffer.from(b.toString('latin1').replace('one', 'two'), 'latin1')); // of no session
  put('bother.files', (b) => { b[10] ^= 1; return b; }); // of another store
  writeFileSync(join(h.boxes, 'bnothing.files'), 'no head');
  assert.match(store, /^[0-9a-f]+$/);
  await s.sweep();
  assert.deepEqual(h.kept().sort(), [mine, 'bnothing.files', 'bother.files'].sort());
  await s.hold('a', 'one');
  assert.equal(await s.sh('a', 'cat file'), 'precious\n');
  await s.sweep(); // while it is in use
  await s.close();
  const t = await h.server();
  await t.sweep();
  assert.ok(h.kept().includes(mine));
  await t.close();
});

test('a box of a living server that no row names yet is left alone', { skip }, async () => {
  const h = home();
  const [s, t] = await Promise.all([h.server(), h.server()]);
  await s.hold('a', 'one');
  await s.sh('a', 'echo precious > file');
  await eventually('it is saved', () => h.saved('precious'));
  const name = h.kept().find((n) => n.endsWith('.files'));
  const copy = readFileSync(join(h.boxes, name), 'latin1').replace('one', 'new');
  writeFileSync(join(h.boxes, 'bfresh.files'), Buffer.from(copy, 'latin1'));
  await t.sweep();
  assert.ok(h.kept().includes('bfresh.files'), 'its instance lives');
  await s.kill();
  await t.sweep();
  assert.ok(!h.kept().includes('bfresh.files'), 'its instance is dead');
  assert.equal((await t.hold('a', 'one')).workspace, 'kept');
  await t.close();
});

test('damaged files are refused with the reason, and stay', { skip }, async () => {
  const h = home();
  const s = await h.server();
  await s.hold('a', 'one');
  await s.sh('a', 'echo precious > file');
  await sleepNow(h, s, 'a', 'one');
  const file = join(h.boxes, h.kept()[0]);
  assert.match(h.run('state', 'check'), /kept workspaces: 1, \d+ bytes\nok/);
  truncateSync(file, statSync(file).size - 3);
  assert.throws(() => h.run('state', 'check'), (e) => /WRONG: .*\.files: the kept files are damaged/.test(e.stdout));
  await assert.rejects(() => s.hold('b', 'one'), /kept files: the end is missing/);
  assert.deepEqual(h.kept(), [file.split('/').pop()]);
  assert.deepEqual(h.sockets(), []);
  assert.match(h.run('sessions', 'kill', 'one'), /has ended/);
  assert.deepEqual([h.kept(), h.remains()], [[], []]);
  await s.close();
});

test('sandbox.keepFiles false: nothing is kept', { skip }, async () => {
  const h = home({ sandbox: { driver: 'native', warm: 0, memoryMb: 64, workspaceMb: 8, cpus: 1, pids: 32, keepFiles: false } });
  const s = await h.server();
  await s.hold('a', 'one');
  await s.sh('a', 'echo precious > file');
  await sleepNow(h, s, 'a', 'one');
  assert.deepEqual(h.kept(), []);
  assert.equal((await s.hold('a', 'one')).workspace, 'lost');
  assert.equal(await s.sh('a', 'ls -A'), '');
  await s.close();
});

test('files of a mount in the workspace are not taken along', { skip }, async () => {
  const top = mkdtempSync(join(tmpdir(), 'mo-data-'));
  try {
    writeFileSync(join(top, 'table'), 'of the host\n');
    const h = home({ sandbox: { driver: 'native', warm: 0, memoryMb: 64, workspaceMb: 8, cpus: 1, pids: 32, mounts: [`${top}:/workspace/data`] } });
    const s = await h.server();
    await s.hold('a', 'one');
    assert.equal(await s.sh('a', 'cat data/table; echo mine > file'), 'of the host\n');
    await sleepNow(h, s, 'a', 'one');
    assert.deepEqual(h.kept(), []);
    await s.hold('b', 'one'); // a folder that is there already did not let it start
    assert.equal(await s.sh('b', 'cat data/table; ls'), 'of the host\ndata\n');
    await s.close();
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
});
