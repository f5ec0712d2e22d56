// /api/openapi.json: every route that is served is described, and every
// answer is as described, errors included.
import Ajv from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { House, run } from './talk_kit.mjs';

let house, doc, ajv;
before(async () => {
  house = await House.start();
  ({ body: doc } = await house.get('/api/openapi.json'));
  ajv = new Ajv({ strict: false, allErrors: true });
  ajv.addSchema(doc, 'api');
});
after(() => house.stop());

/** A path of the document, as a JSON pointer into it. */
const at = (...steps) => `api#/${steps.map((s) => encodeURIComponent(s.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`;

async function ask(path, method, url, status = 200) {
  const answer = await fetch(`http://127.0.0.1:${house.server.port}${url}`, { method: method.toUpperCase() });
  assert.equal(answer.status, status, url);
  const type = answer.headers.get('content-type').split(';')[0];
  const key = status === 200 ? '200' : 'default';
  const described = doc.paths[path][method].responses[key].content[type];
  assert.ok(described, `${method} ${path}: ${type} is not described`);
  const text = await answer.text();
  if (!/json/.test(type)) return text;
  const body = JSON.parse(text);
  const check = ajv.getSchema(at('paths', path, method, 'responses', key, 'content', type, 'schema'));
  assert.ok(check(body), `${url}: ${ajv.errorsText(check.errors)}\n${text.slice(0, 500)}`);
  return body;
}

test('a document of its kind', () => {
  assert.equal(doc.openapi, '3.1.0');
  assert.ok(doc.info.title && doc.info.version);
  for (const [path, methods] of Object.entries(doc.paths))
    for (const [method, what] of Object.entries(methods)) {
      assert.match(method, /^(get|post|patch|delete)$/);
      assert.ok(what.summary, path);
      const named = [...path.matchAll(/\{(\w+)\}/g)].map((m) => m[1]);
      assert.deepEqual(what.parameters.filter((p) => p.in === 'path').map((p) => p.name), named);
    }
});

test('every route is described, and nothing that is none', () => {
  const views = ['/', '/s/*', '/overview', '/settings', '/socket.io/*', '/mcp']; // the page's own, and other protocols
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

test('every answer is as described', async () => {
  house.model.script.push({ text: 'Let me.', calls: [run('echo hello')] }, { text: 'Done.' });
  const tab = house.tab();
  await tab.ready();
  await tab.say('find the needle');
  await tab.decide((await tab.event('tool:approval_required'))[0], true);
  await tab.event('agent:response');
  const seen = new Set();
  const asked = async (path, method, url, status) => {
    seen.add(`${method} ${path}`);
    return ask(path, method, url, status);
  };
  const one = '/api/sessions/{id}';
  const { sessions } = await asked('/api/sessions', 'get', '/api/sessions');
  assert.deepEqual(sessions.map((s) => s.id), [tab.session]);
  assert.equal((await asked(one, 'get', `/api/sessions/${tab.session}`)).title, 'find the needle');
  const { messages } = await asked(`${one}/history`, 'get', `/api/sessions/${tab.session}/history`);
  assert.deepEqual(messages.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant']);
  assert.ok((await asked('/api/search', 'get', '/api/search?q=needle')).rows.length > 0);
  const { rows } = await asked('/api/audit', 'get', '/api/audit');
  assert.ok(rows.some((r) => r.what.by === 'person' && /127\.0\.0\.1/.test(r.what.who)));
  const { models } = await asked('/api/models/available', 'get', '/api/models/available');
  const checked = await asked('/api/models/check', 'get', '/api/models/check');
  assert.deepEqual(Object.keys(checked.models).sort(), models.map((m) => m.id).sort());
  assert.equal(checked.models['claude-sonnet-5-5'], 'available');
  for (const path of ['/api/openapi.json', '/healthz', '/readyz', '/health', '/metrics']) await asked(path, 'get', path);

  await ask(one, 'get', '/api/sessions/nobody', 404);
  await ask(one, 'delete', '/api/sessions/nobody', 404);
  await ask('/api/search', 'get', '/api/search', 400);
  assert.equal((await asked(one, 'delete', `/api/sessions/${tab.session}`)).ok, true);

  const all = Object.entries(doc.paths).flatMap(([p, m]) => Object.keys(m).map((k) => `${k} ${p}`));
  assert.deepEqual(all.filter((x) => !seen.has(x)), [], 'described and not asked for here');
});

test('the wrong method is a problem too', async () => {
  for (const [url, method] of [['/api/sessions', 'POST'], ['/api/sessions/x/history', 'DELETE'], ['/api/models/check', 'PUT']]) {
    const answer = await fetch(`http://127.0.0.1:${house.server.port}${url}`, { method });
    assert.equal(answer.status, 405);
    assert.ok(answer.headers.get('allow'));
    const check = ajv.getSchema(at('components', 'schemas', 'Problem'));
    assert.ok(check(await answer.json()), ajv.errorsText(check.errors));
  }
});
