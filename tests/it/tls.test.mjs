// HTTPS of the running program: certificates made here with openssl, renewed
// while it runs, and every way to give it wrong files.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { Server, until, within } from './server.mjs';
import { Raw, assertSafe, run } from './wire.mjs';

const exec = promisify(execFile);
const QUICK = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };

let dir;
const at = (name) => join(dir, name);

/** name.crt and name.key, for localhost. */
async function certificate(name) {
  await exec('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt',
    'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj',
    `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1',
    '-keyout', at(`${name}.key`), '-out', at(`${name}.crt`)]);
}

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-tls-'));
  await Promise.all(['first', 'second'].map(certificate));
  await exec('openssl', ['ec', '-in', at('first.key'), '-aes128', '-passout',
    'pass:x', '-out', at('locked.key')]);
  await writeFile(at('garbage'), 'not a certificate\n');
});
after(() => rm(dir, { recursive: true, force: true }));

/** A server with live.crt and live.key, which tests overwrite. */
async function start(t, options = {}) {
  await copyFile(at('first.crt'), at('live.crt'));
  await copyFile(at('first.key'), at('live.key'));
  const server = await Server.start(['--tls-cert', at('live.crt'),
    '--tls-key', at('live.key'), ...(options.args ?? [])],
  { env: options.env ?? QUICK });
  t.after(async () => {
    server.child.kill('SIGKILL');
    await server.cleanUp();
  });
  return server;
}

async function connect(port, options = {}) {
  const socket = tls.connect({ port, host: '127.0.0.1',
    servername: 'localhost', rejectUnauthorized: false, ...options });
  const ready = new Promise((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => {});
  await within(ready, 'a handshake');
  return socket;
}

async function nameOf(port) {
  const socket = await connect(port);
  const name = socket.getPeerCertificate().subject.CN;
  socket.destroy();
  return name;
}

const get = (port, path, options = {}) =>
  within(new Promise((resolve, reject) => {
    https.get({ port, host: 'localhost', path, agent: false, ...options },
      (r) => {
        let body = '';
        r.on('data', (d) => (body += d));
        r.on('end', () => resolve({ status: r.statusCode, headers: r.headers,
          body }));
      }).on('error', reject);
  }), 'an answer');

describe('https', () => {
  test('answers a client that checks the certificate', async (t) => {
    const server = await start(t, { env: {} });
    assert.match(server.log, /is ready: https:\/\/localhost:\d+\//);
    const ca = await readFile(at('first.crt'));
    const a = await get(server.port, '/', { ca });
    assert.equal(a.status, 200);
    assertSafe(a);
    const own = { Origin: `https://localhost:${server.port}` };
    assert.equal((await get(server.port, '/', { ca, headers: own })).status,
      200);
    const plain = { Origin: `http://localhost:${server.port}` };
    assert.equal((await get(server.port, '/', { ca, headers: plain })).status,
      403, 'the page of the plain port is another origin');

    const raw = new Raw(await connect(server.port));
    for (let i = 0; i < 50; i++) raw.request('GET', '/healthz',
      { Host: 'localhost' });
    for (let i = 0; i < 50; i++)
      assert.equal((await raw.answer()).status, 200);
    raw.close();
    await server.stopClean();
  });

  test('the cookie is Secure', async (t) => {
    const token = 'a-token-for-this-test';
    const server = await start(t, { env: { ...QUICK,
      MCP_ORCHESTRATOR_TOKEN: token } });
    const a = await get(server.port, `/?token=${token}`,
      { rejectUnauthorized: false });
    assert.equal(a.status, 303);
    assert.match(a.headers['set-cookie'][0], /; Secure(;|$)/);
  });

  test('plain HTTP to the TLS port ends at once, others go on', async (t) => {
    const server = await start(t);
    const c = await Raw.connect(server.port);
    c.send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await within(c.closed, 'the end', 9000); // the handshake has 10 s
    assert.doesNotMatch(c.buf.toString('latin1'), /200 OK/);
    assert.equal(await nameOf(server.port), 'first');
  });

  test('old TLS is refused', async (t) => {
    const server = await start(t);
    await assert.rejects(connect(server.port,
      { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1',
        ciphers: 'ALL:@SECLEVEL=0' }));
    const socket = await connect(server.port);
    assert.match(socket.getProtocol(), /^TLSv1\.[23]$/);
    socket.destroy();
  });

  test('many handshakes, half of them left in the middle, leave nothing',
    async (t) => {
      const server = await start(t);
      await nameOf(server.port);
      const before = await server.measure();
      for (let i = 0; i < 10; i++)
        await Promise.all(Array.from({ length: 20 }, async (_, k) => {
          if (k % 2) return nameOf(server.port);
          const c = await Raw.connect(server.port);
          c.send('\x16\x03\x01\x02\x00\x01').close();
        }));
      await server.assertBack(before);
    });
});

describe('renewal', () => {
  test('SIGHUP: new connections get the new one, old ones go on',
    async (t) => {
      const server = await start(t, { env: {} });
      const old = new Raw(await connect(server.port));
      old.request('GET', '/healthz', { Host: 'localhost' });
      assert.equal((await old.answer()).status, 200);
      await copyFile(at('second.crt'), at('live.crt'));
      await copyFile(at('second.key'), at('live.key'));
      server.child.kill('SIGHUP');
      await until(async () => (await nameOf(server.port)) === 'second',
        'the new certificate');
      old.request('GET', '/healthz', { Host: 'localhost' });
      assert.equal((await old.answer()).status, 200, 'the old connection');
      old.close();
      await server.stopClean();
    });

  const broken = [
    ['a broken certificate', 'garbage', 'live.crt', /live\.crt.*PEM/],
    ['a broken key', 'garbage', 'live.key', /live\.key.*PEM/],
    ['a key of another certificate', 'second.key', 'live.key',
      /live\.key does not belong to .*live\.crt/],
    ['a key with a passphrase', 'locked.key', 'live.key', /passphrase/],
  ];
  for (const [name, from, to, says] of broken)
    test(`SIGHUP: ${name} is reported and the old one kept`, async (t) => {
      const server = await start(t);
      await copyFile(at(from), at(to));
      server.child.kill('SIGHUP');
      await until(() => /keeping the old certificate/.test(server.log),
        'the error');
      assert.match(server.log, says);
      assert.equal(await nameOf(server.port), 'first');
    });
});

describe('wrong files at the start: exit 3 and which', () => {
  const rows = [
    ['no such certificate', 'none.crt', 'first.key', /none\.crt: No such file/],
    ['no such key', 'first.crt', 'none.key', /none\.key: No such file/],
    ['not a certificate', 'garbage', 'first.key', /garbage is not a PEM/],
    ['not a key', 'first.crt', 'garbage', /garbage is not a PEM/],
    ['another key', 'first.crt', 'second.key',
      /second\.key does not belong to .*first\.crt/],
    ['a passphrase', 'first.crt', 'locked.key', /passphrase/],
    ['exchanged', 'first.key', 'first.crt', /first\.key is not a PEM/],
  ];
  for (const [name, crt, key, says] of rows)
    test(name, async () => {
      const r = await run(['serve', '--port', '0', '--tls-cert', at(crt),
        '--tls-key', at(key)], { cwd: dir });
      assert.equal(r.code, 3, r.err);
      assert.match(r.err, says);
      assert.match(r.err, /server\.tls/);
      assert.equal(r.out, '');
    });

  test('a certificate without a key', async () => {
    const r = await run(['serve', '--port', '0', '--tls-cert',
      at('first.crt')], { cwd: dir });
    assert.equal(r.code, 3);
    assert.match(r.err, /needs both/);
  });
});
