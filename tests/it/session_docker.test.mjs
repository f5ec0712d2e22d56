// Sessions in containers of a real dockerd: the same promises as native boxes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { eventually } from '../lib/outside.mjs';
import { Home } from '../lib/sessions.mjs';

const skip = noDocker;
let engine;
let home;

before(async () => {
  if (skip) return;
  engine = await dockerd();
  home = new Home({ driver: 'docker', engine: engine.host });
}, { timeout: 120_000 });

after(() => {
  home?.removeAll();
  engine?.cleanUp();
});

const range = (n) => [...Array(n).keys()];
const containers = async () => (await engine.api('GET', '/containers/json?all=1')).json;

async function endAll(server) {
  for (const { id } of home.sessions()) server.tell('end', { session: id });
  for (const { id } of home.sessions()) {
    const { why } = await server.next((e) => e.ev === 'ended' && e.session === id);
    assert.equal(why, null);
  }
}

test('16 acquires of one session from 2 processes: one box', { skip }, async () => {
  const servers = await Promise.all(range(2).map(() => home.server()));
  const boxes = new Set();
  await Promise.all(servers.map(async (s, i) => {
    const ready = await Promise.all(range(8).map((k) => s.hold(`h${k}`, 'one')));
    ready.forEach((r) => boxes.add(r.box));
    await s.sh('h0', `echo ${i} >> log`);
    range(8).forEach((k) => s.tell('release', { h: `h${k}` }));
  }));
  assert.equal(boxes.size, 1);
  assert.equal((await containers()).length, 1);
  await servers[0].hold('again', 'one');
  assert.deepEqual((await servers[0].sh('again', 'cat log')).trim().split('\n').sort(), ['0', '1']);
  await Promise.all(servers.map((s) => s.kill()));
});

test('after a SIGKILL the next one adopts the container, and sweeps the rest', { skip }, async () => {
  const first = await home.server();
  const { box, workspace } = await first.hold('a', 'one');
  assert.equal(workspace, 'kept');
  await first.sh('a', 'echo precious > file');
  first.tell('hold', { h: 'b', session: 'halfway' });
  await first.kill();
  const second = await home.server();
  const ready = await second.hold('a', 'one');
  assert.deepEqual([ready.box, ready.workspace], [box, 'kept']);
  assert.equal(await second.sh('a', 'cat file'), 'precious\n');
  await second.sweep();
  const named = home.sessions().map((s) => s.box);
  assert.deepEqual((await containers()).map((c) => c.Id).sort(), named.sort());
  await endAll(second);
  assert.deepEqual(await containers(), []);
  await second.kill();
});

test('a box that was kept warm stays with its session when nobody holds it', { skip }, async () => {
  const warm = new Home({ driver: 'docker', engine: engine.host, warm: 1 });
  const pooled = async () => (await containers()).filter((c) => c.Labels['mo.warm'] === '1');
  try {
    const first = await warm.server();
    await eventually('a warm box runs', async () => (await pooled())[0]?.State === 'running');
    const { box } = await first.hold('a', 'was-warm');
    assert.ok((await pooled()).some((c) => c.Id === box), 'it came from the pool');
    await first.sh('a', 'echo precious > file');
    await first.kill();
    const second = await warm.server();
    await second.sweep(); // before anybody asks for the session
    const ready = await second.hold('a', 'was-warm');
    assert.deepEqual([ready.box, ready.workspace], [box, 'kept']);
    assert.equal(await second.sh('a', 'cat file'), 'precious\n');
    second.tell('end', { session: 'was-warm' });
    assert.equal((await second.next((e) => e.ev === 'ended')).why, null);
    await second.close();
    await eventually('nothing is left', async () => (await containers()).length === 0);
  } finally {
    warm.removeAll();
  }
});

test('20 sessions at once: 20 containers, no cross-talk', { skip }, async () => {
  const s = await home.server();
  const ready = await Promise.all(range(20).map((i) => s.hold(`h${i}`, `s${i}`)));
  assert.equal(new Set(ready.map((r) => r.box)).size, 20);
  await Promise.all(range(20).map(async (i) => {
    assert.equal(await s.sh(`h${i}`, `echo secret-${i} > mine; cat *; ls | wc -l`), `secret-${i}\n1\n`);
  }));
  await endAll(s);
  assert.deepEqual(await containers(), []);
  assert.equal(await s.close(), 0);
});

const volumes = async () => (await engine.api('GET', '/volumes')).json.Volumes ?? [];

test('an engine that cannot limit volumes: files end with their box', { skip }, async () => {
  const h = new Home({ driver: 'docker', engine: engine.host });
  try {
    const s = await h.server();
    const ready = await s.hold('a', 'one');
    const limited = (await volumes()).length > 0; // its disk has project quotas
    assert.equal(ready.keepsFiles, limited);
    s.tell('end', { session: 'one' });
    assert.equal((await s.next((e) => e.ev === 'ended')).why, null);
    assert.deepEqual(await volumes(), []);
    await s.close();
  } finally {
    h.removeAll();
  }
});

test('volumes: an idle box goes, its files stay until the session ends', { skip }, async () => {
  const h = new Home({ driver: 'docker', engine: engine.host, warm: 1, volumes: 'unlimited' });
  const asleep = async (s, hold, id) => {
    s.tell('release', { h: hold });
    await eventually('it is let go', async () => (await s.stats()).open === 0);
    h.age(id, 16);
    await s.sweep();
    assert.equal(h.sessions().find((r) => r.id === id).asleep, true);
  };
  try {
    await engine.api('POST', '/volumes/create', { Name: 'mo-files-30000-0123456789abcdef', Labels: { 'mo.store': 'another', 'mo.instance': 'dead' } });
    await engine.api('POST', '/volumes/create', { Name: 'precious' });
    const s = await h.server();
    await eventually('a warm box', async () => (await s.stats()).warm === 1);
    const { box, workspace, keepsFiles } = await s.hold('a', 'one');
    assert.deepEqual([workspace, keepsFiles], ['fresh', true]);
    await s.sh('a', 'echo precious > file; mkdir d; chmod 700 d; echo x > d/in; chmod 600 file; ln -s /etc/shadow s');
    const uid = (await s.sh('a', 'id -u')).trim();
    await asleep(s, 'a', 'one');
    const again = await s.hold('b', 'one');
    assert.deepEqual([again.workspace, again.box === box], ['kept', false]);
    assert.equal(await s.sh('b', 'id -u; cat file d/in; readlink s; echo more >> file'), `${uid}\nprecious\nx\n/etc/shadow\n`);
    await s.hold('c', 'two');
    assert.equal(await s.sh('c', 'ls -A'), '');
    await s.kill(); // the next one adopts it, with its volume
    const t = await h.server();
    const ready = await t.hold('a', 'one');
    assert.deepEqual([ready.box, ready.workspace], [again.box, 'kept']);
    assert.equal(await t.sh('a', 'cat file'), 'precious\nmore\n');
    await engine.api('DELETE', `/containers/${again.box}?force=1`); // killed from outside
    await t.next((e) => e.ev === 'lost');
    t.tell('use', { h: 'a' });
    const used = await t.next((e) => e.ev === 'used');
    assert.deepEqual([used.why, used.workspace], [null, 'kept']);
    assert.equal(await t.sh('a', 'cat file'), 'precious\nmore\n');
    for (const id of ['one', 'two']) {
      t.tell('end', { session: id, forget: true });
      assert.equal((await t.next((e) => e.ev === 'ended')).why, null);
    }
    await t.close();
    const u = await h.server(); // sweeps the volumes of warm boxes that nobody used
    await eventually('a warm box', async () => (await u.stats()).warm === 1);
    await u.sweep();
    await eventually('one volume, of its own warm box', async () =>
      (await volumes()).filter((v) => v.Labels?.['mo.instance'] !== u.instance).length === 2);
    assert.deepEqual((await volumes()).filter((v) => v.Labels?.['mo.instance'] !== u.instance).map((v) => v.Name).sort(),
      ['mo-files-30000-0123456789abcdef', 'precious'], 'those of others stay');
    await u.close();
  } finally {
    h.removeAll();
    for (const { Name } of await volumes()) await engine.api('DELETE', `/volumes/${Name}`);
  }
});

// F2 as a session sees it.
for (const liveRestore of [true, false])
  test(`the engine is killed and comes back ${liveRestore ? 'with' : 'without'} live-restore`,
    { skip }, async () => {
      const other = await dockerd({ liveRestore });
      const place = new Home({ driver: 'docker', engine: other.host });
      try {
        const s = await place.server();
        const { box } = await s.hold('a', 'one');
        await s.sh('a', 'echo precious > file');
        s.tell('call', { h: 'a', id: 'hang', tool: 'execute_command', args: { command: 'sleep 60' } });
        await other.signal('KILL');
        const answer = await s.next((e) => e.ev === 'answer' && e.id === 'hang');
        assert.match(answer.why, /the session's box has ended/);
        await s.next((e) => e.ev === 'lost');
        await other.start();
        let used;
        do {
          s.tell('use', { h: 'a' });
          used = await s.next((e) => e.ev === 'used');
        } while (used.code === 'unavailable');
        assert.equal(used.why, null);
        if (liveRestore) assert.deepEqual([used.box, used.workspace], [box, 'kept']);
        const want = used.workspace === 'kept' ? 'precious\n' : 'none\n';
        assert.equal(await s.sh('a', 'cat file || echo none'), want);
        assert.deepEqual(s.events.filter((e) => e.ev === 'answer' || e.ev === 'lost'), []);
        s.tell('end', { session: 'one' });
        await s.next((e) => e.ev === 'ended');
        await s.sweep();
        assert.deepEqual((await other.api('GET', '/containers/json?all=1')).json, []);
        await s.kill();
      } finally {
        place.removeAll();
        other.cleanUp();
      }
    });
