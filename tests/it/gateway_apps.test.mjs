// Tools for apps only (_meta.ui.visibility without "model") through the gateway:
// a client that shows apps has them, and keeps them from its model; the model of
// any other client never sees one and cannot call it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Place, script } from '../lib/gateway.mjs';
import { client1, client2, text, until } from '../lib/mcp_talk.mjs';

const ui = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } };
const place = new Place({ apps: script('apps_server.mjs') });
const few = new Place({ apps: script('apps_server.mjs') }, { gateway: { expose: 'search' } });
let all, four;
before(async () => {
  all = await place.serve();
  four = await few.serve();
});
after(async () => {
  await all?.stop();
  await four?.stop();
  place.close();
  few.close();
});

const kinds = {
  'SDK 1': { make: client1, Http: Http1, Stdio: Stdio1 },
  'SDK 2, legacy': { make: (more) => client2('legacy', more), Http: Http2, Stdio: Stdio2 },
  'SDK 2, modern': { make: (more) => client2('auto', more), Http: Http2, Stdio: Stdio2 },
};
async function open(kind, how, more) {
  const it = kind.make(more);
  await it.client.connect(how === 'stdio' ? new kind.Stdio({ ...place.command(), stderr: 'ignore' })
    : new kind.Http((how === 'four' ? four : all).url));
  return it;
}
const namesOf = async ({ client }) => (await client.listTools()).tools.map((t) => t.name);

test('a legacy server is told that apps can be shown', async () => {
  const old = new Place({ apps: { ...script('apps_server.mjs'), era: 'legacy' } });
  const served = await old.serve();
  const it = client1(ui);
  await it.client.connect(new Http1(served.url));
  await until(async () => (await namesOf(it)).includes('caps'));
  assert.deepEqual(JSON.parse(text(await it.call({ name: 'caps', arguments: {} }))), ui.extensions['io.modelcontextprotocol/ui']);
  await it.client.close();
  await served.stop();
  old.close();
});

for (const [name, kind] of Object.entries(kinds))
  describe(name, () => {
    for (const how of ['http', 'stdio'])
      test(`${how}: with and without apps`, async () => {
        const shows = await open(kind, how, ui);
        const plain = await open(kind, how);
        let offered = [];
        await until(async () => (offered = await namesOf(shows)).includes('show'));
        assert.ok(offered.includes('refresh'));
        assert.match(text(await shows.call({ name: 'refresh', arguments: {} })), /refreshed/);

        let fewer = [];
        await until(async () => (fewer = await namesOf(plain)).includes('show'));
        assert.deepEqual(fewer, offered.filter((n) => n !== 'refresh'));
        await assert.rejects(plain.call({ name: 'refresh', arguments: {} }), /no such tool: refresh/);
        assert.match(text(await plain.call({ name: 'private', arguments: {} })), /private/);
        await shows.client.close();
        await plain.client.close();
      });

    test('behind four tools a model cannot name one, an app can', async () => {
      const it = await open(kind, 'four', ui);
      const run = (tool, args) => it.call({ name: tool, arguments: args });
      let list = '';
      await until(async () => (list = text(await run('list_capabilities', { server: 'apps' }))).includes('"show"'));
      assert.doesNotMatch(list, /refresh/);
      assert.equal((await run('execute', { server: 'apps', tool: 'refresh' })).isError, true);
      assert.equal((await run('explain_tool', { server: 'apps', tool: 'refresh' })).isError, true);
      assert.match(text(await run('execute', { server: 'apps', tool: 'private' })), /private/);
      assert.match(text(await run('refresh', {})), /refreshed/);
      await it.client.close();
    });
  });
