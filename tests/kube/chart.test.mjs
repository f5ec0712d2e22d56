// deploy/helm: the chart is rendered with the template functions that Helm has
// (chart.go), and every object is accepted by a real API server.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { api, apply, claimRules, noKube } from '../lib/kube.mjs';
import { eventually } from '../lib/outside.mjs';

const skip = noKube;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'mo-chart-'));
const NAMES = ['chart-server', 'chart-boxes'];
let versions;

/** The documents of the chart with these values, or the error. */
function render(values) {
  const r = spawnSync(join(dir, 'chart'), [here('../../deploy/helm/mcp-orchestrator'), 'mo', NAMES[0], versions],
    { input: JSON.stringify(values), encoding: 'utf8' });
  return r.status === 0 ? r.stdout.split(/^---$/m).filter((d) => /^kind:/m.test(d)) : r.stderr;
}

/** As Helm: objects without a namespace are in that of the release. */
const placed = (text) => (/^kind: Namespace$/m.test(text) || /^ {2}namespace:/m.test(text)
  ? text : text.replace(/^ {2}name: \S+$/m, `$&\n  namespace: ${NAMES[0]}`));

before(async () => {
  if (skip) return;
  const built = spawnSync('go', ['build', '-o', join(dir, 'chart'), here('chart.go')], {
    env: { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: join(dir, 'cache') }, encoding: 'utf8',
  });
  assert.equal(built.status, 0, built.stderr);
  const { json } = await api('GET', '/apis');
  versions = json.groups.flatMap((g) => g.versions.map((v) => v.groupVersion)).join(',');
  await eventually('no namespaces of an earlier run', async () =>
    (await Promise.all(NAMES.map((n) => api('GET', `/api/v1/namespaces/${n}`)))).every((r) => r.status === 404), 60_000);
  await apply(`apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${NAMES[0]}\n`);
}, { timeout: 120_000 });

after(async () => {
  rmSync(dir, { recursive: true, force: true });
  if (!skip) for (const n of NAMES) await api('DELETE', `/api/v1/namespaces/${n}`);
});

const boxes = { namespace: NAMES[1] };

test('one server with a volume', { skip }, async () => {
  const objects = [];
  for (const text of render({ boxes })) objects.push(await apply(placed(text)));
  assert.deepEqual(objects.map((o) => o.kind).sort(), ['ConfigMap', 'Deployment', 'Namespace', 'NetworkPolicy', 'NetworkPolicy',
    'PersistentVolumeClaim', 'PodDisruptionBudget', 'Role', 'RoleBinding', 'Service', 'ServiceAccount']);
  const { spec } = objects.find((o) => o.kind === 'Deployment');
  assert.deepEqual([spec.replicas, spec.strategy.type], [1, 'Recreate']);
});

test('files that stay: the rights and the configuration, only if they are wanted', { skip }, async () => {
  const resources = (o) => o.rules.flatMap((r) => r.resources);
  const of = async (values, kind) => apply(placed(render({ boxes: { ...boxes, ...values } }).find((d) =>
    new RegExp(`^kind: ${kind}$`, 'm').test(d))));
  const without = resources(await of({}, 'Role'));
  assert.ok(!without.includes('persistentvolumeclaims') && !without.includes('events'), `${without}`);
  const claims = { enabled: true, storageClass: 'fast' };
  assert.deepEqual((await of({ claims }, 'Role')).rules.slice(-2), claimRules);
  const config = async (values) => JSON.parse((await of(values, 'ConfigMap')).data['config.json']).sandbox.kubernetes;
  assert.deepEqual([(await config({ claims })).claims, (await config({ claims })).storageClass], [true, 'fast']);
  assert.deepEqual(Object.keys(await config({})).sort(), ['image', 'namespace']);
});

test('several servers, an ingress, autoscaling; configuration of the values wins', { skip }, async () => {
  const objects = [];
  for (const text of render({
    boxes, redis: true, replicas: 3, pullSecrets: ['one', 'two'], ingress: { enabled: true, className: 'nginx' },
    autoscaling: { enabled: true, metric: 'mo_socketio_sockets' }, nodeSelector: { disk: 'fast' },
    config: { audit: { arguments: true }, sandbox: { warm: 7 } },
  })) objects.push(await apply(placed(text)));
  const of = (kind) => objects.find((o) => o.kind === kind);
  assert.equal(of('PersistentVolumeClaim'), undefined);
  assert.deepEqual(of('HorizontalPodAutoscaler').spec.metrics.map((m) => m.type).sort(), ['Pods', 'Resource']);
  assert.equal(of('Ingress').spec.rules[0].http.paths[0].backend.service.name, of('Service').metadata.name);
  const pod = of('Deployment').spec.template.spec;
  assert.deepEqual(pod.imagePullSecrets.map((s) => s.name), ['one', 'two']);
  assert.deepEqual(pod.containers[0].ports.map((p) => p.name), ['http', 'cluster']);
  const config = JSON.parse(of('ConfigMap').data['config.json']);
  assert.deepEqual([config.audit.arguments, config.sandbox.warm, config.sandbox.kubernetes.namespace], [true, 7, NAMES[1]]);
  assert.equal(config.cluster.address, '${env:POD_IP}');
});

test('what cannot work is refused by name', { skip }, () => {
  assert.match(render({ replicas: 2 }), /replicas > 1 needs redis/);
  assert.match(render({ autoscaling: { enabled: true } }), /autoscaling needs redis/);
});
