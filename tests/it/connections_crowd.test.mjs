// Many people with their own credentials at many servers, calling all at once:
// each server says whose token it saw, and no result, progress or log message
// may be of somebody else. 2,000 calls of 8 people at 4 servers in the debug
// build; MO_LONG=1 (make long): 100,000 of 50 people at 20 servers in the
// release build, or MO_CALLS.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const top = fileURLToPath(new URL('../..', import.meta.url));
const long = process.env.MO_LONG === '1';
if (long) process.env.MO_BIN = join(top, 'build-bench/src/app/mcp-orchestrator');
const { Server } = await import('./server.mjs');
const { named } = await import('../lib/mcp.mjs');
const { Whose, connect } = await import('../lib/whose.mjs');

const CALLS = Number(process.env.MO_CALLS ?? (long ? 100_000 : 2_000));
const [PEOPLE, SERVERS] = long ? [50, 20] : [8, 4];
const DEPTH = 2; // calls of one person at once
const agent = new http.Agent({ keepAlive: true, maxSockets: PEOPLE * (DEPTH + 1) });

/** A request with a kept connection: {status, headers, messages}. */
function post(port, headers, body) {
  return new Promise((ok, no) => {
    const rq = http.request({ agent, port, host: '127.0.0.1', path: '/mcp', method: 'POST',
      headers: { host: `localhost:${port}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers } }, (rs) => {
      let text = '';
      rs.setEncoding('utf8').on('data', (d) => (text += d)).on('end', () => {
        const sse = rs.headers['content-type']?.startsWith('text/event-stream');
        const messages = sse ? text.split('\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6)))
          : text ? [JSON.parse(text)] : [];
        ok({ status: rs.statusCode, headers: rs.headers, messages });
      });
    }).on('error', no);
    rq.end(JSON.stringify(body));
  });
}

test(`${CALLS} calls of ${PEOPLE} people at ${SERVERS} servers`, { timeout: 3_600_000 }, async (t) => {
  const whose = await new Whose(SERVERS).start();
  const dir = await mkdtemp(join(tmpdir(), 'mo-crowd-'));
  const names = Array.from({ length: PEOPLE }, (_, i) => `p${i}`);
  const tokens = Object.fromEntries(names.map((n) => [n, `${n}-0123456789abcdef0123`]));
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: whose.config({ era: 'legacy' }), gateway: { prefix: 'always' }, approvals: { default: 'allow' },
    server: { token: 'op-0123456789abcdef012345', tokens },
  }));
  const server = await Server.start([], { dir, auth: true, env: { ...named(dir), MCP_ORCHESTRATOR_LOG_LEVEL: 'warn' } });
  t.after(async () => {
    agent.destroy();
    server.child.kill('SIGTERM');
    assert.equal((await server.exit).code, 0, server.log.slice(-4000));
    assert.doesNotMatch(server.log, /runtime error|Sanitizer/);
    await whose.stop();
    await rm(dir, { recursive: true, force: true });
  });
  const as = (n) => ({ authorization: `Bearer ${tokens[n]}` });
  const began = Date.now();
  for (const s of whose.servers)
    await Promise.all(names.map(async (n) => {
      const got = await connect(server.url, as(n), s.name, n);
      assert.equal(got.status, 200, JSON.stringify(got));
    }));
  const joined = Date.now();
  const people = await Promise.all(names.map(async (n) => {
    const hello = await post(server.port, as(n), { jsonrpc: '2.0', id: 0, method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: n, version: '1' } } });
    const headers = { ...as(n), 'mcp-session-id': hello.headers['mcp-session-id'] };
    await post(server.port, headers, { jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'debug' } });
    await post(server.port, headers, { jsonrpc: '2.0', id: 2, method: 'tools/list' });
    return { n, headers };
  }));
  const count = { results: 0, events: 0, others: 0, errors: 0 };
  const wrong = [];
  let next = 0;
  const check = (n, text, what) => {
    if (JSON.parse(text).user === n) return;
    count.others++;
    wrong.push(`${n} got ${what} ${text}`);
  };
  const worker = async ({ n, headers }) => {
    for (let i = next++; i < CALLS; i = next++) {
      const s = `s${(i * 7 + Number(n.slice(1))) % SERVERS}`;
      const name = `${s}_${i % 5 ? 'whoami' : 'chatty'}`;
      const { messages } = await post(server.port, headers, { jsonrpc: '2.0', id: i + 10, method: 'tools/call',
        params: { name, arguments: { n: i }, _meta: { progressToken: `t${i}` } } });
      for (const m of messages) {
        if (m.method === 'notifications/progress') check(n, m.params.message, 'progress');
        else if (m.method === 'notifications/message') check(n, JSON.stringify(m.params.data), 'log');
        if (m.method) count.events++;
        if (m.id !== i + 10) continue;
        const text = m.result?.content?.[0].text;
        if (!text || m.result.isError) {
          count.errors++;
          wrong.push(`${n} ${name}: ${JSON.stringify(m).slice(0, 300)}`);
          continue;
        }
        count.results++;
        check(n, text, 'result');
        assert.equal(JSON.parse(text).n, i);
        assert.equal(JSON.parse(text).server, s);
      }
    }
  };
  const from = Date.now();
  await Promise.all(people.flatMap((p) => Array.from({ length: DEPTH }, () => worker(p))));
  const seconds = (Date.now() - from) / 1000;
  t.diagnostic(`${PEOPLE * SERVERS} sign-ins in ${(joined - began) / 1000} s; ${CALLS} calls in ${seconds} s; ${JSON.stringify(count)}; servers: ${JSON.stringify(whose.seen)}; ${Math.round(await server.rss() / 1048576)} MiB`);
  assert.deepEqual(wrong.slice(0, 5), []);
  assert.deepEqual(whose.wrong.slice(0, 5), []);
  assert.equal(count.results, CALLS);
  assert.equal(count.others, 0);
  assert.equal(whose.seen.calls, CALLS);
  assert.ok(count.events >= CALLS / 5);
});
