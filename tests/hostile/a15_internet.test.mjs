// A15: a program in a box against the addresses of its network. Every address
// of the world is played by one process (tests/lib/internet.mjs), which is the
// judge: it sees each connection and each question to a name server that leaves.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { NetBox } from '../lib/egress.mjs';
import { Internet, OWN, OWN6 } from '../lib/internet.mjs';
import { eventually, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : !existsSync('/usr/sbin/ip') && 'needs /usr/sbin/ip';
const PORT = 7777;
const PUBLIC = '11.22.33.44';
const PUBLIC6 = '2a00:1234::44';
// Everything that is not a host on the Internet, and IPv6 forms of it.
const PRIVATE = ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255',
  '169.254.0.1', '169.254.169.254', '127.0.0.1', '127.255.0.1', '0.0.0.0', '0.1.2.3', '100.64.0.1', '100.100.100.200',
  '192.0.0.192', '192.0.2.1', '198.51.100.1', '203.0.113.1', '198.18.0.1', '198.19.255.255', '224.0.0.1',
  '239.255.255.255', '240.0.0.1', '255.255.255.255', '::', '::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1',
  '::127.0.0.1', '64:ff9b::7f00:1', '64:ff9b::a00:1', '64:ff9b:1::a00:1', '2002:7f00:1::', '2002:a00:1::1',
  'fe80::1', 'fec0::1', 'fc00::1', 'fd00:ec2::254', 'fd20:ce::254', 'ff02::1', '2001:db8::1', '100::1'];

const answers = {
  '*': [[PUBLIC]],
  ...Object.fromEntries(PRIVATE.map((a, i) => [`p${i}.test`, [[a]]])),
  'rebind.test': [[PUBLIC], ['127.0.0.1', '::1']],
  'mixed.test': [['10.0.0.1', '::1', PUBLIC, '169.254.169.254']],
  'alias.test': 'internal.test',
  'internal.test': [['10.0.0.1']],
  'six.test': [[PUBLIC6]],
  'own.test': [[OWN, OWN6]],
};
const refused = (what) => ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTCONN', 'ENETUNREACH', 'EACCES', 'EPERM', 'EINVAL'].includes(what);
const unknown = (what) => /Name or service not known|No address associated|name resolution/.test(what);
const at = (address) => `at ${address}\n`;

describe('A15: addresses and names of a box with a network', { skip }, () => {
  let net;
  const boxes = [];
  const open = async (network) => {
    const box = await NetBox.open(network, { enter: net.enter });
    boxes.push(box);
    return box;
  };
  /** What a byte to each of these hosts gives. */
  const reach = (box, hosts, port = PORT) =>
    box.python(`print(json.dumps([tcp(h, ${port}, b'x') for h in ${JSON.stringify(hosts)}]))`);

  before(async () => { net = await Internet.open(answers); });
  after(async () => {
    for (const b of boxes) await b.close();
    await net?.close();
  });

  test('a name never leads to a private address', async () => {
    const box = await open({ allow: [`**:${PORT}`] });
    const names = PRIVATE.map((_, i) => `p${i}.test`);
    const got = await reach(box, names);
    got.forEach((what, i) => assert.ok(refused(what), `${PRIVATE[i]}: ${what}`));
    assert.deepEqual(await net.take(), []);
    assert.deepEqual(await reach(box, ['a.test', 'six.test', 'mixed.test', 'alias.test']),
      [at(PUBLIC), at(PUBLIC6), at(PUBLIC), 'ECONNRESET']);
    assert.deepEqual((await net.take()).map((s) => s.tcp), [PUBLIC, PUBLIC6, PUBLIC]);
  });

  test('a name never leads to an address of this machine', async () => {
    const box = await open({ allow: [`**:${PORT}`] });
    const [own] = await reach(box, ['own.test']);
    assert.ok(refused(own), own);
    assert.deepEqual(await net.take(), []);
    const named = await open({ allow: [`own.test=${OWN}:${PORT}`, `[${OWN6}]:${PORT}`] });
    assert.deepEqual(await reach(named, ['own.test', OWN6]), [at(OWN), at(OWN6)]);
    await net.take();
  });

  test('every host is not every address', async () => {
    const box = await open({ allow: [`**:${PORT}`, `**:${PORT}`] });
    const got = await reach(box, [PUBLIC, PUBLIC6, '1.1.1.1', ...PRIVATE.filter((a) => a !== 'fe80::1' && a !== 'ff02::1')]);
    got.forEach((what, i) => assert.ok(what !== at(PUBLIC) && !what.startsWith('at '), `${i}: ${what}`));
    assert.deepEqual(await net.take(), []);
  });

  test('a name that is bound to another address later', async () => {
    const box = await open({ allow: [`rebind.test:${PORT}`] });
    assert.deepEqual(await reach(box, ['rebind.test']), [at(PUBLIC)]);
    await net.take();
    await eventually('the relay asks again', async () => {
      await reach(box, ['rebind.test']);
      return net.seen.some((s) => s.asked === 'rebind.test' && s.n > 0);
    });
    assert.deepEqual(await reach(box, ['rebind.test', 'rebind.test']), ['ECONNRESET', 'ECONNRESET']);
    for (const s of await net.take()) assert.equal(s.tcp, PUBLIC);
  });

  test('one address, and nothing beside it', async () => {
    const box = await open({ allow: [`${PUBLIC}:${PORT}`, `10.0.0.5:${PORT}`] });
    const got = await reach(box, [PUBLIC, '::ffff:11.22.33.44', '10.0.0.5', '0xb16212c', '11.1450284']);
    assert.deepEqual(got.slice(0, 3), [at(PUBLIC), at(PUBLIC), at('10.0.0.5')]);
    for (const s of await net.take()) assert.ok([PUBLIC, '10.0.0.5'].includes(s.tcp), s.tcp);
    const others = ['11.22.33.45', '11.22.33.43', '12.22.33.44', '1.1.1.1', '10.0.0.4', '10.0.0.6', '64:ff9b::b16:212c',
      '2002:b16:212c::', '::11.22.33.44', PUBLIC6, '127.0.0.1', '169.254.169.254'];
    (await reach(box, others)).forEach((what, i) => assert.ok(refused(what), `${others[i]}: ${what}`));
    assert.ok(unknown((await reach(box, ['a.test']))[0]));
    assert.ok(refused((await reach(box, [PUBLIC], 443))[0]));
    assert.deepEqual(await net.take(), []);
  });

  test('names that look like an allowed one', async () => {
    const box = await open({ allow: [`exact.test:${PORT}`, `*.wild.test:${PORT}`, `**.deep.test:${PORT}`, `CASE.Test.:${PORT}`,
      `${PUBLIC6.replace(/.*/, '[$&]')}:${PORT}`] });
    const good = ['exact.test', 'EXACT.TEST', 'exact.test.', 'a.wild.test', 'a.deep.test', 'a.b.deep.test', 'case.test'];
    assert.deepEqual(await reach(box, good), good.map(() => at(PUBLIC)));
    assert.deepEqual(await reach(box, [PUBLIC6]), [at(PUBLIC6)]);
    assert.equal((await net.take()).length, good.length + 1);
    const bad = ['sub.exact.test', 'xexact.test', 'exact.testx', 'exact.test.evil.org', 'wild.test', 'a.b.wild.test',
      'awild.test', 'deep.test', 'xdeep.test', 'a.case.test', 'test', 'evil.org', 'exact_test', 'exact.test.localhost'];
    (await reach(box, bad)).forEach((what, i) => assert.ok(unknown(what), `${bad[i]}: ${what}`));
    assert.deepEqual(await net.take(), []);
  });

  test('no entry, no network', async () => {
    for (const network of [{ allow: [] }, {}, 'none']) {
      const box = await open(network);
      for (const what of await reach(box, [PUBLIC, '127.0.0.1', '10.0.0.1', PUBLIC6]))
        assert.ok(refused(what), what);
      assert.ok(unknown((await reach(box, ['a.test']))[0]));
    }
    assert.deepEqual(await net.take(), []);
  });

  test('a forged answer: an address with the name of an allowed host', async () => {
    const box = await open({ allow: [`exact.test:${PORT}`, 'exact.test:443'] });
    const got = await box.python(`
import ssl
def hello(name):
    c = ssl.create_default_context(); c.check_hostname = False
    o = ssl.MemoryBIO()
    try: c.wrap_bio(ssl.MemoryBIO(), o, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError: pass
    return o.read()
def edit(path):
    try: open(path, 'a').write('11.9.9.9 exact.test\\n'); return 'written'
    except OSError as e: return name(e)
print(json.dumps([edit('/etc/hosts'), edit('/etc/resolv.conf'), edit('/etc/nsswitch.conf'),
    tcp('11.9.9.9', 443, hello('exact.test')), tcp('11.9.9.9', ${PORT}, b'GET / HTTP/1.1\\r\\nHost: exact.test\\r\\n\\r\\n'),
    tcp('${PUBLIC}', 443, hello('exact.test'))]))`);
    for (const what of got.slice(0, 3)) assert.ok(['EROFS', 'EACCES', 'EPERM'].includes(what), what);
    for (const what of got.slice(3)) assert.ok(refused(what), what);
    assert.deepEqual(await net.take(), []);
    assert.deepEqual(await reach(box, ['exact.test']), [at(PUBLIC)]);
    await net.take();
  });

  test('requests that name another host than the connection', async () => {
    const box = await open({ allow: [`exact.test:${PORT}`] });
    const heads = ['GET / HTTP/1.1\r\nHost: other.test\r\n\r\n', `GET http://other.test:${PORT}/ HTTP/1.1\r\nHost: exact.test\r\n\r\n`,
      `CONNECT other.test:${PORT} HTTP/1.1\r\nHost: other.test:${PORT}\r\n\r\n`, '\x05\x01\x00', '\x04\x01\x1e\x61\x0b\x09\x09\x09\x00',
      'PROXY TCP4 10.0.0.1 11.9.9.9 1 443\r\n'];
    const got = await box.python(`print(json.dumps([tcp('exact.test', ${PORT}, h.encode('latin1')) for h in json.loads(${JSON.stringify(JSON.stringify(heads))})]))`);
    assert.deepEqual(got, heads.map(() => at(PUBLIC))); // that host answers, and nobody else is asked
    assert.deepEqual([...new Set((await net.take()).map((s) => s.tcp))], [PUBLIC]);
    assert.ok(!net.seen.some((s) => s.asked === 'other.test'));
  });

  test('names as a way out', async () => {
    net.seen = [];
    const box = await open({ allow: [`exact.test:${PORT}`, `*.wild.test:${PORT}`] });
    await box.python(`
def look(name):
    try: return len(socket.getaddrinfo(name, ${PORT}))
    except OSError: return 0
print(json.dumps([sum(look(os.urandom(15).hex() + '.evil.org') for i in range(100)),
    sum(look(os.urandom(15).hex() + '.wild.test') for i in range(100)), look('exact.test')]))`)
      .then((found) => {
        assert.equal(found[0], 0);
        assert.ok(found[1] >= 100 && found[2] > 0);
      });
    assert.deepEqual(await net.take('asked'), []); // a lookup in the box asks nobody
    assert.deepEqual(await reach(box, ['exact.test']), [at(PUBLIC)]);
    assert.deepEqual([...new Set((await net.take('asked')).map((s) => s.asked))], ['exact.test']);
    await net.take();
  });

  test('UDP to an allowed host', async () => {
    const box = await open({ allow: [`exact.test:${PORT}`, `${PUBLIC}:443`] });
    const got = await box.python(`
def udp(host, port, family=socket.AF_INET):
    try:
        s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(5)
        s.connect(socket.getaddrinfo(host, port, family)[0][4]); s.send(b'\\xc0\\0\\0\\0\\1' + b'q' * 1200); s.recv(10)
        return 'answer'
    except OSError as e: return name(e)
print(json.dumps([udp('exact.test', ${PORT}), udp('exact.test', ${PORT}, socket.AF_INET6), udp('${PUBLIC}', 443), udp('${PUBLIC}', ${PORT})]))`);
    for (const what of got) assert.equal(what, 'ECONNREFUSED');
    assert.deepEqual(await net.take('udp'), []);
  });
});
