// A collector for tests: reads OTLP over HTTP strictly, by the code that
// OpenTelemetry generates from its published proto files. A message with a
// field or a value that they do not know is a problem.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import root from '@opentelemetry/otlp-transformer/build/src/generated/root.js';

import { strictJson } from '../fakes/server.mjs';

const { ExportTraceServiceRequest } = root.opentelemetry.proto.collector.trace.v1;
const IDS = ['traceId', 'spanId', 'parentSpanId'];

/** Protobuf: what is written again has the same bytes, so nothing was skipped. */
function fromProtobuf(bytes) {
  const message = ExportTraceServiceRequest.decode(bytes);
  assert.deepEqual(Buffer.from(ExportTraceServiceRequest.encode(message).finish()), bytes);
  return message;
}

/** JSON with the ids as protobufjs takes them, and without empty lists. */
function plain(v) {
  if (Array.isArray(v)) return v.map(plain);
  if (typeof v !== 'object' || v === null) return v;
  const out = {};
  for (const [k, value] of Object.entries(v)) {
    if (IDS.includes(k)) {
      assert.match(value, /^[0-9a-f]+$/, k);
      out[k] = Buffer.from(value, 'hex').toString('base64');
    } else if (!Array.isArray(value) || value.length > 0) out[k] = plain(value);
  }
  return out;
}

/** JSON: what is written again has the same members and values. */
function fromJson(bytes) {
  const said = plain(strictJson(bytes));
  const message = ExportTraceServiceRequest.fromObject(said);
  assert.deepEqual(ExportTraceServiceRequest.toObject(message, { longs: String, bytes: String, arrays: false }), said);
  return message;
}

const valueOf = (v) => v.stringValue ?? (v.intValue != null ? Number(v.intValue) : undefined)
  ?? v.arrayValue?.values.map(valueOf);

function attributes(list) {
  const keys = list.map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length, `a key stands twice: ${keys}`);
  return Object.fromEntries(list.map(({ key, value }) => [key, valueOf(value)]));
}

const hex = (bytes) => Buffer.from(bytes ?? []).toString('hex');

function flat({ resourceSpans }) {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => scopeSpans.flatMap(({ scope, spans }) => spans.map((s) => {
    assert.equal(s.traceId.length, 16);
    assert.equal(s.spanId.length, 8);
    const [start, end] = [s.startTimeUnixNano, s.endTimeUnixNano].map((n) => BigInt(n.toString()));
    assert.ok(start > 0n && end >= start, s.name);
    return {
      name: s.name, kind: s.kind, trace: hex(s.traceId), id: hex(s.spanId), parent: hex(s.parentSpanId),
      error: s.status?.code === 2, flags: s.flags, start, end,
      scope: scope.name, resource: attributes(resource.attributes), is: attributes(s.attributes),
    };
  })));
}

/** mood: 'ok', 'hang', a status, or {status, headers}. */
export async function collector(t, mood = 'ok') {
  const it = { mood, spans: [], bodies: [], heads: [], problems: [] };
  const server = http.createServer(async (req, res) => {
    const parts = [];
    for await (const part of req) parts.push(part);
    const body = Buffer.concat(parts);
    it.heads.push({ path: req.url, ...req.headers });
    it.bodies.push(body);
    if (it.mood === 'hang') return;
    if (it.mood !== 'ok') {
      const { status = it.mood, headers = {} } = it.mood.status ? it.mood : {};
      res.writeHead(status, headers).end();
      return;
    }
    const json = req.headers['content-type'] === 'application/json';
    try {
      if (!json) assert.equal(req.headers['content-type'], 'application/x-protobuf');
      it.spans.push(...flat(json ? fromJson(body) : fromProtobuf(body)));
    } catch (e) {
      it.problems.push(e);
    }
    res.writeHead(200, { 'content-type': req.headers['content-type'] }).end(json ? '{}' : '');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  it.url = `http://127.0.0.1:${server.address().port}`;
  it.find = (name) => it.spans.find((s) => s.name === name);
  it.all = (name) => it.spans.filter((s) => s.name === name);
  return it;
}
