// A real container engine for one test file, which leaves nothing behind.
//
// dockerd runs in a process and a mount namespace of its own, below a shell
// that dies with us: whatever happens to the test, the kernel ends the engine,
// its containers and its mounts with it. What is left then, a directory and
// empty cgroups, is removed at exit.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, rmdirSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { freePort } from './port.mjs';

const onPath = (name) =>
  [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/sbin'].some((dir) =>
    existsSync(join(dir, name)));

/** Why it cannot be tested here, or false: for the `skip` of a test. */
export function missing(...programs) {
  if (process.getuid() !== 0) return 'root, to start a container engine';
  const lost = ['unshare', ...programs].find((p) => !onPath(p));
  return lost ? `the program ${lost}` : false;
}
export const noDocker = missing('dockerd', 'containerd', 'runc', 'busybox');

/** The causes that the driver may tell, by what noticedMemory() says. */
export const memoryCauses = (noticed) =>
  noticed === 'late' ? ['oom', 'killed'] : [noticed ? 'oom' : 'killed'];

/** Remove the cgroups of that name in every hierarchy, children first. */
function removeCgroups(name) {
  const walk = (dir) => {
    let entries = [];
    try {
      entries = readdirSync(dir, { withFileTypes: true });
    } catch {
      return;
    }
    for (const e of entries) if (e.isDirectory()) walk(join(dir, e.name));
    try {
      rmdirSync(dir);
    } catch { /* still in use: the caller tries again */ }
  };
  const top = '/sys/fs/cgroup';
  const found = () => [top, ...readdirSync(top).map((d) => join(top, d))]
    .map((d) => join(d, name)).filter((d) => existsSync(d));
  for (let i = 0; i < 50 && found().length; i++) {
    found().forEach(walk);
    if (found().length) spawnSync('sleep', ['0.1']);
  }
}

/** One request to an engine: {status, json, text}. */
export function request(socketPath, method, path, body) {
  return new Promise((resolve, reject) => {
    const req = http.request(
      { socketPath, method, path, headers: body === undefined ? {} : {
        'Content-Type': Buffer.isBuffer(body) ? 'application/x-tar' : 'application/json',
      } },
      (res) => {
        const pieces = [];
        res.on('data', (d) => pieces.push(d));
        res.on('error', reject);
        res.on('end', () => {
          const text = Buffer.concat(pieces).toString();
          let json = null;
          try { json = JSON.parse(text); } catch { /* no JSON */ }
          resolve({ status: res.statusCode, json, text });
        });
      });
    req.on('error', reject);
    if (body !== undefined) req.write(Buffer.isBuffer(body) ? body : JSON.stringify(body));
    req.end();
  });
}

/** A shell in namespaces of its own; what it is told to start dies with us. */
function namespace(dir) {
  const shell = spawn('unshare',
    ['--pid', '--mount', '--fork', '--kill-child=SIGKILL', '--mount-proc', 'sh', '-s'],
    { stdio: ['pipe', 'ignore', 'inherit'], cwd: dir,
      env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, HOME: dir } });
  shell.stdin.on('error', () => {});
  return shell;
}

class Engine {
  constructor(program, args) {
    this.dir = mkdtempSync(join(tmpdir(), 'mo-engine-'));
    this.cgroup = basename(this.dir);
    this.sock = join(this.dir, 'sock');
    this.host = `unix://${this.sock}`;
    this.args = args;
    this.program = program;
    this.shell = namespace(this.dir);
    this.clean = () => this.cleanUp();
    process.once('exit', this.clean);
  }

  api(method, path, body) {
    return request(this.sock, method, path, body);
  }

  /** Whether it learned that the memory of a container (of any one) ran out. On
   *  cgroup v1 its shim reads the kernel's notice after the end, and if the control
   *  group is removed first it tells nobody. 'late': perhaps after the driver's wait. */
  async noticedMemory(id) {
    const filters = encodeURIComponent(JSON.stringify({ event: ['oom', 'die'], ...(id && { container: [id] }) }));
    const until = Math.ceil(Date.now() / 1000);
    const { status, text } = await this.api('GET', `/events?since=1&until=${until}&filters=${filters}`);
    assert.equal(status, 200, text);
    const all = text.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
    const oom = all.find((e) => e.Action === 'oom');
    const die = all.find((e) => e.Action === 'die' && e.Actor.ID === oom?.Actor.ID);
    return oom && die && oom.timeNano - die.timeNano > 4e8 ? 'late' : Boolean(oom);
  }

  /** On a busy machine the engine gives up waiting for its containerd: it is
   *  started again, as a service manager would. */
  async start() {
    const words = [this.program, ...this.args(this)].map((w) => `'${w}'`).join(' ');
    const log = join(this.dir, 'log');
    const begin = () => this.shell.stdin.write(`${words} >'${log}' 2>&1 & echo $! >'${this.dir}/main'\n`);
    let left = 3;
    begin();
    for (let i = 0; i < 1200; i++) {
      if (existsSync(log) && readFileSync(log, 'utf8').includes('timeout waiting for containerd') && --left > 0) {
        rmSync(log);
        begin();
      }
      try {
        const { status } = await this.api('GET', '/_ping');
        if (status === 200) return this;
      } catch { /* not yet */ }
      if (this.shell.exitCode !== null) break;
      await sleep(50);
    }
    throw new Error(`${this.program} did not start: ${spawnSync('tail', ['-5', log]).stdout}`);
  }

  /** Send the engine itself a signal and wait until it is gone. */
  async signal(name) {
    this.shell.stdin.write(
      `p=$(cat '${this.dir}/main'); kill -${name} $p; wait $p; ` +
      `rm -f '${this.dir}/docker.pid'; : >'${this.dir}/ended'\n`);
    while (!existsSync(join(this.dir, 'ended'))) await sleep(20);
    rmSync(join(this.dir, 'ended'));
  }

  cleanUp() {
    process.removeListener('exit', this.clean);
    if (this.shell.exitCode === null && this.shell.signalCode === null) {
      this.shell.kill('SIGKILL');
      // unshare's own end is the signal for all the others; wait for them.
      for (let i = 0; i < 100 && existsSync(`/proc/${this.shell.pid}/exe`); i++)
        spawnSync('sleep', ['0.02']);
    }
    removeCgroups(this.cgroup);
    for (let i = 0; i < 50; i++) {
      try {
        rmSync(this.dir, { recursive: true, force: true });
        return;
      } catch {
        spawnSync('sleep', ['0.1']);
      }
    }
  }
}

/** Start Docker's; stop it with cleanUp(). far: its `far` is an address over TCP, as of another machine. */
export async function dockerd({ liveRestore = false, far = false } = {}) {
  const port = far ? await freePort() : 0;
  const engine = await new Engine('dockerd', (e) => [
    '--bridge=none', '--iptables=false', '--ip6tables=false',
    '--storage-driver=overlay2', `--cgroup-parent=/${e.cgroup}`,
    '--data-root', join(e.dir, 'data'), '--exec-root', join(e.dir, 'exec'),
    '--pidfile', join(e.dir, 'docker.pid'), '-H', e.host,
    ...(liveRestore ? ['--live-restore'] : []),
    ...(far ? ['-H', `tcp://127.0.0.1:${port}`, '--tls=false'] : []),
  ]).start();
  if (far) engine.far = `tcp://127.0.0.1:${port}`;
  return engine;
}

/** podman's service, with the one runtime that works on any cgroup layout. */
export const noPodman = missing('podman', 'runc', 'conmon', 'busybox');
export function podman() {
  return new Engine('podman', (e) => [
    '--root', join(e.dir, 'root'), '--runroot', join(e.dir, 'run'),
    '--runtime', 'runc', '--cgroup-manager', 'cgroupfs', '--events-backend', 'file',
    '--tmpdir', join(e.dir, 'tmp'), 'system', 'service', '--time=0', e.host,
  ]).start();
}
