// Our MCP client over HTTP against servers made with the official SDKs: the
// "everything" server, one that hangs up in the middle of a call, and one of
// the modern era.
import { McpServer as LegacyServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

import { freePort } from '../lib/port.mjs';

const build =
  process.env.MO_BUILD ??
  fileURLToPath(new URL('../../build-asan', import.meta.url));
const everything = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
);

// The leak check takes seconds a run; the unit tests have it.
const env = { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' };

/** Run the client; its lines as [word, rest] pairs, and its status. */
function client(url, mode, ...requests) {
  const args = requests.map((r) =>
    typeof r === 'string' ? r : JSON.stringify(r),
  );
  return new Promise((resolve) => {
    const child = execFile(
      join(build, 'tests/it/mcp_http_client'),
      [url, mode, ...args],
      { timeout: 60_000, maxBuffer: 1 << 24, env },
      (error, out, err) => {
        const lines = out
          .trimEnd()
          .split('\n')
          .map((l) => /^(\S+) ?(.*)$/.exec(l).slice(1));
        resolve({ code: error ? child.exitCode : 0, lines, err });
      },
    );
  });
}

const words = (r) => r.lines.map(([word]) => word);
const results = (r) =>
  r.lines.filter(([w]) => w === 'result').map(([, text]) => JSON.parse(text));

async function listen(handler) {
  const server = createServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: `http://127.0.0.1:${server.address().port}/mcp` };
}

function stop(server) {
  server.closeAllConnections();
  server.close();
}

/** The "everything" server in one of its modes, on a free port. */
async function startEverything(mode) {
  const port = await freePort();
  const child = spawn(process.execPath, [everything, mode], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  child.stderr.setEncoding('utf8');
  let said = '';
  while (!/listening|running/i.test(said))
    said += (await once(child.stderr, 'data'))[0];
  child.stderr.resume();
  return { child, base: `http://127.0.0.1:${port}` };
}

describe('the everything server', () => {
  let at;
  let url;
  before(async () => {
    at = await startEverything('streamableHttp');
    url = `${at.base}/mcp`;
  });
  after(() => at.child.kill());

  test('lists, calls, fails, ends its session', async () => {
    const r = await client(
      url,
      'legacy',
      'tools/list',
      {},
      'tools/call',
      { name: 'echo', arguments: { message: 'h\u00e9' } },
      'no/such',
      {},
    );
    assert.equal(r.err, '');
    assert.equal(r.code, 0);
    const [list, echo] = results(r);
    assert.ok(list.tools.length > 5);
    assert.equal(echo.content[0].text, 'Echo: h\u00e9');
    assert.ok(r.lines.some(([w, t]) => w === 'error' && t.includes('-32601')));
    assert.equal(words(r).at(-1), 'closed');
  });

  test('asks us in the middle of a call, after a probe', async () => {
    const r = await client(
      url,
      'auto',
      'tools/call',
      {
        name: 'trigger-sampling-request',
        arguments: { prompt: 'x', maxTokens: 5 },
      },
      'tools/call',
      {
        name: 'trigger-long-running-operation',
        arguments: { duration: 0.3, steps: 3 },
      },
    );
    assert.equal(r.code, 0);
    assert.deepEqual(r.lines[0], ['legacy', '2025-11-25']);
    assert.ok(
      r.lines.some(([w, t]) => w === 'asked' && t.startsWith('sampling')),
    );
    assert.match(results(r)[0].content[0].text, /sampled here/);
    assert.equal(words(r).filter((w) => w === 'progress').length, 3);
  });
});

describe('the everything server of old', () => {
  let at;
  before(async () => {
    at = await startEverything('sse');
  });
  after(() => at.child.kill());

  test('lists, calls, asks', async () => {
    const r = await client(
      `${at.base}/sse`,
      'sse',
      'tools/list',
      {},
      'tools/call',
      { name: 'echo', arguments: { message: 'old' } },
      'tools/call',
      {
        name: 'trigger-sampling-request',
        arguments: { prompt: 'x', maxTokens: 5 },
      },
    );
    assert.equal(r.err, '');
    assert.equal(r.code, 0);
    const [list, echo, sampled] = results(r);
    assert.ok(list.tools.length > 5);
    assert.equal(echo.content[0].text, 'Echo: old');
    assert.match(sampled.content[0].text, /sampled here/);
  });
});

describe('a server that hangs up', () => {
  // What it sent so far, in order, by the stream it belongs to.
  class Events {
    all = [];
    async storeEvent(stream, message) {
      this.all.push({ stream, message });
      return String(this.all.length);
    }
    async getStreamIdForEventId(id) {
      return this.all[Number(id) - 1]?.stream;
    }
    async replayEventsAfter(id, { send }) {
      const { stream } = this.all[Number(id) - 1];
      for (let i = Number(id); i < this.all.length; i++)
        if (this.all[i].stream === stream && this.all[i].message.jsonrpc)
          await send(String(i + 1), this.all[i].message);
      return stream;
    }
  }

  let at;
  let gets = 0;
  before(async () => {
    const mcp = new LegacyServer({ name: 'hangup', version: '1' });
    mcp.registerTool('slow', { inputSchema: {} }, async (_args, extra) => {
      extra.closeSSEStream();
      await new Promise((wake) => setTimeout(wake, 50));
      return { content: [{ type: 'text', text: 'made it' }] };
    });
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new Events(),
      retryInterval: 20,
    });
    await mcp.connect(transport);
    at = await listen((req, res) => {
      if (req.headers['last-event-id']) gets++;
      void transport.handleRequest(req, res);
    });
  });
  after(() => stop(at.server));

  test('is asked again, and the answer is not lost', async () => {
    const r = await client(at.url, 'legacy', 'tools/call', {
      name: 'slow',
      arguments: {},
    });
    assert.equal(r.err, '');
    assert.deepEqual(words(r), ['legacy', 'result', 'closed']);
    assert.equal(results(r)[0].content[0].text, 'made it');
    assert.ok(gets >= 1);
  });
});

describe('a modern server', () => {
  const seen = [];
  let at;
  before(async () => {
    console.warn = () => {}; // the SDK finds the tool's name unusual; it is
    const handler = createMcpHandler(
      () => {
        const mcp = new McpServer({ name: 'modern', version: '1' });
        mcp.registerTool(
          'h\u00e9',
          { inputSchema: z.object({ n: z.number() }) },
          async ({ n }) => ({
            content: [{ type: 'text', text: String(n * 2) }],
          }),
        );
        return mcp;
      },
      { legacy: 'reject', responseMode: 'sse' },
    );
    at = await listen(async (req, res) => {
      seen.push(req.method, req.headers['mcp-method']);
      const response = await handler.fetch(
        new Request(new URL(req.url, 'http://127.0.0.1'), {
          method: req.method,
          headers: req.headers,
          body: req.method === 'POST' ? Readable.toWeb(req) : undefined,
          duplex: 'half',
        }),
      );
      res.writeHead(response.status, Object.fromEntries(response.headers));
      if (response.body) Readable.fromWeb(response.body).pipe(res);
      else res.end();
    });
  });
  after(() => stop(at.server));

  for (const mode of ['auto', 'modern'])
    test(`${mode}: discovered, listed, called by a name in base64`, async () => {
      const r = await client(
        at.url,
        mode,
        'tools/list',
        {},
        'tools/call',
        { name: 'h\u00e9', arguments: { n: 21 } },
        'tools/call',
        { name: 'h\u00e9', arguments: { n: 'x' } },
      );
      assert.equal(r.err, '');
      assert.deepEqual(r.lines[0], ['modern', '2026-07-28']);
      const [list, call, bad] = results(r);
      assert.equal(list.tools[0].name, 'h\u00e9');
      assert.equal(call.content[0].text, '42');
      assert.ok(bad.isError);
      assert.ok(!seen.includes('GET') && !seen.includes('DELETE'));
    });
});
