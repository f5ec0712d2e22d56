// A server that had two thousand sessions is as it was before: those that were
// ended and those that were left behind, some with a stream open, some with a
// call or a task under way.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const build =
  process.env.MO_BUILD ??
  fileURLToPath(new URL('../../build-asan', import.meta.url));
const fixture = join(build, 'tests/fixture/fixture');

const SESSIONS = 1000; // ended, and as many abandoned
const IDLE_MS = 2500;
const SLACK = 128 * 1024; // bytes that may differ from one round to the next

let server;
let url;
let agent;

before(async () => {
  server = spawn(fixture, ['--http', '0', '--idle', String(IDLE_MS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface({ input: server.stdout }), 'line');
  url = line;
  agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
});

after(async () => {
  agent.destroy();
  server.kill('SIGTERM');
  const [code] = await once(server, 'exit');
  assert.equal(code, 0, 'the fixture ended badly (leak?)');
});

/** One request; resolves with the answer before its body is read. */
function ask(method, headers, body, via = agent) {
  return new Promise((resolve, reject) => {
    const req = http.request(url, { method, headers, agent: via }, (res) =>
      resolve({ req, res }),
    );
    req.on('error', reject);
    req.end(body);
  });
}

async function read({ res }) {
  let text = '';
  for await (const piece of res.setEncoding('utf8')) text += piece;
  return text;
}

const both = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};
const rpc = (method, params, id = 1) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });

/** A new session's headers. */
async function initialize() {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: {}, sampling: {}, roots: {} },
    clientInfo: { name: 'it', version: '1' },
  };
  const got = await ask('POST', both, rpc('initialize', params));
  await read(got);
  const id = got.res.headers['mcp-session-id'];
  assert.ok(id);
  return { ...both, 'mcp-session-id': id };
}

async function call(headers, params) {
  return read(await ask('POST', headers, rpc('tools/call', params)));
}

async function stats() {
  const P = 'io.modelcontextprotocol/';
  const headers = {
    ...both,
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'stats',
  };
  const answer = await call(headers, {
    name: 'stats',
    arguments: {},
    _meta: {
      [`${P}protocolVersion`]: '2026-07-28',
      [`${P}clientCapabilities`]: {},
    },
  });
  return JSON.parse(JSON.parse(answer).result.content[0].text);
}

const fds = () => readdirSync(`/proc/${server.pid}/fd`).length;

async function until(ready, what) {
  for (const end = Date.now() + 60000; !(await ready()); ) {
    assert.ok(Date.now() < end, `never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Leave one behind: every tenth in the middle of something. */
async function abandon(i, open) {
  const headers = await initialize();
  if (i % 10 === 1) {
    const own = new http.Agent();
    open.push(await ask('GET', headers, undefined, own)); // a stream
    await call(headers, { name: 'test_trigger_tool_change', arguments: {} });
  } else if (i % 10 === 2) {
    const own = new http.Agent();
    const never = rpc('tools/call', { name: 'never', arguments: {} });
    open.push(await ask('POST', headers, never, own)); // a call
  } else if (i % 10 === 3) {
    await call(headers, { name: 'never', arguments: {}, task: {} });
  } else {
    await call(headers, { name: 'echo', arguments: { message: 'x' } });
  }
}

/** End one, if it is still there: a slow machine may have been first. */
async function end(headers) {
  const got = await ask('DELETE', headers);
  await read(got);
  assert.ok([204, 404].includes(got.res.statusCode));
}

/** Fill it, look how much that is, and wait until it is over. */
async function round() {
  const open = [];
  const kept = [];
  const some = async (first) => {
    for (let i = first; i < SESSIONS; i += 8) {
      const headers = await initialize();
      await call(headers, { name: 'echo', arguments: { message: 'x' } });
      kept.push(headers);
      await abandon(i, open);
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, first) => some(first)));
  assert.ok(open.length >= SESSIONS / 10);
  for (const { req, res } of open) {
    res.on('error', () => {});
    req.destroy();
  }
  const full = await stats();
  for (const headers of kept) await end(headers);
  await until(async () => (await stats()).sessions === 0, 'no session left');
  agent.destroy();
  await until(async () => (await stats()).connections === 1, 'one connection');
  return { full, now: await stats(), fds: fds() };
}

test('two thousand sessions leave nothing behind', async (t) => {
  const idle = await stats();
  const first = fds();
  assert.equal(idle.sessions, 0);
  const warm = await round();
  const again = await round();
  for (const { full, now } of [warm, again]) {
    assert.ok(full.sessions > 0);
    assert.equal(now.sessions, 0);
    assert.equal(now.calls, idle.calls); // the one that asks
    assert.equal(now.listens, 0);
    assert.equal(now.replay, 0);
    assert.equal(now.tasks, 0);
  }
  assert.equal(warm.fds, first);
  assert.equal(again.fds, first);
  assert.ok(
    Math.abs(again.now.heap - warm.now.heap) <= SLACK,
    `${warm.now.heap} bytes after one round, ${again.now.heap} after two`,
  );
  // What stays is the table of ids, which does not shrink.
  assert.ok(warm.now.heap - idle.heap <= 2 * SLACK);
  t.diagnostic(
    `idle ${idle.heap}, full ${again.full.heap} (${again.full.sessions} ` +
      `sessions), after ${warm.now.heap} and ${again.now.heap} bytes`,
  );
});
