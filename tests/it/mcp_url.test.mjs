// The real program as a client of servers that have an address.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { bin, driver, run } from '../lib/mcp.mjs';

const fixture = join(dirname(driver), '../fixture/fixture');
let dir, server, url;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-url-'));
  server = spawn(fixture, ['--http', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(server.stdout.setEncoding('utf8'), 'data');
  url = line.trim();
});
after(async () => {
  const ended = once(server, 'exit');
  server.kill('SIGTERM');
  await ended;
  await rm(dir, { recursive: true });
});

const cli = (args, more) => run(bin, args, { cwd: dir, ...more });

describe('a server by its address', () => {
  for (const [era, version] of [
    ['auto', '2026-07-28'], ['modern', '2026-07-28'], ['legacy', '2025-11-25'],
  ]) {
    test(`mcp test, ${era}: ${version}`, async () => {
      const { code, out, err } = await cli(
        ['mcp', 'test', '--json', '--era', era, '--url', url]);
      assert.deepEqual([code, err], [0, '']);
      assert.ok(out.includes(version), out);
    });

    test(`call, ${era}`, async () => {
      const { code, out, err } = await cli(
        ['call', '--era', era, '--url', url, 'test_simple_text', '{}']);
      assert.deepEqual([code, err], [0, '']);
      assert.equal(out, 'This is a simple text response for testing.\n');
    });
  }

  test('a tool that fails is exit 1, one that is not there too', async () => {
    const bad = await cli(['call', '--url', url, 'test_error_handling']);
    assert.equal(bad.code, 1);
    const none = await cli(['call', '--url', url, 'no_such_tool']);
    assert.equal(none.code, 1);
    assert.match(none.err, /-32602/);
  });

  test('nobody there: exit 4, and it says where', async () => {
    const { code, err } = await cli(['mcp', 'test', '--url', 'http://127.0.0.1:1/']);
    assert.equal(code, 4);
    assert.match(err, /127\.0\.0\.1:1.*refused/);
  });

  test('--command and --url together are refused', async () => {
    const { code, err } = await cli(
      ['call', '--url', url, '--command', 'true', 'x']);
    assert.equal(code, 2);
    assert.match(err, /not both/);
  });
});

test('configured headers reach the server, resolved, and nobody else', async () => {
  const seen = [];
  const proxy = createServer((req, res) => {
    seen.push(req.headers.authorization);
    res.writeHead(403).end();
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  await writeFile(join(dir, 'c.json'), JSON.stringify({
    mcpServers: { r: {
      url: `http://127.0.0.1:${proxy.address().port}/mcp`,
      headers: { Authorization: 'Bearer ${env:TEST_TOKEN}' },
    } },
  }));
  const { code, out, err } = await cli(
    ['mcp', 'test', 'r', '--config', 'c.json'],
    { env: { TEST_TOKEN: 'a-very-secret-token' } });
  proxy.close();
  assert.notEqual(code, 0);
  assert.ok(seen.length > 0);
  for (const a of seen) assert.equal(a, 'Bearer a-very-secret-token');
  assert.ok(!(out + err).includes('a-very-secret-token'));
});
