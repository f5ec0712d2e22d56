// G12: browsers send the cookies of a host to all of its ports, so another
// program of this machine sees the cookie of our page, and can set one.
// Fails on 953b0b1e: the cookie was the token itself, had one name for all
// ports, and was valid at every server with that token.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Server } from '../it/server.mjs';

const token = 'of-the-operator-0123456789abcdef';
const dirs = [];
let ours, twin, other, seen;

async function start() {
  const dir = await mkdtemp(join(tmpdir(), 'mo-g12-'));
  dirs.push(dir);
  const file = join(dir, 'mcp-orchestrator.json');
  await writeFile(file, JSON.stringify({ server: { token } }));
  return Server.start(['--config', file], { dir, auth: true, env: { ASAN_OPTIONS: 'detect_leaks=0' } });
}

before(async () => {
  [ours, twin] = [await start(), await start()];
  other = createServer((rq, rs) => {
    seen = rq.headers.cookie;
    rs.end();
  }).listen(0, '127.0.0.1');
  await once(other, 'listening');
});
after(async () => {
  other?.close();
  for (const s of [ours, twin]) await s?.stop();
  for (const dir of dirs) await rm(dir, { recursive: true, force: true });
});

// A browser as far as it matters here: cookies by name, for all ports.
const jar = new Map();
async function browse(port, path, headers = {}) {
  const cookie = [...jar].map(([k, v]) => `${k}=${v}`).join('; ');
  const r = await fetch(`http://localhost:${port}${path}`,
    { redirect: 'manual', headers: { ...(cookie && { cookie }), connection: 'close', ...headers } });
  const [, name, value] = /^([^=]+)=([^;]*)/.exec(r.headers.get('set-cookie') ?? '') ?? [];
  if (name) jar.set(name, value);
  await r.arrayBuffer();
  return r.status;
}

test('another port gets nothing that is a token, or valid elsewhere', async () => {
  jar.clear();
  assert.equal(await browse(ours.port, `/?token=${token}`), 303);
  assert.equal(await browse(ours.port, '/metrics'), 200);
  await browse(other.address().port, '/');
  assert.ok(seen, 'the other program sees the cookie');
  assert.ok(!seen.includes(token), 'the token is in it');
  const value = seen.slice(seen.indexOf('=') + 1);
  assert.equal(await browse(ours.port, '/metrics', { cookie: '', authorization: `Bearer ${value}` }), 401);
  assert.equal(await browse(twin.port, '/metrics'), 401, 'another server with the same token');
  const renamed = seen.replaceAll(String(ours.port), String(twin.port));
  assert.equal(await browse(twin.port, '/metrics', { cookie: renamed }), 401);
});

test('two servers of one host do not sign each other out', async () => {
  jar.clear();
  for (const s of [ours, twin]) assert.equal(await browse(s.port, `/?token=${token}`), 303);
  assert.equal(jar.size, 2, 'a cookie for each');
  for (const s of [ours, twin]) assert.equal(await browse(s.port, '/metrics'), 200);
});

test('a cookie planted by another port signs nobody out', async () => {
  jar.clear();
  await browse(ours.port, `/?token=${token}`);
  const [[name, value]] = jar;
  assert.equal(await browse(ours.port, '/metrics', { cookie: `${name}=x; ${name}=${value}` }), 200);
});
