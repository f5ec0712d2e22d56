// Kubernetes boxes on a real cluster: what is created, what is seen from
// inside, how boxes end, and what is found again by the next of us.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { api, load, Namespace, noKube, ownImage } from '../lib/kube.mjs';
import { busybox } from '../lib/image.mjs';
import { eventually } from '../lib/outside.mjs';

const skip = noKube;
let ns;
let us;
const sh = (script) => ['/bin/sh', '-c', script];

before(async () => {
  if (skip) return;
  ownImage.load();
  ns = await Namespace.open();
  us = ns.boxes();
}, { timeout: 60_000 });

after(async () => {
  await us?.close();
  await ns?.close();
});

test('the cluster is judged before it is used', { skip }, async () => {
  us.tell('check');
  const { ok, what, why } = await us.next('check');
  assert.deepEqual([ok, why], [true, '']);
  assert.equal(what, `Kubernetes v1.20.2 at https://10.77.0.1:6443, namespace ${ns.name}`);
  assert.deepEqual(await ns.pods(), [], 'nothing was created');
});

test('a box answers MCP and is gone when stopped', { skip }, async () => {
  const { id } = await us.start('a', { session: 's-a' });
  us.write('a', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {
    protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } } }) + '\n');
  const answer = JSON.parse(await us.until('a', '\n'));
  assert.equal(answer.result.serverInfo.name, 'mo-toolbox');
  const gone = await us.stop('a');
  assert.equal(gone.cause, 'stopped');
  assert.equal((await ns.pod(id)).status, 404);
});

test('what the cluster made is what the policy says', { skip }, async () => {
  const { id } = await us.start('p', { session: 'any text: at all/', expires: 4102444800,
    limits: { memory: 100 << 20, cpu_milli: 250, workspace: 33 << 20 } });
  const { metadata: m, spec: s } = (await ns.pod(id)).json;
  const [c] = s.containers;
  assert.equal(s.containers.length, 1);
  assert.deepEqual([s.restartPolicy, s.automountServiceAccountToken, s.enableServiceLinks, s.dnsPolicy],
    ['Never', false, false, 'None']);
  const { runAsUser, ...security } = s.securityContext;
  assert.ok(runAsUser >= 100000);
  assert.deepEqual(security, { runAsNonRoot: true, runAsGroup: runAsUser, fsGroup: runAsUser,
    seccompProfile: { type: 'RuntimeDefault' } });
  assert.deepEqual(c.securityContext, { allowPrivilegeEscalation: false, privileged: false,
    readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
  assert.deepEqual(c.resources.limits, { memory: '100Mi', cpu: '250m' });
  assert.deepEqual([c.stdin, c.stdinOnce ?? false, c.tty ?? false], [true, false, false]);
  assert.deepEqual(s.volumes, [{ name: 'workspace', emptyDir: { medium: 'Memory', sizeLimit: '33Mi' } },
    { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } }]);
  assert.deepEqual(m.labels, { 'app.kubernetes.io/managed-by': 'mcp-orchestrator',
    'mo.role': 'box', 'mo.store': 'test' });

  const [row] = (await us.list()).filter((r) => r.id === id);
  assert.deepEqual(
    { session: row.session, instance: row.instance, policy: row.policy, expires: row.expires,
      running: row.running, paused: row.paused, warm: row.warm },
    { session: 'any text: at all/', instance: 'one', policy: m.annotations['mo.policy'], expires: 4102444800,
      running: true, paused: false, warm: false });
  assert.ok(Math.abs(row.started - Date.now() / 1000) < 600);

  const policy = (await api('GET', `/apis/networking.k8s.io/v1/namespaces/${ns.name}/networkpolicies/mo-boxes`)).json;
  assert.deepEqual(policy.spec, { podSelector: { matchLabels: { 'mo.role': 'box' } },
    policyTypes: ['Ingress', 'Egress'] });
  assert.deepEqual(m.ownerReferences.map((o) => [o.kind, o.name, o.uid]),
    [['NetworkPolicy', 'mo-boxes', policy.metadata.uid]]);
  await us.stop('p');
});

test('inside: no network, no rights, its own places only', { skip }, async () => {
  await us.start('i', { argv: sh(`
    id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t\\n' ' '; echo
    ls /sys/class/net; grep -c nameserver /etc/resolv.conf; grep nameserver /etc/resolv.conf
    touch /x 2>&1; touch /workspace/w /tmp/t && echo writable
    ulimit -n; ulimit -c; ls /var/run/secrets 2>&1; echo end; cat`),
    limits: { open_files: 77 } });
  const lines = (await us.until('i', 'end\n')).trim().split('\n');
  assert.match(lines[0], /^\d{6,10}$/);
  assert.match(lines[1], /CapEff: 0{16} CapBnd: 0{16} NoNewPrivs: 1 Seccomp: 2/);
  assert.equal(lines[2], 'lo');
  assert.deepEqual(lines.slice(3, 5), ['1', 'nameserver 127.0.0.1']);
  assert.match(lines[5], /Read-only/);
  assert.deepEqual(lines.slice(6, 9), ['writable', '77', '0']);
  assert.match(lines[9], /No such file/);
  await us.stop('i');
});

test('no variable of the cluster, and dollar signs stay', { skip }, async () => {
  await us.start('d', { argv: sh('env; echo "$$(HOME) $(echo $V)"; echo end; cat'), env: ['V=a$$b$(HOME)$$(HOME)'] });
  const out = await us.until('d', 'end\n');
  assert.ok(!/KUBERNETES/.test(out), out);
  assert.ok(out.includes('V=a$$b$(HOME)$$(HOME)\n'), out);
  await us.stop('d');
});

test('stderr is apart, and neither stops the other', { skip }, async () => {
  await us.start('e', { argv: sh('echo out; echo err >&2; yes | head -c 300000 >&2; echo done; cat') });
  assert.equal(await us.until('e', 'done\n'), 'out\ndone\n');
  const err = await us.until('e', (s) => s.length >= 300004, 'err');
  assert.ok(err.startsWith('err\ny\n'));
  await us.stop('e');
});

test('much of both, in order', { skip }, async () => {
  await us.start('f', { argv: ['/bin/cat'] });
  const line = 'x'.repeat(1023) + '\n';
  for (let i = 0; i < 16; i++) us.write('f', line.repeat(256));
  const back = await us.until('f', (s) => s.length >= 4 << 20);
  assert.equal(back, line.repeat(4096));
  await us.stop('f');
});

test('a reader that does not read stops the program', { skip }, async () => {
  await us.start('r', { argv: sh('i=0; while [ $i -lt 400 ]; do head -c 65536 /dev/zero | tr "\\0" x; i=$((i+1)); done; echo END; cat') });
  us.tell('read', { box: 'r', on: false });
  await sleep(1500); // what follows holds however far it has come
  const held = us.events.length;
  us.tell('read', { box: 'r', on: true });
  await us.next('out', 'r', (e) => e.text.endsWith('END\n'));
  assert.ok(us.events.length - held > 100, 'most of it came only then');
  us.events = [];
  await us.stop('r');
});

const ends = [
  ['its own exit', { argv: sh('echo said; exit 7') }, { cause: 'exited', code: 7, signal: 0 }],
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
    assert.deepEqual({ cause, code, signal }, want);
    if (name === 'its own exit') assert.equal((await us.next('out', 'end')).text, 'said\n');
    assert.deepEqual(await ns.pods(), []);
    us.events = [];
  });

test('deleted by somebody else: noticed, once', { skip }, async () => {
  const { id } = await us.start('k');
  await api('DELETE', `${ns.path}/pods/${id}`);
  const gone = await us.next('gone', 'k');
  assert.deepEqual([gone.cause, gone.signal], ['killed', 9]);
  assert.match(gone.why, /deleted from outside.* node n[12] /);
  assert.deepEqual(await ns.pods(), []);
});

test('stopped at any moment of its start: nothing is left', { skip }, async () => {
  const { ms } = await us.start('m');
  await us.stop('m');
  for (let i = 0; i <= 10; i++) {
    const box = `m${i}`;
    us.tell('start', { box });
    await sleep((ms * i) / 10);
    const { cause } = await us.stop(box);
    assert.equal(cause, 'stopped', `after ${i}/10`);
  }
  assert.deepEqual(await ns.pods(), []);
});

test('refusals say why', { skip }, async () => {
  load('localhost/rooted:1', [busybox()], { User: '0:0', Cmd: ['sh'] });
  const rows = [
    [{ image: 'localhost/no-such:1' }, /cannot start: (ErrImagePull|ImagePullBackOff)/],
    [{ image: 'not an image' }, /InvalidImageName/],
    [{ image: 'localhost/rooted:1', argv: ['/no/such'] }, /cannot be started: .*no such file/],
  ];
  for (const [how, why] of rows)
    await assert.rejects(us.start('r', how), (e) => {
      assert.ok(e.ev === 'refused' || e.cause === 'refused', JSON.stringify(e));
      assert.match(e.why, why);
      return true;
    });
  assert.deepEqual(await ns.pods(), []);
});

test('no node has room: told by the scheduler\'s own words when it is stopped waiting', { skip }, async () => {
  const own = ns.boxes({ more: ['--node-selector', '{"no-such":"label"}'] });
  own.tell('start', { box: 'n' });
  await eventually('the pod is not placed', async () => (await ns.pods()).some((p) =>
    p.status.conditions?.some((c) => c.reason === 'Unschedulable')));
  assert.equal((await own.stop('n')).cause, 'stopped');
  assert.equal(await own.close(), 0);
  assert.deepEqual(await ns.pods(), []);
});

test('after SIGKILL of us: found, adopted with its files, or removed', { skip }, async () => {
  const first = ns.boxes({ store: 'st', instance: 'first' });
  const { id } = await first.start('a', { session: 'lives', argv: sh('echo kept >/workspace/f; echo ok; exec sh') });
  await first.until('a', 'ok\n');
  const b = await first.start('b', { session: 'dead' });
  await first.sigkill();

  const second = ns.boxes({ store: 'st', instance: 'second' });
  const rows = await second.list();
  assert.deepEqual(rows.map((r) => [r.session, r.instance, r.running]).sort(),
    [['dead', 'first', true], ['lives', 'first', true]]);
  assert.deepEqual(await us.list(), [], 'another store sees none of them');
  await second.start('a', { id });
  second.write('a', 'cat /workspace/f\n');
  assert.match(await second.until('a', '\n'), /kept\n$/);
  us.tell('remove', { id: b.id });
  assert.match((await us.next('removed')).why, /not one of ours/);
  assert.deepEqual(await second.remove(b.id), { ev: 'removed' });
  assert.deepEqual(await second.remove(b.id), { ev: 'removed' }, 'unknown is as good');
  assert.equal((await second.stop('a')).cause, 'stopped');
  await assert.rejects(second.start('x', { id }), { cause: 'refused' });
  assert.equal(await second.close(), 0);
  assert.deepEqual(await ns.pods(), []);
});

test('let go: it lives on, and can be adopted; not by another store', { skip }, async () => {
  const { id } = await us.start('l', { argv: sh('read x; echo "got $x"; cat') });
  us.tell('letgo', { box: 'l' });
  assert.equal((await us.next('gone', 'l')).cause, 'let go');
  assert.equal((await ns.pod(id)).json.status.phase, 'Running');
  const other = ns.boxes({ store: 'other' });
  await assert.rejects(other.start('l', { id }), /not one of ours/);
  await other.close();
  assert.equal((await ns.pod(id)).json.status.phase, 'Running');
  await us.start('l', { id });
  us.write('l', 'this\n');
  await us.until('l', 'got this\n');
  await us.stop('l');
});

test('a pod that is not as it should be is not adopted', { skip }, async () => {
  const { id } = await us.start('w');
  const { metadata: m, spec: s } = (await ns.pod(id)).json;
  await us.stop('w');
  const { nodeName, serviceAccountName, ...spec } = s;
  spec.containers = [{ ...s.containers[0], securityContext: { ...s.containers[0].securityContext,
    capabilities: { drop: ['ALL'], add: ['NET_RAW'] } } }];
  const weak = await api('POST', `${ns.path}/pods`, { metadata: { name: 'weak', labels: m.labels }, spec });
  assert.equal(weak.status, 201, weak.text);
  await eventually('it runs', async () => (await ns.pod('weak')).json.status.phase === 'Running');
  await assert.rejects(us.start('w', { id: 'weak' }), /added capabilities/);
  assert.deepEqual(await ns.pods(), [], 'and it is gone');
});

test('warm boxes: kept ready, taken without a request, removed at the end', { skip }, async () => {
  const own = ns.boxes({ store: 'warm' });
  own.tell('warm', { n: 2 });
  const ready = (n) => eventually(`${n} are warm`, async () => {
    own.tell('warm?');
    return (await own.next('warm')).n === n;
  });
  await ready(2);
  const [a, b] = [await own.start('a', { session: 'a' }), await own.start('b', { session: 'b' })];
  assert.notEqual(a.id, b.id);
  assert.ok(a.ms < 100 && b.ms < 100, `${a.ms} ${b.ms}`);
  await ready(2);
  assert.equal((await own.list()).length, 4);
  await eventually('their pods say whose they are', async () => {
    const rows = await own.list();
    return [a, b].every(({ id }, i) => rows.some((r) => r.id === id && r.session === 'ab'[i] && !r.warm));
  });
  await own.stop('a');
  await own.stop('b');
  await own.close();
  assert.deepEqual(await ns.pods(), []);
});

test('ten at once, each with its own voice', { skip }, async () => {
  const names = Array.from({ length: 10 }, (_, i) => `n${i}`);
  await Promise.all(names.map(async (n) => {
    await us.start(n, { argv: sh('read x; echo "I am $x"; cat'), limits: { cpu_milli: 100 } });
    us.write(n, `${n}\n`);
    assert.equal(await us.until(n, '\n'), `I am ${n}\n`);
    await us.stop(n);
  }));
  assert.deepEqual(await ns.pods(), []);
});
