// Trace context: what a traced client says in the head of its request reaches
// the server, in its head or in _meta, and the call's row in the audit log.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Place } from '../lib/gateway.mjs';
import { client1, text, until } from '../lib/mcp_talk.mjs';

const P = 'io.modelcontextprotocol/';
const MODERN = '2026-07-28';
const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const OTHER = '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00';
const keys = ['traceparent', 'tracestate', 'baggage'];
const only = (o = {}) => Object.fromEntries(keys.filter((k) => k in o).map((k) => [k, o[k]]));

// A tool that says what it was told.
const stdio = `
  const { createInterface } = require('node:readline');
  const tool = { name: 'told_by_line', inputSchema: { type: 'object' } };
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    const answers = {
      initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} },
        serverInfo: { name: 'told', version: '1' } },
      'tools/list': { tools: [tool] },
      'tools/call': { content: [{ type: 'text', text: JSON.stringify(params?._meta ?? {}) }] },
    };
    if (id === undefined) return;
    const more = answers[method] ? { result: answers[method] }
      : { error: { code: -32601, message: 'no such method' } };
    console.log(JSON.stringify({ jsonrpc: '2.0', id, ...more }));
  });`;

async function overHttp(t) {
  const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
  const server = http.createServer(async (req, res) => {
    let body = '';
    for await (const piece of req.setEncoding('utf8')) body += piece;
    const { id, method, params } = JSON.parse(body);
    const told = { head: only(req.headers), meta: only(params?._meta) };
    const answers = {
      'server/discover': {
        ...complete, supportedVersions: [MODERN], capabilities: { tools: {} },
        _meta: { [`${P}serverInfo`]: { name: 'told', version: '1' } },
      },
      'tools/list': {
        ...complete, tools: [{ name: 'told_by_http', inputSchema: { type: 'object' } }],
      },
      'tools/call': {
        resultType: 'complete', content: [{ type: 'text', text: JSON.stringify(told) }],
      },
    };
    res.writeHead(answers[method] ? 200 : 404, { 'content-type': 'application/json' });
    res.end(JSON.stringify({
      jsonrpc: '2.0', id,
      ...(answers[method] ? { result: answers[method] } : { error: { code: -32601, message: 'no' } }),
    }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}/mcp`;
}

async function setUp(t) {
  const lines = { command: process.execPath, args: ['-e', stdio] };
  const place = new Place({ lines, far: { url: await overHttp(t) } });
  t.after(() => place.close());
  place.legacy(lines);
  const serve = await place.serve();
  t.after(async () => {
    const { code, log } = await serve.stop();
    assert.equal(code, 0, log);
    assert.doesNotMatch(log, /runtime error|Sanitizer/);
  });
  await until(async () => (await ask(serve.url, 'tools/list', {})).tools.length === 2);
  return { place, url: serve.url };
}

/** One modern request with these headers and that _meta: its result. */
async function ask(url, method, params, headers = {}, meta = {}) {
  const answer = await fetch(url, {
    method: 'POST',
    body: JSON.stringify({
      jsonrpc: '2.0', id: 1, method,
      params: {
        ...params,
        _meta: {
          ...meta, [`${P}protocolVersion`]: MODERN, [`${P}clientCapabilities`]: {},
        },
      },
    }),
    headers: {
      'content-type': 'application/json', accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN, 'mcp-method': method, ...headers,
    },
  });
  const said = await answer.text();
  const { result, error } = JSON.parse(said.replace(/^[^{]*/, '').split('\n')[0]);
  assert.equal(error, undefined, said);
  return result;
}

/** What the tool was told. */
const told = async (url, name, headers, meta) => JSON.parse(text(
  await ask(url, 'tools/call', { name, arguments: {} }, { 'mcp-name': name, ...headers }, meta)));

test('a trace reaches servers of either kind, and the audit log', async (t) => {
  const { place, url } = await setUp(t);
  const trace = { traceparent: PARENT, tracestate: 'rojo=1,congo=t61', baggage: 'user=ann;p=1' };

  assert.deepEqual(await told(url, 'told_by_http', trace), { head: trace, meta: trace });
  assert.deepEqual(only(await told(url, 'told_by_line', trace)), trace);

  // What the client put into _meta itself comes first.
  const own = { traceparent: OTHER };
  const kept = { traceparent: OTHER, baggage: trace.baggage };
  assert.deepEqual(await told(url, 'told_by_http', trace, own), { head: kept, meta: kept });
  assert.deepEqual(only(await told(url, 'told_by_line', trace, own)), kept);
  // It need not say it twice.
  assert.deepEqual((await told(url, 'told_by_http', {}, own)).head, own);

  // Half a trace is none.
  const bad = { traceparent: PARENT.toUpperCase(), tracestate: 'rojo=1', baggage: 'no pair' };
  assert.deepEqual(await told(url, 'told_by_http', bad), { head: {}, meta: {} });
  assert.deepEqual(only(await told(url, 'told_by_line', bad)), {});

  const file = join(place.state, 'audit.jsonl'); // made after its key is on disk
  const rows = () => (existsSync(file) ? readFileSync(file, 'utf8') : '').split('\n').slice(0, -1)
    .map((l) => JSON.parse(l).what).filter((w) => w?.kind === 'call');
  await until(() => rows().length >= 7);
  assert.deepEqual(rows().map((r) => r.outcome), Array(7).fill('ok'));
  // Each worker adds the rows of its own calls.
  assert.deepEqual(rows().map((r) => r.traceparent).sort(),
    [PARENT, PARENT, OTHER, OTHER, OTHER, undefined, undefined].sort());
});

test('a legacy client\'s trace does too', async (t) => {
  const { url } = await setUp(t);
  const it = client1();
  await it.client.connect(new Http1(url, { requestInit: { headers: { traceparent: PARENT } } }));
  t.after(() => it.client.close());
  const line = await it.call({ name: 'told_by_line', arguments: {} });
  assert.equal(JSON.parse(text(line)).traceparent, PARENT);
  const far = JSON.parse(text(await it.call({ name: 'told_by_http', arguments: {} })));
  assert.equal(far.head.traceparent, PARENT);
});
