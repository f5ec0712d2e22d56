// A house whose store is slow, because somebody else has SQLite's lock.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { House, run } from './talk_kit.mjs';

const ENV = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };

export function open(house) {
  const file = readdirSync(house.dir, { recursive: true }).find((f) => f.endsWith('.db'));
  return new DatabaseSync(join(house.dir, file), { timeout: 20_000 });
}

/** Nobody else writes until release(). */
function lock(house) {
  const db = open(house);
  db.exec('BEGIN IMMEDIATE');
  return { release() {
    if (db.isOpen) db.exec('ROLLBACK');
    if (db.isOpen) db.close();
  } };
}

/** f(house, hold) in a house of its own; what is still held then is let go. */
export async function live(config, f, oneProcess) {
  const dir = await mkdtemp(join(tmpdir(), 'mo-talk-'));
  mkdirSync(join(dir, 'seen'), { mode: 0o755 });
  const house = await House.start({ env: ENV, dir, oneProcess, config: {
    sandbox: { driver: 'native', warm: 0, mounts: [`${dir}/seen:/seen`] }, ...config } });
  house.go = (name) => writeFileSync(join(dir, 'seen', name), '');
  const held = [];
  try {
    await f(house, () => {
      held.push(lock(house));
      return held.at(-1);
    });
  } finally {
    for (const l of held) l.release();
    await house.stop();
  }
}
/** A command that ends after house.go(name). */
export const after = (name, then = 'true') => run(`until [ -e /seen/${name} ]; do sleep 0.05; done; ${then}`);
export const ALLOWED = { approvals: { rules: [{ server: 'box', action: 'allow' }] } };
