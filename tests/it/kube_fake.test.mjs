// Kubernetes boxes against an API server that refuses, forgets and lies. The
// real one is in tests/kube.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { Boxes } from '../lib/box.mjs';
import { FakeKube } from '../lib/fake_kube.mjs';
import { eventually } from '../lib/outside.mjs';

let fake;
let us;
const busy = (match, times, status = 429) => Array.from({ length: times }, () =>
  [match, status, { 'Retry-After': '0' }, { message: 'too many requests' }]);

before(async () => {
  fake = await FakeKube.open();
  us = new Boxes(['--driver', 'kubernetes', '--kubeconfig', fake.config, '--image', 'i']);
});
beforeEach(() => fake.reset());
after(async () => {
  await us.close();
  fake.close();
});

async function echoes(box) {
  us.write(box, 'hello\n');
  assert.equal(await us.until(box, '\n'), 'hello\n');
}

test('v5 is taken where it is offered, and a program is asked until it is heard', async () => {
  fake.deaf = 3;
  await us.start('a');
  fake.deaf = 0;
  await echoes('a');
  assert.equal((await us.stop('a')).cause, 'stopped');
  assert.equal(fake.pods.size, 0);
});

test('an attach that ends before the program was heard: another one follows, later', async () => {
  fake.cut = 1;
  fake.attachAfter = 300; // longer than a question of the first one is waited for
  await us.start('i');
  await echoes('i');
  assert.equal(fake.count(/^ATTACH/), 2);
  await us.stop('i');
});

test('attaches that all end before the program was heard: the start fails after some', async () => {
  fake.cut = Infinity;
  await assert.rejects(us.start('j'), /its node ended the attach/);
  assert.equal(fake.count(/^ATTACH/), 6);
  assert.equal(fake.pods.size, 0);
});

test('429 and 503: repeated as often as is said, no more', async () => {
  fake.first = [...busy(/^POST/, 2), ...busy(/^POST/, 1, 503)];
  await us.start('b');
  assert.equal(fake.count(/^POST .*\/pods$/), 4);
  await us.stop('b');
  fake.first = busy(/^POST/, 9);
  await assert.rejects(us.start('c'), /429: too many requests/);
  assert.equal(fake.count(/^POST .*\/pods$/), 8);
  assert.equal(fake.pods.size, 0);
});

test('a create that fails with 500 is not repeated', async () => {
  fake.first = busy(/^POST/, 1, 500);
  await assert.rejects(us.start('d'), /500/);
  assert.equal(fake.count(/^POST .*\/pods$/), 1);
  assert.equal(fake.count(/^DELETE/), 1, 'it may have been made');
});

test('410 Gone: the pods are listed again, and what was missed is noticed', async () => {
  const { id } = await us.start('e');
  fake.pods.delete(id);
  const lists = fake.count(/^GET .*pods\?labelSelector/);
  fake.tell('ERROR', { kind: 'Status', code: 410, message: 'too old resource version' });
  const gone = await us.next('gone', 'e');
  assert.deepEqual([gone.cause, gone.signal], ['killed', 9]);
  assert.ok(fake.count(/^GET .*pods\?labelSelector/) > lists);
  await eventually('it watches again', () => fake.watches.size === 1);
});

test('an older answer does not undo what the watch has told', async () => {
  fake.status = { phase: 'Pending' };
  us.tell('start', { box: 'o' });
  await eventually('its pod waits', () => fake.pods.size === 1 && fake.watches.size === 1);
  const [pod] = fake.pods.values();
  fake.listed = () => []; // so that the driver asks for it
  fake.beforeGet = async () => {
    await eventually('it watches again', () => fake.watches.size === 1);
    fake.tell('MODIFIED', { ...pod, status: { phase: 'Running',
      containerStatuses: pod.spec.containers.map(({ name }) => ({ name, state: { running: {} } })) } });
    await sleep(300); // what follows holds whichever comes first
  };
  fake.tell('ERROR', { kind: 'Status', code: 410, message: 'too old resource version' });
  await us.ready('o');
  fake.beforeGet = async () => {};
  await us.stop('o');
});

const GONE = { kind: 'Status', code: 410, message: 'the provided continue parameter is too old' };

test('pods are watched whatever the number of parts they are listed in', async () => {
  const boxes = ['p0', 'p1', 'p2', 'p3', 'p4'];
  const ids = [];
  for (const box of boxes) ids.push((await us.start(box)).id);
  fake.part = 2;
  const begun = () => fake.count(/^GET .*pods\?labelSelector=[^&]*&limit=500$/);
  const went = () => fake.count(/^GET .*pods\?labelSelector=[^&]*&limit=500&continue=at%26%2B%3D\d$/);
  const [lists, parts] = [begun(), went()];
  fake.pods.delete(ids[4]);
  fake.first = [[/continue=/, 410, {}, GONE]];
  fake.tell('ERROR', { kind: 'Status', code: 410, message: 'too old resource version' });
  assert.equal((await us.next('gone', 'p4')).cause, 'killed', 'one that no part has');
  assert.equal(begun() - lists, 2, 'from the beginning, once more after 410');
  assert.equal(went() - parts, 2, 'the one that was refused, and the second part');
  await eventually('it watches again', () => fake.watches.size === 1);
  for (const box of boxes.slice(0, 4)) {
    await echoes(box);
    await us.stop(box);
  }
});

const claim = (n) => ({ metadata: { name: `mo-files-${100000 + n}-${String(n).padStart(16, '0')}`,
  labels: { 'mo.role': 'files', 'mo.store': 'test' }, annotations: { 'mo.session': `s${n}`, 'mo.instance': 'one' } } });

test('claims are listed in parts; one that was forgotten goes on where the cluster says, or from the beginning', async () => {
  const keeps = new Boxes(['--driver', 'kubernetes', '--kubeconfig', fake.config, '--image', 'i', '--claims', 'fast', '--store', 'test']);
  const listed = async () => (await keeps.list('files')).map((r) => r.id);
  const all = Array.from({ length: 1201 }, (_, n) => claim(n));
  const names = all.map((c) => c.metadata.name);
  const asked = () => fake.seen.filter((s) => /persistentvolumeclaims\?/.test(s)).map((s) => /continue=at%26%2B%3D(\d+)$/.exec(s)?.[1] ?? 'first');
  fake.claims = all;
  assert.deepEqual(await listed(), names);
  assert.deepEqual(asked(), ['first', '500', '1000'], '500 at a time');

  fake.seen = [];
  fake.first = [[/continue=.*1000$/, 410, {}, { ...GONE, metadata: { continue: 'at&+=1001' } }]];
  assert.deepEqual(await listed(), names.filter((_, n) => n !== 1000), 'it goes on there');
  assert.deepEqual(asked(), ['first', '500', '1000', '1001']);

  fake.seen = [];
  fake.first = [[/continue=.*1000$/, 410, {}, GONE]];
  assert.deepEqual([...new Set(await listed())], names, 'all of them, some twice');
  assert.deepEqual(asked(), ['first', '500', '1000', 'first', '500', '1000']);

  fake.first = Array.from({ length: 9 }, () => [/continue=/, 410, {}, GONE]);
  await assert.rejects(listed(), /410/, 'a list ends');
  assert.equal(fake.first.length, 5, 'after the fourth time');
  fake.first = [];
  fake.claims = all.slice(0, 3).map((c) => ({ ...c, metadata: { ...c.metadata, continue: 'x' } }));
  assert.deepEqual(await listed(), names.slice(0, 3));
  await keeps.close();
});

test('a place that is too long for us is an error', async () => {
  fake.first = [[/^GET .*pods\?labelSelector/, 200, {}, { metadata: { resourceVersion: '1', continue: 'x'.repeat(2000) }, items: [] }]];
  await assert.rejects(us.list(), /place in a list is longer/);
  assert.deepEqual(await us.list(), []);
});

test('another pod with the name of a box is not that box', async () => {
  const { id } = await us.start('n');
  await echoes('n');
  const other = { ...fake.pods.get(id), metadata: { ...fake.pods.get(id).metadata, uid: 'another' } };
  fake.pods.set(id, other);
  fake.tell('ERROR', { kind: 'Status', code: 410, message: 'too old resource version' });
  const gone = await us.next('gone', 'n');
  assert.deepEqual([gone.cause, gone.signal], ['killed', 9]);
  assert.equal(fake.pods.get(id), other, 'which stays');
});

test('a box of another session is neither adopted nor removed', async () => {
  const { id } = await us.start('s', { session: 'mine' });
  us.tell('letgo', { box: 's' });
  assert.equal((await us.next('gone', 's')).cause, 'let go');
  await assert.rejects(us.start('t', { id, session: 'yours' }), /is of another session/);
  await us.start('s', { id, session: 'mine' });
  await us.stop('s');
  assert.equal(fake.pods.size, 0);
});

test('a pod that is deleted before it runs is replaced, twice', async () => {
  fake.status = { phase: 'Pending' };
  const lose = async (n) => {
    await eventually('its pod waits', () => fake.count(/^POST .*\/pods$/) === n && fake.pods.size === 1 && fake.watches.size === 1);
    const [pod] = fake.pods.values();
    fake.pods.clear();
    fake.tell('DELETED', pod);
  };
  us.tell('start', { box: 'u' });
  await lose(1);
  await lose(2);
  await lose(3);
  const { cause, why } = await us.next('gone', 'u');
  assert.deepEqual([cause, why], ['refused', 'its pod was deleted before it ran']);
  us.tell('start', { box: 'u' });
  await lose(4);
  await lose(5);
  fake.status = null;
  await us.ready('u');
  await echoes('u');
  await us.stop('u');
  assert.equal(fake.pods.size, 0);
});

test('a pod that ends while it is adopted is told as that', async () => {
  const { id } = await us.start('v');
  us.tell('letgo', { box: 'v' });
  await us.next('gone', 'v');
  fake.noAttach = true;
  us.tell('adopt', { box: 'v', id });
  await eventually('it is tried', () => fake.count(/^ATTACH/) > 1);
  fake.pods.delete(id);
  const { cause, why } = await us.next('gone', 'v');
  assert.equal(cause, 'refused');
  assert.match(why, /404/);
});

test('bookmarks are no news', async () => {
  const { id } = await us.start('f');
  fake.tell('BOOKMARK', { kind: 'Pod', metadata: { resourceVersion: '99' } });
  const pod = { ...fake.pods.get(id), status: { phase: 'Failed',
    containerStatuses: [{ name: fake.pods.get(id).spec.containers[0].name, state: { terminated: { exitCode: 4 } } }] } };
  fake.tell('MODIFIED', pod);
  const { cause, code } = await us.next('gone', 'f');
  assert.deepEqual([cause, code], ['exited', 4]);
});

test('an attach that dies half-way: told', async () => {
  await us.start('g');
  await echoes('g');
  fake.socket.destroy();
  const gone = await us.next('gone', 'g');
  assert.equal(gone.cause, 'engine gone');
  assert.match(gone.why, /the connection to its pod .* was lost/);
});

test('admission that changes a pod: refused, and the pod is deleted', async () => {
  fake.change = (pod) => {
    pod.spec.containers.push({ name: 'proxy', image: 'p' });
    return pod;
  };
  await assert.rejects(us.start('h'), /the cluster changed containers/);
  assert.equal(fake.pods.size, 0);
});

test('a warm box is taken without a request; its pod gets the session after that', async () => {
  fake.change = (pod) => pod;
  us.tell('warm', { n: 1 });
  const ready = () => eventually('one is warm', async () => {
    us.tell('warm?');
    return (await us.next('warm')).n === 1;
  });
  await ready();
  fake.seen = [];
  const { id } = await us.start('w', { session: 'mine', expires: 4102444800 });
  assert.deepEqual(fake.seen.filter((s) => s.includes(id)), []);
  await echoes('w');
  await eventually('it is named', () => fake.pods.get(id).metadata.annotations['mo.session'] === 'mine');
  assert.deepEqual(fake.seen.filter((s) => s.includes(id)), [`PATCH /api/v1/namespaces/boxes/pods/${id}`]);
  const { 'mo.warm': warm, 'mo.expires': expires } = fake.pods.get(id).metadata.annotations;
  assert.deepEqual([warm, expires], ['0', '4102444800']);
  await us.stop('w');

  await ready();
  fake.first = [[/^PATCH/, 403, {}, { message: 'no' }]];
  const { id: other } = await us.start('x', { session: 'other' });
  await eventually('it was refused', () => fake.first.length === 0);
  await echoes('x');
  assert.equal(fake.pods.get(other).metadata.annotations['mo.warm'], '1');
  await us.stop('x');
  us.tell('warm', { n: 0 });
  await eventually('the last is removed', () => fake.pods.size === 0);
});
