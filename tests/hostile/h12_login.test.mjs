// `login` at a server or a provider that lies: nothing reaches the terminal that
// is no plain text, no token is kept that does not belong there, and the person
// is not kept waiting by numbers.
import assert from 'node:assert/strict';
import http from 'node:http';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';

import { bin } from '../lib/mcp.mjs';
import { Terminal } from '../lib/terminal.mjs';

let dir, lies, polls, issuer, server, seen;

const json = (rs, status, body) => rs.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
async function listen(handler) {
  const s = http.createServer(handler).listen(0, '127.0.0.1');
  await once(s, 'listening');
  return s;
}
const at = (s) => `http://localhost:${s.address().port}`;

before(async () => {
  issuer = await listen((rq, rs) => {
    const own = at(issuer);
    if (rq.url.startsWith('/.well-known/'))
      return json(rs, 200, { issuer: own, authorization_endpoint: `${own}/auth`, token_endpoint: `${own}/token`,
        device_authorization_endpoint: `${own}/device`, registration_endpoint: `${own}/register`,
        code_challenge_methods_supported: ['S256'], token_endpoint_auth_methods_supported: ['none'], ...lies.metadata });
    if (rq.url === '/register') return json(rs, 201, { client_id: 'c', token_endpoint_auth_method: 'none' });
    if (rq.url === '/device')
      return json(rs, 200, { device_code: 'secret-device-code', user_code: 'ABCD-EFGH', verification_uri: `${own}/go`,
        expires_in: 600, interval: 1, ...lies.device });
    polls.push(Date.now());
    const next = lies.token.shift() ?? { error: 'access_denied' };
    if (next === 'drop') return rq.socket.destroy();
    if (next === 'wait') return undefined;
    return json(rs, next.status ?? (next.error ? 400 : 200), next);
  });
  server = await listen((rq, rs) => {
    seen.push([rq.url, rq.headers.authorization]);
    if (rq.url.startsWith('/.well-known/'))
      return json(rs, 200, { resource: `${at(server)}/mcp`, authorization_servers: [at(issuer)],
        sign_in_providers: [{ name: 'corp', title: 'Corp', issuer: at(issuer) }], ...lies.resource });
    if (lies.me) return lies.me(rq, rs);
    return json(rs, 200, { name: 'corp:ann', role: 'user' });
  });
  dir = await mkdtemp(join(tmpdir(), 'mo-h12-'));
});
after(async () => {
  for (const s of [issuer, server]) {
    s.closeAllConnections();
    s.close();
  }
  await rm(dir, { recursive: true, force: true });
});
let run = 0;
beforeEach(() => {
  lies = { token: [] };
  polls = [];
  seen = [];
  run++;
});

const state = () => join(dir, `s${run}`);
const login = () => new Terminal([bin, 'login', at(server)], { cwd: dir,
  env: { PATH: process.env.PATH, HOME: dir, MCP_ORCHESTRATOR_STATE_DIR: state(), ASAN_OPTIONS: 'detect_leaks=0' } });
const kept = async () => JSON.parse(await readFile(join(state(), 'tokens.json'), 'utf8').catch(() => '{"tokens":[]}')).tokens;
const TOKEN = { access_token: 'good-access', token_type: 'Bearer', refresh_token: 'good-refresh', expires_in: 60 };

async function refused(says) {
  const t = login();
  assert.equal(await t.end(), 1, t.out);
  assert.match(t.out, says);
  assert.doesNotMatch(t.out, /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/);
  assert.ok(!t.out.includes('secret-device-code'));
  assert.deepEqual(await kept(), []);
  return t;
}

describe('the device endpoint', () => {
  for (const uri of ['javascript:alert(1)', 'file:///etc/passwd', 'http://evil.test/', 'https://evil.test/\u001b[2Jx',
    'https://evil.test/\nrun: rm -rf', 'https://user:pw@evil.test/', 'https://evil.test/' + 'a'.repeat(5000), '', 7, null, 'x y'])
    test(`sends a person to ${JSON.stringify(uri)?.slice(0, 40)}`, async () => {
      lies.device = { verification_uri: uri };
      await refused(/no usable address/);
      assert.deepEqual(polls, []);
    });

  for (const code of ['\u001b]0;title\u0007', 'A\rB', 'A'.repeat(500), 'é', '', 7])
    test(`has the code ${JSON.stringify(code).slice(0, 30)}`, async () => {
      lies.device = { user_code: code };
      await refused(/no usable code/);
    });

  test('an address with the code that is none is left out', async () => {
    lies.device = { verification_uri_complete: 'javascript:alert(1)' };
    const t = await refused(/the person refused/);
    assert.doesNotMatch(t.out, /javascript|already/);
  });

  test('another host is pointed out', async () => {
    lies.device = { verification_uri: 'https://evil.test/device' };
    await refused(/on another host than the provider/);
  });

  test('a huge, negative or odd interval and lifetime', async () => {
    for (const [interval, expires_in] of [[0, 600], [-5, -5], ['x', {}]]) {
      lies = { token: [{ error: 'access_denied' }], device: { interval, expires_in } };
      run++;
      await refused(/the person refused/);
    }
    lies = { token: [], device: { interval: 1e300, expires_in: 1e300 } };
    const t = login();
    await t.sees(/Waiting for 30 minutes/);
    t.type('\u0003');
    await t.end();
  });

  test('a code that expires before it is polled', async () => {
    lies.device = { expires_in: 0.5 };
    await refused(/the code has expired/);
    assert.deepEqual(polls, []);
  });

  test('no device code', async () => {
    lies.device = { device_code: null };
    await refused(/no usable code/);
  });
});

describe('the token endpoint', () => {
  test('slow_down slows down, failures are survived, and what comes is used', async () => {
    lies.token = [{ error: 'authorization_pending' }, { status: 503 }, 'drop', TOKEN];
    const t = login();
    assert.equal(await t.end(), 0, t.out);
    assert.match(t.out, /as corp:ann \(user\)/);
    assert.equal(polls.length, 4);
    assert.deepEqual((await kept()).map((k) => [k.server, k.issuer, k.access_token]), [[`${at(server)}/mcp`, at(issuer), 'good-access']]);
    assert.deepEqual(seen.filter(([, a]) => a).map(([u]) => u), ['/api/me']);
  });

  test('slow_down adds five seconds', async () => {
    lies.token = [{ error: 'slow_down' }, { error: 'access_denied' }];
    await refused(/the person refused/);
    assert.ok(polls[1] - polls[0] >= 5500, `${polls[1] - polls[0]} ms`);
  });

  test('expired_token, unknown errors and control characters', async () => {
    for (const [error, says] of [['expired_token', /the code has expired/], ['invalid_grant', /refused a token: invalid_grant/],
      ['\u001b[2Jx', /no reason given/], [7, /no reason given/]]) {
      run++;
      lies = { token: [{ status: 400, error }] };
      await refused(says);
    }
  });

  test('tokens that are no header are not used', async () => {
    for (const token of [{ ...TOKEN, access_token: 'a\r\nx: y' }, { ...TOKEN, access_token: '' }, { ...TOKEN, token_type: 'mac' }, {}]) {
      run++;
      lies = { token: [{ ...token, status: 200 }] };
      await refused(/token|header/);
    }
    assert.deepEqual(seen.filter(([, a]) => a), []);
  });
});

describe('the server', () => {
  test('is not another one', async () => {
    lies.resource = { resource: 'https://victim.test/mcp' };
    await refused(/calls itself https:\/\/victim\.test\/mcp/);
    assert.deepEqual(seen.filter(([, a]) => a), []);
  });

  test('names an issuer that must not be asked', async () => {
    for (const issuer of ['http://10.0.0.1', 'http://evil.test', 'javascript:1']) {
      run++;
      lies = { token: [], resource: { sign_in_providers: [{ name: 'corp', issuer }] } };
      await refused(/needs TLS|acceptable address/);
    }
  });

  test('names a provider with escape sequences', async () => {
    lies.resource = { sign_in_providers: [{ name: 'corp', title: '\u001b[2J', issuer: at(issuer) }] };
    await refused(/To sign in with corp/);
    lies.resource = { sign_in_providers: [{ name: '\u001b[2J', issuer: at(issuer) }] };
    run++;
    const t = login();
    assert.equal(await t.end(), 4);
    assert.doesNotMatch(t.out, /\u001b/);
  });

  test('redirects elsewhere with the token, or says another name', async () => {
    let elsewhere = 0;
    const thief = await listen((rq, rs) => { elsewhere++; rs.end('{}'); });
    lies.token = [TOKEN];
    lies.me = (rq, rs) => rs.writeHead(302, { location: `${at(thief)}/me` }).end();
    await refused(/does not accept/);
    assert.equal(elsewhere, 0);
    thief.close();
    run++;
    lies = { token: [TOKEN], me: (rq, rs) => json(rs, 200, { name: 'a\u001b[2J\nb', role: 'user' }) };
    const t = login();
    assert.equal(await t.end(), 0);
    assert.doesNotMatch(t.out, /\u001b/);
    assert.match(t.out, /as a\\u001b\[2J\\nb \(user\)/);
  });
});
