// The cluster of scripts/kube, for tests: its API, its nodes, our image.
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Boxes, build, toolbox } from './box.mjs';
import { busybox, image } from './image.mjs';

const top = fileURLToPath(new URL('../..', import.meta.url));
export const state = process.env.MO_KUBE_STATE ?? '/tmp/mo-kube';
const script = join(top, 'scripts/kube');

/** Why it cannot be tested here, or false. */
export const noKube = existsSync(join(state, 'admin.conf')) ? false
  : 'the cluster of scripts/kube (make test-kube)';

const pki = (name) => readFileSync(join(state, 'pki', name));

/** One request: { status, json, text }. who: options of https. */
function ask(who, method, path, body, type = 'application/json') {
  return new Promise((resolve, reject) => {
    const req = https.request({
      host: '10.77.0.1', port: 6443, method, path, agent: false, ca: pki('ca.crt'), ...who,
      headers: { ...(body === undefined ? {} : { 'Content-Type': type }), ...who.headers },
    }, (res) => {
      let text = '';
      res.on('data', (d) => (text += d));
      res.on('error', reject);
      res.on('end', () => {
        let json = null;
        try { json = JSON.parse(text); } catch { /* no JSON */ }
        resolve({ status: res.statusCode, json, text });
      });
    });
    req.on('error', reject);
    req.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
  });
}

/** ... of an administrator, or of whoever has the token. */
export const api = (method, path, body, type) =>
  ask({ cert: pki('admin.crt'), key: pki('admin.key') }, method, path, body, type);
export const asToken = (token, method, path, body) =>
  ask({ headers: { Authorization: `Bearer ${token}` } }, method, path, body);

/** Applies one document of YAML as `kubectl apply --server-side` does: fields
 *  that the cluster does not know are refused. Returns the object. */
export async function apply(yaml) {
  const [, version] = /^apiVersion: (\S+)/m.exec(yaml);
  const [, kind] = /^kind: (\S+)/m.exec(yaml);
  const [, name] = /^metadata:\n {2}name: (\S+)/m.exec(yaml);
  const namespace = /^ {2}namespace: (\S+)/m.exec(yaml)?.[1];
  const known = version === 'policy/v1' ? 'policy/v1beta1' : version; // this cluster is older than that
  const plural = `${kind.toLowerCase().replace(/y$/, 'ie').replace(/s$/, 'se')}s`;
  return must('PATCH', `${known === 'v1' ? '/api' : '/apis'}/${known}${namespace ? `/namespaces/${namespace}` : ''}/${
    plural}/${name}?fieldManager=test`, yaml.replace(`apiVersion: ${version}`, `apiVersion: ${known}`),
  'application/apply-patch+yaml');
}

async function must(method, path, body, type) {
  const answer = await api(method, path, body, type);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.json;
}

/** The rights of deploy/kubernetes/boxes.yaml. */
export const rules = [
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'get', 'list', 'watch', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods/attach', 'pods/exec'], verbs: ['get', 'create'] },
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['get', 'create'] },
];

/** ... and of claims.yaml. */
export const claimRules = [
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['create', 'get', 'list', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['events'], verbs: ['list'] },
];

/** A namespace of one test file, with a service account that has just those
 *  rights, and a kubeconfig for it. */
export class Namespace {
  static async open() {
    const ns = new Namespace();
    ns.name = `t-${randomBytes(5).toString('hex')}`;
    ns.dir = mkdtempSync(join(tmpdir(), 'mo-kube-test-'));
    ns.path = `/api/v1/namespaces/${ns.name}`;
    await must('POST', '/api/v1/namespaces', { metadata: { name: ns.name } });
    await must('POST', `${ns.path}/serviceaccounts`, { metadata: { name: 'mo' } });
    await ns.grant(rules);
    const { status } = await must('POST', `${ns.path}/serviceaccounts/mo/token`,
      { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 7200 } });
    ns.token = status.token;
    ns.kubeconfig = ns.write('config', `    token: ${status.token}`);
    return ns;
  }

  async grant(list) {
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${this.name}`;
    await api('DELETE', `${rbac}/roles/mo`);
    await must('POST', `${rbac}/roles`, { metadata: { name: 'mo' }, rules: list });
    await api('POST', `${rbac}/rolebindings`, { metadata: { name: 'mo' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'mo' },
      subjects: [{ kind: 'ServiceAccount', name: 'mo', namespace: this.name }] });
  }

  /** A kubeconfig as kubectl writes it; user: its lines. */
  write(name, user, server = 'https://10.77.0.1:6443') {
    const path = join(this.dir, name);
    writeFileSync(path, `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${readFileSync(join(state, 'pki/ca.crt')).toString('base64')}
    server: ${server}
  name: test
contexts:
- context:
    cluster: test
    namespace: ${this.name}
    user: mo
  name: test
current-context: test
kind: Config
preferences: {}
users:
- name: mo
  user:
${user}
`);
    return path;
  }

  /** One process with boxes in this namespace. */
  boxes({ store = 'test', instance = 'one', kubeconfig = this.kubeconfig, env, more = [], image: i } = {}) {
    return new Boxes(['--driver', 'kubernetes', '--kubeconfig', kubeconfig, '--image', i ?? ownImage.tag,
      '--store', store, '--instance', instance, ...more], env);
  }

  async pods() {
    return (await must('GET', `${this.path}/pods`)).items;
  }

  async pod(name) {
    return api('GET', `${this.path}/pods/${name}`);
  }

  /** Volumes of a class on a node, directories of this machine; removed at the end. */
  async volumes(n, storageClassName, node, storage = '512Mi') {
    for (let i = 0; i < n; i++) {
      const name = `${this.name}-${(this.pvs ??= []).length}`;
      const path = join(this.dir, name);
      mkdirSync(path, { mode: 0o700 });
      await must('POST', '/api/v1/persistentvolumes', { metadata: { name }, spec: {
        capacity: { storage }, accessModes: ['ReadWriteOnce'], persistentVolumeReclaimPolicy: 'Retain', storageClassName,
        local: { path }, nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [
          { key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }] } } } });
      this.pvs.push(name);
    }
  }

  /** Claims that are not on their way out. */
  async claims() {
    const { items } = await must('GET', `${this.path}/persistentvolumeclaims`);
    return items.filter((c) => !c.metadata.deletionTimestamp);
  }

  async close() {
    await api('DELETE', `/api/v1/namespaces/${this.name}`);
    for (const name of this.pvs ?? []) await api('DELETE', `/api/v1/persistentvolumes/${name}`);
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A saved image, on every node. */
export const loadFile = (file) => execFileSync(script, ['load', file]);

/** An image made by hand, on every node. */
export function load(tag, layers, config) {
  const file = join(mkdtempSync(join(tmpdir(), 'mo-image-')), 'image.tar');
  writeFileSync(file, image(tag, layers, config));
  loadFile(file);
  rmSync(join(file, '..'), { recursive: true });
}

/** As `box image --out` writes it, with a name that no registry has. */
export const ownImage = {
  tag: 'localhost/mo-toolbox:test',
  load: () => ownImage.with(ownImage.tag),
  with: (tag, more = [], path = '/bin') => {
    const all = [...busybox(),
    ...['dd', 'df', 'grep', 'head', 'tail', 'tr', 'cut', 'kill', 'yes', 'true', 'wc', 'mkdir'].map((n) =>
      ({ path: `bin/${n}`, type: '2', link: 'busybox' })),
    { path: 'workspace/', type: '5', mode: 0o777 }, { path: 'tmp/', type: '5', mode: 0o1777 },
    { path: 'etc/', type: '5' },
    { path: 'toolbox', data: readFileSync(toolbox) },
    { path: 'mo-box', data: readFileSync(join(build, 'launcher/mo-box')) }, ...more];
    load(tag, [[...new Map(all.map((e) => [e.path, e])).values()]],
      { Entrypoint: ['/toolbox'], Env: [`PATH=${path}`], WorkingDir: '/workspace' });
    return tag;
  },
};

/** The process of a pod's toolbox, as this machine sees it. */
export async function toolboxOf(uid) {
  for (const pid of (await readdir('/proc')).filter((p) => /^\d+$/.test(p))) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    const group = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
    if (line.startsWith('/toolbox') && group.includes(uid)) return Number(pid);
  }
  return undefined;
}

const pidOf = (part) => Number(readFileSync(join(state, 'pid', part), 'utf8').split(' ')[0]);

/** kill -9 of a node's kubelet, and its restart. */
export const killKubelet = (node) => process.kill(pidOf(`${node}.kubelet`), 'SIGKILL');
export const startKubelet = (node) => execFileSync(script, ['restart', node]);

/** A node as it was told to the API: is it Ready? */
export async function isReady(node) {
  const { status } = await must('GET', `/api/v1/nodes/${node}`);
  return status.conditions.find((c) => c.type === 'Ready').status === 'True';
}

/** The loss of a machine, and a new one with its name. */
export const killNode = (node) => process.kill(pidOf(`${node}.init`), 'SIGKILL');
export const healNodes = () => spawnSync(script, ['up', '2'], { stdio: ['ignore', 'ignore', 'inherit'] });

/** Cut a node's cable, and mend it. */
export const cable = (node, on) => execFileSync('ip', ['link', 'set', `mokn${node.slice(1)}`, on ? 'up' : 'down']);

/** kill -9 of the API server; healNodes() starts it again. */
export const killApi = () => process.kill(pidOf('apiserver'), 'SIGKILL');
