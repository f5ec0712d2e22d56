// Published clients connect to the gateway and call tools of two servers through
// it, over HTTP and on stdio (make long).
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Place, published } from '../lib/gateway.mjs';
import { eventually } from '../lib/sessions.mjs';
import { clients, remote } from './clients/clients.mjs';

const place = new Place({});
const docs = join(place.dir, 'docs');
mkdirSync(docs);
writeFileSync(join(docs, 'a.txt'), 'in the file');
place.write({
  everything: published('server-everything'), files: published('server-filesystem', docs),
});

let serve;
before(async () => { serve = await place.serve(); });
after(async () => {
  const { code, log } = await serve.stop();
  place.close();
  console.log(`measured: ${Object.keys(clients).length + 1} clients`);
  assert.equal(code, 0, log);
  assert.doesNotMatch(log, /runtime error|Sanitizer/);
});

for (const [name, { open, only }] of Object.entries(clients))
  describe(name, () => {
    for (const how of ['http', 'stdio'].filter((h) => !only || h === only))
      test(how, async () => {
        const it = await open(how === 'http' ? { url: String(serve.url) } : place.command());
        try {
          if (it.names) {
            const names = await it.names();
            for (const tool of ['echo', 'get-sum', 'read_text_file'])
              assert.ok(names.includes(tool), `${tool} is not among ${names}`);
          }
          assert.match(await it.call('get-sum', { a: 2, b: 40 }), /42/);
          assert.match(await it.call('read_text_file', { path: join(docs, 'a.txt') }), /in the file/);
        } finally {
          await it.close();
        }
      });
  });

test('mcp-remote, in front of the gateway', async () => {
  const client = new Client({ name: 'published', version: '1' });
  await client.connect(new StdioClientTransport({
    command: process.execPath, args: [remote, String(serve.url), '--allow-http'],
    env: { ...process.env, HOME: place.dir }, stderr: 'ignore',
  }));
  let tools = [];
  await eventually('tools', async () => (tools = (await client.listTools()).tools).length > 5);
  assert.ok(tools.some((t) => t.name === 'get-sum'));
  const { content } = await client.callTool({ name: 'get-sum', arguments: { a: 2, b: 40 } });
  assert.match(content[0].text, /42/);
  await client.close();
});
