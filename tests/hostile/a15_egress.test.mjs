// A15: a program in a box with a network tries to reach more than the hosts it
// was given. Servers on this machine are the judges: nobody came, or no more
// than the limit.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { Hosts, NetBox } from '../lib/egress.mjs';
import { eventually, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : false;

/** Run Python in the box; it prints JSON. */
async function python(box, code) {
  const said = await box.run(`/usr/bin/python3 - <<'EOF'
import errno, json, os, socket, struct
def name(e): return errno.errorcode.get(e.errno, str(e))
def tcp(host, port, data=b'', family=socket.AF_UNSPEC):
    """What a connection gives: bytes, or the name of the error."""
    try:
        s = socket.create_connection((host, port))
        if data: s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        got = b''
        while True:
            more = s.recv(65536)
            if not more: return got.decode('latin1')
            got += more
    except OSError as e:
        return name(e)
${code}
EOF`);
  const line = said.split('\n').at(-2);
  assert.match(said, /exit 0$/, said);
  return JSON.parse(line);
}

const refused = (what) => ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTCONN'].includes(what);

describe('A15: a box with a network', { skip }, () => {
  const hosts = new Hosts();
  const seen = [];
  let box, port, live = 0, most = 0, took = 0;

  before(async () => {
    port = await hosts.tcp((s) => {
      most = Math.max(most, ++live);
      s.on('data', (d) => { took += d.length; }).on('close', () => live--);
      s.pipe(s);
    });
    box = await NetBox.open({ allow: [`api.test=127.0.0.1:${port}`, '*.wild.test:443'], maxConnections: 20,
      maxMegabytes: 8, idleSeconds: 2 });
  });
  after(async () => {
    await box?.close();
    hosts.close();
  });

  test('addresses of this machine and of others', async (t) => {
    const own = Object.values(networkInterfaces()).flat().map((a) => a.address);
    const open = [];
    t.after(() => open.forEach((s) => s.close()));
    for (const at of ['127.0.0.2', ...own.filter((a) => a !== '127.0.0.1')]) {
      const s = createServer((c) => { seen.push(at); c.destroy(); });
      s.on('error', () => {}); // an address that cannot be bound
      s.listen(port, at);
      open.push(s);
    }
    const targets = ['127.0.0.1', '127.0.0.2', '0.0.0.0', '169.254.169.254', '10.0.0.1', '192.168.0.1', '172.16.0.1',
      '100.64.0.1', '8.8.8.8', '198.18.0.1', '198.19.255.255', '224.0.0.1', '255.255.255.255', '::1', '::',
      '::ffff:127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', 'fe80::1', 'fd00:ec2::254', '2606:4700::1111',
      '0x7f000001', '2130706433', '127.1', 'localhost', 'box', ...own];
    const got = await python(box, `print(json.dumps([tcp(h, ${port}, b'x') for h in ${JSON.stringify(targets)}]))`);
    got.forEach((what, i) => assert.ok(what !== 'x' && what !== '', `${targets[i]}: ${what}`));
    assert.deepEqual(seen, []);
  });

  test('ports that no entry has', async () => {
    const open = await python(box, `
ok = []
for p in list(range(1, 12000)) + [${port}, 65535]:
    s = socket.socket()
    s.settimeout(5)
    if s.connect_ex(('10.1.2.3', p)) != errno.ECONNREFUSED: ok.append(p)
    s.close()
print(json.dumps(ok))`);
    assert.deepEqual(open.sort((a, b) => a - b), [53, 443, port].sort((a, b) => a - b));
  });

  test('names as a way out', async () => {
    const got = await python(box, `
def ask(server, name, kind, tcp=False):
    q = b'\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00'
    for label in name.split('.'): q += bytes([len(label)]) + label.encode()
    q += b'\\0' + struct.pack('>HH', kind, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    s.sendto(q, (server, 53))
    a = s.recv(2000)
    return [a[3] & 15, a[7]]
out = []
for i in range(300):
    out.append(ask(['127.0.0.1', '8.8.8.8'][i % 2], os.urandom(20).hex() + '.evil.example', [1, 28, 16, 10, 255, 65][i % 6]))
print(json.dumps(out))`);
    for (const answer of got) assert.deepEqual(answer, [3, 0]);
  });

  test('bytes that are no DNS', async () => {
    assert.equal(await python(box, `
import random
random.seed(7)
for i in range(3000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(random.randbytes(random.randrange(0, 1500)), ('127.0.0.1', 53))
    s.close()
for i in range(100):
    tcp('127.0.0.1', 53, random.randbytes(random.randrange(0, 70000)))
print(json.dumps(tcp('api.test', ${port}, b'still here')))`), 'still here');
  });

  test('TLS that names another host, or none', async () => {
    const before = took;
    const got = await python(box, `
import ssl
def hello(name):
    c = ssl.create_default_context(); c.check_hostname = False
    o = ssl.MemoryBIO()
    try: c.wrap_bio(ssl.MemoryBIO(), o, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError: pass
    return o.read()
def slow(data):
    try:
        s = socket.create_connection(('api.test', ${port}))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(data)): s.send(data[i:i+1])
        return s.recv(1).decode('latin1')
    except OSError as e: return name(e)
def records(data, n):
    return b''.join(b'\\x16\\x03\\x01' + struct.pack('>H', len(data[i:i+n])) + data[i:i+n] for i in range(0, len(data), n))
evil = hello('evil.test')
long = bytearray(hello('api.test')); long[6:9] = b'\\x00\\xff\\xff'
print(json.dumps([tcp('api.test', ${port}, d) for d in [
    evil, hello(None), records(evil[5:], 3), bytes(long) + b'\\0' * 40000, evil[:100],
    b'\\x16\\x03\\x01\\x00\\x00', b'\\x16', hello('api.test.evil.test'), hello('wapi.test')]] + [slow(evil)]))`);
    got.forEach((what, i) => assert.ok(refused(what), `${i}: ${what.slice(0, 80)}`));
    assert.equal(took, before);
  });

  test('protocols that are not TCP', async (t) => {
    const udp = createSocket('udp4', (m) => seen.push(String(m)));
    t.after(() => udp.close());
    udp.bind(0, '127.0.0.1');
    await once(udp, 'listening');
    const got = await python(box, `
def udp(host, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    try:
        s.connect((host, port)); s.send(b'quic'); s.recv(10)
    except OSError as e: return name(e)
def made(*args):
    try: socket.socket(*args).close(); return 'made'
    except OSError as e: return name(e)
print(json.dumps({'udp': [udp('127.0.0.1', ${udp.address().port}), udp('1.1.1.1', 443)],
    'sockets': [made(socket.AF_INET, socket.SOCK_RAW, 1), made(socket.AF_INET, socket.SOCK_STREAM, 132),
        made(socket.AF_INET, socket.SOCK_STREAM, 262), made(socket.AF_NETLINK, socket.SOCK_RAW, 0),
        made(socket.AF_PACKET, socket.SOCK_RAW, 0), made(40, socket.SOCK_STREAM, 0),
        made(socket.AF_INET, socket.SOCK_DGRAM, 1)]}))`);
    assert.deepEqual(got.udp, ['ECONNREFUSED', 'ECONNREFUSED']);
    assert.deepEqual([...new Set(got.sockets)], ['EPERM']);
    assert.deepEqual(seen, []);
  });

  test('10,000 connections, and 200 at a time', async () => {
    most = 0;
    const got = await python(box, `
ip = socket.getaddrinfo('api.test', ${port}, socket.AF_INET)[0][4][0]
for i in range(10000):
    s = socket.socket()
    s.connect_ex((ip, ${port}))
    s.close()
held, echoed = [], 0
for i in range(200):
    s = socket.socket()
    s.connect_ex((ip, ${port}))
    held.append(s)
for s in held:
    try:
        s.settimeout(10); s.send(b'x'); echoed += len(s.recv(1))
    except OSError: pass
print(json.dumps(echoed))`);
    assert.ok(got <= 20, `${got} of 200 worked`);
    assert.ok(most <= 20, `${most} at the host at a time`);
    await eventually('all are gone', () => live === 0);
    assert.match(await box.run('echo fine'), /fine/);
  });

  test('a connection that is held for ever', async () => {
    assert.equal(await python(box, `
s = socket.create_connection(('api.test', ${port}))
s.send(b'x'); s.recv(1)
try: s.recv(1); print(json.dumps('end'))
except OSError as e: print(json.dumps(name(e)))`), 'ECONNRESET');
  });

  test('more bytes than allowed', async () => {
    took = 0;
    const got = await python(box, `
def flood():
    sent, s = 0, socket.create_connection(('api.test', ${port}))
    s.setblocking(False)
    import select
    while True:
        r, w, _ = select.select([s], [s], [])
        try:
            if r and not s.recv(1 << 16): return 'end'
            if w: sent += s.send(b'x' * (1 << 16))
        except BlockingIOError: pass
        except OSError as e: return name(e)
print(json.dumps([flood(), tcp('api.test', ${port}, b'x')]))`);
    got.forEach((what) => assert.ok(refused(what), what));
    assert.ok(took <= 8 << 20, `${took} bytes arrived`);
  });
});

describe('a box that asks', { skip }, () => {
  const hosts = new Hosts();
  let box, port, came = 0;
  before(async () => {
    port = await hosts.tcp((s) => { came++; s.end(); });
    box = await NetBox.open({ allow: [`127.0.0.2:${port}`], ask: true, maxConnections: 64 },
      { hosts: { 'private.ask': '127.0.0.1' } });
  });
  after(async () => {
    await box?.close();
    hosts.close();
  });
  const pending = () => JSON.parse(box.home.run('approvals', 'list', '--json'));

  test('many hosts, many names, and no answer: few questions, nobody reached', async () => {
    const said = python(box, `
held, names, ends = [], 0, []
for i in range(200):
    s = socket.socket()
    s.settimeout(30)
    try:
        s.connect(('h%d.private.ask' % i, ${port})); s.send(b'GET /%d HTTP/1.1\\r\\n' % i)
    except OSError: pass
    held.append(s)
for s in held:
    s.setblocking(False)
while len(ends) < 150:
    for s in list(held):
        try:
            s.recv(1); ends.append('end'); held.remove(s)
        except BlockingIOError: pass
        except OSError as e: ends.append(name(e)); held.remove(s)
for i in range(5000):
    try: socket.getaddrinfo('n%d.tunnel.ask' % i, 80); names += 1
    except OSError: pass
open('waiting', 'w').close()
while not os.path.exists('stop'): pass
print(json.dumps([names, sorted(set(ends))]))`);
    await eventually('the names are used up', async () => /waiting/.test(await box.run('ls')));
    const asked = pending();
    assert.ok(asked.length > 0 && asked.length <= 8, `${asked.length} questions`);
    for (const q of asked) assert.match(JSON.stringify([q.args.host, q.request]), /^\["h\d+\.private\.ask","GET \/\d+"\]$/);
    await box.run('touch stop');
    const [names, ends] = await said;
    assert.ok(names < 2100, `${names} names`);
    ends.forEach((what) => assert.ok(refused(what), what));
    assert.equal(came, 0);
    await eventually('no question is left', () => pending().length === 0);
  });

  test('private addresses, and TLS that names no host: no question', async () => {
    const got = await python(box, `
print(json.dumps([tcp(ip, ${port}, b'GET / HTTP/1.1\\r\\n') for ip in
  ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', '::ffff:10.0.0.1', '64:ff9b::a00:1', '198.18.9.9']]
  + [tcp('h0.private.ask', ${port}, bytes.fromhex('160301002c01000028') + bytes(40))]))`);
    got.forEach((what) => assert.ok(refused(what), what));
    assert.deepEqual(pending(), []);
    assert.equal(came, 0);
  });
});
