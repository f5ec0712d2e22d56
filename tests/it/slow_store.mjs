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

/** f(house, hold) in a house of its own; what is still held then is let go. Where
 *  this machine stalls for so long that a lease ends meanwhile, it is done again. */
export async function live(config, f, oneProcess) {
  for (let left = 3; await lostLease(config, f, oneProcess, --left); );
}

/** True: f failed, and a lease was lost. */
async function lostLease(config, f, oneProcess, left) {
  const dir = await mkdtemp(join(tmpdir(), 'mo-talk-'));
  mkdirSync(join(dir, 'seen'), { mode: 0o755 });
  const house = await House.start({ env: ENV, dir, oneProcess, config: {
    sandbox: { driver: 'native', warm: 0, mounts: [`${dir}/seen:/seen`] }, ...config } });
  house.go = (name) => writeFileSync(join(dir, 'seen', name), '');
  const held = [];
  let failed;
  try {
    await f(house, () => {
      held.push(lock(house));
      return held.at(-1);
    });
  } catch (e) {
    failed = e;
  }
  for (const l of held) l.release();
  const ended = await house.stop().then(() => undefined, (e) => e);
  const lost = failed && left > 0 && /lease lost/.test(house.server.log);
  if (!lost && (failed ?? ended)) throw failed ?? ended;
  return lost;
}
/** A command that ends after house.go(name). */
export const after = (name, then = 'true') => run(`until [ -e /seen/${name} ]; do sleep 0.05; done; ${then}`);
export const ALLOWED = { approvals: { rules: [{ server: 'box', action: 'allow' }] } };
