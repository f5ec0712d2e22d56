// The box of a conversation asks about hosts: the person decides on a card.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';

import { Hosts } from '../lib/egress.mjs';
import { noNative } from '../lib/sessions.mjs';
import { until } from './server.mjs';
import { House, run } from './talk_kit.mjs';

const skip = noNative ? `needs ${noNative}` : !existsSync('/usr/bin/curl') && 'needs /usr/bin/curl';

describe('a conversation whose box asks', { skip }, () => {
  const sites = new Hosts();
  const hosts = {};
  let house, port;

  before(async () => {
    for (const n of ['a', 'b', 'c', 'd', 'e']) hosts[`${n}.ask`] = '127.0.0.1';
    port = await sites.http((q, r) => r.end(`hello ${q.headers.host.split(':')[0]}`));
    house = await House.start({ hosts, config: {
      sandbox: { driver: 'native', warm: 0, network: { allow: [`127.0.0.1:${port}`], ask: true } },
      // allows every tool of the box, and no connection
      approvals: { rules: [{ server: 'box', action: 'allow' }] },
    } });
  });
  after(async () => {
    sites.close();
    await house.stop();
  });

  /** Lets the model run curl; resolves to what curl printed. */
  async function curl(tab, host) {
    const outputs = tab.count('tool:output');
    house.model.script.push({ calls: [run(`curl -sS http://${host}:${port}/x; echo " exit $?"`)] }, { text: 'seen' });
    await tab.say('look');
    const [out] = await tab.event('tool:output', outputs + 1);
    return JSON.parse(out).map((c) => c.text).join('');
  }
  const card = async (tab, n) => (await tab.event('network:approval_required', n))[0];

  test('a card, also in a tab that comes later; a yes goes on', async () => {
    const tab = house.tab();
    await tab.ready();
    const said = curl(tab, 'a.ask');
    const shown = await card(tab);
    assert.deepEqual([shown.name, shown.server, shown.args, shown.request, shown.program, shown.tls, shown.approver],
      ['network:connect', 'box', { host: 'a.ask', port }, 'GET /x', '/usr/bin/curl', false, 'owner']);
    const later = house.tab({ session: tab.session });
    assert.deepEqual(await card(later), shown);
    assert.equal((await tab.emit('tool:approval', { callId: shown.callId, approved: true, digest: 'x' })).ok, false);
    const edit = { callId: shown.callId, approved: true, digest: shown.digest, args: { host: 'b.ask', port } };
    assert.equal((await tab.emit('tool:approval', edit)).code, 'bad_request');
    const { body } = await house.get('/api/approvals');
    assert.deepEqual(body.approvals.map((k) => [k.id, k.session]), [[shown.callId, tab.session]]);
    const yes = { callId: shown.callId, approved: true, digest: shown.digest };
    assert.deepEqual(await later.emit('tool:approval', yes), { ok: true });
    assert.match(await said, /^hello a.ask exit 0/);
    assert.deepEqual(await tab.event('network:resolved'), [{ callId: shown.callId, approved: true, by: 'person' }]);
    assert.equal((await tab.emit('tool:approval', yes)).code, 'unknown_call');
    later.close();
  });

  test('the hosts it talked to, for the page and in the metrics', async () => {
    const tab = house.tab();
    await tab.ready();
    let said = curl(tab, 'a.ask');
    await tab.decide(await card(tab), true);
    assert.match(await said, /^hello a.ask exit 0/);
    said = curl(tab, 'e.ask');
    await tab.decide(await card(tab, 2), false);
    assert.match(await said, /exit (56|52|7)/);
    let found;
    await until(async () => {
      found = (await house.get(`/api/sessions/${tab.session}/connections`)).body;
      return found.connections.length === 2;
    }, 'two lines');
    const [no, yes] = found.connections.toSorted((a, b) => b.host.localeCompare(a.host));
    assert.deepEqual([yes.host, yes.port, yes.allowed, yes.rule, yes.count], ['a.ask', port, true, 'ask: once', 1]);
    assert.ok(yes.sent > 50 && yes.received > 50 && yes.last >= yes.first && yes.first > Date.now() - 60_000);
    assert.deepEqual([no.host, no.allowed, no.reason, no.received], ['e.ask', false, 'denied by a person', 0]);
    const text = (await (await fetch(`${house.server.url}/metrics`)).text()).replaceAll(/\{worker="\d+",/g, '{');
    const metric = (name) => text.split('\n').filter((l) => l.startsWith(`${name} `)).reduce((n, l) => n + Number(l.slice(name.length)), 0);
    assert.ok(metric('mo_box_connections_total{server="box",rule="ask: once",outcome="allowed"}') >= 1);
    assert.ok(metric('mo_box_connections_total{server="box",rule="other",outcome="refused"}') >= 1);
    assert.ok(metric('mo_box_bytes_total{server="box",rule="ask: once",direction="received"}') > 50);
    await fetch(`${house.server.url}/api/sessions/${tab.session}?forget=true`, { method: 'DELETE' });
    await until(async () => (await house.get(`/api/sessions/${tab.session}/connections`)).body.connections.length === 0, 'its end');
  });

  test('a no fails at once; this session', async () => {
    const tab = house.tab();
    await tab.ready();
    let said = curl(tab, 'b.ask');
    await tab.decide(await card(tab), false);
    assert.match(await said, /exit (56|52|7)/);
    said = curl(tab, 'c.ask');
    const second = await card(tab, 2);
    assert.deepEqual(await tab.decide(second, true, { remember: 'session' }), { ok: true, remembered: true });
    assert.match(await said, /^hello c.ask exit 0/);
    assert.match(await curl(tab, 'c.ask'), /^hello c.ask exit 0/);
    assert.equal(tab.count('network:approval_required'), 2);
    const other = house.tab(); // another session asks again
    await other.ready();
    said = curl(other, 'c.ask');
    await other.decide(await card(other), false);
    assert.match(await said, /exit (56|52|7)/);
  });

  test('always holds for other sessions, after a restart, until the rule is removed', async () => {
    const tab = house.tab();
    await tab.ready();
    const said = curl(tab, 'd.ask');
    await tab.decide(await card(tab), true, { remember: 'always' });
    assert.match(await said, /^hello d.ask exit 0/);
    await house.kill();
    await house.up();
    const again = house.tab();
    await again.ready();
    assert.match(await curl(again, 'd.ask'), /^hello d.ask exit 0/);
    assert.equal(again.count('network:approval_required'), 0);
    const { rules } = (await house.get('/api/rules')).body;
    assert.deepEqual(rules.map((r) => [r.server, r.tool, r.action, r.args]),
      [['box', 'network:connect', 'allow', { host: '= d.ask', port: String(port) }]]);
    await fetch(`${house.server.url}/api/rules/${rules[0].id}`, { method: 'DELETE' });
    const asked = curl(again, 'd.ask');
    await again.decide(await card(again), false);
    assert.match(await asked, /exit (56|52|7)/);
  });
});

describe('several persons', { skip }, () => {
  const TOKENS = { operator: 'the-operator-0123456789abcdef', alice: 'alice-has-this-0123456789abcdef', bob: 'bob-has-another-0123456789abcdef' };
  const headers = Object.fromEntries(Object.entries(TOKENS).map(([who, t]) => [who, { authorization: `Bearer ${t}` }]));
  const sites = new Hosts();
  let house, port;
  before(async () => {
    port = await sites.http((q, r) => r.end('hello'));
    house = await House.start({
      headers: headers.operator,
      hosts: { 'a.ask': '127.0.0.1', 'op.ask': '127.0.0.1' },
      config: {
        server: { token: TOKENS.operator, tokens: { alice: TOKENS.alice, bob: TOKENS.bob } },
        sandbox: { driver: 'native', warm: 0, network: { allow: [`127.0.0.1:${port}`], ask: true } },
        approvals: { rules: [
          { tool: 'network:connect', args: { host: 'op.ask' }, action: 'ask', approver: 'operator' },
          { server: 'box', action: 'allow' }] },
      },
    });
  });
  after(async () => {
    sites.close();
    await house.stop();
  });

  const at = (who, path, json) => fetch(`http://127.0.0.1:${house.server.port}${path}`, {
    headers: headers[who], ...(json && { method: 'POST', body: JSON.stringify(json) }) });
  const list = async (who) => (await (await at(who, '/api/approvals')).json()).approvals.map((k) => k.id);

  test('the owner of the session decides, or the operator; nobody else sees it', async () => {
    const tab = house.tab({ headers: headers.alice });
    await tab.ready();
    const curl = (host) => house.model.script.push({ calls: [run(`curl -sS http://${host}:${port}/; echo " exit $?"`)] }, { text: 'seen' });
    curl('a.ask');
    await tab.say('look');
    const [card] = await tab.event('network:approval_required');
    const yes = { approved: true, digest: card.digest };
    assert.deepEqual([await list('alice'), await list('bob'), await list('operator')], [[card.callId], [], [card.callId]]);
    assert.equal((await at('bob', `/api/approvals/${card.callId}`, yes)).status, 404);
    assert.equal((await at('bob', `/api/sessions/${tab.session}/connections`)).status, 404);
    assert.equal((await at('alice', `/api/approvals/${card.callId}`, { ...yes, remember: 'always' })).status, 403);
    assert.equal((await tab.emit('tool:approval', { callId: card.callId, ...yes, remember: 'always' })).code, 'operator_only');
    assert.equal((await tab.emit('tool:approval', { callId: card.callId, ...yes })).ok, true);
    const [out] = await tab.event('tool:output');
    assert.match(out, /hello exit 0/);
    await tab.event('agent:response');

    curl('op.ask');
    await tab.say('look there');
    const [second] = await tab.event('network:approval_required', 2);
    assert.equal(second.approver, 'operator');
    const refused = await tab.emit('tool:approval', { callId: second.callId, approved: true, digest: second.digest });
    assert.equal(refused.ok, false);
    assert.equal((await at('operator', `/api/approvals/${second.callId}`, { approved: true, digest: second.digest })).status, 200);
    assert.match((await tab.event('tool:output', 2))[0], /hello exit 0/);
    let row; // who decided is in the log
    await until(async () => {
      row = (await (await at('operator', '/api/audit?q=op.ask')).json()).rows.map((r) => r.what).find((w) => w.kind === 'decision');
      return row;
    }, 'the row');
    assert.deepEqual([row.host, row.action, row.by, row.session], [`op.ask:${port}`, 'allow', 'person', tab.session]);
    assert.ok(row.decidedBy && row.door);
  });
});
