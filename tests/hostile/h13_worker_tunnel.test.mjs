// H13: a websocket of a client whose session another worker has is passed on as
// bytes. Somebody who may little asks for such a connection to a session that does
// not exist, and goes on to speak HTTP on it: the next worker must not take that
// for a request of the server itself.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Server, until } from '../it/server.mjs';

const TOKENS = { alice: 'alice-0123456789abcdefgh', bob: 'bob-0123456789abcdefghij' };
const WORKERS = 2;
let dir, server;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-h13-'));
  const file = join(dir, 'mcp-orchestrator.json');
  await writeFile(file, JSON.stringify({
    llm: { provider: 'demo' }, sandbox: { warm: 0 },
    server: { tokens: TOKENS }, people: { roles: { viewer: ['alice'], operator: ['bob'] } },
  }));
  server = await Server.start(['--workers', String(WORKERS), '--config', file], {
    dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
});
after(async () => {
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

const head = (lines) => `${lines.join('\r\n')}\r\n\r\n`;
const host = () => `Host: localhost:${server.port}`;
const upgrade = (sid) => head([`GET /socket.io/?EIO=4&transport=polling&sid=${sid} HTTP/1.1`, host(),
  `Authorization: Bearer ${TOKENS.alice}`, 'Connection: Upgrade', 'Upgrade: x']);
const ask = (more = []) => head(['GET /api/approvals HTTP/1.1', host(), ...more]);
const statuses = (text) => [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map((m) => Number(m[1]));

/** The statuses that come back for the pieces, each sent when the one before is
 *  answered. */
async function talk(pieces) {
  const socket = connect(server.port, '127.0.0.1');
  let text = '', isClosed = false;
  socket.on('data', (d) => (text += d));
  socket.on('error', () => {});
  socket.on('close', () => (isClosed = true));
  for (const [i, piece] of pieces.entries()) {
    socket.write(piece);
    await until(() => isClosed || statuses(text).length > i, `an answer to piece ${i}`);
  }
  socket.end();
  await until(() => isClosed, 'the end');
  return statuses(text);
}

test('alice may not see the calls that wait, bob may', async () => {
  const status = async (who) => (await fetch(`${server.url}/api/approvals`, { headers: { authorization: `Bearer ${TOKENS[who]}` } })).status;
  assert.deepEqual([await status('alice'), await status('bob')], [403, 200]);
});

// The first letter of a session's id names its worker, from 0; either worker may take the
// connection.
const WAYS = {
  'after the refusal': (sid) => [upgrade(sid), ask()],
  'in one piece': (sid) => [upgrade(sid) + ask()],
  'as somebody else': (sid) => [upgrade(sid), ask(['X-Forwarded-For: 127.0.0.1'])],
};
for (const [how, pieces] of Object.entries(WAYS))
  test(`another request on the connection, ${how}`, async () => {
    for (const letter of '012')
      for (let i = 0; i < 2 * WORKERS; i++) {
        const [first, ...more] = await talk(pieces(`${letter}x`));
        assert.equal(first, 400, letter);
        assert.ok(more.every((s) => s === 401), `${letter}: ${more}`);
      }
  });
