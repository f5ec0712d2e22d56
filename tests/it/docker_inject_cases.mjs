// The cases of docker_inject.test.mjs and docker_inject_far.test.mjs: secrets
// set by the relay for docker boxes; programs of an image trust it.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { Hosts, NetBox, certificate, loadPython } from '../lib/egress.mjs';
import { busybox, hostProgram, load } from '../lib/image.mjs';
import { Home } from '../lib/sessions.mjs';

const hosts = new Hosts();
export const pair = certificate(['a.test', 'b.test', 'c.test']);
export const seen = [];
let port;
before(async () => {
  port = await hosts.tls(pair, (q, r) => {
    seen.push([q.headers.host.split(':')[0], q.headers.authorization]);
    r.end('here');
  });
});
after(() => hosts.close());

export const network = (...inject) => ({ allow: ['a', 'b', 'c'].map((n) => `${n}.test=127.0.0.1:${port}`),
  inject: Object.fromEntries(inject.map((n) => [`${n}.test`, { Authorization: '${env:TOKEN}' }])) });
export const fetch = (host) => `python3 -c 'import urllib.request as u
print(u.urlopen("https://${host}.test:${port}/").read().decode(), end="")' || echo no`;
/** Names where the distribution has its certificates. */
export const bundle = { path: 'etc/ssl/certs/ca-certificates.crt', data: 'none\n', mode: 0o644 };

/** far: the engine is reached over TCP, as one on another machine. */
export const cases = (far) => describe('docker boxes with inject', { skip: noDocker }, () => {
  const file = far ? '/run/ca-certificates/ca-certificates.crt' : '/run/ca-certificates.crt';
  const homes = [];
  let engine;
  const place = (image, ...inject) => {
    const home = new Home({ sandbox: { driver: 'docker', dockerHost: engine.far ?? engine.host, warm: 0, memoryMb: 128, cpus: 1, pids: 32, image,
      network: network(...inject) } });
    homes.push(home);
    writeFileSync(join(home.root, 'trust.pem'), pair.cert);
    return home;
  };
  const env = (home, TOKEN) => ({ env: { TOKEN, SSL_CERT_FILE: join(home.root, 'trust.pem') } });

  before(async () => {
    engine = await dockerd({ far });
    const wget = existsSync('/usr/bin/wget') ? hostProgram('/usr/bin/wget') : [];
    await loadPython(engine, 'debian:1', [bundle, ...wget]);
    await loadPython(engine, 'fedora:1', [{ path: 'etc/ssl/certs', type: '2', link: '../pki/tls/certs' },
      { path: 'etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem', data: 'none\n' },
      { path: 'etc/pki/tls/certs/ca-bundle.crt', type: '2', link: '../../ca-trust/extracted/pem/tls-ca-bundle.pem' }]);
    await load(engine, 'link:1', [[...busybox(), { path: 'run', type: '2', link: '/etc' }]], { Entrypoint: ['/bin/sh'] });
  }, { timeout: 120_000 });
  after(() => {
    homes.forEach((h) => h.removeAll());
    engine?.cleanUp();
  });

  test('OpenSSL by its variable, GnuTLS by the file of the distribution', async (t) => {
    const box = await NetBox.open({ ...network(), inject: { 'a.test': { Authorization: '${secret:one}' } } },
      { engine: { host: engine.far ?? engine.host }, image: 'debian:1', trust: pair.cert, secrets: { one: 'a-planted-secret' } });
    t.after(() => box.close());
    seen.length = 0;
    assert.equal(await box.run(fetch('a')), 'hereexit 0', box.log);
    assert.deepEqual(seen, [['a.test', 'a-planted-secret']]);
    assert.match(await box.run(fetch('b')), /CERTIFICATE_VERIFY_FAILED/); // the host's own
    assert.equal(await box.run(`cmp ${file} /etc/ssl/certs/ca-certificates.crt; ls /run /etc/ssl`),
      `/etc/ssl:\ncerts\n\n/run:\n${file.split('/')[2]}\nexit 0`);
    assert.match(await box.run(`touch ${file} /etc/ssl/certs/x`), /Read-only[^]*exit 1$/);
    if (existsSync('/usr/bin/wget')) {
      seen.length = 0;
      assert.equal(await box.run(`/usr/bin/wget -qO- https://a.test:${port}/`), 'hereexit 0');
      assert.deepEqual(seen, [['a.test', 'a-planted-secret']]);
    }
    const env = await box.run('env');
    for (const name of ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'PIP_CERT'])
      assert.match(env, new RegExp(`^${name}=${file}$`, 'm'));
    const all = JSON.stringify((await engine.api('GET', '/containers/json?all=1')).json);
    assert.ok(!all.includes('planted'));
  });

  test('a link of the image is not followed, its target is covered', async () => {
    const home = place('fedora:1', 'a');
    const s = await home.server({ ...env(home, 'one'), leaks: true });
    await s.hold('h', 's1');
    assert.equal(await s.sh('h', fetch('a')), 'here');
    assert.match(await s.sh('h', 'grep -c BEGIN /etc/ssl/certs/ca-bundle.crt; ls /etc/pki/tls/certs'), /^[1-9]\d*\nca-bundle\.crt\n$/);
    s.tell('end', { session: 's1' });
    await s.next((e) => e.ev === 'ended');
    assert.equal(await s.close(), 0);
  });

  test('an image in which a link leads to the place is refused', async () => {
    const home = place('link:1', 'a');
    const s = await home.server(env(home, 'one'));
    await assert.rejects(s.hold('h', 's1'), /network\.inject: image: a link leads to \/run\/ca-certificates/);
    assert.equal(await s.close(), 0);
    assert.deepEqual((await engine.api('GET', '/containers/json?all=1')).json, []);
  });

  test('a session has it, also after the server was killed and with other hosts', async () => {
    const home = place('debian:1', 'a');
    let s = await home.server(env(home, 'one'));
    const first = await s.hold('h', 's1');
    seen.length = 0;
    assert.equal(await s.sh('h', fetch('a')), 'here');
    await s.kill();
    s = await home.server({ ...env(home, 'two'), leaks: true });
    assert.equal((await s.hold('h', 's1')).box, first.box); // adopted
    assert.equal(await s.sh('h', fetch('a')), 'here');
    assert.deepEqual(seen, [['a.test', 'one'], ['a.test', 'two']]);
    await s.kill();
    const text = JSON.parse(readFileSync(home.config));
    text.sandbox.network = network('a', 'b');
    writeFileSync(home.config, JSON.stringify(text));
    s = await home.server({ ...env(home, 'three'), leaks: true });
    assert.equal((await s.hold('h', 's1')).box, first.box); // with the certificates of the first hosts
    assert.equal(await s.sh('h', fetch('b')), 'no\n');
    s.tell('end', { session: 's1' });
    await s.next((e) => e.ev === 'ended');
    await s.hold('g', 's2');
    seen.length = 0;
    assert.equal(await s.sh('g', fetch('b')), 'here');
    assert.deepEqual(seen, [['b.test', 'three']]);
    s.tell('end', { session: 's2' });
    await s.next((e) => e.ev === 'ended');
    assert.equal(await s.close(), 0);
    assert.deepEqual((await engine.api('GET', '/containers/json?all=1')).json, []);
    assert.deepEqual((await engine.api('GET', '/volumes')).json.Volumes ?? [], []);
  });
});
