// G11, the audit log: somebody who can write the directory of the log but not
// read its key drops rows and makes the rest fit; brings back an older copy;
// empties the directory.
// Fails on 953b0b1e: the rewritten log, two rows shorter, verified; so did an
// older copy of the files, and an emptied directory. (The key `audit.anchor` of
// the last part is the fix against somebody who also has the store: it is unknown
// there.)
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';

import { bin, cleanEnv } from '../lib/mcp.mjs';
import { until } from '../it/server.mjs';
import { House } from '../it/talk_kit.mjs';

const run = promisify(execFile);
let house, dir, state, anchor;

/** At least one row. */
async function makeRows(name) {
  const r = await fetch(`${house.server.url}/api/mcp`, {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name, command: '/bin/true', enabled: false }),
  });
  assert.ok(r.ok, await r.text());
  await until(() => lines().some((l) => l.includes(`"${name}"`)), 'its row');
}
function lines() {
  const file = join(state, 'audit.jsonl');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
}
const copy = (to) => cpSync(state, to, { recursive: true, filter: (f) => f === state || /audit|\.db/.test(f) });
const back = (from) => cpSync(from, state, { recursive: true });
const files = () => readdirSync(state).filter((f) => f.startsWith('audit'));

/** Does the store have this row as the last one, if it keeps the last one? */
function remembers(line) {
  const db = new DatabaseSync(join(state, readdirSync(state).find((f) => f.endsWith('.db'))), { readOnly: true });
  try {
    const { seq, mac } = JSON.parse(line);
    const keeps = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'mark'").get();
    return !keeps || db.prepare('SELECT doc FROM mark').all().some(({ doc }) => doc === JSON.stringify({ seq, mac }));
  } finally {
    db.close();
  }
}

async function verify(...args) {
  try {
    const { stdout } = await run(bin, ['audit', 'verify', ...args, '--config', join(house.dir, 'mcp-orchestrator.json')], {
      cwd: house.dir, env: cleanEnv({ HOME: house.dir, MCP_ORCHESTRATOR_STATE_DIR: state }),
    });
    return { code: 0, said: stdout };
  } catch (e) {
    return { code: e.code, said: `${e.stdout}${e.stderr}` };
  }
}

async function start(config) {
  dir = await mkdtemp(join(tmpdir(), 'mo-g11-'));
  house = await House.start({ config: config(dir) });
  state = join(house.dir, '.local/state/mcp-orchestrator');
}
async function end() {
  house?.server.signal('SIGKILL');
  await house?.server.exit;
  await house?.model.close();
  if (house) await rm(house.dir, { recursive: true, force: true });
  await rm(dir, { recursive: true, force: true });
  house = undefined;
}

async function attack(what, change, ...args) {
  back(join(dir, 'good'));
  const before = await verify(...(anchor ? ['--anchor', anchor] : []));
  assert.equal(before.code, 0, `as it was written: ${before.said}`);
  change();
  const { code, said } = await verify(...args);
  assert.equal(code, 1, `${what}: ${said}`);
}

describe('the files are rewritten', () => {
  before(async () => {
    await start(() => ({}));
    for (let i = 1; i <= 4; i++) await makeRows(`x${i}`);
    house.server.fresh.fds += 2; // the files of the log
    await house.server.stop();
    copy(join(dir, 'good'));
  });
  after(end);

  test('rows dropped, the rest and the head written anew', () => attack('rewritten', () => {
    assert.ok(lines().length >= 4);
    let prev = '0'.repeat(64);
    const text = lines().slice(0, -2).map((line, i) => {
      const body = line.replace(/,"(mac|hash)":"[0-9a-f]*"\}$/, '').replace(/"seq":\d+,"prev":"[0-9a-f]*"/, `"seq":${i + 1},"prev":"${prev}"`);
      prev = createHash('sha256').update(body).digest('hex');
      return `${body},"hash":"${prev}"}\n`;
    });
    writeFileSync(join(state, 'audit.jsonl'), text.join(''));
    writeFileSync(join(state, 'audit.head'), `${'1'.padStart(20, '0')} ${String(text.length).padStart(20, '0')} ${prev}\n`);
  }));

  test('the same, and the key removed', () => attack('rewritten without a key', () => {
    const file = join(state, 'audit.jsonl');
    let prev = '0'.repeat(64);
    const body = `{"seq":1,"prev":"${prev}","at":"x"`;
    prev = createHash('sha256').update(body).digest('hex');
    writeFileSync(file, `${body},"hash":"${prev}"}\n`);
    writeFileSync(join(state, 'audit.head'), `${'1'.padStart(20, '0')} ${'1'.padStart(20, '0')} ${prev}\n`);
    rmSync(join(state, 'audit.key'), { force: true });
  }));

  test('the key is ours alone', () => {
    back(join(dir, 'good'));
    assert.equal(statSync(join(state, 'audit.key')).mode & 0o777, 0o600);
  });
});

let early;
/** A log with an older copy of everything. */
async function startTwice(config) {
  await start(config);
  await until(async () => (await verify()).code === 0, 'a log without rows');
  await makeRows('x3');
  early = join(dir, 'early');
  copy(early);
  await makeRows('x4');
  await until(() => remembers(lines().at(-1)), 'the store to remember the last row');
  house.server.fresh.fds += 2; // the files of the log
  await house.server.stop();
  copy(join(dir, 'good'));
}

describe('older files are brought back', () => {
  before(() => startTwice(() => ({})));
  after(end);

  test('an older copy of the files', () => attack('rolled back', () => {
    for (const f of ['audit.jsonl', 'audit.head']) cpSync(join(early, f), join(state, f));
  }));

  test('the files of the log removed', () => attack('emptied', () => {
    for (const f of files()) rmSync(join(state, f));
  }));

  test('a log that was emptied goes on with a gap', async () => {
    back(join(dir, 'good'));
    for (const f of files()) rmSync(join(state, f));
    await house.up();
    try {
      await makeRows('x5');
      const said = await (await fetch(`${house.server.url}/api/audit/verify`)).json();
      assert.equal(said.ok, false, JSON.stringify(said));
    } finally {
      house.server.fresh.fds += 2;
      await house.server.stop();
    }
    assert.equal((await verify()).code, 1);
  });
});

describe('the store with them: the anchor knows', () => {
  before(() => startTwice((d) => {
    anchor = join(d, 'anchor.txt');
    return { audit: { anchor: `file:${anchor}` } };
  }));
  after(end);

  test('an older copy of everything', () => attack('rolled back with the store', () => {
    for (const f of readdirSync(state).filter((x) => /\.db/.test(x))) rmSync(join(state, f), { recursive: true });
    back(early);
  }, '--anchor', anchor));

  test('the whole directory removed', () => attack('removed', () => {
    rmSync(state, { recursive: true });
  }));
});
