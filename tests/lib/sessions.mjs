// Servers with sessions for tests: the program that drives them, their home,
// and what an observer may find of their boxes.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { cgroupsOf, eventually } from './outside.mjs';

const top = fileURLToPath(new URL('../..', import.meta.url));
export const build = process.env.MO_BUILD ?? join(top, 'build-asan');
const program = process.env.MO_SESSION_DRIVER ?? join(build, 'tests/it/session_driver');
export const cli = process.env.MO_BIN ?? join(build, 'src/app/mcp-orchestrator');
const moBox = join(build, 'launcher/mo-box');

export const noNative = process.getuid() !== 0 ? 'root, to make native boxes' : false;

/** One server process. Events come in order; each is taken once. */
export class Server {
  constructor(home, { leaks = false, env = {} } = {}) {
    this.events = [];
    this.waiting = [];
    this.seq = 0;
    this.child = spawn(program, [home.config], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH, ASAN_OPTIONS: `detect_leaks=${leaks ? 1 : 0}`, ...env },
    });
    this.child.stdin.on('error', () => {});
    this.ended = once(this.child, 'close').then(([code]) => code);
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      try {
        this.events.push(JSON.parse(line));
      } catch { /* cut in the middle by a kill */ }
      this.look();
    });
    this.ended.then(() => {
      this.over = true;
      this.look();
    });
  }

  look() {
    this.waiting = this.waiting.filter(({ test, resolve, reject }) => {
      const at = this.events.findIndex(test);
      if (at < 0 && this.over) reject(new Error('the server has ended'));
      if (at < 0) return !this.over;
      resolve(this.events.splice(at, 1)[0]);
      return false;
    });
  }

  tell(op, more = {}) {
    this.child.stdin.write(JSON.stringify({ op, ...more }) + '\n');
  }

  next(ok) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ test: ok, resolve, reject });
      this.look();
    });
  }

  async open() {
    const e = await this.next((x) => x.ev === 'open');
    assert.equal(e.why, null);
    this.instance = e.instance;
    return this;
  }

  /** Ready, or an error with the reason. */
  async hold(h, session) {
    this.tell('hold', { h, session });
    const e = await this.next((x) => x.h === h && (x.ev === 'ready' || x.ev === 'closed'));
    if (e.ev === 'closed') throw new Error(`${session}: ${e.reason}: ${e.why}`);
    return e;
  }

  async call(h, tool, args) {
    const id = `${++this.seq}`;
    this.tell('call', { h, id, tool, args });
    return this.next((x) => x.ev === 'answer' && x.id === id);
  }

  /** The output of a command in the session's box. */
  async sh(h, command) {
    const e = await this.call(h, 'execute_command', { command });
    if (!e.result) throw new Error(`${h}: ${e.why ?? JSON.stringify(e.error)}`);
    return e.result.structuredContent.stdout;
  }

  async append(h, doc) {
    const id = `${++this.seq}`;
    this.tell('append', { h, id, doc });
    const e = await this.next((x) => x.ev === 'appended' && x.id === id);
    if (e.why) throw new Error(e.why);
    return e.seq;
  }

  async stats() {
    this.tell('stats');
    return this.next((x) => x.ev === 'stats');
  }

  async sweep() {
    this.tell('sweep');
    await this.next((x) => x.ev === 'swept');
  }

  async kill() {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  /** In good order; the exit status. */
  async close() {
    this.child.stdin.end();
    return this.ended;
  }
}

/** A state directory and its configuration. */
export class Home {
  constructor({ driver = 'native', engine, warm = 0, volumes, store = {}, ...more } = {}) {
    this.root = mkdtempSync(join(tmpdir(), 'mo-home-'));
    this.dir = join(this.root, 'state');
    this.boxes = join(this.dir, 'boxes');
    this.config = join(this.root, 'config.json');
    this.ids = new Set();
    this.servers = new Set();
    writeFileSync(this.config, JSON.stringify({
      store: { dir: this.dir, ...store },
      sandbox: { driver, warm, memoryMb: 64, workspaceMb: 8, cpus: 1, pids: 32,
        ...(engine ? { dockerHost: engine } : {}), ...(volumes ? { dockerVolumes: volumes } : {}) },
      sessions: { sweepSeconds: 5 },
      log: { level: 'error' },
      ...more,
    }));
    process.once('exit', (this.atExit = () => this.removeAll()));
  }

  server(opts) {
    const s = new Server(this, opts);
    this.servers.add(s);
    s.ended.then(() => this.servers.delete(s));
    return s.open();
  }

  run(...args) {
    return execFileSync(cli, ['--config', this.config, ...args], {
      env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    }).toString();
  }

  /** Every session the store has a row for: [{id, box, heldBy, ...}]. */
  sessions() {
    return JSON.parse(this.run('sessions', 'list', '--json'));
  }

  /** Remember the name of every native box that ever appears. */
  watch() {
    this.watcher = watch(this.boxes, (_, name) => this.note(name));
    this.sockets();
  }

  note(name) {
    const m = /^(b[0-9a-f]+)\.(sock|new)$/.exec(name ?? '');
    if (m) this.ids.add(m[1]);
  }

  sockets() {
    const names = existsSync(this.boxes) ? readdirSync(this.boxes) : [];
    names.forEach((n) => this.note(n));
    return names.filter((n) => n.endsWith('.sock')).map((n) => n.slice(0, -5));
  }

  /** The files of kept workspaces, and of those that are being written. */
  kept() {
    return existsSync(this.boxes) ? readdirSync(this.boxes).filter((n) => n.includes('.files')) : [];
  }

  /** Has a workspace that is saved this text? One that is being written is renamed
   *  at any moment. */
  saved(words) {
    return this.kept().filter((n) => n.endsWith('.files')).some((n) => readFileSync(join(this.boxes, n), 'latin1').includes(words));
  }

  /** Makes a session of a store in SQLite older than it is. */
  age(id, minutes) {
    const db = new DatabaseSync(join(this.dir, 'mcp-orchestrator.db'), { timeout: 20_000 });
    db.prepare('UPDATE session SET at = at - ? WHERE id = ?').run(minutes * 60_000, id);
    db.close();
  }

  /** What there is of native boxes other than these, as texts. */
  remains(except = []) {
    const left = this.sockets().filter((id) => !except.includes(id)).map((id) => `socket ${id}`);
    for (const line of readFileSync('/proc/net/unix', 'utf8').split('\n'))
      if (line.includes(`${this.boxes}/`) && !except.some((id) => line.includes(id)))
        left.push(`keeper ${line.split('/').pop()}`);
    for (const id of this.ids)
      if (!except.includes(id)) left.push(...cgroupsOf(id).map((d) => `cgroup ${d}`));
    if (readFileSync('/proc/self/mountinfo', 'utf8').includes(this.root)) left.push('a mount');
    return left;
  }

  removeAll() {
    process.removeListener('exit', this.atExit);
    this.watcher?.close();
    for (const s of this.servers) s.child.kill('SIGKILL');
    for (const id of this.sockets())
      try {
        execFileSync(join(build, 'tests/it/box_client'), ['kill', this.boxes, id],
          { env: { ASAN_OPTIONS: 'detect_leaks=0' }, stdio: 'ignore' });
      } catch { /* swept below */ }
    if (existsSync(this.boxes)) execFileSync(moBox, ['--sweep', this.boxes], { stdio: 'ignore' });
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10 });
  }
}

export { eventually, sleep };
