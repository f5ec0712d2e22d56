// files.bench.mjs - a file of 200 MB up and down: the time it takes, and how much
// the server grows. Its bytes pass through the server in parts.
import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import WebSocket from 'ws';

import { program, say } from './kit.mjs';

const { noNative } = await import('../tests/lib/sessions.mjs');
const SIZE = 200e6, PART = 1e6, GOAL_MIB = 4;
const peak = (pid) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
const forgetPeak = (pid) => writeFileSync(`/proc/${pid}/clear_refs`, '5');

async function serve(dir) {
  writeFileSync(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    llm: { provider: 'demo' }, sandbox: { driver: 'native', warm: 0, workspaceMb: 512, memoryMb: 1024 } }));
  const child = spawn(program, ['serve', '--no-auth', '--port', '0'], {
    cwd: dir, stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: process.env.PATH, HOME: dir } });
  process.on('exit', () => child.kill('SIGKILL'));
  for await (const line of createInterface({ input: child.stdout })) {
    const port = Number(/is ready: https?:\/\/[^:]+:(\d+)\//.exec(line)?.[1] ?? 0);
    if (port) return { child, url: `http://127.0.0.1:${port}` };
  }
  throw new Error('it did not start');
}

/** Opens a session, so that it exists. */
async function open(url, id) {
  const ws = new WebSocket(`${url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket&sessionId=${id}`);
  await once(ws, 'open');
  ws.send('40');
  await new Promise((ok) => ws.on('message', (data) => String(data).startsWith('42["session:history"') && ok()));
  return ws;
}

async function measured(pid, what, act) {
  forgetPeak(pid);
  const before = peak(pid), began = Date.now();
  await act();
  const ms = Date.now() - began, grown = peak(pid) - before;
  say(`files, ${what} of ${SIZE / 1e6} MB: ${ms} ms (${(SIZE / 1e3 / ms).toFixed(0)} MB/s), ` +
    `the server grew by ${grown.toFixed(1)} MiB (goal <= ${GOAL_MIB})`);
}

if (noNative) {
  say(`  needs ${noNative}`);
} else {
  const dir = mkdtempSync(join(tmpdir(), 'mo-bench-files-'));
  const { child, url } = await serve(dir);
  const ws = await open(url, 'files');
  const at = (path) => `${url}/api/sessions/files/files/content?path=${path}`;
  const part = Buffer.alloc(PART, 'x'), sent = createHash('sha256'), got = createHash('sha256');
  async function* parts() {
    for (let i = 0; i < SIZE / PART; i++) {
      part.writeUInt32LE(i);
      sent.update(part);
      yield Uint8Array.from(part);
    }
  }
  await fetch(at('warm'), { method: 'PUT', body: part });
  await (await fetch(at('warm'))).arrayBuffer();
  await measured(child.pid, 'upload', async () => {
    const r = await fetch(at('big'), { method: 'PUT', duplex: 'half', body: ReadableStream.from(parts()) });
    if (r.status !== 201) throw new Error(await r.text());
  });
  await measured(child.pid, 'download', async () => {
    for await (const piece of (await fetch(at('big'))).body) got.update(piece);
  });
  if (sent.digest('hex') !== got.digest('hex')) throw new Error('the bytes differ');
  ws.close();
  await fetch(`${url}/api/sessions/files?forget=true`, { method: 'DELETE' });
  child.kill('SIGTERM');
  await once(child, 'exit');
  rmSync(dir, { recursive: true });
}
