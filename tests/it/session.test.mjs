// Sessions with real native boxes and a real store: one box under any
// stampede, no cross-talk, adoption after a SIGKILL, and how a box is lost.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { processesOf } from '../lib/outside.mjs';
import { missing as noRedis, redis } from '../lib/redis.mjs';
import { Home, eventually, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : false;
const homes = [];
const home = (opts) => {
  const h = new Home(opts);
  homes.push(h);
  return h;
};
after(() => homes.forEach((h) => h.removeAll()));

const range = (n) => [...Array(n).keys()];

test('64 acquires of one session from 4 processes: one box', { skip }, async () => {
  const h = home();
  const servers = await Promise.all(range(4).map(() => h.server()));
  const boxes = new Set();
  await Promise.all(servers.map(async (s, i) => {
    const ready = await Promise.all(range(16).map((k) => s.hold(`h${k}`, 'one')));
    ready.forEach((r) => boxes.add(r.box));
    await s.sh('h0', `echo ${i} >> log`);
    range(16).forEach((k) => s.tell('release', { h: `h${k}` }));
  }));
  assert.equal(boxes.size, 1);
  const stats = await Promise.all(servers.map((s) => s.stats()));
  assert.equal(stats.reduce((n, st) => n + st.started, 0), 1);
  assert.equal(stats.reduce((n, st) => n + st.adopted, 0), 3);
  const { workspace, resumed } = await servers[0].hold('again', 'one');
  assert.deepEqual([workspace, resumed], ['kept', true]);
  assert.deepEqual((await servers[0].sh('again', 'cat log')).trim().split('\n').sort(),
    ['0', '1', '2', '3']);
  servers[0].tell('end', { session: 'one' });
  await servers[0].next((e) => e.ev === 'ended');
  assert.deepEqual(h.remains(), []);
  await Promise.all(servers.map((s) => s.close()));
});

test('200 sessions at once: 200 boxes, no cross-talk', { skip }, async () => {
  const h = home();
  const s = await h.server();
  const ready = await Promise.all(range(200).map((i) => s.hold(`h${i}`, `s${i}`)));
  assert.equal(new Set(ready.map((r) => r.box)).size, 200);
  await Promise.all(range(200).map(async (i) => {
    const out = await s.sh(`h${i}`, `echo secret-${i} > mine; cat *; ls | wc -l`);
    assert.equal(out, `secret-${i}\n1\n`);
  }));
  h.watch();
  range(200).forEach((i) => s.tell('end', { session: `s${i}` }));
  for (const i of range(200)) {
    const { why } = await s.next((e) => e.ev === 'ended' && e.session === `s${i}`);
    assert.equal(why, null);
  }
  assert.deepEqual(h.remains(), []);
  assert.deepEqual(h.kept(), []);
  assert.deepEqual(h.sessions(), []);
  await s.close();
});

test('after a SIGKILL the next one adopts the box with its files', { skip }, async () => {
  const h = home();
  const first = await h.server();
  const { box } = await first.hold('a', 'keep');
  await first.sh('a', 'echo precious > file');
  first.tell('call', { h: 'a', id: 'late', tool: 'execute_command',
    args: { command: 'sleep 2; echo from the dead' } });
  await first.kill();
  const second = await h.server({ leaks: true });
  const ready = await second.hold('a', 'keep');
  assert.deepEqual([ready.box, ready.workspace, ready.resumed], [box, 'kept', true]);
  for (let i = 0; i < 20; i++)
    assert.equal(await second.sh('a', 'cat file; sleep 0.15'), 'precious\n');
  assert.equal(await second.close(), 0);
  const third = await h.server();
  assert.equal((await third.hold('a', 'keep')).box, box);
  await third.close();
});

test('a box that ends while nobody is there is replaced, with its files', { skip }, async () => {
  const h = home();
  const first = await h.server();
  await first.hold('a', 'keep');
  await first.sh('a', 'echo precious > file');
  const uid = (await first.sh('a', 'id -u')).trim();
  await first.kill();
  for (const pid of processesOf(uid)) try { process.kill(Number(pid), 'SIGKILL'); } catch { /* gone */ }
  await eventually('its program is gone', () => processesOf(uid).length === 0);
  const second = await h.server({ leaks: true });
  assert.equal((await second.hold('a', 'keep')).workspace, 'kept');
  assert.equal(await second.sh('a', 'cat file'), 'precious\n');
  assert.equal(await second.close(), 0);
});

test('boxes that nobody could name are swept by the next one', { skip }, async () => {
  const h = home({ warm: 3 });
  const first = await h.server();
  await eventually('warm boxes', async () => (await first.stats()).warm === 3);
  await first.hold('a', 'lives');
  await eventually('warm boxes', async () => (await first.stats()).warm === 3);
  h.watch();
  await first.kill();
  const second = await h.server();
  await second.sweep();
  const [{ box }] = h.sessions();
  await eventually('only warm ones of its own', async () =>
    (await second.stats()).warm === 3 && h.sockets().length === 4);
  assert.equal((await second.hold('a', 'lives')).box, box);
  await second.close();
  assert.deepEqual(h.sockets(), [box]);
});

test('a box that is killed: the call fails once with the cause', { skip }, async () => {
  const h = home();
  const s = await h.server();
  await s.hold('a', 's');
  const uid = (await s.sh('a', 'id -u')).trim();
  await s.sh('a', 'echo kept > file');
  s.tell('call', { h: 'a', id: 'hang', tool: 'execute_command', args: { command: 'sleep 60' } });
  await eventually('it runs', () => processesOf(uid).length > 1);
  for (const pid of processesOf(uid)) try { process.kill(Number(pid), 'SIGKILL'); } catch { /* gone */ }
  const answer = await s.next((e) => e.ev === 'answer' && e.id === 'hang');
  assert.match(answer.why, /the session's box has ended: killed/);
  const lost = await s.next((e) => e.ev === 'lost');
  assert.equal(lost.cause, 'killed');
  s.tell('use', { h: 'a' });
  const used = await s.next((e) => e.ev === 'used');
  assert.equal(used.why, null);
  assert.equal(used.workspace, 'kept');
  assert.equal(await s.sh('a', 'cat file'), 'kept\n');
  assert.deepEqual(s.events.filter((e) => e.ev === 'answer' || e.ev === 'lost'), []);
  await s.close();
});

/** A home and a way to make its sessions older than they are, by the minute. */
const agingHomes = {
  sqlite: {
    skip,
    make: async () => {
      const h = home();
      return { h, age: (id, minutes) => h.age(id, minutes) };
    },
  },
  redis: {
    skip: skip || (noRedis ? `needs ${noRedis}` : false),
    make: async (t) => {
      const server = await redis();
      t.after(() => server.stop());
      const h = home({ store: { url: `redis://127.0.0.1:${server.port}` } });
      return { h, age: (id, minutes) => {
        const at = Number(server.cli('HGET', `mcp:session:{${id}}`, 'at')) - minutes * 60_000;
        server.cli('HSET', `mcp:session:{${id}}`, 'at', String(at));
        server.cli('ZADD', 'mcp:session:index', String(at), id);
      } };
    },
  },
};

for (const [kind, { skip: without, make }] of Object.entries(agingHomes))
  test(`an idle session loses its box and stays listed, asleep (${kind})`,
    { skip: without }, async (t) => {
      const { h, age } = await make(t);
      const letGo = async (s, hold) => {
        s.tell('release', { h: hold });
        await eventually('it is let go', async () => (await s.stats()).open === 0);
      };
      const first = await h.server();
      const { box } = await first.hold('a', 'dozes');
      await first.append('a', { text: 'remember me' });
      await letGo(first, 'a');
      await first.hold('b', 'killed');
      await letGo(first, 'b');
      age('dozes', 16);
      age('killed', 16);
      await first.sweep();
      const asleep = h.sessions();
      assert.deepEqual(asleep.map((r) => [r.id, r.box, r.asleep, r.heldBy]).sort(),
        [['dozes', null, true, null], ['killed', null, true, null]]);
      assert.match(h.run('sessions', 'list'), /dozes .* asleep/);
      assert.match(h.run('sessions', 'show', 'dozes'), /none \(asleep\)[^]* 1 entries/);
      assert.deepEqual(h.remains(), []);
      assert.match(h.run('sessions', 'kill', 'killed'), /has ended/);
      await first.close();

      const second = await h.server(); // whose first sweep leaves it alone
      await second.sweep();
      assert.deepEqual(h.sessions(), asleep.filter((r) => r.id === 'dozes'));
      const again = await second.hold('a', 'dozes');
      assert.deepEqual([again.resumed, again.workspace], [true, 'kept']);
      assert.notEqual(again.box, box);
      assert.equal(await second.append('a', { text: 'and me' }), 2);
      assert.deepEqual(h.sessions().map((r) => [r.box, r.asleep]), [[again.box, false]]);
      await letGo(second, 'a');
      age('dozes', 16);
      await second.sweep();
      assert.equal(h.sessions()[0].asleep, true);
      age('dozes', 24 * 60);
      await second.sweep();
      assert.deepEqual(h.sessions(), []);
      assert.equal((await second.stats()).open, 0);
      assert.deepEqual(h.remains(), []);
      assert.deepEqual(h.kept(), []);
      await second.close();
    });

test('sessions kill reaches who holds the session', { skip }, async () => {
  const h = home();
  const s = await h.server();
  const { box } = await s.hold('a', 'k1');
  const row = h.sessions()[0];
  assert.deepEqual([row.id, row.box, row.heldBy, row.driver], ['k1', box, s.instance, 'native']);
  assert.match(h.run('sessions', 'show', 'k1'), new RegExp(`held by +${s.instance}`));
  assert.match(h.run('sessions', 'kill', 'k1'), /has ended/);
  const closed = await s.next((e) => e.ev === 'closed');
  assert.equal(closed.reason, 'killed');
  assert.deepEqual(h.sessions(), []);
  assert.deepEqual(h.remains(), []);
  const { resumed, workspace } = await s.hold('b', 'k1');
  assert.deepEqual([resumed, workspace], [false, 'fresh']);
  await s.append('b', { text: 'hello' });
  s.tell('release', { h: 'b' });
  await eventually('it is let go', async () => (await s.stats()).open === 0);
  assert.equal(JSON.parse(h.run('sessions', 'kill', 'k1', '--json')).ok, true);
  assert.deepEqual(h.remains(), []);
  const again = await s.hold('c', 'k1');
  assert.deepEqual([again.resumed, again.workspace], [true, 'lost']);
  await s.close();
});
