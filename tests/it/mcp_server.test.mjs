// The official SDKs as clients of our server half: the fixture over stdio and
// over HTTP, by the legacy-only SDK 1.x and by the dual-era client 2.x in both
// of its modes. The same conversation for every pair.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

const build =
  process.env.MO_BUILD ??
  fileURLToPath(new URL('../../build-asan', import.meta.url));
const fixture = join(build, 'tests/fixture/fixture');

const info = { name: 'it', version: '1' };
const capabilities = { sampling: {}, elicitation: {}, roots: {} };

const answers = {
  'sampling/createMessage': (params) => ({
    role: 'assistant',
    model: 'm',
    content: { type: 'text', text: `said ${params.messages[0].content.text}` },
  }),
  'elicitation/create': () => ({
    action: 'accept',
    content: { username: 'ann', email: 'a@b.c', name: 'Ann' },
  }),
  'roots/list': () => ({ roots: [{ uri: 'file:///r', name: 'r' }] }),
};

/** A client of SDK 1.x and how it hears of things. */
function client1() {
  const client = new Client1(info, { capabilities });
  const schemas = {
    'sampling/createMessage': types.CreateMessageRequestSchema,
    'elicitation/create': types.ElicitRequestSchema,
    'roots/list': types.ListRootsRequestSchema,
  };
  for (const [method, schema] of Object.entries(schemas))
    client.setRequestHandler(schema, ({ params }) => answers[method](params));
  const on = (method, fn) =>
    client.setNotificationHandler(
      {
        'notifications/resources/updated':
          types.ResourceUpdatedNotificationSchema,
        'notifications/tools/list_changed':
          types.ToolListChangedNotificationSchema,
        'notifications/message': types.LoggingMessageNotificationSchema,
      }[method],
      fn,
    );
  const call = (params, options) =>
    client.callTool(params, undefined, options);
  return { client, on, call };
}

/** The same for the client 2.x, legacy or auto. */
function client2(mode) {
  const options = { capabilities };
  if (mode) options.versionNegotiation = { mode };
  const client = new v2.Client(info, options);
  for (const [method, fn] of Object.entries(answers))
    client.setRequestHandler(method, ({ params }) => fn(params));
  const on = (method, fn) => client.setNotificationHandler(method, fn);
  const call = (params, opts) => client.callTool(params, opts);
  return { client, on, call };
}

const text = (result) => result.content[0].text;

let server;
let url;

before(async () => {
  server = spawn(fixture, ['--http', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface({ input: server.stdout }), 'line');
  url = new URL(line);
});

after(async () => {
  server.kill('SIGTERM');
  const [code] = await once(server, 'exit');
  assert.equal(code, 0, 'the fixture ended badly (leak?)');
});

const kinds = [
  ['sdk 1.x, stdio', client1, () => new Stdio1({ command: fixture })],
  ['sdk 1.x, http', client1, () => new Http1(url)],
  ['client 2.x, stdio', client2, () => new Stdio2({ command: fixture })],
  [
    'client 2.x, http',
    client2,
    () => new v2.StreamableHTTPClientTransport(url),
  ],
  [
    'client 2.x auto, stdio',
    () => client2('auto'),
    () => new Stdio2({ command: fixture }),
    true,
  ],
  [
    'client 2.x auto, http',
    () => client2('auto'),
    () => new v2.StreamableHTTPClientTransport(url),
    true,
  ],
];

for (const [name, make, transport, modern] of kinds) {
  describe(name, () => {
    let it;

    before(async () => {
      it = make();
      await it.client.connect(transport());
    });
    after(() => it.client.close());

    test('lists', async () => {
      const { tools } = await it.client.listTools();
      assert.ok(tools.some((t) => t.name === 'test_simple_text'));
      const { resources } = await it.client.listResources();
      assert.equal(resources[0].uri, 'test://static-text');
      const { prompts } = await it.client.listPrompts();
      assert.equal(prompts.length, 5);
      const { resourceTemplates } = await it.client.listResourceTemplates();
      assert.equal(resourceTemplates.length, 1);
    });

    test('calls', async () => {
      const said = await it.call({
        name: 'echo',
        arguments: { message: 'h\u00e9\n"x"' },
      });
      assert.equal(text(said), 'h\u00e9\n"x"');
      const bad = await it.call({ name: 'test_error_handling', arguments: {} });
      assert.equal(bad.isError, true);
      await assert.rejects(it.call({ name: 'nope', arguments: {} }), /no such/);
    });

    test('many calls at once', async () => {
      const all = await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          it.call({ name: 'echo', arguments: { message: String(i) } }),
        ),
      );
      all.forEach((r, i) => assert.equal(text(r), String(i)));
    });

    test('progress', async () => {
      const seen = [];
      await it.call(
        { name: 'test_tool_with_progress', arguments: {} },
        { onprogress: (p) => seen.push(p.progress) },
      );
      assert.deepEqual(seen, [0, 50, 100]);
    });

    test('cancel', async () => {
      const stop = new AbortController();
      const running = it.call(
        { name: 'never', arguments: {} },
        { signal: stop.signal },
      );
      setTimeout(() => stop.abort('enough'), 100);
      await assert.rejects(running);
      const said = await it.call({
        name: 'echo',
        arguments: { message: 'alive' },
      });
      assert.equal(text(said), 'alive');
    });

    test('resources', async () => {
      const { contents } = await it.client.readResource({
        uri: 'test://template/7/data',
      });
      assert.equal(JSON.parse(contents[0].text).id, '7');
      await assert.rejects(
        it.client.readResource({ uri: 'test://none' }),
        /not found/i,
      );
    });

    test('prompts and completion', async () => {
      const { messages } = await it.client.getPrompt({
        name: 'test_prompt_with_arguments',
        arguments: { arg1: 'a', arg2: 'b' },
      });
      assert.match(messages[0].content.text, /arg1='a', arg2='b'/);
      const { completion } = await it.client.complete({
        ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
        argument: { name: 'arg1', value: 'par' },
      });
      assert.equal(completion.values[0], 'paris');
    });

    test('sampling, elicitation, roots', async () => {
      const sampled = await it.call({
        name: 'test_sampling',
        arguments: { prompt: 'hi' },
      });
      assert.equal(text(sampled), 'LLM response: said hi');
      const asked = await it.call({
        name: 'test_elicitation',
        arguments: { message: 'who?' },
      });
      assert.match(text(asked), /User response: action=accept.*ann/);
      const all = await it.call({
        name: 'test_input_required_result_multiple_inputs',
        arguments: {},
      });
      assert.match(text(all), /all three/);
      const rounds = await it.call({
        name: 'test_input_required_result_multi_round',
        arguments: {},
      });
      assert.match(text(rounds), /both steps/);
    });

    const updates = () =>
      new Promise((resolve) => {
        it.on('notifications/resources/updated', ({ params }) =>
          resolve(params.uri),
        );
      });
    const changes = () =>
      new Promise((resolve) => {
        it.on('notifications/tools/list_changed', () => resolve(true));
      });
    const uri = 'test://watched-resource';

    async function trigger() {
      await it.call({ name: 'test_trigger_resource_update', arguments: {} });
      await it.call({ name: 'test_trigger_tool_change', arguments: {} });
    }

    if (modern) {
      test('is modern, and listens', async () => {
        assert.equal(it.client.getNegotiatedProtocolVersion(), '2026-07-28');
        const heard = updates();
        const changed = changes();
        const listen = await it.client.listen({
          toolsListChanged: true,
          resourceSubscriptions: [uri],
        });
        await trigger();
        assert.equal(await heard, uri);
        assert.equal(await changed, true);
        await listen.close();
      });
      return;
    }

    test('subscribe and hear of it', async () => {
      const heard = updates();
      const changed = changes();
      await it.client.subscribeResource({ uri });
      await trigger();
      assert.equal(await heard, uri);
      assert.equal(await changed, true);
      await it.client.unsubscribeResource({ uri });
    });

    test('log level', async () => {
      const lines = [];
      it.on('notifications/message', ({ params }) => lines.push(params.data));
      await it.client.setLoggingLevel('error');
      await it.call({ name: 'test_logging_tool', arguments: {} });
      assert.equal(lines.length, 0);
      await it.client.setLoggingLevel('debug');
      await it.call({ name: 'test_logging_tool', arguments: {} });
      assert.deepEqual(lines, ['one line']);
    });
  });
}
