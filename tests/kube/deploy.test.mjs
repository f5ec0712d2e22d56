// deploy/kubernetes: every object is accepted by a real API server, and its
// service account can run boxes and do nothing else.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { api, apply, asToken, claimRules, Namespace, noKube, ownImage } from '../lib/kube.mjs';
import { eventually } from '../lib/outside.mjs';

const skip = noKube;
const dir = fileURLToPath(new URL('../../deploy/kubernetes', import.meta.url));
const BOXES = '/api/v1/namespaces/mcp-boxes';
const SERVER = '/api/v1/namespaces/mcp-orchestrator';
const ROLE = '/apis/rbac.authorization.k8s.io/v1/namespaces/mcp-boxes/roles/mcp-orchestrator';
const objects = []; // as the cluster has them
let ns;

/** The documents of a file, as text. */
const documents = (file) => readFileSync(join(dir, file), 'utf8').split(/^---$/m);
const gone = async (name) => (await api('GET', `/api/v1/namespaces/${name}`)).status === 404;

before(async () => {
  if (skip) return;
  ownImage.load();
  await Promise.all(['mcp-boxes', 'mcp-orchestrator'].map((n) =>
    eventually(`there is no ${n}`, () => gone(n), 60_000)));
  for (const file of ['server.yaml', 'boxes.yaml'])
    for (const text of documents(file)) objects.push(await apply(text));
  ns = Object.assign(new Namespace(), { name: 'mcp-boxes', path: BOXES, dir: mkdtempSync(join(tmpdir(), 'mo-deploy-')) });
  ns.token = (await api('POST', `${SERVER}/serviceaccounts/mcp-orchestrator/token`,
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 7200 } })).json.status.token;
  ns.kubeconfig = ns.write('config', `    token: ${ns.token}`);
}, { timeout: 120_000 });

after(async () => {
  if (skip) return;
  if (ns) rmSync(ns.dir, { recursive: true, force: true });
  for (const name of ['mcp-boxes', 'mcp-orchestrator']) await api('DELETE', `/api/v1/namespaces/${name}`);
});

test('a pod has the time to end that its configuration needs', () => {
  for (const [file, drain] of [['server.yaml', 0], ['replicas.yaml', 10]]) {
    const text = readFileSync(join(dir, file), 'utf8');
    assert.equal(Number(/"drainSeconds": (\d+)/.exec(text)?.[1] ?? 0), drain, file);
    assert.equal(Number(/terminationGracePeriodSeconds: (\d+)/.exec(text)[1]), drain + 45, file);
  }
});

test('all objects are there', { skip }, () => {
  assert.deepEqual(objects.map((o) => `${o.kind} ${o.metadata.name}`).sort(), [
    'ConfigMap mcp-orchestrator', 'Deployment mcp-orchestrator', 'Namespace mcp-boxes', 'Namespace mcp-orchestrator',
    'NetworkPolicy mo-boxes', 'PersistentVolumeClaim mcp-orchestrator', 'PodDisruptionBudget mcp-orchestrator',
    'Role mcp-orchestrator', 'RoleBinding mcp-orchestrator', 'Service mcp-orchestrator', 'ServiceAccount mcp-orchestrator']);
});

test('the configuration names the namespace of boxes', { skip }, () => {
  const { data } = objects.find((o) => o.kind === 'ConfigMap');
  const { server, sandbox } = JSON.parse(data['config.json']);
  const pod = objects.find((o) => o.kind === 'Deployment').spec.template.spec;
  assert.equal(pod.containers[0].ports[0].containerPort, server.port);
  assert.deepEqual([sandbox.driver, sandbox.kubernetes.namespace], ['kubernetes', 'mcp-boxes']);
});

test('boxes run with that account', { skip }, async () => {
  const us = ns.boxes();
  us.tell('check');
  const { ok, why } = await us.next('check');
  assert.deepEqual([ok, why], [true, '']);
  const { id } = await us.start('a', { argv: ['/bin/cat'] });
  us.write('a', 'hello\n');
  await us.until('a', 'hello\n');
  assert.equal((await us.list()).length, 1);
  const [policy] = (await ns.pod(id)).json.metadata.ownerReferences;
  assert.equal(policy.uid, objects.find((o) => o.kind === 'NetworkPolicy').metadata.uid, 'ours, not a new one');
  assert.equal((await us.stop('a')).cause, 'stopped');
  assert.equal(await us.close(), 0);
});

const forbidden = [
  ['GET', `${BOXES}/secrets`], ['GET', `${SERVER}/secrets`], ['GET', `${BOXES}/configmaps`],
  ['GET', `${SERVER}/pods`], ['GET', '/api/v1/namespaces/default/pods'], ['GET', '/api/v1/pods'],
  ['POST', `${SERVER}/pods`], ['GET', '/api/v1/nodes'], ['GET', '/api/v1/namespaces'],
  ['GET', `${BOXES}/pods/x/log`], ['POST', `${BOXES}/pods/x/eviction`],
  ['DELETE', `${BOXES}/pods`], ['POST', `${BOXES}/serviceaccounts/default/token`],
  ['DELETE', '/apis/networking.k8s.io/v1/namespaces/mcp-boxes/networkpolicies/mo-boxes'],
  ['GET', ROLE],
];
for (const [method, path] of forbidden)
  test(`it may not ${method} ${path}`, { skip }, async () => {
    const { status, text } = await asToken(ns.token, method, path, method === 'POST' ? {} : undefined);
    assert.equal(status, 403, text);
  });

test('without any one of its rights the check names that right', { skip }, async () => {
  const all = objects.find((o) => o.kind === 'Role').rules;
  const optional = ['pods patch', 'pods/attach create']; // labels; Kubernetes 1.35
  for (const rule of all)
    for (const verb of rule.verbs) {
      const [what] = rule.resources;
      if (optional.includes(`${what} ${verb}`)) continue;
      const rules = all.map((r) => r !== rule ? r : { ...r, verbs: r.verbs.filter((v) => v !== verb) });
      assert.equal((await api('PUT', ROLE, { metadata: { name: 'mcp-orchestrator' }, rules })).status, 200);
      const us = ns.boxes();
      await eventually(`${verb} ${what} is missed`, async () => {
        us.tell('check');
        return (await us.next('check')).why.startsWith(`no right to ${verb} ${what} in`);
      });
      await us.close();
    }
});

test('claims.yaml adds the rights for files that stay, and no others', { skip }, async () => {
  const claims = `${BOXES}/persistentvolumeclaims`;
  assert.equal((await asToken(ns.token, 'GET', claims)).status, 403, 'not without it');
  const all = objects.find((o) => o.kind === 'Role').rules;
  assert.equal((await api('PUT', ROLE, { metadata: { name: 'mcp-orchestrator' }, rules: all })).status, 200);
  const added = [];
  for (const text of documents('claims.yaml')) added.push(await apply(text));
  assert.deepEqual(added.find((o) => o.kind === 'Role').rules, claimRules);
  const us = ns.boxes({ more: ['--claims', 'any'] });
  await eventually('it is enough', async () => {
    us.tell('check');
    return (await us.next('check')).ok;
  });
  await us.close();
  for (const [method, path] of [['DELETE', claims], ['GET', `${claims}?watch=1`], ['GET', `${SERVER}/persistentvolumeclaims`],
    ['GET', '/api/v1/persistentvolumes'], ['GET', `${BOXES}/events/x`], ['POST', `${BOXES}/events`]])
    assert.equal((await asToken(ns.token, method, path, method === 'POST' ? {} : undefined)).status, 403, `${method} ${path}`);
});

test('replicas.yaml takes the place of server.yaml', { skip }, async () => {
  const now = [];
  for (const text of documents('replicas.yaml')) now.push(await apply(text));
  const of = (kind) => now.find((o) => o.kind === kind);
  assert.deepEqual([of('Deployment').spec.replicas, of('Deployment').spec.strategy.type], [2, 'RollingUpdate']);
  const { cluster } = JSON.parse(of('ConfigMap').data['config.json']);
  const ports = of('Deployment').spec.template.spec.containers[0].ports.map((p) => p.containerPort);
  assert.ok(ports.includes(Number(cluster.listen.split(':').at(-1))));
});
