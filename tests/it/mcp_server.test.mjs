// The official SDKs as clients of our server half: the fixture over stdio and
// over HTTP, by the legacy-only SDK 1.x and by the dual-era client 2.x in both
// of its modes. The same conversation for every pair.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as v2 from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { client1, client2, converse, kinds, text, until } from '../lib/mcp_talk.mjs';

const build =
  process.env.MO_BUILD ??
  fileURLToPath(new URL('../../build-asan', import.meta.url));
const fixture = join(build, 'tests/fixture/fixture');

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

for (const kind of kinds(() => url, () => ({ command: fixture }))) converse(kind);

// --- the tasks extension, which the SDKs do not listen to

const P = 'io.modelcontextprotocol/';

/** A modern POST; the messages of its answer, one by one. */
async function* post(method, params, signal) {
  const name = params.name ?? params.taskId;
  const answer = await fetch(url, {
    method: 'POST',
    signal,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(name && { 'mcp-name': name }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          [`${P}protocolVersion`]: '2026-07-28',
          [`${P}clientCapabilities`]: { extensions: { [`${P}tasks`]: {} } },
        },
      },
    }),
  });
  if (answer.headers.get('content-type') === 'application/json') {
    yield await answer.json();
    return;
  }
  let rest = '';
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + piece).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (data) yield JSON.parse(data);
    }
  }
}

const only = async (...args) => (await post(...args).next()).value.result;

test('a listen hears of its task and no other', async () => {
  const call = { name: 'confirm_delete', arguments: {} };
  const mine = await only('tools/call', call);
  const other = await only('tools/call', call);
  assert.equal(mine.resultType, 'task');
  const stop = new AbortController();
  const notifications = { taskIds: [mine.taskId] };
  const heard = post('subscriptions/listen', { notifications }, stop.signal);
  const ack = (await heard.next()).value;
  assert.deepEqual(ack.params.notifications, notifications);
  await only('tasks/cancel', { taskId: other.taskId });
  let task;
  // It may want to know before or after we listen: then it is told, too.
  await until(async () => {
    task = await only('tasks/get', { taskId: mine.taskId });
    return task.status === 'input_required';
  });
  await only('tasks/update', {
    taskId: mine.taskId,
    inputResponses: { confirm: { action: 'accept' } },
  });
  for await (const { method, params } of heard) {
    assert.equal(method, 'notifications/tasks');
    assert.equal(params.taskId, mine.taskId);
    assert.equal(params._meta[`${P}subscriptionId`], 1);
    task = params;
    if (params.status === 'completed') break;
  }
  assert.equal(text(task.result), 'deleted');
  stop.abort();
});

// --- pages to look at, only for those who said they show them

const asksPage = [
  ['sdk 1.x', client1, () => new Http1(url)],
  [
    'client 2.x auto',
    (more) => client2('auto', more),
    () => new v2.StreamableHTTPClientTransport(url),
  ],
];

for (const [name, make, transport] of asksPage) {
  test(`URL elicitation, ${name}`, async () => {
    const asked = [];
    const call = async (elicitation, args) => {
      const it = make({ elicitation });
      const listen = ({ params }) => {
        asked.push(params);
        return { action: 'accept' };
      };
      it.client.setRequestHandler(
        name.startsWith('sdk') ? types.ElicitRequestSchema : 'elicitation/create',
        listen,
      );
      await it.client.connect(transport());
      try {
        return await it.call({ name: 'test_elicitation_url', arguments: args });
      } finally {
        await it.client.close();
      }
    };
    assert.equal(text(await call({ form: {} }, {})), 'no page can be shown');
    const insisted = call({}, { insist: true });
    if (name.startsWith('sdk')) assert.equal((await insisted).isError, true);
    else await assert.rejects(insisted, { code: -32021 });
    assert.equal(asked.length, 0);
    assert.match(text(await call({ form: {}, url: {} }, {})), /action=accept/);
    assert.equal(asked[0].mode, 'url');
    assert.equal(asked[0].url, 'https://example.com/page');
    if (name.startsWith('sdk')) assert.ok(asked[0].elicitationId.length >= 16);
  });
}
