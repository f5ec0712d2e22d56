// What the tests of budgets share: servers with limits and a server behind them
// that writes down each call it runs, and clients by hand.
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { script } from './gateway.mjs';
import { redis } from './redis.mjs';
import { Server } from '../it/server.mjs';

const QUICK = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };
export const TOKENS = { ann: 'ann-0123456789abcdef0123', bob: 'bob-0123456789abcdef0123' };
export const OPERATOR = 'op-0123456789abcdef012345';
export const as = (who) => ({ authorization: `Bearer ${TOKENS[who] ?? OPERATOR}` });

/** n servers with the same configuration and, with `shared`, the same Redis. */
export async function place(t, config, { n = 1, shared, house, oneProcess, env: more } = {}) {
  const store = shared ? await redis() : null;
  const dirs = [], servers = [];
  t.after(async () => {
    for (const s of servers) if (!s.ended) s.child.kill('SIGKILL');
    for (const s of servers) await s.exit;
    await store?.stop();
    for (const d of dirs) await rm(d, { recursive: true, force: true, maxRetries: 10 });
  });
  const up = async (dir, env = {}) => {
    const s = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')],
      { dir, auth: true, house: house || shared, oneProcess, env: { ...QUICK, ...env, MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
    s.dir = dir;
    s.env = env;
    servers.push(s);
    return s;
  };
  for (let i = 0; i < n; i++) {
    const dir = await mkdtemp(join(tmpdir(), 'mo-budget-'));
    dirs.push(dir);
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      llm: { provider: 'demo' },
      sandbox: { driver: 'native', warm: 0 },
      server: { token: OPERATOR, tokens: TOKENS },
      approvals: { default: 'allow', rules: [] },
      ...config,
      mcpServers: Object.fromEntries(Object.entries(config.mcpServers ?? { work: {} }).map(([name, more]) =>
        [name, more.command ? more : { ...script('moody.mjs', name, join(dir, `${name}.mood`), join(dir, `${name}.log`)), ...more }])),
      ...(store && { store: { url: `redis://127.0.0.1:${store.port}` } }),
    }));
    await up(dir, more);
  }
  return { servers, store, again: (s) => up(s.dir, s.env) };
}
/** Calls that a server of the tests has really run. */
export const ran = (s, name = 'work') => {
  const file = join(s.dir, `${name}.log`);
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter((l) => /work|look|set/.test(l)).length : 0;
};

/** A client in a session of its own. */
export async function client(server, who, path = '/mcp', { headers: extra = {}, name = 'it', version = '2025-06-18' } = {}) {
  const send = async (body, headers = {}) => {
    const r = await fetch(server.url + path, {
      method: 'POST', body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...as(who), ...extra, ...headers },
    });
    const text = await r.text();
    const data = text.startsWith('event:') || text.startsWith('data:') || text.startsWith('id:')
      ? text.split('\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6))).at(-1)
      : text ? JSON.parse(text) : null;
    return { status: r.status, headers: r.headers, body: data };
  };
  const hello = await send({ jsonrpc: '2.0', id: 0, method: 'initialize', params: {
    protocolVersion: version, capabilities: {}, clientInfo: { name, version: '1' } } });
  const session = { 'mcp-session-id': hello.headers.get('mcp-session-id') };
  await send({ jsonrpc: '2.0', method: 'notifications/initialized' }, session);
  let id = 0;
  return {
    session, send: (body) => send(body, session),
    ask: async (method, params) => (await send({ jsonrpc: '2.0', id: ++id, method, params }, session)).body,
    call: async (name = 'work', args = {}) =>
      (await send({ jsonrpc: '2.0', id: ++id, method: 'tools/call', params: { name, arguments: args } }, session)).body,
  };
}
export const over = (answer) => answer.result?.isError === true && /limit of/.test(answer.result.content[0].text);
// Rows are written in groups, after the answer: wait for yours.
export function rows(s) {
  const file = join(s.dir, 'state/audit.jsonl');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return text.split('\n').slice(0, -1).map((l) => JSON.parse(l).what);
}
