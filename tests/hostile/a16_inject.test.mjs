// A16: a program in a box wants the secret that the relay sets for it, or wants
// it sent to somebody else. Judges: every byte that the hosts on this machine
// got, and everything that root can read of the box.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { closeSync, openSync, readFileSync, readSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createServer as createTls } from 'node:tls';
import { after, before, describe, test } from 'node:test';
import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { Hosts, NetBox, certificate, loadPython } from '../lib/egress.mjs';
import { processesOf } from '../lib/outside.mjs';
import { eventually, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : process.getuid() !== 0 ? 'needs root' : false;
const SECRET = `planted-${process.pid}-${Date.now().toString(36)}-secret`;
const forms = (text) => [text, Buffer.from(text).toString('base64').slice(0, -4), Buffer.from(text).toString('hex')];

/** Whether one of the needles is in the memory of a process. */
function inMemory(pid, needles) {
  const most = Math.max(...needles.map((n) => n.length));
  const mem = openSync(`/proc/${pid}/mem`, 'r');
  const room = Buffer.alloc(1 << 20);
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
      const [, from, to, rights] = /^(\w+)-(\w+) (\S+)/.exec(line) ?? [];
      if (!rights?.startsWith('r')) continue;
      const end = BigInt(`0x${to}`);
      let kept = 0;
      for (let at = BigInt(`0x${from}`); at < end;) {
        let n = 0;
        try {
          n = readSync(mem, room, kept, Math.min(room.length - kept, Number(end - at)), at);
        } catch { /* such as [vvar] */ }
        if (n === 0) break;
        if (needles.some((w) => room.subarray(0, kept + n).includes(w))) return true;
        const all = kept + n;
        kept = Math.min(most, all);
        room.copyWithin(0, all - kept, all);
        at += BigInt(n);
      }
    }
    return false;
  } finally {
    closeSync(mem);
  }
}

for (const driver of ['native', 'docker', 'far docker']) describe(`A16: a secret that does not enter the box, ${driver}`,
  { skip: driver !== 'native' && noDocker ? noDocker : skip }, () => {
  const hosts = new Hosts();
  const pair = certificate(['api.test', 'other.test']);
  const got = { api: '', other: '' };
  let engine, box, api, other, uid;

  /** A TLS host that keeps every byte and answers each head that it sees. */
  const judge = (name) => hosts.listen(createTls(pair, (s) => {
    s.on('error', () => {}).on('data', (d) => {
      got[name] += d.toString('latin1');
      if (d.includes('\r\n\r\n')) s.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  }));

  before(async () => {
    api = await judge('api');
    other = await judge('other');
    if (driver !== 'native') await loadPython(engine = await dockerd({ far: driver === 'far docker' }), 'python:1');
    box = await NetBox.open({
      allow: [`api.test=127.0.0.1:${api}`, `other.test=127.0.0.1:${other}`],
      inject: { 'api.test': { Authorization: 'Bearer ${secret:github}' } },
    }, { secrets: { github: SECRET }, trust: pair.cert, env: { GITHUB_TOKEN: 'placeholder', CA: pair.cert }, level: 'debug',
      ...(engine ? { engine: { host: engine.far ?? engine.host }, image: 'python:1' } : {}) });
    uid = /(\d+)/.exec(await box.run('id -u'))[1];
  });
  after(async () => {
    await box?.close();
    hosts.close();
    engine?.cleanUp();
  });

  /** Python in the box; `talk` sends bytes in TLS and returns what comes back. */
  const python = (code, file = '') => box.run(`${file && `cat > ${file} <<'EOF'\n`}${file ? '' : "/usr/bin/python3 - <<'EOF'\n"}
import os, socket, ssl, sys, time
trusted = ssl.create_default_context()
def dial(sni='api.test', host='api.test', port=${api}, context=trusted):
    s = socket.create_connection((host, port))
    return context.wrap_socket(s, server_hostname=sni, suppress_ragged_eofs=False)
def talk(data, **how):
    try:
        s = dial(**how)
        s.sendall(data)
        s.settimeout(5)
        back = s.recv(65536)
        while back and not back.endswith(b'ok'): back += s.recv(65536)
        return back.decode('latin1') or 'closed'
    except (OSError, ssl.SSLError) as e:
        return 'error'
${code}
EOF`);
  const head = () => `Host: api.test:${api}\\r\\n`;

  test('it is in no environment, file, memory or log of the box', async () => {
    const marker = `marker-${process.pid}-in-the-box`;
    await python(`
s = dial()
while not os.path.exists('stop'):
    s.sendall(b'GET / HTTP/1.1\\r\\n${head()}Authorization: Bearer ' + os.environ['GITHUB_TOKEN'].encode() + b'\\r\\n\\r\\n')
    s.recv(65536)
    time.sleep(0.01)
`, 'busy.py');
    assert.match(await box.run(`M=${marker} /usr/bin/python3 busy.py > said 2>&1 & echo started`), /started/);
    await eventually('requests with the secret', () => got.api.split(`Authorization: Bearer ${SECRET}\r\n`).length > 20);
    const pids = processesOf(uid);
    const key = readFileSync(join(box.home.dir, 'authority/key.pem'), 'utf8');
    const { d } = createPrivateKey(key).export({ format: 'jwk' });
    const needles = [...forms(SECRET), key.split('\n')[1], Buffer.from(d, 'base64url')].map((n) => Buffer.from(n));
    assert.ok(pids.length >= 2, 'the toolbox and the program run');
    // The search finds what is there.
    assert.ok(pids.some((p) => inMemory(p, [Buffer.from(marker)])));
    assert.ok(pids.some((p) => inMemory(p, [Buffer.from('Bearer placeholder')])));
    for (const p of pids) {
      assert.ok(!inMemory(p, needles), `memory of ${readFileSync(`/proc/${p}/cmdline`)}`);
      for (const file of ['environ', 'cmdline'])
        assert.ok(!needles.some((n) => readFileSync(`/proc/${p}/${file}`).includes(n)), file);
    }
    const root = `/proc/${pids[0]}/root`;
    const find = (what) => {
      try {
        return execFileSync('grep', ['-rlFs', '-e', what, ...['workspace', 'tmp', 'run', 'etc', 'dev/shm'].map((n) => join(root, n))]).toString();
      } catch (e) {
        return e.stdout.toString();
      }
    };
    assert.match(find('os.environ[\'GITHUB_TOKEN\']'), /busy\.py/);
    for (const text of [...forms(SECRET), key.split('\n')[1]]) assert.equal(find(text), '');
    await box.run('touch stop');
    await eventually('the program has ended', () => processesOf(uid).length < pids.length);
    assert.doesNotMatch(await box.run('cat said; env'), /Error|planted/);
  });

  test('nor in the state and the log of the server', async () => {
    const files = readdirSync(box.home.dir, { recursive: true, withFileTypes: true }).filter((f) => f.isFile());
    assert.ok(files.length > 3);
    for (const f of files) {
      const text = readFileSync(join(f.parentPath ?? f.path, f.name));
      for (const n of forms(SECRET)) assert.ok(!text.includes(n), f.name);
    }
    for (const n of forms(SECRET)) assert.ok(!box.log.includes(n));
  });

  test('requests that a host could read in two ways are not sent', async () => {
    const next = `GET /stolen HTTP/1.1\\r\\n${head()}\\r\\n`;
    const rows = [
      `POST / HTTP/1.1\\r\\n${head()}Content-Length: 6\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nX`,
      `POST / HTTP/1.1\\r\\n${head()}Transfer-Encoding: chunked\\r\\nContent-Length: 100\\r\\n\\r\\n0\\r\\n\\r\\n${next}`,
      `POST / HTTP/1.1\\r\\n${head()}Content-Length: 1\\r\\nContent-Length: 100\\r\\n\\r\\nX${next}`,
      `POST / HTTP/1.1\\r\\n${head()}Content-Length: 1, 100\\r\\n\\r\\nX${next}`,
      `POST / HTTP/1.1\\r\\n${head()}Content-Length : 100\\r\\n\\r\\n${next}`,
      `POST / HTTP/1.1\\r\\n${head()}Content-Length: 0x10\\r\\n\\r\\n${next}`,
      `POST / HTTP/1.1\\r\\n${head()}Transfer-Encoding: xchunked\\r\\n\\r\\n${next}`,
      `POST / HTTP/1.1\\r\\n${head()}Transfer-Encoding:\\x0bchunked\\r\\n\\r\\n0\\r\\n\\r\\n${next}`,
      `POST / HTTP/1.1\\r\\n${head()}Transfer-Encoding: chunked\\r\\nTransfer-Encoding: identity\\r\\n\\r\\n0\\r\\n\\r\\n${next}`,
      `POST / HTTP/1.1\\r\\n${head()}X: y\\r\\n Content-Length: 100\\r\\n\\r\\n${next}`,
      `POST / HTTP/1.1\\r\\n${head()}X: y\\nContent-Length: 100\\r\\n\\r\\n${next}`,
      `POST / HTTP/1.1\\r\\n${head()}X: y\\rContent-Length: 100\\r\\n\\r\\n${next}`,
      `POST / HTTP/1.1\\r\\n${head()}X: \\0\\r\\n\\r\\n`,
      `GET / HTTP/1.1\\r\\nHost: other.test:${other}\\r\\n\\r\\n`,
      `GET / HTTP/1.1\\r\\nHost: api.test@other.test\\r\\n\\r\\n`,
      `GET / HTTP/1.1\\r\\n${head()}Host: other.test\\r\\n\\r\\n`,
      `GET https://other.test/ HTTP/1.1\\r\\n${head()}\\r\\n`,
      `GET  / HTTP/1.1\\r\\n${head()}\\r\\n`,
      `GET / HTTP/1.1 \\r\\n${head()}\\r\\n`,
      `GET /\\r\\n${head()}\\r\\n`,
      `TRACE / HTTP/1.1\\r\\n${head()}\\r\\n`,
      `CONNECT other.test:${other} HTTP/1.1\\r\\n${head()}\\r\\n`,
      'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n',
    ];
    const from = got.api.length;
    assert.equal(await python(rows.map((r) => `print(talk(b"${r}"))`).join('\n')),
      `${rows.map(() => 'error').join('\n')}\nexit 0`, box.log.slice(-3000));
    assert.equal(got.api.slice(from), '');
    assert.equal(got.other, '');
  });

  test('a body is never a head', async () => {
    const from = got.api.length;
    const inner = `GET /stolen HTTP/1.1\\r\\n${head()}\\r\\n`;
    const length = inner.replaceAll('\\r', '.').replaceAll('\\n', '.').length;
    assert.match(await python(`print(talk(b"POST /one HTTP/1.1\\r\\n${head()}Content-Length: ${length}\\r\\n\\r\\n${inner}"))`), /200 OK/);
    const sent = got.api.slice(from);
    assert.match(sent, /\/stolen/);
    assert.equal(sent.split(SECRET).length, 2, 'once, in the outer head');
  });

  test('after an upgrade nothing is set', async () => {
    const from = got.api.length;
    assert.match(await python(`print(talk(b"GET /ws HTTP/1.1\\r\\n${head()}Connection: upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\nGET /two HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"))`), /200 OK/);
    await eventually('both', () => got.api.slice(from).includes('/two'));
    assert.equal(got.api.slice(from).split(SECRET).length, 2);
  });

  test('TLS for another host, for none, and no TLS', async () => {
    const from = got.api.length;
    assert.equal(await python(`
loose = ssl._create_unverified_context()
loose.check_hostname = False
request = b"GET / HTTP/1.1\\r\\n${head()}\\r\\n"
print(talk(request, sni='other.test', context=loose))
print(talk(request, sni=None, context=loose))
print(talk(request, sni='api.test', host='other.test', port=${other}, context=loose))
s = socket.create_connection(('api.test', ${api}))
s.sendall(request)
try: print(s.recv(100) or 'closed')
except OSError: print('error')`), 'error\nerror\nerror\nerror\nexit 0');
    assert.equal(got.api.slice(from), '');
    assert.equal(got.other, '');
  });

  if (driver === 'native') test('HTTP/2 for another host', async () => { // the image has no Node
    const said = await box.run(`/usr/bin/node -e '
const h2 = require("http2");
const one = (headers) => new Promise((done) => {
  const s = h2.connect("https://api.test:${api}");
  s.on("error", () => done("error")).on("close", () => done("closed"));
  const q = s.request(headers);
  q.on("error", () => {}).on("response", () => done("answered")).end();
});
(async () => {
  console.log(await one({ ":path": "/", ":authority": "other.test" }));
  console.log(await one({ ":path": "/", host: "other.test" }));
  process.exit(0);
})()'`);
    assert.match(said, /^(error|closed)\n(error|closed)\nexit 0$/);
    assert.equal(got.other, '');
  });

  test('another host gets nothing, with the same certificate and headers', async () => {
    assert.match(await python(`
own = ssl.create_default_context(cadata=os.environ['CA'])
print(talk(b"GET / HTTP/1.1\\r\\nHost: other.test\\r\\nAuthorization: Bearer placeholder\\r\\n\\r\\n", sni='other.test', host='other.test', port=${other}, context=own))`), /200 OK/);
    assert.match(got.other, /Bearer placeholder/);
    assert.ok(!got.other.includes(SECRET));
  });

  test('its certificates cannot be changed from inside', async () => {
    const file = driver === 'far docker' ? '/run/ca-certificates/ca-certificates.crt' : '/run/ca-certificates.crt';
    assert.match(await box.run(`grep -c BEGIN ${file}`), /^[1-9]\d*\nexit 0$/);
    for (const attempt of [`echo x >> ${file}`, `rm -f ${file}`, `mv ${file} /run/old`, `chmod 666 ${file}`, 'echo x > /run/new',
      `mount -t tmpfs none /run`, `umount ${file}`])
      assert.doesNotMatch(await box.run(attempt), /exit 0$/, attempt);
    assert.equal(await box.run("ls /run/key.pem /authority 2>/dev/null | wc -l"), '0\nexit 0');
  });

  test('the authority vouches for no other host', async () => {
    const ids = readdirSync(join(box.home.dir, 'authority')).filter((n) => n !== 'key.pem');
    const text = execFileSync('openssl', ['x509', '-noout', '-text', '-in', join(box.home.dir, 'authority', ids[0], 'ca-certificates.crt')]).toString();
    assert.match(text, /Name Constraints: critical\s+Permitted:\s+DNS:api\.test\s+Excluded:/);
  });
});
