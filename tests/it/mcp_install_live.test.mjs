// `mcp install` with the registry that npm is set up for on this machine: two
// published servers, started from their read-only place.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { bin, run } from '../lib/mcp.mjs';

const KEPT = /^(npm_config_(?!prefix)|https?_proxy$|no_proxy$|NODE_EXTRA_CA_CERTS$|SSL_CERT_)/i;
let dir;
before(async () => { dir = await mkdtemp(join(tmpdir(), 'mo-live-')); });
after(() => rm(dir, { recursive: true }));

async function mcp(home, ...args) {
  const kept = Object.entries(process.env).filter(([name]) => KEPT.test(name));
  const got = await run(bin, ['mcp', ...args], {
    cwd: dir,
    env: {
      npm_config_userconfig: join(homedir(), '.npmrc'), npm_config_cache: join(homedir(), '.npm'),
      ...Object.fromEntries(kept), HOME: join(dir, home), MCP_ORCHESTRATOR_STATE_DIR: join(dir, home, 'state'),
    },
  });
  assert.equal(got.code, 0, got.err);
  return got.out;
}

describe('published servers', { concurrency: 2 }, () => {
  for (const [name, spec, tool] of [
    ['memory', 'npm:@modelcontextprotocol/server-memory@2026.8.31', 'create_entities'],
    ['context7', 'npm:@upstash/context7-mcp@1.0.33', 'resolve-library-id'],
  ])
    test(`${name}: installed, tested, listed, verified, uninstalled`, async () => {
      await mcp(name, 'install', spec, '--yes', '--name', name);
      assert.match(await mcp(name, 'test', name), /^ok: /);
      assert.match(await mcp(name, 'info', name), new RegExp(`^  ${tool}$`, 'm'));
      assert.match(await mcp(name, 'verify', name), new RegExp(`^${name}: unchanged`));
      await mcp(name, 'uninstall', name);
    });
});
