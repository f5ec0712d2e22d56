// The dashboard and the alert rules of deploy/monitoring: every query is PromQL, by
// Prometheus' own grammar, and names only metrics and labels of /metrics.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';

import { collector } from '../lib/collector.mjs';
import { fixtureServer, metricsOf, Place } from '../lib/gateway.mjs';
import { client1, until } from '../lib/mcp_talk.mjs';

const file = (name) => readFileSync(new URL(`../../deploy/monitoring/${name}`, import.meta.url), 'utf8');
const SCRAPED = ['instance', 'job']; // labels that Prometheus adds

/** Metrics with the labels that a query asks of them, and all it groups by. */
function read(query) {
  const text = query.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*');
  const found = { metrics: [], labels: [] };
  parser.parse(text).iterate({
    enter: (node) => {
      const said = text.slice(node.from, node.to);
      assert.ok(!node.type.isError, `${query}: not PromQL at ${node.from}`);
      if (node.name === 'Identifier' && node.node.parent.name === 'VectorSelector') found.metrics.push(said);
      if (node.name === 'LabelName') found.labels.push(said);
    },
  });
  assert.ok(found.metrics.length > 0, query);
  return found;
}

/** name -> set of labels, as a scrape has them. */
function scraped(page) {
  const all = new Map();
  for (const line of page.split('\n')) {
    const m = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? /.exec(line);
    if (!m) continue;
    if (!all.has(m[1])) all.set(m[1], new Set(SCRAPED));
    for (const [, label] of (m[2] ?? '').matchAll(/(\w+)="/g)) all.get(m[1]).add(label);
  }
  return all;
}

/** /metrics of a server that has done a little of everything that is counted. */
async function page(t) {
  const c = await collector(t);
  const place = new Place({ fixture: fixtureServer() }, {
    telemetry: { endpoint: c.url }, budgets: { people: { '*': { callsPerMinute: 2 } } },
  });
  t.after(() => place.close());
  const serve = await place.serve();
  t.after(() => serve.stop());
  const it = client1();
  await it.client.connect(new Http1(serve.url));
  t.after(() => it.client.close());
  for (const name of ['echo', 'test_error_handling', 'echo']) await it.call({ name, arguments: { text: 'x' } }).catch(() => {});
  const get = () => metricsOf(serve.url);
  await until(async () => (await get()).includes('mo_gateway_errors_total{'));
  return get();
}

test('every query names metrics and labels that exist', async (t) => {
  const dashboard = JSON.parse(file('dashboard.json'));
  const rules = parse(file('alerts.yaml')).groups.flatMap((g) => g.rules);
  const queries = [
    ...dashboard.panels.flatMap((p) => (p.targets ?? []).map((q) => q.expr)),
    ...rules.map((r) => r.expr),
  ];
  assert.ok(queries.length > 30);
  const all = scraped(await page(t));
  for (const query of queries) {
    const { metrics, labels } = read(query);
    for (const m of metrics) assert.ok(all.has(m), `${m} is not in /metrics: ${query}`);
    for (const l of labels) assert.ok(metrics.every((m) => all.get(m).has(l)), `no label ${l}: ${query}`);
  }
});

test('the files have what Grafana and Prometheus need', () => {
  const { panels, templating } = JSON.parse(file('dashboard.json'));
  assert.equal(new Set(panels.map((p) => p.id)).size, panels.length);
  for (const p of panels) assert.ok(p.title && p.gridPos.x + p.gridPos.w <= 24, p.title);
  const known = new Set([...templating.list.map((v) => v.name), '__rate_interval']);
  for (const [, name] of file('dashboard.json').matchAll(/\$\{?(\w+)/g)) assert.ok(known.has(name), name);
  const rules = parse(file('alerts.yaml')).groups.flatMap((g) => g.rules);
  assert.equal(new Set(rules.map((r) => r.alert)).size, rules.length);
  for (const r of rules) {
    assert.match(r.for, /^\d+m$/);
    assert.match(r.labels.severity, /^(info|warning|critical)$/);
    assert.ok(r.annotations.summary && r.annotations.description, r.alert);
  }
});
