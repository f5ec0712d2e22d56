// The server's life and its gate: how it starts, whom it lets in, what a
// signal and a changed file do to it, and how it ends.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Raw, ask, assertProblem, assertSafe, run } from './wire.mjs';
import { noNative } from '../lib/sessions.mjs';
import { fillState } from '../lib/state.mjs';
import { BIN, MIB, Server, replaceFile, until, within } from './server.mjs';

const POLL = '/socket.io/?EIO=4&transport=polling';
// The leak check costs seconds; the servers that matter for it keep it.
const QUICK = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };
const READY = /^MCP Orchestrator \S+ is ready/m;

let dir;
before(async (t) => {
  dir = await mkdtemp(join(tmpdir(), 'mo-it-'));
});
after(() => rm(dir, { recursive: true, force: true }));

let nth = 0;
/** A server that is gone after the test, whatever happens to the test. */
async function started(t, args, options = { env: QUICK }) {
  const server = await Server.start(args, options);
  t.after(async () => {
    server.child.kill('SIGKILL');
    await server.cleanUp();
  });
  return server;
}

/** It was told to end before; how it did. */
async function ending(server) {
  await within(server.exit, `its end\n${server.log}`);
  return server.stop();
}

/** A fresh directory with this configuration. */
async function home(config) {
  const d = await mkdtemp(join(dir, `${nth++}-`));
  if (config) await configure(d, config);
  return d;
}

const fileOf = (d) => join(d, 'mcp-orchestrator.json');
const configure = (d, config) => replaceFile(fileOf(d), typeof config === 'string' ? config : JSON.stringify(config));

// --- the gate ----------------------------------------------------------------------

const LISTED = 'https://chat.example.com';

describe('gate on loopback', () => {
  let server;
  before(async () => {
    const d = await home({ server: { origins: [LISTED,
      'http://other.example:8080'] } });
    server = await Server.start(['--test-echo'], { dir: d });
  });
  after(() => server?.stopClean());

  const P = '%PORT%'; // of the server
  const here = (s) => s?.replaceAll(P, server.port);

  const hosts = [
    ['localhost', 200], [`localhost:${P}`, 200], ['LOCALHOST', 200],
    ['localhost.', 200], [`localhost.:${P}`, 200], ['app.localhost', 200],
    ['127.0.0.1', 200], [`127.0.0.1:${P}`, 200], ['127.9.9.9', 200],
    ['[::1]', 200], [`[::1]:${P}`, 200], ['localhost:1', 200],
    ['evil.example', 403], [`evil.example:${P}`, 403],
    ['127.0.0.1.evil.example', 403], ['127.0.0.1.evil', 403],
    ['localhost.evil.example', 403], ['evil-localhost', 403],
    ['[::2]', 403], ['192.168.1.1', 403], ['0.0.0.0', 403], ['[::]', 403],
    ['', 400], ['localhost:99999', 400], ['localhost:', 400],
    ['localhost:80:80', 400], ['::1', 400], ['[::1', 400], ['127.1', 400],
    ['2130706433', 400], ['0x7f000001', 400], ['user@localhost', 400],
    ['localhost/x', 400], ['localhost evil', 400], ['local\x80host', 400],
    ['127.0.0.1, evil.example', 400],
  ];
  for (const [host, status] of hosts)
    test(`Host: ${JSON.stringify(host)} is ${status}`, async () => {
      const code = { 403: 'host_refused', 400: undefined }[status];
      for (const path of ['/', '/metrics', POLL, '/nothing']) {
        const a = await ask(server.port, 'GET', path, { Host: here(host) });
        if (status === 200) assert.equal(a.status, path === '/nothing' ? 404
          : 200, a.body);
        else assertProblem(a, status, code);
        assertSafe(a);
      }
    });

  test('probes may come under any name', async () => {
    for (const path of ['/healthz', '/readyz', '/health']) {
      const a = await ask(server.port, 'GET', path, { Host: 'pod-1.cluster' });
      assert.equal(a.status, 200);
    }
  });

  // Origin, Host it comes with, allowed?
  const origins = [
    [`http://localhost:${P}`, `localhost:${P}`, true],
    [`http://127.0.0.1:${P}`, `127.0.0.1:${P}`, true],
    [`http://[::1]:${P}`, `[::1]:${P}`, true],
    ['http://localhost', 'localhost', true],
    [LISTED, `localhost:${P}`, true],
    [`${LISTED}:443`, `localhost:${P}`, true],
    ['http://other.example:8080', `localhost:${P}`, true],
    ['http://evil.example', `localhost:${P}`, false],
    ['null', `localhost:${P}`, false],
    ['', `localhost:${P}`, false],
    ['http://localhost:1', `localhost:${P}`, false],
    ['http://localhost', `localhost:${P}`, false],
    [`https://localhost:${P}`, `localhost:${P}`, false],
    [`http://127.0.0.1:${P}`, `localhost:${P}`, false],
    [`http://localhost:${P}.evil.example`, `localhost:${P}`, false],
    [`http://localhost:${P}/`, `localhost:${P}`, false],
    [`http://u@localhost:${P}`, `localhost:${P}`, false],
    [`file://localhost:${P}`, `localhost:${P}`, false],
    ['http://chat.example.com', `localhost:${P}`, false],
    [`${LISTED}.evil.example`, `localhost:${P}`, false],
    [`${LISTED}:8443`, `localhost:${P}`, false],
    ['http://other.example', `localhost:${P}`, false],
    ['*', `localhost:${P}`, false],
  ];
  for (const [origin, host, ok] of origins)
    test(`Origin: ${origin} to ${host} is ${ok ? 'let in' : 'refused'}`,
      async () => {
        const headers = { Origin: here(origin), Host: here(host) };
        for (const [method, path] of [['GET', '/'], ['GET', POLL],
          ['POST', POLL]]) {
          const a = await ask(server.port, method, path, headers,
            method === 'POST' ? '' : undefined);
          if (!ok) assertProblem(a, 403, 'origin_refused');
          else assert.notEqual(a.status, 403, a.body);
          assertSafe(a);
        }
      });

  test('a websocket of a foreign page: refused, no session made', async () => {
    const before = await server.metric('mo_engineio_sessions');
    const a = await ask(server.port, 'GET',
      '/socket.io/?EIO=4&transport=websocket', {
        Origin: 'http://evil.example', Connection: 'Upgrade',
        Upgrade: 'websocket', 'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      });
    assertProblem(a, 403, 'origin_refused');
    assert.equal(await server.metric('mo_engineio_sessions'), before);
  });

  test('what a foreign page embeds is refused, a link is followed',
    async () => {
      const from = (site, mode) =>
        ask(server.port, 'GET', POLL, { 'Sec-Fetch-Site': site,
          'Sec-Fetch-Mode': mode });
      assertProblem(await from('cross-site', 'no-cors'), 403,
        'origin_refused');
      assertProblem(await from('same-site', 'no-cors'), 403,
        'origin_refused');
      assert.equal((await from('same-origin', 'cors')).status, 200);
      assert.equal((await from('none', 'navigate')).status, 200);
      assert.equal((await from('cross-site', 'navigate')).status, 200);
    });

  const preflight = (origin, path = '/metrics') =>
    ask(server.port, 'OPTIONS', path, {
      Origin: here(origin),
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'content-type',
    });
  const cors = (a) =>
    Object.keys(a.headers).filter((k) => k.startsWith('access-control-'));

  for (const origin of ['http://evil.example', 'null', `https://localhost:${P}`])
    test(`a preflight from ${origin} gets no permission`, async () => {
      for (const path of ['/', '/metrics', POLL, '/healthz', '/nothing']) {
        const a = await preflight(origin, path);
        assert.ok(a.status >= 400, `${path}: ${a.status}`);
        assert.deepEqual(cors(a), []);
      }
    });

  test('a preflight from a listed origin is granted', async () => {
    const a = await preflight(LISTED, POLL);
    assert.equal(a.status, 204);
    assert.equal(a.headers['access-control-allow-origin'], LISTED);
    assert.match(a.headers['access-control-allow-methods'], /POST/);
    assert.match(a.headers['access-control-allow-headers'], /Content-Type/);
    assert.equal(a.headers.vary, 'Origin');
    const b = await ask(server.port, 'GET', POLL, { Origin: LISTED });
    assert.equal(b.headers['access-control-allow-origin'], LISTED);
  });

  test('our own page gets no CORS headers, it needs none', async () => {
    const a = await ask(server.port, 'GET', POLL, {
      Origin: here(`http://localhost:${P}`) });
    assert.equal(a.status, 200);
    assert.deepEqual(cors(a), []);
  });
});

/** A server with a token, and ways to ask it; 30 refusals in a minute are too
 *  many for one. */
function withToken(tests) {
  let server, token, host;
  before(async () => {
    const cwd = await home({ log: { level: 'debug' } });
    const state = join(cwd, 'state');
    server = await Server.start(['--listen', '0.0.0.0', '--test-echo'],
      { dir: cwd, auth: true, env: { MCP_ORCHESTRATOR_STATE_DIR: state } });
    token = (await readFile(join(state, 'token'), 'utf8')).trim();
    host = { Host: `box.example:${server.port}` };
  });
  after(() => server?.stopClean());

  const get = (path, headers = {}) =>
    ask(server.port, 'GET', path, { ...host, ...headers });
  const bearer = (t) => ({ Authorization: `Bearer ${t}` });

  tests({ get, bearer, get server() { return server; }, get token() { return token; }, get host() { return host; } });
}

describe('gate with a token', () => withToken((s) => {
  test('it is created at the first start, and not printed to a pipe', () => {
    assert.match(s.token, /^[A-Za-z0-9_-]{32}$/);
    assert.ok(!s.server.log.includes(s.token));
    assert.match(s.server.log, /`mcp-orchestrator open` prints a link/);
  });

  test('401 without it, on every path that is not a probe', async () => {
    for (const path of ['/metrics', '/api/sessions', POLL, '/nothing']) {
      const a = await s.get(path);
      assertProblem(a, 401, 'token_required');
      assert.equal(a.headers['www-authenticate'], 'Bearer');
      assertSafe(a);
    }
    for (const path of ['/healthz', '/readyz', '/health', '/icon.png', '/sign-in.html', '/sign-in.css', '/diagram.html', '/app.html', '/manifest.webmanifest', '/icon-192.png'])
      assert.equal((await s.get(path)).status, 200);
  });

  test('a browser at an unknown address sees the sign-in; data is refused as data', async () => {
    const accept = { Accept: 'text/html,*/*;q=0.8' };
    for (const path of ['/nothing', '/s/any']) {
      const a = await s.get(path, accept);
      assert.equal(a.status, 401);
      assert.match(a.headers['content-type'], /text\/html/);
      assert.match(a.body, /<form/);
      assertSafe(a);
    }
    for (const path of ['/api/nothing', '/assets/nothing.js', '/metrics'])
      assertProblem(await s.get(path, accept), 401, 'token_required');
  });

  test('Bearer opens, also written otherwise; a wrong one does not',
    async () => {
      assert.equal((await s.get('/', s.bearer(s.token))).status, 200);
      assert.equal((await s.get('/metrics', s.bearer(s.token))).status, 200);
      assert.equal((await s.get(POLL, s.bearer(s.token))).status, 200);
      for (const auth of [`bearer ${s.token}`, `BEARER  ${s.token}`])
        assert.equal((await s.get('/', { Authorization: auth })).status, 200);
      for (const t of ['', 'x', s.token.slice(1), `${s.token}x`,
        s.token.toUpperCase(), `${s.token} x`, s.token.slice(0, -1), '*'])
        assertProblem(await s.get('/metrics', s.bearer(t)), 401, 'token_required');
      for (const auth of [s.token, `Basic ${s.token}`, `Bearer${s.token}`])
        assertProblem(await s.get('/metrics', { Authorization: auth }), 401);
    });

  test('/?token= sets the cookie and leaves the address bar', async () => {
    const a = await s.get(`/?token=${s.token}`);
    assert.equal(a.status, 303);
    assert.equal(a.headers.location, '/');
    assertSafe(a);
    const set = a.headers['set-cookie'];
    assert.match(set, /; HttpOnly(;|$)/);
    assert.match(set, /; SameSite=Strict(;|$)/);
    assert.match(set, /; Path=\/(;|$)/);
    const pair = set.split(';')[0];
    for (const cookie of [pair, `a=b; ${pair}`, `${pair}; c=d`,
      `mo_1=1; ${pair}`])
      assert.equal((await s.get('/', { Cookie: cookie })).status, 200, cookie);
    assert.ok(!set.includes(s.token), 'the cookie is not the token');
    const name = pair.split('=')[0];
    assert.equal(name, `mo_${s.server.port}`);
    for (const cookie of [`${pair}x`, `x${pair}`, pair.toUpperCase(),
      `${name}=`, name, `${name}=${s.token}`])
      assertProblem(await s.get('/metrics', { Cookie: cookie }), 401);
    // a page at another port of this host cannot sign anyone out
    assert.equal((await s.get('/metrics', { Cookie: `${name}=x; ${pair}` })).status, 200);
    for (const other of ['box.example', `localhost:${s.server.port}`, `box.example:${s.server.port + 1}`])
      assertProblem(await s.get('/metrics', { Cookie: pair, Host: other }), 401);
  });

  test('the origin rule stays', async () => {
    const origin = (o) => s.get('/', { ...s.bearer(s.token), Origin: o });
    assertProblem(await origin('http://evil.example'), 403, 'origin_refused');
    assertProblem(await origin('null'), 403, 'origin_refused');
    assert.equal((await origin(`http://${s.host.Host}`)).status, 200);
  });

  test('the token is in no log line, at the most talkative level', () => {
    assert.ok(!s.server.log.includes(s.token));
    assert.ok(s.server.log.includes('without TLS'), 'and there is a log');
  });
}));

describe('signing in', () => withToken((s) => {
  test('a browser sees what to do', async () => {
    for (const path of ['/', '/servers', '/s/abc']) {
      const a = await s.get(path);
      assert.equal(a.status, 401);
      assert.match(a.headers['content-type'], /^text\/html/);
      assert.match(a.body.toString(), /mcp-orchestrator open/);
      assertSafe(a);
    }
  });

  test('/?token= wrong, elsewhere or posted sets nothing', async () => {
    for (const target of ['/?token=', '/?token=wrong', `/?tokenx=${s.token}`,
      `/servers?token=${s.token}`, `/?token=x&token=${s.token}`,
      `/?token=${s.token}%00`, `/?token=%zz${s.token}`]) {
      const a = await s.get(target);
      assert.equal(a.status, 401);
      assert.ok(!('set-cookie' in a.headers));
    }
    const a = await ask(s.server.port, 'POST', `/?token=${s.token}`, s.host, '');
    assertProblem(a, 401);
  });
}));

describe('a token of one\'s own', () => {
  const good = 'a-good-token-of-mine';

  test('from the environment or a file; changed by a reload', async (t) => {
    const d = await home({ server: { token: '${file:secret}' } });
    await writeFile(join(d, 'secret'), `${good}\n`);
    const server = await started(t, [], { dir: d, env: QUICK });
    const status = async (t) =>
      (await ask(server.port, 'GET', '/',
        { Authorization: `Bearer ${t}` })).status;
    assert.equal(await status(good), 200);
    assert.equal(await status('wrong'), 401);
    assert.doesNotMatch(server.log, /Token for this run/);
    await configure(d, { server: { token: '${env:NO_SUCH_THING}' } });
    server.child.kill('SIGHUP');
    await until(() => /keeping the old token/.test(server.log), 'the error');
    assert.match(server.log, /server\.token.*NO_SUCH_THING/);
    assert.equal(await status(good), 200);
    await configure(d, { server: { token: 'another-token-of-mine' } });
    server.child.kill('SIGHUP');
    await until(async () => (await status(good)) === 401, 'the new token');
    assert.equal(await status('another-token-of-mine'), 200);
    await server.stop();
    for (const t of [good, 'another-token-of-mine'])
      assert.ok(!server.log.includes(t), 'never logged');
  });

  const bad = [
    ['short', 'short', /at least 16 characters/],
    ['spaces', 'a token with blanks', /letters, digits/],
    ['a cookie attribute', 'abcdefgh;Domain=evil', /letters, digits/],
    ['a line break', 'abcdefgh\r\nSet-Cookie: x=y', /letters, digits/],
    ['not ASCII', 'ein-schönes-geheimnis', /letters, digits/],
    ['too long', 'x'.repeat(300), /too long/],
    ['a missing variable', '${env:NO_SUCH_THING}', /NO_SUCH_THING/],
    ['a missing file', '${file:/no/such/file}', /\/no\/such\/file/],
    ['a missing secret', '${secret:x}', /secrets set x/],
  ];
  for (const [name, token, says] of bad)
    test(`refused at the start: ${name}`, async () => {
      const cwd = await home({ server: { token, port: 0 } });
      const r = await run(['serve'], { cwd });
      assert.equal(r.code, 3, r.err);
      assert.match(r.err, says);
      assert.match(r.err, /server\.token/);
      assert.ok(token.startsWith('$') || token === 'short' ||
        !r.err.includes(token), 'the value is not shown');
      assert.equal(r.out, '');
    });
});

// --- starting ------------------------------------------------------------------------

describe('start', () => {
  test('says that it is ready and how to sign in, and nothing else',
    async () => {
      const cwd = await home();
      const child = spawn(BIN, ['serve', '--port', '0'],
        { cwd, env: { PATH: process.env.PATH, HOME: cwd, ...QUICK },
          stdio: ['ignore', 'pipe', 'pipe'] });
      let out = '';
      child.stdout.on('data', (d) => (out += d));
      await until(() => READY.test(out), 'the ready line');
      child.kill('SIGTERM');
      await within(once(child, 'close'), 'its end');
      assert.match(out, /^MCP Orchestrator \S+ is ready: http:\/\/localhost:\d+\/\n`mcp-orchestrator open` prints .*\n$/);
    });

  test('reads no more when much is stored', { skip: noNative }, async (t) => {
    const cwd = await home();
    const state = join(cwd, 'state');
    // Of the thread that starts: after a crash another one checks the file meanwhile.
    const read = async (server) =>
      Number(/^rchar: (\d+)/m.exec(await readFile(`/proc/${server.pid}/task/${server.pid}/io`, 'utf8'))[1]);
    const options = { dir: cwd, house: true,
      env: { ...QUICK, MCP_ORCHESTRATOR_STATE_DIR: state } };
    const readBy = async (signal) => {
      const server = await started(t, [], options);
      const bytes = await read(server);
      server.signal(signal);
      await ending(server);
      return bytes;
    };
    await readBy('SIGTERM'); // makes the files
    const little = await readBy('SIGTERM');
    fillState(state, 'mcp-orchestrator.db', { table: 24 * MIB, files: 12 * MIB });
    for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM']) {
      const much = await readBy(signal);
      assert.ok(much < little + 4 * MIB, `${much} bytes read, ${little} with nothing stored`);
    }
  });

  test('a port in use: exit 4, names the port and the way out', async () => {
    const other = net.createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address();
    const r = await run(['serve', '--port', `${port}`], { cwd: await home() });
    other.close();
    assert.equal(r.code, 4);
    assert.match(r.err, new RegExp(`:${port} is in use`));
    assert.match(r.err, /--port N/);
    assert.equal(r.out, '', 'and does not claim to be ready');
  });

  test('an address of another machine: exit 4, and what to use', async () => {
    const r = await run(['serve', '--port', '0', '--listen', '192.0.2.1'],
      { cwd: await home() });
    assert.equal(r.code, 4);
    assert.match(r.err, /192\.0\.2\.1.*--listen 127\.0\.0\.1/);
    assert.equal(r.out, '', 'no token is told');
  });

  test('a broken configuration: exit 3 with file and line', async () => {
    const cwd = await home('{\n  "server": {\n    "prot": 1\n  }\n}\n');
    const r = await run(['serve'], { cwd });
    assert.equal(r.code, 3);
    assert.match(r.err, /mcp-orchestrator\.json:3:\d+: .*prot.*port/s);
  });

  test('IPv6 loopback', async (t) => {
    const probe = net.createServer().listen(0, '::1');
    const [e] = await Promise.race([once(probe, 'listening'),
      once(probe, 'error')]);
    probe.close();
    if (e) return t.skip('this machine has no IPv6');
    const server = await started(t, ['--listen', '::1'], { env: QUICK });
    const a = await ask({ host: '::1', port: server.port }, 'GET', '/',
      { Host: `[::1]:${server.port}` });
    assert.equal(a.status, 200);
    await server.stop();
  });
});

describe('unix socket', () => {
  async function startOn(path) {
    const cwd = await home();
    const child = spawn(BIN, ['serve', '--listen', `unix:${path}`],
      { cwd, env: { PATH: process.env.PATH, HOME: cwd, ...QUICK },
        stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    child.stdout.on('data', (d) => (out += d));
    child.stderr.on('data', (d) => (out += d));
    await until(() => /is ready on unix:/.test(out), `ready: ${out}`);
    return child;
  }
  async function stop(child, signal = 'SIGTERM') {
    child.kill(signal);
    await within(once(child, 'exit'), 'its end');
  }
  const there = (path) => stat(path).then(() => true, () => false);

  test('answers, is for its owner only, goes with the server', async () => {
    const path = join(await home(), 's');
    const child = await startOn(path);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    const headers = { Host: 'localhost' };
    const a = await ask({ path }, 'GET', '/', headers);
    assert.equal(a.status, 200);
    assert.equal((await ask({ path }, 'GET', '/', { Host: 'evil.example' })).status, 401);
    await stop(child);
    assert.equal(await there(path), false);
  });

  test('a stale socket is replaced, a live one is not', async () => {
    const path = join(await home(), 's');
    await stop(await startOn(path), 'SIGKILL');
    assert.ok(await there(path), 'left behind');
    const child = await startOn(path);
    const r = await run(['serve', '--listen', `unix:${path}`],
      { cwd: await home() });
    assert.equal(r.code, 4);
    assert.match(r.err, /is taken/);
    const a = await ask({ path }, 'GET', '/healthz', { Host: 'localhost' });
    assert.equal(a.status, 200, 'the first one still answers');
    await stop(child);
  });

  test('a file that is no socket is left alone', async () => {
    const path = join(await home(), 's');
    await writeFile(path, 'mine');
    const r = await run(['serve', '--listen', `unix:${path}`],
      { cwd: await home() });
    assert.equal(r.code, 4);
    assert.ok(await there(path));
  });

  test('a path too long for a socket says so', async () => {
    const r = await run(['serve', '--listen', `unix:/tmp/${'x'.repeat(200)}`],
      { cwd: await home() });
    assert.equal(r.code, 3);
    assert.match(r.err, /too long/);
  });
});

// --- while it runs -------------------------------------------------------------------

describe('reload', () => {
  const level = (l) => ({ log: { level: l } });

  test('SIGHUP: a new level is taken, a broken file is not', async (t) => {
    const d = await home(level('info'));
    const server = await started(t, [], { dir: d, env: QUICK });
    const said = () => server.log.match(/generation \d+ loaded/g)?.length ?? 0;
    await configure(d, { log: { level: 'info', format: 'text' } });
    server.child.kill('SIGHUP');
    await until(() => /log\.format changed/.test(server.log), 'the reload');
    assert.match(server.log, /^[^{].*generation 2/m, 'as text now');

    await configure(d, '{\n "log": {\n  "level": "loud"\n }\n}\n');
    server.child.kill('SIGHUP');
    await until(() => /keeping the old configuration/.test(server.log),
      'the refusal');
    const loads = said();
    assert.match(server.log, /mcp-orchestrator\.json:3:\d+: /);
    assert.equal((await ask(server.port, 'GET', '/')).status, 200);

    await configure(d, { ...level('error'), server: { origins: [LISTED] } });
    server.child.kill('SIGHUP');
    await until(async () => (await ask(server.port, 'GET', '/',
      { Origin: LISTED })).status === 200, 'the reload');
    server.child.kill('SIGHUP');
    await ask(server.port, 'GET', '/quiet');
    await server.stop();
    assert.equal(said(), loads, 'errors only');
    assert.doesNotMatch(server.log, /quiet|stopp/, 'not even the end');
  });

  test('a changed file is noticed without a signal, good or bad',
    async (t) => {
      const d = await home({});
      const server = await started(t, [], { dir: d, env: QUICK });
      const origin = { Origin: LISTED };
      const status = async () =>
        (await ask(server.port, 'GET', '/', origin)).status;
      assert.equal(await status(), 403);
      await configure(d, { server: { origins: [LISTED] } });
      await until(async () => (await status()) === 200, 'the listed origin');
      await until(() => /server\.origins changed/.test(server.log), 'its line');
      await configure(d, '{"server": {"origins": 1}}');
      await until(() => /keeping the old/.test(server.log), 'the refusal');
      assert.equal(await status(), 200);
      await configure(d, { server: { listen: '0.0.0.0' } });
      await until(async () => (await status()) === 403, 'no list any more');
      await until(() => /server\.listen changed; it takes effect after a restart/
        .test(server.log), 'the line about the restart');
      const end = await server.stop();
      assert.equal(end.code, 0);
      assert.doesNotMatch(server.log, /Sanitizer/);
    });

  test('a bad file is complained about once, not every second', async (t) => {
    const d = await home({});
    const server = await started(t, [], { dir: d, env: QUICK });
    await configure(d, '{');
    await until(() => /keeping the old/.test(server.log), 'the refusal');
    await sleep(2500);
    assert.equal(server.log.match(/keeping the old/g).length, 1);
    await server.stop();
  });
});

// --- the end ---------------------------------------------------------------------------

describe('end', () => {
  const half = 'GET /readyz HTTP/1.1\r\nHost: localhost\r\n';

  test('SIGTERM lets a request end; readyz says why it is not ready',
    async (t) => {
      const server = await started(t, []);
      const idle = await Raw.connect(server.port);
      assert.equal((await idle.request('GET', '/').answer()).status, 200);
      const busy = await Raw.connect(server.port);
      assert.equal((await busy.request('GET', '/').answer()).status, 200);
      busy.send(half);
      await until(async () =>
        (await server.metric('mo_http_connections')) >= 2, 'connections');
      server.child.kill('SIGTERM');
      assert.deepEqual(await idle.rest(), [], 'idle ones are closed');
      await assert.rejects(Raw.connect(server.port), 'no new ones');
      busy.send('\r\n');
      const [a, ...more] = await busy.rest();
      assert.deepEqual(more, []);
      assert.equal(a.status, 503);
      assert.equal(a.headers.connection, 'close');
      const r = JSON.parse(a.body);
      assert.equal(r.ready, false);
      assert.deepEqual(r.checks.filter((c) => !c.ok), [
        { name: 'accepting', ok: false, reason: 'the server is shutting down' },
      ]);
      assert.equal((await ending(server)).code, 0);
      assert.doesNotMatch(server.log, /Sanitizer/);
    });

  test('SIGTERM during a long poll: it is answered, not cut', async (t) => {
    const server = await started(t, ['--test-echo'], { env: QUICK });
    const first = await ask(server.port, 'GET', POLL);
    const { sid } = JSON.parse(first.body.slice(1));
    const poll = await Raw.connect(server.port);
    poll.request('GET', `${POLL}&sid=${sid}`);
    await until(async () => (await server.metric('mo_engineio_sessions')) === 1,
      'the session');
    await sleep(100);
    server.child.kill('SIGTERM');
    const all = await poll.rest();
    assert.equal(all.length, 1, 'an answer');
    assert.equal(all[0].status, 200);
    assert.equal((await ending(server)).code, 0);
  });

  test('a second SIGTERM ends it at once', async (t) => {
    const server = await started(t, [], { env: QUICK });
    const busy = await Raw.connect(server.port);
    busy.send(half);
    await until(async () =>
      (await server.metric('mo_http_connections')) >= 2, 'the connection');
    server.child.kill('SIGTERM');
    await until(() => /stopping/.test(server.log), 'the first');
    await sleep(200);
    assert.ok(server.alive, 'it waits for the request');
    const end = await server.stop('SIGTERM', 5000); // well under the grace
    assert.equal(end.code, 1);
    assert.match(server.log, /second signal/);
    busy.close();
  });

  test('SIGINT is as good; SIGHUP while ending changes nothing', async (t) => {
    const server = await started(t, [], { env: QUICK });
    const busy = await Raw.connect(server.port);
    busy.send(half);
    await until(async () =>
      (await server.metric('mo_http_connections')) >= 2, 'the connection');
    server.child.kill('SIGINT');
    await until(() => /stopping/.test(server.log), 'the first');
    server.child.kill('SIGHUP');
    busy.send('\r\n');
    assert.equal((await busy.rest()).length, 1);
    assert.equal((await ending(server)).code, 0);
    assert.doesNotMatch(server.log, /generation/);
  });

  test('standard output may be closed, the log may be full', async (t) => {
    const d = await home();
    const path = join(d, 's');
    const child = spawn('/bin/sh', ['-c',
      'exec "$0" serve --listen "unix:$1" >&- 2>/dev/full', BIN, path],
      { cwd: d, env: { PATH: process.env.PATH, HOME: d, ...QUICK }, stdio: 'ignore' });
    t.after(() => child.kill('SIGKILL'));
    const answers = () => ask({ path }, 'GET', '/healthz', { Host: 'localhost' })
      .then((a) => a.status === 200, () => false);
    await until(answers, 'it runs');
    child.kill('SIGTERM');
    const [code] = await within(once(child, 'exit'), 'its end');
    assert.equal(code, 0);
  });
});
