// Secrets set by the relay: programs in a box talk to a host as they do outside,
// the host gets the secret, and the box does not have it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, normalize } from 'node:path';
import { createServer as createTls } from 'node:tls';
import { after, before, describe, test } from 'node:test';
import { Hosts, NetBox, certificate } from '../lib/egress.mjs';
import { Home, eventually, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : false;
const needs = (...programs) => {
  const missing = programs.find((p) => !existsSync(`/usr/bin/${p}`));
  return missing ? `needs /usr/bin/${missing}` : false;
};
const big = Buffer.alloc(4 << 20, 'some data of the host; ');
const sum = (b) => createHash('sha256').update(b).digest('hex');
const SECRET = `planted-${process.pid}-${Date.now().toString(36)}`;

describe('a host with inject', { skip }, () => {
  const hosts = new Hosts();
  const good = certificate(['api.test', 'plain.test', 'rude.test']);
  const bad = certificate(['bad.test']);
  const wrong = certificate(['elsewhere.test']);
  const seen = [];
  let box, repo, tls, other, badTls, wrongTls, http, rude;

  const answer = (name) => (q, r) => {
    const host = q.headers[':authority'] ?? q.headers.host;
    const file = join(repo, normalize(q.url.split('?')[0]));
    seen.push({ name, version: q.httpVersion, path: q.url, host, auth: q.headers.authorization, key: q.headers['x-key'],
      odd: q.headers['x-odd'], two: q.headers['x-two'] });
    if (q.url === '/big') return r.end(big);
    if (q.url === '/away') {
      r.writeHead(302, { location: `https://plain.test:${other}/arrived` });
      return r.end();
    }
    if (q.method === 'PUT' || q.method === 'POST') {
      const h = createHash('sha256');
      q.on('data', (d) => h.update(d)).on('end', () => r.end(h.digest('hex')));
      return undefined;
    }
    if (q.url.startsWith('/repo.git/') && existsSync(file)) return r.end(readFileSync(file));
    if (q.url.startsWith('/repo.git/')) return r.writeHead(404).end();
    return r.end(`hello from ${name}`);
  };
  /** The requests that a command caused. */
  const during = async (command) => {
    const from = seen.length;
    const said = await box.run(command);
    return { said, requests: seen.slice(from) };
  };
  const works = async (command, version, pattern = /hello from api/) => {
    const { said, requests } = await during(command);
    assert.match(said, pattern, box.log.slice(-2000));
    assert.match(said, /exit 0$/);
    assert.ok(requests.length > 0);
    for (const q of requests) {
      assert.equal(q.auth, `Bearer ${SECRET}`);
      assert.equal(q.key, `${SECRET} two`);
      if (version) assert.equal(q.version, version);
    }
  };

  before(async () => {
    repo = mkdtempSync(join(tmpdir(), 'mo-repo-'));
    const git = (...args) => execFileSync('git', args, { cwd: repo, stdio: 'ignore' });
    if (existsSync('/usr/bin/git')) {
      git('init', '-b', 'main', 'work');
      writeFileSync(join(repo, 'work/hello.txt'), 'hello from api\n');
      git('-C', 'work', 'add', '.');
      git('-C', 'work', '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-m', 'one');
      git('clone', '--bare', 'work', 'repo.git');
      git('-C', 'repo.git', 'update-server-info');
    }
    tls = await hosts.http2(good, answer('api'));
    hosts.servers.at(-1).on('upgrade', (q, s) => {
      seen.push({ name: 'api', path: q.url, auth: q.headers.authorization });
      s.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      s.pipe(s);
    });
    other = await hosts.tls(good, answer('plain'));
    badTls = await hosts.tls(bad, answer('bad'));
    wrongTls = await hosts.tls(wrong, answer('wrong'));
    http = await hosts.http(answer('http'));
    rude = await hosts.listen(createTls(good, (s) => s.on('error', () => {}).once('data', (d) => {
      s.write(`HTTP/1.1 200 OK\r\n${d.includes('/length') ? `Content-Length: ${big.length}` : 'Connection: close'}\r\n\r\n`);
      s.write(big, () => s.destroy());
    })));
    box = await NetBox.open({
      allow: [`api.test=127.0.0.1:${tls}`, `plain.test=127.0.0.1:${other}`, `bad.test=127.0.0.1:${badTls}`,
        `wrong.test=127.0.0.1:${wrongTls}`, `clear.test=127.0.0.1:${http}`, `novalue.test=127.0.0.1:${tls}`, `rude.test=127.0.0.1:${rude}`],
      inject: {
        'api.test': { Authorization: 'Bearer ${secret:github}', 'X-Key': '${secret:github} two' },
        'rude.test': { Authorization: 'Bearer ${secret:github}' },
        'bad.test': { Authorization: 'Bearer ${secret:github}' },
        [`wrong.test:${wrongTls}`]: { Authorization: 'Bearer ${secret:github}' },
        'clear.test': { Authorization: 'Bearer ${secret:github}' },
        'novalue.test': { Authorization: 'Bearer ${secret:nobody}' },
      },
    }, { secrets: { github: SECRET }, trust: good.cert + wrong.cert, env: { GITHUB_TOKEN: 'placeholder', CA: good.cert } });
    assert.match(await box.run('printf %s "$CA" > /workspace/ca.pem'), /exit 0/);
  });
  after(async () => {
    await box?.close();
    hosts.close();
    rmSync(repo, { recursive: true });
  });
  const url = () => `https://api.test:${tls}`;

  test('curl, with its own header replaced', { skip: needs('curl') }, async () => {
    await works(`curl -sS --http1.1 ${url()}/`, '1.1');
    await works(`curl -sS --http1.1 -H "Authorization: Bearer $GITHUB_TOKEN" -H 'authorization: again' -H 'x-KEY: mine' ${url()}/ ${url()}/two`, '1.1');
    await works(`curl -sS -6 -o /dev/null ${url()}/one -w '%{http_version} hello from api'`, '2.0', /^2 hello/);
    await works(`curl -sS -H "Authorization: Bearer $GITHUB_TOKEN" -H 'authorization: again' -H 'x-KEY: mine' ${url()}/ ${url()}/two`, '2.0');
    await works(`curl -sSZ ${Array.from({ length: 20 }, (_, i) => `${url()}/${i}`).join(' ')}`, '2.0');
  });

  test('other headers arrive as they were', { skip: needs('curl') }, async () => {
    const all = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).join('');
    const odd = `${all.replaceAll("'", '')} ${'long '.repeat(1000)}.`;
    for (const version of ['1.1', '2']) {
      const { said, requests } = await during(`curl -sS --http${version} -H 'x-odd: ${odd}' -H 'x-two: a' -H 'x-two: b' ${url()}/ ${url()}/again`);
      assert.match(said, /exit 0$/);
      assert.deepEqual(requests.map((q) => [q.odd, q.two]), [[odd, 'a, b'], [odd, 'a, b']]);
    }
  });

  test('wget', { skip: needs('wget') }, () => works(`wget -qO- ${url()}/`));

  test('python', { skip: needs('python3') }, () => works(`/usr/bin/python3 -c 'import urllib.request as u
print(u.urlopen("${url()}/").read())'`, '1.1'));

  test('node', { skip: needs('node') }, () => works(`/usr/bin/node -e '
fetch("${url()}/").then((r) => r.text()).then(console.log)'`, '1.1'));

  test('git', { skip: needs('git') }, () => works(`git clone -q ${url()}/repo.git one && cat one/hello.txt`, '2.0'));

  // Too large to be installed for this test alone.
  if (!needs('java', 'javac')) test('Java', () => works(`cat > Get.java <<'END'
public class Get { public static void main(String[] a) throws Exception {
  System.out.print(new String(new java.net.URL("${url()}/").openStream().readAllBytes())); } }
END
java -Xmx128m Get.java`));

  test('openssl trusts it by default', { skip: needs('openssl') }, async () => {
    assert.match(await box.run(`openssl s_client -connect api.test:${tls} -servername api.test -verify_return_error </dev/null`), /Verify return code: 0 \(ok\)/);
  });

  test('many bytes, both ways, with and without a length', { skip: needs('curl') }, async () => {
    for (const version of ['--http1.1', '']) {
      await works(`curl -sS ${version} ${url()}/big | sha256sum`, undefined, new RegExp(`^${sum(big)} `));
      await works(`curl -sS ${version} ${url()}/big -o big && curl -sS ${version} -T big ${url()}/up`, undefined, new RegExp(`^${sum(big)}exit 0$`));
      await works(`curl -sS ${version} ${url()}/big -o big && cat big | curl -sS ${version} -X PUT -T - ${url()}/up`, undefined, new RegExp(`^${sum(big)}exit 0$`));
    }
  });

  test('a host that ends without an end of TLS', { skip: needs('curl') }, async () => {
    const got = await box.run(`curl -sS https://rude.test:${rude}/length | sha256sum; curl -sS https://rude.test:${rude}/ | sha256sum`);
    assert.equal(got.split(sum(big)).length, 3, got);
    await eventually('a row', () => /rude\.test at .*with a secret: closed by the host/.test(box.log));
  });

  test('a WebSocket', { skip: needs('python3') }, async () => {
    const { said, requests } = await during(`/usr/bin/python3 -c '
import socket, ssl
s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.test", ${tls})), server_hostname="api.test")
s.sendall(b"GET /ws HTTP/1.1\\r\\nHost: api.test:${tls}\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n")
print(s.recv(1000).decode().split("\\r\\n")[0])
for word in (b"\\x81\\x02hi", b"GET / HTTP/1.1\\r\\n\\r\\n"):
    s.sendall(word)
    print(s.recv(1000) == word)'`);
    assert.match(said, /^HTTP\/1.1 101 Switching Protocols\nTrue\nTrue\nexit 0$/);
    assert.deepEqual(requests.map((q) => q.auth), [`Bearer ${SECRET}`]);
  });

  test('a redirect does not carry it', { skip: needs('curl') }, async () => {
    const { said, requests } = await during(`cat ca.pem "$SSL_CERT_FILE" > both.pem
curl -sSL --cacert both.pem ${url()}/away`);
    const arrived = requests.filter((q) => q.name === 'plain');
    assert.ok(requests.some((q) => q.path === '/away' && q.auth === `Bearer ${SECRET}`), said);
    assert.ok(arrived.some((q) => q.path === '/arrived'), said);
    for (const q of arrived) assert.deepEqual([q.auth, q.key], [undefined, undefined]);
  });

  test('a host with a bad certificate is refused, with the reason', { skip: needs('curl') }, async () => {
    for (const [host, port] of [['bad', badTls], ['wrong', wrongTls]]) {
      const { said, requests } = await during(`curl -sS https://${host}.test:${port}/`);
      assert.match(said, /exit 35$/);
      assert.deepEqual(requests, []);
    }
    await eventually('a row', () => /bad\.test at .* refused by .*certificate of bad\.test refused: self-signed/.test(box.log));
    await eventually('a row', () => /wrong\.test at .* refused by .*certificate of wrong\.test refused: hostname mismatch/.test(box.log));
  });

  test('without TLS, without a value: refused, with the reason', { skip: needs('curl') }, async () => {
    const { requests } = await during(`curl -sS http://clear.test:${http}/; curl -sS http://api.test:${tls}/; curl -sS https://novalue.test:${tls}/`);
    assert.deepEqual(requests, []);
    await eventually('a row', () => /clear\.test at .* refused by .*not TLS, and a secret goes over TLS only/.test(box.log));
    await eventually('a row', () => /novalue\.test at .* refused by .*\$\{secret:nobody\} has no value/.test(box.log));
  });

  test('the key of the authority', async () => {
    const dir = join(box.home.dir, 'authority');
    assert.equal(statSync(join(dir, 'key.pem')).mode & 0o777, 0o600);
    const key = readFileSync(join(dir, 'key.pem'), 'utf8').split('\n')[1];
    const bundles = readdirSync(dir).filter((n) => n !== 'key.pem');
    assert.equal(bundles.length, 1);
    assert.ok(!(await box.run('cat /run/* /etc/ssl/certs/ca-certificates.crt')).includes(key));
    assert.match(await box.run('cat /run/ca-certificates.crt | cmp - /etc/ssl/certs/ca-certificates.crt; echo x >> /run/ca-certificates.crt'), /(Read-only file system|Permission denied)\s+exit/);
  });

  test('the audit says which headers were set, and not to what', async () => {
    await eventually('a row in the log', () => /with a secret: closed/.test(box.log));
    await box.client.close(); // the last rows are written
    const files = readdirSync(box.home.dir).filter((n) => /^audit.*jsonl$/.test(n));
    const text = files.map((n) => readFileSync(join(box.home.dir, n), 'utf8')).join('');
    const rows = text.split('\n').filter((l) => l.includes('"kind":"connection"')).map((l) => JSON.parse(l).what);
    const of = (host) => rows.filter((r) => r.host === host);
    assert.ok(of('api.test').some((r) => r.outcome === 'ok' && r.injected));
    for (const r of of('api.test').filter((x) => x.injected)) assert.deepEqual(r.injected, ['Authorization', 'X-Key']);
    assert.ok(of('plain.test').length > 0 && of('plain.test').every((r) => !r.injected));
    assert.ok(of('bad.test').every((r) => r.outcome === 'denied' && !r.injected));
    assert.ok(!text.includes(SECRET) && !box.log.includes(SECRET));
  });
});

describe('the box of a session with inject', { skip: skip || needs('curl') }, () => {
  const hosts = new Hosts();
  const pair = certificate(['a.test', 'b.test']);
  const seen = [];
  let home, port;

  before(async () => {
    port = await hosts.tls(pair, (q, r) => {
      seen.push(q.headers.authorization);
      r.end('here');
    });
    home = new Home({ sandbox: { driver: 'native', warm: 1, memoryMb: 64, cpus: 1, pids: 32, network: {
      allow: [`a.test=127.0.0.1:${port}`, `b.test=127.0.0.1:${port}`],
      inject: { 'a.test': { Authorization: '${env:TOKEN}' } } } } });
    writeFileSync(join(home.root, 'trust.pem'), pair.cert);
  });
  after(() => {
    home.removeAll();
    hosts.close();
  });
  const curl = (host) => `curl -s https://${host}.test:${port}/ || echo no`;

  test('gets it, also after the server was killed, and with a new value', async () => {
    const env = (TOKEN) => ({ env: { TOKEN, SSL_CERT_FILE: join(home.root, 'trust.pem') } });
    let s = await home.server(env('one-value'));
    const first = await s.hold('h', 's1');
    assert.equal(await s.sh('h', curl('a')), 'here');
    assert.equal(await s.sh('h', curl('b')), 'no\n'); // its certificate is unknown in the box
    await s.kill();
    s = await home.server({ ...env('two-values'), leaks: true });
    assert.equal((await s.hold('h', 's1')).box, first.box); // adopted
    assert.equal(await s.sh('h', curl('a')), 'here');
    assert.deepEqual(seen, ['one-value', 'two-values']);
    assert.equal(await s.close(), 0);
  });
});
