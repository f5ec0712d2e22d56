// What a cluster loses: a kubelet, a machine, a cable, its API, a pod. The
// cause is told, what runs on is found again, and nothing is left.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { api, cable, healNodes, isReady, killApi, killKubelet, killNode, Namespace, noKube, ownImage,
  startKubelet } from '../lib/kube.mjs';
import { eventually } from '../lib/outside.mjs';

const skip = noKube;
const sh = (script) => ['/bin/sh', '-c', script];
const keeps = { argv: sh('echo kept >/workspace/f; echo ok; exec sh') };
let ns;
let us;

const nodeOf = async (id) => (await ns.pod(id)).json.spec.nodeName;
const allReady = () => eventually('both nodes are ready', async () =>
  (await isReady('n1')) && (await isReady('n2')), 90_000);

/** A box that has a file, the node it runs on, and its files again later. */
async function box(name) {
  const { id } = await us.start(name, keeps);
  await us.until(name, 'ok\n');
  return { id, node: await nodeOf(id) };
}

async function isAsItWas(id) {
  await us.start('again', { id });
  us.write('again', 'cat /workspace/f\n');
  assert.match(await us.until('again', '\n'), /kept\n$/);
  assert.equal((await us.stop('again')).cause, 'stopped');
}

before(async () => {
  if (skip) return;
  healNodes();
  await allReady();
  ownImage.load();
  ns = await Namespace.open();
  us = ns.boxes();
}, { timeout: 120_000 });

after(async () => {
  await us?.close();
  if (!skip) healNodes();
  await ns?.close();
});

// First: controllers evict nothing for a while after they were without their API.
test('a machine is lost: told, its pod is gone, boxes start elsewhere', { skip }, async () => {
  const { id, node } = await box('m');
  killNode(node);
  const gone = await us.next('gone', 'm');
  assert.equal(gone.cause, 'engine gone');
  assert.match(gone.why, new RegExp(`node ${node} `));
  await eventually('the cluster gives the pod up', async () => (await ns.pod(id)).status === 404, 90_000);
  await assert.rejects(us.start('x', { id }), { cause: 'refused' });
  const other = await us.start('o');
  assert.notEqual(await nodeOf(other.id), node);
  await us.stop('o');
  healNodes();
  await allReady();
  assert.deepEqual(await ns.pods(), []);
});

test('kill -9 of a kubelet: told, and its box is adopted when it is back', { skip }, async () => {
  const { id, node } = await box('k');
  killKubelet(node);
  const gone = await us.next('gone', 'k');
  assert.equal(gone.cause, 'engine gone');
  assert.match(gone.why, new RegExp(`the connection to its pod on node ${node} was lost`));
  startKubelet(node);
  await isAsItWas(id);
  await allReady();
  assert.deepEqual(await ns.pods(), []);
});

test('a cut cable: the silence is noticed, and its box is adopted when it is mended', { skip }, async () => {
  const { id, node } = await box('c');
  cable(node, false);
  const gone = await us.next('gone', 'c');
  cable(node, true);
  assert.equal(gone.cause, 'engine gone');
  assert.match(gone.why, new RegExp(`node ${node} does not answer`));
  await allReady();
  await isAsItWas(id);
  assert.deepEqual(await ns.pods(), []);
});

test('kill -9 of the API server: told, and all is as before when it is back', { skip }, async () => {
  const { id } = await box('a');
  killApi();
  const gone = await us.next('gone', 'a');
  assert.equal(gone.cause, 'engine gone');
  assert.match(gone.why, /cluster at https:\/\/10\.77\.0\.1:6443/);
  await assert.rejects(us.start('b'), /cluster at https:\/\/10\.77\.0\.1:6443.*refused/);
  healNodes();
  await allReady();
  await isAsItWas(id);
  await us.start('n');
  assert.equal((await us.stop('n')).cause, 'stopped');
  assert.deepEqual(await ns.pods(), []);
});

test('evicted, as by a drained node: told', { skip }, async () => {
  const { id, node } = await box('e');
  const { status, text } = await api('POST', `${ns.path}/pods/${id}/eviction`,
    { apiVersion: 'policy/v1beta1', kind: 'Eviction', metadata: { name: id, namespace: ns.name } });
  assert.equal(status, 201, text);
  const gone = await us.next('gone', 'e');
  assert.deepEqual([gone.cause, gone.signal], ['killed', 9]);
  assert.match(gone.why, new RegExp(`deleted from outside.*node ${node} was drained or lost`));
  assert.deepEqual(await ns.pods(), []);
});

test('the policy is deleted: no box outlives it', { skip }, async () => {
  await box('p');
  await api('DELETE', `/apis/networking.k8s.io/v1/namespaces/${ns.name}/networkpolicies/mo-boxes`);
  assert.equal((await us.next('gone', 'p')).cause, 'killed');
  assert.deepEqual(await ns.pods(), []);
  // what is made with the policy that is gone goes with it; then it is made again
  await us.start('q').then(() => us.stop('q'), (e) => assert.match(e.why, /deleted before/));
  await us.start('r');
  assert.equal((await us.stop('r')).cause, 'stopped');
});
