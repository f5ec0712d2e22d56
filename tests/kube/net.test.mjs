// Kubernetes boxes with a network: allowed hosts are reached through the relay in
// the pod, all others are refused and recorded, and the pod itself gets no right.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { run } from '../it/docker_net_cases.mjs';
import { Hosts, NetBox, certificate } from '../lib/egress.mjs';
import { python } from '../lib/image.mjs';
import { Namespace, noKube, ownImage, rules, state } from '../lib/kube.mjs';
import { Home, eventually } from '../lib/sessions.mjs';

const skip = noKube;
const hosts = new Hosts();
const homes = [];
const big = Buffer.alloc(3 << 20, 'some data of the host; ');
const tag = 'localhost/mo-toolbox:net';
let ns, port, other;

const sandbox = (more = {}) => ({ driver: 'kubernetes', warm: 0, memoryMb: 128, cpus: 1, pids: 32,
  kubernetes: { kubeconfig: ns.kubeconfig, image: tag, pullPolicy: 'Never' }, ...more });
const place = (allow, more) => {
  const home = new Home({ sandbox: sandbox({ network: { allow }, ...more }) });
  homes.push(home);
  return home;
};
const open = async (t, network, more = {}) => {
  const home = new Home({ mcpServers: { t: { command: 'mo-toolbox', sandbox: 'kubernetes', memoryMb: 128, cpus: 1, pids: 64, network } },
    sandbox: sandbox(), log: { level: 'info' } });
  const box = await NetBox.open(network, { home, ...more });
  t.after(() => box.close());
  return box;
};
const wget = (host, p) => `wget -qO- http://${host}:${p}/ || echo no`;
/** The process of the relay with this port; nodes share the machine. */
const relayAt = (p) => Number(readdirSync('/proc').find((d) => {
  try {
    return /^\d+$/.test(d) && readFileSync(`/proc/${d}/cmdline`, 'latin1') === `/mo-box\0--relay\0${p}\0`;
  } catch { return false; /* it has ended */ }
}));
const recorded = (box, row) => eventually(`a row ${row}`, () => row.test(box.log));

before(async () => {
  if (skip) return;
  ownImage.with(tag, [...['wget', 'nslookup', 'sha256sum'].map((n) => ({ path: `bin/${n}`, type: '2', link: 'busybox' })),
    ...python()]);
  ns = await Namespace.open();
  port = await hosts.http((q, r) => r.end(q.url === '/big' ? big : `here ${q.headers.authorization ?? ''}`));
  other = await hosts.http((q, r) => r.end('there'));
}, { timeout: 60_000 });
after(async () => {
  homes.forEach((h) => h.removeAll());
  hosts.close();
  await ns?.close();
});

test('allowed hosts are reached, others are refused and recorded', { skip }, async (t) => {
  const box = await open(t, { allow: [`web.test=127.0.0.1:${port}`, `both.test=127.0.0.1:${other}`] });
  assert.match(await box.run(wget('web.test', port)), /^here\s+exit 0$/);
  assert.match(await box.run(`wget -qO- http://web.test:${port}/big | sha256sum`),
    new RegExp(`^${createHash('sha256').update(big).digest('hex')} `));
  assert.match(await box.run('nslookup web.test 127.0.0.1'), /Address:\s*127\.1[89]\./);
  // the port is open for another host
  assert.match(await box.run(wget('web.test', other)), /no\s+exit 0$/);
  await recorded(box, /egress.*web\.test at 127\.0\.0\.1:\d+ allowed by web\.test=/);
  await recorded(box, new RegExp(`egress.*web\\.test.*:${other} refused.*not allowed`));
  // somebody listens there, at our side
  assert.match(await box.run(wget('127.0.0.1', port)), /no\s+exit 0$/);
  await recorded(box, new RegExp(`127\\.0\\.0\\.1:${port} refused`));
  assert.match(await box.run(wget('example.org', 80)), /bad address[^]*no/);
  assert.match(await box.run(wget('203.0.113.7', port)), /unreachable[^]*no/);
  assert.match(await box.run('ls /sys/class/net'), /^lo\s+exit 0$/);
});

test('the pod with a network has no right more, but for low ports', { skip }, async (t) => {
  const home = place([`a.test=127.0.0.1:${port}`]);
  const s = await home.server();
  await s.hold('h', 's1');
  const [pod] = await ns.pods();
  const [box, net] = pod.spec.containers;
  assert.equal(pod.spec.containers.length, 2);
  assert.deepEqual(net.command, ['/mo-box', '--pause']);
  assert.deepEqual(net.securityContext, box.securityContext);
  assert.deepEqual(net.securityContext.capabilities, { drop: ['ALL'] });
  assert.deepEqual(pod.spec.securityContext.sysctls, [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }]);
  assert.equal(await s.sh('h', "grep Cap /proc/self/status | grep -vc '0000000000000000$'; true"), '0\n');
  s.tell('end', { session: 's1' });
  await s.next((e) => e.ev === 'ended');
  assert.equal(await s.close(), 0);
  await eventually('no pod', async () => (await ns.pods()).length === 0);
});

test('a session has it, also after the server was killed', { skip }, async () => {
  const home = place([`a.test=127.0.0.1:${port}`]);
  let s = await home.server();
  const first = await s.hold('h', 's1');
  assert.match(await s.sh('h', wget('a.test', port)), /^here/);
  await s.kill();
  s = await home.server({ leaks: true });
  assert.equal((await s.hold('h', 's1')).box, first.box); // adopted
  assert.match(await s.sh('h', wget('a.test', port)), /^here/);
  assert.equal(await s.sh('h', wget('a.test', other)), 'no\n');
  s.tell('end', { session: 's1' });
  assert.equal((await s.next((e) => e.ev === 'ended')).why, null);
  assert.equal(await s.close(), 0);
  await eventually('no pod', async () => (await ns.pods()).length === 0);
});

test('a relay that died is started again', { skip }, async () => {
  const home = place([`a.test=127.0.0.1:${port}`]);
  const s = await home.server({ leaks: true });
  await s.hold('h', 's1');
  for (let i = 0; i < 2; i++) {
    assert.match(await s.sh('h', wget('a.test', port)), /^here/);
    process.kill(relayAt(port), 'SIGKILL');
    await eventually('it works again', async () => /^here/.test(await s.sh('h', wget('a.test', port))));
  }
  s.tell('end', { session: 's1' });
  await s.next((e) => e.ev === 'ended');
  assert.equal(await s.close(), 0);
});

test('only the container of the network is entered, never the box', { skip }, async () => {
  const entered = readFileSync(join(state, 'log/audit.log'), 'utf8').split('\n').filter(Boolean).map((l) => JSON.parse(l))
    .filter((e) => e.objectRef?.namespace === ns.name && e.objectRef.subresource === 'exec');
  assert.ok(entered.length > 0);
  for (const { requestURI } of entered)
    assert.match(requestURI, /\/exec\?container=net&stdin=1&stdout=1&stderr=1&command=\/mo-box&command=--relay&/);
});

test('a warm box has it', { skip }, async () => {
  const home = place([`a.test=127.0.0.1:${port}`], { warm: 1 });
  const s = await home.server({ leaks: true });
  await eventually('a warm box', async () => (await s.stats()).warm === 1);
  await s.hold('h', 's1');
  assert.match(await s.sh('h', wget('a.test', port)), /^here/);
  s.tell('end', { session: 's1' });
  await s.next((e) => e.ev === 'ended');
  assert.equal(await s.close(), 0);
});

test('a secret is set outside; the box trusts our certificate for that host', { skip }, async (t) => {
  const pair = certificate(['api.test']);
  const tls = await hosts.tls(pair, (q, r) => r.end(`got ${q.headers['x-key']}`));
  const network = { allow: [`api.test=127.0.0.1:${tls}`], inject: { 'api.test': { 'X-Key': '${secret:k}' } } };
  const box = await open(t, network, { secrets: { k: 'hidden-value' }, trust: pair.cert });
  assert.match(await box.run('echo $SSL_CERT_FILE; grep -c BEGIN $SSL_CERT_FILE; touch $SSL_CERT_FILE'),
    /^\/run\/ca-certificates\/ca-certificates\.crt\s+[1-9]\d*\s[^]*Read-only[^]*exit 1$/);
  assert.match(await box.run(`/usr/bin/python3 -c 'import urllib.request as u
print(u.urlopen("https://api.test:${tls}/").read())'`), /^b'got hidden-value'/);
  assert.match(await box.run('env | grep -c hidden'), /^0/);
});

test('refused, with the reason', { skip }, async () => {
  const start = (...allow) => run(place(allow), 'box', 'run', '--', 'true');
  const address = await start('10.0.0.5:80');
  assert.notEqual(address.code, 0);
  assert.match(address.stderr, /by name only: write NAME=10\.0\.0\.5:80/);
  await ns.grant(rules.map((r) => ({ ...r, resources: r.resources.filter((x) => x !== 'pods/exec') })));
  const right = await start('a.test');
  assert.notEqual(right.code, 0);
  assert.match(right.stderr, /network: .*(right to exec|403)/);
  const none = new Home({ sandbox: sandbox() });
  homes.push(none);
  assert.equal((await run(none, 'box', 'run', '--', 'true')).code, 0, 'a box without a network needs no exec');
  await ns.grant(rules);
  assert.deepEqual(await ns.pods(), []);
});
