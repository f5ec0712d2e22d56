// Connections of people (`credentials: user`) at servers with directories of their
// own, on one Redis: connected once, used and refreshed anywhere, gone everywhere.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { missing as skip } from '../lib/redis.mjs';
import { Whose, connect } from '../lib/whose.mjs';
import { Replicas } from './replicas_kit.mjs';
import { until } from './server.mjs';

const token = (who) => `${who}-has-this-0123456789abcdef`;
const as = (who) => ({ authorization: `Bearer ${token(who)}` });
const key = () => randomBytes(32).toString('hex');

describe('connections', { skip }, () => {
  let all, whose;
  const url = (n) => all.v[n].server.url;
  const api = async (n, who, method = 'GET', path = '') =>
    (await fetch(`${url(n)}/api/connections${path}`, { method, headers: { ...as(who), connection: 'close' } })).json();
  const connected = async (n, who) => (await api(n, who)).connections.filter((c) => c.connected).map((c) => c.server);
  async function whoami(n, who, times = 1) {
    const c = new Client({ name: 'it', version: '1' });
    await c.connect(new StreamableHTTPClientTransport(new URL(`${url(n)}/mcp`), { requestInit: { headers: as(who) } }));
    try {
      await until(async () => (await c.listTools()).tools.some((t) => t.name === 's0_whoami'), `the tools at ${n}`);
      const got = await Promise.all(Array.from({ length: times }, (_, i) => c.callTool({ name: 's0_whoami', arguments: { n: i } })));
      return got.map((r) => (r.isError ? r.content[0].text : JSON.parse(r.content[0].text).user));
    } finally {
      await c.close();
    }
  }

  before(async () => {
    whose = await new Whose(1).start();
    all = await Replicas.start({ store: 'redis', far: true, auth: true, headers: as('operator'),
      env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4', MCP_ORCHESTRATOR_SECRET_KEY: key() },
      config: { mcpServers: whose.config(), gateway: { prefix: 'always' }, approvals: { default: 'allow' },
        server: { token: token('operator'), tokens: { ann: token('ann'), bob: token('bob') } } } });
    for (const r of all.v) r.server.fresh.fds += 24; // connections to the servers
  });
  after(async () => {
    await all?.stop();
    await whose.stop();
  });
  afterEach(() => assert.deepEqual(whose.wrong, [])); // no token twice, none of another person

  test('who has connected at one is connected at all, and nobody else is', async () => {
    assert.equal((await connect(url(0), as('ann'), 's0', 'ann@there')).status, 200);
    await until(async () => (await connected(1, 'ann')).length, 'the connection');
    assert.deepEqual([await connected(1, 'ann'), await connected(1, 'bob')], [['s0'], []]);
    assert.deepEqual(await whoami(1, 'ann'), ['ann@there']);
    assert.match((await whoami(1, 'bob'))[0], /not connected/);
    assert.equal(whose.seen.codes, 1);
  });

  test('Redis knows neither the names nor the tokens', async () => {
    const marks = all.redis.cli('HGETALL', 'mcp:marks');
    assert.match(marks, /connections:file:/);
    const secrets = whose.servers.flatMap((s) => [...s.access.keys(), ...s.refresh.keys()]);
    for (const text of ['ann', ...secrets]) assert.ok(!marks.includes(text), text);
  });

  test('an expired token is refreshed by one of them', async () => {
    whose.slow = () => sleep(300); // the others wait for it
    whose.expireAll();
    const got = await Promise.all([whoami(0, 'ann', 3), whoami(1, 'ann', 3), whoami(0, 'ann', 3), whoami(1, 'ann', 3)]);
    whose.slow = undefined;
    assert.deepEqual(got.flat(), Array(12).fill('ann@there'));
    assert.equal(whose.seen.refreshed, 1);
  });

  test('a new server has it before it is ready; one with another key has not', async () => {
    await all.add();
    await until(async () => (await fetch(`${url(2)}/readyz`)).status === 200, 'it is ready');
    assert.deepEqual(await connected(2, 'ann'), ['s0']);
    const { env } = all;
    all.env = { ...env, MCP_ORCHESTRATOR_SECRET_KEY: key() };
    await all.add();
    all.env = env;
    await until(() => /do not open: all servers need the same key/.test(all.v[3].server.log), 'the log');
    assert.deepEqual(await connected(3, 'ann'), []);
    assert.deepEqual(await whoami(0, 'ann'), ['ann@there']);
    await all.v[3].signal('SIGTERM');
  });

  test('disconnected at one, gone at all; and connected again, whatever the clocks say', async () => {
    // As from a server whose clock is an hour ahead; the next change takes it along.
    const dir = join(all.dirs[0], '.local/state/mcp-orchestrator/connections');
    const later = Date.now() / 1000 + 3600;
    for (const name of await readdir(dir)) await utimes(join(dir, name), later, later);
    assert.equal((await connect(url(0), as('bob'), 's0', 'bob@there')).status, 200);
    await until(async () => (await connected(1, 'bob')).length, 'the next change');
    assert.equal((await api(1, 'ann', 'DELETE', '/s0')).ok, true);
    for (const n of [0, 1, 2]) await until(async () => !(await connected(n, 'ann')).length, `it is gone at ${n}`);
    assert.match((await whoami(0, 'ann'))[0], /not connected/);
    assert.equal((await connect(url(2), as('ann'), 's0', 'ann@there')).status, 200);
    for (const n of [0, 1]) await until(async () => (await connected(n, 'ann')).length, `it is back at ${n}`);
    assert.deepEqual(await whoami(0, 'ann'), ['ann@there']);
  });

  test('killed while it refreshes: the others go on', async () => {
    whose.expireAll();
    const asked = whoami(1, 'ann').catch(() => []);
    await all.v[1].signal('SIGKILL');
    await asked;
    await all.v[1].up();
    // The answer of the issuer may be lost with it: then she connects again, as with one server.
    await until(async () => {
      const [said] = await whoami(0, 'ann').catch((e) => [e.message]);
      return said === 'ann@there' || /not connected|sign-in/.test(said);
    }, 'an answer', 60_000);
    whose.wrong.length = 0;
  });
});
