// The cases of docker_net.test.mjs and docker_net_far.test.mjs: docker boxes
// with a network behave as native ones do.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, copyFileSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { Hosts, NetBox, certificate, loadPython } from '../lib/egress.mjs';
import { busybox, load } from '../lib/image.mjs';
import { Home, cli, eventually } from '../lib/sessions.mjs';
import { nobody } from '../lib/toolbox.mjs';

const big = Buffer.alloc(6 << 20, 'some data of the host; ');
const sum = (b) => createHash('sha256').update(b).digest('hex');
const env = { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' };
const execute = async (program, args, input = 'pipe', more = {}) => {
  const child = spawn(program, args, { env, stdio: [input, 'pipe', 'pipe'], ...more });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) child[name].on('data', (d) => { said[name] += d; });
  const [code] = await once(child, 'close');
  return { code, ...said };
};
export const run = (home, ...args) => execute(cli, ['--config', home.config, ...args]);

/** far: the engine is reached over TCP, as one on another machine. */
export const cases = (far) => describe('docker boxes with a network', { skip: noDocker }, () => {
  const hosts = new Hosts();
  const homes = [];
  let engine, host, port, other;
  const place = (allow, more = {}) => {
    const home = new Home({ sandbox: { driver: 'docker', dockerHost: host, warm: 0, memoryMb: 64, cpus: 1, pids: 32,
      network: { allow }, ...more } });
    homes.push(home);
    return home;
  };
  const containers = async () => (await engine.api('GET', '/containers/json?all=1')).json;
  const directories = (home) => far ? [] : readdirSync(join(home.dir, 'net'));
  const wget = (host, p) => `wget -qO- http://${host}:${p}/ || echo no`;
  const nothingLeft = async (home) => {
    assert.deepEqual(await containers(), []);
    assert.deepEqual(directories(home), []);
  };

  before(async () => {
    port = await hosts.http((q, r) => {
      if (q.url !== '/up') return r.end(q.url === '/big' ? big : 'here');
      const h = createHash('sha256');
      return q.on('data', (d) => h.update(d)).on('end', () => r.end(h.digest('hex')));
    });
    other = await hosts.http((q, r) => r.end('there'));
    engine = await dockerd({ far });
    host = far ? engine.far : engine.host;
    await loadPython(engine, 'python:1');
  }, { timeout: 120_000 });
  after(() => {
    homes.forEach((h) => h.removeAll());
    hosts.close();
    engine?.cleanUp();
  });

  test('programs reach allowed hosts, and no others', async (t) => {
    const pair = certificate(['api.test']);
    const tls = await hosts.tls(pair, (q, r) => r.end(`hello ${q.headers.host}`));
    const box = await NetBox.open({ allow: [`api.test=127.0.0.1:${tls}`, `web.test=127.0.0.1:${port}`] },
      { engine: { host }, image: 'python:1', env: { CA: pair.cert } });
    t.after(() => box.close());
    assert.match(await box.run(`printf %s "$CA" > ca.pem; SSL_CERT_FILE=ca.pem python3 -c 'import urllib.request as u
print(u.urlopen("https://api.test:${tls}/").read())'`), /^b'hello api.test:\d+'\nexit 0$/);
    assert.match(await box.run(`wget -qO- http://web.test:${port}/`), /^hereexit 0$/);
    assert.match(await box.run(`wget -qO- http://web.test:${port}/big | sha256sum`), new RegExp(`^${sum(big)} `));
    assert.match(await box.run(`python3 -c 'import urllib.request as u
data = u.urlopen("http://web.test:${port}/big").read()
print(u.urlopen(u.Request("http://web.test:${port}/up", data=data, method="PUT")).read().decode())'`), new RegExp(`^${sum(big)}\nexit 0$`));
    assert.match(await box.run(`wget -qO- http://web.test:${other}/`), /refused\s+exit 1$/);
    assert.match(await box.run('wget -qO- http://example.org/'), /bad address[^]*exit 1$/);
    assert.match(await box.run('cat /etc/resolv.conf'), /^nameserver 127.0.0.1\s*exit 0$/);
    assert.match(await box.run('ls /net /mo-box /proc/sys/net/ipv4/ip_forward && echo 1 > /proc/sys/net/ipv4/ip_forward'),
      /No such file[^]*exit 1/);
    for (const row of [/egress.*api\.test at 127\.0\.0\.1:\d+ allowed by api\.test=/, /egress.*web\.test/])
      await eventually(`a row ${row}`, () => row.test(box.log));
  });

  test('a session has it, also after the server was killed; the end leaves nothing', async () => {
    const home = place([`a.test=127.0.0.1:${port}`], { image: 'python:1' });
    let s = await home.server();
    const first = await s.hold('h', 's1');
    assert.equal(await s.sh('h', wget('a.test', port)), 'here');
    assert.equal((await containers()).length, 2);
    await s.kill();
    s = await home.server({ leaks: true });
    assert.equal((await s.hold('h', 's1')).box, first.box); // adopted
    assert.equal(await s.sh('h', wget('a.test', port)), 'here');
    assert.equal(await s.sh('h', wget('a.test', other)), 'no\n');
    s.tell('end', { session: 's1' });
    assert.equal((await s.next((e) => e.ev === 'ended')).why, null);
    await nothingLeft(home);
    assert.equal(await s.close(), 0);
  });

  test('a box follows the configuration of today', async () => {
    const home = place([`a.test=127.0.0.1:${port}`, `b.test=127.0.0.1:${other}`], { image: 'python:1' });
    let s = await home.server();
    const { box } = await s.hold('h', 's1');
    assert.equal(await s.sh('h', wget('b.test', other)), 'there');
    for (const [network, a] of [[{ allow: [`a.test=127.0.0.1:${port}`] }, 'here'], ['none', 'no\n']]) {
      await s.kill();
      const text = JSON.parse(readFileSync(home.config));
      writeFileSync(home.config, JSON.stringify({ ...text, sandbox: { ...text.sandbox, network } }));
      s = await home.server({ leaks: true });
      assert.equal((await s.hold('h', 's1')).box, box);
      assert.equal(await s.sh('h', wget('a.test', port)), a);
      assert.equal(await s.sh('h', wget('b.test', other)), 'no\n');
    }
    s.tell('end', { session: 's1' });
    await s.next((e) => e.ev === 'ended');
    await nothingLeft(home);
    assert.equal(await s.close(), 0);
  });

  test('a box whose network container is gone is replaced', async () => {
    const home = place([`a.test=127.0.0.1:${port}`], { image: 'python:1' });
    let s = await home.server();
    const { box } = await s.hold('h', 's1');
    await s.kill();
    const net = (await containers()).find((c) => c.Labels['mo.role'] === 'network');
    assert.match(net.Names[0], /^\/mo-net-[0-9a-f]{16}$/);
    await engine.api('DELETE', `/containers/${net.Id}?force=1`);
    s = await home.server({ leaks: true });
    assert.notEqual((await s.hold('h', 's1')).box, box);
    assert.equal(await s.sh('h', wget('a.test', port)), 'here');
    s.tell('end', { session: 's1' });
    await s.next((e) => e.ev === 'ended');
    assert.equal(await s.close(), 0);
    assert.deepEqual(await containers(), []);
  });

  test('a warm box has it; a box that ends takes it along', async () => {
    const home = place([`a.test=127.0.0.1:${port}`], { image: 'python:1', warm: 1 });
    const s = await home.server({ leaks: true });
    await eventually('a warm box', async () => (await s.stats()).warm === 1);
    await s.hold('h', 's1');
    assert.equal(await s.sh('h', wget('a.test', port)), 'here');
    s.tell('end', { session: 's1' });
    await s.next((e) => e.ev === 'ended');
    assert.equal(await s.close(), 0);
    await nothingLeft(home);
  });

  test('`box run` in our own image; its output is complete without an input', async () => {
    const home = place([`a.test=127.0.0.1:${port}`]);
    const command = `busybox nslookup a.test >/dev/null && busybox wget -qO- http://a.test:${port}/; sleep 0.2; echo end`;
    for (const input of ['pipe', 'ignore', 'ignore']) {
      const r = await execute(cli, ['--config', home.config, 'box', 'run', '--', 'sh', '-c', command], input);
      assert.deepEqual([r.code, r.stdout], [0, 'hereend\n'], r.stderr);
    }
    await nothingLeft(home);
  });

  test('a user without rights of its own, but for the engine', async (t) => {
    const root = mkdtempSync(join(tmpdir(), 'mo-user-'));
    t.after(() => rmSync(root, { recursive: true }));
    const config = join(root, 'config.json');
    const bin = join(root, 'mcp-orchestrator');
    copyFileSync(cli, bin);
    writeFileSync(config, JSON.stringify({ store: { dir: join(root, 'state') }, sandbox: { driver: 'docker',
      dockerHost: host, network: { allow: [`a.test=127.0.0.1:${port}`] } } }), { mode: 0o600 });
    for (const path of [root, config]) chownSync(path, nobody.uid, nobody.gid);
    chmodSync(engine.dir, 0o711);
    chmodSync(engine.sock, 0o666);
    const r = await execute(bin, ['--config', config, 'box', 'run', '--', 'busybox', 'wget', '-qO-', `http://a.test:${port}/`],
      'ignore', { ...nobody, cwd: root });
    assert.deepEqual([r.code, r.stdout], [0, 'here'], r.stderr);
    assert.ok(far ? !existsSync(join(root, 'state/net')) : readdirSync(join(root, 'state/net')).length === 0);
  });

  if (!far) test('an engine that does not see our directory: the stream is used', async () => {
    const home = place([`a.test=127.0.0.1:${port}`]);
    const apart = (...args) => execute('unshare', ['--mount', 'sh', '-c',
      `mkdir -p '${home.dir}' && mount -t tmpfs -o mode=0700 none '${home.dir}' && exec "$0" "$@"`,
      cli, '--config', home.config, ...args]);
    const r = await apart('box', 'run', '--', 'busybox', 'wget', '-qO-', `http://a.test:${port}/`);
    assert.deepEqual([r.code, r.stdout], [0, 'here'], r.stderr);
    assert.deepEqual(await containers(), []);
  });

  test('an image with a link where the engine mounts is refused', async () => {
    await load(engine, 'link:1', [[...busybox(), { path: 'etc/', type: '5' },
      { path: 'etc/resolv.conf', type: '2', link: '../../../../etc/passwd' }]], { Entrypoint: ['/bin/sh'] });
    const home = place([`a.test=127.0.0.1:${port}`], { image: 'link:1' });
    assert.match((await run(home, 'box', 'run', '--', 'true')).stderr, /etc\/resolv\.conf/);
    assert.deepEqual(await containers(), []);
  });

  test('doctor --sandbox proves it', async () => {
    const home = place([]);
    const rows = JSON.parse((await run(home, 'doctor', '--sandbox', '--json')).stdout).filter((r) => r.driver === 'docker');
    assert.deepEqual(rows.filter((r) => !r.pass), []);
    assert.ok(rows.some((r) => r.control === 'TLS names'));
    assert.match(rows.find((r) => r.control === 'hosts').detail, far ? /^over the stream/ : /^by its sockets/);
    await nothingLeft(home);
  });
});
