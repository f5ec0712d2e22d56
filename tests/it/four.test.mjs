// Four tools instead of hundreds: found by words, run for real, with clients of
// both kinds over stdio and HTTP.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Place, fixtureServer, published } from '../lib/gateway.mjs';
import { client1, client2, text, until } from '../lib/mcp_talk.mjs';

const FOUR = ['execute', 'explain_tool', 'find_tool', 'list_capabilities'];
const ROUTE = 'mcp-orchestrator/route';
const place = new Place({});
const docs = join(place.dir, 'docs');
let serve;

mkdirSync(docs);
writeFileSync(join(docs, 'a.txt'), 'in the file');
const servers = {
  fixture: { ...fixtureServer(), description: 'Things that tests need' },
  files: { ...published('server-filesystem', docs), description: 'Files and folders on this machine' },
  memory: {
    ...published('server-memory'), env: { MEMORY_FILE_PATH: join(docs, 'memory.json') },
    description: 'Remembers facts about people and things', keywords: ['knowledge'],
  },
};
place.write(servers, { gateway: { expose: 'search' } });
after(async () => {
  const { code, log } = await serve.stop();
  assert.equal(code, 0, log);
  place.close();
});

const kinds = [
  ['sdk 1.x, stdio', client1, () => new Stdio1(place.command())],
  ['sdk 1.x, http', client1, () => new Http1(serve.url)],
  ['client 2.x modern, http', () => client2('modern'), () => new v2.StreamableHTTPClientTransport(serve.url)],
];
for (const [name, make, transport] of kinds)
  describe(name, () => {
    const it = make();
    const call = (tool, args) => it.call({ name: tool, arguments: args });
    after(() => it.client.close());

    test('there are four, and they say what they take', async () => {
      serve ??= await place.serve();
      await it.client.connect(transport());
      const { tools } = await it.client.listTools();
      assert.deepEqual(tools.map((t) => t.name).sort(), FOUR);
      for (const t of tools) assert.ok(t.description.length > 20 && t.inputSchema.type === 'object');
      // On a busy machine some servers take longer than an answer waits for.
      await until(async () => (await call('list_capabilities', {})).structuredContent.servers
        .every((s) => s.toolCount > 0));
    });

    test('words find a tool', async () => {
      const got = await call('find_tool', { query: 'read the contents of a file', limit: 2 });
      assert.equal(got.structuredContent.results.length, 2);
      assert.deepEqual(JSON.parse(text(got)), got.structuredContent);
      const [first] = got.structuredContent.results;
      assert.equal(first.server, 'files');
      assert.ok(first.confidence > 0.5 && first.confidence <= 1);
      assert.equal(first.inputSchema.type, 'object');
      for (const query of ['read the contents of a file', 'write a file', 'what is the time', 'list a directory and its sizes']) {
        const { results } = (await call('find_tool', { query, limit: 20 })).structuredContent;
        const all = results.map((r) => r.confidence);
        assert.deepEqual(all, all.toSorted((a, b) => b - a), query);
      }
      const sure = await call('find_tool', { query: 'read the contents of a file', threshold: 1 });
      assert.deepEqual(sure.structuredContent.results, []);
    });

    test('execute by name: the result as it is, and where it went', async () => {
      const got = await call('execute', { server: 'files', tool: 'read_text_file', params: { path: join(docs, 'a.txt') } });
      assert.equal(text(got), 'in the file');
      assert.deepEqual(got._meta[ROUTE], { server: 'files', tool: 'read_text_file', confidence: 1 });
      assert.equal(text(await call('execute', { tool: 'echo', params: { message: 'hé\u0000' } })), 'hé\u0000');
    });

    test('execute by words, when it is clear', async () => {
      const got = await call('execute', { request: 'list the directory', params: { path: docs } });
      assert.match(text(got), /a\.txt/);
      assert.equal(got._meta[ROUTE].server, 'files');
      assert.ok(got._meta[ROUTE].confidence >= 0.8);
    });

    test('unsure, wrong or nothing at all: not done, and what to do', async () => {
      const unsure = await call('execute', { request: 'sing me a song' });
      assert.equal(unsure.isError, true);
      assert.match(unsure.structuredContent.error, /nothing was done/);
      assert.ok(unsure.structuredContent.candidates.length > 0);
      const wrong = await call('execute', { server: 'files', tool: 'read_text_file', params: { pth: 1 } });
      assert.equal(wrong.isError, true);
      assert.match(wrong.structuredContent.problems, /params\.path: is required/);
      assert.equal(wrong.structuredContent.inputSchema.type, 'object');
      for (const [args, said] of [
        [{}, /say what is to be done/], [{ server: 'files', tool: 'nonsense' }, /no such tool/],
        [{ server: 'nobody', tool: 'echo' }, /no such tool/], [{ tool: 'echo', params: [1] }, /must be an object/],
      ]) {
        const got = await call('execute', args);
        assert.equal(got.isError, true);
        assert.match(text(got), said);
      }
    });

    test('what there is, and all about one', async () => {
      const all = (await call('list_capabilities', {})).structuredContent;
      assert.deepEqual(all.servers.map((s) => s.server), ['fixture', 'files', 'memory']);
      const some = (await call('list_capabilities', { category: 'KNOWLEDGE' })).structuredContent;
      assert.deepEqual(some.servers.map((s) => s.server), ['memory']);
      assert.equal(some.servers[0].toolCount, some.servers[0].tools.length);
      const one = (await call('explain_tool', { mcp_name: 'files', tool_name: 'read_text_file' })).structuredContent;
      assert.deepEqual(one.example, { server: 'files', tool: 'read_text_file', params: { path: '...' } });
      assert.equal(typeof one.health.state, 'string');
      assert.equal((await call('explain_tool', { server: 'files' })).isError, true);
    });
  });

test('auto: all while they are few, then the four', async () => {
  for (const [few, four] of [['1000', false], ['3', true]]) {
    const it = client1();
    place.write(servers, { gateway: { expose: 'auto', few: Number(few) } });
    await it.client.connect(new Stdio1(place.command()));
    const names = (await it.client.listTools()).tools.map((t) => t.name).sort();
    await it.client.close();
    if (four) assert.deepEqual(names, FOUR);
    else assert.ok(names.includes('read_text_file') && !names.includes('execute'));
  }
});
