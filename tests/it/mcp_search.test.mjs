// `mcp search` against a fake registry that is as strict as the real one, and
// against registries that are down or lie.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';

import { row, startRegistry } from '../fakes/registry.mjs';
import { bin, run, runPeak } from '../lib/mcp.mjs';

const npm = (identifier, more = {}) => ({
  registryType: 'npm', identifier, version: '1.0.0', transport: { type: 'stdio' }, ...more,
});
const rows = [
  row({
    name: 'io.github.ada/weather', title: 'Weather', version: '1.2.0', description: 'Forecasts of rain and wind',
    repository: { url: 'https://github.com/ada/weather', source: 'github' },
    packages: [npm('@ada/weather'), npm('@ada/weather-extra'), { registryType: 'oci', identifier: 'ghcr.io/ada/weather:1.2.0', transport: { type: 'stdio' } }],
    remotes: [{ type: 'streamable-http', url: 'https://weather.example.com/mcp' }],
  }),
  row({ name: 'io.github.ada/weather', version: '1.1.0', description: 'older' }, { latest: false }),
  row({ name: 'com.example/weather-maps', version: '0.1.0', description: 'Maps of rain' }),
  row({ name: 'com.example/weather-old', version: '0.1.0', description: 'Old' }, { status: 'deprecated' }),
  row({ name: 'com.example/weather-gone', version: '0.1.0', description: 'Gone' }, { status: 'deleted' }),
];

let registry, dir;
before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'mo-search-'));
  registry = await startRegistry(rows);
});
after(() => {
  registry.close();
  rmSync(dir, { recursive: true });
});
beforeEach(() => {
  registry.rows = rows;
  registry.faults.length = 0;
  registry.requests.length = 0;
});

const search = (...args) =>
  run(bin, ['mcp', 'search', ...args], { env: { HOME: dir, MCP_REGISTRY_URL: registry.url }, cwd: dir });
async function found(...args) {
  const got = await search(...args, '--json');
  assert.deepEqual([got.code, got.err], [0, '']);
  return JSON.parse(got.out);
}

describe('a registry that works', () => {
  test('names, versions, kinds and descriptions', async () => {
    const got = await search('weather');
    assert.deepEqual([got.code, got.err], [0, '']);
    assert.equal(got.out, `io.github.ada/weather 1.2.0 (npm, oci, remote)
    Forecasts of rain and wind
com.example/weather-maps 0.1.0 (nothing to install)
    Maps of rain
com.example/weather-old 0.1.0 (nothing to install) deprecated
    Old
`);
    assert.deepEqual(registry.problems, []);
    assert.deepEqual((await found('weather')).servers[0], {
      name: 'io.github.ada/weather', title: 'Weather', description: 'Forecasts of rain and wind', version: '1.2.0',
      kinds: ['npm', 'oci', 'remote'], repository: 'https://github.com/ada/weather', status: 'active',
    });
  });

  test('further words choose among them; the longest one is asked for', async () => {
    const got = await found('RAIN', 'weather', 'maps');
    assert.deepEqual(got.servers.map((s) => s.name), ['com.example/weather-maps']);
    assert.match(registry.requests[0], /search=weather(&|$)/);
  });

  test('nothing', async () => {
    assert.equal((await search('no/such & thing?')).out, 'nothing was found\n');
    assert.deepEqual(registry.problems, []);
  });

  test('pages are turned until the limit, and a limit leaves rows', async () => {
    const many = Array.from({ length: 250 }, (_, i) => row({ name: `com.example/n${i}`, version: '1.0.0' }));
    registry.rows = many;
    const got = await found('example', 'n', '--limit', '100');
    assert.deepEqual([got.servers.length, got.more], [100, true]);
    assert.equal(registry.requests.length, 2); // it looks whether there are more
    const last = await found('249');
    assert.deepEqual(last.servers.map((s) => s.name), ['com.example/n249']);
  });

  for (const bad of ['0', '101', 'x', '-1'])
    test(`--limit ${bad} is refused`, async () => {
      const got = await search('x', `--limit=${bad}`);
      assert.equal(got.code, 2);
      assert.match(got.err, /--limit is a number/);
    });
});

describe('a registry that does not', () => {
  const STILL = /; servers that are installed still work\n$/;

  test('down', async () => {
    const server = net.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    await new Promise((done) => server.close(done));
    const got = await run(bin, ['mcp', 'search', 'x'], {
      env: { HOME: dir, MCP_REGISTRY_URL: `http://127.0.0.1:${port}` }, cwd: dir,
    });
    assert.equal(got.code, 4);
    assert.match(got.err, new RegExp(`the registry http://127.0.0.1:${port}: `));
    assert.match(got.err, STILL);
  });

  for (const [name, fault, says] of [
    ['broken', { status: 503 }, /it answers with status 503/],
    ['moved', { status: 302, headers: { location: 'http://169.254.169.254/' } }, /it redirects \(302\); set registry\.url/],
    ['elsewhere', { status: 404 }, /no registry is at that address/],
    ['no JSON', { body: '<html>' }, /not valid JSON/],
    ['half a JSON', { body: '{"servers":[' }, /not valid JSON/],
    ['deep', { body: '['.repeat(100000) }, /not valid JSON/],
    ['no list', { body: '{"servers":{}}' }, /no list of servers/],
    ['another type', { body: '[]' }, /no list of servers/],
    ['a cursor without end', { body: JSON.stringify({ servers: [], metadata: { nextCursor: 'x'.repeat(1e5) } }) }, /cursor is too long/],
  ])
    test(name, async () => {
      registry.faults.push(fault);
      const got = await search('x');
      assert.deepEqual([got.code, got.out], [4, '']);
      assert.match(got.err, says);
      assert.match(got.err, STILL);
      assert.equal(registry.requests.length, 1); // a redirect is not followed
    });

  test('50 MB: refused, in little memory', async () => {
    registry.faults.push({ body: Buffer.alloc(50e6, ' ') });
    const small = await runPeak(bin, ['mcp', 'search', 'weather'], { env: { HOME: dir, MCP_REGISTRY_URL: registry.url }, cwd: dir });
    registry.faults.push({ body: Buffer.alloc(50e6, ' ') });
    const got = await search('x');
    assert.equal(got.code, 4);
    assert.match(got.err, /more than 4 MiB/);
    assert.equal(small.code, 4);
    assert.ok(small.peak < 300000, `${small.peak} KiB`); // ASan's own share included
  });

  test('pages for ever: five are read', async () => {
    for (let i = 0; i < 20; i++)
      registry.faults.push({ body: JSON.stringify({ servers: [], metadata: { nextCursor: 'again' } }) });
    const got = await found('x');
    assert.deepEqual(got, { servers: [], more: true });
    assert.equal(registry.requests.length, 5);
  });

  test('rows that are no servers, and names that would move the cursor', async () => {
    registry.faults.push({
      body: JSON.stringify({
        servers: [
          null, 7, {}, { server: {} }, { server: { name: 'x', version: 3 } }, { server: { name: '', version: '1' } },
          row({ name: 'x\u001b[2Jy', version: '1\r\n2', description: 'a\nb\u202e', packages: [{ registryType: '\u001b]0;' }, 3], remotes: 'x' }),
        ],
      }),
    });
    const got = await search('x');
    assert.equal(got.code, 0);
    assert.equal(got.out, 'x<1b>[2Jy 1<0d><0a>2 (<1b>]0;)\n    a<0a>b<U+202E>\n');
  });
});
