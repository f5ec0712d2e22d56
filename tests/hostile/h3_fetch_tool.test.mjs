// H3: a tool that fetches what a model asks for, and a model that was told by a
// page to ask for us. The tool is a published one, @mcp-get-community/server-curl:
// any address, method, headers and body. As a plain server it gets 401 and no
// more; in a box it gets no connection.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { DOORS, GUESS, Target, attempts, forged } from '../lib/attack.mjs';
import { noNative } from '../lib/sessions.mjs';

const curl = fileURLToPath(new URL('../node_modules/@mcp-get-community/server-curl/dist/index.js', import.meta.url));
const skip = noNative ? `needs ${noNative}` : false;
let it, client;
before(async () => {
  it = await Target.start({
    mcpServers: {
      web: { command: process.execPath, args: [curl] },
      ...(!skip && { box: { command: 'mo-toolbox', sandbox: 'native', memoryMb: 64 } }),
    },
    approvals: { rules: [{ server: 'box', action: 'allow' }, { server: 'web', action: 'allow' }] },
  });
  client = new Client({ name: 'injected', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${it.url}/mcp`),
    { requestInit: { headers: { authorization: `Bearer ${it.token}` } } }));
});
after(async () => {
  await client?.close();
  await it?.remove();
});

/** One fetch by the tool: {status, text}; status 0: it had no answer. */
async function fetched(url, options = {}) {
  const r = await client.callTool({ name: 'curl', arguments: { url, ...options } })
    .catch((e) => ({ isError: true, content: [{ text: e.message }] }));
  const text = r.content[0].text;
  return { status: r.isError ? 0 : JSON.parse(text).status, text };
}

let asked = 0;
test('the tool works', async () => {
  assert.equal((await fetched(`${it.url}/healthz`)).status, 200);
});

test('it gets 401 from every address of ours, whatever it says', async () => {
  const headers = { ...forged(it.port), name: { host: `localhost:${it.port}` } };
  for (const [name, more] of Object.entries(headers))
    // each request with one set of headers, some with all
    for (const [method, path] of name === 'none' || name === 'token' ? DOORS : DOORS.slice(0, 6)) {
      const { status, text } = await fetched(`${it.url}${path}`, {
        method, headers: { 'content-type': 'application/json', ...more },
        ...(['POST', 'PATCH', 'PUT'].includes(method) && { body: it.body }),
      });
      asked++;
      assert.ok([401, 429].includes(status), `${name} ${method} ${path}: ${text}`);
      assert.ok(!text.includes(it.token));
    }
});

test('by other names and addresses of this machine as well', async () => {
  for (const host of ['127.0.0.1', '[::1]', '0.0.0.0', '127.1', '2130706433', 'localhost.']) {
    const { status, text } = await fetched(`http://${host}:${it.port}/api/sessions`);
    asked += status ? 1 : 0; // no connection: only 127.0.0.1 is served
    assert.ok([0, 401, 429].includes(status), `${host}: ${text}`);
  }
});

test('no link signs it in, no file comes by its address', async () => {
  assert.ok([401, 429].includes((await fetched(`${it.url}/?token=${GUESS}`)).status));
  asked++;
  for (const url of [`file://${it.state}/token`, `unix:${it.state}/run/`, `http+unix://${encodeURIComponent(`${it.state}/run`)}/link`,
    `data:text/plain,x@${it.state}/token`]) {
    const { text } = await fetched(url);
    assert.ok(!text.includes(it.token), url);
  }
});

test('in a box nothing of ours answers', { skip }, async (t) => {
  const heard = [];
  const outside = createServer((s) => heard.push(s.end('here\n'))).listen(0, '0.0.0.0');
  await once(outside, 'listening');
  t.after(() => outside.close());
  const hosts = ['127.0.0.1', '::1', 'localhost', ...Object.values(networkInterfaces()).flat().map((a) => a.address)];
  const ports = [it.port, outside.address().port];
  const tries = hosts.flatMap((h) => ports.map((p) =>
    `timeout 5 bash -c 'exec 3<>/dev/tcp/${h}/${p}; printf "GET /api/sessions HTTP/1.0\\r\\n\\r\\n" >&3; head -1 <&3' 2>/dev/null && echo got ${h} ${p}`));
  const files = ['token', 'audit.jsonl', 'run'].map((f) => `ls -d ${join(it.state, f)} 2>/dev/null && echo got ${f}`);
  const r = await client.callTool({ name: 'execute_command', arguments: { command: `${[...tries, ...files].join('; ')}; echo done` } }, undefined, { timeout: 60_000 });
  const text = r.content.map((c) => c.text).join('');
  assert.match(text, /done/);
  assert.doesNotMatch(text, /got|HTTP/);
  assert.equal(heard.length, 0);
});

test('every fetch is in the audit log', async () => {
  await client.close();
  const rows = await it.end();
  assert.equal(attempts(rows, { reason: 'token_required' }), asked);
  assert.ok(rows.length < 20, `${rows.length} rows`);
});
