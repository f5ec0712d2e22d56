// Decisions of people for all sessions hold at every server of a store, whatever
// directory it has: remembered rules, and tools as first seen.
import assert from 'node:assert/strict';
import { readFile, writeFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { client1 } from '../lib/mcp_talk.mjs';
import { missing as skip } from '../lib/redis.mjs';
import { Replicas } from './replicas_kit.mjs';
import { until } from './server.mjs';

const env = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };
const SERVER = `
  import { readFileSync } from 'node:fs';
  import { createInterface } from 'node:readline';
  const description = readFileSync(process.argv[2], 'utf8');
  const tell = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
  createInterface({ input: process.stdin }).on('line', (l) => {
    const { id, method } = JSON.parse(l);
    if (method === 'initialize')
      tell({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } } });
    else if (method === 'tools/list')
      tell({ id, result: { tools: [{ name: 'work', description, inputSchema: { type: 'object' } }] } });
    else if (method === 'tools/call') tell({ id, result: { content: [{ type: 'text', text: 'ran' }] } });
    else if (id !== undefined) tell({ id, error: { code: -32601, message: 'no' } });
  });`;

let all, dir;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-rules-'));
  await writeFile(join(dir, 'server.mjs'), SERVER);
  await writeFile(join(dir, 'says'), 'harmless');
  all = await Replicas.start({ store: 'redis', far: true, env, config: {
    mcpServers: { it: { command: process.execPath, args: [join(dir, 'server.mjs'), join(dir, 'says')] } },
    gateway: { expose: 'all' },
  } });
});
after(async () => {
  for (const r of all?.v ?? []) {
    r.server.fresh.fds += 16; // servers stay open for the next
    r.server.fresh.children += 4;
  }
  try {
    await all?.stop();
  } finally {
    await rm(dir, { recursive: true });
  }
});

const api = async (n, path, method = 'GET', body) => {
  const answer = await fetch(`${all.v[n].server.url}${path}`, { method, body: body && JSON.stringify(body),
    headers: { connection: 'close', ...(body && { 'content-type': 'application/json' }) } });
  return { status: answer.status, body: await answer.json() };
};
const rules = async (n) => (await api(n, '/api/rules')).body.rules.map((r) => `${r.action} ${r.server} ${r.tool}`);
async function work(n) {
  const { client } = client1();
  await client.connect(new StreamableHTTPClientTransport(new URL(`${all.v[n].server.url}/mcp`)));
  try {
    const got = await client.callTool({ name: 'work', arguments: {} });
    return got.content[0].text;
  } finally {
    await client.close();
  }
}

test('a rule that is remembered at one server holds at the others', { skip }, async () => {
  assert.equal(await work(1), 'ran');
  assert.equal((await api(0, '/api/rules', 'POST', { server: 'it', tool: 'work', action: 'deny' })).status, 200);
  await until(async () => (await rules(1)).length, 'the rule');
  assert.deepEqual(await rules(1), ['deny it work']);
  assert.match(await work(1), /denied|not allowed|rule/);
});

test('a new server, in a new place, has it before it is ready', { skip }, async () => {
  await all.add();
  await until(async () => (await api(2, '/readyz')).status === 200, 'it is ready');
  assert.deepEqual(await rules(2), ['deny it work']);
});

test('removed at any of them, it is gone at all, and stays so', { skip }, async () => {
  const [{ id }] = (await api(1, '/api/rules')).body.rules;
  assert.equal((await api(1, '/api/rules/nobody', 'DELETE')).status, 404);
  assert.equal((await api(1, `/api/rules/${id}`, 'DELETE')).status, 200);
  for (const n of [0, 2]) await until(async () => !(await rules(n)).length, `it is gone at ${n}`);
  await all.v[0].signal('SIGKILL');
  await all.v[0].up();
  await until(async () => (await api(0, '/readyz')).status === 200, 'it is ready');
  assert.deepEqual([await rules(0), await rules(1)], [[], []]);
  assert.equal(await work(0), 'ran');
});

test('while the store is away nothing is removed, and it is said', { skip }, async () => {
  assert.equal((await api(0, '/api/rules', 'POST', { server: 'it', tool: 'other', action: 'deny' })).status, 200);
  await until(async () => (await rules(1)).length, 'the rule');
  const [{ id }] = (await api(1, '/api/rules')).body.rules;
  all.redis.child.kill('SIGSTOP');
  try {
    assert.equal((await api(1, `/api/rules/${id}`, 'DELETE')).status, 503);
    assert.equal((await rules(1)).length, 1);
  } finally {
    all.redis.child.kill('SIGCONT');
  }
  // It may have been written in the end: then it goes, else it is asked for again.
  await until(async () => [200, 404].includes((await api(1, `/api/rules/${id}`, 'DELETE')).status), 'it can be removed', 30_000);
  for (const n of [0, 1]) await until(async () => !(await rules(n)).length, `it is gone at ${n}`);
});

test('a tool that one server has seen must be the same at the others', { skip }, async () => {
  const pins = (n) => readFile(join(all.dirs[n], '.local/state/mcp-orchestrator/pins.json'), 'utf8').catch(() => '');
  assert.equal(await work(0), 'ran');
  await until(async () => (await pins(2)).includes('harmless'), 'the pin');
  await writeFile(join(dir, 'says'), 'deletes everything');
  assert.match(await work(2), /changed this tool/);
  const [changed] = (await api(2, '/api/approvals')).body.changed;
  assert.deepEqual([changed.tool, changed.before.description], ['work', 'harmless']);
  assert.equal((await api(2, '/api/approvals/tools', 'POST', { server: 'it', tool: 'work', digest: changed.digest })).status, 200);
  assert.equal(await work(2), 'ran');
  await until(async () => (await pins(0)).includes('deletes everything'), 'what was accepted');
  await all.v[0].signal('SIGTERM');
  await all.v[0].up();
  // The list that it remembers is read anew when the MCP server starts.
  await until(async () => (await work(0)) === 'ran', 'as it is now');
});
