// Three published servers and fifty more behind the four tools: every official
// client lists, finds, explains and executes, on stdio and over HTTP.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Place, fixtureServer, published } from '../lib/gateway.mjs';
import { client1, client2, text } from '../lib/mcp_talk.mjs';
import { eventually } from '../lib/sessions.mjs';

const MORE = 50;
const ROUTE = 'mcp-orchestrator/route';
const FOUR = ['execute', 'explain_tool', 'find_tool', 'list_capabilities'];
const place = new Place({});
const docs = join(place.dir, 'docs');
let serve;

mkdirSync(docs);
writeFileSync(join(docs, 'a.txt'), 'in the file');
place.write({
  everything: published('server-everything'),
  files: { ...published('server-filesystem', docs), description: 'Files and folders on this machine' },
  memory: {
    ...published('server-memory'), env: { MEMORY_FILE_PATH: join(docs, 'memory.json') },
    description: 'Remembers facts about people and things',
  },
  ...Object.fromEntries(Array.from({ length: MORE }, (_, i) =>
    [`s${i}`, fixtureServer({ description: `Things that tests need, number ${i}` })])),
}, { gateway: { expose: 'search' } });

before(async () => (serve = await place.serve()));
after(async () => {
  const { code, log } = await serve.stop();
  assert.equal(code, 0, log);
  place.close();
});

const modern = { pin: '2026-07-28' };
const stdio = (Kind) => () => new Kind(place.command());
const http = (Kind) => () => new Kind(serve.url);
const kinds = [
  ['sdk 1.x, http', client1, http(Http1)],
  ['sdk 1.x, stdio', client1, stdio(Stdio1)],
  ['client 2.x modern, http', () => client2(modern), http(v2.StreamableHTTPClientTransport)],
  ['client 2.x modern, stdio', () => client2(modern), stdio(Stdio2)],
];

for (const [name, make, transport] of kinds)
  describe(name, () => {
    const it = make();
    const call = (tool, args) => it.call({ name: tool, arguments: args });
    before(() => it.client.connect(transport()));
    after(() => it.client.close());

    test('four are listed, all servers are known', async () => {
      const { tools } = await it.client.listTools();
      assert.deepEqual(tools.map((t) => t.name).sort(), FOUR);
      await eventually('tools of all servers', async () => {
        const servers = [];
        for (let cursor; ;) {
          const page = (await call('list_capabilities', cursor ? { cursor } : {})).structuredContent;
          servers.push(...page.servers);
          cursor = page.nextCursor;
          if (!cursor) break;
        }
        assert.equal(new Set(servers.map((s) => s.server)).size, MORE + 3);
        return servers.every((s) => s.toolCount > 0);
      }, 120_000);
    });

    test('found among them', async () => {
      for (const [query, server] of [
        ['read the contents of a file', 'files'], ['remember a fact about a person', 'memory'],
      ]) {
        const [first] = (await call('find_tool', { query })).structuredContent.results;
        assert.equal(first.server, server, query);
        const about = { server, tool: first.tool };
        const { example } = (await call('explain_tool', about)).structuredContent;
        assert.equal(example.tool, first.tool);
      }
    });

    test('executed: by words, by name, and the one that was named of fifty', async () => {
      const listed = await call('execute', { request: 'list the directory', params: { path: docs } });
      assert.match(text(listed), /a\.txt/);
      assert.equal(listed._meta[ROUTE].server, 'files');
      const sum = await call('execute', { server: 'everything', tool: 'get-sum', params: { a: 2, b: 3 } });
      assert.match(text(sum), /5/);
      for (const server of ['s0', 's37', 's49']) {
        const got = await call('execute', { server, tool: 'echo', params: { message: `hé ${server}` } });
        assert.equal(text(got), `hé ${server}`);
        assert.equal(got._meta[ROUTE].server, server);
      }
    });
  });
