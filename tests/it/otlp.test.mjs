// Metrics and logs by OTLP, read by a strict decoder in both encodings: metrics
// have the values of /metrics, lines those of the log; and a collector that hangs,
// refuses or is gone costs points and lines only. With MO_WORKERS each worker is an
// instance, whose values are added up and whose lines are looked at by themselves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { collector } from '../lib/collector.mjs';
import { fixtureServer, metricsOf as metrics, Place, serveWith } from '../lib/gateway.mjs';
import { client1, until } from '../lib/mcp_talk.mjs';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;
const SECRET = 'k-0123456789';
const INSTANCES = Number(process.env.MO_WORKERS ?? 1);
const PROTOCOLS = ['http/protobuf', 'http/json'];

/** A server with these settings: {url, stop()}. */
async function serving(t, telemetry, { args = [], env = {}, ...more } = {}) {
  const place = new Place({ fixture: fixtureServer() }, { telemetry, ...more });
  t.after(() => place.close());
  const serve = await serveWith(place.file, { cwd: place.dir, env: { ...place.env, ...env } }, ...args);
  let over;
  const stop = () => (over ??= serve.stop());
  t.after(async () => {
    const { code, log } = await stop();
    assert.equal(code, 0, log);
    assert.doesNotMatch(log, /runtime error|Sanitizer/);
  });
  return { url: serve.url, stop };
}

async function calling(t, url, headers = {}) {
  const it = client1();
  await it.client.connect(new Http1(url, { requestInit: { headers } }));
  t.after(() => it.client.close());
  return (n = 1) => Promise.all(Array.from({ length: n }, () => it.call({ name: 'echo', arguments: { text: 'x' } })));
}

const linesOf = (log) => log.split('\n').filter((l) => l.startsWith('{')).map((l) => JSON.parse(l));
const count = (page, name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(page)?.[1]);
const keyOf = (name, labels) => `${name} ${JSON.stringify(Object.entries(labels).sort())}`;

/** A page of /metrics: key -> {name, kind, description, value}, as the collector has points. */
function read(page) {
  const [all, kinds, helps] = [new Map(), {}, {}];
  for (const line of page.split('\n').filter(Boolean)) {
    const [, what, of, text] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (what) (what === 'HELP' ? helps : kinds)[of] = text;
    if (line[0] === '#') continue;
    const [, full, inside = '', value] = /^([\w:]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    const { le, ...labels } = Object.fromEntries([...inside.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)]
      .map(([, k, v]) => [k, JSON.parse(`"${v}"`)]));
    const name = kinds[full] ? full : full.replace(/_(bucket|sum|count)$/, '');
    const key = keyOf(name, labels);
    const it = all.get(key) ?? { name, labels, kind: kinds[name], description: helps[name], value: Number(value) };
    all.set(key, it);
    if (it.kind !== 'histogram') continue;
    if (typeof it.value !== 'object') it.value = { count: 0, sum: 0, counts: [], bounds: [], below: 0 };
    const h = it.value;
    if (full.endsWith('_sum')) h.sum = Number(value);
    if (full.endsWith('_count')) h.count = Number(value);
    if (!full.endsWith('_bucket')) continue;
    if (le !== '+Inf') h.bounds.push(Number(le));
    h.counts.push(Number(value) - h.below);
    h.below = Number(value);
  }
  for (const { value } of all.values()) delete value.below;
  return all;
}

/** Changed by looking at them, or by the time. */
const moves = ({ name, labels }) => /^(mo_uptime|process_|mo_loop_|mo_http_connections$|mo_metric_|mo_log_)/.test(name)
  || labels.route === '/metrics';

const instanceOf = (it) => it.resource['service.instance.id'];

function add(a, b) {
  if (typeof a !== 'object') return a + b;
  return { ...a, count: a.count + b.count, sum: a.sum + b.sum, counts: a.counts.map((v, i) => v + b.counts[i]) };
}

/** The newest point of each series, of all instances together. */
function newest(c) {
  const each = new Map();
  for (const p of c.points) each.set(`${instanceOf(p)} ${keyOf(p.name, p.is)}`, p);
  const all = new Map();
  for (const p of each.values()) {
    const key = keyOf(p.name, p.is);
    const other = all.get(key);
    all.set(key, other ? { ...p, value: add(other.value, p.value) } : p);
  }
  return all;
}

/** What of a page the collector does not have, or has otherwise. */
function differences(page, points) {
  const bad = [];
  for (const [key, m] of page) {
    const p = points.get(key);
    if (!p || p.kind !== m.kind || p.description !== m.description) bad.push(key);
    else if (!moves(m) && JSON.stringify(p.value) !== JSON.stringify(m.value)) bad.push(key);
  }
  return bad;
}

/** until() that says what was still wrong. */
async function settle(look) {
  let bad;
  await until(async () => (bad = await look()).length === 0).catch((e) => {
    throw new Error(`${e.message}: ${bad.slice(0, 10).join('; ')}`);
  });
}

for (const protocol of PROTOCOLS) {
  test(`metrics have the values of /metrics, ${protocol}`, async (t) => {
    const c = await collector(t);
    const { url } = await serving(t, {
      endpoint: c.url, protocol, traces: false, metrics: true, metricsSeconds: 1,
      headers: { 'x-key': SECRET }, resourceAttributes: 'team=a',
    });
    const before = BigInt(Date.now()) * 1000000n;
    const call = await calling(t, url);
    await call(7);
    await settle(async () => differences(read(await metrics(url)), newest(c)));
    assert.deepEqual(c.problems, []);
    const page = read(await metrics(url));
    assert.ok([...page.values()].some((m) => m.kind === 'histogram' && m.value.count >= 7));
    assert.ok([...page.values()].some((m) => m.kind === 'counter' && m.value >= 7));
    for (const [key, p] of newest(c)) assert.ok(page.has(key), `${key} is not in /metrics`);
    const [first] = c.points;
    assert.deepEqual([first.resource['service.name'], first.resource.team, first.scope], ['mcp-orchestrator', 'a', 'mcp-orchestrator']);
    assert.equal(new Set(c.points.map(instanceOf)).size, INSTANCES);
    assert.equal(c.heads[0].path, '/v1/metrics');
    assert.equal(c.heads[0]['x-key'], SECRET);
    assert.equal(c.sent('traces') + c.sent('logs'), 0);
    const counted = c.points.filter((p) => p.kind !== 'gauge');
    assert.equal(new Set(counted.map((p) => `${instanceOf(p)} ${p.start}`)).size, INSTANCES, 'one start for all');
    for (const { start } of counted) assert.ok(before - start < 180n * 1000000000n);
    assert.equal(newest(c).get(keyOf('mo_http_request_seconds', { route: '/mcp' })).unit, 's');
    assert.equal(newest(c).get(keyOf('process_resident_memory_bytes', {})).unit, 'By');

    // Cumulative: the next values contain the ones before.
    const calls = (m) => m.get(keyOf('mo_http_requests_total', { route: '/mcp', status: '200' })).value;
    const was = calls(newest(c));
    await call(3);
    await until(() => calls(newest(c)) >= was + 3);
    await until(async () => count(await metrics(url), 'mo_metric_points_sent_total') > 0);
    assert.equal(count(await metrics(url), 'mo_metric_points_dropped_total'), 0);
    assert.deepEqual(c.problems, []);
  });

  test(`the lines of the log, ${protocol}`, async (t) => {
    const c = await collector(t);
    const serve = await serving(t, { endpoint: c.url, protocol, sample: 0, logs: true, headers: { 'x-key': '${env:OTLP_KEY}' } },
      { log: { level: 'info,gateway=debug' }, env: { OTLP_KEY: SECRET } });
    const call = await calling(t, serve.url, { traceparent: PARENT });
    await call();
    await fetch(new URL(`/api/${SECRET}`, serve.url));
    await until(() => c.lines.some((l) => l.text.includes('[secret]')) && c.lines.some((l) => l.trace) && c.spans.length > 0);
    const { log } = await serve.stop();
    assert.deepEqual(c.problems, []);

    // The span of a line is one that was exported.
    const traced = c.lines.filter((l) => l.trace);
    for (const l of traced) {
      assert.equal(l.trace, TRACE);
      assert.ok(c.spans.some((s) => s.id === l.span && s.name.startsWith('tools/call')), l.text);
      assert.deepEqual([l.is['mcp_orchestrator.server'], l.is['gen_ai.tool.name']], ['fixture', 'echo']);
    }
    const access = c.lines.find((l) => l.text === 'POST /mcp' && l.is['http.response.status_code'] === 200);
    assert.deepEqual([access.level, access.is['mcp_orchestrator.room'], access.is['http.response.status_code']], ['INFO', 'access', 200]);
    assert.ok(access.is['mcp_orchestrator.seconds'] > 0 && access.is['mcp_orchestrator.request'] > 0);
    assert.match(access.is['client.address'], /^127\.0\.0\.1:\d+$/);
    for (const body of c.bodies) assert.ok(!body.includes(SECRET));
    assert.ok(!log.includes(SECRET));

    // Standard error and the collector have the same lines, but for the very end.
    const shape = (at, level, room, text) => [Number(at), level, room, text].join(' ');
    const all = linesOf(log).filter((l) => l.room !== 'trace');
    const both = (instance) => {
      const sent = c.lines.filter((l) => instanceOf(l) === instance)
        .map((l) => shape(l.at / 1000000n, l.level, l.is['mcp_orchestrator.room'], l.text));
      const first = all.find((l) => shape(Date.parse(l.ts), l.level.toUpperCase(), l.room, l.msg) === sent[0]);
      const written = all.filter((l) => l.worker === first.worker).map((l) => shape(Date.parse(l.ts), l.level.toUpperCase(), l.room, l.msg));
      return { worker: first.worker, sent, written: written.slice(written.indexOf(sent[0])) };
    };
    const seen = () => [...new Set(c.lines.map(instanceOf))].map(both);
    await until(() => seen().every(({ sent, written }) => written.length - sent.length <= 2)); // the last may still be unread here
    for (const { sent, written } of seen()) assert.deepEqual(sent, written.slice(0, sent.length));
    assert.equal(seen().length, INSTANCES);
    assert.equal(new Set(seen().map((s) => s.worker)).size, INSTANCES);
    assert.ok(c.lines.length >= 5);
  });
}

test('the last values are sent at the end', async (t) => {
  const c = await collector(t);
  const serve = await serving(t, { endpoint: c.url, metrics: true, metricsSeconds: 3600 });
  await (await calling(t, serve.url))(5);
  const page = read(await metrics(serve.url));
  assert.equal(c.sent('metrics'), 0);
  await serve.stop();
  await until(() => c.sent('metrics') >= INSTANCES); // they may still be unread here
  assert.equal(c.sent('metrics'), INSTANCES);
  assert.deepEqual(c.problems, []);
  const key = [...page.keys()].find((k) => /^mo_gateway_calls_total /.test(k) || /^mo_gateway_.*_total /.test(k));
  assert.ok(key);
  assert.equal(newest(c).get(key).value, page.get(key).value);
});

test('over stdio: lines of a short life, and no metrics', async (t) => {
  const c = await collector(t);
  const place = new Place({ fixture: fixtureServer() }, { telemetry: { endpoint: c.url, metrics: true, logs: true } });
  t.after(() => place.close());
  const it = client1();
  await it.client.connect(new StdioClientTransport({ ...place.command(), stderr: 'ignore' }));
  await it.call({ name: 'echo', arguments: { text: 'x' } });
  await it.client.close(); // what waits is exported at the end
  await until(() => c.lines.some((l) => l.text.startsWith('started: ')) && c.lines.some((l) => l.is['mcp_orchestrator.server'] === 'fixture'));
  assert.equal(c.sent('metrics'), 0);
  assert.deepEqual(c.problems, []);
});

test('each worker is an instance of its own', async (t) => {
  const c = await collector(t);
  await serving(t, { endpoint: c.url, metrics: true, metricsSeconds: 1 }, { args: ['--workers', '2'] });
  await until(() => new Set(c.points.map(instanceOf)).size === 2);
  assert.deepEqual(c.problems, []);
});

test('off: nothing is sent, and nothing is counted', async (t) => {
  const c = await collector(t);
  for (const telemetry of [{ metrics: true, logs: true }, { endpoint: c.url, traces: false }, { endpoint: c.url, sample: 0 }]) {
    const serve = await serving(t, telemetry);
    await (await calling(t, serve.url))();
    const page = await metrics(serve.url);
    assert.doesNotMatch(page, /^mo_(metric|log)_/m);
    assert.equal(/^mo_trace_/m.test(page), telemetry.sample === 0);
    await serve.stop();
  }
  assert.deepEqual(c.heads, []);
});

for (const [name, mood] of [['hangs', 'hang'], ['refuses', 400], ['says later', { status: 503, headers: { 'retry-after': '60' } }]]) {
  test(`a collector that ${name} costs nothing but points and lines`, async (t) => {
    const c = await collector(t, mood);
    const serve = await serving(t, { endpoint: c.url, traces: false, metrics: true, metricsSeconds: 1, logs: true });
    const call = await calling(t, serve.url);
    await until(async () => c.sent('metrics') > 0 && c.sent('logs') > 0);
    for (let i = 0; i < 20; i++) await call();
    const page = await metrics(serve.url);
    assert.equal(count(page, 'mo_metric_points_sent_total'), 0);
    assert.equal(count(page, 'mo_log_records_sent_total'), 0);
    assert.ok(count(page, 'mo_log_records_waiting') + count(page, 'mo_log_records_dropped_total') > 0);
    if (mood === 400) {
      await until(async () => {
        const now = await metrics(serve.url);
        return count(now, 'mo_metric_points_dropped_total') > 0 && count(now, 'mo_log_records_dropped_total') >= 20
          && count(now, 'mo_log_exports_failed_total') > 0 && count(now, 'mo_metric_exports_failed_total') > 0;
      });
    }
    const { log } = await serve.stop();
    assert.match(log, /\d+ lines of the log were not exported/);
    // A failure is logged once, and its line is not a line to export.
    for (const what of ['metrics', 'logs']) assert.ok((log.match(new RegExp(`${what} cannot be exported`, 'g')) ?? []).length <= INSTANCES);
    assert.ok(log.includes('cannot be exported') || mood === 'hang');
    for (const body of c.bodies) assert.ok(!body.includes('cannot be exported'));
  });
}

test('nobody listens there: the lines of the failure feed nothing', async (t) => {
  const serve = await serving(t, { endpoint: 'http://127.0.0.1:1', traces: false, metrics: true, metricsSeconds: 1, logs: true },
    { log: { level: 'debug' } });
  await (await calling(t, serve.url))();
  await until(async () => count(await metrics(serve.url), 'mo_log_exports_failed_total') >= 2);
  const { log } = await serve.stop();
  const lines = linesOf(log);
  const dropped = [...log.matchAll(/(\d+) lines of the log were not exported/g)].map(([, n]) => Number(n));
  assert.equal(dropped.length, INSTANCES);
  assert.ok(dropped.every((n) => n > 0));
  assert.ok(dropped.reduce((sum, n) => sum + n, 0) <= lines.filter((l) => l.room !== 'trace').length, 'more than were written');
  assert.equal(lines.filter((l) => /logs cannot be exported/.test(l.msg)).length, INSTANCES);
});
