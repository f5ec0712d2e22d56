// mo-box --relay, the network of a pod's box: in a pod with an interface it only
// starts if the cluster's API cannot be reached, as NetworkPolicy wants it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

const box = join(process.env.MO_BUILD, 'launcher/mo-box');
const API = 'KUBERNETES_SERVICE_HOST=10.9.0.1 KUBERNETES_SERVICE_PORT=6443';

/** The relay in a new network, whose input has ended: it stops when it has started. */
const relay = (before, env = '', ports = '80,443') => spawnSync('unshare', ['-n', 'sh', '-c',
  `set -e; ip link set lo up; ${before}\nset +e; env ${env} ${box} --relay ${ports} </dev/null; echo "status $?"`],
{ encoding: 'utf8', timeout: 60_000 });
const interface_ = 'ip link add v0 type veth peer name v1; ip addr add 10.9.0.1/24 dev v0; ip link set v0 up; ip link set v1 up';
const server = `python3 -m http.server 6443 --bind 10.9.0.1 >/dev/null 2>&1 & trap "kill $!" EXIT
  until python3 -c 'import socket; socket.create_connection(("10.9.0.1", 6443))' 2>/dev/null; do sleep 0.1; done`;

test('nothing but lo: it starts', () => {
  const { stdout, stderr } = relay('');
  assert.deepEqual([stdout, stderr], ['status 1\n', '']);
});

test('an interface, and the API cannot be reached: it starts', () => {
  const { stdout, stderr } = relay(interface_, API);
  assert.deepEqual([stdout, stderr], ['status 1\n', '']);
});

test('an interface, and the API can be reached: refused', () => {
  const { stdout, stderr } = relay(`${interface_}; ${server}`, API);
  assert.match(stderr, /does not enforce NetworkPolicy/);
  assert.equal(stdout, 'status 1\n');
});

test('an interface, and nobody knows where the API is: refused', () => {
  assert.match(relay(interface_).stderr, /cannot be seen that NetworkPolicy is enforced/);
});

test('not a port: refused', () => {
  assert.match(relay('', '', 'x').stderr, /not a port/);
});

// Greets the relay, connects to three addresses of it, and prints those it tells of.
const talk = `
import socket, struct, subprocess, sys, time
p = subprocess.Popen([sys.argv[1], '--relay', '8080'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def take(n):
    got = b''
    while len(got) < n: got += p.stdout.read(n - len(got))
    return got
def frame(kind, body): return bytes([kind, 0]) + struct.pack('>HI', len(body), 0) + body + b'\\0'
p.stdin.write(b'\\xff' * (16384 + 9 + 2048) + frame(1, b'n' * 16 + b'\\0'))
p.stdin.flush()
while take(1) == b'\\xff': pass
head = take(7)
take(struct.unpack('>H', head[1:3])[0] + 1)
socks = [socket.create_connection((a, 8080)) for a in ('10.9.0.1', '127.0.0.1', '10.9.0.1', '127.18.0.5')]
for i in range(2):
    head = take(8)
    body = take(struct.unpack('>H', head[2:4])[0] + 1)
    print(head[0], socket.inet_ntoa(body[12:16]), struct.unpack('>H', body[16:18])[0])
print(socks[0].recv(1), socks[2].recv(1))
p.kill()`;

test('a connection from outside to the pod is closed and not passed on', () => {
  const { stdout, stderr } = spawnSync('unshare', ['-n', 'sh', '-c',
    `ip link set lo up; ${interface_}; env ${API} python3 -c "$0" ${box}`, talk], { encoding: 'utf8', timeout: 30_000 });
  assert.deepEqual([stdout, stderr], ["2 127.0.0.1 8080\n2 127.18.0.5 8080\nb'' b''\n", '']);
});
