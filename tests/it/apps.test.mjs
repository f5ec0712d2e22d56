// Apps of servers (MCP Apps, SEP-1865) in conversations: an SDK server alone, and
// two of them with the same tools and URIs.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { until } from './server.mjs';
import { House } from './talk_kit.mjs';
import { Place } from '../lib/gateway.mjs';

const SCRIPT = fileURLToPath(new URL('apps_server.mjs', import.meta.url));
const server = (name, ...args) => ({ command: process.execPath, args: [SCRIPT, ...args], env: { MO_NAME: name } });
const URI = 'ui://app/view';
const CSP = {
  connectDomains: ['https://api.example.com', 'https://evil.example.net', "https://x.example.com; script-src *"],
  resourceDomains: ['https://cdn.example.com'], frameDomains: ['https://*.frames.example.com'],
};

let house;
const start = async (mcpServers, more = {}) => {
  house = await House.start({
    config: {
      llm: { provider: 'claude', model: 'claude-sonnet-5-5', tools: 'all' },
      mcpServers,
      approvals: { rules: [
        { tool: 'note', args: { text: 'forbidden*' }, action: 'deny', reason: 'not that word' },
        { server: '*', annotations: ['readOnlyHint'], action: 'allow' },
      ] },
      ...more,
    },
  });
};
const stop = async () => {
  house.server.fresh.fds += 48; // the servers stay open for the next conversation
  house.server.fresh.children += 4;
  await house.stop();
};
const post = async (tab, what, body) => {
  const answer = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}/apps/${what}`,
    { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  return { status: answer.status, body: await answer.json() };
};
const frame = (csp) => fetch(`http://127.0.0.1:${house.server.port}/app-frame${csp === undefined ? '' : `?csp=${encodeURIComponent(JSON.stringify(csp))}`}`);
const policyOf = (answer) => Object.fromEntries(answer.headers.get('content-security-policy').split('; ').map((d) => {
  const [name, ...sources] = d.split(' ');
  return [name, sources.join(' ')];
}));
/** Lets the model call a tool; the event of its result. */
async function called(tab, name, args = {}) {
  const n = tab.count('tool:output') + 1;
  const said = tab.count('agent:response') + 1;
  house.model.script.push({ calls: [{ name, args }] }, { text: 'ok' });
  await tab.say('go');
  const [content, meta] = await tab.event('tool:output', n);
  await tab.event('agent:response', said);
  return { content: JSON.parse(content), meta };
}
const rows = async () => (await house.get('/api/audit?limit=100')).body.rows;

describe('one server', () => {
  before(() => start({ apps: server('apps', '', JSON.stringify(CSP)) }, { apps: { domains: ['https://api.example.com', '*.frames.example.com'] } }));
  after(stop);

  test('it is told that apps can be shown', async () => {
    const tab = house.tab();
    await tab.ready();
    const { content } = await called(tab, 'apps_caps');
    assert.deepEqual(JSON.parse(content[0].text), { mimeTypes: ['text/html;profile=mcp-app'] });
  });

  test('a result says which app shows it, and what only the app gets', async () => {
    const tab = house.tab();
    await tab.ready();
    const { content, meta } = await called(tab, 'apps_show', { city: 'Oslo' });
    assert.equal(content[0].text, 'as text: Oslo');
    assert.deepEqual([meta.app.server, meta.app.tool, meta.app.uri], ['apps', 'show', URI]);
    assert.deepEqual(meta.app.structuredContent, { city: 'Oslo', of: 'apps' });
    assert.equal(meta.app._meta['test/view'], 7);
    assert.doesNotMatch(JSON.stringify(house.model.requests.at(-1).body), /structuredContent|test\/view/);
    assert.equal((await called(tab, 'apps_old_show')).meta.app.uri, URI);
    assert.equal((await called(tab, 'apps_caps')).meta.app, undefined);
    const big = (await called(tab, 'apps_big')).meta.app;
    assert.deepEqual([big.cut, big.structuredContent], [true, undefined]);

    const again = house.tab({ session: tab.session });
    const { history } = await again.ready();
    const kept = history.messages.flatMap((e) => e.results ?? []).find((r) => r.name === 'apps_show');
    assert.deepEqual(kept.app.structuredContent, { city: 'Oslo', of: 'apps' });
  });

  test('tools for apps only are not offered to the model, nor run for it', async () => {
    const tab = house.tab();
    const { ready } = await tab.ready();
    assert.equal(ready.tools.find((x) => x.name === 'apps_refresh').appOnly, true);
    const { content, meta } = await called(tab, 'apps_refresh');
    assert.equal(meta.isError, true);
    assert.match(content[0].text, /There is no tool/);
    const offered = house.model.requests.at(-1).body.tools.map((x) => x.name);
    assert.ok(offered.includes('apps_show') && offered.includes('apps_private'));
    assert.ok(!offered.includes('apps_refresh'));
  });

  test('an app reads its page and resources of its server', async () => {
    const tab = house.tab();
    await tab.ready();
    const page = await post(tab, 'resource', { server: 'apps', app: URI, uri: URI });
    assert.equal(page.status, 200, JSON.stringify(page.body));
    assert.equal(page.body.result.contents[0].mimeType, 'text/html;profile=mcp-app');
    assert.deepEqual(page.body.ui.csp, CSP);
    assert.deepEqual(page.body.refused, ['https://cdn.example.com', 'https://evil.example.net', 'https://x.example.com; script-src *']);
    const data = await post(tab, 'resource', { server: 'apps', app: URI, uri: 'data://rows' });
    assert.equal(data.body.result.contents[0].text, 'rows of apps');
  });

  test('an app calls tools; a person approves where the rules ask', async () => {
    const tab = house.tab();
    await tab.ready();
    const ask = { server: 'apps', app: URI };
    const free = await post(tab, 'call', { ...ask, tool: 'refresh' });
    assert.equal(free.body.state, 'done', JSON.stringify(free.body));
    assert.match(free.body.result.content[0].text, /refreshed/);

    const text = `milk ${tab.session}`;
    const first = await post(tab, 'call', { ...ask, tool: 'note', arguments: { text } });
    assert.equal(first.body.state, 'ask');
    assert.deepEqual([first.body.name, first.body.args], ['apps_note', { text }]);
    const { digest } = first.body;
    const other = await post(tab, 'call', { ...ask, tool: 'note', arguments: { text: 'other' }, digest });
    assert.equal(other.body.state, 'ask', 'a digest is of one call');
    const again = await post(tab, 'call', { ...ask, tool: 'note', arguments: { text }, digest });
    assert.equal(again.body.state, 'ask', 'a question is answered once, also wrongly');
    const yes = await post(tab, 'call', { ...ask, tool: 'note', arguments: { text }, digest: again.body.digest });
    assert.equal(yes.body.state, 'done');
    assert.match(yes.body.result.content[0].text, new RegExp(text));
    const twice = await post(tab, 'call', { ...ask, tool: 'note', arguments: { text }, digest: again.body.digest });
    assert.equal(twice.body.state, 'ask');

    const denied = await post(tab, 'call', { ...ask, tool: 'note', arguments: { text: 'forbidden fruit' } });
    assert.deepEqual(denied.body, { state: 'denied', reason: 'not that word' });
    const bad = await post(tab, 'call', { ...ask, tool: 'count', arguments: { n: 'x' } });
    assert.equal(bad.body.state, 'denied');
    assert.match(bad.body.reason, /schema/);
    const not = await post(tab, 'call', { ...ask, tool: 'private' });
    assert.deepEqual(not.body, { state: 'denied', reason: 'this tool is not for apps' });

    let log = [];
    await until(async () => {
      log = (await rows()).map((r) => r.what).filter((r) => r.app === URI && r.tool === 'note' && r.session === tab.session);
      return log.length === 2;
    }, 'one row before it runs, one with the outcome');
    assert.ok(log.every((r) => r.by === 'person' && r.server === 'apps'), JSON.stringify(log));
  });

  test('a tool that the person switched off is off for apps, too', async () => {
    const tab = house.tab();
    await tab.ready();
    await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}/tools`,
      { method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ off: [{ server: 'apps', tool: 'apps_refresh' }] }) });
    const off = await post(tab, 'call', { server: 'apps', app: URI, tool: 'refresh' });
    assert.equal(off.body.state, 'denied');
    assert.match(off.body.reason, /switched/);
  });

  test('what is not of an app is refused', async () => {
    const tab = house.tab();
    await tab.ready();
    for (const [what, body, status] of [
      ['call', {}, 400],
      ['call', { server: 'apps', app: URI }, 400],
      ['call', { server: 'apps', app: URI, tool: 'refresh', arguments: [] }, 400],
      ['resource', { server: 'apps', app: URI }, 400],
      ['call', { server: 'apps', app: 'ui://other/view', tool: 'refresh' }, 404],
      ['call', { server: 'nobody', app: URI, tool: 'refresh' }, 404],
      ['call', { server: 'apps', app: URI, tool: 'nothing' }, 404],
      ['resource', { server: 'apps', app: 'ui://other/view', uri: URI }, 404],
    ])
      assert.equal((await post(tab, what, body)).status, status, `${what} ${JSON.stringify(body)}`);
    assert.equal((await post({ session: 'nobody' }, 'call', { server: 'apps', app: URI, tool: 'refresh' })).status, 409);
  });

  test('the frame has no origin, and only granted domains', async () => {
    const answer = await frame(CSP);
    assert.equal(answer.status, 200);
    const policy = policyOf(answer);
    assert.equal(policy.sandbox, 'allow-scripts allow-forms');
    assert.equal(policy['default-src'], "'none'");
    assert.equal(policy['connect-src'], 'data: blob: https://api.example.com');
    assert.equal(policy['frame-src'], 'https://*.frames.example.com');
    assert.equal(policy['script-src'], "'unsafe-inline' 'unsafe-eval' blob: data:");
    assert.equal(policy['frame-ancestors'], "'self'");
    assert.match(await answer.text(), /sandbox/);
    assert.equal(answer.headers.get('connection-allowlist'), '("*://*:*/*");webrtc=block');
    assert.equal((await frame()).headers.get('connection-allowlist'), '();webrtc=block');
    for (const odd of [undefined, null, [], 'x', { connectDomains: 'https://api.example.com' }, { connectDomains: [{}, 1, null, '*', "'self'", 'https://api.example.com\r\nX: y'] }]) {
      const p = policyOf(await frame(odd));
      assert.equal(p['connect-src'], 'data: blob:', JSON.stringify(odd));
      assert.equal(p['frame-src'], "'none'");
    }
    const plain = await fetch(`http://127.0.0.1:${house.server.port}/app.html`);
    assert.equal(policyOf(plain)['sandbox'], 'allow-scripts');
  });
});

describe('two servers with the same names and URIs', () => {
  before(() => start({ one: server('one'), two: server('two') }));
  after(stop);

  test('each app belongs to its own server', async () => {
    const tab = house.tab();
    await tab.ready();
    for (const name of ['one', 'two']) {
      const { meta } = await called(tab, `${name}_show`);
      assert.deepEqual([meta.app.server, meta.app.uri, meta.app.structuredContent.of], [name, URI, name]);
      const page = await post(tab, 'resource', { server: name, app: URI, uri: URI });
      assert.equal(page.body.result.contents[0].text, `<p>${name}`);
      const data = await post(tab, 'resource', { server: name, app: URI, uri: 'data://rows' });
      assert.equal(data.body.result.contents[0].text, `rows of ${name}`);
      const exposed = page.body.result.contents[0].uri;
      const same = await post(tab, 'resource', { server: name, app: URI, uri: exposed });
      assert.equal(same.body.result.contents[0].text, `<p>${name}`, exposed);
      const call = await post(tab, 'call', { server: name, app: URI, tool: 'show', arguments: { city: 'x' } });
      assert.equal(call.body.result.structuredContent.of, name);
    }
    const foreign = await post(tab, 'resource', { server: 'one', app: URI, uri: 'two+data://rows' });
    assert.notEqual(foreign.body.result?.contents?.[0]?.text, 'rows of two');
  });
});

describe('a gateway between, which has the server twice', () => {
  let twins;
  before(() => {
    twins = new Place({ one: server('one'), two: server('two') });
    const { command, args, env } = twins.command();
    return start({ gw: { command, args, env } });
  });
  after(async () => {
    await stop();
    twins.close();
  });

  test("an app calls its server's tools and reads its resources by their own names", async () => {
    const tab = house.tab();
    await tab.ready();
    for (const name of ['one', 'two']) {
      const { meta } = await called(tab, `gw_${name}_show`);
      assert.deepEqual([meta.app.server, meta.app.uri], ['gw', `ui://${name}/+${URI}`]);
      const page = await post(tab, 'resource', { server: 'gw', app: meta.app.uri, uri: meta.app.uri });
      assert.equal(page.body.result.contents[0].text, `<p>${name}`);
      const data = await post(tab, 'resource', { server: 'gw', app: meta.app.uri, uri: 'data://rows' });
      assert.equal(data.body.result.contents[0].text, `rows of ${name}`);
      const call = await post(tab, 'call', { server: 'gw', app: meta.app.uri, tool: 'show', arguments: { city: 'x' } });
      assert.equal(call.body.result.structuredContent.of, name);
      const none = await post(tab, 'call', { server: 'gw', app: meta.app.uri, tool: 'nothing', arguments: {} });
      assert.equal(none.status, 404);
    }
  });
});

describe('large apps', () => {
  const MIB = 1024 * 1024;
  let dir;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-apps-'));
    await writeFile(join(dir, 'large.html'), `<p>${'"\n'.repeat(3 * MIB)}`); // twice as long in JSON
    await writeFile(join(dir, 'larger.html'), `<p>${'x'.repeat(16 * MIB)}`);
    await start({ large: server('large', join(dir, 'large.html')), larger: server('larger', join(dir, 'larger.html')) });
  });
  after(async () => {
    await stop();
    await rm(dir, { recursive: true });
  });

  test('an app of 6 MiB is whole; one over the limit is refused with the reason', async () => {
    const tab = house.tab();
    await tab.ready();
    for (const name of ['large', 'larger']) await called(tab, `${name}_show`);
    const page = await post(tab, 'resource', { server: 'large', app: URI, uri: URI });
    assert.equal(page.status, 200, JSON.stringify(page.body).slice(0, 300));
    assert.equal(page.body.result.contents[0].text, await readFile(join(dir, 'large.html'), 'utf8'));
    const no = await post(tab, 'resource', { server: 'larger', app: URI, uri: URI });
    assert.notEqual(no.status, 200);
    assert.match(JSON.stringify(no.body), /too (big|long)|limit|longer|larger/);
    assert.equal((await post(tab, 'resource', { server: 'larger', app: URI, uri: 'data://rows' })).body.result.contents[0].text, 'rows of larger');
  });
});

describe('apps that are switched off', () => {
  before(() => start({ apps: { ...server('apps'), scope: 'session' } }, { apps: { enabled: false } }));
  after(stop);

  test('servers are not told, results have no app, requests are refused', async () => {
    const tab = house.tab();
    await tab.ready();
    assert.equal((await called(tab, 'apps_caps')).content[0].text, 'null');
    assert.equal((await called(tab, 'apps_show')).meta.app, undefined);
    assert.equal((await post(tab, 'call', { server: 'apps', app: URI, tool: 'refresh' })).status, 409);
    assert.equal((await frame()).status, 404);
  });
});
