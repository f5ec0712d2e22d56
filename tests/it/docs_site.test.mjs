// The documents at /docs: every link and anchor is there, nothing comes from
// elsewhere, and they are sent as other files are.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';

import { Server } from './server.mjs';
import { ask, assertSafe } from './wire.mjs';

const site = new URL('../../build-docs/site/', import.meta.url);
const pages = new Map(); // path -> text
let server;

async function get(path) {
  const answer = await ask(server.port, 'GET', path);
  return { ...answer, body: Buffer.from(answer.body, 'latin1').toString() };
}
const hrefs = (html) => [...html.matchAll(/\s(?:href|src|action|srcset|poster|data)="([^"]*)"/g)].map((m) => m[1]);
const ids = (html) => new Set([...html.matchAll(/\sid="([^"]+)"/g)].map((m) => m[1]));

/** Everything that can be reached by links from the first page. */
async function walk(path) {
  if (pages.has(path)) return;
  const answer = await get(path);
  assert.equal(answer.status, 200, path);
  pages.set(path, answer.body);
  if (!answer.headers['content-type'].startsWith('text/html')) return;
  for (const href of hrefs(answer.body)) {
    const to = new URL(href, `http://localhost${path}`);
    if (to.pathname.startsWith('/docs')) await walk(to.pathname);
  }
}

before(async () => {
  // Everything that is asked for here has no token: it is open to everyone.
  server = await Server.start([], { auth: true });
  await walk('/docs');
});
after(() => server?.stop());

describe('pages', () => {
  test('the menu leads to all of them', async () => {
    const { sections } = JSON.parse(await readFile(new URL('../../docs/site/pages.json', import.meta.url), 'utf8'));
    const all = sections.flatMap((s) => s.pages.map(([name]) => (name === 'README' ? '/docs' : `/docs/${name.toLowerCase()}`)));
    assert.deepEqual(sections.map((s) => s.title), ['Start', 'Connect a client', 'Concepts', 'How-to by task', 'Reference', 'Operations', 'Security', 'Troubleshooting']);
    assert.ok(all.length > 40);
    assert.deepEqual(all.filter((p) => !pages.has(p)), []);
    for (const path of all)
      assert.deepEqual(all.filter((to) => !pages.get(path).includes(`<li><a href="${to}">`)), [], `the menu of ${path}`);
  });

  test('every link and every anchor is there', () => {
    for (const [path, html] of pages) {
      if (!html.startsWith('<!doctype html>')) continue;
      for (const href of hrefs(html)) {
        const to = new URL(href, `http://localhost${path}`);
        if (to.host !== 'localhost') continue;
        if (['/', '/icon.png'].includes(to.pathname)) continue; // of the page
        assert.ok(pages.has(to.pathname), `${path}: ${href}`);
        const anchor = decodeURIComponent(to.hash.slice(1));
        if (anchor) assert.ok(ids(pages.get(to.pathname)).has(anchor), `${path}: ${href}`);
      }
      assert.doesNotMatch(html, /href="[^"]*\.md[#"]/, path);
    }
  });

  test('nothing is loaded from elsewhere, and nothing is inline', () => {
    for (const [path, text] of pages) {
      if (text.startsWith('<!doctype html>')) {
        const [head] = text.split('</head>');
        assert.deepEqual(hrefs(head), ['/icon.png', '/docs/style.css', '/docs/search.js'], path);
        assert.doesNotMatch(text, /<(?:img|iframe|object|embed|video|audio|style|base)\b|\sstyle=|\son\w+=/, path);
        assert.equal(text.match(/<script\b/g).length, 1, path);
        assert.match(text, /<html lang="en">[^]*<a class="skip" href="#content">[^]*<main id="content"[^]*<h1>[^]*<nav id="menu"/, path);
      } else assert.doesNotMatch(text, /url\(|@import|https?:\/\//, path);
    }
  });

  test('the reference has every command, key and route', async () => {
    const { commands } = JSON.parse(await readFile(new URL('../../data/commands.json', import.meta.url), 'utf8'));
    for (const c of commands.filter((x) => !x.hidden))
      assert.ok(pages.get('/docs/commands').includes(`<h2 id="${c.name.replace(' ', '-')}">`), c.name);
    const { paths } = JSON.parse(await readFile(new URL('../../data/openapi.json', import.meta.url), 'utf8'));
    for (const [path, methods] of Object.entries(paths))
      for (const method of Object.keys(methods))
        assert.ok(pages.get('/docs/api').includes(`>${method.toUpperCase()} ${path}<`), `${method} ${path}`);
    const keys = JSON.parse(await readFile(new URL('../../data/configuration.json', import.meta.url), 'utf8'));
    for (const key of ['server.listen', 'approvals.rules', 'mcpServers.NAME.command']) {
      assert.ok(key in keys, key);
      assert.ok(pages.get('/docs/configuration').includes(`<code>${key}</code>`), key);
    }
  });
});

describe('answers', () => {
  const TYPES = {
    '/docs': 'text/html; charset=utf-8', '/docs/': 'text/html; charset=utf-8', '/docs/gateway': 'text/html; charset=utf-8',
    '/docs/style.css': 'text/css; charset=utf-8', '/docs/search.js': 'text/javascript; charset=utf-8', '/docs/words.json': 'application/json',
  };

  for (const [path, type] of Object.entries(TYPES))
    test(`${path}: type, tag, compressed and not`, async () => {
      const plain = await get(path);
      assert.equal(plain.status, 200);
      assert.equal(plain.headers['content-type'], type);
      assert.equal(plain.headers['cache-control'], 'no-cache');
      assert.equal(plain.headers['content-encoding'], undefined);
      assertSafe(plain);
      const name = path.replace(/^\/docs\/?/, '') || 'index';
      assert.ok(plain.body === await readFile(new URL(name.includes('.') ? name : `${name}.html`, site), 'utf8'), 'as built');
      const url = `http://127.0.0.1:${server.port}${path}`;
      const packed = await fetch(url, { headers: { 'accept-encoding': 'gzip' } });
      assert.equal(packed.headers.get('content-encoding'), 'gzip');
      assert.ok(await packed.text() === plain.body, 'the same text');
      assert.equal(packed.headers.get('etag'), plain.headers.etag);
      const again = await fetch(url, { headers: { 'if-none-match': plain.headers.etag } });
      assert.equal(again.status, 304);
      assert.equal(await again.text(), '');
      const head = await fetch(url, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } });
      assert.equal(head.headers.get('content-length'), String(Buffer.byteLength(plain.body)));
    });

  test('the bytes are one gzip file, checksum and all', async () => {
    const http = await import('node:http');
    for (const path of [...pages.keys(), '/docs/nothing']) {
      const bytes = await new Promise((resolve, reject) => http.get(
        { port: server.port, path, headers: { 'accept-encoding': 'gzip' } },
        async (r) => resolve(Buffer.concat(await r.toArray()))).on('error', reject));
      assert.ok(gunzipSync(bytes).length > bytes.length, path);
      if (pages.has(path)) assert.ok(gunzipSync(bytes).toString() === pages.get(path), path);
    }
  });

  for (const path of ['/docs/nothing', '/docs/gateway/', '/docs/a/b', '/docs/404', '/docs/..%2fapi', '/docs/gateway.html'])
    test(`${path}: a page that helps`, async () => {
      const answer = await get(path);
      assert.equal(answer.status, 404);
      assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8');
      assert.equal(answer.headers.etag, undefined);
      assert.match(answer.body, /Page not found[^]*href="\/docs\/troubleshooting"/);
    });

  test('only reading is allowed', async () => {
    const answer = await ask(server.port, 'POST', '/docs/gateway');
    assert.ok([401, 405].includes(answer.status), String(answer.status));
  });

  test('what is not a document still needs a token', async () => {
    for (const path of ['/docsx', '/api/me', '/mcp']) assert.equal((await get(path)).status, 401, path);
  });
});
