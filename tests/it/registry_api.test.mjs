// Servers by name over HTTP: search, plan, install; who may, and what the audit
// log says.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';

import { row } from '../fakes/registry.mjs';
import { dir, environment, installed, npm, registry, servers } from '../lib/install.mjs';
import { Server } from './server.mjs';

const entry = (more = {}) => row({
  name: 'io.github.ada/weather', version: '7.0.0', description: 'Rain',
  repository: { url: 'https://github.com/ada/weather', source: 'github' },
  packages: [{ registryType: 'npm', identifier: '@ada/weather', version: '1.0.0', transport: { type: 'stdio' }, ...more }],
});

async function open(t, { args = [], ...more } = {}) {
  const server = await Server.start(args, { dir, env: environment(), house: true, ...more });
  t.after(() => server.ended || server.stop());
  const ask = async (path, body, headers = {}) => {
    const r = await fetch(`${server.url}${path}`, {
      method: body ? 'POST' : 'GET', body: body && JSON.stringify(body),
      headers: { ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
    });
    return { status: r.status, ...(await r.json()) };
  };
  return { server, ask };
}

test('searched, planned, agreed to, installed, and it works', async (t) => {
  registry.rows = [entry({ environmentVariables: [{ name: 'PLACE', isRequired: true }] })];
  const { ask } = await open(t);
  const found = await ask('/api/registry?q=weather%20rain');
  assert.deepEqual(found.servers.map((s) => s.name), ['io.github.ada/weather']);

  const server = 'io.github.ada/weather';
  const empty = await ask('/api/registry/plan', { server });
  assert.match(empty.problem, /needs the variable PLACE/);
  const want = { server, name: 'rain', env: { PLACE: 'a=b c' }, args: ['--metric'] };
  const seen = await ask('/api/registry/plan', want);
  assert.equal(seen.problem, undefined);
  assert.deepEqual([seen.installed, seen.plan.package, seen.plan.version, seen.plan.name], [false, '@ada/weather', '1.0.0', 'rain']);
  assert.deepEqual(await installed(), []);

  assert.equal((await ask('/api/registry/install', want)).status, 400); // agreed to nothing
  const other = await ask('/api/registry/install', { ...want, args: ['--imperial'], agreed: seen.agreed });
  assert.deepEqual([other.status, other.code], [422, 'refused']);
  assert.match(other.detail, /the plan is another one now/);
  const done = await ask('/api/registry/install', { ...want, agreed: seen.agreed });
  assert.deepEqual([done.status, done.installed], [200, true]);
  assert.deepEqual((await servers()).rain.env, { PLACE: 'a=b c' });
  const tested = await ask('/api/mcp/rain/test', {});
  assert.deepEqual([tested.ok, tested.tools], [true, 1], JSON.stringify(tested));

  const { rows } = await ask('/api/audit?q=rain');
  const mine = rows.map((r) => r.what).filter((w) => w.managed === 'install');
  assert.ok(mine.some((w) => w.plan?.agreed === seen.agreed && w.who), JSON.stringify(mine));
});

test('a plan with a warning needs a second yes', async (t) => {
  const { ask } = await open(t);
  const want = { server: 'npm:@evil/server-memory', name: 'memory' };
  const seen = await ask('/api/registry/plan', want);
  assert.equal(seen.plan.warnings.length, 1);
  const no = await ask('/api/registry/install', { ...want, agreed: seen.agreed });
  assert.equal(no.status, 422);
  assert.match(no.detail, /because of the warning/);
  assert.equal((await ask('/api/registry/install', { ...want, agreed: seen.agreed, acceptWarnings: true })).installed, true);
});

test('what changed since it was shown is not installed', async (t) => {
  registry.rows = [entry()];
  const { ask } = await open(t);
  const want = { server: 'io.github.ada/weather' };
  const seen = await ask('/api/registry/plan', want);
  registry.rows = [entry({ version: '1.1.0' })];
  assert.match((await ask('/api/registry/install', { ...want, agreed: seen.agreed })).detail, /another one now/);
  assert.deepEqual(await installed(), []);
});

test('words that look like options, odd bodies', async (t) => {
  const { ask } = await open(t);
  for (const body of [{}, [], { server: '' }, { server: '--yes' }, { server: 'a/b', env: { 'A=B': 'c' } }, { server: 'a/b', env: [] },
    { server: 'a/b', env: { A: 1 } }, { server: 'a/b', args: [1] }, { server: 'a/b', args: 'x' }, { server: 'a/b', name: 7 },
    { server: 'a\0b' }, { server: 'a/b', args: Array(200).fill('x') }])
    assert.equal((await ask('/api/registry/plan', body)).status, 400, JSON.stringify(body));
  assert.equal((await ask('/api/registry?q=--config')).status, 400);
  assert.equal((await ask('/api/registry?q=')).status, 400);
});

test('a registry that is down', async (t) => {
  registry.faults.push({ status: 500 });
  const { ask } = await open(t);
  const got = await ask('/api/registry?q=x');
  assert.deepEqual([got.status, got.code], [502, 'unavailable']);
});

test('nobody without a token', async (t) => {
  const { ask } = await open(t, { auth: true });
  for (const [path, body] of [['/api/registry?q=x'], ['/api/registry/plan', { server: 'a/b' }], ['/api/registry/install', { server: 'a/b', agreed: 'x' }]])
    assert.equal((await ask(path, body)).status, 401);
});

test('management that is off', async (t) => {
  await writeFile(`${dir}/mcp-orchestrator.json`, JSON.stringify({ server: { manage: false } }));
  const { ask } = await open(t);
  const got = await ask('/api/registry/plan', { server: 'a/b' });
  assert.deepEqual([got.status, got.code], [403, 'manage_off']);
});

test('the server ends while npm hangs: nothing stays', async (t) => {
  registry.rows = [entry()];
  const { server, ask } = await open(t);
  const want = { server: 'io.github.ada/weather' };
  const { agreed } = await ask('/api/registry/plan', want);
  npm.hangs.add('@ada/weather');
  const hangs = new Promise((resolve) => (npm.onHang = resolve));
  const asked = ask('/api/registry/install', { ...want, agreed }).catch(() => null);
  await hangs;
  process.kill(server.pid, 'SIGTERM');
  await server.exit;
  await asked;
  assert.deepEqual(await installed(), []);
});
