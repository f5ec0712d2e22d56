// G12: a client sends one big call while the operator keeps arguments in the
// audit log. To look for secrets in them must not stop the server for everybody
// else.
// Fails on 953b0b1e: at each byte the rest of the text was measured, and behind
// each secret it was moved. A call of 1 MiB took half a minute of CPU time, 16
// times as much as 16 calls with as many bytes.
//
// Compares CPU time of the same process for the same number of bytes. The
// release build is measured: a sanitizer looks at the whole text for each search.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { fixtureServer } from '../lib/gateway.mjs';
import { BIN_RELEASE, MIB, Server, missing, until } from '../it/server.mjs';

const token = 'of-the-operator-0123456789abcdef';
const PARTS = 16;
const ENOUGH = 0.3; // s, many times the resolution of the clock
const ROUNDS = 100;
const skip = await missing(BIN_RELEASE);
let dir, state, server, session, calls = 0;

before(async () => {
  if (skip) return;
  dir = await mkdtemp(join(tmpdir(), 'mo-g12-'));
  state = join(dir, 'state');
  const file = join(dir, 'mcp-orchestrator.json');
  await writeFile(file, JSON.stringify({
    server: { token }, audit: { arguments: true, maxMb: 1024 }, mcpServers: { fixture: fixtureServer() },
    approvals: { rules: [{ tool: 'echo', action: 'deny', reason: 'its row is enough' }] },
  }));
  server = await Server.start(['--config', file], { bin: BIN_RELEASE, dir, house: true, auth: true,
    env: { MCP_ORCHESTRATOR_STATE_DIR: state } });
  await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'it', version: '1' } });
});
after(async () => {
  if (skip) return;
  if (server) {
    server.fresh.children += 4; // the fixture stays
    server.fresh.fds += 32;
    await server.stop();
  }
  await rm(dir, { recursive: true, force: true });
});

async function ask(method, params) {
  const r = await fetch(`${server.url}/mcp`, {
    method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: ++calls, method, params }),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json',
      accept: 'application/json, text/event-stream', ...(session && { 'mcp-session-id': session }) },
  });
  session ??= r.headers.get('mcp-session-id');
  return r.text();
}

/** CPU seconds of n calls with that many bytes of the text each. */
async function cost(n, bytes, text) {
  const before = await server.cpu();
  const message = text.repeat(bytes / text.length);
  for (let i = 0; i < n; i++)
    assert.match(await ask('tools/call', { name: 'echo', arguments: { message } }), /not allowed here/);
  return await server.cpu() - before;
}

for (const [what, text] of [['full of a secret', `${token},`], ['without a secret', 'harmless']])
  test(`a big call ${what} costs as much as small ones of that size`, { skip }, async () => {
    await cost(1, MIB, text);
    const shown = text.replace(token, '[secret]').repeat(MIB / text.length);
    const file = join(state, 'audit.jsonl');
    await until(() => existsSync(file) && readFileSync(file, 'utf8').includes(shown), 'its row');
    assert.ok(!readFileSync(file, 'utf8').includes(token));
    let one = 0, many = 0;
    for (let n = 0; many < ENOUGH && n < ROUNDS; n++) {
      many += await cost(PARTS, MIB / PARTS, text);
      one += await cost(1, MIB, text);
    }
    assert.ok(one < 4 * many, `${one.toFixed(2)} s in one call, ${many.toFixed(2)} s in ${PARTS}`);
  });
