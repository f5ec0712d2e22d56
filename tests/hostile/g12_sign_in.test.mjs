// G12: a page of another site signs the browser in with the attacker's own
// token, so that the person works as the attacker, who then reads along.
// Fails on 953b0b1e: /?token= was read before any other check, so that every
// link below got a cookie. (The form of /sign-in is younger.)
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Server } from '../it/server.mjs';

const token = 'of-the-attacker-0123456789abcdef';
const evil = 'http://evil.example';
const front = 'https://mcp.example.com'; // a TLS proxy before the server
let dir, server;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-g12-'));
  const file = join(dir, 'mcp-orchestrator.json');
  await writeFile(file, JSON.stringify({ server: {
    token: 'of-the-operator-0123456789abcdef', tokens: { mallory: token }, origins: [front, 'http://other.example:8080'],
  } }));
  server = await Server.start(['--config', file], { dir, auth: true, env: { ASAN_OPTIONS: 'detect_leaks=0' } });
});
after(async () => {
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

/** The answer to a request as a browser sends it. */
const send = (headers, { method = 'GET', path = `/?token=${token}`, body = '' } = {}) => new Promise((resolve, reject) => {
  http.request({ host: '127.0.0.1', port: server.port, method, path, agent: false,
    headers: { host: `localhost:${server.port}`, ...headers } }, (r) => resolve(r.resume())).on('error', reject).end(body);
});
const form = (headers) => send({ 'content-type': 'application/x-www-form-urlencoded', ...headers },
  { method: 'POST', path: '/sign-in', body: `token=${token}` });

for (const [how, headers] of [
  ['a link', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }],
  ['a link of a page at another port', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate' }],
  ['an image', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }],
  ['a script', { origin: evil, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }],
  ['a browser that does not send Sec-Fetch-Site', { referer: `${evil}/` }],
])
  test(`${how} does not sign in`, async () => {
    const r = await send(headers);
    assert.equal(r.headers['set-cookie'], undefined);
    assert.ok([401, 403].includes(r.statusCode), String(r.statusCode));
  });

test('nor does a form', async () => {
  for (const headers of [{ origin: evil }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }, { referer: `${evil}/` }]) {
    const r = await form(headers);
    assert.equal(r.headers['set-cookie'], undefined);
    assert.equal(r.statusCode, 403);
  }
});

test('a person may, by a typed address and by our own form', async () => {
  const own = `http://localhost:${server.port}`;
  for (const r of [await send({ 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }), await send({}),
    await form({ origin: own, 'sec-fetch-site': 'same-origin' })]) {
    assert.equal(r.statusCode, 303);
    assert.ok(!/; Secure/.test(r.headers['set-cookie'][0]), 'a browser would drop it');
  }
});

// Behind a proxy that ends TLS our own form comes from an https page, and the
// server sees plain http. Fails on 4b59b185: the Referer was compared with the
// Host only, so that nobody could sign in by the form.
const proxied = { host: 'mcp.example.com' };

test('our own form may, behind a proxy whose origin is listed', async () => {
  for (const headers of [
    { origin: front, referer: `${front}/`, 'sec-fetch-site': 'same-origin' },
    { origin: front, referer: `${front}/s/any?a=b` },
    { origin: `${front}:443`, referer: `${front}:443/sign-in.html` },
    { referer: 'HTTPS://MCP.example.com' },
    { referer: 'http://other.example:8080/' },
  ]) {
    const r = await form({ ...proxied, ...headers });
    assert.equal(r.statusCode, 303, JSON.stringify(headers));
    const [cookie] = r.headers['set-cookie'];
    assert.equal(/; Secure(;|$)/.test(cookie), !headers.referer.startsWith('http:'), cookie);
  }
});

test('no other page may, whatever resembles that origin', async () => {
  const pages = [
    `${front}.evil.org/`, 'https://evil.mcp.example.com/', 'https://evilmcp.example.com/', 'https://example.com/',
    `${front}@evil.org/`, `${front}:443@evil.org/`, 'https://evil.org@mcp.example.com/', 'https://@mcp.example.com/',
    `${front}:8443/`, `${front}:80/`, `${front}:0/`, `${front}:/`, 'http://mcp.example.com:443/',
    'ftp://mcp.example.com/', 'wss://mcp.example.com/', `blob:${front}/1`, `view-source:${front}/`, `javascript:${front}/`,
    `https://evil.org/${front}/`, `https://evil.org/?${front}/`, `https://evil.org/#${front}/`, `https://evil.org\\${front}/`,
    `${front}\\.evil.org/`, `${front}%2eevil.org/`, `${front} https://evil.org/`, `https://evil.org, ${front}/`,
    'https:mcp.example.com/', '//mcp.example.com/', 'mcp.example.com', '/', '*', 'null', 'about:blank', '',
    'http://other.example/', 'https://other.example:8080/',
  ];
  for (const referer of pages)
    for (const more of [{}, { origin: front }, { 'sec-fetch-site': 'same-origin' }]) {
      const r = await form({ ...proxied, ...more, referer });
      assert.equal(r.statusCode, 403, `${referer} ${JSON.stringify(more)}`);
      assert.equal(r.headers['set-cookie'], undefined);
      const link = await send({ ...proxied, ...more, referer });
      assert.equal(link.headers['set-cookie'], undefined, `${referer} ${JSON.stringify(more)}`);
    }
});

test('a good Referer makes up for nothing else', async () => {
  for (const headers of [{ origin: 'null' }, { origin: evil }, { origin: `${front}/` }, { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: front }]) {
    const r = await form({ ...proxied, referer: `${front}/`, ...headers });
    assert.equal(r.statusCode, 403, JSON.stringify(headers));
    assert.equal(r.headers['set-cookie'], undefined);
  }
});
