// An engine that drops, cuts, lies and keeps silent, one answer at a time: a
// box ends with a reason, once; the driver lives on; nothing that was made is
// forgotten.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { docker } from '../lib/box.mjs';
import { EvilDocker, frame, tricks } from '../lib/evil_docker.mjs';

const skip = existsSync('/bin/busybox') ? false : 'the program busybox';
let evil;
let us;

before(async () => {
  if (skip) return;
  evil = await new EvilDocker().listen();
  us = docker(evil, { env: { ASAN_OPTIONS: 'detect_leaks=1' } });
  await us.start('first');
  await us.stop('first');
});
after(async () => {
  if (skip) return;
  evil.honest();
  assert.equal(await us.close(), 0, 'nothing leaked');
  await evil.close();
});

const places = {
  create: /^POST \/containers\/create/,
  inspect: /^GET \/containers\/\w+\/json/,
  attach: /attach/,
  start: /\/start/,
};
// No body to cut or lengthen; any answer of 200 is as good.
const harmless = { start: ['half', 'longer', 'null', 'array'], attach: ['longer', 'twice'] };
const breaking = ['drop', 'end', 'half', 'longer', 'twice', '500', 'noise', 'null', 'array'];

/** Afterwards an honest engine gives a box, and has no other. */
async function allIsWell(name) {
  evil.honest();
  await us.start('well');
  us.write('well', 'hello');
  assert.equal(await us.until('well', 'hello'), 'hello', name);
  assert.equal(evil.boxes.size, 1, `${name}: something was left behind`);
  assert.equal((await us.stop('well')).cause, 'stopped');
  assert.deepEqual(us.events.filter((e) => e.ev === 'gone'), [], `${name}: told twice`);
  assert.ok(!us.over);
}

for (const [place, what] of Object.entries(places))
  test(`${place}: every bad answer ends the box once`, { skip }, async () => {
    for (const trick of breaking) {
      if (harmless[place]?.includes(trick)) continue;
      evil.lie(what, tricks[trick], 1);
      const failed = await us.start('x').then(() => null, (e) => e);
      // A question that was not answered at all is asked again.
      if (!failed) {
        assert.ok(place === 'inspect' && ['drop', 'end'].includes(trick), `${place} ${trick}`);
        await us.stop('x');
      } else {
        assert.ok(['refused', 'engine gone'].includes(failed.cause), `${trick}: ${failed.cause}`);
        assert.ok(failed.why.length > 0);
      }
      await allIsWell(`${place} ${trick}`);
    }
  });

test('answers a byte at a time are answers', { skip }, async () => {
  for (const [place, what] of Object.entries({ ...places, remove: /^DELETE/ })) {
    if (place === 'attach') continue; // its stream is the next test
    evil.lie(what, tricks.slice);
    await us.start('slow');
    us.write('slow', 'x');
    await us.until('slow', 'x');
    assert.equal((await us.stop('slow')).cause, 'stopped', place);
  }
  await allIsWell('slices');
});

test('a name that is taken: another uid', { skip }, async () => {
  evil.lie(places.create, (s) => { evil.boxes.clear(); tricks[409](s); }, 3);
  await us.start('taken');
  const uids = evil.seen.map((l) => /create\?name=mo-box-(\d+)/.exec(l)?.[1]).filter(Boolean).slice(-4).map(Number);
  assert.equal(new Set(uids).size, 4);
  for (const [i, uid] of uids.slice(1).entries()) // after the last comes the first
    assert.ok(uid === uids[i] + 1 || uid === 20000, `the next: ${uids}`);
  await us.stop('taken');
});

test('an image that is gone is loaded again', { skip }, async () => {
  evil.lie(places.create, (s) => { evil.boxes.clear(); tricks[404](s); }, 1);
  const before_ = evil.seen.filter((l) => /^GET \/images/.test(l)).length;
  await us.start('again');
  assert.ok(evil.seen.filter((l) => /^GET \/images/.test(l)).length > before_);
  await us.stop('again');
});

test('inspect tells of another container than was asked for', { skip }, async () => {
  const honest = evil.inspect.bind(evil);
  const lies = [
    (i) => ({ ...i, HostConfig: { ...i.HostConfig, Privileged: true } }),
    (i) => ({ ...i, HostConfig: { ...i.HostConfig, PidsLimit: 0 } }),
    (i) => ({ ...i, HostConfig: { ...i.HostConfig, SecurityOpt: [] } }),
    (i) => ({ ...i, Image: 'sha256:other' }),
    (i) => ({ ...i, Mounts: [{ Type: 'bind' }] }),
    (i) => ({ ...i, State: { Running: true } }),
  ];
  for (const lie of lies) {
    evil.inspect = (box) => lie(honest(box));
    await assert.rejects(us.start('lie'), { cause: 'refused', errno: 'policy' });
    assert.equal(evil.boxes.size, 0);
    assert.ok(!evil.seen.slice(-3).some((l) => /\/start/.test(l)), 'it was never started');
  }
  evil.inspect = honest;
  await allIsWell('inspect');
});

test('the attach stream: cut anywhere, or nonsense', { skip }, async () => {
  const bytes = Buffer.concat([frame(1, 'he'), frame(2, 'err'), frame(1, 'llo')]);
  evil.input = async (s) => {
    for (const b of bytes) {
      s.write(Buffer.from([b]));
      await new Promise((r) => setImmediate(r));
    }
  };
  await us.start('cut');
  us.write('cut', 'x');
  assert.equal(await us.until('cut', 'llo'), 'hello');
  assert.equal(await us.until('cut', 'err', 'err'), 'err');
  await us.stop('cut');
  for (const bad of [frame(3, 'x'), frame(0, 'x'), frame(1, 'x', 0xffffffff), Buffer.from([1, 9, 9, 9, 0, 0, 0, 1, 0])]) {
    evil.input = (s) => s.write(bad);
    await us.start('bad');
    us.write('bad', 'x');
    const { cause } = await us.next('gone', 'bad');
    assert.ok(['exited', 'engine gone'].includes(cause), cause);
  }
  delete evil.input;
  await allIsWell('attach stream');
});

test('the attach ends, the box does not: of no use', { skip }, async () => {
  await us.start('mute');
  [...evil.boxes.values()][0].socket.end();
  const gone = await us.next('gone', 'mute');
  assert.deepEqual([gone.cause, gone.code, gone.why], ['exited', -1, 'its program closed its output']);
  await allIsWell('mute');
});

const ends = [
  [{ ExitCode: 0 }, 'exited', 0], [{ ExitCode: 5 }, 'exited', 0], [{ ExitCode: 139 }, 'killed', 11],
  [{ ExitCode: 137 }, 'killed', 9], [{ ExitCode: 137, OOMKilled: true }, 'oom', 9],
  [{ ExitCode: 0, OOMKilled: true }, 'exited', 0], [{ ExitCode: 'x' }, 'exited', 0],
];
test('causes, as the engine tells them', { skip }, async () => {
  for (const [state, cause, signal] of ends) {
    await us.start('end');
    const [box] = evil.boxes.values();
    box.state = { Running: false, ...state };
    box.socket.end();
    const gone = await us.next('gone', 'end');
    assert.deepEqual([gone.cause, gone.signal], [cause, signal], JSON.stringify(state));
  }
});

test('memory that the engine learns of after the end', { skip }, async () => {
  await us.start('late');
  const [[id, box]] = evil.boxes;
  box.state = { Running: false, ExitCode: 137 };
  box.socket.end();
  evil.tell({ Type: 'container', Action: 'oom', id, Actor: { ID: id, Attributes: {} } });
  const gone = await us.next('gone', 'late');
  assert.deepEqual([gone.cause, gone.signal], ['oom', 9]);
});

test('stop while the engine keeps silent', { skip }, async () => {
  for (const what of [places.inspect, places.attach]) {
    evil.lie(what, tricks.never);
    us.tell('start', { box: 'mum' });
    while (!evil.seen.some((l) => what.test(l))) await new Promise((r) => setTimeout(r, 10));
    await new Promise((r) => setTimeout(r, 50));
    assert.equal((await us.stop('mum')).cause, 'stopped');
    evil.seen.length = 0;
    await allIsWell('silence');
  }
});

test('removal: refused for a while, then done; broken off', { skip }, async () => {
  for (const [trick, times, want] of [['409', 3, 'stopped'], ['500', 3, 'stopped'], ['drop', Infinity, 'engine gone']]) {
    await us.start('rm');
    const kept = [...evil.boxes];
    evil.lie(/^DELETE/, (s, a) => { kept.forEach(([k, v]) => evil.boxes.set(k, v)); tricks[trick](s, a); }, times);
    assert.equal((await us.stop('rm')).cause, want, trick);
    evil.honest();
    if (want === 'stopped') assert.equal(evil.boxes.size, 0, trick);
    else for (const [id] of kept) assert.deepEqual(await us.remove(id), { ev: 'removed' });
  }
  await allIsWell('removal');
});

const greetings = [
  [/version/, tricks[500], /500/], [/version/, tricks.null, /API 1\.0 to 1\.0/],
  [/info/, tricks.array, /not an object/], [/images/, tricks[500], /500/],
  [/version/, (s) => s.write('HTTP/1.1 200 X\r\nContent-Length: 23\r\n\r\n{"ApiVersion": "1.40" }'), /1\.40/],
  [/info/, (s) => s.write('HTTP/1.1 200 X\r\nContent-Length: 21\r\n\r\n{"MemoryLimit":false}'), /memory limits/],
];
test('an engine that will not do is said so', { skip }, async () => {
  for (const [what, trick, why] of greetings) {
    const own = docker(evil);
    evil.lie(what, trick);
    own.tell('check');
    const r = await own.next('check');
    assert.equal(r.ok, false);
    assert.match(r.why, why);
    await assert.rejects(own.start('x'), { cause: 'refused' });
    evil.honest();
    own.tell('check');
    assert.equal((await own.next('check')).ok, true, 'it may come right');
    await own.close();
  }
  const nobody = docker({ host: 'unix:///no/such/sock', dir: evil.dir });
  nobody.tell('check');
  assert.match((await nobody.next('check')).why, /cannot connect/);
  nobody.tell('list');
  assert.equal((await nobody.next('rows')).errno, 'unavailable');
  await nobody.close();
});
