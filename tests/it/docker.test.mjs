// Docker boxes against a real dockerd: what is created, what is seen from
// inside, how boxes end, and what is found again by the next of us.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { docker } from '../lib/box.mjs';
import { dockerd, memoryCauses, noDocker } from '../lib/dockerd.mjs';

const skip = noDocker;
let engine;
let us;
const sh = (script) => ['/bin/sh', '-c', script];
const inspect = async (id) => (await engine.api('GET', `/containers/${id}/json`)).json;
const all = async () => (await engine.api('GET', '/containers/json?all=1')).json;

before(async () => {
  if (skip) return;
  engine = await dockerd();
  us = docker(engine);
}, { timeout: 120_000 });

after(async () => {
  await us?.close();
  engine?.cleanUp();
});

test('the engine is judged before it is used', { skip }, async () => {
  us.tell('check');
  const { ok, what, why } = await us.next('check');
  assert.deepEqual([ok, why], [true, '']);
  assert.match(what, /^Docker 2\d\.\d+.* \(API 1\.4\d\) at unix:\/\//);
});

test('a box answers MCP and is gone when stopped', { skip }, async () => {
  const { id } = await us.start('a', { session: 's-a' });
  us.write('a', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {
    protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } } }) + '\n');
  const answer = JSON.parse(await us.until('a', '\n'));
  assert.equal(answer.result.serverInfo.name, 'mo-toolbox');

  us.tell('stats', { box: 'a' });
  const stats = await us.next('stats');
  assert.ok(stats.memory > 0 && stats.memory_peak >= stats.memory && stats.pids >= 1, stats);

  const gone = await us.stop('a');
  assert.equal(gone.cause, 'stopped');
  assert.equal((await engine.api('GET', `/containers/${id}/json`)).status, 404);
});

test('what the engine made is what the policy says', { skip }, async () => {
  const { id } = await us.start('p', { session: 's-p', expires: 4102444800,
    limits: { memory: 100 << 20, cpu_milli: 250, pids: 33, open_files: 99 } });
  const { Config: c, HostConfig: h, Mounts, Image } = await inspect(id);
  assert.match(c.Image, /^sha256:[0-9a-f]{64}$/);
  assert.equal(c.Image, Image);
  assert.match(c.User, /^2[01]\d{3}:2[01]\d{3}$/);
  assert.deepEqual([c.WorkingDir, c.Entrypoint, c.Tty, c.StdinOnce], ['/workspace', ['/toolbox'], false, false]);
  assert.deepEqual(c.Healthcheck, { Test: ['NONE'] });
  assert.deepEqual(c.Env.sort(), ['HOME=/workspace', 'LANG=C.UTF-8', 'PATH=/bin']);
  assert.deepEqual(
    [h.Memory, h.MemorySwap, h.NanoCpus, h.PidsLimit], [100 << 20, 100 << 20, 250e6, 33]);
  assert.deepEqual([h.NetworkMode, h.IpcMode, h.ReadonlyRootfs, h.Privileged, h.AutoRemove],
    ['none', 'none', true, false, false]);
  assert.deepEqual(h.CapDrop, ['ALL']);
  assert.ok(!h.CapAdd && !h.Binds && Mounts.length === 0);
  assert.equal(h.SecurityOpt.length, 2);
  const profile = JSON.parse(h.SecurityOpt.find((o) => o.startsWith('seccomp=')).slice(8));
  assert.equal(profile.defaultAction, 'SCMP_ACT_ERRNO');
  assert.deepEqual(Object.keys(h.Tmpfs).sort(), ['/tmp', '/workspace']);
  assert.match(c.Labels['mo.policy'], /^[0-9a-f]{64}$/);
  assert.deepEqual([c.Labels['mo.store'], c.Labels['mo.instance'], c.Labels['mo.session'],
    c.Labels['mo.expires'], c.Labels['mo.warm']], ['test', 'one', 's-p', '4102444800', '0']);

  const [row] = (await us.list()).filter((r) => r.id === id);
  assert.deepEqual(
    { session: row.session, instance: row.instance, policy: row.policy, expires: row.expires,
      running: row.running, paused: row.paused, warm: row.warm },
    { session: 's-p', instance: 'one', policy: c.Labels['mo.policy'], expires: 4102444800,
      running: true, paused: false, warm: false });
  await us.stop('p');
});

test('inside: no network, no rights, its own places only', { skip }, async () => {
  await us.start('i', { argv: sh(`
    id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t\\n' ' '; echo
    ls /sys/class/net; cat /etc/resolv.conf | grep -c nameserver
    touch /x 2>&1; touch /workspace/w /tmp/t && echo writable
    ulimit -n; ulimit -c; df -k /workspace | tail -1 | tr -s ' ' | cut -d' ' -f2; echo end; cat`),
    limits: { workspace: 32 << 20, open_files: 77 } });
  const lines = (await us.until('i', 'end\n')).trim().split('\n');
  assert.match(lines[0], /^2[01]\d{3}$/);
  assert.match(lines[1], /CapEff: 0{16} CapBnd: 0{16} NoNewPrivs: 1 Seccomp: 2/);
  assert.equal(lines[2], 'lo');
  assert.equal(lines[3], '0', 'the host\'s name servers are not told');
  assert.match(lines[4], /Read-only/);
  assert.deepEqual(lines.slice(5, 9), ['writable', '77', '0', String(32 << 10)]);
  await us.stop('i');
});

test('no two boxes share a uid', { skip }, async () => {
  const names = ['u1', 'u2', 'u3'];
  const ids = await Promise.all(names.map((n) => us.start(n)));
  const users = await Promise.all(ids.map(async ({ id }) => (await inspect(id)).Config.User));
  assert.equal(new Set(users).size, names.length);
  await Promise.all(names.map((n) => us.stop(n)));
});

test('stderr is apart, and neither stops the other', { skip }, async () => {
  await us.start('e', { argv: sh('echo out; echo err >&2; yes | head -c 300000 >&2; echo done; cat') });
  assert.equal(await us.until('e', 'done\n'), 'out\ndone\n');
  const err = await us.until('e', (s) => s.length >= 300004, 'err');
  assert.ok(err.startsWith('err\ny\n'));
  await us.stop('e');
});

test('a reader that does not read stops the program', { skip }, async () => {
  await us.start('f', { argv: sh('read go; i=0; while [ $i -lt 200 ]; do head -c 65536 /dev/zero | tr "\\0" x; i=$((i+1)); echo $i >/workspace/n; done; echo END; cat') });
  us.tell('read', { box: 'f', on: false });
  us.write('f', 'go\n'); // seen after the other
  const cpu = async () => {
    us.tell('stats', { box: 'f' });
    return (await us.next('stats')).cpu_us;
  };
  // Blocked: its CPU time stands still (all of it takes over 100 ms).
  for (let last = -Infinity, now = 0; now - last > 2000; ) {
    last = now;
    await new Promise((r) => setTimeout(r, 300));
    now = await cpu();
  }
  const held = us.events.length;
  us.tell('read', { box: 'f', on: true });
  await us.next('out', 'f', (e) => e.text.endsWith('END\n'));
  assert.ok(us.events.length - held > 100, 'most of it came only then');
  us.events = [];
  await us.stop('f');
});

const ends = [
  ['its own exit', { argv: sh('exit 7') }, { cause: 'exited', code: 7, signal: 0 }],
  ['a good exit', { argv: sh('true') }, { cause: 'exited', code: 0, signal: 0 }],
  ['no such program', { argv: ['/no/such'] }, { cause: 'exited', code: 127, signal: 0 }],
  ['a signal', { argv: sh('kill -SEGV $$; sleep 9') }, { cause: 'killed', code: -1, signal: 11 }],
  ['memory', { argv: ['/bin/dd', 'if=/dev/zero', 'of=/dev/null', 'bs=200M', 'count=9'],
    limits: { memory: 32 << 20 } }, { cause: 'oom', code: -1, signal: 9 }],
];
for (const [name, how, want] of ends)
  test(`the end is told with its cause: ${name}`, { skip }, async () => {
    us.tell('start', { box: 'end', ...how });
    const { cause, code, signal } = await us.next('gone', 'end');
    const causes = want.cause === 'oom' ? memoryCauses(await engine.noticedMemory()) : [want.cause];
    assert.ok(causes.includes(cause), `${cause}, not ${causes}`);
    assert.deepEqual({ code, signal }, { code: want.code, signal: want.signal });
    assert.equal(us.events.filter((e) => e.box === 'end' && e.ev === 'gone').length, 0);
    assert.deepEqual((await all()).length, 0);
  });

test('killed or removed by somebody else: noticed, once', { skip }, async () => {
  for (const [how, want] of [['kill', 'killed'], ['remove', 'killed']]) {
    const { id } = await us.start('k');
    if (how === 'kill') await engine.api('POST', `/containers/${id}/kill`);
    else await engine.api('DELETE', `/containers/${id}?force=1`);
    const gone = await us.next('gone', 'k');
    assert.deepEqual([gone.cause, gone.signal], [want, 9], how);
  }
  assert.deepEqual(await all(), []);
});

test('stopped at any moment of its start: nothing is left', { skip }, async () => {
  const { ms } = await us.start('m');
  await us.stop('m');
  for (let i = 0; i <= 12; i++) {
    const box = `m${i}`;
    us.tell('start', { box });
    await new Promise((r) => setTimeout(r, (ms * i) / 12));
    const { cause } = await us.stop(box);
    assert.equal(cause, 'stopped', `after ${i}/12`);
  }
  assert.deepEqual(await all(), []);
});

test('refusals say why', { skip }, async () => {
  const rows = [
    [{ image: 'no/such:image' }, 'not found', /no\/such:image/],
    [{ limits: { cpu_milli: 900000 } }, 'invalid', /CPUs/],
  ];
  for (const [how, errno, why] of rows)
    await assert.rejects(us.start('r', how), (e) => {
      assert.equal(e.cause, 'refused');
      assert.match(e.why, why);
      return true;
    }, errno);
  assert.deepEqual(await all(), []);
});

test('after SIGKILL of us: found, adopted with its files, or removed', { skip }, async () => {
  const first = docker(engine, { store: 'st', instance: 'first' });
  const { id } = await first.start('a', { session: 'lives', argv: sh('echo kept >/workspace/f; echo ok; exec sh') });
  await first.until('a', 'ok\n');
  const b = await first.start('b', { session: 'dead' });
  await first.sigkill();

  const second = docker(engine, { store: 'st', instance: 'second' });
  const rows = await second.list();
  assert.deepEqual(rows.map((r) => [r.session, r.instance, r.running]).sort(),
    [['dead', 'first', true], ['lives', 'first', true]]);
  assert.deepEqual(await us.list(), [], 'another store sees none of them');
  await second.start('a', { id });
  second.write('a', 'cat /workspace/f\n');
  assert.match(await second.until('a', '\n'), /kept\n$/);
  assert.deepEqual(await second.remove(b.id), { ev: 'removed' });
  assert.deepEqual(await second.remove(b.id), { ev: 'removed' }, 'unknown is as good');
  assert.equal((await second.stop('a')).cause, 'stopped');
  await assert.rejects(second.start('x', { id }), { cause: 'refused' });
  await second.close();
  assert.deepEqual(await all(), []);
});

test('let go: it lives on, and can be adopted; not by another store', { skip }, async () => {
  const { id } = await us.start('l', { argv: sh('read x; echo "got $x"; cat') });
  us.tell('letgo', { box: 'l' });
  assert.equal((await us.next('gone', 'l')).cause, 'let go');
  assert.equal((await inspect(id)).State.Running, true);
  const other = docker(engine, { store: 'other' });
  await assert.rejects(other.start('l', { id }), /not one of ours/);
  await other.close();
  assert.equal((await inspect(id)).State.Running, true);
  await engine.api('POST', `/containers/${id}/pause`);
  await us.start('l', { id });
  us.write('l', 'this\n');
  await us.until('l', 'got this\n');
  await us.stop('l');
});

test('a container that is not as it should be is not adopted', { skip }, async () => {
  const { id } = await us.start('w');
  const { Config: c, HostConfig: h } = await inspect(id);
  await us.stop('w');
  const weak = await engine.api('POST', '/containers/create', {
    ...c, HostConfig: { ...h, CapDrop: [], CapAdd: ['SYS_ADMIN'] } });
  await engine.api('POST', `/containers/${weak.json.Id}/start`);
  await assert.rejects(us.start('w', { id: weak.json.Id }), /the engine changed CapAdd/);
  assert.deepEqual(await all(), [], 'and it is gone');
});

test('warm boxes: kept ready, taken once, removed at the end', { skip }, async () => {
  const own = docker(engine, { store: 'warm' });
  own.tell('warm', { n: 2 });
  const ready = async (n) => {
    for (;;) {
      own.tell('warm?');
      if ((await own.next('warm')).n === n) return;
      await new Promise((r) => setTimeout(r, 50));
    }
  };
  await ready(2);
  const [a, b] = [await own.start('a', { session: 'a' }), await own.start('b', { session: 'b' })];
  assert.notEqual(a.id, b.id);
  await ready(2);
  assert.equal((await own.list()).length, 4);
  await own.stop('a');
  await own.stop('b');
  await own.close();
  assert.deepEqual(await all(), []);
});

test('twenty at once, each with its own voice', { skip }, async () => {
  const names = Array.from({ length: 20 }, (_, i) => `n${i}`);
  await Promise.all(names.map(async (n) => {
    await us.start(n, { argv: sh('read x; echo "I am $x"; cat'), limits: { cpu_milli: 100 } });
    us.write(n, `${n}\n`);
    assert.equal(await us.until(n, '\n'), `I am ${n}\n`);
    await us.stop(n);
  }));
  assert.deepEqual(await all(), []);
});
