// A person connects their own account at a server, and disconnects it, in a
// browser: over another site and back, with the cookie of our page.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';

import { Server } from '../it/server.mjs';
import { named } from '../lib/mcp.mjs';
import { Whose } from '../lib/whose.mjs';
import { CHROMIUM, FLAGS, WAIT, lacking } from './kit.mjs';

const skip = await lacking();
const ANN = 'ann-0123456789abcdef0123';

describe('connections', { skip: skip && !process.env.CI ? skip : false }, () => {
  let dir, server, browser, whose;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-connect-'));
    whose = await new Whose(2).start();
    whose.person = 'ann@there';
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      mcpServers: whose.config({ description: 'files of yours' }), llm: { provider: 'demo' },
      server: { token: 'op-0123456789abcdef012345', tokens: { ann: ANN } },
    }));
    server = await Server.start([], { dir, auth: true, house: true, env: { ...named(dir), MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  });
  after(async () => {
    await browser?.close();
    server.signal('SIGTERM');
    assert.equal((await server.exit).code, 0, server.log);
    await whose.stop();
    await rm(dir, { recursive: true, force: true });
  });

  test('connect and disconnect', async () => {
    const context = await browser.newContext();
    context.setDefaultTimeout(WAIT);
    const page = await context.newPage();
    await page.goto(`${server.url}/?token=${ANN}`);
    await page.goto(`${server.url}/connections?server=s0`);
    const row = page.locator('[data-connection=s0]');
    await row.getByText('files of yours').waitFor();
    await row.getByRole('button', { name: 'Connect' }).click();
    await page.waitForURL('**/connections?connected=s0');
    await row.getByRole('button', { name: 'Disconnect' }).waitFor();
    assert.deepEqual([...whose.server('s0').access.values()].map((t) => t.user), ['ann@there']);
    assert.equal(await page.locator('[data-connection=s1]').getByRole('button', { name: 'Connect' }).count(), 1);
    await row.getByRole('button', { name: 'Disconnect' }).click();
    await row.getByRole('button', { name: 'Connect', exact: true }).waitFor();
    assert.equal(whose.seen.revoked, 1);
    assert.deepEqual(whose.wrong, []);
    await context.close();
  });
});
