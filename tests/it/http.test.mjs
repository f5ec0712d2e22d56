// HTTP/1.1 as the running program speaks it: what it refuses, what it
// answers, in how many pieces a request may come, and what one client can
// cost.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Raw, ask, assertProblem, assertSafe } from './wire.mjs';
import { MIB, Server, until, workerOf } from './server.mjs';

const KIB = 1024;
const POLL = '/socket.io/?EIO=4&transport=polling';

let server;
before(async () => {
  server = await Server.start(['--test-echo']);
});
after(() => server?.stopClean());

/** A Socket.IO session: the one place where POST bodies are read. */
async function session() {
  const a = await ask(server.port, 'GET', POLL);
  assert.equal(a.status, 200, a.body);
  return `${POLL}&sid=${JSON.parse(a.body.slice(1)).sid}`;
}

// --- what is refused ---------------------------------------------------------

const SECOND = 'GET /healthz?second HTTP/1.1\r\nHost: localhost\r\n\r\n';
const get = (rows) => `GET / HTTP/1.1\r\nHost: localhost\r\n${rows}\r\n\r\n`;
const post = (rows, body) =>
  `POST / HTTP/1.1\r\nHost: localhost\r\n${rows}\r\n\r\n${body}`;

// Each is followed by SECOND, which must never be answered.
const refused = [
  // the strictness table: name, bytes, statuses that are right
  ['bare CR in a header (CVE-2023-30589)',
    post('X-Abc:\rxTransfer-Encoding: chunked', '1\r\nA\r\n0\r\n\r\n')],
  ['bare CR ends the head', 'GET / HTTP/1.1\r\nHost: localhost\r\r\n'],
  ['space before Content-Length (CVE-2024-27982)',
    `POST / HTTP/1.1\r\n Content-Length: ${SECOND.length}\r\n` +
      'Host: localhost\r\n\r\n'],
  ['space before a later Content-Length',
    post(` Content-Length: ${SECOND.length}`, '')],
  ['TE : chunked', post('Transfer-Encoding : chunked', '0\r\n\r\n')],
  ['CL + TE', post('Content-Length: 5\r\nTransfer-Encoding: chunked',
    '0\r\n\r\n')],
  ['TE + CL', post('Transfer-Encoding: chunked\r\nContent-Length: 5',
    '0\r\n\r\n')],
  ['two different Content-Lengths',
    post('Content-Length: 5\r\nContent-Length: 6', 'hello')],
  ['two equal Content-Lengths',
    post('Content-Length: 5\r\nContent-Length: 5', 'hello')],
  ['a list of Content-Lengths', post('Content-Length: 5, 5', 'hello')],
  ['LF only', 'GET / HTTP/1.1\nHost: localhost\n\n'],
  ['one LF among CRLF', get('A: b\nC: d')],
  ['obs-fold', get('A: b\r\n c')],
  ['obs-fold with a tab', get('A: b\r\n\tc')],
  ['1 MB header', get(`A: ${'x'.repeat(MIB)}`), [431]],
  ['1 MB of headers', get('A: b\r\n'.repeat(MIB / 6) + 'A: b'), [431]],
  ['1 MB target', `GET /${'x'.repeat(MIB)} HTTP/1.1\r\n\r\n`, [414, 431]],
  ['Content-Length: +5', post('Content-Length: +5', 'hello')],
  ['Content-Length: -5', post('Content-Length: -5', 'hello')],
  ['Content-Length: 0x5', post('Content-Length: 0x5', 'hello')],
  ['Content-Length: 5 5', post('Content-Length: 5 5', 'hello')],
  ['Content-Length: nothing', post('Content-Length:', 'hello')],
  ['Content-Length: over 64 bits',
    post('Content-Length: 18446744073709551621', 'hello')],
  // and their relatives
  ['Transfer-Encoding: gzip', post('Transfer-Encoding: gzip', 'x'),
    [400, 501]],
  ['Transfer-Encoding: chunked, gzip',
    post('Transfer-Encoding: chunked, gzip', '0\r\n\r\n'), [400, 501]],
  ['Transfer-Encoding: gzip, chunked',
    post('Transfer-Encoding: gzip, chunked', '0\r\n\r\n'), [400, 501]],
  ['Transfer-Encoding twice',
    post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
      '0\r\n\r\n'), [400, 501]],
  ['Transfer-Encoding: xchunked', post('Transfer-Encoding: xchunked', ''),
    [400, 501]],
  ['Transfer-Encoding with HTTP/1.0',
    'POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n' +
      '\r\n0\r\n\r\n'],
  ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
  ['two Hosts', get('Host: evil.example')],
  ['NUL in a value', get('A: b\0c')],
  ['control byte in a value', get('A: b\x01c')],
  ['space in a name', get('A b: c')],
  ['no name', get(': c')],
  ['no colon', get('Abc')],
  ['space in the target', 'GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ['control byte in the target',
    'GET /\x7f HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ['HTTP/2.0', 'GET / HTTP/2.0\r\nHost: localhost\r\n\r\n', [400, 505]],
  ['HTTP/0.9', 'GET /\r\n', [400, 505]],
  ['lower-case http', 'GET / http/1.1\r\nHost: localhost\r\n\r\n'],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400, 505]],
  ['not HTTP at all', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
];

const chunked = (body) => ['Transfer-Encoding: chunked', body];
// The same for bodies that are read: to a Socket.IO session.
const refusedBodies = [
  ['a chunk size of letters', ...chunked('zz\r\nhello\r\n0\r\n\r\n')],
  ['a negative chunk size', ...chunked('-1\r\nx\r\n0\r\n\r\n')],
  ['a chunk size with 0x', ...chunked('0x1\r\nx\r\n0\r\n\r\n')],
  ['a chunk size with +', ...chunked('+1\r\nx\r\n0\r\n\r\n')],
  ['an empty chunk size', ...chunked('\r\nx\r\n0\r\n\r\n')],
  ['a chunk size over 64 bits',
    ...chunked('10000000000000001\r\nx\r\n0\r\n\r\n')],
  ['a chunk longer than said', ...chunked('1\r\nxy\r\n0\r\n\r\n')],
  ['a chunk ended by LF', ...chunked('1\r\nx\n0\r\n\r\n')],
  ['a chunk size ended by LF', ...chunked('1\nx\r\n0\r\n\r\n')],
  ['100 KB of chunk extension',
    ...chunked(`1;a=${'x'.repeat(100 * KIB)}\r\nx\r\n0\r\n\r\n`)],
  ['100 KB of chunk extensions, small ones',
    ...chunked('1;a=b\r\nx\r\n'.repeat(100 * KIB / 10) + '0\r\n\r\n')],
  ['a trailer that smuggles', ...chunked('0\r\nContent-Length: 5\r\n\r\n')],
];

/** Exactly one answer, of these statuses, then the end. */
async function assertRefused(c, statuses) {
  const all = await c.rest();
  assert.equal(all.length, 1, JSON.stringify(all));
  assert.ok(statuses.includes(all[0].status),
    `${all[0].status}: ${all[0].body}`);
  assertProblem(all[0], all[0].status);
  assertSafe(all[0]);
  assert.equal(all[0].headers.connection, 'close');
}

describe('refused, and the connection closed', () => {
  for (const [name, bytes, statuses = [400]] of refused)
    test(name, async () => {
      const c = await Raw.connect(server.port);
      c.send(bytes + SECOND);
      await assertRefused(c, statuses);
    });

  for (const [name, rows, body] of refusedBodies)
    test(`in a body: ${name}`, async () => {
      const target = await session();
      const c = await Raw.connect(server.port);
      c.send(`POST ${target} HTTP/1.1\r\nHost: localhost\r\n` +
        `Content-Type: text/plain\r\n${rows}\r\n\r\n${body}${SECOND}`);
      await assertRefused(c, [400]);
    });

  test('in the middle of a pipeline: those before are answered', async () => {
    const c = await Raw.connect(server.port);
    c.send(SECOND + SECOND + get('A: b\nC: d') + SECOND);
    const all = await c.rest();
    assert.deepEqual(all.map((a) => a.status), [200, 200, 400]);
  });

  test('one byte at a time: every row the same', async () => {
    const rows = refused.filter(([, bytes]) => bytes.length < 200);
    await Promise.all(rows.map(async ([name, bytes, statuses = [400]]) => {
      const c = await Raw.connect(server.port);
      c.socket.setNoDelay(true);
      for (const byte of bytes + SECOND) {
        if (c.ended || c.socket.destroyed) break;
        c.send(byte);
        await new Promise(setImmediate);
      }
      const all = await c.rest();
      assert.deepEqual(all.length, 1, `${name}: ${JSON.stringify(all)}`);
      assert.ok(statuses.includes(all[0].status), `${name}: ${all[0].status}`);
    }));
  });

  test('a body over the limit is 413 before it is sent', async () => {
    const target = await session();
    const c = await Raw.connect(server.port);
    c.send(`POST ${target} HTTP/1.1\r\nHost: localhost\r\n` +
      `Content-Length: ${1e9}\r\nExpect: 100-continue\r\n\r\n`);
    const all = await c.rest();
    assert.deepEqual(all.map((a) => a.status), [413]);
  });

  test('a chunked body over the limit is 413', async () => {
    const target = await session();
    const c = await Raw.connect(server.port);
    const chunk = `${(64 * KIB).toString(16)}\r\n${'x'.repeat(64 * KIB)}\r\n`;
    c.send(`POST ${target} HTTP/1.1\r\nHost: localhost\r\n` +
      'Transfer-Encoding: chunked\r\n\r\n');
    for (let i = 0; i < 200; i++) c.send(chunk);
    c.send('0\r\n\r\n');
    const all = await c.rest();
    assert.deepEqual(all.map((a) => a.status), [413]);
  });
});

// --- what is answered ----------------------------------------------------------

const ROUTES = ['/', '/s/abc', '/overview', '/icon.png', '/healthz', '/readyz',
  '/health', '/metrics'];

describe('answered', () => {
  test('100 pipelined requests, in order, on one connection', async () => {
    const c = await Raw.connect(server.port);
    let all = '';
    for (let i = 0; i < 100; i++)
      all += i % 2 ? SECOND : get(`X: ${i}`);
    c.send(all);
    for (let i = 0; i < 100; i++) {
      const a = await c.answer();
      assert.equal(a.status, 200);
      const type = i % 2 ? 'text/plain' : 'text/html';
      assert.ok(a.headers['content-type'].startsWith(type), `answer ${i}`);
      assert.ok(!('connection' in a.headers));
    }
    c.close();
  });

  test('a pipeline far larger than any buffer', async () => {
    const c = await Raw.connect(server.port);
    const n = 4000; // 240 KB of requests
    c.send(SECOND.repeat(n));
    for (let i = 0; i < n; i++) assert.equal((await c.answer()).status, 200);
    c.close();
  });

  test('a request that comes byte by byte', async () => {
    const c = await Raw.connect(server.port);
    c.socket.setNoDelay(true);
    for (const byte of get('A: b')) {
      c.send(byte);
      await sleep(1);
    }
    assert.equal((await c.answer()).status, 200);
    c.close();
  });

  test('100-continue: asked for, then the body is read', async () => {
    const target = await session();
    const c = await Raw.connect(server.port);
    c.send(`POST ${target} HTTP/1.1\r\nHost: localhost\r\n` +
      'Content-Length: 2\r\nExpect: 100-continue\r\n\r\n');
    assert.equal((await c.answer()).status, 100);
    c.send('40');
    const a = await c.answer();
    assert.equal(a.status, 200);
    assert.equal(a.body, 'ok');
    c.close();
  });

  test('100-continue where no body is wanted: the answer, then the end',
    async () => {
      const c = await Raw.connect(server.port);
      c.send('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n' +
        `Expect: 100-continue\r\n\r\n${SECOND}`);
      const all = await c.rest();
      assert.deepEqual(all.map((a) => a.status), [405]);
    });

  test('a body in chunks', async () => {
    const target = await session();
    const c = await Raw.connect(server.port);
    c.send(`POST ${target} HTTP/1.1\r\nHost: localhost\r\n` +
      'Transfer-Encoding: chunked\r\n\r\n1\r\n4\r\n1;x=y\r\n0\r\n0\r\n\r\n' +
      SECOND);
    assert.equal((await c.answer()).body, 'ok');
    assert.equal((await c.answer()).body, 'ok\n', 'and the next one');
    c.close();
  });

  for (const path of ROUTES)
    test(`HEAD ${path} is GET without the body`, async () => {
      const c = await Raw.connect(server.port);
      c.request('GET', path).request('HEAD', path).request('GET', '/healthz');
      const [g, h, next] = [await c.answer(), await c.answer(),
        await c.answer()];
      c.close();
      assert.equal(g.status, 200);
      assert.equal(h.status, g.status);
      assert.equal(h.body, '');
      for (const name of ['content-type', 'content-security-policy'])
        assert.equal(h.headers[name], g.headers[name]);
      if (path !== '/metrics')
        assert.equal(h.headers['content-length'], g.headers['content-length']);
      assert.ok(Number(h.headers['content-length']) > 0);
      assertSafe(g);
      assertSafe(h);
      assert.equal(next.body, 'ok\n');
    });

  test('an unknown path is 404 for every method, HEAD without a body',
    async () => {
      const c = await Raw.connect(server.port);
      for (const m of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        c.request(m, '/nothing?x=1');
        const a = await c.answer();
        assertProblem(a, 404, 'not_found');
        assertSafe(a);
      }
      c.request('HEAD', '/nothing');
      assert.equal((await c.answer()).status, 404);
      c.close();
    });

  for (const target of ['//', '/./', '/%2e%2e/etc/passwd', '/../etc/passwd',
    '/healthz/', '/HEALTHZ', '/healthz%00', 'http://localhost/healthz', '*'])
    test(`no other way to spell a path: ${target}`, async () => {
      const a = await ask(server.port, target === '*' ? 'OPTIONS' : 'GET',
        target);
      assert.ok([400, 404].includes(a.status), a.body);
    });

  test('a wrong method is 405 and names the right ones', async () => {
    for (const m of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE']) {
      for (const path of ROUTES) {
        const a = await ask(server.port, m, path);
        assertProblem(a, 405, 'method_not_allowed');
        assert.equal(a.headers.allow, 'GET, HEAD');
        assertSafe(a);
      }
    }
  });

  for (const [m, target] of [['CONNECT', 'localhost:22'], ['BREW', '/']])
    test(`${m} is not offered`, async () => {
      const c = await Raw.connect(server.port);
      const all = await c.request(m, target).send(SECOND).rest();
      assert.equal(all.length, 1);
      assertProblem(all[0], 501, 'not_implemented');
    });

  test("HTTP/1.0: closes, and keeps on when asked to", async () => {
    const c = await Raw.connect(server.port);
    const row = 'Host: localhost\r\n';
    c.send(`GET /healthz HTTP/1.0\r\n${row}Connection: keep-alive\r\n\r\n`);
    assert.equal((await c.answer()).headers.connection, 'keep-alive');
    c.send(`GET /healthz HTTP/1.0\r\n${row}\r\n`);
    const last = await c.rest();
    assert.equal(last.length, 1);
    assert.equal(last[0].headers.connection, 'close');
  });

  test('Connection: close is kept', async () => {
    const c = await Raw.connect(server.port);
    c.request('GET', '/healthz', { Connection: 'close' });
    c.request('GET', '/healthz');
    const all = await c.rest();
    assert.equal(all.length, 1);
    assert.equal(all[0].headers.connection, 'close');
  });

  test('a client that half-closes still gets its answers', async () => {
    const c = await Raw.connect(server.port);
    c.send(SECOND.repeat(3)).end();
    assert.deepEqual((await c.rest()).map((a) => a.status), [200, 200, 200]);
  });

  test("node's own client, kept alive", async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set();
    const one = (path, method = 'GET') =>
      new Promise((resolve, reject) => {
        const rq = http.request(
          { port: server.port, host: 'localhost', path, method, agent },
          (r) => {
            let body = '';
            sockets.add(r.socket);
            r.on('data', (d) => (body += d));
            r.on('end', () => resolve({ status: r.statusCode, body }));
          });
        rq.on('error', reject);
        rq.end();
      });
    for (const path of ROUTES) assert.equal((await one(path)).status, 200);
    assert.equal((await one('/', 'HEAD')).status, 200);
    assert.equal((await one('/nothing')).status, 404);
    assert.equal(sockets.size, 1);
    agent.destroy();
  });

  test('readyz says what was asked and how it stands', async () => {
    const a = await ask(server.port, 'GET', '/readyz');
    const r = JSON.parse(a.body);
    assert.equal(r.ready, true);
    assert.ok(r.checks.length >= 1);
    for (const c of r.checks) assert.deepEqual([c.ok, c.reason],
      [true, undefined]);
  });

  test('metrics count what was answered, by route and status', async () => {
    const count = async (labels) =>
      (await server.metric(`mo_http_requests_total${labels}`)) ?? 0;
    const rows = ['{route="/icon.png",status="200"}',
      '{route="other",status="404"}', '{route="bad",status="400"}'];
    const was = await Promise.all(rows.map(count));
    await ask(server.port, 'GET', '/icon.png');
    await ask(server.port, 'GET', `/${Math.random()}`);
    await (await Raw.connect(server.port)).send(get('A b: c')).rest();
    const now = await Promise.all(rows.map(count));
    assert.deepEqual(now, was.map((n) => n + 1));
  });
});

// --- what one client can cost ----------------------------------------------------

describe('limits', () => {
  const limits = { headMs: 4000, bodyMs: 700, idleMs: 700, sendMs: 700,
    requests: 5, connections: 600, connectionsPerPeer: 600 };
  let dir, tight;

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-http-'));
    await writeFile(join(dir, 'mcp-orchestrator.json'),
      JSON.stringify({ server: { limits } }));
    tight = await Server.start(['--test-echo'], { dir });
  });
  after(async () => {
    await tight?.stopClean();
    await rm(dir, { recursive: true, force: true });
  });

  test('requests: the last answer says close, no more are taken', async () => {
    const c = await Raw.connect(tight.port);
    c.send(SECOND.repeat(8));
    const all = await c.rest();
    assert.equal(all.length, limits.requests);
    assert.deepEqual(all.map((a) => a.headers.connection),
      [undefined, undefined, undefined, undefined, 'close']);
  });

  test('slowloris: 200 slow heads delay nobody and are cut', async () => {
    const before = await tight.measure();
    const slow = await Promise.all(Array.from({ length: 200 }, () =>
      Raw.connect(tight.port)));
    let at = 0;
    const head = `GET / HTTP/1.1\r\nHost: localhost\r\nA: ${'x'.repeat(4000)}`;
    const drip = setInterval(() => {
      for (const c of slow) if (!c.ended) c.send(head[at]);
      at++;
    }, 20);
    try {
      let among = 0; // answers while they were there
      for (let i = 0; i < 10; i++) {
        const a = await ask(tight.port, 'GET', '/healthz');
        assert.equal(a.status, 200);
        among += slow.some((c) => !c.ended);
      }
      assert.ok(among > 0, 'while they were there');
      const ends = await Promise.all(slow.map((c) => c.rest()));
      for (const all of ends) {
        assert.equal(all.length, 1);
        assertProblem(all[0], 408, 'head_timeout');
        assertSafe(all[0]);
      }
    } finally {
      clearInterval(drip);
      for (const c of slow) c.close();
    }
    await tight.assertBack(before);
  });

  test('a connection that says nothing is closed without a word', async () => {
    const c = await Raw.connect(tight.port);
    assert.deepEqual(await c.rest(), []);
  });

  test('idle between requests: closed', async () => {
    const c = await Raw.connect(tight.port);
    c.request('GET', '/healthz');
    assert.equal((await c.answer()).status, 200);
    assert.deepEqual(await c.rest(), []);
  });

  test('a body that stops coming is 408', async () => {
    const first = await ask(tight.port, 'GET', POLL);
    const { sid } = JSON.parse(first.body.slice(1));
    const c = await Raw.connect(tight.port);
    c.send(`POST ${POLL}&sid=${sid} HTTP/1.1\r\nHost: localhost\r\n` +
      'Content-Length: 10\r\n\r\n4');
    const all = await c.rest();
    assert.equal(all.length, 1);
    assertProblem(all[0], 408, 'body_timeout');
    assertSafe(all[0]);
  });

  test('a client that reads nothing is cut, and costs little', async () => {
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify(
      { server: { limits: { ...limits, requests: 1e6 } } }));
    const probe = await Raw.connect(tight.port);
    probe.close();
    await until(() => /server.limits.requests changed/.test(tight.log),
      'the new limit');
    const before = await tight.measure();
    const ask1 = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const greedy = await Promise.all(Array.from({ length: 20 }, async () => {
      const c = await Raw.connect(tight.port);
      c.socket.pause();
      c.send(ask1.repeat(20_000)); // megabytes of answers each
      return c;
    }));
    let most = 0;
    const gone = async () => {
      most = Math.max(most, await tight.rss());
      return (await tight.fds()) <= before.fds;
    };
    await until(gone, 'the server to cut them', 30_000);
    const grew = (most - before.rss) / MIB;
    assert.ok(grew < 24, `grew by ${grew.toFixed(1)} MiB for 20 clients`);
    for (const c of greedy) c.close();
    assert.equal((await ask(tight.port, 'GET', '/healthz')).status, 200);
  });

  test('connections over the limit wait and are then served', async () => {
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify(
      { server: { limits: { ...limits, connections: 10, headMs: 60_000,
        idleMs: 60_000 } } })); // none is closed for being idle
    const told = () => new Set([...tight.log.matchAll(/^.*server\.limits\.connections changed.*$/gm)]
      .map(([line]) => workerOf(line))).size;
    await until(() => told() === tight.workers, 'the new limit, at every process');
    const first = await Promise.all(Array.from({ length: 10 }, () =>
      Raw.connect(tight.port)));
    for (const c of first) // all of them are accepted, whichever worker does that
      assert.equal((await c.request('GET', '/healthz').answer()).status, 200);
    const eleventh = await Raw.connect(tight.port);
    eleventh.request('GET', '/healthz', { Connection: 'close' });
    await sleep(200);
    assert.equal(eleventh.buf.length, 0, 'not accepted yet');
    first[5].close();
    assert.equal((await eleventh.answer()).status, 200);
    for (const c of [...first, eleventh]) c.close();
  });
});

describe('nothing stays', () => {
  test('1000 requests and 1000 connections leave no descriptor', async () => {
    await ask(server.port, 'GET', '/healthz');
    const before = await server.measure();
    const c = await Raw.connect(server.port);
    c.send(SECOND.repeat(1000));
    for (let i = 0; i < 1000; i++)
      assert.equal((await c.answer()).status, 200);
    c.close();
    for (let i = 0; i < 20; i++)
      await Promise.all(Array.from({ length: 50 }, async (_, k) => {
        const one = await Raw.connect(server.port);
        if (k % 5 === 0) return one.close(); // some only knock
        if (k % 5 === 1) one.send('GET / HT'); // some leave in the middle
        else assert.equal((await one.request('GET', '/').answer()).status, 200);
        one.close();
      }));
    await server.assertBack(before);
    assert.deepEqual(await server.children(), []);
  });
});
