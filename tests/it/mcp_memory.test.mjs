// What the commands remember of a server from one run to the next, and what
// they find out again.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, test } from 'node:test';

import { bin, run, script } from '../lib/mcp.mjs';

let dir, state;
beforeEach(async (t) => {
  dir = await mkdtemp(join(tmpdir(), 'mo-memory-'));
  state = join(dir, 'state');
  t.after(() => rm(dir, { recursive: true }));
});
const cli = (args, stateDir = state) =>
  run(bin, args, { cwd: dir, env: { MCP_ORCHESTRATOR_STATE_DIR: stateDir } });

describe('the era of a server', () => {
  const log = () => join(dir, 'log');
  const become = (era) => writeFile(`${log()}.era`, era);
  const kept = async () =>
    JSON.parse(await readFile(join(state, 'eras.json'), 'utf8')).servers;

  /** What the server was asked during one run. */
  async function asked(stateDir) {
    await writeFile(log(), '');
    const { code, err } = await cli(
      ['mcp', 'test', '--command', script('mcp_eras.mjs', log())], stateDir);
    assert.deepEqual([code, err], [0, '']);
    return (await readFile(log(), 'utf8')).trim().split('\n')
      .filter((m) => !/tools|ping|notifications/.test(m));
  }
  const PROBED = ['start', 'server/discover', 'start', 'initialize'];

  test('one that dies of the probe is probed once', async () => {
    await become('dies');
    assert.deepEqual(await asked(), PROBED);
    assert.deepEqual(await asked(), ['start', 'initialize']);
    const [entry] = Object.values(await kept());
    assert.equal(entry.era, 'legacy');
    assert.ok(Math.abs(Date.now() - entry.at) < 600_000);
    const file = await readFile(join(state, 'eras.json'), 'utf8');
    assert.ok(!file.includes('mcp_eras'), 'command lines may hold secrets');
    assert.equal((await stat(join(state, 'eras.json'))).mode & 0o777, 0o600);
  });

  test('an old verdict is not believed', async () => {
    await become('dies');
    await asked();
    const servers = await kept();
    for (const s of Object.values(servers)) s.at -= 25 * 3600 * 1000;
    await writeFile(join(state, 'eras.json'), JSON.stringify({ servers }));
    assert.deepEqual(await asked(), PROBED);
    assert.deepEqual(await asked(), ['start', 'initialize']);
  });

  test('neither is one from the future', async () => {
    await become('dies');
    await asked();
    const servers = await kept();
    for (const s of Object.values(servers)) s.at += 3600 * 1000;
    await writeFile(join(state, 'eras.json'), JSON.stringify({ servers }));
    assert.deepEqual(await asked(), PROBED);
  });

  test('a wrong one is found out and replaced', async () => {
    await become('dies');
    await asked();
    await become('modern');
    assert.deepEqual(await asked(),
      ['start', 'initialize', 'start', 'server/discover']);
    assert.equal(Object.values(await kept())[0].era, 'modern');
    assert.deepEqual(await asked(), ['start', 'server/discover']);
    await become('dies');
    assert.deepEqual(await asked(), PROBED);
    assert.deepEqual(await asked(), ['start', 'initialize']);
  });

  test('--era asks nobody and keeps nothing', async () => {
    await become('dies');
    const { code } = await cli(['mcp', 'test', '--era', 'legacy', '--command',
      script('mcp_eras.mjs', log())]);
    assert.equal(code, 0);
    await assert.rejects(kept(), { code: 'ENOENT' });
  });

  for (const [name, text] of [
    ['broken', '{"servers":'], ['of another shape', '[1,2]'],
    ['full of nonsense', '{"servers":{"x":1,"y":{"era":"stone","at":"soon"}}}'],
    ['empty', ''],
  ])
    test(`a file that is ${name} costs a probe`, async () => {
      await become('dies');
      await asked();
      await writeFile(join(state, 'eras.json'), text);
      assert.deepEqual(await asked(), PROBED);
      assert.deepEqual(await asked(), ['start', 'initialize']);
    });

  test('nowhere to write: no record, so nothing is started', async () => {
    await become('dies');
    await writeFile(log(), '');
    await writeFile(join(dir, 'file'), '');
    const { code, err } = await cli(
      ['mcp', 'test', '--command', script('mcp_eras.mjs', log())], join(dir, 'file', 'state'));
    assert.equal(code, 4);
    assert.match(err, /not done, because the audit log cannot be written/);
    assert.equal(await readFile(log(), 'utf8'), '');
  });
});

describe('headers that a schema asks for', () => {
  /** A modern server that wants `header` on top of what the list said then. */
  async function server(t, { headers, lies = false }) {
    const seen = [];
    const schema = () => ({
      type: 'object',
      properties: {
        where: { type: 'string', 'x-mcp-header': headers[0] },
        n: { type: 'integer', 'x-mcp-header': 'Count' },
        on: { type: 'boolean' },
      },
    });
    const http = createServer(async (req, res) => {
      let body = '';
      for await (const piece of req) body += piece;
      const m = JSON.parse(body);
      const param = `mcp-param-${headers[0].toLowerCase()}`;
      const reply = (status, x) =>
        res.writeHead(status, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: m.id, ...x }));
      const done = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
      seen.push(m.method === 'tools/call'
        ? { call: m.params.arguments, params: Object.fromEntries(
          Object.entries(req.headers).filter(([k]) => k.startsWith('mcp-param'))) }
        : m.method);
      if (m.method === 'server/discover')
        reply(200, { result: {
          ...done, supportedVersions: ['2026-07-28'], capabilities: { tools: {} },
        } });
      else if (m.method === 'tools/list') {
        reply(200, { result: { ...done, tools: [{ name: 't', inputSchema: schema() }] } });
        if (headers.length > 1) headers.shift(); // it changes behind our back
      } else if (lies || !(param in req.headers))
        reply(400, { error: { code: -32020, message: 'header mismatch' } });
      else
        reply(200, { result: { ...done, content: [{ type: 'text', text: 'ok' }] } });
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    t.after(() => {
      http.closeAllConnections();
      http.close();
    });
    return { url: `http://127.0.0.1:${http.address().port}/mcp`, seen };
  }
  const args = '{"where":"Köln","n":4.2e1,"on":true}';
  const value = '=?base64?S8O2bG4=?=';
  const call = (params) => ({ call: JSON.parse(args), params });

  test('are sent with the call', async (t) => {
    const { url, seen } = await server(t, { headers: ['Region'] });
    const { code, out, err } = await cli(['call', '--url', url, 't', args]);
    assert.deepEqual([code, out, err], [0, 'ok\n', '']);
    assert.deepEqual(seen, ['server/discover', 'tools/list',
      call({ 'mcp-param-region': value, 'mcp-param-count': '42' })]);
  });

  test('are made anew when the server finds them wrong', async (t) => {
    const { url, seen } = await server(t, { headers: ['Region', 'Zone'] });
    const { code, out } = await cli(['call', '--url', url, 't', args]);
    assert.deepEqual([code, out], [0, 'ok\n']);
    assert.deepEqual(seen.slice(1), ['tools/list',
      call({ 'mcp-param-region': value, 'mcp-param-count': '42' }), 'tools/list',
      call({ 'mcp-param-zone': value, 'mcp-param-count': '42' })]);
  });

  test('but only once', async (t) => {
    const { url, seen } = await server(t, { headers: ['Region'], lies: true });
    const { code, err } = await cli(['call', '--url', url, 't', args]);
    assert.equal(code, 1);
    assert.match(err, /-32020/);
    assert.equal(seen.filter((s) => s.call).length, 2);
  });

  test('a tool whose marks contradict each other is not called', async (t) => {
    const { url, seen } = await server(t, { headers: ['Count'] });
    const { code, err } = await cli(['call', '--url', url, 't', args]);
    assert.equal(code, 4);
    assert.match(err, /must not be called over HTTP.*is used twice/);
    assert.equal(seen.filter((s) => s.call).length, 0);
  });
});
