// Programs in a box with a network: allowed hosts work as they do outside, all
// others fail at once.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, normalize } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { postgres, sshd } from '../lib/daemons.mjs';
import { Hosts, NetBox, certificate } from '../lib/egress.mjs';
import { processesOf } from '../lib/outside.mjs';
import { Home, cli, eventually, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : false;
const needs = (...programs) => {
  const missing = programs.map((p) => (p.startsWith('/') ? p : `/usr/bin/${p}`)).find((p) => !existsSync(p));
  return missing ? `needs ${missing}` : false;
};
const big = Buffer.alloc(4 << 20, 'some data of the host; ');
const sum = (b) => createHash('sha256').update(b).digest('hex');

/** A repository that any HTTP server can serve as files. */
function repository() {
  const dir = mkdtempSync(join(tmpdir(), 'mo-repo-'));
  const git = (...args) => execFileSync('git', args, { cwd: dir, stdio: 'ignore' });
  git('init', '-b', 'main', 'work');
  writeFileSync(join(dir, 'work/hello.txt'), 'from the repository\n');
  git('-C', 'work', 'add', '.');
  git('-C', 'work', '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-m', 'one');
  git('clone', '--bare', 'work', 'repo.git');
  git('-C', 'repo.git', 'update-server-info');
  return dir;
}

/** A package as pip installs it, for the index that `answer` serves. */
function wheel() {
  const dir = mkdtempSync(join(tmpdir(), 'mo-wheel-'));
  execFileSync('/usr/bin/python3', ['-c', `
import zipfile
w = zipfile.ZipFile("w", "w")
w.writestr("mo_demo.py", "text = 'from the index'\\n")
w.writestr("mo_demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: mo-demo\\nVersion: 1.0\\n")
w.writestr("mo_demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
w.writestr("mo_demo-1.0.dist-info/RECORD", "")
w.close()`], { cwd: dir });
  const bytes = readFileSync(join(dir, 'w'));
  rmSync(dir, { recursive: true });
  return bytes;
}

describe('a box with a network', { skip }, () => {
  const hosts = new Hosts();
  const pair = certificate(['api.test', 'other.test']);
  let box, repo, tls, http, echo, banner;

  const answer = (q, r) => {
    const file = join(repo, normalize(q.url.split('?')[0]));
    if (q.url === '/big') return r.end(big);
    if (q.url.startsWith('/-/ping')) return r.end('{}');
    if (q.method === 'PUT') {
      const h = createHash('sha256');
      q.on('data', (d) => h.update(d)).on('end', () => r.end(h.digest('hex')));
      return undefined;
    }
    if (q.url === '/simple/mo-demo/') return r.setHeader('content-type', 'text/html').end('<a href="mo_demo-1.0-py3-none-any.whl">w</a>');
    if (q.url.endsWith('.whl')) return r.end(wheel());
    if (q.url.startsWith('/repo.git/') && existsSync(file)) return r.end(readFileSync(file));
    if (q.url.startsWith('/repo.git/')) return r.writeHead(404).end();
    return r.end(`hello ${q.headers.host}`);
  };

  before(async () => {
    repo = repository();
    tls = await hosts.tls(pair, answer);
    http = await hosts.http(answer);
    echo = await hosts.tcp((s) => s.pipe(s));
    banner = await hosts.tcp((s) => s.end('SSH-2.0-test\r\n'));
    box = await NetBox.open({ allow: [`api.test=127.0.0.1:${tls}`, `web.test=127.0.0.1:${http}`,
      `*.unresolved.test:${http}`, `127.0.0.1:${echo}`, `ssh.test=127.0.0.1:${banner}`] },
    { env: { CA: pair.cert } });
    assert.match(await box.run('printf %s "$CA" > /workspace/ca.pem'), /exit 0/);
  });
  after(async () => {
    await box?.close();
    hosts.close();
    rmSync(repo, { recursive: true });
  });

  test('curl, over both families', { skip: needs('curl') }, async () => {
    for (const family of ['-4', '-6', ''])
      assert.equal(await box.run(`curl -sS ${family} --cacert ca.pem https://api.test:${tls}/`),
        `hello api.test:${tls}exit 0`);
    assert.match(await box.run(`curl -sS http://WEB.test.:${http}/`), /^hello .*exit 0$/i);
  });

  test('wget', { skip: needs('wget') }, async () => {
    assert.match(await box.run(`wget -qO- --ca-certificate=ca.pem https://api.test:${tls}/`), /^hello .*exit 0$/);
  });

  test('python', { skip: needs('python3') }, async () => {
    assert.match(await box.run(`SSL_CERT_FILE=ca.pem /usr/bin/python3 -c 'import urllib.request as u
print(u.urlopen("https://api.test:${tls}/").read())'`), /^b'hello .*\nexit 0$/);
  });

  test('node', { skip: needs('node') }, async () => {
    assert.match(await box.run(`NODE_EXTRA_CA_CERTS=ca.pem /usr/bin/node -e '
fetch("https://api.test:${tls}/").then((r) => r.text()).then(console.log)'`), /^hello .*\nexit 0$/);
  });

  test('npm', { skip: needs('npm') }, async () => {
    const npm = (registry) => box.run(`npm_config_cafile=ca.pem npm ping --fetch-retries=0 --registry ${registry}`);
    assert.match(await npm(`https://api.test:${tls}/`), /PONG[\s\S]*exit 0$/);
    assert.match(await npm('https://other.test/'), /other\.test[\s\S]*exit 1$/);
  });

  test('git', { skip: needs('git') }, async () => {
    assert.match(await box.run(`GIT_SSL_CAINFO=ca.pem git clone -q https://api.test:${tls}/repo.git one && cat one/hello.txt`),
      /^from the repository\nexit 0$/);
  });

  test('pip', { skip: needs('pip3') }, async () => {
    const pip = (index) => box.run(`pip3 install --cert ca.pem --retries 1 --index-url ${index} --target lib mo-demo`);
    assert.match(await pip(`https://api.test:${tls}/simple/`), /exit 0$/);
    assert.match(await box.run(`PYTHONPATH=lib /usr/bin/python3 -c 'import mo_demo; print(mo_demo.text)'`), /^from the index\nexit 0$/);
    assert.match(await pip('https://other.test/simple/'), /other\.test[\s\S]*Name or service not known[\s\S]*exit 1$/);
  });

  test('many bytes, both ways', { skip: needs('curl') }, async () => {
    assert.match(await box.run(`curl -sS --cacert ca.pem https://api.test:${tls}/big | sha256sum`), new RegExp(`^${sum(big)} `));
    assert.match(await box.run(`curl -sS http://web.test:${http}/big > big && curl -sS -T big http://web.test:${http}/up`),
      new RegExp(`^${sum(big)}exit 0$`));
  });

  test('plain TCP: an address, the end of input, a host that speaks first', { skip: needs('python3') }, async () => {
    const talk = (host, port, send) => box.run(`/usr/bin/python3 -c '
import socket
s = socket.create_connection(("${host}", ${port}))
s.sendall(b"${send}")
${send && 's.shutdown(socket.SHUT_WR)'}
print(s.makefile().read())'`);
    assert.match(await talk('127.0.0.1', echo, 'to and fro'), /^to and fro\n\s*exit 0$/);
    assert.match(await talk('ssh.test', banner, ''), /^SSH-2.0-test\n\s*exit 0$/);
  });

  test('other hosts fail at once, with a clear error', { skip: needs('curl') }, async () => {
    assert.match(await box.run('curl -sS http://example.org/'), /Could not resolve host: example.org\s+exit 6$/);
    assert.match(await box.run(`curl -sS http://93.184.216.34:${http}/`), /(reset by peer|connect to server)\s+exit (56|7)$/);
    assert.match(await box.run('curl -sS http://93.184.216.34/'), /exit 7$/);
    assert.match(await box.run(`curl -sS http://web.test:${tls}/`), /(reset by peer|connect to server)\s+exit (56|7)$/);
    assert.match(await box.run(`curl -sS http://x.unresolved.test:${http}/`), /(reset by peer|connect to server)\s+exit (56|7)$/);
    assert.match(await box.run(`curl -sS --cacert ca.pem --connect-to other.test:${tls}:api.test:${tls} https://other.test:${tls}/`),
      /exit (35|7)$/);
  });

  test('each connection is in the log', async () => {
    for (const row of [/egress.*api\.test at 127\.0\.0\.1:\d+ allowed by api\.test=/,
      /egress.*93\.184\.216\.34:\d+ refused: not allowed/, /egress.*TLS that names another host/])
      await eventually(`a row ${row}`, () => row.test(box.log));
  });
});

describe('PostgreSQL and SSH in a box with a network', { skip }, () => {
  const pair = certificate(['db.test']);
  let box, db, ssh, repo;
  const noDb = needs('psql', '/usr/lib/postgresql');
  const noSsh = needs('ssh', '/usr/sbin/sshd', 'git');

  before(async () => {
    db = noDb ? undefined : await postgres(pair);
    ssh = noSsh ? undefined : await sshd('ssh.test');
    repo = repository();
    box = await NetBox.open({ allow: [`db.test=127.0.0.1:${db?.port ?? 1}`, `ssh.test=127.0.0.1:${ssh?.port ?? 2}`] },
      { env: { CA: pair.cert, KEY: ssh?.key ?? '', KNOWN: ssh?.known ?? '' } });
    assert.match(await box.run(`umask 077; mkdir .ssh; printf %s "$KEY" > .ssh/id_ed25519; printf %s "$KNOWN" > .ssh/known_hosts
printf %s "$CA" > ca.pem`), /exit 0$/);
  });
  after(async () => {
    await box?.close();
    await db?.close();
    await ssh?.close();
    rmSync(repo, { recursive: true });
  });

  const psql = (words, sql) => box.run(`psql -At -v ON_ERROR_STOP=1 "user=postgres connect_timeout=60 ${words}" -c "${sql}"`);

  test('psql, with and without TLS', { skip: noDb }, async () => {
    const at = `host=db.test port=${db.port}`;
    assert.equal(await psql(`${at} sslmode=disable`, 'select 6 * 7'), '42\nexit 0');
    assert.equal(await psql(`${at} sslmode=verify-full sslrootcert=ca.pem`,
      'select ssl, 1 from pg_stat_ssl where pid = pg_backend_pid()'), 't|1\nexit 0');
    assert.match(await box.run(`seq 200000 | psql -q "user=postgres ${at}" -c 'create table n (i int)' -c 'copy n from stdin' &&
psql -At "user=postgres ${at}" -c 'copy n to stdout' | sha256sum; seq 200000 | sha256sum`), /^(\w{64}) .*\n\1 .*\nexit 0$/);
  });

  test('psql to other hosts fails at once', { skip: noDb }, async () => {
    assert.match(await psql(`host=other.test port=${db.port}`, 'select 1'), /could not translate host name "other\.test"[\s\S]*exit 2$/);
    assert.match(await psql(`host=127.0.0.1 port=${db.port}`, 'select 1'), /(reset by peer|closed the connection)[\s\S]*exit 2$/);
    assert.match(await psql('host=db.test port=5433', 'select 1'), /Connection refused[\s\S]*exit 2$/);
  });

  test('ssh, scp and git over ssh', { skip: noSsh }, async () => {
    const me = userInfo().username;
    assert.equal(await box.run(`echo hello | ssh -p ${ssh.port} ${me}@ssh.test 'read x; echo "got $x"'`), 'got hello\nexit 0');
    assert.match(await box.run(`git clone -q ssh://${me}@ssh.test:${ssh.port}${repo}/repo.git two && cat two/hello.txt`),
      /^from the repository\nexit 0$/);
    assert.equal(await box.run(`head -c 3000000 /dev/urandom > r && scp -q -O -P ${ssh.port} r ${me}@ssh.test:${repo}/r`), 'exit 0');
    assert.match(await box.run('sha256sum < r'), new RegExp(`^${sum(readFileSync(join(repo, 'r')))} `));
  });

  test('ssh to other hosts fails at once', { skip: noSsh }, async () => {
    const to = (host, port) => box.run(`ssh -o StrictHostKeyChecking=no -p ${port} ${host} true`);
    assert.match(await to('other.test', ssh.port), /Could not resolve hostname other\.test[\s\S]*exit 255$/);
    assert.match(await to('127.0.0.1', ssh.port), /(reset by|closed by)[\s\S]*exit 255$/);
    assert.match(await to('ssh.test', 22), /Connection refused\s+exit 255$/);
  });
});

describe('the box of a session', { skip: skip || needs('curl') }, () => {
  const hosts = new Hosts();
  const homes = [];
  let port, other;
  const place = (allow) => {
    const home = new Home({ sandbox: { driver: 'native', warm: 0, memoryMb: 64, cpus: 1, pids: 32, network: { allow } } });
    homes.push(home);
    return home;
  };

  before(async () => {
    port = await hosts.http((q, r) => r.end('here'));
    other = await hosts.http((q, r) => r.end('there'));
  });
  after(() => {
    homes.forEach((h) => h.removeAll());
    hosts.close();
  });

  test('has the network of sandbox.network, also after the server was killed', async () => {
    const home = place([`a.test=127.0.0.1:${port}`]);
    const curl = (p) => `curl -s http://a.test:${p}/ || echo no`;
    let s = await home.server();
    const first = await s.hold('h', 's1');
    assert.equal(await s.sh('h', curl(port)), 'here');
    await s.kill();
    s = await home.server();
    const again = await s.hold('h', 's1');
    assert.equal(again.box, first.box); // adopted
    assert.equal(await s.sh('h', curl(port)), 'here');
    assert.equal(await s.sh('h', curl(other)), 'no\n');
    assert.equal(await s.sh('h', 'curl -s http://b.test/ || echo no'), 'no\n');
    assert.equal(await s.close(), 0);
  });

  test('a restarted program has it; a box follows the configuration', async () => {
    const home = place([`a.test=127.0.0.1:${port}`, `b.test=127.0.0.1:${other}`]);
    const curl = (host, p) => `curl -s http://${host}.test:${p}/ || echo no`;
    const change = (network) => {
      const text = JSON.parse(readFileSync(home.config));
      writeFileSync(home.config, JSON.stringify({ ...text, sandbox: { ...text.sandbox, network } }));
    };
    const die = async (s) => {
      const uid = (await s.sh('h', 'id -u')).trim();
      for (const pid of processesOf(uid)) try { process.kill(Number(pid), 'SIGKILL'); } catch { /* gone */ }
      await s.next((e) => e.ev === 'lost');
      s.tell('use', { h: 'h' });
      const used = await s.next((e) => e.ev === 'used');
      assert.deepEqual([used.why, used.workspace], [null, 'kept']);
    };
    let s = await home.server();
    const { box } = await s.hold('h', 's1');
    await die(s);
    assert.equal(await s.sh('h', curl('a', port)), 'here');
    for (const [network, b] of [[{ allow: [`a.test=127.0.0.1:${port}`] }, 'here'], ['none', 'no\n']]) {
      await s.kill();
      change(network);
      s = await home.server();
      assert.equal((await s.hold('h', 's1')).box, box); // adopted
      assert.equal(await s.sh('h', curl('a', port)), b);
      assert.equal(await s.sh('h', curl('b', other)), 'no\n');
      await die(s);
      assert.equal(await s.sh('h', curl('a', port)), b);
    }
    assert.equal(await s.close(), 0);
  });

  test('a warm box has it, too', async () => {
    const home = place([`a.test=127.0.0.1:${port}`]);
    const text = JSON.parse(readFileSync(home.config));
    writeFileSync(home.config, JSON.stringify({ ...text, sandbox: { ...text.sandbox, warm: 1 } }));
    const s = await home.server();
    await eventually('a warm box', async () => (await s.stats()).warm === 1);
    await s.hold('h', 's1');
    assert.equal(await s.sh('h', `curl -s http://a.test:${port}/`), 'here');
    assert.equal(await s.close(), 0);
  });

  test('`box run` has it', async () => {
    const home = place([`a.test=127.0.0.1:${port}`]);
    const run = (...args) => new Promise((resolve) => execFile(cli, ['--config', home.config, 'box', 'run', ...args],
      { env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' } }, (e, stdout, stderr) => resolve({ stdout, stderr })));
    assert.equal((await run('--', 'curl', '-s', `http://a.test:${port}/`)).stdout, 'here');
  });
});
