// One mo-toolbox under test, as a client of it and as an observer outside.
//
// What starts it is exchangeable: a launcher gets {bin, root, args, env} and
// gives back the child whose stdin and stdout speak MCP. `local` starts the
// program itself, as nobody when we are root. Others may start the same
// program in a box; the tests look at the root from outside either way.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync, chownSync, copyFileSync, lstatSync, mkdirSync, mkdtempSync,
  readFileSync, readdirSync, rmSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { slay } from './gateway.mjs';

const top = fileURLToPath(new URL('../..', import.meta.url));
const checked = join(top, 'build-asan'); // built with the unit tests
const build = process.env.MO_BUILD ?? checked;
/** A small program of tests/it. */
export const helper = (name) => join(checked, 'tests/it', name);
/** The toolbox with sanitizers, and the static one that runs in boxes. */
export const programs = {
  asan: join(checked, 'toolbox/mo-toolbox-check'),
  musl: join(build, 'toolbox/mo-toolbox'),
};

/** What commands in the toolbox get; ours may hold what nobody cannot see. */
export const PATH = '/usr/local/bin:/usr/bin:/bin';
const isRoot = process.getuid() === 0;
export const nobody = isRoot ? { uid: 65534, gid: 65534 } : {};
const WAIT_MS = 60_000;

/** Resolve like the promise, or fail with `what`. */
export async function within(promise, what, ms = WAIT_MS) {
  const stop = new AbortController();
  const late = sleep(ms, null, { signal: stop.signal }).then(
    () => assert.fail(`waited ${ms} ms for ${what}`),
    () => {},
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    stop.abort();
  }
}

export async function until(check, what, ms = WAIT_MS) {
  const end = Date.now() + ms;
  while (!(await check())) {
    if (Date.now() > end) assert.fail(`waited ${ms} ms for ${what}`);
    await sleep(10);
  }
}

export const launchers = {
  local: ({ bin, root, args, env }) =>
    spawn(bin, ['--root', root, ...args], {
      env, cwd: '/', ...nobody, stdio: ['pipe', 'pipe', 'pipe'],
    }),
};

export const sanitizers = {
  ASAN_OPTIONS: 'detect_leaks=0',
  UBSAN_OPTIONS: process.env.UBSAN_OPTIONS ?? 'halt_on_error=1',
};

/** A directory for one test: a workspace in it, a marker beside that. */
export class Place {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), 'mo-toolbox-'));
    chmodSync(this.dir, 0o755);
    this.root = join(this.dir, 'workspace');
    mkdirSync(this.root);
    if (isRoot) chownSync(this.root, nobody.uid, nobody.gid);
    // Beside the root and writable by the toolbox: nothing but confinement
    // keeps it away from there.
    this.outside = join(this.dir, 'outside');
    mkdirSync(this.outside);
    chmodSync(this.outside, 0o777);
    this.secret = `secret-${randomBytes(12).toString('hex')}`;
    this.marker = join(this.outside, 'marker');
    writeFileSync(this.marker, `${this.secret}\n`);
    chmodSync(this.marker, 0o666);
    this.before = this.look();
  }

  /** Everything outside the root as one text: names, modes, contents. */
  look(below = '') {
    const lines = [];
    for (const name of readdirSync(join(this.dir, below)).sort()) {
      const path = join(below, name);
      if (path === 'workspace' || path.startsWith('program-')) continue;
      const at = join(this.dir, path);
      const st = lstatSync(at);
      const hash = st.isFile()
        ? createHash('sha256').update(readFileSync(at)).digest('hex')
        : '';
      lines.push(`${path} ${st.mode.toString(8)} ${hash}`);
      if (st.isDirectory()) lines.push(this.look(path));
    }
    return lines.join('\n');
  }

  /** Take what is outside now as the state that must not change. */
  settle() {
    this.before = this.look();
  }

  untouched() {
    assert.equal(this.look(), this.before, 'outside the root');
  }

  file(name, text, mode) {
    const at = join(this.root, name);
    writeFileSync(at, text, { mode });
    if (isRoot) chownSync(at, nobody.uid, nobody.gid);
    return at;
  }

  remove() {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

export class Toolbox {
  /** `program`: asan or musl. `place`: made (and removed) when not given. */
  static start({
    program = 'asan', place, root, args = [], env = {},
    launcher = process.env.MO_TOOLBOX_LAUNCHER ?? 'local', launch,
  } = {}) {
    return new Toolbox(program, place, root, args, env,
      launch ?? launchers[launcher]);
  }

  constructor(program, place, root, args, env, launch) {
    this.own = !place;
    this.place = place ?? new Place();
    this.mark = randomBytes(12).toString('hex');
    // A copy: the build directory may be closed to nobody.
    const bin = join(this.place.dir, `program-${this.mark}`);
    copyFileSync(programs[program], bin);
    chmodSync(bin, 0o755);
    this.child = launch({
      bin, root: root ?? this.place.root, args,
      env: { PATH, MO_MARK: this.mark, ...sanitizers, ...env },
    });
    this.messages = [];
    this.said = '';
    this.stderr = '';
    this.id = 0;
    this.waiting = new Map();
    this.child.stdin.on('error', () => {});
    this.child.stderr.setEncoding('utf8').on('data', (d) => (this.stderr += d));
    createInterface({ input: this.child.stdout }).on('line', (l) => this.take(l));
    this.exited = once(this.child, 'close').then(([code, signal]) => {
      for (const { reject } of this.waiting.values())
        reject(new Error(`toolbox ended: ${code ?? signal} ${this.stderr}`));
      this.waiting.clear();
      return { code, signal };
    });
  }

  take(line) {
    const m = JSON.parse(line);
    this.said += line;
    const w = m.method ? undefined : this.waiting.get(m.id);
    if (!w) return this.messages.push(m);
    this.waiting.delete(m.id);
    w.resolve(m);
  }

  raw(text) {
    this.child.stdin.write(text);
  }

  send(message) {
    this.raw(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  /** The answering message, result or error. */
  request(method, params, id = ++this.id) {
    const answer = new Promise((resolve, reject) =>
      this.waiting.set(id, { resolve, reject }));
    this.send({ id, method, params });
    return within(answer, `an answer to ${method} ${JSON.stringify(params)
      ?.slice(0, 200)}; stderr: ${this.stderr}`);
  }

  /** Open a legacy session. */
  async open(protocolVersion = '2025-11-25') {
    const { result } = await this.request('initialize', {
      protocolVersion, capabilities: {}, clientInfo: { name: 't', version: '1' },
    });
    this.send({ method: 'notifications/initialized' });
    return result;
  }

  async call(name, args, { id, _meta } = {}) {
    const m = await this.request(
      'tools/call', { name, arguments: args, _meta }, id ?? ++this.id);
    assert.ok(m.result, JSON.stringify(m));
    return m.result;
  }

  /** The structured content of a call that must succeed. */
  async ok(name, args) {
    const r = await this.call(name, args);
    assert.equal(r.isError, false, r.content[0].text);
    return r.structuredContent;
  }

  /** A call that must be refused for its path. */
  async refused(name, args) {
    const r = await this.call(name, args);
    const what = `${name} ${JSON.stringify(args).slice(0, 120)}`;
    assert.equal(r.isError, true, `${what}: ${r.content[0].text.slice(0, 200)}`);
    assert.equal(r._meta?.['mo.error'], 'path', `${what}: ${r.content[0].text}`);
    return r.content[0].text;
  }

  /** Nothing of the marker was ever said, nothing outside has changed. */
  confined() {
    assert.ok(!this.said.includes(this.place.secret), 'the marker was read');
    this.place.untouched();
  }

  /** Processes alive that this toolbox started, found by what they inherit. */
  processes() {
    return readdirSync('/proc').filter((pid) => {
      if (!/^\d+$/.test(pid) || Number(pid) === this.child.pid) return false;
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        const dead = /\) [ZX] /.test(stat);
        return !dead &&
          readFileSync(`/proc/${pid}/environ`, 'latin1').includes(this.mark);
      } catch {
        return false;
      }
    });
  }

  /** Descriptors and resident memory of the process itself. */
  holds() {
    const at = `/proc/${this.child.pid}`;
    const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`${at}/status`, 'latin1'));
    let fds = 0; // only root may look
    if (isRoot) fds = readdirSync(`${at}/fd`).length;
    return { fds, kib: Number(kib[1]) };
  }

  /** Close stdin and wait for the end; whatever happens, leave nothing. */
  async close() {
    try {
      this.child.stdin.end();
      const how = await within(this.exited, 'the end of the toolbox');
      assert.deepEqual(how, { code: 0, signal: null }, this.stderr);
      await until(() => this.processes().length === 0, 'its processes to end');
      assert.equal(this.stderr, '');
    } finally {
      this.child.kill('SIGKILL');
      this.processes().map(Number).forEach(slay);
      if (this.own) this.place.remove();
    }
  }
}

/** Start, open, run, close, for a test body; what the body did must not have
 *  cost the process a descriptor, or much memory. `leaves`: commands that go
 *  on in the background when the body ends. */
export async function withToolbox({ leaves = false, ...how }, body) {
  const t = Toolbox.start(how);
  try {
    await t.open();
    const before = t.holds();
    await body(t);
    if (!leaves) {
      await until(() => t.holds().fds === before.fds,
        `${before.fds} descriptors, not ${t.holds().fds}`);
      // A sanitizer keeps what was freed.
      const grown = t.holds().kib - before.kib;
      if (how.program === 'musl') assert.ok(grown < 16 * 1024, `${grown} KiB more`);
    }
  } catch (e) {
    t.child.kill('SIGKILL');
    await t.close().catch(() => {});
    throw e;
  }
  await t.close();
}
