// G11, the audit log: somebody who can write the directory of the log but not
// read its key drops rows and makes the rest fit; brings back an older copy;
// empties the directory. The chain had no key, and nothing was remembered
// elsewhere, so all of it verified.
// Fails on 953b0b1e.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { bin, cleanEnv } from '../lib/mcp.mjs';
import { until } from '../it/server.mjs';
import { House } from '../it/talk_kit.mjs';

const run = promisify(execFile);
let house, dir, state, anchor, early;

/** Rows: one for each server that is looked at and not there. */
async function makeRows(n) {
  for (let i = 0; i < n; i++)
    await fetch(`${house.server.url}/api/route?q=nothing+${i}`);
  await fetch(`${house.server.url}/api/mcp`, {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: `x${n}`, command: '/bin/true', enabled: false }),
  });
}
const copy = (to) => cpSync(state, to, { recursive: true, filter: (f) => f === state || /audit|\.db/.test(f) });
const back = (from) => cpSync(from, state, { recursive: true });
const files = () => readdirSync(state).filter((f) => f.startsWith('audit'));

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

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-g11-'));
  anchor = join(dir, 'anchor.txt');
  house = await House.start({ config: { audit: { anchor: `file:${anchor}` } } });
  state = join(house.dir, '.local/state/mcp-orchestrator');
  await until(async () => (await verify()).code === 0, 'a log without rows');
  await makeRows(3);
  await until(async () => readFileSync(join(state, 'audit.jsonl'), 'utf8').includes('x3'), 'rows');
  early = join(dir, 'early');
  copy(early);
  await makeRows(4);
  await new Promise((resolve) => setTimeout(resolve, 500)); // the store remembers soon after
  await house.server.stop();
  copy(join(dir, 'good'));
});
after(async () => {
  house.server.signal('SIGKILL');
  await house.model.close();
  await rm(house.dir, { recursive: true, force: true });
  await rm(dir, { recursive: true, force: true });
});

async function attack(what, change, ...args) {
  back(join(dir, 'good'));
  assert.equal((await verify('--anchor', anchor)).code, 0, 'as it was written');
  change();
  const { code, said } = await verify(...args);
  assert.equal(code, 1, `${what}: ${said}`);
}

test('the key is ours alone', () => {
  assert.equal(statSync(join(state, 'audit.key')).mode & 0o777, 0o600);
});

test('rows dropped, the rest and the head written anew', () => attack('rewritten', () => {
  const file = join(state, 'audit.jsonl');
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean).slice(0, -2);
  let prev = '0'.repeat(64);
  const text = lines.map((line, i) => {
    const body = line.slice(0, line.lastIndexOf(',"mac"')).replace(/"seq":\d+,"prev":"[0-9a-f]*"/, `"seq":${i + 1},"prev":"${prev}"`);
    prev = createHash('sha256').update(body).digest('hex');
    return `${body},"hash":"${prev}"}\n`;
  });
  writeFileSync(file, text.join(''));
  writeFileSync(join(state, 'audit.head'), `${'1'.padStart(20, '0')} ${String(text.length).padStart(20, '0')} ${prev}\n`);
}));

test('the same, and the key removed', () => attack('rewritten without a key', () => {
  const file = join(state, 'audit.jsonl');
  let prev = '0'.repeat(64);
  const body = `{"seq":1,"prev":"${prev}","at":"x"`;
  prev = createHash('sha256').update(body).digest('hex');
  writeFileSync(file, `${body},"hash":"${prev}"}\n`);
  writeFileSync(join(state, 'audit.head'), `${'1'.padStart(20, '0')} ${'1'.padStart(20, '0')} ${prev}\n`);
  rmSync(join(state, 'audit.key'));
}));

test('an older copy of the files', () => attack('rolled back', () => {
  for (const f of ['audit.jsonl', 'audit.head']) cpSync(join(early, f), join(state, f));
}));

test('an older copy of everything, also of the store: the anchor knows', () => attack('rolled back with the store', () => {
  for (const f of readdirSync(state).filter((x) => /\.db/.test(x))) rmSync(join(state, f), { recursive: true });
  back(early);
}, '--anchor', anchor));

test('the files of the log removed', () => attack('emptied', () => {
  for (const f of files()) rmSync(join(state, f));
}));

test('the whole directory removed', () => attack('removed', () => {
  rmSync(state, { recursive: true });
}));

test('a log that was emptied goes on with a gap', async () => {
  back(join(dir, 'good'));
  for (const f of files()) rmSync(join(state, f));
  await house.up();
  try {
    await makeRows(1);
    const said = await (await fetch(`${house.server.url}/api/audit/verify`)).json();
    assert.equal(said.ok, false, JSON.stringify(said));
  } finally {
    await house.server.stop();
  }
  assert.equal((await verify()).code, 1);
});
