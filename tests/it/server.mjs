// One `mcp-orchestrator serve` under test: started on a free port in a
// directory of its own, watched through /proc, and stopped.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, readlink, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { withHosts } from '../lib/hosts.mjs';

const built = (dir) =>
  fileURLToPath(
    new URL(`../../${dir}/src/app/mcp-orchestrator`, import.meta.url),
  );

/** The program under test (the ASan build unless told otherwise). */
export const BIN = process.env.MO_BIN ?? built('build-asan');
export const BIN_RELEASE = process.env.MO_BIN_RELEASE ?? built('build');

/** Both builds as {name, bin}; only one row when they are the same. */
export const BUILDS =
  BIN === BIN_RELEASE
    ? [{ name: 'release', bin: BIN }]
    : [
        { name: 'asan', bin: BIN },
        { name: 'release', bin: BIN_RELEASE },
      ];

/** MO_WORKERS=N: every server of a suite runs with that many workers. */
// --test-crash kills the process that comes to the point: with workers the
// server would go on.
export const workers = (args, oneProcess) =>
  process.env.MO_WORKERS && !oneProcess && !args.includes('--workers') && !args.includes('--test-crash') ? ['--workers', process.env.MO_WORKERS] : [];

/** The number of the worker that said a line of the log; '0': there is one process. */
export const workerOf = (line) => /worker\W+(\d+)/.exec(line)?.[1] ?? '0';

/** Writes a file at once: a server looks at its configuration at any moment. */
export async function replaceFile(file, words) {
  await writeFile(`${file}.new`, words);
  await rename(`${file}.new`, file);
}

const READY = /is ready: https?:\/\/[^:]+:(\d+)\//;
const READY_MS = 30_000;
const STOP_MS = 30_000;

export const MIB = 1024 * 1024;

/** A page of /metrics as one process has it: series of several workers as their
 *  sum. */
export function summed(page) {
  const sums = new Map();
  for (const line of page.split('\n')) {
    const [, name, labels = '', value] = /^([\w:]+)\{worker="\d+",?(.*)\} (\S+)$/.exec(line) ?? [];
    const key = name ? `${name}${labels && `{${labels}}`} ` : line;
    sums.set(key, name ? (sums.get(key) ?? 0) + Number(value) : '');
  }
  return [...sums].map(([key, sum]) => `${key}${sum}`).join('\n');
}

/** Wait until check() is true (or resolves to true); fails with `what`. */
export async function until(check, what, ms = 20_000) {
  const end = Date.now() + ms;
  while (!(await check())) {
    if (Date.now() > end) assert.fail(`waited ${ms} ms for ${what}`);
    await sleep(10);
  }
}

/** Resolve like the promise, or fail with `what` after ms. */
export async function within(promise, what, ms = 20_000) {
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

// A sanitizer keeps freed memory for a while to find who uses it. Little of
// that, so that the resident size still tells what the program holds.
function sanitizers() {
  const asan = process.env.ASAN_OPTIONS ?? 'detect_leaks=1';
  return {
    ASAN_OPTIONS: `${asan}:quarantine_size_mb=4`,
    UBSAN_OPTIONS:
      process.env.UBSAN_OPTIONS ?? 'print_stacktrace=1:halt_on_error=1',
    // /proc tells only root about a process that is not dumpable
    ...(process.getuid() === 0 ? {} : { MCP_ORCHESTRATOR_CORE: '1' }),
  };
}

async function childrenOf(pid) {
  const tasks = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(
    tasks.map((t) =>
      // a thread may end between the two looks
      readFile(`/proc/${pid}/task/${t}/children`, 'utf8').catch(() => ''),
    ),
  );
  return lists.join(' ').split(/\s+/).filter(Boolean).map(Number);
}

export class Server {
  /** Start it and wait until it says that it is ready.
   *  env is added to a nearly empty environment; dir: where it runs (a fresh
   *  directory, removed at the end, when not given); house: with sessions and
   *  conversations, and wait until they are there too ('none': the
   *  configuration allows no boxes, so do not wait); auth: with a token, as
   *  ordinary users have it; hosts: names that it resolves, by address;
   *  oneProcess: why the test is about one process, whatever MO_WORKERS says.
   *  Workers are always whole servers: what they share is in the store. */
  static async start(args = [], { bin = BIN, env = {}, dir, house, auth, hosts, oneProcess } = {}) {
    const own = dir ? undefined : await mkdtemp(join(tmpdir(), 'mo-serve-'));
    const cwd = dir ?? own;
    const more = workers(args, oneProcess);
    const echo = args.includes('--test-echo');
    const whole = house || (more.length > 0 && !echo);
    const plain = [bin, 'serve', '--port', '0', ...(auth ? [] : ['--no-auth']), ...(whole || echo ? [] : ['--test-bare']), ...more, ...args];
    const [command, ...rest] = hosts ? withHosts(cwd, hosts, plain) : plain;
    const child = spawn(command, rest, {
      cwd,
      env: { PATH: process.env.PATH, HOME: cwd, ...sanitizers(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const server = new Server(child, own);
    server.hasWorkers = plain.includes('--workers');
    server.workers = server.hasWorkers ? Number(plain[plain.indexOf('--workers') + 1]) : 1;
    try {
      await within(server.ready, 'the ready line', READY_MS);
      if (house === true) await until(() => server.isReady(), 'sessions', READY_MS);
      else if (whole && house !== 'none') await until(() => server.isOpen(), 'sessions', READY_MS);
      if (house === true) await until(() => server.hasLog(), 'the audit log', READY_MS);
    } catch (e) {
      child.kill('SIGKILL');
      await server.cleanUp();
      throw new Error(`${e.message}\n${server.log}`);
    }
    server.fresh = whole ? await server.settled() : await server.measure();
    return server;
  }

  constructor(child, ownDir) {
    this.child = child;
    this.ownDir = ownDir;
    this.pid = child.pid;
    this.log = ''; // all it said, for the reader of a failure
    this.exit = once(child, 'exit').then(([code, signal]) => {
      this.ended = { code, signal };
      return this.ended;
    });
    this.exit.catch(() => {}); // not even started: `ready` tells
    child.stderr.on('data', (d) => (this.log += d));
    this.ready = new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        this.log += `${line}\n`;
        const m = READY.exec(line);
        if (!m) return;
        this.port = Number(m[1]);
        resolve();
      });
      this.exit.then(
        () => reject(new Error('it ended before it was ready')),
        reject,
      );
    });
    this.ready.catch(() => {});
  }

  get url() {
    return `http://localhost:${this.port}`;
  }

  async cleanUp() {
    if (this.ownDir) await rm(this.ownDir, { recursive: true, force: true, maxRetries: 10 });
  }

  /** Send a signal; stop() and stopClean() will only wait then. */
  signal(signal) {
    this.signalled = true;
    this.child.kill(signal);
  }

  /** SIGHUP, until every process that serves has read its configuration. */
  async reload() {
    const numbers = this.hasWorkers ? Array.from({ length: this.workers }, (_, i) => `${i + 1}`) : ['0'];
    const loads = () => {
      const all = [...this.log.matchAll(/^.*generation \d+ loaded.*$/gm)].map(([line]) => workerOf(line));
      return numbers.map((n) => all.filter((m) => m === n).length);
    };
    const before = loads();
    this.child.kill('SIGHUP');
    await until(() => loads().every((n, i) => n > before[i]), 'the reload');
  }

  /** Send a signal to every process that serves: one that sleeps has no worker
   *  that is awake. */
  async signalAll(signal) {
    for (const pid of await this.processes()) process.kill(pid, signal);
  }

  /** Send a signal, wait for the end; {code, signal} as node tells it. Before
   *  that the server must hold no more descriptors and children than when it
   *  was fresh, whatever the test did to it. */
  async stop(signal = 'SIGTERM', ms = STOP_MS) {
    if (!this.ended && !this.signalled) {
      await this.assertBack(this.fresh, { grow: Infinity }).catch((e) => {
        this.leak = e;
      });
      this.signal(signal);
    }
    try {
      await within(this.exit, `the end after ${signal}`, ms);
    } catch (e) {
      this.child.kill('SIGKILL');
      throw new Error(`${e.message}\n${this.log}`);
    } finally {
      await this.cleanUp();
    }
    if (this.leak) throw this.leak; // it left something open before the end
    return this.ended;
  }

  /** The end every test wants: SIGTERM, exit 0, no sanitizer report. */
  async stopClean() {
    const end = await this.stop();
    assert.deepEqual(end, { code: 0, signal: null }, this.log);
    assert.doesNotMatch(this.log, /runtime error|Sanitizer/);
  }

  get alive() {
    return !this.ended;
  }

  // --- what /proc knows ---

  /** All processes that serve: this one, and its workers; not its privileged
   *  helper, which has another name. */
  async processes() {
    if (!this.hasWorkers) return [this.pid];
    const name = (pid) => readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
    const [own, all] = await Promise.all([name(this.pid), childrenOf(this.pid)]);
    const names = await Promise.all(all.map(name));
    return [this.pid, ...all.filter((_, i) => names[i] === own)];
  }

  async linksOf(pid) {
    const fds = `/proc/${pid}/fd`;
    const names = await readdir(fds).catch(() => []);
    return Promise.all(names.map((n) => readlink(join(fds, n)).catch(() => '')));
  }

  async links() {
    return (await Promise.all((await this.processes()).map((pid) => this.linksOf(pid)))).flat();
  }

  /** Open descriptors of each process, without the audit log's: its first row
   *  opens it. */
  async fdsOfEach() {
    const all = await Promise.all((await this.processes()).map((pid) => this.linksOf(pid)));
    return all.map((links) => links.filter((l) => !/\/audit\.(jsonl|head)( \(deleted\))?$/.test(l)).length);
  }

  async fds() {
    return (await this.fdsOfEach()).reduce((sum, n) => sum + n, 0);
  }

  /** What it has started; not its workers. */
  async children() {
    const own = await this.processes();
    const all = (await Promise.all(own.map(childrenOf))).flat();
    return all.filter((pid) => !own.includes(pid));
  }

  /** Resident bytes. */
  async rss() {
    let sum = 0;
    for (const pid of await this.processes()) {
      const status = await readFile(`/proc/${pid}/status`, 'utf8');
      sum += Number(/^VmRSS:\s+(\d+) kB/m.exec(status)[1]) * 1024;
    }
    return sum;
  }

  /** CPU seconds used so far, user and system. */
  async cpu() {
    let sum = 0;
    for (const pid of await this.processes()) {
      const text = await readFile(`/proc/${pid}/stat`, 'utf8');
      const f = text.slice(text.lastIndexOf(')') + 2).split(' ');
      sum += (Number(f[11]) + Number(f[12])) / 100;
    }
    return sum;
  }

  /** One gauge or counter of /metrics, of all workers together; undefined when
   *  there is none. */
  async metric(name, headers = {}) {
    const r = await fetch(`${this.url}/metrics`, {
      headers: { connection: 'close', ...headers },
    });
    const line = summed(await r.text()).split('\n').find((l) => l.startsWith(`${name} `));
    return line && Number(line.slice(name.length));
  }

  /** The same of a server whose address and certificate are the test's affair:
   *  by its log, unless that is quiet. */
  async isOpen() {
    const told = this.log.split(/ready for conversations|no conversations/).length > Number(process.env.MO_WORKERS);
    return told || this.isReady().catch(() => false);
  }

  /** What must be the same again after a test. */
  async isReady() {
    const answer = await fetch(`http://127.0.0.1:${this.port}/readyz`, { headers: { connection: 'close' } });
    await answer.arrayBuffer();
    return answer.status === 200;
  }

  /** Are the files of the audit log open? They are soon after it is ready. */
  async hasLog() {
    return (await this.links()).some((l) => l.endsWith('/audit.jsonl'));
  }

  async measure() {
    const each = await this.fdsOfEach();
    const fds = each.reduce((sum, n) => sum + n, 0);
    return {
      fds,
      counted: fds, // a test may allow more than that
      each,
      children: (await this.children()).length,
      rss: await this.rss(),
    };
  }

  /** The measure when no descriptor has come or gone for half a second: boxes
   *  are kept ready, and they come after it is ready itself. */
  async settled() {
    let last, same = 0;
    for (let looks = 0; same < 10 && looks < 400; looks++) {
      const now = await this.fds();
      same = now === last ? same + 1 : 0;
      last = now;
      await sleep(50);
    }
    return this.measure();
  }

  /** As many descriptors and children as in `before` (given time to close),
   *  and at most `grow` bytes more. */
  async assertBack(before, { grow = 16 * MIB, ms = 20_000 } = {}) {
    let now;
    assert.ok(this.alive, `the server has died\n${this.log}`);
    const back = async () => {
      now = await this.measure();
      // each worker has a guardian and servers of its own, from its first call
      const children = before.children * (this.hasWorkers ? (await this.processes()).length - 1 : 1);
      // and connections of its own: each may have what one of them had
      const most = Math.max(...before.each) + before.fds - before.counted;
      const isBack = now.fds <= before.fds || (this.hasWorkers && now.each.every((n) => n <= most));
      return isBack && now.children <= children;
    };
    await until(back, 'descriptors and children', ms).catch(async (e) => {
      const says = JSON.stringify({ before, now });
      const open = (await this.links()).join(' ');
      throw new Error(`${e.message}: ${says}\n${open}\n${this.log}`);
    });
    const more = now.rss - before.rss;
    assert.ok(more <= grow, `grew by ${(more / MIB).toFixed(1)} MiB`);
  }
}

/** Is there a build to test? A reason to skip, or false. */
export async function missing(bin = BIN) {
  return stat(bin).then(
    () => false,
    () => `${bin} is not built`,
  );
}
