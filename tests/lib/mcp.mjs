// What the tests of the MCP client share: the real program, started with one
// server behind it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
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
const peakProgram = join(build, 'tests/it/peak');

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

// What the programs keep between runs; each test file begins with nothing.
export const state = mkdtempSync(join(tmpdir(), 'mo-state-'));
process.on('exit', () => rmSync(state, { recursive: true, force: true }));

// The leak check takes seconds per program; the unit tests have it for the
// same code.
export const cleanEnv = (more = {}) => ({
  PATH: process.env.PATH,
  HOME: '/tmp',
  MCP_ORCHESTRATOR_STATE_DIR: state,
  ASAN_OPTIONS: 'detect_leaks=0',
  UBSAN_OPTIONS: process.env.UBSAN_OPTIONS ?? '',
  ...more,
});

/** Names the configuration of a directory: without that, it would have to be
 *  confirmed first. */
export function named(dir) {
  const file = join(dir, 'mcp-orchestrator.json');
  return existsSync(file) ? { MCP_ORCHESTRATOR_CONFIG: file } : {};
}

/** Run to the end: {code, out, err, ms}. */
export async function run(program, args, { env = {}, cwd = '/tmp' } = {}) {
  const start = performance.now();
  const child = spawn(program, args, {
    env: cleanEnv({ ...named(cwd), ...env }), cwd, stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '', err = '';
  child.stdout.setEncoding('utf8').on('data', (d) => (out += d));
  child.stderr.setEncoding('utf8').on('data', (d) => (err += d));
  const [code] = await once(child, 'close');
  return { code, out, err, ms: performance.now() - start };
}

/** The same, and `peak`: the most resident memory it had, in KiB. */
export async function runPeak(program, args, how = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'mo-peak-'));
  try {
    const file = join(dir, 'kib');
    const result = await run(peakProgram, [file, program, ...args], how);
    return { ...result, peak: Number(readFileSync(file, 'utf8')) };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Call the one tool of the evil server. */
export const callEvil = (how, { program = bin, timeout = 20 } = {}) =>
  runPeak(program, [
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
