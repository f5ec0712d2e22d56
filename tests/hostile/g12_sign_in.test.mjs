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
let dir, server;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-g12-'));
  const file = join(dir, 'mcp-orchestrator.json');
  await writeFile(file, JSON.stringify({ server: { token: 'of-the-operator-0123456789abcdef', tokens: { mallory: token } } }));
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
    assert.ok(r.headers['set-cookie']);
  }
});
