// /api/openapi.json: every route that is served is described, and every
// answer is as described, errors included.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import Ajv from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { row, startRegistry } from '../fakes/registry.mjs';
import { until } from './server.mjs';
import { House, run } from './talk_kit.mjs';

const fake = fileURLToPath(new URL('../fakes/mcp.mjs', import.meta.url));
let house, doc, ajv, registry;
before(async () => {
  registry = await startRegistry([row({ name: 'io.github.ada/weather', version: '1.0.0', description: 'Rain', repository: { url: 'https://github.com/ada/weather', source: 'github' }, remotes: [{ type: 'streamable-http', url: 'https://weather.example.com/mcp' }] })]);
  house = await House.start({ config: {
    registry: { url: registry.url },
    mcpServers: { greeter: { command: process.execPath, args: [fake] } },
    approvals: { rules: [{ tool: 'fail', action: 'deny', reason: 'it only fails' }] },
  } });
  ({ body: doc } = await house.get('/api/openapi.json'));
  ajv = new Ajv({ strict: false, allErrors: true });
  ajv.addSchema(doc, 'api');
});
after(async () => {
  house.server.fresh.fds += 8; // the server stays open for the next
  house.server.fresh.children += 4; // and its guard; the gateway has its own
  await house.stop();
  registry.close();
});

/** A path of the document, as a JSON pointer into it. */
const at = (...steps) => `api#/${steps.map((s) => encodeURIComponent(s.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`;

/** Where a part of the document stands, behind its $ref. */
const follow = (...steps) => {
  const ref = steps.reduce((o, s) => o?.[s], doc)?.$ref;
  return ref ? ref.split('/').slice(1) : steps;
};
const look = (...steps) => follow(...steps).reduce((o, s) => o?.[s], doc);

async function ask(path, method, url, status = 200, json) {
  const answer = await fetch(`http://127.0.0.1:${house.server.port}${url}`,
    { method: method.toUpperCase(), body: json && JSON.stringify(json) });
  assert.equal(answer.status, status, `${url}: ${answer.status === status || await answer.text()}`);
  const type = answer.headers.get('content-type').split(';')[0];
  const key = status < 300 || look('paths', path, method, 'responses', String(status)) ? String(status) : 'default';
  const response = ['paths', path, method, 'responses', key];
  const described = look(...response).content[type];
  assert.ok(described, `${method} ${path}: ${type} is not described`);
  const text = await answer.text();
  if (!/json/.test(type)) return text;
  const body = JSON.parse(text);
  const check = ajv.getSchema(at(...follow(...response), 'content', type, 'schema'));
  assert.ok(check(body), `${url}: ${ajv.errorsText(check.errors)}\n${text.slice(0, 500)}`);
  return body;
}

test('a document of its kind', () => {
  assert.equal(doc.openapi, '3.1.0');
  assert.ok(doc.info.title && doc.info.version);
  for (const [path, methods] of Object.entries(doc.paths))
    for (const [method, what] of Object.entries(methods)) {
      assert.match(method, /^(get|post|put|patch|delete)$/);
      assert.ok(what.summary, path);
      const named = [...path.matchAll(/\{(\w+)\}/g)].map((m) => m[1]);
      const parameters = (what.parameters ?? []).map((_, i) => look('paths', path, method, 'parameters', i));
      assert.deepEqual(parameters.filter((p) => p.in === 'path').map((p) => p.name), named);
    }
});

test('every route is described, and nothing that is none', () => {
  const views = ['/', '/s/*', '/servers', '/servers/*', '/overview', '/settings', '/views', '/router', '/approvals', '/connections', '/app-frame', '/socket.io/*', '/mcp', '/mcp/{name}']; // the page's own, and other protocols
  const page = (r) => views.includes(r) || /\.(js|css|svg|png|ico|woff2|webmanifest|html|txt)$/.test(r) || r.startsWith('/assets/');
  const paths = Object.keys(doc.paths);
  for (const route of doc['x-routes'].filter((r) => !page(r)))
    assert.ok(
      route.endsWith('*') ? paths.some((p) => p.startsWith(route.slice(0, -1))) : paths.includes(route),
      `${route} is served and not described`);
  for (const path of paths)
    assert.ok(
      doc['x-routes'].some((r) => r === path || (r.endsWith('*') && path.startsWith(r.slice(0, -1)))),
      `${path} is described and not served`);
});

/** Views: added, shown, refused, removed; a row in the log before each. */
async function views(asked) {
  const one = '/api/views/{name}';
  const entry = { description: 'greets', tools: ['greeter/*', '!*/fail'], rules: [{ tool: 'ask', action: 'deny' }] };
  const seen = (v) => v.tools.map((x) => `${x.server}/${x.tool}=${x.name}`);
  const dry = await asked(one, 'put', '/api/views/hall?dryRun=true', 200, entry);
  assert.deepEqual([dry.saved, seen(dry.view)], [false, ['greeter/greet=greet', 'greeter/ask=ask']]);
  assert.deepEqual((await asked('/api/views', 'get', '/api/views')).views, []);
  assert.equal((await ask(one, 'put', '/api/views/hall', 200, entry)).saved, true);
  const [hall] = (await ask('/api/views', 'get', '/api/views')).views;
  assert.deepEqual([hall.name, hall.patterns, hall.counts.tools, hall.rules], ['hall', entry.tools, 2, 1]);
  const shown = await asked(one, 'get', '/api/views/hall');
  assert.deepEqual(shown.config, entry);
  assert.deepEqual(seen(shown), seen(dry.view));
  const { args, url } = await ask('/api/mcp/snippets', 'get', '/api/mcp/snippets?view=hall');
  assert.deepEqual([args.slice(-2), new URL(url).pathname], [['--view', 'hall'], '/mcp/hall']);
  await ask('/api/mcp/snippets', 'get', '/api/mcp/snippets?view=nope', 404);
  const client = new Client({ name: 'it', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${house.server.port}/mcp/hall`)));
  assert.deepEqual((await client.listTools()).tools.map((x) => x.name), ['greet', 'ask']);
  await client.close();
  for (const bad of [{ servers: ['nobody'] }, { tools: ['x'] }, { nothing: 1 }, []])
    await ask(one, 'put', '/api/views/hall', 400, bad);
  await ask(one, 'put', '/api/views/b%20d', 400, {});
  assert.deepEqual((await ask(one, 'get', '/api/views/hall')).config, entry, 'nothing of that was saved');
  assert.equal((await asked(one, 'delete', '/api/views/hall')).saved, true);
  await ask(one, 'delete', '/api/views/hall', 404);
  await ask(one, 'get', '/api/views/hall', 404);
  const { rows } = await ask('/api/audit', 'get', '/api/audit?q=hall');
  assert.deepEqual(rows.map((r) => r.what).filter((w) => w.managed).map((w) => w.managed).reverse(), ['set view', 'remove view']);
}

test('every answer is as described', async () => {
  house.model.script.push({ text: 'Let me.', calls: [run('echo hello')] }, { text: 'Done.' });
  const tab = house.tab();
  await tab.ready();
  await tab.say('find the needle');
  await tab.decide((await tab.event('tool:approval_required'))[0], true, { remember: 'always' });
  await tab.event('agent:response');
  const seen = new Set();
  const asked = async (path, method, url, status, json) => {
    seen.add(`${method} ${path}`);
    return ask(path, method, url, status, json);
  };
  const one = '/api/sessions/{id}';
  const { sessions } = await asked('/api/sessions', 'get', '/api/sessions');
  const { sessionId: imported } = await asked('/api/sessions', 'post', '/api/sessions', 201, { format: 'mcp-orchestrator/conversation', version: 1, entries: [] });
  house.sessions.add(imported);
  assert.deepEqual(sessions.map((s) => s.id), [tab.session]);
  const preset = await asked('/api/presets', 'post', '/api/presets', 201, { name: 'Brief', system: 'Be brief.', mode: 'ask' });
  await asked('/api/presets/{id}', 'patch', `/api/presets/${preset.id}`, 200, { name: 'Short' });
  assert.equal((await asked('/api/presets', 'get', '/api/presets')).presets[0].name, 'Short');
  await asked('/api/presets/{id}', 'delete', `/api/presets/${preset.id}`);
  const made = await asked(`${one}/links`, 'post', `/api/sessions/${tab.session}/links`, 201, { days: 1 });
  assert.equal((await asked(`${one}/links`, 'get', `/api/sessions/${tab.session}/links`)).links[0].id, made.id);
  assert.match(await asked('/shared/{token}', 'get', made.path), /needle/);
  await asked(`${one}/links/{link}`, 'delete', `/api/sessions/${tab.session}/links/${made.id}`);
  await ask('/shared/{token}', 'get', made.path, 404);
  assert.equal((await asked(one, 'get', `/api/sessions/${tab.session}`)).title, 'find the needle');
  await asked(one, 'patch', `/api/sessions/${tab.session}`, 200, { title: ' The needle\nand more' });
  assert.equal((await ask(one, 'get', `/api/sessions/${tab.session}`)).title, 'The needle');
  await ask(one, 'patch', `/api/sessions/${tab.session}`, 400, { title: ' ' });
  await ask(one, 'patch', '/api/sessions/nobody', 404, { title: 'x' });
  const { calls } = await asked(`${one}/calls`, 'get', `/api/sessions/${tab.session}/calls`);
  assert.deepEqual(calls.map((c) => [c.state, c.by, c.name]), [['done', 'person', 'execute_command']]);
  const offer = (what, ...more) => [`${one}/${what}`, ...more, `/api/sessions/${tab.session}/${what}`];
  assert.deepEqual(await asked(...offer('offers', 'get')), { prompts: [], resources: [], templates: [] });
  await asked(...offer('tools', 'put'), 200, { off: [{ server: 'nobody' }] });
  for (const [what, body] of [['prompt', { name: 'none' }], ['resource', { uri: 'none://x' }],
    ['complete', { ref: { type: 'ref/prompt', name: 'none' }, argument: { name: 'a', value: '' } }]])
    await asked(...offer(what, 'post'), 502, body);
  for (const [what, body] of [['apps/call', { tool: 'x' }], ['apps/resource', { uri: 'ui://x' }]])
    await asked(...offer(what, 'post'), 404, { server: 'nobody', app: 'ui://x', ...body });
  const sharing = [`${one}/shares`, `/api/sessions/${tab.session}/shares`];
  assert.equal((await asked(sharing[0], 'put', sharing[1], 200, { with: 'corp/team', may: 'approve' })).shares.length, 1);
  assert.equal((await asked(sharing[0], 'get', sharing[1])).shares[0].with, 'corp/team');
  assert.equal((await ask(one, 'get', `/api/sessions/${tab.session}`)).isShared, true);
  assert.deepEqual((await asked(sharing[0], 'delete', sharing[1])).shares, []);
  const files = [`${one}/files`, `/api/sessions/${tab.session}/files`];
  assert.equal((await asked(`${files[0]}/content`, 'put', `${files[1]}/content?path=a%2Fb.json`, 201, { one: 1 })).size, 9);
  assert.deepEqual((await asked(files[0], 'get', files[1])).entries.map((e) => e.name), ['a']);
  await asked(`${files[0]}/archive`, 'get', `${files[1]}/archive`);
  await ask(`${files[0]}/content`, 'get', `${files[1]}/content?path=none`, 404);
  await ask(`${files[0]}/content`, 'put', `${files[1]}/content?path=bin`, 201, {});
  await asked(`${files[0]}/content`, 'get', `${files[1]}/content?path=bin`);
  await asked(`${files[0]}/content`, 'delete', `${files[1]}/content?path=a`);
  const own = `/api/sessions/${tab.session}`;
  await asked(`${one}/mode`, 'put', `${own}/mode`, 200, { mode: 'box' });
  assert.equal((await asked(`${one}/grants`, 'get', `${own}/grants`)).mode.name, 'box');
  await asked(`${one}/mode`, 'put', `${own}/mode`, 200, { mode: 'ask' });
  await asked(`${one}/grants/{grant}`, 'delete', `${own}/grants/nope`, 404);
  assert.deepEqual(await asked(`${one}/connections`, 'get', `/api/sessions/${tab.session}/connections`), { connections: [], more: 0 });
  const { messages } = await asked(`${one}/history`, 'get', `/api/sessions/${tab.session}/history`);
  assert.deepEqual(messages.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant']);
  assert.ok((await asked('/api/search', 'get', '/api/search?q=needle')).rows.length > 0);
  const { rows } = await asked('/api/audit', 'get', '/api/audit');
  assert.deepEqual((await asked('/api/spend', 'get', '/api/spend')).tokens, []);
  assert.ok(rows.some((r) => r.what.by === 'person' && /127\.0\.0\.1/.test(r.what.who)));
  const { models } = await asked('/api/models/available', 'get', '/api/models/available');
  const checked = await asked('/api/models/check', 'get', '/api/models/check');
  assert.deepEqual(Object.keys(checked.models).sort(), models.map((m) => m.id).sort());
  assert.equal(checked.models['claude-sonnet-5-5'], 'available');
  const form = await fetch(`${house.server.url}/sign-in`, { method: 'POST', redirect: 'manual',
    headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'token=x' });
  assert.equal(form.status, 303);
  const out = await fetch(`${house.server.url}/sign-out`, { method: 'POST', redirect: 'manual' });
  assert.equal(out.status, 303);
  seen.add('post /sign-in').add('post /sign-out'); // it/serve and browser/sign_in have more
  await asked('/docs/{page}', 'get', '/docs/start');
  await asked('/docs/{page}', 'get', '/docs/nothing', 404);
  for (const path of ['/docs', '/api/openapi.json', '/healthz', '/readyz', '/health', '/metrics']) await asked(path, 'get', path);

  assert.deepEqual(await asked('/api/me', 'get', '/api/me'), { name: '', role: 'operator' });
  // without --no-auth: it/personal_token
  assert.deepEqual(await asked('/api/tokens', 'get', '/api/tokens'), { tokens: [] });
  await asked('/api/tokens', 'post', '/api/tokens', 403, { name: 'x' });
  await asked('/api/tokens/{id}', 'delete', '/api/tokens/nobody', 404);
  for (const path of ['', '/mcp']) // with a provider: it/access_token
    await asked(`/.well-known/oauth-protected-resource${path}`, 'get', `/.well-known/oauth-protected-resource${path}`, 404);

  await asked('/sign-in/{provider}', 'get', '/sign-in/nobody', 404); // it/oidc has more
  await asked('/sign-in/{provider}/callback', 'get', '/sign-in/nobody/callback', 403);

  const servers = '/api/servers/{name}';
  const call = (tool, json, status) =>
    asked(`${servers}/tools/{tool}/call`, 'post', `/api/servers/greeter/tools/${tool}/call`, status, json);
  assert.equal((await asked(`${servers}/test`, 'post', '/api/servers/greeter/test')).tools, 3);
  const [greeter] = (await asked('/api/servers', 'get', '/api/servers')).servers;
  assert.deepEqual([greeter.name, greeter.state, greeter.info.title], ['greeter', 'ok', 'The greeter']);
  assert.match(greeter.stderr, /listening/);
  const { tools } = await asked(`${servers}/tools`, 'get', '/api/servers/greeter/tools');
  assert.deepEqual(tools.map((t) => t.name), ['greet', 'ask', 'fail']);
  const question = await call('greet', { args: { name: 'a' } });
  assert.equal(question.state, 'ask');
  assert.equal((await call('greet', { args: { name: 'b' }, digest: question.digest })).state, 'ask', 'other bytes');
  assert.equal((await call('greet', { args: { name: 'a' }, digest: question.digest })).state, 'ask', 'used up by that');
  const again = await call('greet', { args: { name: 'a' } });
  const done = await call('greet', { args: { name: 'a' }, digest: again.digest });
  assert.deepEqual([done.state, done.isError, done.content[0].text], ['done', false, 'hello {"name":"a"}']);
  assert.equal((await call('greet', { args: { name: 'a' }, digest: again.digest })).state, 'ask', 'only once');
  assert.deepEqual(await call('fail', {}), { state: 'denied', reason: 'it only fails' });
  let logged = []; // how it ended is written behind the answer
  await until(async () => {
    logged = (await ask('/api/audit', 'get', '/api/audit?q=greeter')).rows.map((r) => r.what).filter((w) => !w.managed);
    return logged.length >= 2;
  }, 'two rows of the log');
  assert.deepEqual(logged.map((w) => `${w.by} ${w.isError}`).sort(), ['person false', 'person undefined']);
  await asked(`${servers}/tools/{tool}/accept`, 'post', '/api/servers/greeter/tools/greet/accept', 200, { digest: tools[0].digest });
  await ask(`${servers}/tools/{tool}/accept`, 'post', '/api/servers/greeter/tools/greet/accept', 409, { digest: 'x' });
  await call('nothing', {}, 404);
  await call('greet', [], 400);
  await ask(`${servers}/tools`, 'get', '/api/servers/nobody/tools', 404);

  const mcp = '/api/mcp/{name}';
  const added = { name: 'more', command: process.execPath, args: [fake] };
  assert.equal((await asked('/api/mcp', 'post', '/api/mcp?test=true', 200, added)).test.tools, 3);
  await ask('/api/mcp', 'post', '/api/mcp', 409, added);
  await ask('/api/mcp', 'post', '/api/mcp', 400, { name: 'bare' });
  await ask('/api/mcp', 'post', '/api/mcp?test=true', 422, { name: 'dead', command: 'false' });
  assert.equal((await asked('/api/mcp/add', 'post', '/api/mcp/add', 201, { name: 'older', config: { containerImage: 'x:1', enabled: false } })).message, 'MCP server added successfully');
  assert.equal((await ask('/api/mcp/add', 'post', '/api/mcp/add?dryRun=true', 200, { name: 'never', config: { containerImage: 'x:1' } })).saved, false);
  assert.deepEqual((await asked('/api/mcp', 'get', '/api/mcp')).servers.map((s) => s.name), ['greeter', 'more', 'older']);
  const health = await asked('/api/mcp/health', 'get', '/api/mcp/health');
  assert.equal(health.summary.total, 3);
  assert.deepEqual(health.mcps.map((m) => [m.name, m.status, m.consecutiveFailures]),
    [['greeter', 'healthy', 0], ['more', 'disconnected', 0], ['older', 'disconnected', 0]]);
  assert.ok(health.mcps[0].lastSuccess > Date.now() - 60_000 && health.mcps[0].lastCheck >= health.mcps[0].lastSuccess);
  await asked('/api/mcp/snippets', 'get', '/api/mcp/snippets');
  await asked('/api/mcp/import', 'post', '/api/mcp/import?dryRun=true', 200, { mcpServers: { x: { command: 'x', env: { A_TOKEN: '0123456789' } } } });
  await ask('/api/mcp/import', 'post', '/api/mcp/import', 400, { nothing: 1 });
  await asked(mcp, 'patch', '/api/mcp/more', 200, { description: 'another' });
  assert.equal((await asked(mcp, 'get', '/api/mcp/more')).config.description, 'another');
  await asked(`${mcp}/test`, 'post', '/api/mcp/more/test');
  assert.deepEqual((await asked(`${mcp}/connections`, 'get', '/api/mcp/more/connections')).connections, []);
  await ask(`${mcp}/connections`, 'get', '/api/mcp/nobody/connections', 404);
  const offered = await asked(`${mcp}/tools`, 'get', '/api/mcp/more/tools');
  await asked(`${mcp}/tools/{tool}/call`, 'post', '/api/mcp/more/tools/greet/call', 200, { args: { name: 'a' } });
  await asked('/api/tries/{run}', 'get', '/api/tries/nobody', 404); // with one: it/tries
  await asked('/api/tries/{run}', 'post', '/api/tries/nobody', 404, { action: 'cancel' });
  await ask(`${mcp}/tools`, 'get', '/api/mcp/more/tools?known=true');
  await asked(`${mcp}/tools/{tool}/accept`, 'post', '/api/mcp/more/tools/greet/accept', 200, { digest: offered.tools[0].digest });
  await asked(mcp, 'delete', '/api/mcp/more');
  await ask(mcp, 'delete', '/api/mcp/more', 404);
  await views(asked);
  const listed = await asked('/api/rules', 'get', '/api/rules');
  const { rules } = listed;
  assert.deepEqual(listed.operator, [{ server: '', tool: 'fail', action: 'deny', reason: 'it only fails', remember: true, approver: 'auto' }]);
  const routed = await asked('/api/route', 'get', '/api/route?q=the+greeter');
  assert.equal(routed.query, 'the greeter');
  await ask('/api/route', 'get', '/api/route', 400);
  const lesson = { words: 'say hello', server: 'greeter', tool: 'nothing', right: true };
  await asked('/api/route/teach', 'post', '/api/route/teach', 404, lesson);
  await ask('/api/route/teach', 'post', '/api/route/teach', 400, { ...lesson, right: 'yes' });
  assert.equal((await asked('/api/route/learnt', 'delete', '/api/route/learnt')).ok, true);
  assert.deepEqual(rules.map((r) => [r.server, r.tool, r.action]), [['box', 'execute_command', 'allow']]);
  assert.equal((await asked('/api/rules/{id}', 'delete', `/api/rules/${rules[0].id}`)).ok, true);
  await ask('/api/rules/{id}', 'delete', `/api/rules/${rules[0].id}`, 404);
  const trial = (json, status) => asked('/api/rules/try', 'post', '/api/rules/try', status, json);
  assert.deepEqual(await trial({ server: 'greeter', tool: 'fail' }), {
    action: 'deny', by: 'operator', reason: 'it only fails', rules: [{ by: 'operator', index: 0, fits: true, decides: true }],
  });
  const rule = { server: 'greeter', tool: 'greet', action: 'allow', args: { name: 'A*' } };
  const draft = await trial({ server: 'greeter', tool: 'greet', args: { name: 'Bob' }, draft: rule });
  assert.deepEqual([draft.action, draft.by], ['ask', 'default']);
  assert.deepEqual(draft.rules.at(-1), { by: 'draft', index: 0, fits: false, misses: 'args', path: 'name', decides: false });
  await trial({ server: 'greeter' }, 400);
  const kept = await asked('/api/rules', 'post', '/api/rules', 200, rule);
  assert.equal((await trial({ server: 'greeter', tool: 'greet', args: { name: 'Ada' } })).by, 'person');
  await ask('/api/rules', 'post', '/api/rules', 400, { ...rule, action: 'ask' });
  assert.equal((await ask('/api/rules/{id}', 'delete', `/api/rules/${kept.id}`)).ok, true);
  const { providers } = await asked('/api/providers', 'get', '/api/providers');
  assert.deepEqual(providers.map((p) => [p.name, p.key, p.from]),
    [['claude', 'set', 'ANTHROPIC_API_KEY'], ['gemini', 'none', undefined], ['openai', 'none', undefined]]);
  assert.doesNotMatch(JSON.stringify(providers), /sk-ant/);
  const gemini = (status, json, query = '') => asked('/api/providers/{name}', 'put', `/api/providers/gemini${query}`, status, json);
  const dead = { key: 'AIza-0123456789', baseUrl: 'http://127.0.0.1:9' };
  assert.equal((await gemini(200, dead, '?dryRun=true&test=true')).test.cause, 'network');
  await gemini(422, dead, '?test=true');
  assert.equal((await gemini(200, dead)).saved, true);
  assert.equal((await asked('/api/providers/{name}', 'delete', '/api/providers/gemini')).saved, true);
  await ask('/api/providers/{name}', 'delete', '/api/providers/claude', 409);
  assert.equal((await asked('/api/models/default', 'put', '/api/models/default', 200, { model: 'claude-sonnet-5-5' })).saved, true);
  await stats(asked, tab);

  const { servers: found } = await asked('/api/registry', 'get', '/api/registry?q=weather');
  assert.deepEqual(found.map((x) => [x.name, x.kinds]), [['io.github.ada/weather', ['remote']]]);
  const wish = { server: found[0].name, name: 'rain' };
  const { agreed } = await asked('/api/registry/plan', 'post', '/api/registry/plan', 200, wish);
  await ask('/api/registry/install', 'post', '/api/registry/install', 422, { ...wish, agreed: 'another' });
  assert.equal((await asked('/api/registry/install', 'post', '/api/registry/install', 200, { ...wish, agreed })).installed, true);
  await ask('/api/mcp/{name}', 'delete', '/api/mcp/rain');

  assert.deepEqual(await asked('/api/approvals', 'get', '/api/approvals'), { approvals: [], changed: [] });
  await asked('/api/approvals/{id}', 'post', '/api/approvals/nobody', 404, { approved: false });
  await ask('/api/approvals/{id}', 'post', '/api/approvals/nobody', 400, { approved: 'yes' });
  await asked('/api/approvals/tools', 'post', '/api/approvals/tools', 404, { server: 'a', tool: 'b', digest: 'c' });
  const chain = await asked('/api/audit/verify', 'get', '/api/audit/verify');
  assert.ok(chain.ok && chain.rows >= 2, JSON.stringify(chain));

  await ask(`${one}/history`, 'get', '/api/sessions/nobody/history', 404);
  assert.deepEqual((await ask(`${one}/history`, 'get', `/api/sessions/${tab.session}/history?after=9999`)).messages, []);
  await ask(one, 'get', '/api/sessions/nobody', 404);
  await ask(one, 'delete', '/api/sessions/nobody', 404);
  await ask('/api/search', 'get', '/api/search', 400);
  assert.equal((await asked(one, 'delete', `/api/sessions/${tab.session}`)).ok, true);
  // Its history outlives it, past its end too.
  assert.ok((await ask(`${one}/history`, 'get', `/api/sessions/${tab.session}/history`)).messages.length > 0);
  await ask(`${one}/history`, 'get', `/api/sessions/${tab.session}/history?after=9999`);

  // With servers that have some: it/connections.
  assert.deepEqual(await asked('/api/connections', 'get', '/api/connections'), { who: '', connections: [] });
  await asked('/api/connections/{name}', 'post', '/api/connections/greeter', 404);
  await asked('/api/connections/{name}', 'delete', '/api/connections/greeter', 404);
  await asked('/connections/callback', 'get', '/connections/callback?state=x&code=y');
  await asked('/connections/finish', 'get', '/connections/finish?state=x&code=y', 403);

  const all = Object.entries(doc.paths).flatMap(([p, m]) => Object.keys(m).map((k) => `${k} ${p}`));
  assert.deepEqual(all.filter((x) => !seen.has(x)), [], 'described and not asked for here');
});

test("the gateway's calls are in the same audit log", async () => {
  const stats = async () => (await ask('/api/stats', 'get', '/api/stats')).gateway;
  const before = await stats(); // tools that were tried here are calls, too
  const client = new Client({ name: 'it', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${house.server.port}/mcp`)));
  await client.callTool({ name: 'greet', arguments: { name: 'a' } });
  await client.close();
  let what;
  await until(async () => {
    const { rows } = await ask('/api/audit', 'get', '/api/audit?q=argsDigest');
    return (what = rows.find((r) => r.what.kind === 'call')?.what);
  }, 'its row');
  assert.deepEqual([what.kind, what.server, what.tool, what.outcome], ['call', 'greeter', 'greet', 'ok']);
  assert.equal((await ask('/api/audit/verify', 'get', '/api/audit/verify')).ok, true);

  const gateway = await stats();
  const [greeter] = gateway.servers;
  const [was] = before.servers;
  assert.deepEqual([gateway.calls - before.calls, gateway.errors - before.errors, greeter.calls - was.calls], [1, 0, 1]);
  assert.ok(greeter.children >= 1 && greeter.children <= house.server.workers, `${greeter.children} processes`);
  assert.deepEqual([greeter.name, greeter.state, greeter.breaker, greeter.tools[0].name], ['greeter', 'ok', 'closed', 'greet']);
  assert.equal(gateway.perMinute.reduce((n, x) => n + x), gateway.calls);
});

test('the router: why, what it is taught, and what is quarantined', async () => {
  const route = () => ask('/api/route', 'get', '/api/route?q=greet+somebody');
  const first = await route();
  const [hit] = first.results;
  assert.deepEqual([hit.server, hit.tool, first.learnt], ['greeter', 'greet', 0]);
  assert.ok(hit.shared.some((s) => s.word === 'greet' && s.in.includes('tool')), JSON.stringify(hit.shared));
  const lesson = { words: 'greet somebody', server: 'greeter', tool: 'greet', right: true };
  await ask('/api/route/teach', 'post', '/api/route/teach', 200, lesson);
  const taught = await route();
  assert.equal(taught.learnt, 3); // two words, and the request
  assert.ok(taught.results[0].learnt > 0 && taught.results[0].score > hit.score);
  await ask('/api/route/learnt', 'delete', '/api/route/learnt');
  assert.equal((await route()).results[0].score, hit.score);

  // The file of MO_FAKE_CHANGED need only be there; this one is.
  await ask('/api/mcp/{name}', 'patch', '/api/mcp/greeter', 200, { env: { MO_FAKE_CHANGED: '/dev/null' } });
  const client = new Client({ name: 'it', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${house.server.port}/mcp`)));
  let out;
  await until(async () => {
    await client.listTools();
    return ([out] = (await route()).ruledOut)?.[0]?.reason === 'quarantined';
  }, 'it is ruled out');
  assert.deepEqual([out.server, out.tool], ['greeter', 'greet']);
  assert.match(out.why, /changed it since it was first seen/);
  const { changed } = await ask('/api/approvals', 'get', '/api/approvals');
  await ask('/api/approvals/tools', 'post', '/api/approvals/tools', 200, { server: 'greeter', tool: 'greet', digest: changed[0].digest });
  assert.equal((await route()).results[0].tool, 'greet');
  await client.close();
});

/** What the turn of the test above has left, and a call that waits. */
async function stats(asked, tab) {
  const now = () => asked('/api/stats', 'get', '/api/stats');
  house.model.script.push({ calls: [run('echo again')] }, { text: 'Done.' });
  const asks = tab.count('tool:approval_required');
  await tab.say('once more');
  await tab.event('tool:approval_required', asks + 1);
  const first = await now();
  assert.deepEqual(first.approvals.map((a) => [a.session, a.server, a.tool, a.title]), [[tab.session, 'box', 'execute_command', 'The needle']]);
  assert.ok(first.approvals[0].since <= first.at && first.approvals[0].expiresAt > first.at);
  const [model] = first.tokens;
  assert.deepEqual([first.tokens.length, model.provider, model.model, model.replies], [1, 'claude', 'claude-sonnet-5-5', 3]);
  const [chat] = first.conversations.filter((c) => c.session === tab.session);
  assert.deepEqual([chat.input, chat.output, chat.busy, chat.members], [model.input, model.output, true, 1]);
  assert.ok(model.input > 0 && model.output > 0);
  assert.deepEqual([first.calls.total, first.calls.failed, first.calls.perMinute.length], [1, 0, 60]);
  assert.equal(first.calls.tokensPerMinute.reduce((n, x) => n + x), model.input + model.output);
  const [box] = first.boxes.filter((b) => b.session === tab.session);
  assert.ok(box.memoryBytes > 0 && box.memoryLimit >= box.memoryBytes && box.processes > 0);
  const answers = tab.count('agent:response');
  await tab.decide((await tab.event('tool:approval_required', asks + 1))[0], true);
  await tab.event('agent:response', answers + 1);
  const second = await now();
  assert.deepEqual(second.approvals, []);
  assert.equal(second.calls.total, 2);
  assert.ok(second.boxes.find((b) => b.session === tab.session).cpuPercent >= 0);
}

test('the wrong method is a problem too', async () => {
  for (const [url, method] of [['/api/sessions', 'PUT'], ['/api/sessions/x/history', 'DELETE'], ['/api/rules/x', 'GET'], ['/api/models/check', 'PUT'], ['/api/servers/x/test', 'GET'], ['/api/servers/x/tools', 'POST'], ['/api/mcp', 'PUT'], ['/api/mcp/x', 'POST'], ['/api/mcp/health', 'DELETE']]) {
    const answer = await fetch(`http://127.0.0.1:${house.server.port}${url}`, { method });
    assert.equal(answer.status, 405);
    assert.ok(answer.headers.get('allow'));
    const check = ajv.getSchema(at('components', 'schemas', 'Problem'));
    assert.ok(check(await answer.json()), ajv.errorsText(check.errors));
  }
});
