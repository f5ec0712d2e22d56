// `login`, `whoami` and `logout` in a terminal: the device flow and the redirect
// to this machine, with real providers, and a person with a browser.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { fixtureServer } from '../lib/gateway.mjs';
import { Idp, Visitor } from '../lib/idp.mjs';
import { bin, run } from '../lib/mcp.mjs';
import { Terminal } from '../lib/terminal.mjs';
import { Server, until } from './server.mjs';

const PEOPLE = { ann: { groups: ['staff'] }, pia: { groups: ['leads'] }, nora: { groups: [] } };
const TERMINAL = {
  client_id: 'terminal', token_endpoint_auth_method: 'none', application_type: 'native',
  grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'authorization_code', 'refresh_token'],
  response_types: ['code'], redirect_uris: ['http://127.0.0.1/callback'],
};
const HELLO = 'This is a simple text response for testing.\n';
let dir, state, idp, plain, server;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-login-'));
  state = join(dir, 'home');
  idp = await new Idp(PEOPLE, [TERMINAL]).start();
  plain = await new Idp(PEOPLE, [TERMINAL]).start(); // has no device flow
  plain.lie = (rq, rs) => {
    if (!rq.url.startsWith('/.well-known/')) return false;
    const { end } = rs;
    rs.end = function (body, ...more) {
      const doc = JSON.parse(String(body));
      delete doc.device_authorization_endpoint;
      const text = JSON.stringify(doc);
      rs.setHeader('content-length', Buffer.byteLength(text));
      return end.call(this, text, ...more);
    };
    return false;
  };
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: { fixture: fixtureServer() },
    approvals: { rules: [{ tool: 'echo', action: 'ask' }] },
    people: {
      providers: {
        corp: { issuer: idp.issuer, title: 'Corp\u001b[2J', requiredScopes: ['mcp'] },
        known: { issuer: idp.issuer + '/', terminalClientId: 'terminal' },
        plain: { issuer: plain.issuer, terminalClientId: 'terminal', requiredScopes: ['mcp'] },
      },
      roles: { approver: ['corp/leads'], user: ['corp/staff', 'plain/staff'] },
    },
  }));
  server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
    dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
  });
});
after(async () => {
  await idp?.stop();
  await plain?.stop();
  server?.signal('SIGTERM');
  await server?.stopClean();
  await rm(dir, { recursive: true });
});

const home = () => server.url.replace('127.0.0.1', 'localhost');
const env = () => ({ PATH: process.env.PATH, HOME: dir, MCP_ORCHESTRATOR_STATE_DIR: state, ASAN_OPTIONS: 'detect_leaks=0' });
const terminal = (...args) => new Terminal([bin, ...args], { cwd: tmpdir(), env: env() });
const cli = (...args) => run(bin, args, { cwd: tmpdir(), env: env() });
const tokens = async () => JSON.parse(await readFile(join(state, 'tokens.json'), 'utf8')).tokens;

/** Signs in by a code. */
async function byCode(who, provider = 'corp') {
  const t = terminal('login', home(), '--provider', provider);
  const [, url, code] = await t.sees(/open this address on any device:\s+(\S+)\s+and enter the code:\s+(\S+)/);
  const [, whole] = await t.sees(/has the code already:\s+(\S+)/);
  assert.equal(url, `${idp.issuer}/device`);
  assert.equal(new URL(whole).searchParams.get('user_code'), code);
  const { html } = await new Visitor().visit(whole, who);
  assert.match(html, /Sign-in Success/);
  return t;
}

describe('by a code', () => {
  test('signs in, is known, is refreshed, signs out', async () => {
    const t = await byCode('ann');
    assert.equal(await t.end(), 0, t.out);
    assert.match(t.out, /signed in at http:\/\/localhost:\d+ as corp:ann \(user\)/);
    assert.doesNotMatch(t.out, /\u001b/);
    assert.equal((await stat(join(state, 'tokens.json'))).mode & 0o777, 0o600);
    const [kept] = await tokens();
    assert.equal(kept.server, `${home()}/mcp`);
    assert.ok(kept.refresh_token);
    for (const secret of [kept.access_token, kept.refresh_token]) assert.ok(!t.out.includes(secret));
    const who = await cli('whoami', home(), '--json');
    assert.deepEqual([who.code, JSON.parse(who.out)], [0, { name: 'corp:ann', role: 'user' }], who.err);
    const call = await cli('call', '--url', `${home()}/mcp`, 'test_simple_text');
    assert.deepEqual([call.code, call.out], [0, HELLO], call.err);
    await writeFile(join(state, 'tokens.json'), (await readFile(join(state, 'tokens.json'), 'utf8'))
      .replace(kept.access_token, 'of.a.yesterday'));
    const again = await cli('whoami', home());
    assert.deepEqual([again.code, again.out], [0, `signed in at ${home()} as corp:ann (user)\n`], again.err);
    const [now] = await tokens();
    assert.ok(![kept.access_token, 'of.a.yesterday'].includes(now.access_token), 'it was refreshed');
    assert.match(kept.dpop_key, /PRIVATE KEY/); // so the provider need not rotate the refresh token
    assert.equal(now.dpop_key, kept.dpop_key);
    assert.equal((await cli('logout', home())).code, 0);
    assert.equal((await cli('logout', home())).code, 1);
    const gone = await cli('whoami', home());
    assert.equal(gone.code, 5);
    assert.match(gone.err, /nobody is signed in at .*mcp-orchestrator login/);
    assert.deepEqual(await tokens(), []);
  });

  test('a person without a role, or who refuses, is not signed in', async () => {
    const t = await byCode('nora');
    assert.equal(await t.end(), 1, t.out);
    assert.match(t.out, /you have no role at/);
    assert.deepEqual(await tokens(), []);
    const no = terminal('login', home(), '--provider', 'corp');
    const [, whole] = await no.sees(/has the code already:\s+(\S+)/);
    const visitor = new Visitor();
    const page = await (await visitor.fetch(whole)).text();
    const xsrf = page.match(/name="xsrf" value="([^"]+)"/)[1];
    await visitor.fetch(`${idp.issuer}/device`, { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ xsrf, user_code: new URL(whole).searchParams.get('user_code'), abort: 'yes' }) });
    assert.equal(await no.end(), 1);
    assert.match(no.out, /the person refused/);
    assert.deepEqual(await tokens(), []);
  });

  test('Ctrl-C ends it and leaves nothing', async () => {
    const t = terminal('login', home(), '--provider', 'corp');
    await t.sees(/Waiting for/);
    t.type('\u0003');
    assert.notEqual(await t.end(), 0);
    assert.deepEqual(await tokens(), []);
  });
});

describe('approvals of a server elsewhere', () => {
  test('an approver decides, a person who is not signed in does not', async () => {
    const no = await cli('approvals', 'list', '--url', home());
    assert.equal(no.code, 5, no.err);
    const ann = await byCode('ann');
    assert.equal(await ann.end(), 0, ann.out);
    const running = cli('call', '--url', `${home()}/mcp`, 'echo', '{"message":"please"}');
    const anns = state;
    state = join(dir, 'pias');
    const pia = await byCode('pia');
    assert.equal(await pia.end(), 0, pia.out);
    let card;
    await until(async () => {
      [card] = JSON.parse((await cli('approvals', 'list', '--url', home(), '--json')).out);
      return card;
    }, 'the call');
    assert.equal(card.owner, 'corp:ann');
    state = anns;
    const self = await cli('approvals', 'approve', card.id, '--url', home());
    assert.equal(self.code, 1, self.out);
    state = join(dir, 'pias');
    const yes = await cli('approvals', 'approve', card.id, '--url', home());
    assert.deepEqual([yes.code, yes.err], [0, '']);
    const done = await running;
    assert.deepEqual([done.code, done.out], [0, 'please\n'], done.err);
    state = anns;
    assert.equal((await cli('logout', home())).code, 0);
  });
});

describe('in a browser on this machine', () => {
  test('if the provider has no device flow', async () => {
    const t = terminal('login', home(), '--provider', 'plain');
    const [, url] = await t.sees(/in a browser on this machine:\s+(\S+)/);
    const asked = new URL(url).searchParams;
    assert.equal(asked.get('client_id'), 'terminal');
    assert.equal(asked.get('resource'), `${home()}/mcp`);
    assert.equal(asked.get('code_challenge_method'), 'S256');
    let back;
    await new Visitor().visit(url, 'ann', (u) => u.startsWith('http://127.0.0.1') && u.includes('/callback') && (back = u));
    for (const change of [(u) => u.searchParams.set('state', 'x'.repeat(32)), (u) => u.searchParams.delete('state')]) {
      const wrong = new URL(back);
      change(wrong);
      assert.equal((await fetch(wrong)).status, 400);
    }
    assert.equal((await fetch(back)).status, 200);
    assert.equal(await t.end(), 0, t.out);
    assert.match(t.out, /as plain:ann \(user\)/);
    await assert.rejects(fetch(back), 'nobody listens there any more');
    assert.equal((await cli('logout', home())).code, 0);
  });

  test('an answer of another issuer is refused', async () => {
    const t = terminal('login', home(), '--provider', 'plain');
    const [, url] = await t.sees(/in a browser on this machine:\s+(\S+)/);
    let back;
    await new Visitor().visit(url, 'ann', (u) => u.includes('/callback') && (back = new URL(u)));
    back.searchParams.set('iss', idp.issuer);
    await fetch(back);
    assert.equal(await t.end(), 1);
    assert.match(t.out, /from another issuer/);
    assert.deepEqual(await tokens(), []);
  });
});

describe('what is refused at once', () => {
  for (const [name, args, code, says] of [
    ['http elsewhere', ['login', 'http://tools.example.com'], 2, /needs TLS/],
    ['no address', ['login', 'tools'], 2, /acceptable address/],
    ['a provider that is not there', () => ['login', home(), '--provider', 'x'], 2, /no such provider, but: corp, known, plain/],
    ['several providers', () => ['login', home()], 2, /choose with --provider: corp/],
    ['another name of the server', () => ['login', home().replace('localhost', '127.0.0.1')], 1, /calls itself http:\/\/localhost/],
    ['a server that is not there', ['login', 'http://localhost:1'], 4, /localhost:1/],
  ])
    test(name, async () => {
      const got = await cli(...(typeof args === 'function' ? args() : args));
      assert.equal(got.code, code, got.err);
      assert.match(got.err, says);
    });
});
