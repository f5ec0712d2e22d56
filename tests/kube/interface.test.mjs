// Pods that have an interface, as in most clusters: what keeps a box from it. The
// network plugin is that of scripts/kube. It gives a pod an address beside the
// nodes, and enforces NetworkPolicy not at all, by an error, or by silence.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import dgram from 'node:dgram';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { run } from '../it/docker_net_cases.mjs';
import { Hosts, NetBox } from '../lib/egress.mjs';
import { python } from '../lib/image.mjs';
import { Namespace, noKube, ownImage, state } from '../lib/kube.mjs';
import { Home } from '../lib/sessions.mjs';

const skip = noKube;
const HOST = '10.77.0.1'; // this machine, as nodes and pods see it
const API = '10.96.0.1'; // the cluster's API, as pods are told
const tag = 'localhost/mo-toolbox:interface';
const hosts = new Hosts();
const homes = [];
const got = { api: 0, tcp: 0, udp: 0 };
const servers = [];
let ns, port, tcp, udp;

const mode = (word) => ['n1', 'n2'].forEach((node) => {
  const file = join(state, node, 'run/cni/mode');
  if (word) writeFileSync(file, word);
  else rmSync(file, { force: true });
});
const kubernetes = () => ({ driver: 'kubernetes', warm: 0, memoryMb: 128, cpus: 1, pids: 64,
  kubernetes: { kubeconfig: ns.kubeconfig, image: tag, pullPolicy: 'Never' } });
const place = (more = {}) => {
  const home = new Home({ sandbox: { ...kubernetes(), ...more } });
  homes.push(home);
  return home;
};
const open = async (t, network) => {
  const home = new Home({ mcpServers: { t: { command: 'mo-toolbox', sandbox: 'kubernetes', memoryMb: 128, cpus: 1, pids: 64, network } },
    sandbox: kubernetes(), log: { level: 'info' } });
  const box = await NetBox.open(network, { home });
  t.after(() => box.close());
  return box;
};
async function listen(name, host, at = 0) {
  const server = net.createServer((s) => {
    got[name]++;
    s.on('error', () => {});
    s.end('here');
  });
  servers.push(server);
  await once(server.listen(at, host), 'listening');
  return server.address().port;
}

before(async () => {
  if (skip) return;
  ownImage.with(tag, [{ path: 'bin/wget', type: '2', link: 'busybox' }, ...python()]);
  ns = await Namespace.open();
  execFileSync('ip', ['addr', 'replace', `${API}/32`, 'dev', 'mok0']); // a service's address: there is no kube-proxy here
  await listen('api', API, 443);
  tcp = await listen('tcp', HOST);
  const socket = dgram.createSocket('udp4').on('message', () => got.udp++);
  servers.push(socket);
  await new Promise((done) => socket.bind(0, HOST, done));
  udp = socket.address().port;
  port = await hosts.http((q, r) => r.end('by the relay'));
}, { timeout: 60_000 });
after(async () => {
  mode('');
  homes.forEach((h) => h.removeAll());
  hosts.close();
  servers.forEach((s) => s.close());
  if (!skip) execFileSync('ip', ['addr', 'del', `${API}/32`, 'dev', 'mok0']);
  await ns?.close();
});

/** Everything by which a program could leave: {what: an error, or what it got}. */
const tries = (box) => box.python(`
def udp(host, port):
    try:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.sendto(b'x', (host, port))
        return 'sent'
    except OSError as e:
        return name(e)
def kind(family, type, proto=0):
    try:
        socket.socket(family, type, proto)
        return 'made'
    except OSError as e:
        return name(e)
socket.setdefaulttimeout(2)
print(json.dumps({'neighbour': tcp('${HOST}', ${tcp}), 'api': tcp('${API}', 443), 'udp': udp('${HOST}', ${udp}),
    'raw': kind(socket.AF_INET, socket.SOCK_RAW, 1), 'packet': kind(socket.AF_PACKET, socket.SOCK_RAW),
    'netlink': kind(socket.AF_NETLINK, socket.SOCK_RAW), 'interfaces': sorted(os.listdir('/sys/class/net'))}))`);

test('a plugin that ignores NetworkPolicy: no box with a network starts', { skip }, async () => {
  mode('open');
  const { code, stderr } = await run(place({ network: { allow: [`web.test=127.0.0.1:${port}`] } }), 'box', 'run', '--', 'true');
  assert.notEqual(code, 0);
  assert.match(stderr, /does not enforce NetworkPolicy: the pod reaches the cluster's API/);
  assert.ok(got.api > 1, `${got.api} tries: a plugin may be late`);
  assert.deepEqual(await ns.pods(), []);
});

test('... and a box without one has an interface, and no socket for it', { skip }, async (t) => {
  mode('open');
  const before = { ...got };
  const said = await tries(await open(t, undefined));
  assert.deepEqual(said.interfaces, ['eth0', 'lo'], 'the plugin gave it one');
  for (const what of ['neighbour', 'api', 'raw', 'packet', 'netlink']) assert.match(said[what], /^E(AFNOSUPPORT|PERM|ACCES)$/, what);
  assert.deepEqual(got, before, 'nothing arrived');
  const { stdout } = await run(place(), 'doctor', '--sandbox');
  assert.match(stdout, /FAIL\s+kubernetes network\s+there is none/, 'doctor says it');
  assert.match(stdout, /FAIL\s+kubernetes hosts\s+.*does not enforce NetworkPolicy/);
});

for (const how of ['refuse', 'drop'])
  test(`a plugin that enforces it (${how}): the allowed hosts by the relay, and nothing else`, { skip }, async (t) => {
    mode(how);
    const before = { ...got };
    const box = await open(t, { allow: [`web.test=127.0.0.1:${port}`] });
    assert.match(await box.run(`wget -qO- http://web.test:${port}/`), /^by the relay\s*exit 0$/);
    const said = await tries(box);
    assert.deepEqual(said.interfaces, ['eth0', 'lo']);
    for (const what of ['neighbour', 'api']) assert.match(said[what], how === 'drop' ? /timed out|ETIMEDOUT/ : /^E(ACCES|HOSTUNREACH|NETUNREACH)$/, what);
    for (const what of ['raw', 'packet', 'netlink']) assert.match(said[what], /^E(AFNOSUPPORT|PERM|ACCES|PROTONOSUPPORT)$/, what);
    if (how === 'refuse') assert.match(said.udp, /^E/);
    assert.deepEqual(got, before, 'nothing arrived by the interface');
  });
