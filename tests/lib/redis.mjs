// redis.mjs - a redis-server of our own in a directory of its own, and the
// store (store_driver) by the line.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

import { freePort } from './port.mjs';

const SERVER = '/usr/bin/redis-server';
export const missing = existsSync(SERVER) ? false : 'redis-server';
export const PATIENCE = 60_000;

const children = new Set();
const dirs = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
});

export function tempDir() {
  const dir = mkdtempSync(join(tmpdir(), 'mo-redis-'));
  dirs.add(dir);
  return dir;
}

// Until it is true, or fail by name.
export async function until(what, check) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const got = await check();
    if (got) return got;
    if (Date.now() > end) throw new Error(`waited too long until ${what}`);
    await sleep(20);
  }
}

export async function redis({ port, dir = tempDir(), args = [], cli = [] } = {}) {
  const server = { port: port ?? (await freePort()), dir };
  server.cli = (...words) => {
    const r = spawnSync('redis-cli', ['-p', String(server.port), ...cli, ...words], {
      encoding: 'utf8',
    });
    return r.stdout.trim();
  };
  server.start = async () => {
    server.child = spawn(SERVER, ['--port', String(server.port), '--bind',
      '127.0.0.1', '--dir', dir, '--save', '', '--enable-debug-command', 'yes',
      ...args], { stdio: 'ignore' });
    children.add(server.child);
    await until('redis-server answers', () => /PONG|NOAUTH|LOADING/.test(server.cli('PING')));
  };
  server.kill = async (signal = 'SIGKILL') => {
    const gone = once(server.child, 'exit');
    server.child.kill(signal);
    await gone;
    children.delete(server.child);
  };
  server.stop = async () => {
    if (server.child.exitCode === null && server.child.signalCode === null) await server.kill();
    rmSync(dir, { recursive: true, force: true });
    dirs.delete(dir);
  };
  await server.start();
  return server;
}

// A way to a server of that port. delay: ms that its answers take longer;
// lose(text): the connection breaks when the next command with that text was
// answered, in place of the answer.
export async function between(t, port, { delay = 0 } = {}) {
  const way = { lost: 0, lose: (text) => { way.text = text; } };
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    let broken = false;
    near.on('data', (bytes) => {
      if (way.text && bytes.includes(way.text)) {
        way.text = undefined;
        broken = true;
      }
      far.write(bytes);
    });
    far.on('data', async (bytes) => {
      if (delay) await sleep(delay);
      if (broken) way.lost += near.destroyed ? 0 : 1;
      if (broken) near.destroy();
      else near.write(bytes);
    });
    for (const [one, other] of [[near, far], [far, near]]) {
      one.on('error', () => {});
      one.on('close', () => other.destroy());
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  way.port = server.address().port;
  t.after(() => server.close());
  return way;
}

// ask('entry', 's', 'doc') -> {ok, word, rest}. The search for leaks at its end
// takes seconds: only who asks for it gets it.
export async function store(url, { deadline = 4000, ca, leaks = false, replicas, env = {} } = {}) {
  const child = spawn(`${process.env.MO_BUILD}/tests/it/store_driver`,
    [url, String(deadline), ...(ca || replicas ? [ca ?? ''] : []), ...(replicas ? [String(replicas)] : [])], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...(leaks ? {} : { ASAN_OPTIONS: 'detect_leaks=0' }), ...env },
    });
  children.add(child);
  const waiting = new Map();
  const lost = [];
  let tag = 0;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [first, word, ...rest] = line.split(' ');
    if (first === 'lost') lost.push(word);
    else waiting.get(first)?.({ ok: word === 'ok', word, rest: rest.join(' ') });
    waiting.delete(first);
  });
  const opened = await new Promise((done) => waiting.set('open', done));
  return {
    opened,
    lost,
    child,
    pid: child.pid,
    ask(...words) {
      const id = String(++tag);
      const answer = new Promise((done) => waiting.set(id, done));
      child.stdin.write(`${id} ${words.join(' ')}\n`);
      return answer;
    },
    async close() {
      const gone = child.exitCode === null ? once(child, 'exit') : [child.exitCode];
      child.stdin.end();
      const [code] = await gone;
      children.delete(child);
      return code;
    },
  };
}
