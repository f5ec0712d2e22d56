// Many clients of both eras through one shared server of either era: nobody
// sees another's progress, log messages, questions or results. The clients are
// a program of ours (crowd_driver.c), so that there can be many calls: 8,000
// in the debug build, 100,000 in the release build with MO_LONG=1 (make long),
// or MO_CALLS.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const top = fileURLToPath(new URL('../..', import.meta.url));
const long = process.env.MO_LONG === '1';
const CALLS = Number(process.env.MO_CALLS ?? (long ? 100_000 : 8_000));
const [CLIENTS, DEPTH] = [8, 4];

if (long) process.env.MO_BIN = join(top, 'build-bench/src/app/mcp-orchestrator');
const { Place, fixture: built } = await import('../lib/gateway.mjs');
const fixture = long ? join(top, 'build-bench/bench/mcp_fixture') : built;
const driver = long
  ? join(top, 'build-bench/bench/crowd_driver')
  : join(top, 'build-asan/tests/it/crowd_driver');
const quick = { ASAN_OPTIONS: 'detect_leaks=0' };

/** The fixture over HTTP: its address. */
async function listening(t) {
  const child = spawn(fixture, ['--http', '0'], {
    env: { ...process.env, ...quick }, stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(async () => {
    child.kill();
    if (child.exitCode === null) await once(child, 'exit');
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return line.replace('127.0.0.1', 'localhost');
}

/** Play the crowd against a server of that kind: what the driver counted. */
async function crowd(t, era, transport, calls, how) {
  const server = transport === 'http'
    ? { url: await listening(t) }
    : { command: fixture, env: quick };
  const place = new Place({ fixture: server });
  t.after(() => place.close());
  if (era === 'legacy') place.legacy(server);
  const serve = await place.serve();
  let ended;
  t.after(() => ended ?? serve.stop());
  const { stdout } = await promisify(execFile)(
    driver, [String(serve.url), CLIENTS, calls, DEPTH, how].map(String),
    { env: { ...process.env, ...quick } },
  );
  ended = serve.stop();
  const { code, log } = await ended;
  assert.equal(code, 0, log);
  assert.doesNotMatch(log, /runtime error|Sanitizer/);
  t.diagnostic(stdout.trim());
  return JSON.parse(stdout);
}

const asking = (calls) => Math.ceil(calls / 3);

// [era, transport, share of the calls, what the wire lets us demand]
const rows = [
  // Over HTTP all that is said comes with its call: nothing may be missing.
  ['legacy', 'http', 0.3, 'strict'],
  ['modern', 'http', 0.3, 'strict'],
  // On a pipe a log message does not name its call: it may be missing.
  ['modern', 'stdio', 0.2, 'quiet'],
  // Nor does a legacy server's question: it may have been refused.
  ['legacy', 'stdio', 0.2, 'loose'],
];

for (const [era, transport, share, how] of rows) {
  test(`a ${era} server, ${transport}`, async (t) => {
    const calls = CALLS * share;
    const seen = await crowd(t, era, transport, calls, how);
    assert.equal(seen.calls, calls);
    assert.equal(seen.progress, 2 * calls);
    // A question that came too late for its call was asked, and refused.
    assert.ok(seen.asks + seen.refused >= asking(calls));
    if (how !== 'loose') assert.deepEqual([seen.asks, seen.refused], [asking(calls), 0]);
    if (transport === 'http') assert.equal(seen.logs, calls);
  });
}
