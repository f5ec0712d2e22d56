// Signing in with Debian's glewlwyd: on the page, and by its device flow in a
// terminal.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Glewlwyd, noGlewlwyd } from '../lib/glewlwyd.mjs';
import { bin, run } from '../lib/mcp.mjs';
import { Terminal } from '../lib/terminal.mjs';
import { Server, until } from './server.mjs';

const SECRET = 'asecretofthepage'; // glewlwyd takes it as it is, not form-encoded
let dir, server, glewlwyd;
const home = () => server.url.replace('127.0.0.1', 'localhost');

describe('glewlwyd', { skip: noGlewlwyd ? `needs ${noGlewlwyd}` : false }, () => {
  before(async () => {
    glewlwyd = await new Glewlwyd().settle();
    dir = await mkdtemp(join(tmpdir(), 'mo-page-glewlwyd-'));
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      mcpServers: {}, llm: { provider: 'demo' },
      people: {
        renewSeconds: 10,
        providers: { g: { issuer: glewlwyd.issuer, clientId: 'page', clientSecret: SECRET, terminalClientId: 'terminal',
          requiredScopes: ['mcp'], nameClaim: 'username' } },
        roles: { user: ['g:gwen'] },
      },
    }));
    server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
      dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
    });
    await glewlwyd.start({
      alg: 'RS256', resources: [`${home()}/mcp`],
      parameters: {
        'auth-type-device-enabled': true, 'device-authorization-interval': 1, 'device-authorization-expiration': 600,
        claims: [{ name: 'username', 'user-property': 'username', type: 'string', mandatory: true }],
      },
      clients: [
        { client_id: 'page', confidential: true, password: SECRET, redirect_uri: [`${home()}/sign-in/g/callback`],
          authorization_type: ['code', 'refresh_token'], token_endpoint_auth_method: ['client_secret_basic'], scope: [] },
        { client_id: 'terminal', confidential: false, redirect_uri: [],
          authorization_type: ['device_authorization', 'refresh_token'], scope: [] },
      ],
    });
  });
  after(async () => {
    await glewlwyd?.stop();
    server?.signal('SIGTERM');
    await server?.stopClean();
    await rm(dir, { recursive: true });
  });

  const me = async () => {
    const answer = await glewlwyd.gwen.fetch(`${home()}/api/me`);
    return answer.status === 200 ? answer.json() : answer.status;
  };

  test('on the page, and renewed', async () => {
    const begun = await glewlwyd.gwen.fetch(`${home()}/sign-in/g`);
    const to = begun.headers.get('location');
    assert.ok(to.startsWith(glewlwyd.issuer), to);
    await glewlwyd.agree('page', 'openid');
    const agreed = await glewlwyd.gwen.fetch(`${to}&g_continue`);
    const back = agreed.headers.get('location');
    assert.ok(back.startsWith(`${home()}/sign-in/g/callback`), back);
    const end = await glewlwyd.gwen.fetch(back);
    assert.equal(end.status, 200, await end.clone().text());
    assert.deepEqual(await me(), { name: 'g:gwen', role: 'user' });
    const began = Date.now(); // longer than an identity counts
    await until(async () => {
      assert.deepEqual(await me(), { name: 'g:gwen', role: 'user' });
      return Date.now() - began > 12_000;
    }, 'a renewal');
    assert.equal((await glewlwyd.gwen.fetch(`${home()}/sign-out`, { method: 'POST' })).status, 303);
    assert.equal(await me(), 401);
  });

  test('in a terminal', async () => {
    const env = { PATH: process.env.PATH, HOME: dir, MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'home'), ASAN_OPTIONS: 'detect_leaks=0' };
    const t = new Terminal([bin, 'login', home()], { cwd: tmpdir(), env });
    const [, url, code] = await t.sees(/open this address on any device:\s+(\S+)\s+and enter the code:\s+(\S+)/);
    assert.equal(url, `${glewlwyd.issuer}/device`);
    await glewlwyd.agree('terminal', 'mcp');
    const answer = await glewlwyd.gwen.fetch(`${url}?code=${code}&g_continue`);
    assert.match(answer.headers.get('location') ?? '', /deviceComplete/);
    assert.equal(await t.end(), 0, t.out);
    assert.match(t.out, /as g:gwen \(user\)/);
    const who = await run(bin, ['whoami', home()], { cwd: tmpdir(), env });
    assert.equal(who.code, 0, who.err);
  });
});
