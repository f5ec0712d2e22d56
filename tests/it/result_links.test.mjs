// Links to resources, and resources, in the results of tools and prompts: they
// have the URI under which the gateway lists the resource. Servers and clients
// of both official SDKs.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Place, script } from '../lib/gateway.mjs';
import { client1, client2, until } from '../lib/mcp_talk.mjs';

const server = (...args) => script('links_server.mjs', ...args);
const clients = {
  'SDK 1': async (url) => {
    const { client } = client1();
    await client.connect(new Http1(new URL(url)));
    return client;
  },
  'SDK 2, legacy': async (url) => {
    const { client } = client2('legacy');
    await client.connect(new Http2(new URL(url)));
    return client;
  },
  'SDK 2, modern': async (url) => {
    const { client } = client2('auto');
    await client.connect(new Http2(new URL(url)));
    return client;
  },
};

/** URIs of a result's links and resources, in order. */
const uris = (content) => content.flatMap((b) => b.uri ?? b.resource?.uri ?? []);

function served(servers, more) {
  const place = new Place(servers, { sandbox: { driver: 'none' }, ...more });
  const it = {};
  before(async () => { it.end = await place.serve(); it.url = it.end.url; });
  after(async () => {
    await it.end?.stop();
    place.close();
  });
  return it;
}

async function listed(client, n) {
  await until(async () => (await client.listResources()).resources.length === n);
  return (await client.listResources()).resources.map((r) => r.uri);
}

describe('two servers that share a URI', () => {
  const it = served({ one: server('1', 'one'), two: server('2', 'two') });
  for (const [kind, open] of Object.entries(clients))
    test(kind, async () => {
      const client = await open(it.url);
      const known = await listed(client, 4);
      for (const name of ['one', 'two']) {
        const shared = `${name}+memo://shared`;
        const result = await client.callTool({ name: `links_${name}`, arguments: {} });
        assert.deepEqual(uris(result.content), [
          shared, shared, `memo://${name}`, `memo://${name}`, 'https://example.com/memo']);
        // Text and _meta are not resources.
        assert.equal(result.content.at(-1).text, '"uri":"memo://shared"');
        assert.equal(result._meta.uri, 'memo://shared');
        for (const uri of uris(result.content).slice(0, 4)) {
          assert.ok(known.includes(uri), uri);
          const { contents } = await client.readResource({ uri });
          assert.match(contents[0].text, new RegExp(`of ${name}$`));
        }
        const { messages } = await client.getPrompt({ name: `notes_${name}` });
        assert.deepEqual(messages.map((m) => m.content.resource.uri), [shared, `memo://${name}`]);
      }
      await client.close();
    });
});

describe('a server that names another one\'s resource', () => {
  const it = served({ one: server('1', 'one'), two: server('2', 'two', '--alone') });
  for (const [kind, open] of Object.entries(clients))
    test(kind, async () => {
      const client = await open(it.url);
      assert.ok((await listed(client, 3)).includes('memo://shared'));
      const mine = await client.callTool({ name: 'links_one', arguments: {} });
      assert.equal(uris(mine.content)[0], 'memo://shared');
      // Its own memo://shared is not the listed one.
      const other = await client.callTool({ name: 'links_two', arguments: {} });
      assert.deepEqual(uris(other.content).slice(0, 3),
        ['two+memo://shared', 'two+memo://shared', 'memo://two']);
      await client.close();
    });
});

describe('without a collision nothing changes', () => {
  const it = served({ one: server('1', 'one'), two: server('2', 'two', '--alone') },
    { views: { only: { servers: ['two'] } } });
  test('through a view of one server', async () => {
    const client = await clients['SDK 2, modern'](`${it.url}/only`);
    assert.deepEqual(await listed(client, 1), ['memo://two']);
    const { content } = await client.callTool({ name: 'links_two', arguments: {} });
    assert.deepEqual(uris(content).slice(0, 3), ['memo://shared', 'memo://shared', 'memo://two']);
    await client.close();
  });
});

describe('always prefixed', () => {
  const it = served({ one: server('1', 'one'), two: server('2', 'two') }, { gateway: { prefix: 'always' } });
  test('links as well', async () => {
    const client = await clients['SDK 1'](it.url);
    const known = await listed(client, 4);
    const { content } = await client.callTool({ name: 'two_links_two', arguments: {} });
    assert.deepEqual(uris(content), ['two+memo://shared', 'two+memo://shared', 'two+memo://two', 'two+memo://two',
      'https://example.com/memo']);
    for (const uri of uris(content).slice(0, 4)) assert.ok(known.includes(uri), uri);
    await client.close();
  });
});
