// G2: something runs and the audit log does not know. A server was tested
// before its row was written, and a call had its row after it had run.
// Fails on 953b0b1e: the test of a server left no row, and a call that ran when
// the program was killed was not in the log after the restart.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, linkSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { bin, cleanEnv } from '../lib/mcp.mjs';
import { until } from '../it/server.mjs';
import { House } from '../it/talk_kit.mjs';

const run = promisify(execFile);

// A server that notes when it was started, and never answers a call.
const SERVER = `
  const fs = require('node:fs');
  fs.writeFileSync(process.argv[1], String(Date.now()));
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line);
    const say = (result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
    if (method === 'initialize')
      say({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } });
    else if (method === 'tools/list') say({ tools: [{ name: process.argv[2], inputSchema: { type: 'object' } }] });
    else if (method === 'ping') say({});
    else if (method === 'tools/call') fs.writeFileSync(process.argv[1] + '.acted', '');
    else if (id !== undefined)
      process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }) + '\\n');
  });`;

const proof = join(tmpdir(), `mo-g2-${process.pid}`);
let house, dir, state;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-g2-'));
  house = await House.start({
    config: { mcpServers: { actor: { command: process.execPath, args: ['-e', SERVER, join(dir, 'actor'), 'act'] } } },
  });
  state = join(house.dir, '.local/state/mcp-orchestrator');
});
after(async () => {
  house.server.signal('SIGKILL');
  await house.model.close();
  await rm(house.dir, { recursive: true, force: true });
  await rm(dir, { recursive: true, force: true });
  await rm(proof, { force: true });
});

function rows() {
  const file = join(state, 'audit.jsonl');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return text.split('\n').slice(0, -1).map((l) => JSON.parse(l));
}
const draft = (name) => ({ name, command: process.execPath, args: ['-e', SERVER, proof, 'other'] });
async function post(path, body) {
  const r = await fetch(`${house.server.url}${path}`, {
    method: 'POST', headers: { 'content-type': 'application/json', connection: 'close' }, body: body && JSON.stringify(body),
  });
  return { status: r.status, body: await r.json() };
}

/** The answer of the tool `act` to a client of /mcp. */
async function callActor(a) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const ask = (body, more) => fetch(`${house.server.url}/mcp`, {
    method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify({ jsonrpc: '2.0', ...body }),
  });
  const hello = await ask({ id: 1, method: 'initialize', params: {
    protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'it', version: '1' } } });
  const session = hello.headers.get('mcp-session-id');
  await hello.text();
  const answer = await ask({ id: 2, method: 'tools/call', params: { name: 'act', arguments: { a } } },
    session && { 'mcp-session-id': session });
  return answer.text();
}

for (const [what, path, body, server] of [
  ['a dry run of a new server', '/api/mcp?test=true&dryRun=true', draft('dry'), 'dry'],
  ['a new server', '/api/mcp?test=true', draft('new'), 'new'],
  ['a configured one', '/api/mcp/new/test', undefined, 'new'],
])
  test(`${what} is tested after its row is on disk`, async () => {
    await rm(proof, { force: true });
    const before = rows().length;
    const { status, body: said } = await post(path, body);
    assert.ok(status === 200 || status === 201, JSON.stringify(said));
    const row = rows().slice(before).find((r) => r.what?.managed === 'test');
    assert.ok(row, 'there is a row');
    assert.equal(row.what.server, server);
    assert.ok(row.what.who);
    assert.ok(Date.parse(row.at) <= Number(readFileSync(proof, 'utf8')), 'before the process began');
  });

test('the commands, too', async () => {
  await rm(proof, { force: true });
  const before = rows().length;
  await run(bin, ['mcp', 'test', 'new', '--config', join(house.dir, 'mcp-orchestrator.json')], {
    cwd: house.dir, env: cleanEnv({ HOME: house.dir, MCP_ORCHESTRATOR_STATE_DIR: state }),
  });
  const row = rows().slice(before).find((r) => r.what?.managed === 'test' && r.what.by === 'command');
  assert.equal(row?.what.server, 'new');
  assert.ok(Date.parse(row.at) <= Number(readFileSync(proof, 'utf8')));
});

test('a log that cannot be written: nothing is started, added or called', async () => {
  const file = join(state, 'audit.jsonl');
  await rm(proof, { force: true });
  // At no time is there no such file: it would be created, and lost afterwards.
  linkSync(file, `${file}.away`);
  symlinkSync(state, `${file}.link`);
  renameSync(`${file}.link`, file);
  try {
    for (const path of ['/api/mcp?test=true&dryRun=true', '/api/mcp?test=true', '/api/mcp']) {
      const { status, body } = await post(path, draft('never'));
      assert.ok(status >= 500, `${path}: ${status}`);
      assert.match(JSON.stringify(body), /audit log cannot be written/);
    }
    assert.ok(!existsSync(proof), 'no process began');
    const config = JSON.parse(readFileSync(join(house.dir, 'mcp-orchestrator.json'), 'utf8'));
    assert.equal(config.mcpServers.never, undefined);
    await assert.rejects(run(bin, ['mcp', 'test', 'new', '--config', join(house.dir, 'mcp-orchestrator.json')], {
      cwd: house.dir, env: cleanEnv({ HOME: house.dir, MCP_ORCHESTRATOR_STATE_DIR: state }),
    }));
    assert.ok(!existsSync(proof), 'nor by a command');
    assert.match(await callActor(1), /audit log cannot be written, so the call was not run/);
    assert.ok(!existsSync(join(dir, 'actor.acted')), 'the call did not leave');
  } finally {
    renameSync(`${file}.away`, file);
  }
});

test('a call that runs when we are killed is in the log', async () => {
  const acted = join(dir, 'actor.acted');
  // Each worker finds out with its next row; which one answers is the kernel's choice.
  for (let n = house.server.hasWorkers ? 12 : 1; n > 0; n--)
    assert.equal((await post('/api/mcp/new/test')).status, 200, 'the log can be written again');
  callActor(2).catch(() => {}); // it never answers
  await until(() => existsSync(acted), 'the call');
  await house.kill();
  writeFileSync(acted, ''); // it had an effect
  await house.up();
  const digest = createHash('sha256').update('{"a":2}').digest('hex');
  const all = () => rows().filter((r) => r.what?.argsDigest === digest).map((r) => [r.what.tool, r.what.outcome]);
  await until(() => all().length > 0, 'its row');
  assert.deepEqual(all(), [['act', 'unknown']]);
  const verify = await (await fetch(`${house.server.url}/api/audit/verify`)).json();
  assert.equal(verify.ok, true, JSON.stringify(verify));
});
