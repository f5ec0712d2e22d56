// backup, restore and state check: of a state that 0.1.0 has written, while a
// server writes to it, and with files that an attacker made.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, open, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { BIN, until } from './server.mjs';
import { House } from './talk_kit.mjs';

const TAR = fileURLToPath(new URL('../fixtures/state-0.1/state.tar', import.meta.url));
const token = 'a-token-of-the-fixture-0123456789abcdef';

let top;
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'mo-backup-'));
});
after(() => rm(top, { recursive: true, force: true }));

/** A directory with a configuration; with the state of 0.1, or none. */
async function place(name, { filled = true, config = {} } = {}) {
  const dir = join(top, name);
  await mkdir(dir);
  if (filled) {
    await mkdir(join(dir, 'state'), { mode: 0o700 });
    execFileSync('tar', ['-C', join(dir, 'state'), '--no-same-owner', '-xpf', TAR]);
  }
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({ store: { dir: 'state' }, ...config }));
  return dir;
}

const run = (cwd, ...args) =>
  new Promise((resolve) => {
    const env = { PATH: process.env.PATH, HOME: cwd, ASAN_OPTIONS: 'detect_leaks=0' };
    const child = execFile(BIN, args, { cwd, env, encoding: 'buffer', maxBuffer: 1 << 26 }, (error, out, err) =>
      resolve({ code: error ? child.exitCode : 0, bytes: out, out: out.toString(), err: err.toString() }));
  });
const ok = async (...args) => {
  const r = await run(...args);
  assert.equal(r.code, 0, r.err);
  return r;
};
const list = (file) => execFileSync('tar', ['-tf', file], { encoding: 'utf8' }).trim().split('\n').sort();
const check = async (dir) => JSON.parse((await ok(dir, 'state', 'check', '--json')).out);

test('without secrets by default; restored elsewhere, with everything else', async () => {
  const from = await place('plain');
  const file = join(top, 'plain.tar');
  assert.match((await ok(from, 'backup', file)).err, /without secrets/);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.deepEqual(list(file), ['audit.head', 'audit.jsonl', 'audit.key', 'manifest.json', 'pins.json', 'rules.json', 'store.db']);
  const all = await readFile(file);
  for (const secret of ['secrets.key', 'secrets.bin'])
    assert.ok(!all.includes((await readFile(join(from, 'state', secret))).subarray(0, 40)), secret);
  assert.match((await run(from, 'backup', file)).err, /File exists/);

  const to = await place('plain-to', { filled: false });
  await ok(to, 'restore', file);
  assert.match((await ok(to, 'audit', 'verify')).out, /^ok/);
  assert.match((await ok(to, 'audit', 'list')).out, /state = restored/);
  assert.match((await ok(to, 'sessions', 'list')).out, /fixture-one/);
  const [before, now] = [await check(from), await check(to)];
  const database = (facts) => (({ sessions, entries, calls }) => ({ sessions, entries, calls }))(facts.find((f) => f.what === 'database'));
  assert.deepEqual(database(now), database(before));
  assert.equal(now.find((f) => f.what === 'secrets').count, 0);
  assert.deepEqual((await readdir(join(to, 'state'))).filter((f) => /tmp|before/.test(f)), []);
});

test('with secrets, through a pipe', async () => {
  const from = await place('secrets');
  const { bytes, err } = await ok(from, 'backup', '-', '--secrets');
  assert.match(err, /with secrets/);
  const file = join(top, 'secrets.tar');
  await writeFile(file, bytes);
  assert.ok(list(file).includes('secrets.bin') && list(file).includes('secrets.key'));
  const to = await place('secrets-to', { filled: false });
  await ok(to, 'restore', file);
  assert.deepEqual(JSON.parse((await ok(to, 'secrets', 'list', '--json')).out).map((s) => s.name), ['fixture-secret']);
  for (const f of await readdir(join(to, 'state')))
    if (!/notice|run/.test(f)) assert.equal((await stat(join(to, 'state', f))).mode & 0o777, 0o600, f);
});

test('a backup while the server writes is one moment, and a running server is not restored over', async () => {
  const dir = await place('live');
  const house = await House.start({ dir, headers: { authorization: `Bearer ${token}` }, config: { store: { dir: 'state' }, server: { token } } });
  const file = join(top, 'live.tar');
  try {
    const tab = house.tab();
    await tab.ready();
    let n = 0, more = true;
    const talk = (async () => {
      for (; more; n++) {
        house.model.script.push({ text: `answer ${n}` });
        await tab.say(`message ${n}`);
        await tab.event('agent:response', n + 1);
      }
    })();
    await until(() => n > 3, 'messages');
    await ok(dir, 'backup', file);
    more = false;
    await talk;
    const busy = await run(dir, 'restore', file, '--force');
    assert.equal(busy.code, 1);
    assert.match(busy.err, /a server runs with .*: stop it first/);
  } finally {
    await house.stop();
  }
  const to = await place('live-to', { filled: false });
  await ok(to, 'restore', file);
  assert.match((await ok(to, 'audit', 'verify')).out, /^ok/);
  assert.match((await ok(to, 'state', 'check')).out, /\nok\n$/);
});

test('nothing starts in the middle of a restore', async () => {
  const from = await place('middle');
  const file = join(top, 'middle.tar');
  await ok(from, 'backup', '--secrets', file);
  const bytes = await readFile(file);
  const to = await place('middle-to', { filled: false });
  const pipe = join(top, 'middle.pipe');
  execFileSync('mkfifo', [pipe]);
  const restore = run(to, 'restore', pipe);
  const end = await open(pipe, 'w');
  await end.write(bytes.subarray(0, 2048));
  await until(async () => (await readdir(join(to, 'state')).catch(() => [])).some((n) => /^restore-.*\.tmp$/.test(n)), 'the restore to begin');
  for (const args of [['serve', '--port', '0'], ['secrets', 'list'], ['audit', 'verify'], ['backup', join(top, 'x.tar')]]) {
    const r = await run(to, ...args);
    assert.equal(r.code, 1, args.join(' ') + r.out + r.err);
    assert.match(r.err, /a backup is being restored to .*: try again/);
  }
  const second = await run(to, 'restore', file);
  assert.equal(second.code, 1);
  assert.match(second.err, /a server runs with .*: stop it first/);
  assert.equal((await run(to, 'config', 'show')).code, 0);
  await end.write(bytes.subarray(2048));
  await end.close();
  assert.equal((await restore).code, 0);
  assert.match((await ok(to, 'audit', 'verify')).out, /^ok/);

  // and not while a command without a lock of its own is at work
  const key = (await ok(to, 'secrets', 'list')).out;
  assert.match(key, /fixture-secret/);
  const child = execFile(BIN, ['gateway'], { cwd: to, env: { PATH: process.env.PATH, HOME: to, ASAN_OPTIONS: 'detect_leaks=0' } });
  const over = new Promise((resolve) => child.once('exit', resolve));
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const busy = await run(to, 'restore', '--force', file);
  assert.equal(busy.code, 1);
  assert.match(busy.err, /or a gateway, or a command: stop it first/);
  child.stdin.end();
  await over;
  assert.match((await ok(to, 'restore', '--force', file)).err, /files restored/);
});

test('a state that is there is kept; --force moves it aside', async () => {
  const from = await place('force');
  const file = join(top, 'force.tar');
  await ok(from, 'backup', file, '--secrets');
  const r = await run(from, 'restore', file);
  assert.equal(r.code, 1);
  assert.match(r.err, /is not empty .*--force/);
  const rules = await readFile(join(from, 'state/rules.json'));
  await writeFile(join(from, 'state/rules.json'), '{}');
  await ok(from, 'restore', file, '--force');
  assert.deepEqual(await readFile(join(from, 'state/rules.json')), rules);
  const [aside] = (await readdir(join(from, 'state'))).filter((f) => f.startsWith('before-restore-'));
  assert.equal(await readFile(join(from, 'state', aside, 'rules.json'), 'utf8'), '{}');
  assert.match(await readFile(join(from, 'state', aside, 'audit.jsonl'), 'utf8'), /replaced by a backup/);
  assert.match((await ok(from, 'state', 'check')).out, /\nok\n$/);
});

test('Redis is refused with what to do; its files can be taken', async () => {
  const dir = await place('redis', { config: { store: { dir: 'state', url: 'redis://127.0.0.1:1' } } });
  const r = await run(dir, 'backup', join(top, 'redis.tar'));
  assert.equal(r.code, 3);
  assert.match(r.err, /back Redis up by its own means .*--no-store/);
  await ok(dir, 'backup', join(top, 'redis.tar'), '--no-store');
  assert.ok(!list(join(top, 'redis.tar')).includes('store.db'));
});

test('damaged files, files of attackers and newer versions change nothing', async () => {
  const from = await place('bad');
  const good = join(top, 'bad.tar');
  await ok(from, 'backup', good);
  const bytes = await readFile(good);
  const to = await place('bad-to', { filled: false });
  const refuse = async (what, file, says = /no backup, or damaged/) => {
    const r = await run(to, 'restore', file);
    assert.equal(r.code, 1, what);
    assert.match(r.err, says, what);
    assert.deepEqual((await readdir(join(to, 'state'))).filter((n) => n !== 'run'), [], what);
  };
  const put = async (name, data) => (await writeFile(join(top, name), data), join(top, name));
  await refuse('empty', await put('empty', ''));
  await refuse('not a tar', await put('text', 'x'.repeat(5000)));
  for (const n of [100, 512, 5000, bytes.length - 1024, bytes.length - 1500])
    await refuse(`cut at ${n}`, await put('cut', bytes.subarray(0, n)));
  for (const at of [600, 20_000, bytes.lastIndexOf('"sha256":"') + 12]) {
    const bent = Buffer.from(bytes);
    bent[at] ^= 1;
    await refuse(`a bit at ${at}`, await put('bent', bent));
  }
  const manifest = bytes.lastIndexOf('{"backup":1');
  const newer = Buffer.from(bytes);
  newer[manifest + 10] = '2'.charCodeAt(0);
  await refuse('newer', await put('newer', newer), /newer version/);

  const evil = join(top, 'evil');
  await mkdir(join(evil, 'sub'), { recursive: true });
  await writeFile(join(evil, 'x'), 'x');
  await symlink('/etc/passwd', join(evil, 'link'));
  execFileSync('mkfifo', [join(evil, 'fifo')]);
  const tar = (name, ...args) => (execFileSync('tar', ['-C', evil, '-P', '-cf', join(top, name), ...args], { stdio: 'pipe' }), join(top, name));
  await refuse('up', tar('up.tar', '--transform=s,x,../x,', 'x'));
  await refuse('absolute', tar('abs.tar', `--transform=s,x,${top}/escaped,`, 'x'));
  await refuse('in a directory', tar('sub.tar', '--transform=s,x,sub/x,', 'x'));
  await refuse('a symbolic link', tar('link.tar', 'link'));
  execFileSync('ln', [join(evil, 'x'), join(evil, 'y')]);
  await refuse('a hard link', tar('hard.tar', 'x', 'y'));
  await refuse('a directory', tar('dir.tar', 'sub'));
  await refuse('a pipe', tar('fifo.tar', 'fifo'));
  await refuse('without a list', tar('plain-x.tar', 'x'));
  const huge = Buffer.from(bytes);
  huge.write('77777777777\0', 124); // size of the first file: 8 GiB
  huge.write('        ', 148);
  const sum = huge.subarray(0, 512).reduce((a, b) => a + b, 0);
  huge.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  await refuse('a huge size', await put('huge', huge));
  await assert.rejects(stat(join(top, 'escaped')));
});

test('state check finds damage', async () => {
  const says = async (name, damage, what) => {
    const dir = await place(name);
    await damage(join(dir, 'state'));
    const r = await run(dir, 'state', 'check');
    assert.equal(r.code, 1, r.out);
    assert.match(r.out, what);
  };
  const poke = (file, at) => async (state) => {
    const f = await open(join(state, file), 'r+');
    await f.write('X', at);
    await f.close();
  };
  await says('c1', poke('audit.jsonl', 200), /WRONG: audit log/);
  await says('c2', poke('secrets.bin', 100), /WRONG: secrets/);
  await says('c3', async (s) => {
    const f = await open(join(s, 'mcp-orchestrator.db'), 'r+');
    await f.write(Buffer.alloc(8192, 0x5a), 0, 8192, 40960);
    await f.close();
  }, /WRONG: database/);
  await says('c4', (s) => writeFile(join(s, 'state.json'), '{"format":9,"reads":9,"program":"9.8.7"}'), /WRONG: state directory: .*9\.8\.7/);
});
