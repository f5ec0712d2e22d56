// The server under a service manager: socket activation and notifications.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const bin = process.env.MO_BIN ??
  fileURLToPath(new URL('../../build-asan/src/app/mcp-orchestrator', import.meta.url));
const starter = fileURLToPath(new URL('start_service.py', import.meta.url));

let dir;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-service-'));
  await writeFile(join(dir, 'c.json'), '{}', { mode: 0o600 });
});
after(() => rm(dir, { recursive: true }));

/** Starts `serve` with a passed socket: {port, note(), signal(), end()}. */
async function start(host, args, env = []) {
  const child = spawn('python3', [starter, host, '0', ...env, '--', bin, 'serve',
    '--config', join(dir, 'c.json'), '--sandbox', 'none', ...args], {
    env: { PATH: process.env.PATH, HOME: dir, ASAN_OPTIONS: 'detect_leaks=0',
      MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let err = '';
  child.stderr.on('data', (d) => (err += d));
  const exit = once(child, 'exit').then(([code]) => ({ code, err }));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (wanted) => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`ended: ${err}`);
      const m = wanted.exec(value);
      if (m) return m;
    }
  };
  const port = Number((await next(/^port (\d+)$/))[1]);
  return {
    port,
    note: async () => JSON.parse((await next(/^".*"$/))[0]).split('\n'),
    signal: (name) => child.kill(name),
    end: () => exit,
  };
}

const get = (port, path) => fetch(`http://127.0.0.1:${port}${path}`);

for (const workers of [1, 2])
  test(`serves the socket that was passed, with ${workers} worker(s)`, async () => {
    const s = await start('127.0.0.1', ['--port', '@PORT@', '--workers', `${workers}`]);
    // The kernel takes connections before the server runs: they wait.
    const early = connect(s.port, '127.0.0.1');
    early.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    const answer = once(early, 'data');
    assert.deepEqual(await s.note(), ['READY=1']);
    assert.match(String((await answer)[0]), /^HTTP\/1\.1 200 /);
    early.destroy();
    assert.equal((await get(s.port, '/healthz')).status, 200);
    s.signal('SIGHUP');
    const reloading = await s.note();
    assert.equal(reloading[0], 'RELOADING=1');
    assert.match(reloading[1], /^MONOTONIC_USEC=\d+$/);
    assert.deepEqual(await s.note(), ['READY=1']);
    s.signal('SIGTERM');
    const stopping = await s.note();
    assert.equal(stopping[0], 'STOPPING=1');
    assert.equal(stopping[1], 'EXTEND_TIMEOUT_USEC=40000000');
    const { code, err } = await s.end();
    assert.equal(code, 0, err);
  });

test('a socket at another address or port is refused', async () => {
  const elsewhere = await start('0.0.0.0', ['--port', '@PORT@']);
  const one = await elsewhere.end();
  assert.equal(one.code, 3, one.err);
  assert.match(one.err, /is not at server\.listen 127\.0\.0\.1/);
  const other = await start('127.0.0.1', ['--port', '1']);
  const two = await other.end();
  assert.equal(two.code, 3, two.err);
  assert.match(two.err, /server\.port 1: set both to the same/);
});

test('a socket of another process is not taken', async () => {
  const child = spawn(bin, ['serve', '--config', join(dir, 'c.json'), '--port', '0',
    '--sandbox', 'none'], {
    env: { PATH: process.env.PATH, HOME: dir, ASAN_OPTIONS: 'detect_leaks=0',
      MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state'), LISTEN_PID: '1', LISTEN_FDS: '1' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const port = /localhost:(\d+)/.exec(line)[1];
  assert.equal((await get(port, '/healthz')).status, 200);
  child.kill('SIGTERM');
  assert.equal((await once(child, 'exit'))[0], 0);
});
