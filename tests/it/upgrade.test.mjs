// The state directory that 0.1.0 has written (tests/fixtures), opened by the
// program under test: everything is there. And what newer versions have written
// is left alone.
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { BIN, Server, until, within } from './server.mjs';
import { House, run as command } from './talk_kit.mjs';

const TAR = fileURLToPath(new URL('../fixtures/state-0.1/state.tar', import.meta.url));
const headers = { authorization: 'Bearer a-token-of-the-fixture-0123456789abcdef' };

let dir;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-upgrade-'));
  await unpack(dir);
});
after(() => rm(dir, { recursive: true, force: true }));

async function unpack(to) {
  await mkdir(join(to, 'state'), { mode: 0o700 });
  execFileSync('tar', ['-C', join(to, 'state'), '--no-same-owner', '-xpf', TAR]);
  await writeFile(join(to, 'mcp-orchestrator.json'), JSON.stringify({ store: { dir: 'state' } }));
}

/** A command to its end: {code, out, err}. */
const run = (at, ...args) => runAs(BIN, at, ...args);
const runAs = (bin, at, ...args) =>
  new Promise((resolve) => {
    const env = { PATH: process.env.PATH, HOME: at, ASAN_OPTIONS: 'detect_leaks=0' };
    const child = execFile(bin, args, { cwd: at, env }, (error, out, err) =>
      resolve({ code: error ? child.exitCode : 0, out, err }));
  });
const json = (r) => (assert.equal(r.code, 0, r.err), JSON.parse(r.out));

test('commands read what 0.1 has written', async () => {
  assert.match((await run(dir, 'audit', 'verify')).out, /^ok: \d+ rows/);
  assert.deepEqual(json(await run(dir, 'secrets', 'list', '--json')).map((s) => s.name), ['fixture-secret']);
  assert.match((await run(dir, 'sessions', 'list')).out, /fixture-one/);
});

test('a server goes on with the sessions, rules and pending calls of 0.1', async () => {
  const house = await House.start({ dir, headers, config: { store: { dir: 'state' }, server: { token: 'a-token-of-the-fixture-0123456789abcdef' } } });
  let kept;
  try {
    const { body } = await house.get('/api/sessions/fixture-one/history');
    const text = JSON.stringify(body);
    for (const part of ['write an apple', 'answer to write an apple', 'run a command', 'echo hello'])
      assert.ok(text.includes(part), part);
    const rules = (await house.get('/api/rules')).body.rules;
    assert.deepEqual(rules.map((r) => [r.server, r.tool, r.action]), [['box', 'write_file', 'allow']]);
    assert.deepEqual((await house.get('/api/tokens')).body.tokens.map((t) => t.name), ['fixture-token']);
    assert.ok(JSON.parse(await readFile(join(dir, 'state/pins.json'), 'utf8')), 'pins');
    const rows = (await house.get('/api/audit?limit=1000')).body.rows;
    assert.ok(rows.some((r) => r.sessionId === 'fixture-two'), 'rows of before');

    // the call that waited is still a card, and can be decided
    const tab = house.tab({ session: 'fixture-two' });
    const card = (await tab.ready()).history.pending[0] ?? (await tab.event('tool:approval_required'))[0];
    house.model.script.push({ text: 'it was waited for' });
    await tab.decide(card, true);
    await tab.event('agent:response');

    kept = JSON.parse(await readFile(join(dir, 'state/state.json'), 'utf8'));
  } finally {
    await house.stop();
  }
  assert.deepEqual(kept, { format: 2, reads: 1, program: '0.1.0' });
});

test('doctor tells the versions, and of servers that speak another protocol', async () => {
  const at = await mkdtemp(join(tmpdir(), 'mo-upgrade-'));
  const versions = async () => JSON.parse((await run(at, 'doctor', '--json')).out).checks.find((c) => c.name === 'versions');
  try {
    await unpack(at);
    const fine = await versions();
    assert.equal(fine.health, 'ok');
    assert.equal(fine.text, 'state directory: format 1, database: format 5');
    const db = new DatabaseSync(join(at, 'state/mcp-orchestrator.db'));
    db.exec(`INSERT INTO mark VALUES ('peer:other', '{"unix":"/x","protocol":[3,4]}')`);
    db.close();
    const mixed = await versions();
    assert.equal(mixed.health, 'warn');
    assert.match(mixed.text, /server other speaks versions 3 to 4 between servers/);
  } finally {
    await rm(at, { recursive: true });
  }
});

test('a state directory of a newer version', async () => {
  const at = await mkdtemp(join(tmpdir(), 'mo-upgrade-'));
  const record = (format, reads) => writeFile(join(at, 'state/state.json'), JSON.stringify({ format, reads, program: '9.8.7' }));
  try {
    await unpack(at);
    await record(3, 2); // the next one, which allows it
    assert.equal((await run(at, 'secrets', 'list')).code, 0);
    for (const [format, reads] of [[3, 3], [4, 2]]) {
      await record(format, reads);
      const doctor = JSON.parse((await run(at, 'doctor', '--json')).out);
      assert.match(JSON.stringify(doctor), /written by version 9\.8\.7/);
      for (const args of [['secrets', 'list'], ['audit', 'verify'], ['serve', '--port', '0']]) {
        const r = await run(at, ...args);
        assert.equal(r.code, 3, r.out);
        assert.match(r.err, new RegExp(`state directory .*: written by version 9\\.8\\.7 \\(format ${format}\\); version .* knows format 2: start the newer version, or restore a backup of this one \\(docs/upgrade\\.md\\)`));
      }
      assert.equal((await run(at, 'config', 'show')).code, 0);
    }
  } finally {
    await rm(at, { recursive: true });
  }
});

// The same program with the next formats: the state directory may be used by 0.1,
// the database may not.
const NEXT = join(process.env.MO_BUILD ?? fileURLToPath(new URL('../../build-asan', import.meta.url)), 'tests/it/next_version');

/** The sockets of the keepers of boxes: of the same processes, if they are the same. */
async function boxes(dir) {
  const at = join(dir, 'state/boxes');
  const names = (await readdir(at)).filter((n) => n.endsWith('.sock')).sort();
  return Promise.all(names.map(async (n) => `${n} ${(await stat(join(at, n))).ino}`));
}

test('0.1 is replaced by 0.2 with sessions open, and cannot be put back', async (t) => {
  const house = await House.start({
    oneProcess: 'the boxes of one server are counted',
    config: { store: { dir: 'state' }, approvals: { timeoutSeconds: 600 } },
  });
  t.after(() => house.stop());
  const set = spawnSync(BIN, ['secrets', 'set', 'of-0.1'], { cwd: house.dir, input: 'a value of 0.1', encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: house.dir, ASAN_OPTIONS: 'detect_leaks=0' } });
  assert.equal(set.status, 0, set.stderr);

  // a rule that is remembered, a call that waits, a call that runs
  const [one, two, three] = [house.tab(), house.tab(), house.tab()];
  for (const tab of [one, two, three]) await tab.ready();
  house.model.script.push({ calls: [{ name: 'write_file', args: { path: 'kept', content: 'of 0.1' } }] }, { text: 'written' });
  await one.say('write');
  const [first] = await one.event('tool:approval_required');
  await one.decide(first, true, { remember: 'always' });
  await one.event('agent:response');
  await house.inBox(three, 'echo ready');
  house.model.script.push({ calls: [command('echo it waited')] });
  await two.say('wait');
  const [card] = await two.event('tool:approval_required');
  house.model.script.push({ calls: [command('echo begun >>times; sleep 6; echo finished')] });
  await three.say('work');
  const [work] = await three.event('tool:approval_required', 2);
  // an answer that 0.1 does not live to hear: only 0.2 may ask for it
  let speak;
  house.model.script.push({ text: 'the work is done', wait: new Promise((resolve) => (speak = resolve)) });
  const asked = () => house.model.requests.filter((r) => JSON.stringify(r.body).includes('finished\\n')).length;
  await three.decide(work, true);
  await until(() => execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).includes('sleep 6'), 'the call to run');

  const rules = async () => (await house.get('/api/rules')).body.rules;
  const before = await rules();
  assert.equal(before.length, 1);
  const were = await boxes(house.dir);
  assert.equal(were.length, 3);
  house.server.signal('SIGTERM');
  const end = await within(house.server.exit, 'the end of 0.1', 40_000);
  assert.equal(end.code, 0, house.server.log);
  assert.deepEqual(await boxes(house.dir), were, 'boxes live on');
  speak();
  assert.equal(asked(), 0, 'it asked nothing at its end');
  const pins = await readFile(join(house.dir, 'state/pins.json'), 'utf8');
  assert.match(pins, /write_file/);

  house.server = await Server.start([], { bin: NEXT, dir: house.dir, env: house.env, house: true });
  assert.deepEqual(JSON.parse(await readFile(join(house.dir, 'state/state.json'), 'utf8')), { format: 3, reads: 2, program: '0.2.0' });
  const db = new DatabaseSync(join(house.dir, 'state/mcp-orchestrator.db'), { readOnly: true });
  assert.equal(db.prepare('PRAGMA user_version').get().user_version, 6);
  db.close();
  assert.deepEqual(await rules(), before);
  assert.equal(await readFile(join(house.dir, 'state/pins.json'), 'utf8'), pins);
  assert.match((await runAs(NEXT, house.dir, 'secrets', 'list')).out, /of-0\.1/);

  const c = house.tab({ session: three.session });
  await c.ready();
  await until(async () => /the work is done/.test(JSON.stringify((await house.get(`/api/sessions/${three.session}/history`)).body)), 'the end of the turn');
  assert.equal(asked(), 1, 'paid for once');
  const told = JSON.stringify((await house.get(`/api/sessions/${three.session}/history`)).body);
  assert.match(told, /"text":"finished/);
  assert.equal((await house.inBox(c, 'wc -l <times')).trim(), '1', 'it ran once');
  const a = house.tab({ session: one.session });
  assert.match(JSON.stringify((await a.ready()).history), /written/);
  assert.match(await house.inBox(a, 'cat kept'), /of 0\.1/);
  const b = house.tab({ session: two.session });
  const [pending] = (await b.ready()).history.pending;
  assert.equal(pending.callId, card.callId);
  house.model.script.push({ text: 'at last' });
  await b.decide(pending, true);
  await b.event('agent:response');
  assert.match(house.results()[0].text, /it waited/);
  assert.deepEqual(await boxes(house.dir), were, 'none ended, none was doubled');
  assert.match((await runAs(NEXT, house.dir, 'audit', 'verify')).out, /^ok: \d+ rows/);
  const rows = (await house.audit(one.session)).length;
  assert.ok(rows > 0);

  // and back: the database is not for 0.1, and is left alone
  house.server.signal('SIGTERM');
  assert.equal((await within(house.server.exit, 'the end of 0.2', 40_000)).code, 0);
  const old = await within(new Promise((resolve) => {
    const child = execFile(BIN, ['serve', '--port', '0', '--no-auth'], { cwd: house.dir, env: { PATH: process.env.PATH, HOME: house.dir, ASAN_OPTIONS: 'detect_leaks=0', ...house.env } },
      (error, out, err) => resolve({ code: child.exitCode, err: out + err }));
    child.stderr.on('data', (d) => /no conversations/.test(d) && child.kill('SIGTERM'));
  }), 'the end of 0.1', 40_000);
  assert.match(old.err, /written by version 0\.2\.0 \(format 6\); version 0\.1\.0 knows format 5: start the newer version, or restore a backup/);
  assert.match((await run(house.dir, 'secrets', 'list')).out, /of-0\.1/, 'the directory may be used');
  house.server = await Server.start([], { bin: NEXT, dir: house.dir, env: house.env, house: true });
  assert.match(JSON.stringify((await house.get(`/api/sessions/${one.session}/history`)).body), /written/);
});
