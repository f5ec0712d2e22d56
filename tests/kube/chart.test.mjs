// deploy/helm: the chart is rendered with the template functions that Helm has
// (chart.go), and every object is accepted by a real API server.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { BIN } from '../it/server.mjs';
import { api, apply, claimRules, noKube } from '../lib/kube.mjs';
import { eventually } from '../lib/outside.mjs';

const skip = noKube;
const noGo = existsSync('/usr/share/gocode/src/github.com/Masterminds/sprig') ? false
  : "Go and Helm's template functions (scripts/setup --for kube)";
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'mo-chart-'));
const NAMES = ['chart-server', 'chart-boxes'];
let versions = 'policy/v1';

/** The documents of the chart with these values, or the error. */
function render(values) {
  const r = spawnSync(join(dir, 'chart'), [here('../../deploy/helm/mcp-orchestrator'), 'mo', NAMES[0], versions],
    { input: JSON.stringify(values), encoding: 'utf8' });
  return r.status === 0 ? r.stdout.split(/^---$/m).filter((d) => /^kind:/m.test(d)) : r.stderr;
}

/** As Helm: objects without a namespace are in that of the release. */
const placed = (text) => (/^kind: Namespace$/m.test(text) || /^ {2}namespace:/m.test(text)
  ? text : text.replace(/^ {2}name: \S+$/m, `$&\n  namespace: ${NAMES[0]}`));

/** The configuration and the pod's grace period with these values. */
function setUp(values) {
  const text = render(values);
  const config = text.find((d) => /^kind: ConfigMap$/m.test(d)).split('config.json: |\n')[1];
  const grace = text.map((d) => /terminationGracePeriodSeconds: (.*)/.exec(d)?.[1]).find(Boolean);
  return { config: JSON.parse(config), grace };
}

before(async () => {
  if (noGo) return;
  const built = spawnSync('go', ['build', '-o', join(dir, 'chart'), here('chart.go')], {
    env: { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: join(dir, 'cache') }, encoding: 'utf8',
  });
  assert.equal(built.status, 0, built.stderr);
  if (skip) return;
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

test('with the Ingress the page is at https://HOST', { skip: noGo }, () => {
  const ingress = { enabled: true, host: 'tools.example.com' };
  const of = (values) => {
    const { config } = setUp(values);
    return [config.server.origins, config.people];
  };
  const url = 'https://tools.example.com';
  assert.deepEqual(of({}), [undefined, undefined]);
  assert.deepEqual(of({ ingress }), [[url], { url }]);
  assert.deepEqual(of({ ingress, redis: true, config: { people: { renewSeconds: 60 }, server: { workers: 2 } } }),
    [[url], { url, renewSeconds: 60 }]);
  // what the values say wins
  const own = ['https://other.example.com:8443'];
  assert.deepEqual(of({ ingress, config: { server: { origins: own } } }), [own, { url }]);
  assert.deepEqual(of({ ingress, config: { server: { origins: [] } } }), [[], { url }]);
  assert.deepEqual(of({ ingress, config: { people: { url: own[0] } } }), [[url], { url: own[0] }]);
  // many names have no one address
  assert.deepEqual(of({ ingress: { ...ingress, host: '*.example.com' } }), [undefined, undefined]);
});

test('a pod that ends still serves while others send clients to it', { skip: noGo }, () => {
  const of = (values) => {
    const { config, grace } = setUp(values);
    return [config.server.drainSeconds, grace];
  };
  assert.deepEqual(of({}), [undefined, '45'], 'nobody takes the place of the only server');
  assert.deepEqual(of({ redis: true, replicas: 3 }), [10, '55']);
  // the time to end fits what the values say
  assert.deepEqual(of({ redis: true, config: { server: { drainSeconds: 120 } } }), [120, '165']);
  assert.deepEqual(of({ redis: true, config: { server: { drainSeconds: 0 } } }), [0, '45']);
  assert.deepEqual(of({ config: { server: { drainSeconds: 5 } } }), [5, '50']);
});

test('the program accepts that configuration', { skip: noGo }, () => {
  const file = join(dir, 'config.json');
  writeFileSync(file, JSON.stringify(setUp({ ingress: { enabled: true } }).config), { mode: 0o600 });
  const r = spawnSync(BIN, ['config', 'check', '--config', file], { encoding: 'utf8', env: { ...process.env, HOME: dir } });
  assert.equal(r.status, 0, r.stdout + r.stderr);
});

test('what cannot work is refused by name', { skip: noGo }, () => {
  assert.match(render({ replicas: 2 }), /replicas > 1 needs redis/);
  assert.match(render({ autoscaling: { enabled: true } }), /autoscaling needs redis/);
});
