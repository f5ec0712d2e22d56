// The gateway for tests: a configuration in a directory of its own, and the
// program in front of it, on stdio or over HTTP.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { summed, workers } from '../it/server.mjs';

const top = fileURLToPath(new URL('../..', import.meta.url));
const build = process.env.MO_BUILD ?? join(top, 'build-asan');

export const bin = process.env.MO_BIN ?? join(build, 'src/app/mcp-orchestrator');
export const fixture = join(build, 'tests/fixture/fixture');

// Ends in time: searching for leaks would take each child seconds.
const quick = { ASAN_OPTIONS: 'detect_leaks=0' };

/** Servers as the configuration has them. */
export const fixtureServer = (more = {}) => ({ command: fixture, env: quick, ...more });
export const published = (name, ...args) => ({
  command: process.execPath,
  args: [join(top, 'tests/node_modules/@modelcontextprotocol', name, 'dist/index.js'), ...args],
});
export const script = (name, ...args) => ({
  command: process.execPath,
  args: [join(top, 'tests/it', name), ...args],
});

/** `serve` of that configuration, with /mcp and nothing else; workers
 *  (MO_WORKERS) are always whole servers, since what they share is in the
 *  store. */
export async function serveWith(file, where, ...args) {
  const more = workers(args);
  const child = spawn(
    bin, ['serve', '--port', '0', '--no-auth', ...(more.length ? more : ['--test-bare']), '--config', file, ...args],
    { ...where, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const kill = () => child.kill('SIGKILL');
  const end = once(child, 'exit');
  let log = '';
  process.once('exit', kill);
  child.stderr.setEncoding('utf8').on('data', (d) => (log += d));
  const lines = createInterface({ input: child.stdout });
  const port = await new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      const m = /is ready: http:\/\/[^:]+:(\d+)\//.exec(line);
      if (m) resolve(m[1]);
    });
    end.then(() => reject(new Error(`it ended: ${log}`)), reject);
  });
  const stop = async (signal = 'SIGTERM') => {
    child.kill(signal);
    const [code] = await end;
    process.off('exit', kill);
    return { code, log };
  };
  return { url: new URL(`http://localhost:${port}/mcp`), pid: child.pid, stop };
}

/** /metrics of that server, of all its workers together. */
export const metricsOf = async (url) => summed(await (await fetch(new URL('/metrics', url))).text());

/** A directory in which processes may still be writing. */
function remove(dir) {
  for (let left = 50; ; left--)
    try {
      rmSync(dir, { recursive: true, force: true });
      return;
    } catch (e) {
      if (e.code !== 'ENOTEMPTY' || left === 0) throw e;
    }
}

/** A configuration and a state directory; close() removes them. */
export class Place {
  constructor(mcpServers, more = {}) {
    this.dir = mkdtempSync(join(tmpdir(), 'mo-gateway-'));
    this.state = join(this.dir, 'state');
    this.file = join(this.dir, 'mcp-orchestrator.json');
    this.write(mcpServers, more);
    this.gone = () => remove(this.dir);
    process.once('exit', this.gone);
  }

  write(mcpServers, more = {}) {
    writeFileSync(this.file, JSON.stringify({ mcpServers, ...more }));
  }

  get env() {
    return {
      PATH: process.env.PATH,
      HOME: this.dir,
      MCP_ORCHESTRATOR_STATE_DIR: this.state,
      UBSAN_OPTIONS: process.env.UBSAN_OPTIONS ?? '',
      ...quick,
    };
  }

  /** How a client starts the gateway. */
  command(...args) {
    return { command: bin, args: ['gateway', '--config', this.file, ...args], env: this.env };
  }

  /** Say that these servers were found to be legacy: they are not probed. */
  legacy(...servers) {
    const rows = {};
    for (const { command, args = [], cwd, url } of servers) {
      const words = url ? ['http', '', url] : ['stdio', cwd ?? '', command, ...args];
      const key = createHash('sha256').update(words.map((w) => `${w}\0`).join('')).digest('hex');
      rows[key] = { era: 'legacy', at: Date.now() };
    }
    mkdirSync(this.state, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.state, 'eras.json'), JSON.stringify({ version: 1, servers: rows }));
  }

  /** Servers of which something is kept on disk. */
  cached() {
    const dir = join(this.state, 'catalog');
    return existsSync(dir) ? readdirSync(dir) : [];
  }

  /** `serve` with /mcp and nothing else: {url, pid, stop()}. */
  serve(...args) {
    return serveWith(this.file, { cwd: this.dir, env: this.env }, ...args);
  }

  close() {
    process.off('exit', this.gone);
    this.gone();
  }
}

const isOwn = (words) => words.startsWith('mo-guardian') || words.startsWith(`${bin}\0serve\0`);

/** pids of all below a process, itself not counted; neither our guardian nor our
 *  workers. */
export function below(pid) {
  const parents = new Map();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8');
      if (fields[0] !== 'Z') parents.set(Number(name), [Number(fields[1]), words]);
    } catch {
      // it has just ended
    }
  }
  const all = [];
  for (const [child, [, words]] of parents) {
    for (let at = child; at; at = parents.get(at)?.[0]) {
      if (at === child || at !== pid) continue;
      if (!isOwn(words)) all.push(child);
      break;
    }
  }
  return all;
}

/** How that process was started; nothing when it is gone. */
export function wordsOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Is that process there, and no zombie? */
export function isAlive(pid) {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Kill a process that was found: it may have ended by itself since. */
export function slay(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (e) {
    if (e.code !== 'ESRCH') throw e;
  }
}
