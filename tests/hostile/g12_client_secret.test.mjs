// G12: a remote server names an issuer of the attacker's for its sign-in, and a
// client secret that was configured for another issuer is sent there.
// Fails on 953b0b1e: a person was sent to that issuer, which then got the
// secret, at the first sign-in and after one elsewhere. (The key `oauth.issuer`
// of the last test is unknown there.)
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';

import { bin, cleanEnv, driver, named } from '../lib/mcp.mjs';
import { Issuer, runAttended } from '../it/issuer.mjs';
import { freePort } from '../lib/port.mjs';

const fixture = join(dirname(driver), '../fixture/fixture');
const secret = 'of-one-issuer-only';
const client = { clientId: 'by hand', clientSecret: '${env:CLIENT_SECRET}' };
let dir, server, upstream, issuer, evil, redirectUri;

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

// Both know the client, so that whoever gets its secret says so. Another name of
// this machine is another host.
beforeEach(async (t) => {
  dir = await mkdtemp(join(tmpdir(), 'mo-g12-'));
  redirectUri = `http://localhost:${await freePort()}/back`;
  [issuer, evil] = [new Issuer(), new Issuer()];
  for (const i of [issuer, evil]) {
    await i.start(upstream);
    i.registers = false;
    i.addClient('by hand', secret, [redirectUri]);
  }
  evil.issuer = evil.issuer.replace('127.0.0.1', 'localhost');
  evil.resource = issuer.resource;
  evil.access = issuer.access; // the server takes its tokens
  t.after(async () => {
    for (const i of [issuer, evil]) await i.stop();
    await rm(dir, { recursive: true });
  });
});

async function signIn(more = {}) {
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: { r: { url: issuer.resource, oauth: { ...client, redirectUri, ...more } } },
  }));
  return runAttended(bin, ['mcp', 'test', 'r', '--sign-in'], {
    cwd: dir, env: cleanEnv({ ...named(dir), MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state'), CLIENT_SECRET: secret }),
  });
}

/** The attacker saw nobody, and no secret. */
function assertRefused({ code, err, visits }, why) {
  assert.deepEqual([visits.length, evil.seen.authorized, evil.seen.codes, evil.wrong], [0, 0, 0, []]);
  assert.notEqual(code, 0);
  assert.ok(err.includes(why), err);
}

test('the first sign-in is at an issuer of another host', async () => {
  issuer.named = evil.issuer;
  assertRefused(await signIn(), `set oauth.issuer to "${evil.issuer}"`);
});

test('the server changes its issuer later', async () => {
  const first = await signIn();
  assert.equal(first.code, 0, first.err);
  assert.equal(issuer.seen.codes, 1);
  issuer.revokeAll();
  issuer.named = evil.issuer;
  assertRefused(await signIn(), `set oauth.issuer to "${evil.issuer}"`);
});

test('the issuer is configured', async () => {
  issuer.named = evil.issuer;
  assertRefused(await signIn({ issuer: 'https://login.example' }), 'oauth.issuer is https://login.example');
  const wanted = await signIn({ issuer: evil.issuer });
  assert.equal(wanted.code, 0, wanted.err);
  assert.deepEqual([evil.seen.authorized, evil.seen.codes], [1, 1]);
});
