// Boxes for the hostile tests: the same attack in a box of every driver.
//
// A driver is { name, missing(), run(), start(), clean() }:
//   missing()            what it lacks on this machine, or null
//   run(argv, opts)      a box from start to end: { out, err, end, id }
//   start(argv, opts)    a box that goes on: { id, pid, uid, out(), stdin,
//                        stats(), kill(), ended } (pid: of its first process,
//                        uid: of all of them, on the host; await kill())
//   noticedMemory(id)    whether the driver was told that memory ran out: true,
//                        false or 'late'
//   allows, others, shown, unsized  what it cannot forbid (kubernetes)
//   clean()              ends what is left of this file's boxes and returns
//                        what should not be there any more, as texts
// opts: limits by the names of struct mo_boxreq (memory, pids, ...), env (more
// of it), clientEnv (of who starts the box), host: true (a shell with the
// host's programs instead of `probe`), views (host directories to show).
// argv is the probe's (tests/hostile/probe.c), without its name.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { cgroupsOf, eventually, lives, processesOf } from './outside.mjs';
import { docker, toolbox } from './box.mjs';
import { Namespace, noKube, ownImage } from './kube.mjs';
import { dockerd, noDocker } from './dockerd.mjs';
import { busybox, load } from './image.mjs';

const top = fileURLToPath(new URL('../..', import.meta.url));
const build = join(top, 'build-asan');

export const probe = join(build, 'tests/hostile/probe');
export const moBox = join(build, 'launcher/mo-box');
export const boxClient = join(build, 'tests/it/box_client');

export { cgroupsOf, eventually, lives };

// --- native ------------------------------------------------------------------

export class Native {
  name = 'native';

  constructor() {
    this.home = mkdtempSync(join(tmpdir(), 'mo-boxes-'));
    this.dir = join(this.home, 'boxes');
    mkdirSync(this.dir, { mode: 0o700 });
    this.ids = new Set();
    this.pids = new Set();
  }

  missing() {
    if (process.getuid() !== 0) return 'root';
    for (const f of [probe, moBox, boxClient]) if (!existsSync(f)) return f;
    return null;
  }

  words({ host, env = [], views = [], mounts = [], keep, ...limits } = {}) {
    const words = Object.entries(limits).map(([k, v]) => `${k}=${v}`);
    for (const e of env) words.push(`env=${e}`);
    for (const v of views) words.push(`view=${v}`);
    for (const m of mounts) words.push(`mount=${m}`);
    if (keep) words.push('keep=1');
    if (!host) words.push(`by_fd=${probe}`);
    return words;
  }

  client(command, words, argv, clientEnv = {}, stdin = 'ignore') {
    return spawn(boxClient, [...command, ...words, ...(argv ? ['--', ...argv] : [])], {
      stdio: [stdin, 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0', ...clientEnv },
    });
  }

  ask(what, id, ...more) {
    const out = execFileSync(boxClient, [what, this.dir, id, ...more], {
      env: { ASAN_OPTIONS: 'detect_leaks=0' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return JSON.parse(out);
  }

  /** mo-box reads the kernel's account itself. */
  async noticedMemory() {
    return true;
  }

  async run(argv, { clientEnv, ...opts } = {}) {
    const id = `t${randomBytes(8).toString('hex')}`;
    this.ids.add(id);
    const child = this.client(
      ['run', moBox, this.dir],
      [`id=${id}`, ...this.words(opts)],
      opts.host ? argv : ['probe', ...argv],
      clientEnv,
    );
    return { id, ...(await this.collect(child)) };
  }

  async collect(child) {
    let out = '';
    let err = '';
    child.stdout.on('data', (d) => (out += d));
    child.stderr.on('data', (d) => (err += d));
    const [code] = await once(child, 'close');
    const end = /^END (.*)$/m.exec(err);
    return {
      out,
      err: err.replace(/^(END|TIME) .*\n/gm, ''),
      code,
      end: end ? JSON.parse(end[1]) : null,
    };
  }

  async start(argv, { clientEnv, ...opts } = {}) {
    const id = `t${randomBytes(8).toString('hex')}`;
    this.ids.add(id);
    const child = this.client(
      ['run', moBox, this.dir],
      [`id=${id}`, ...this.words(opts)],
      opts.host ? argv : ['probe', ...argv],
      clientEnv,
      'pipe',
    );
    const done = this.collect(child);
    let out = '';
    child.stdout.on('data', (d) => (out += d));
    let desc;
    await eventually(`box ${id} starts`, () => {
      try {
        desc = this.ask('describe', id);
      } catch {
        assert.equal(child.exitCode, null, 'the box did not start');
      }
      return desc;
    });
    this.pids.add(desc.pid);
    return {
      id,
      pid: desc.pid,
      uid: desc.uid,
      out: () => out,
      client: child, // who started it
      stdin: child.stdin,
      stats: () => this.ask('stats', id),
      kill: () => this.ask('kill', id),
      ended: done,
    };
  }

  /** What an observer must not find when all boxes have ended. */
  async clean() {
    for (const id of this.ids)
      if (existsSync(join(this.dir, `${id}.sock`)))
        try {
          this.ask('kill', id);
        } catch {
          // its keeper was killed: the sweep below is for that
        }
    execFileSync(moBox, ['--sweep', this.dir]);
    const left = [];
    for (const id of this.ids) left.push(...cgroupsOf(id));
    for (const pid of this.pids) if (lives(pid)) left.push(`process ${pid}`);
    left.push(...readdirSync(this.dir));
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
    if (mounts.includes(this.home)) left.push('a mount');
    rmSync(this.home, { recursive: true, force: true });
    return left;
  }
}

// --- containers --------------------------------------------------------------

/** Boxes of box_driver: their bytes, their end, the kernel's account of them. A
 *  driver says how to begin() and where the control groups are (groupOf()). */
class Containers {
  /** A box of a process of its own, so that it has its environment. */
  async begin(argv, { clientEnv = {}, host, env, ...limits } = {}) {
    this.opening ??= this.open();
    await this.opening;
    const us = this.client({ PATH: process.env.PATH, ...clientEnv });
    us.tell('start', { box: 'x', image: this.image, env, limits,
      argv: host ? argv : ['/probe', ...argv] });
    const first = await us.next('ready', 'x');
    const said = { out: '', err: '' };
    const ended = (async () => {
      for (;;) {
        const e = await us.next(undefined, 'x');
        if (e.ev === 'out' || e.ev === 'err') said[e.ev] += e.text;
        if (e.ev !== 'gone') continue;
        await us.close();
        return { id: first.id, ...said, code: e.code, end: e };
      }
    })();
    return { us, id: first.id, said, ended };
  }

  async run(argv, opts) {
    return (await this.begin(argv, opts)).ended;
  }

  async start(argv, opts) {
    const { us, id, said, ended } = await this.begin(argv, opts);
    const groups = cgroupsOf(await this.groupOf(id));
    const read = (name) => {
      const dir = groups.find((g) => existsSync(join(g, name)));
      return dir ? readFileSync(join(dir, name), 'utf8') : '';
    };
    const status = (pid, key) => {
      try {
        const text = readFileSync(`/proc/${pid}/status`, 'utf8');
        return new RegExp(`^${key}:\\s*(.*)$`, 'm').exec(text)?.[1] ?? '';
      } catch {
        return ''; // it has ended since it was listed
      }
    };
    let pid;
    await eventually('its first process', () => {
      pid = read('cgroup.procs').split('\n').filter(Boolean)
        .find((p) => status(p, 'NSpid').split(/\s+/).at(-1) === '1');
      return pid;
    });
    const uid = status(pid, 'Uid').split(/\s+/)[0];
    return {
      id,
      pid: Number(pid),
      uid: Number(uid),
      out: () => said.out,
      client: us.child,
      stdin: { write: (text) => us.write('x', text) },
      stats: () => ({
        pids: Number(read('pids.current')),
        peak: Number(read('memory.max_usage_in_bytes') || read('memory.peak')),
        oom_kills: Number(/^oom_kill (\d+)/m.exec(
          read('memory.oom_control') || read('memory.events'))?.[1] ?? 0),
      }),
      kill: async () => {
        us.tell('stop', { box: 'x' });
        await ended;
        await this.killed?.(Number(uid));
      },
      ended,
    };
  }
}

/** An engine of this file's own, started when a box is first asked for. */
export class Docker extends Containers {
  name = 'docker';
  image = 'probe:1';

  missing() {
    return noDocker || [probe, toolbox].find((f) => !existsSync(f)) || null;
  }

  async open() {
    this.engine = await dockerd();
    await load(this.engine, this.image,
      [[...busybox(), { path: 'probe', data: readFileSync(probe) }]], { Entrypoint: ['/probe'] });
  }

  client(env) {
    return docker(this.engine, { env });
  }

  groupOf(id) {
    return id;
  }

  noticedMemory(id) {
    return this.engine.noticedMemory(id);
  }

  async clean() {
    if (!this.opening) return [];
    await this.opening;
    const { json } = await this.engine.api('GET', '/containers/json?all=1');
    const { json: volumes } = await this.engine.api('GET', '/volumes');
    const left = [...json.map((c) => `container ${c.Names}`),
      ...(volumes.Volumes ?? []).map((v) => `volume ${v.Name}`)];
    this.engine.cleanUp();
    return left;
  }
}

/** Pods of the cluster that scripts/kube has started. */
export class Kubernetes extends Containers {
  name = 'kubernetes';
  others = 1; // the first process of a pod has its user, too
  allows = ['read /proc/kallsyms', 'run from /tmp']; // a pod can forbid neither
  shown = ['/proc/interrupts', '/proc/kallsyms']; // the runtime masks what it likes
  unsized = true; // before 1.22 a volume in memory has no size of its own

  missing() {
    return noKube || [probe, toolbox].find((f) => !existsSync(f)) || null;
  }

  async open() {
    this.own = ownImage.with('localhost/probe:1', [{ path: 'probe', data: readFileSync(probe) }]);
    this.ns = await Namespace.open();
  }

  client(env) {
    return this.ns.boxes({ env, image: this.own });
  }

  async groupOf(id) {
    const { json } = await this.ns.pod(id);
    return json.status.containerStatuses[0].containerID.replace('containerd://', '');
  }

  /** The runtime reads the kernel's notice; told or not, the pod has the cause. */
  async noticedMemory() {
    return true;
  }

  /** The object of a pod goes first, its processes within seconds. */
  async killed(uid) {
    await eventually('its processes end', () => processesOf(uid).length === 0);
  }

  async clean() {
    if (!this.opening) return [];
    await this.opening;
    const left = (await this.ns.pods()).map((p) => `pod ${p.metadata.name}`);
    await this.ns.close();
    return left;
  }
}

// --- all of them -----------------------------------------------------------------

export const drivers = process.env.MO_KUBE ? [new Kubernetes()] : [new Native(), new Docker()];

/** One test a driver. */
export function eachDriver(name, body) {
  for (const d of drivers) {
    const lacks = d.missing();
    test(`${name} (${d.name})`, { skip: lacks ? `needs ${lacks}` : false }, (t) => body(d, t));
  }
}

after(async () => {
  for (const d of drivers) assert.deepEqual(await d.clean(), [], `${d.name} left something`);
});
