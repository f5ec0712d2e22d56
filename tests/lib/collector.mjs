// A collector for tests: reads OTLP over HTTP strictly, by the code that
// OpenTelemetry generates from its published proto files. A message with a
// field or a value that they do not know is a problem.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import root from '@opentelemetry/otlp-transformer/build/src/generated/root.js';

import { strictJson } from '../fakes/server.mjs';

const { collector: requests, metrics: { v1: { AggregationTemporality } } } = root.opentelemetry.proto;
const IDS = ['traceId', 'spanId', 'parentSpanId'];

/** Protobuf: what is written again has the same bytes, so nothing was skipped. */
function fromProtobuf(Request, bytes) {
  const message = Request.decode(bytes);
  assert.deepEqual(Buffer.from(Request.encode(message).finish()), bytes);
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
function fromJson(Request, bytes) {
  const said = plain(strictJson(bytes));
  const message = Request.fromObject(said);
  assert.deepEqual(Request.toObject(message, { longs: String, bytes: String, arrays: false }), said);
  return message;
}

const valueOf = (v) => v.stringValue ?? (v.intValue != null ? Number(v.intValue) : undefined)
  ?? v.doubleValue ?? v.arrayValue?.values.map(valueOf);

function attributes(list) {
  const keys = list.map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length, `a key stands twice: ${keys}`);
  return Object.fromEntries(list.map(({ key, value }) => [key, valueOf(value)]));
}

const hex = (bytes) => Buffer.from(bytes ?? []).toString('hex');

const big = (n) => BigInt(n.toString());

function spanOf(s) {
  assert.equal(s.traceId.length, 16);
  assert.equal(s.spanId.length, 8);
  const [start, end] = [big(s.startTimeUnixNano), big(s.endTimeUnixNano)];
  assert.ok(start > 0n && end >= start, s.name);
  return [{
    name: s.name, kind: s.kind, trace: hex(s.traceId), id: hex(s.spanId), parent: hex(s.parentSpanId),
    error: s.status?.code === 2, flags: s.flags, start, end, is: attributes(s.attributes),
  }];
}

/** A point of a histogram: its counts are those of the buckets and of the rest. */
function histogramOf(p) {
  const counts = p.bucketCounts.map(Number);
  assert.equal(counts.length, p.explicitBounds.length + 1);
  assert.equal(counts.reduce((a, b) => a + b), Number(p.count));
  assert.ok(p.explicitBounds.every((b, i) => i === 0 || b > p.explicitBounds[i - 1]));
  return { count: Number(p.count), sum: p.sum, counts, bounds: [...p.explicitBounds] };
}

/** A metric is a gauge, a monotonic cumulative sum or a cumulative histogram. */
function pointsOf({ name, description, unit, gauge, sum, histogram }) {
  assert.ok(description, name);
  const data = gauge ?? sum ?? histogram;
  const kind = gauge ? 'gauge' : sum ? 'counter' : 'histogram';
  if (!gauge) assert.equal(data.aggregationTemporality, AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE, name);
  if (sum) assert.equal(sum.isMonotonic, true, name);
  assert.ok(data.dataPoints.length > 0, name);
  return data.dataPoints.map((p) => {
    const [start, at] = [big(p.startTimeUnixNano ?? 0), big(p.timeUnixNano)];
    assert.ok(gauge ? start === 0n : start > 0n && start <= at, name);
    const value = histogram ? histogramOf(p) : sum ? Number(p.asInt) : p.asDouble;
    return { name, kind, unit, description, start, at, value, is: attributes(p.attributes) };
  });
}

const SEVERITIES = { 5: 'DEBUG', 9: 'INFO', 13: 'WARN', 17: 'ERROR' };

function lineOf(r) {
  assert.equal(r.severityText, SEVERITIES[r.severityNumber]);
  assert.ok(big(r.timeUnixNano) > 0n && big(r.observedTimeUnixNano) > 0n);
  const [trace, span] = [hex(r.traceId), hex(r.spanId)];
  assert.deepEqual([trace.length, span.length], r.flags ? [32, 16] : [0, 0]);
  return [{ at: big(r.timeUnixNano), level: r.severityText, text: r.body.stringValue, trace, span, is: attributes(r.attributes) }];
}

/** Of each signal: its request, the lists in it, and what is kept of an item. */
const SIGNALS = {
  '/v1/traces': {
    Request: requests.trace.v1.ExportTraceServiceRequest, names: ['resourceSpans', 'scopeSpans', 'spans'], to: 'spans', read: spanOf,
  },
  '/v1/metrics': {
    Request: requests.metrics.v1.ExportMetricsServiceRequest, names: ['resourceMetrics', 'scopeMetrics', 'metrics'], to: 'points', read: pointsOf,
  },
  '/v1/logs': {
    Request: requests.logs.v1.ExportLogsServiceRequest, names: ['resourceLogs', 'scopeLogs', 'logRecords'], to: 'lines', read: lineOf,
  },
};

function flat({ names: [resources, scopes, items], read }, message) {
  return message[resources].flatMap(({ resource, [scopes]: list }) => list.flatMap(({ scope, [items]: all }) => all.flatMap(read)
    .map((it) => ({ ...it, scope: scope.name, resource: attributes(resource.attributes) }))));
}

/** mood: 'ok', 'hang', a status, or {status, headers}. */
export async function collector(t, mood = 'ok') {
  const it = { mood, spans: [], points: [], lines: [], bodies: [], heads: [], problems: [] };
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
      const signal = SIGNALS[req.url];
      assert.ok(signal, req.url);
      const items = flat(signal, (json ? fromJson : fromProtobuf)(signal.Request, body));
      assert.ok(items.length > 0, 'an empty request');
      it[signal.to].push(...items);
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
  it.sent = (signal) => it.heads.filter((h) => h.path === `/v1/${signal}`).length;
  it.all = (name) => it.spans.filter((s) => s.name === name);
  return it;
}
