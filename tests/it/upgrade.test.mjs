// The state directory that 0.1.0 has written (tests/fixtures), opened by the
// program under test: everything is there. And what newer versions have written
// is left alone.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { BIN } from './server.mjs';
import { House } from './talk_kit.mjs';

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
const run = (at, ...args) =>
  new Promise((resolve) => {
    const env = { PATH: process.env.PATH, HOME: at, ASAN_OPTIONS: 'detect_leaks=0' };
    const child = execFile(BIN, args, { cwd: at, env }, (error, out, err) =>
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
    const [card] = (await tab.ready()).history.pending;
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
    db.exec(`INSERT INTO mark VALUES ('peer:other', '{"unix":"/x","protocol":[2,3]}')`);
    db.close();
    const mixed = await versions();
    assert.equal(mixed.health, 'warn');
    assert.match(mixed.text, /server other speaks versions 2 to 3 between servers/);
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
