// Signing in at a protected server: the real program, a strict issuer, and a
// browser that does what its person would.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';

import { bin, cleanEnv, driver, named, run } from '../lib/mcp.mjs';
import { freePort } from '../lib/port.mjs';
import { Issuer, browse, runAttended } from './issuer.mjs';

const fixture = join(dirname(driver), '../fixture/fixture');
let dir, server, issuer, state, upstream;

before(async () => {
  server = spawn(fixture, ['--http', '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(server.stdout.setEncoding('utf8'), 'data');
  upstream = line.trim();
});
after(async () => {
  const ended = once(server, 'exit');
  server.kill('SIGTERM');
  await ended;
});

// Every test has an issuer and a state directory of its own.
beforeEach(async (t) => {
  dir = await mkdtemp(join(tmpdir(), 'mo-oauth-'));
  state = join(dir, 'deep', 'state');
  issuer = new Issuer();
  await issuer.start(upstream);
  t.after(async () => {
    await issuer.stop();
    await rm(dir, { recursive: true });
  });
});

const env = (more) => ({ ...named(dir), MCP_ORCHESTRATOR_STATE_DIR: state, ...more });
const cli = (args, more) => run(bin, args, { cwd: dir, env: env(more) });
const tokens = async () =>
  JSON.parse(await readFile(join(state, 'tokens.json'), 'utf8')).tokens;
const config = (oauth = {}, more = {}) =>
  writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: { r: { url: issuer.resource, oauth, ...more } },
  }));

/** Run with a person beside it. */
const attended = (args, { more, visit } = {}) => runAttended(bin, args, { cwd: dir, env: cleanEnv(env(more)), visit });

const call = ['call', '--url'];
const hello = () => [...call, issuer.resource, 'test_simple_text'];
const HELLO = 'This is a simple text response for testing.\n';

/** Has the port of that address until end(). */
async function listenAt(url) {
  const s = createServer().listen(new URL(url).port, '127.0.0.1');
  await once(s, 'listening');
  return { end: () => new Promise((done) => s.close(done)) };
}

const signIn = async () => {
  const got = await attended(['mcp', 'test', '--sign-in', '--url', issuer.resource]);
  assert.equal(got.code, 0, got.err);
  assert.equal(got.visits.length, 1);
  return got;
};

describe('nobody to ask', () => {
  for (const [name, args] of [
    ['no terminal', []], ['--no-sign-in', ['--no-sign-in']],
  ])
    test(`${name}: exit 5, and what to run`, async () => {
      const { code, out, err } = await cli([...hello(), ...args]);
      assert.equal(code, 5, err);
      assert.equal(out, '');
      assert.ok(err.includes(`mcp test --sign-in --url ${issuer.resource}`), err);
      assert.deepEqual(issuer.seen,
        { registered: 0, authorized: 0, codes: 0, refreshed: 0 });
    });

  test('a configured server is named; list goes on', async () => {
    await config();
    const one = await cli(['mcp', 'info', 'r']);
    assert.equal(one.code, 5);
    assert.match(one.err, /sign in at r; `mcp-orchestrator mcp test --sign-in r`/);
    const all = await cli(['mcp', 'list', '--tools', '--json']);
    assert.equal(all.code, 0);
    const [r] = JSON.parse(all.out);
    assert.equal(r.signIn, 'needed');
    assert.match(r.error, /sign in/);
  });

  test('both options are refused; so is a sign-in that is switched off', async () => {
    const both = await cli([...hello(), '--sign-in', '--no-sign-in']);
    assert.equal(both.code, 2);
    await config({ enabled: false });
    const off = await cli(['call', 'r', 'test_simple_text', '--sign-in']);
    assert.equal(off.code, 4);
    assert.match(off.err, /401/);
  });
});

describe('a person', () => {
  for (const era of ['auto', 'legacy', 'modern'])
    test(`signs in once (${era}); the next runs need nobody`, async () => {
      const first = await attended([...hello(), '--sign-in', '--era', era]);
      assert.deepEqual([first.code, first.out], [0, HELLO], first.err);
      assert.match(await first.visits[0].done.text(), /can be closed/);
      assert.equal((await stat(join(state, 'tokens.json'))).mode & 0o777, 0o600);
      assert.equal((await stat(state)).mode & 0o777, 0o700);
      const again = await cli([...hello(), '--era', era]);
      assert.deepEqual([again.code, again.out, again.err], [0, HELLO, '']);
      assert.deepEqual(issuer.seen,
        { registered: 1, authorized: 1, codes: 1, refreshed: 0 });
      assert.deepEqual(issuer.wrong, []);
      const [t] = await tokens();
      for (const secret of [t.access_token, t.refresh_token])
        assert.ok(!(first.out + first.err).includes(secret));
    });

  test('an expired token is refreshed, and what came of it is kept', async () => {
    await signIn();
    for (let i = 1; i <= 3; i++) {
      issuer.expireAll();
      const { code, out, err } = await cli(hello());
      assert.deepEqual([code, out, err], [0, HELLO, '']);
      assert.equal(issuer.seen.refreshed, i);
    }
    assert.deepEqual(issuer.wrong, []);
  });

  test('of many at once, one refreshes and all go on', async () => {
    await signIn();
    issuer.expireAll();
    issuer.slow = 200;
    const all = await Promise.all([1, 2, 3, 4].map(() => cli(hello())));
    for (const { code, out, err } of all)
      assert.deepEqual([code, out, err], [0, HELLO, '']);
    assert.equal(issuer.seen.refreshed, 1);
    assert.deepEqual(issuer.wrong, []);
  });

  test('who hears of it late takes what another has refreshed', async () => {
    await signIn();
    issuer.expireAll();
    let refuse;
    issuer.refusal = new Promise((done) => { refuse = done; });
    const late = cli(hello()); // has read the old tokens when it is refused
    while (issuer.refusal) await new Promise((r) => setTimeout(r, 5));
    const first = await cli(hello());
    refuse();
    for (const { code, out, err } of [first, await late])
      assert.deepEqual([code, out, err], [0, HELLO, '']);
    assert.equal(issuer.seen.refreshed, 1);
    assert.deepEqual(issuer.wrong, []);
  });

  test('a short-lived token is refreshed ahead', async () => {
    await signIn();
    const kept = JSON.parse(await readFile(join(state, 'tokens.json'), 'utf8'));
    for (const k of kept.tokens) k.expires_ms = Date.now() - 1;
    await writeFile(join(state, 'tokens.json'), JSON.stringify(kept), { mode: 0o600 });
    const { code, out } = await cli(hello());
    assert.deepEqual([code, out], [0, HELLO]);
    assert.equal(issuer.seen.refreshed, 1, 'though it would still have been taken');
    assert.deepEqual(issuer.wrong, []);
  });

  test('who must sign in again is the same client, at the same port', async () => {
    await signIn();
    const [before] = await tokens();
    issuer.revokeAll();
    const held = await listenAt(before.redirect_uri); // or somebody else might
    assert.equal((await cli(hello())).code, 5);
    await held.end();
    await signIn();
    const [now] = await tokens();
    assert.equal(issuer.seen.registered, 1);
    assert.equal(now.client_id, before.client_id);
    assert.equal(now.redirect_uri, before.redirect_uri);
    assert.notEqual(now.access_token, before.access_token);
  });

  test('a taken port costs a registration, nothing else', async () => {
    await signIn();
    const [{ redirect_uri }] = await tokens();
    issuer.revokeAll();
    const squatter = await listenAt(redirect_uri);
    try {
      await signIn();
    } finally {
      await squatter.end();
    }
    assert.equal(issuer.seen.registered, 2);
  });

  test('an issuer that forgot us gets a new registration', async () => {
    await signIn();
    issuer.revokeAll();
    issuer.clients.clear();
    assert.equal((await cli(hello())).code, 5); // the refresh told us
    await signIn();
    assert.equal(issuer.seen.registered, 2);
    assert.equal((await cli(hello())).out, HELLO);
  });

  test('a sign-in that nobody finishes: exit 5; its client is kept', async () => {
    await config({ signInSeconds: 1 });
    const args = ['mcp', 'test', 'r', '--sign-in'];
    const { code, err } = await attended(args, { visit: () => {} });
    assert.equal(code, 5);
    assert.match(err, /nobody signed in/);
    await config();
    const second = await attended(args);
    assert.equal(second.code, 0, second.err);
    assert.equal(issuer.seen.registered, 1);
  });

  test('says no: exit 5 and the reason', async () => {
    issuer.denies = true;
    const { code, err } = await attended([...hello(), '--sign-in']);
    assert.equal(code, 5);
    assert.match(err, /sign-in refused: access_denied/);
  });

  test('a stranger at the door changes nothing', async () => {
    const { code, out, visits } = await attended([...hello(), '--sign-in'], {
      visit: async (url) => {
        const back = new URL(url).searchParams.get('redirect_uri');
        const knocks = [
          `${back}?code=x&state=guess`, back, new URL('/', back).href,
        ].map(async (u) => (await fetch(u)).status);
        const statuses = await Promise.all(knocks);
        await browse(url);
        return statuses;
      },
    });
    assert.deepEqual([code, out], [0, HELLO]);
    assert.deepEqual(visits[0], [400, 400, 404]);
  });

  test('a tool that wants more: asked once more, for all of it', async () => {
    await signIn();
    const tool = [...call, issuer.resource, 'test_image_content'];
    assert.equal((await cli(tool)).code, 5);
    const { code, visits, err } = await attended([...tool, '--sign-in']);
    assert.equal(code, 0, err);
    assert.equal(visits.length, 1);
    assert.deepEqual(issuer.lastAuthorize.scope.split(' ').sort(),
      ['pictures', 'tools']);
    assert.equal((await cli(tool)).code, 0);
    assert.equal(issuer.seen.registered, 1);
  });

  test('info tells who signed in where', async () => {
    await signIn();
    const { out } = await cli(['mcp', 'info', '--json', '--url', issuer.resource]);
    const { signIn: s } = JSON.parse(out);
    assert.equal(s.state, 'signed in');
    assert.equal(s.issuer, issuer.issuer);
    assert.equal(s.scope, 'tools');
    assert.equal(s.refreshable, true);
    assert.ok(Date.parse(s.expiresAt) > Date.now());
    const text = await cli(['mcp', 'info', '--url', issuer.resource]);
    assert.ok(text.out.includes(`signed in at ${issuer.issuer} for tools until `));
    const open = await cli(['mcp', 'info', '--json', '--url', upstream]);
    assert.deepEqual(JSON.parse(open.out).signIn, { state: 'not needed' });
  });
});

describe('on a terminal', () => {
  // A program that gives its child one, and hands its output on.
  const pty = ['-c', 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(' +
    'pty.spawn(sys.argv[1:])))'];

  async function typed(args) {
    const child = spawn('python3', [...pty, bin, ...args], {
      cwd: dir, env: cleanEnv(env()), stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '', visit;
    child.stdout.setEncoding('utf8').on('data', (d) => {
      out += d;
      const url = /^ {2}(http\S+)\r?\n/m.exec(out)?.[1];
      if (url) visit ??= browse(url);
    });
    const [code] = await once(child, 'close');
    await visit;
    return { code, out: out.replaceAll('\r\n', '\n'), visited: visit !== undefined };
  }

  test('a person is asked without an option, but for --no-sign-in', async () => {
    const not = await typed([...hello(), '--no-sign-in']);
    assert.deepEqual([not.code, not.visited], [5, false], not.out);
    const { code, out, visited } = await typed(hello());
    assert.deepEqual([code, visited], [0, true], out);
    assert.ok(out.endsWith(HELLO), out);
  });

  test('a list does not stop at each server', async () => {
    await config();
    const { code, out, visited } = await typed(['mcp', 'list', '--tools']);
    assert.deepEqual([code, visited], [0, false]);
    assert.match(out, /sign in at r/);
    const asked = await typed(['mcp', 'list', '--tools', '--sign-in']);
    assert.deepEqual([asked.code, asked.visited], [0, true]);
    assert.match(asked.out, /^ {4}test_simple_text$/m);
  });
});

test('a state directory that takes no files: no record, no call', async () => {
  state = '/proc'; // not even root's
  const { code, out, err } = await cli([...hello(), '--no-sign-in']);
  assert.deepEqual([code, out], [4, ''], err);
  assert.match(err, /not done, because the audit log cannot be written/);
});

describe('a client registered by hand', () => {
  const secret = 'schnörkel & co:=%';

  test('its secret stays where it is configured', async () => {
    const redirect = `http://localhost:${await freePort()}/back/here`;
    issuer.registers = false;
    issuer.addClient('by hand', secret, [redirect]);
    await config({
      clientId: 'by hand', clientSecret: '${env:CLIENT_SECRET}',
      scope: 'extra', redirectUri: redirect,
    });
    const more = { CLIENT_SECRET: secret };
    const first = await attended(['mcp', 'test', 'r', '--sign-in'], { more });
    assert.equal(first.code, 0, first.err);
    assert.deepEqual(issuer.lastAuthorize.scope.split(' ').sort(),
      ['extra', 'tools']);
    issuer.expireAll();
    const second = await cli(['call', 'r', 'test_simple_text'], more);
    assert.deepEqual([second.code, second.out], [0, HELLO], second.err);
    assert.equal(issuer.seen.refreshed, 1);
    assert.equal(issuer.seen.registered, 0);
    assert.deepEqual(issuer.wrong, []);
    const kept = await readFile(join(state, 'tokens.json'), 'utf8');
    assert.ok(!kept.includes('schn'));
  });

  test('none configured and none registered: a sentence about it', async () => {
    issuer.registers = false;
    const { code, err } = await attended([...hello(), '--sign-in']);
    assert.equal(code, 4);
    assert.match(err, /client id must be configured/);
  });
});

test('a token file that others can read is not used', async () => {
  await signIn();
  await chmod(join(state, 'tokens.json'), 0o644);
  const { code, err } = await cli(hello());
  assert.equal(code, 4);
  assert.match(err, /chmod 600/);
});
