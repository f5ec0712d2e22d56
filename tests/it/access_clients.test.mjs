// Clients of others, as they are published, sign in at /mcp by themselves:
// challenge, the provider's pages, a list, a call; then a token that has
// expired, and one that lacks a scope. The provider is npm's oidc-provider.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import * as v2 from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { UnauthorizedError as Unauthorized1 } from '@modelcontextprotocol/sdk/client/auth.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { bin, fixtureServer } from '../lib/gateway.mjs';
import { Idp, Visitor } from '../lib/idp.mjs';
import { cleanEnv, named } from '../lib/mcp.mjs';
import { client1, client2, text } from '../lib/mcp_talk.mjs';
import { Server, until } from './server.mjs';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const HELLO = 'This is a simple text response for testing.';
const PEOPLE = {
  ann: { groups: ['staff'] }, bob: { groups: ['staff'] }, cleo: { groups: ['staff'] },
  dan: { groups: ['staff'] }, fay: { groups: ['staff'] }, gil: { groups: ['staff'] },
  hal: { groups: ['staff'] }, olga: { groups: ['admins'] },
};

let dir, idp, server, url;

const configure = (requiredScopes = ['mcp']) => writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
  mcpServers: { fixture: fixtureServer() },
  people: {
    providers: { corp: { issuer: idp.issuer, requiredScopes } },
    roles: { operator: ['corp/admins'], user: ['corp/staff'] },
  },
}));

/** Another list of required scopes, without a restart. */
async function require(scopes = ['mcp']) {
  await configure(scopes);
  server.child.kill('SIGHUP');
  await until(async () => {
    const meta = await (await fetch(`${server.url}/.well-known/oauth-protected-resource`)).json();
    return JSON.stringify(meta.scopes_supported) === JSON.stringify(scopes);
  }, 'the scopes');
}

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-clients-'));
  // Programs get a refresh token without asking for offline_access; and a client
  // may ask for more scopes than it thought of when it registered.
  idp = await new Idp(PEOPLE, [], {
    options: {
      issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
      extraClientMetadata: {
        properties: ['any_scope'],
        validator: (ctx, key, value, metadata) => { delete metadata.scope; },
      },
    },
  }).start();
  await configure();
  server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
    dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
  });
  url = `${server.url}/mcp`;
});
after(async () => {
  server?.signal('SIGTERM'); // the fixture is running: nothing to compare with
  await server?.stopClean();
  await idp?.stop();
  await rm(dir, { recursive: true, force: true });
});

/** Wait until the audit log has that many calls of a person. */
async function assertCalls(person, n) {
  const token = idp.token({ sub: 'olga', aud: url, groups: ['admins'], scope: 'mcp tools' });
  await until(async () => {
    const { rows } = await (await fetch(`${server.url}/api/audit?limit=500`, {
      headers: { authorization: `Bearer ${token}` } })).json();
    const own = rows.filter((r) => r.what.kind === 'call' && r.what.owner === `corp:${person}`);
    return own.length === n && own.every((r) => r.what.tool === 'test_simple_text' && r.what.outcome === 'ok');
  }, `${n} calls of ${person} in the audit log`);
}

const claimsOf = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));
/** The same token, as it would be if it were old. */
const expired = (token) => idp.token({ ...claimsOf(token), iat: 1000, exp: 2000 });

/** What the official SDKs ask of a program that uses them: a place for tokens, and a browser. */
class Keeper {
  constructor(person) {
    this.person = person;
    this.visited = 0;
    this.redirectUrl = 'http://127.0.0.1:1/back'; // nobody listens: the visitor stops before it
    this.clientMetadata = {
      client_name: 'a program', redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
  }
  clientInformation() { return this.client; }
  saveClientInformation(c) { this.client = c; }
  tokens() { return this.kept; }
  saveTokens(t) { this.kept = t; }
  saveCodeVerifier(v) { this.verifier = v; }
  codeVerifier() { return this.verifier; }
  async redirectToAuthorization(to) {
    this.asked = new URL(to).searchParams;
    this.visited++;
    const { at } = await new Visitor().visit(String(to), this.person, (u) => u.startsWith(this.redirectUrl));
    this.code = new URL(at).searchParams.get('code');
    assert.ok(this.code, at);
    this.back = new URL(at).searchParams;
  }
  /** Time passes. */
  expire() {
    this.kept = { ...this.kept, access_token: expired(this.kept.access_token) };
  }
}

const kinds = [
  ['sdk 1.x', 'ann', () => client1(), Http1, Unauthorized1],
  ['client 2.x, legacy', 'bob', () => client2(), v2.StreamableHTTPClientTransport, v2.UnauthorizedError],
  ['client 2.x, modern', 'cleo', () => client2({ pin: '2026-07-28' }), v2.StreamableHTTPClientTransport,
    v2.UnauthorizedError],
];

for (const [name, person, make, Http, Unauthorized] of kinds)
  describe(name, () => {
    const keeper = new Keeper(person);
    const finish = (transport) => (Http === Http1 ? transport.finishAuth(keeper.code)
      : transport.finishAuth(keeper.back));
    const connect = async () => {
      const it = make();
      let transport = new Http(new URL(url), { authProvider: keeper });
      try {
        await it.client.connect(transport);
      } catch (e) {
        if (!(e instanceof Unauthorized)) throw e;
        await finish(transport);
        transport = new Http(new URL(url), { authProvider: keeper });
        await it.client.connect(transport);
      }
      return { ...it, transport };
    };

    test('is challenged, signs in, lists and calls', async () => {
      await require();
      const it = await connect();
      assert.equal(keeper.visited, 1);
      assert.equal(keeper.asked.get('resource'), url);
      assert.equal(keeper.asked.get('code_challenge_method'), 'S256');
      assert.ok((await it.client.listTools()).tools.some((t) => t.name === 'test_simple_text'));
      assert.equal(text(await it.call({ name: 'test_simple_text', arguments: {} })), HELLO);
      await it.client.close();
      assert.equal(claimsOf(keeper.kept.access_token).aud, url);
      await assertCalls(person, 1);
    });

    test('refreshes a token that has expired', async () => {
      const old = keeper.kept;
      keeper.expire();
      const it = await connect();
      assert.equal(text(await it.call({ name: 'test_simple_text', arguments: {} })), HELLO);
      assert.equal(keeper.visited, 1, 'nobody was asked');
      assert.notEqual(keeper.kept.access_token, old.access_token);
      keeper.expire(); // and in the middle of a session
      assert.equal(text(await it.call({ name: 'test_simple_text', arguments: {} })), HELLO);
      assert.equal(keeper.visited, 1);
      await it.client.close();
    });

    test('asks for a scope that it lacks, and goes on', async () => {
      // SDK 1.x would use its refresh token, and give up with the same scopes.
      if (Http === Http1) delete keeper.kept.refresh_token;
      const it = await connect();
      await require(['mcp', 'tools']);
      // A person is asked: the call fails until they have answered.
      await assert.rejects(it.call({ name: 'test_simple_text', arguments: {} }), Unauthorized);
      assert.equal(keeper.visited, 2);
      assert.deepEqual(new Set(keeper.asked.get('scope').split(' ').filter((s) => s !== 'offline_access')),
        new Set(['mcp', 'tools']));
      await finish(it.transport);
      assert.deepEqual(claimsOf(keeper.kept.access_token).scope.split(' ').sort(), ['mcp', 'tools']);
      assert.equal(text(await it.call({ name: 'test_simple_text', arguments: {} })), HELLO);
      await it.client.close();
      await assertCalls(person, 4);
    });
  });

/** A script that programs start as a browser; it is the person at once. */
async function browserOf(person) {
  const file = join(dir, `browser-${person}`);
  await writeFile(file, `#!/bin/sh\nexec '${process.execPath}' '${path('../lib/visit.mjs')}' ${person} "$1"\n`);
  await chmod(file, 0o755);
  return file;
}

describe('mcp-remote', () => {
  const program = path('../node_modules/mcp-remote/dist/proxy.js');
  const connect = async () => {
    const it = client1();
    const transport = new StdioClientTransport({
      command: process.execPath, args: [program, url], stderr: 'pipe',
      env: { PATH: process.env.PATH, HOME: dir, BROWSER: await browserOf('dan') },
    });
    let log = '';
    transport.stderr.on('data', (d) => (log += d));
    await it.client.connect(transport).catch((e) => assert.fail(`${e.message}\n${log}`));
    return it;
  };
  /** The file with its tokens. */
  const kept = async () => {
    const names = await readdir(join(dir, '.mcp-auth'), { recursive: true });
    return join(dir, '.mcp-auth', names.find((n) => n.endsWith('_tokens.json')));
  };

  test('opens a browser, then lists and calls', async () => {
    await require();
    const it = await connect();
    assert.ok((await it.client.listTools()).tools.some((t) => t.name === 'test_simple_text'));
    assert.equal(text(await it.call({ name: 'test_simple_text', arguments: {} })), HELLO);
    await it.client.close();
    await assertCalls('dan', 1);
  });

  test('refreshes a token that has expired', async () => {
    const file = await kept();
    const tokens = JSON.parse(await readFile(file, 'utf8'));
    const old = expired(tokens.access_token);
    await writeFile(file, JSON.stringify({ ...tokens, access_token: old }));
    const asked = idp.requests.filter((r) => r === '/auth').length;
    const it = await connect();
    assert.equal(text(await it.call({ name: 'test_simple_text', arguments: {} })), HELLO);
    await it.client.close();
    assert.equal(idp.requests.filter((r) => r === '/auth').length, asked, 'nobody was asked');
    assert.notEqual(JSON.parse(await readFile(file, 'utf8')).access_token, old);
    await assertCalls('dan', 2);
  });
});

describe('Inspector', () => {
  const program = path('../node_modules/@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js');
  const home = () => join(dir, 'inspector');
  const run = async (...args) => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, '--format', 'json', ...args],
      { cwd: home(), env: { PATH: process.env.PATH, HOME: home() } });
    return stdout ? JSON.parse(stdout) : stderr;
  };
  before(() => mkdir(home()));
  after(() => run('daemon', 'stop'));

  for (const [era, person] of [['legacy', 'gil'], ['modern', 'hal']])
    test(`signs in, lists and calls, ${era}`, async () => {
      await require();
      const at = ['--connection', era];
      const { authUrl } = await run(...at, 'connect', url, '--era', era, '--relogin');
      await new Visitor().visit(authUrl, person);
      await run('connections/show', `@${era}`); // completes the sign-in
      const { tools } = await run(...at, 'tools/list');
      assert.ok(tools.some((t) => t.name === 'test_simple_text'));
      assert.equal(text(await run(...at, 'tools/call', 'test_simple_text')), HELLO);
      await assertCalls(person, 1);
    });
});

describe('this program', () => {
  const own = async (...args) => {
    const home = join(dir, 'own');
    await mkdir(home, { recursive: true });
    const child = spawn(bin, args, {
      cwd: home, stdio: ['ignore', 'pipe', 'pipe'],
      env: cleanEnv({ ...named(home), HOME: home, XDG_CONFIG_HOME: join(home, 'config'), MCP_ORCHESTRATOR_STATE_DIR: join(home, 'state') }),
    });
    let out = '', err = '';
    const visits = [];
    child.stdout.setEncoding('utf8').on('data', (d) => (out += d));
    child.stderr.setEncoding('utf8').on('data', (d) => {
      err += d;
      for (const [, to] of [...err.matchAll(/^ {2}(http\S+)\n/gm)].slice(visits.length))
        visits.push(new Visitor().visit(to, 'fay'));
    });
    const [code] = await once(child, 'close');
    await Promise.all(visits);
    assert.equal(code, 0, err);
    return { out, visits: visits.length };
  };
  const call = ['call', 'far', 'test_simple_text'];

  test('signs in at another of its kind, and calls', async () => {
    await require();
    await own('mcp', 'add', 'far', '--url', url);
    assert.deepEqual(await own(...call, '--sign-in'), { out: `${HELLO}\n`, visits: 1 });
    assert.deepEqual(await own(...call), { out: `${HELLO}\n`, visits: 0 });
    await assertCalls('fay', 2);
  });

  test('refreshes a token that has expired', async () => {
    const file = join(dir, 'own', 'state', 'tokens.json');
    const all = JSON.parse(await readFile(file, 'utf8'));
    for (const t of all.tokens)
      t.access_token = expired(t.access_token);
    await writeFile(file, JSON.stringify(all));
    assert.deepEqual(await own(...call), { out: `${HELLO}\n`, visits: 0 });
    await assertCalls('fay', 3);
  });

  test('asks for a scope that it lacks, and goes on', async () => {
    await require(['mcp', 'tools']);
    assert.deepEqual(await own(...call, '--sign-in'), { out: `${HELLO}\n`, visits: 1 });
    await assertCalls('fay', 4);
  });
});
