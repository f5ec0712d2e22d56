// Kubernetes boxes against an API server that refuses, forgets and lies. The
// real one is in tests/kube.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

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
