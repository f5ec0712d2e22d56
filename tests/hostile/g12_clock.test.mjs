// G12: somebody sets the clock of the machine, or it is set by NTP. A card must
// not stay open for longer than the operator said, nor be taken away.
// Fails on 953b0b1e: cards expired by the wall clock. After it was set back by
// an hour, a card of seconds stayed open, also across a restart; after it was set
// forth, the next decision took all other cards away.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { House, write } from '../it/talk_kit.mjs';

const HOUR = 3600;
const library = fileURLToPath(new URL('../../build-asan/tests/hostile/libwall_clock.so', import.meta.url));

let dir, clock;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-g12-'));
  clock = join(dir, 'clock');
  await writeFile(clock, Buffer.alloc(8));
});
after(() => rm(dir, { recursive: true, force: true }));

function setClock(seconds) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(seconds));
  writeFileSync(clock, bytes, { flag: 'r+' }); // in place: the server has mapped it
}

async function start(t, timeoutSeconds) {
  setClock(0);
  const house = await House.start({
    config: { approvals: { timeoutSeconds } },
    env: {
      LD_PRELOAD: library, WALL_CLOCK: clock,
      ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4:verify_asan_link_order=0',
    },
  });
  t.after(() => house.stop());
  return house;
}

/** The server sees that its clock was set. */
async function assertClock(house, seconds) {
  const { headers } = await fetch(`${house.server.url}/healthz`);
  const off = (Date.parse(headers.get('date')) - Date.now()) / 1000 - seconds;
  assert.ok(Math.abs(off) < HOUR / 2, `off by ${off} s`);
}

/** Cards for these files, in one turn. */
async function cards(house, ...files) {
  const tab = house.tab();
  await tab.ready();
  house.model.script.push({ calls: files.map((f) => write(f, 'x')) }, { text: 'done' });
  await tab.say('write');
  const all = [];
  for (let n = 1; n <= files.length; n++) all.push((await tab.event('tool:approval_required', n))[0]);
  return [tab, ...all];
}

test('set back: a card expires in time', async (t) => {
  const house = await start(t, 2);
  const [tab] = await cards(house, 'a');
  setClock(-HOUR);
  const [end] = await tab.event('tool:resolved');
  assert.deepEqual([end.approved, end.by], [false, 'time']);
  await tab.event('agent:response');
  await assertClock(house, -HOUR);
});

test('set back between two starts: a card expires in time', async (t) => {
  const house = await start(t, 5);
  const [tab, card] = await cards(house, 'a');
  await house.kill();
  setClock(-HOUR);
  await house.up();
  const back = house.tab({ session: tab.session });
  await back.ready();
  const [end] = await back.event('tool:resolved');
  assert.deepEqual([end.callId, end.approved, end.by], [card.callId, false, 'time']);
  await back.event('agent:response');
  await assertClock(house, -HOUR);
});

test('set forth: other cards stay', async (t) => {
  const house = await start(t, 600);
  const [tab, first, second] = await cards(house, 'a', 'b');
  setClock(HOUR);
  await assertClock(house, HOUR);
  await tab.decide(first, true);
  await tab.event('tool:output');
  const yes = await tab.decide(second, true);
  assert.equal(yes.ok, true, JSON.stringify([yes, tab.events.filter(([e]) => e === 'tool:resolved')]));
  await tab.event('agent:response');
  assert.deepEqual(house.results().map((r) => r.error), [false, false]);
});
