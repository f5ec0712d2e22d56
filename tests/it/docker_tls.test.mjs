// An engine behind TCP and TLS: DOCKER_HOST and DOCKER_CERT_PATH.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import tls from 'node:tls';
import { docker } from '../lib/box.mjs';
import { dockerd, missing, noDocker } from '../lib/dockerd.mjs';

const skip = noDocker || missing('openssl');
let engine;
let server;
let dir;
let port;

const ssl = (...args) => execFileSync('openssl', args, { stdio: 'ignore', cwd: dir });
function certificate(name, ca) {
  ssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
    '-keyout', `${name}-key.pem`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
  writeFileSync(join(dir, 'ext'), 'subjectAltName=DNS:localhost,IP:127.0.0.1');
  ssl('x509', '-req', '-in', `${name}.csr`, '-CA', `${ca}.pem`, '-CAkey', `${ca}-key.pem`,
    '-CAcreateserial', '-days', '2', '-extfile', 'ext', '-out', `${name}.pem`);
}
function authority(name) {
  ssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
    '-keyout', `${name}-key.pem`, '-out', `${name}.pem`, '-subj', `/CN=${name}`);
}
const read = (name) => readFileSync(join(dir, name));

before(async () => {
  if (skip) return;
  engine = await dockerd();
  dir = mkdtempSync(join(tmpdir(), 'mo-tls-'));
  authority('ca');
  authority('other');
  certificate('server', 'ca');
  certificate('cert', 'ca');
  writeFileSync(join(dir, 'key.pem'), read('cert-key.pem'));
  // The engine's own listener in all but name: TLS outside, its socket inside.
  server = tls.createServer(
    { key: read('server-key.pem'), cert: read('server.pem'), ca: read('ca.pem'),
      requestCert: true, rejectUnauthorized: true },
    (s) => {
      const inner = net.connect(engine.sock);
      s.pipe(inner).pipe(s);
      s.on('error', () => inner.destroy());
      inner.on('error', () => s.destroy());
    });
  server.on('tlsClientError', () => {});
  await new Promise((r) => server.listen(0, '127.0.0.1', r));
  port = server.address().port;
}, { timeout: 120_000 });
after(() => {
  server?.close();
  engine?.cleanUp();
  if (dir) rmSync(dir, { recursive: true });
});

const remote = (env) =>
  docker({ host: `tcp://localhost:${port}`, dir: engine.dir }, { env });

test('a box over TLS', { skip }, async () => {
  const us = remote({ DOCKER_CERT_PATH: dir, DOCKER_TLS_VERIFY: '1' });
  await us.start('a', { argv: ['/bin/sh', '-c', 'read x; echo "got $x"; cat'] });
  us.write('a', 'it\n');
  assert.equal(await us.until('a', '\n'), 'got it\n');
  assert.equal((await us.stop('a')).cause, 'stopped');
  await us.close();
});

test('not with a certificate of somebody else\'s', { skip }, async () => {
  writeFileSync(join(dir, 'ca.pem'), read('other.pem'));
  const us = remote({ DOCKER_CERT_PATH: dir });
  us.tell('check');
  const { ok, why } = await us.next('check');
  assert.equal(ok, false);
  assert.match(why, /certificate|verify/i);
  await us.close();
});

test('not without one', { skip }, async () => {
  const us = remote({});
  us.tell('check');
  assert.equal((await us.next('check')).ok, false);
  await us.close();
});
