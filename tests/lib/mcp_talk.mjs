// One conversation with the fixture, as every official SDK client has it: with
// the fixture itself, or with whatever stands in front of it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

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

/** The SDK forgets who waits for progress when it has the answer, before it has told
 *  the progress that came in the same piece: here it gets one message after the other. */
function oneByOne(client) {
  const connect = client.connect.bind(client);
  client.connect = async (transport, ...more) => {
    await connect(transport, ...more);
    const take = transport.onmessage;
    let last = Promise.resolve();
    transport.onmessage = (...message) => { last = last.then(() => take(...message)); };
  };
  return client;
}

/** A client of SDK 1.x and how it hears of things. */
export function client1(more) {
  const client = new Client1(info, {
    capabilities: { ...capabilities, ...more },
  });
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
  return { client: oneByOne(client), on, call };
}

/** The same for the client 2.x, legacy or auto. */
export function client2(mode, more) {
  const options = { capabilities: { ...capabilities, ...more } };
  if (mode) options.versionNegotiation = { mode };
  const client = new v2.Client(info, options);
  for (const [method, fn] of Object.entries(answers))
    client.setRequestHandler(method, ({ params }) => fn(params));
  const on = (method, fn) => client.setNotificationHandler(method, fn);
  const call = (params, opts) => client.callTool(params, opts);
  return { client: oneByOne(client), on, call };
}

/** What the tool `big` says. */
const letters = (n) =>
  'abcdefghijklmnopqrstuvw'.repeat(Math.ceil(n / 23)).slice(0, n);

export const text = (result) => result.content[0].text;

export async function until(ready) {
  for (const end = Date.now() + 60_000; !(await ready()); ) { // a list may take 10 s
    assert.ok(Date.now() < end, `never: ${ready}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** What callToolStream yields, as a list. */
async function stream(client, params, options) {
  const seen = [];
  const all = client.experimental.tasks.callToolStream(
    params,
    types.CallToolResultSchema,
    { task: {}, ...options },
  );
  for await (const message of all) seen.push(message);
  return seen;
}

/** Tasks of 2025-11-25, by the SDK that still has a client for them. */
function taskTests(get, front) {
  test('tasks: capability and tools', async () => {
    const { client } = get();
    const { tasks } = client.getServerCapabilities();
    assert.deepEqual(tasks, {
      list: {},
      cancel: {},
      requests: { tools: { call: {} } },
    });
    const { tools } = await client.listTools();
    const said = Object.fromEntries(
      tools.map((t) => [t.name, t.execution?.taskSupport]),
    );
    assert.equal(said.never, 'optional');
    if (front) {
      // It waits for the task itself where the client does not.
      assert.equal(said.only_as_task, 'optional');
      const plain = await client.callTool({ name: 'only_as_task', arguments: {} });
      assert.match(text(plain), /./);
      return;
    }
    assert.equal(said.only_as_task, 'required');
    assert.equal(said.echo, 'forbidden');
    await assert.rejects(
      client.request(
        { method: 'tools/call', params: { name: 'only_as_task' } },
        types.CallToolResultSchema,
      ),
      { code: -32601 },
    );
    const refused = await stream(client, { name: 'echo', arguments: {} });
    assert.equal(refused.at(-1).error.code, -32601);
  });

  test('tasks: one that works, with progress', async () => {
    const { client } = get();
    const progress = [];
    const seen = await stream(
      client,
      { name: 'test_tool_with_progress', arguments: {} },
      { onprogress: (p) => progress.push(p.progress), task: { ttl: 60000 } },
    );
    assert.equal(seen[0].type, 'taskCreated');
    assert.equal(seen[0].task.status, 'working');
    assert.equal(seen[0].task.ttl, 60000);
    const { result } = seen.at(-1);
    assert.equal(text(result), 'Progress completed');
    assert.deepEqual(
      result._meta['io.modelcontextprotocol/related-task'],
      { taskId: seen[0].task.taskId },
    );
    // Over HTTP it comes by the GET stream, in its own time.
    await until(() => progress.length === 3);
    assert.deepEqual(progress, [0, 50, 100]);
  });

  test('tasks: one that asks, one that fails', async () => {
    const { client } = get();
    const asks = await stream(client, {
      name: 'test_elicitation',
      arguments: { message: 'who?' },
    });
    assert.ok(asks.some((m) => m.task?.status === 'input_required'));
    assert.match(text(asks.at(-1).result), /action=accept.*ann/);
    const fails = await stream(client, {
      name: 'test_error_handling',
      arguments: {},
    });
    const { taskId } = fails[0].task;
    const { status, statusMessage } = await client.experimental.tasks.getTask(
      taskId,
    );
    assert.equal(status, 'failed');
    assert.match(statusMessage, /intentionally/);
    const result = await client.experimental.tasks.getTaskResult(
      taskId,
      types.CallToolResultSchema,
    );
    assert.equal(result.isError, true);
  });

  test('tasks: list, wait, hear of it, cancel', async () => {
    const { client } = get();
    const { tasks } = client.experimental;
    const news = [];
    client.setNotificationHandler(
      types.TaskStatusNotificationSchema,
      ({ params }) => news.push(`${params.taskId} ${params.status}`),
    );
    const { task } = await client.request(
      { method: 'tools/call', params: { name: 'never', arguments: {} } },
      types.CreateTaskResultSchema,
      { task: {} },
    );
    const listed = await tasks.listTasks();
    assert.ok(listed.tasks.some((t) => t.taskId === task.taskId));
    const waiting = tasks.getTaskResult(
      task.taskId,
      types.CallToolResultSchema,
    );
    waiting.catch(() => {});
    assert.equal((await tasks.getTask(task.taskId)).status, 'working');
    const cancelled = await tasks.cancelTask(task.taskId);
    assert.equal(cancelled.status, 'cancelled');
    await assert.rejects(waiting, /cancelled/);
    await assert.rejects(tasks.cancelTask(task.taskId), { code: -32602 });
    await assert.rejects(tasks.getTask('none'), { code: -32602 });
    await until(() => news.length > 0);
    assert.deepEqual(news, [`${task.taskId} cancelled`]);
  });
}

/** Every client there is: [name, make, transport, is modern]. url and command
 *  are called when a client is made. */
export const kinds = (url, command) => [
  ['sdk 1.x, stdio', () => client1(), () => new Stdio1(command())],
  ['sdk 1.x, http', () => client1(), () => new Http1(url())],
  ['client 2.x, stdio', () => client2(), () => new Stdio2(command())],
  [
    'client 2.x, http',
    () => client2(),
    () => new v2.StreamableHTTPClientTransport(url()),
  ],
  [
    'client 2.x auto, stdio',
    () => client2('auto'),
    () => new Stdio2(command()),
    true,
  ],
  [
    'client 2.x auto, http',
    () => client2('auto'),
    () => new v2.StreamableHTTPClientTransport(url()),
    true,
  ],
];

/** The conversation, as tests; front: there is a gateway in between. */
export function converse([name, make, transport, modern], { front = false } = {}) {
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

    test('long answers', async () => {
      const before = await it.call({ name: 'stats', arguments: {} });
      for (const [bytes, streamed] of front
        ? [[name.startsWith('sdk') ? 6 : 0.5, true]]
        : [
          [3.9, false],
          [6, false],
          [3.9, true],
          [6, true],
        ]) {
        const n = Math.round(bytes * 2 ** 20);
        const said = await it.call(
          { name: 'big', arguments: { bytes: n, streamed } },
          { onprogress: () => {} },
        );
        assert.equal(text(said).length, n);
        assert.equal(text(said), letters(n));
      }
      if (!front) assert.equal(JSON.parse(text(before)).calls, 1);
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

    if (name.startsWith('sdk 1')) taskTests(() => it, front);

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
