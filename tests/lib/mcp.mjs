// What the tests of the MCP client share: the real program, started with one
// server behind it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const top = fileURLToPath(new URL('../..', import.meta.url));
// The programs the tests talk to are built with the unit tests.
const build = join(top, 'build-asan');

export const bin = process.env.MO_BIN ?? join(build, 'src/app/mcp-orchestrator');
export const release =
  process.env.MO_BIN_RELEASE ?? join(top, 'build/src/app/mcp-orchestrator');
export const driver = join(build, 'tests/it/mcp_driver');
export const evil = join(build, 'tests/it/evil_mcp');

/** A command line that starts a fixture in tests/it or a published server. */
export const script = (name, ...args) =>
  [process.execPath, join(top, 'tests/it', name), ...args].map(quote).join(' ');
export const published = (name, ...args) =>
  [
    process.execPath,
    join(top, 'tests/node_modules/@modelcontextprotocol', name, 'dist/index.js'),
    ...args,
  ].map(quote).join(' ');
export const quote = (word) => `'${word}'`;

// The leak check takes seconds per program; the unit tests have it for the
// same code.
const cleanEnv = (more = {}) => ({
  PATH: process.env.PATH,
  HOME: '/tmp',
  ASAN_OPTIONS: 'detect_leaks=0',
  UBSAN_OPTIONS: process.env.UBSAN_OPTIONS ?? '',
  ...more,
});

/** Peak resident memory of a running process, in KiB, or 0. */
function peak(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+)/.exec(text)?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Run to the end: {code, out, err, ms, peak}. */
export async function run(program, args, { env = {}, cwd = '/tmp' } = {}) {
  const start = performance.now();
  const child = spawn(program, args, {
    env: cleanEnv(env), cwd, stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '', err = '', rss = 0;
  child.stdout.setEncoding('utf8').on('data', (d) => (out += d));
  child.stderr.setEncoding('utf8').on('data', (d) => (err += d));
  const watch = setInterval(() => (rss = Math.max(rss, peak(child.pid))), 5);
  const [code] = await once(child, 'close');
  clearInterval(watch);
  return { code, out, err, ms: performance.now() - start, peak: rss };
}

/** Call the one tool of the evil server. */
export const callEvil = (how, { program = bin, timeout = 20 } = {}) =>
  run(program, [
    'call', '--timeout', String(timeout), '--command', `${quote(evil)} ${how}`, 't',
  ]);

/** Processes of this checkout alive whose command line has the text in it. */
export function alive(text) {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      const words = line.split('\0').slice(0, 2).join(' ');
      return words.includes(text) && words.includes(top);
    } catch {
      return false;
    }
  });
}
