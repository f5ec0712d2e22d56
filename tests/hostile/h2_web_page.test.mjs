// H2: a page of another origin in the browser of a person who is signed in. It
// tries every request in every way that a browser has, signs the person in as
// somebody else, and comes back under a name that was made to point here.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';

import { CHROMIUM, FLAGS, WAIT, lacking } from '../browser/kit.mjs';
import { Server, until } from '../it/server.mjs';
import { DOORS, Target, VIEWS, attempts } from '../lib/attack.mjs';

const skip = await lacking();
const TOKENS = { operator: 'the-operator-0123456789abcdef', mallory: 'mallory-knows-0123456789abcdef' };

describe('a page of another origin', { skip: skip && !process.env.CI ? skip : false }, () => {
  let it, browser, other, evil;
  before(async () => {
    it = await Target.start({ server: { token: TOKENS.operator, tokens: { mallory: TOKENS.mallory } } });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: [...FLAGS, '--host-resolver-rules=MAP rebound.example 127.0.0.1'] });
    other = createServer((rq, rs) => rs.setHeader('content-type', 'text/html').end('<!doctype html><title>evil</title><body>'));
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    evil = `http://127.0.0.1:${other.address().port}`;
  });
  after(async () => {
    await browser?.close();
    other?.close();
    await it?.remove();
  });
  async function visit(url, { signedIn } = {}) {
    const context = await browser.newContext();
    context.setDefaultTimeout(WAIT);
    if (signedIn) { // without opening a conversation
      await context.request.get(`${it.url}/?token=${TOKENS.operator}`, { maxRedirects: 0 });
      assert.equal((await context.request.get(`${it.url}/api/sessions`)).status(), 200);
    }
    const page = await context.newPage();
    if (url) await page.goto(url);
    return page;
  }

  test('reads and does nothing by fetch, with the cookies of the person', async () => {
    const page = await visit(evil, { signedIn: true });
    const got = await page.evaluate(async ([url, doors, body]) => {
      const all = [];
      for (const [method, path] of doors)
        for (const mode of ['cors', 'no-cors']) {
          const data = ['POST', 'PATCH', 'PUT'].includes(method) ? body : undefined;
          for (const headers of [{}, { 'content-type': 'text/plain' }, { 'content-type': 'application/json' }, { authorization: 'Bearer x' }])
            all.push(await fetch(url + path, { method, mode, credentials: 'include', headers, body: data })
              .then(async (r) => [method, path, r.type, r.status, (await r.text()).length], (e) => [method, path, e.name]));
        }
      return all;
    }, [it.url, DOORS, it.body]);
    for (const [method, path, type, status, length] of got)
      assert.ok(type === 'TypeError' || (type === 'opaque' && status === 0 && length === 0), `${method} ${path}: ${type} ${status}`);
    await page.context().close();
  });

  test('nor by anything else that a browser loads or sends', async () => {
    const page = await visit(evil, { signedIn: true });
    const got = await page.evaluate(async ([url, doors, views, body]) => {
      const worked = [];
      const load = (tag, set, path) => new Promise((done) => {
        const el = Object.assign(document.createElement(tag), set);
        el.onload = () => { worked.push(`${tag} ${path}`); done(); };
        el.onerror = () => done();
        document.body.append(el);
      });
      const reads = doors.filter(([m]) => m === 'GET').map(([, p]) => p);
      for (const path of [...reads, ...views]) {
        await load('img', { src: url + path }, path);
        await load('script', { src: url + path }, path);
        await load('link', { rel: 'stylesheet', href: url + path }, path);
      }
      for (const path of ['/socket.io/?EIO=4&transport=websocket', '/mcp'])
        await new Promise((done) => {
          const ws = new WebSocket(url.replace('http', 'ws') + path);
          ws.onopen = () => { worked.push(`ws ${path}`); done(); };
          ws.onerror = () => done();
        });
      for (const path of ['/mcp', '/api/stats'])
        await new Promise((done) => {
          const es = new EventSource(url + path, { withCredentials: true });
          es.onopen = () => { worked.push(`events ${path}`); done(); };
          es.onerror = () => { es.close(); done(); };
        });
      for (const [method, path] of doors) if (method === 'POST') navigator.sendBeacon(url + path, body);
      return worked;
    }, [it.url, DOORS, VIEWS, it.body]);
    assert.deepEqual(got, []);
    await page.context().close();
  });

  test('nor by forms and frames', async () => {
    const page = await visit(evil, { signedIn: true });
    const posts = DOORS.filter(([m]) => m === 'POST').map(([, p]) => p);
    for (const path of posts) {
      const answered = page.waitForResponse((r) => r.url() === it.url + path);
      await page.evaluate(([url, body]) => {
        const frame = Object.assign(document.createElement('iframe'), { name: 'f' });
        // text/plain: the body is name=value, and can be JSON
        const form = Object.assign(document.createElement('form'), { method: 'post', action: url, enctype: 'text/plain', target: 'f' });
        form.append(Object.assign(document.createElement('input'), { name: body.slice(0, -2), value: body.slice(-2) }));
        document.body.replaceChildren(frame, form);
        form.submit();
      }, [it.url + path, it.body.replace('"x"', '"a=b"')]);
      assert.equal((await answered).status(), 403, path);
    }
    // A frame of the page stays empty: it could be clicked through.
    await page.evaluate((url) => document.body.replaceChildren(Object.assign(document.createElement('iframe'), { src: url, name: 'view' })), it.url);
    await until(() => page.frames().some((f) => f.name() === 'view' && f.url().startsWith('chrome-error:')), 'the frame is refused');
    await page.context().close();
  });

  test('nor signs the person in as somebody else', async () => {
    const ways = {
      link: (url, token) => { location.href = `${url}/?token=${token}`; },
      open: (url, token) => { window.open(`${url}/?token=${token}`, '_self'); },
      form: (url, token) => {
        const form = Object.assign(document.createElement('form'), { method: 'post', action: `${url}/sign-in` });
        form.append(Object.assign(document.createElement('input'), { name: 'token', value: token }));
        document.body.append(form);
        form.submit();
      },
    };
    for (const [name, way] of Object.entries(ways)) {
      const page = await visit(evil);
      await page.evaluate(`(${way})(${JSON.stringify(it.url)}, ${JSON.stringify(TOKENS.mallory)})`).catch(() => {});
      await page.waitForURL(`${it.url}/**`);
      assert.deepEqual(await page.context().cookies(it.url), [], name);
      await page.context().close();
    }
  });

  test('nor under a name that points here', async () => {
    const page = await visit(`http://rebound.example:${it.port}/`, { signedIn: true });
    const got = await page.evaluate(async ([doors, body]) => {
      const all = [];
      for (const [method, path] of doors)
        all.push([method, path, (await fetch(path, { method, credentials: 'include', headers: { 'content-type': 'application/json' },
          body: ['POST', 'PATCH', 'PUT'].includes(method) ? body : undefined })).status]);
      return all;
    }, [DOORS, it.body]);
    for (const [method, path, status] of got) assert.ok([401, 429].includes(status), `${method} ${path}: ${status}`);
    await page.context().close();
  });

  test('the attempts are in the audit log, with the origin', async () => {
    const rows = await it.end({ secrets: Object.values(TOKENS) });
    const foreign = rows.filter((r) => r.reason === 'origin_refused');
    assert.ok(foreign.some((r) => r.origin === evil), JSON.stringify(foreign));
    assert.ok(attempts(rows, { reason: 'origin_refused' }) > 4 * DOORS.length);
    assert.ok(attempts(rows, { reason: 'token_required' }) >= DOORS.length);
    assert.ok(rows.some((r) => r.reason === 'token_required' && r.host === `rebound.example:${it.port}`));
    const signed = rows.filter((r) => r.outcome === 'signed in');
    assert.equal(signed.length, 4, 'the person, once for each test');
    assert.ok(signed.every((r) => r.door === 'link' && !r.who), 'never as mallory');
    assert.ok(rows.length < 20, `${rows.length} rows`);
  });

  test('a server without a token is not there under that name', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mo-h2-'));
    const server = await Server.start([], { dir, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state'), ASAN_OPTIONS: 'detect_leaks=0' } });
    try {
      const page = await visit();
      assert.equal((await page.goto(`http://rebound.example:${server.port}/`)).status(), 403);
      await page.context().close();
      const rows = () => readFileSync(join(dir, 'state/audit.jsonl'), 'utf8').split('\n').slice(0, -1).map((l) => JSON.parse(l).what);
      await until(() => rows().some((r) => r?.reason === 'host_refused' && r.host === `rebound.example:${server.port}`), 'the row');
    } finally {
      server.signal('SIGTERM'); // the browser keeps a connection
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    }
  });
});
