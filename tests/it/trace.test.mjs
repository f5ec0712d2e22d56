// Traces by OTLP, read by a strict decoder in both encodings: one connected tree
// for a chat turn with an approved tool and for a call through the gateway; who
// is sampled; and a collector that hangs, refuses or is gone costs spans only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { collector } from '../lib/collector.mjs';
import { metricsOf as metrics, Place } from '../lib/gateway.mjs';
import { client1, text, until } from '../lib/mcp_talk.mjs';
import { House } from './talk_kit.mjs';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;
const SECRET = 'do not tell this to a collector';
const [INTERNAL, SERVER, CLIENT] = [1, 2, 3];

// A tool that says which context it was given.
const STDIO = `
  const { createInterface } = require('node:readline');
  const tool = { name: 'told', inputSchema: { type: 'object' } };
  const bad = { name: 'fails', inputSchema: { type: 'object' } };
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    const answers = {
      initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'told', version: '1' } },
      'tools/list': { tools: [tool, bad] },
      'tools/call': { isError: params?.name === 'fails', content: [{ type: 'text', text: JSON.stringify(params?._meta ?? {}) }] },
    };
    if (id === undefined) return;
    const more = answers[method] ? { result: answers[method] } : { error: { code: -32601, message: 'no such method' } };
    console.log(JSON.stringify({ jsonrpc: '2.0', id, ...more }));
  });`;
const lines = { command: process.execPath, args: ['-e', STDIO] };

/** Every span has a parent in the trace, but the first of it. */
function checkTree(spans, first, outside = '') {
  assert.equal(new Set(spans.map((s) => s.trace)).size, 1, 'one trace');
  assert.equal(new Set(spans.map((s) => s.id)).size, spans.length, 'ids');
  for (const s of spans) {
    if (s === first) assert.equal(s.parent, outside, s.name);
    else assert.ok(spans.some((p) => p.id === s.parent), `${s.name} has no parent`);
    assert.equal(s.resource['service.name'], 'mcp-orchestrator');
    assert.equal(s.scope, 'mcp-orchestrator');
  }
}

/** Nothing that a person or a tool said is in an export. */
function checkPrivacy(c) {
  for (const body of c.bodies) assert.ok(!body.includes(SECRET));
}

async function place(t, telemetry, more = {}) {
  const it = new Place({ lines }, { telemetry, ...more });
  t.after(() => it.close());
  it.legacy(lines);
  return it;
}

async function overHttp(t, where) {
  const serve = await where.serve();
  t.after(async () => {
    const { code, log } = await serve.stop();
    assert.equal(code, 0, log);
    assert.doesNotMatch(log, /runtime error|Sanitizer/);
  });
  return serve;
}

async function connect(t, transport) {
  const it = client1();
  await it.client.connect(transport);
  t.after(() => it.client.close());
  return it;
}

const told = { name: 'told', arguments: { secret: SECRET } };
const count = (page, name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(page)?.[1]);

for (const protocol of ['http/protobuf', 'http/json']) {
  test(`a call through the gateway, ${protocol}`, async (t) => {
    const c = await collector(t);
    const where = await place(t, {
      endpoint: c.url, protocol, sample: 0, headers: { 'x-key': 'k-123456' }, resourceAttributes: 'team=a',
    });
    const { url } = await overHttp(t, where);
    const it = await connect(t, new Http1(url, { requestInit: { headers: { traceparent: PARENT, tracestate: 'a=b', baggage: 'c=d' } } }));
    const meta = JSON.parse(text(await it.call(told)));
    await until(() => c.find('tools/call told') && c.all('tools/call told').length === 2 && c.find('route'));
    assert.deepEqual(c.problems, []);

    const [server, client] = [SERVER, CLIENT].map((kind) => c.all('tools/call told').find((s) => s.kind === kind));
    const route = c.find('route');
    assert.equal(server.parent, '00f067aa0ba902b7');
    assert.equal(client.parent, server.id);
    assert.equal(route.parent, server.id);
    assert.equal(route.kind, INTERNAL);
    for (const s of c.spans) assert.equal(s.trace, TRACE);
    assert.equal(server.flags, 0x301, 'sampled, and its parent is remote');
    assert.equal(client.flags, 0x101);
    assert.ok(server.start <= client.start && client.end <= server.end);
    assert.deepEqual([meta.traceparent, meta.tracestate, meta.baggage], [`00-${TRACE}-${client.id}-01`, 'a=b', 'c=d']);
    assert.equal(server.is['mcp.method.name'], 'tools/call');
    assert.equal(server.is['gen_ai.tool.name'], 'told');
    assert.equal(server.is['gen_ai.operation.name'], 'execute_tool');
    assert.equal(server.is['network.transport'], 'tcp');
    assert.equal(client.is['network.transport'], 'pipe');
    assert.equal(client.is['mcp_orchestrator.server'], 'lines');
    assert.equal(route.is['mcp_orchestrator.server'], 'lines');
    assert.equal(server.resource.team, 'a');
    assert.ok(!server.error);
    assert.equal(c.heads[0].path, '/v1/traces');
    assert.equal(c.heads[0]['x-key'], 'k-123456');

    await it.call({ name: 'fails', arguments: {} });
    await until(() => c.all('tools/call fails').length === 2);
    for (const s of c.all('tools/call fails')) assert.deepEqual([s.error, s.is['error.type']], [true, 'tool_error']);
    await until(async () => count(await metrics(url), 'mo_trace_spans_sent_total') >= c.spans.length);
    assert.equal(count(await metrics(url), 'mo_trace_spans_dropped_total'), 0);
    assert.deepEqual(c.problems, []);
    checkPrivacy(c);
  });

  test(`a turn with an approved tool, ${protocol}`, async (t) => {
    const c = await collector(t);
    const house = await House.start({
      config: { mcpServers: { lines }, telemetry: { endpoint: c.url, protocol, logs: true } },
      env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
    });
    t.after(async () => {
      house.server.fresh.fds += 16; // the server of the tool stays open
      house.server.fresh.children += 2;
      await house.stop();
    });
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ calls: [told].map(({ name, arguments: args }) => ({ name: `lines_${name}`, args })) }, { text: SECRET });
    await tab.say(SECRET);
    const [card] = await tab.event('tool:approval_required');
    assert.deepEqual(await tab.decide(card, true, { digest: card.digest }), { ok: true });
    await tab.event('agent:response');
    await until(() => c.find('invoke_agent') && c.all('chat claude-sonnet-5-5').length === 2);

    const turn = c.find('invoke_agent');
    const spans = c.spans.filter((s) => s.trace === turn.trace);
    checkTree(spans, turn);
    const names = spans.filter((s) => s.parent === turn.id).map((s) => s.name).sort();
    assert.deepEqual(names, ['chat claude-sonnet-5-5', 'chat claude-sonnet-5-5', 'execute_tool lines_told', 'wait for approval']);
    const tool = spans.find((s) => s.name === 'execute_tool lines_told');
    const server = spans.find((s) => s.kind === SERVER && s.name.startsWith('tools/call'));
    const client = spans.find((s) => s.kind === CLIENT && s.name === 'tools/call told');
    assert.equal(server.parent, tool.id);
    assert.equal(client.parent, server.id);
    assert.equal(turn.is['gen_ai.conversation.id'], tab.session);

    const [model] = spans.filter((s) => s.name === 'chat claude-sonnet-5-5').sort((a, b) => Number(a.start - b.start));
    assert.equal(model.kind, CLIENT);
    assert.equal(model.is['gen_ai.provider.name'], 'anthropic');
    assert.equal(model.is['gen_ai.request.model'], 'claude-sonnet-5-5');
    assert.deepEqual(model.is['gen_ai.response.finish_reasons'], ['calls']);
    assert.ok(model.is['gen_ai.usage.input_tokens'] > 0 && model.is['gen_ai.usage.output_tokens'] > 0);
    const approval = spans.find((s) => s.name === 'wait for approval');
    assert.equal(approval.is['mcp_orchestrator.approval.decision'], 'approved');
    assert.ok(approval.end <= tool.start, 'decided before it ran');
    assert.equal(tool.is['gen_ai.tool.call.id'].length > 0, true);
    const sent = house.model.requests.map((r) => r.headers.traceparent).filter(Boolean);
    assert.ok(sent.includes(`00-${turn.trace}-${model.id}-01`), 'the provider is told');
    // Lines of the log about the turn, and about its call.
    const said = (line) => c.lines.find((l) => l.text === line && l.is['gen_ai.conversation.id'] === tab.session);
    await until(() => said('turn ended') && said('call runs'));
    for (const line of ['turn begun', 'turn ended']) assert.deepEqual([said(line).trace, said(line).span], [turn.trace, turn.id]);
    assert.deepEqual([said('call runs').trace, said('call runs').span], [turn.trace, tool.id]);
    assert.equal(said('turn begun').is['mcp_orchestrator.turn.id'], turn.is['mcp_orchestrator.turn.id']);
    // The box of the conversation was started before the turn.
    const box = c.find('start box');
    assert.equal(box.is['mcp_orchestrator.box.driver'], 'native');
    assert.equal(box.is['gen_ai.conversation.id'], tab.session);
    assert.deepEqual(c.problems, []);
    checkPrivacy(c);
  });
}

const SCRIPT = { language: 'python', code: 'import tools\nprint(tools.lines.told())' };

test('calls of a script are below its own span, in a conversation', async (t) => {
  const c = await collector(t);
  const house = await House.start({
    config: { mcpServers: { lines }, telemetry: { endpoint: c.url } },
    env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
  });
  t.after(async () => {
    house.server.fresh.fds += 16; // the server of the tool stays open
    house.server.fresh.children += 2;
    await house.stop();
  });
  const tab = house.tab();
  await tab.ready();
  house.model.script.push({ calls: [{ name: 'run_script', args: SCRIPT }] }, { text: 'done' });
  await tab.say('go');
  for (const n of [1, 2]) {
    const cards = await tab.event('tool:approval_required', n);
    await tab.decide(cards.at(-1), true);
  }
  await tab.event('agent:response');
  await until(() => c.find('invoke_agent'));
  const turn = c.find('invoke_agent');
  const spans = c.spans.filter((s) => s.trace === turn.trace);
  checkTree(spans, turn);
  const script = spans.find((s) => s.name === 'execute_tool run_script');
  const below = spans.filter((s) => s.parent === script.id).map((s) => s.name).sort();
  assert.deepEqual([script.parent, below], [turn.id, ['execute_tool lines_told', 'wait for approval']]);
  assert.deepEqual(c.problems, []);
});

test('calls of a script are below its own span, of a client', async (t) => {
  const c = await collector(t);
  const where = await place(t, { endpoint: c.url }, { gateway: { scripts: { enabled: true } } });
  const { url } = await overHttp(t, where);
  const it = await connect(t, new Http1(url));
  const { traceparent } = JSON.parse((await it.call({ name: 'run_script', arguments: SCRIPT })).structuredContent.stdout);
  await until(() => c.all('tools/call run_script').length === 2 && c.all('tools/call told').length === 2);
  const script = c.all('tools/call run_script').find((s) => s.kind === SERVER);
  const [inner, client] = [INTERNAL, CLIENT].map((kind) => c.all('tools/call told').find((s) => s.kind === kind));
  assert.deepEqual([script.parent, inner.parent, client.parent], ['', script.id, inner.id]);
  assert.equal(traceparent, `00-${script.trace}-${client.id}-01`);
  assert.ok(script.start <= inner.start && inner.end <= script.end);
  assert.deepEqual(c.problems, []);
});

test('over stdio: a context in _meta, and spans of a short life', async (t) => {
  const c = await collector(t);
  const where = await place(t, { endpoint: c.url, sample: 0 });
  const it = await connect(t, new StdioClientTransport({ ...where.command(), stderr: 'ignore' }));
  const meta = JSON.parse(text(await it.call({ ...told, _meta: { traceparent: PARENT } })));
  await it.client.close(); // what waits is exported at the end
  await until(() => c.all('tools/call told').length === 2);
  const [server, client] = [SERVER, CLIENT].map((kind) => c.all('tools/call told').find((s) => s.kind === kind));
  assert.equal(server.parent, '00f067aa0ba902b7');
  assert.equal(server.is['network.transport'], 'pipe');
  assert.equal(meta.traceparent, `00-${TRACE}-${client.id}-01`);
  assert.deepEqual(c.problems, []);
});

test('strangers force a limited number; who is not sampled passes through', async (t) => {
  const c = await collector(t);
  const where = await place(t, { endpoint: c.url, sample: 0, parentsPerSecond: 1 });
  const { url } = await overHttp(t, where);
  const it = await connect(t, new Http1(url));
  const off = PARENT.replace(/01$/, '00');
  const ask = async (traceparent) => JSON.parse(text(await it.call({ ...told, _meta: { traceparent } }))).traceparent;
  assert.equal(await ask(off), off);
  // A burst of 20: at most one a second is recorded, the others pass through.
  const began = Date.now();
  const got = await Promise.all(Array.from({ length: 20 }, () => ask(PARENT)));
  const most = Math.ceil((Date.now() - began) / 1000) + 1;
  const ours = got.filter((p) => p !== PARENT).length;
  assert.ok(ours >= 1 && ours <= most, `${ours} of ${most}`);
  await until(() => c.all('tools/call told').length === 2 * ours);
  assert.deepEqual(c.problems, []);
});

test('off: nothing is added, nothing is exported', async (t) => {
  const where = await place(t, {});
  const { url } = await overHttp(t, where);
  const it = await connect(t, new Http1(url));
  assert.deepEqual(JSON.parse(text(await it.call(told))), {});
  assert.doesNotMatch(await metrics(url), /mo_trace/);
});

for (const [name, mood] of [['hangs', 'hang'], ['refuses', 400], ['says later', { status: 503, headers: { 'retry-after': '60' } }]]) {
  test(`a collector that ${name} costs nothing but spans`, async (t) => {
    const c = await collector(t, mood);
    const where = await place(t, { endpoint: c.url });
    const serve = await where.serve();
    const it = await connect(t, new Http1(serve.url));
    await it.call(told);
    await until(() => c.bodies.length > 0);
    for (let i = 0; i < 20; i++) await it.call(told);
    const page = await metrics(serve.url);
    assert.equal(count(page, 'mo_trace_spans_sent_total'), 0);
    if (mood === 400) await until(async () => count(await metrics(serve.url), 'mo_trace_spans_dropped_total') > 60);
    else assert.ok(count(page, 'mo_trace_spans_waiting') > 0);
    await it.client.close();
    const { code, log } = await serve.stop();
    assert.equal(code, 0, log);
    assert.match(log, /\d+ spans were not exported/);
    assert.doesNotMatch(log, /runtime error|Sanitizer/);
  });
}

test('nobody listens there: logged once, and the server works', async (t) => {
  const where = await place(t, { endpoint: 'http://127.0.0.1:1' });
  const serve = await where.serve();
  const it = await connect(t, new Http1(serve.url));
  await it.call(told);
  await until(async () => count(await metrics(serve.url), 'mo_trace_exports_failed_total') >= 2);
  await it.client.close();
  const { code, log } = await serve.stop();
  assert.equal(code, 0, log);
  assert.equal(log.match(/traces cannot be exported/g).length, 1);
});
