// A conversation that is shared, in the browsers of its owner, of a viewer and
// of the persons who must approve its calls.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';

import { Server } from '../it/server.mjs';
import { CHROMIUM, FLAGS, WAIT, card, lacking, ready, rest, say } from './kit.mjs';

const skip = await lacking();
const token = (who) => `token-of-${who}-0123456789abcdef`;
const WHO = ['ann', 'bob', 'carl', 'vera'];

describe('shared work on the page', { skip: skip && !process.env.CI ? skip : false }, () => {
  let dir, server, browser, ann, url;
  const pages = {};
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-shares-'));
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      mcpServers: {}, llm: { provider: 'demo' },
      server: { token: token('operator'), tokens: Object.fromEntries(WHO.map((w) => [w, token(w)])) },
      people: { roles: { viewer: ['vera'] } },
      approvals: { rules: [{ tool: 'write_file', action: 'ask', approvers: ['bob', 'carl'], approvals: 2 }] },
    }));
    server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
      dir, house: true, auth: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
    });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
    for (const who of WHO) {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
      context.setDefaultTimeout(WAIT);
      pages[who] = await context.newPage();
      await pages[who].goto(`${server.url}/?token=${token(who)}`);
    }
    ann = pages.ann;
  });
  after(async () => {
    await browser?.close();
    const headers = { authorization: `Bearer ${token('operator')}` };
    const { sessions } = await (await fetch(`${server.url}/api/sessions`, { headers })).json();
    for (const { id } of sessions)
      await fetch(`${server.url}/api/sessions/${id}?forget=true`, { method: 'DELETE', headers });
    server?.signal('SIGTERM');
    await server?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  test('the owner shares it, and the viewer reads it live', async () => {
    await ready(ann);
    await say(ann, 'say hello to everybody');
    await rest(ann);
    url = ann.url();
    const row = ann.locator('nav li', { hasText: 'say hello' });
    await row.hover();
    await row.getByRole('button', { name: 'Share “' }).click();
    const dialog = ann.getByRole('dialog', { name: 'Share conversation' });
    await dialog.getByText('Only you and the operator').waitFor();
    await dialog.getByLabel('Person, group or role').fill('vera');
    await dialog.getByRole('button', { name: 'Share', exact: true }).click();
    await dialog.locator('[data-shares] li', { hasText: 'vera' }).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();

    await pages.vera.goto(url);
    await pages.vera.locator('[data-shared]', { hasText: 'Shared with you for reading.' }).waitFor();
    await pages.vera.getByText('say hello to everybody').first().waitFor();
    assert.equal(await pages.vera.locator('textarea').count(), 0, 'nothing to write in');
    await say(ann, 'say goodbye now');
    await pages.vera.locator('main').getByText('say goodbye now').first().waitFor();
    await rest(ann);
  });

  test('a card says for whom it waits and who has approved', async () => {
    await say(ann, 'write hello to a.txt');
    const waits = ann.locator('[data-waits-for]');
    await waits.getByText('Waiting for 2 people out of bob, carl').waitFor();
    for (const who of ['bob', 'carl']) {
      const page = pages[who];
      await page.goto(`${server.url}/approvals`);
      await page.locator('[data-pending-call] [data-waits-for]').waitFor();
      await card(page).getByRole('button', { name: 'Approve' }).click();
      if (who === 'bob') await waits.getByText('approved by bob').waitFor();
    }
    await rest(ann);
    await ann.getByText('a.txt').first().waitFor();
  });

  test('a share that is withdrawn is gone from the page of the viewer', async () => {
    const row = ann.locator('nav li', { hasText: 'say hello' });
    await row.hover();
    await row.getByRole('button', { name: 'Share “' }).click();
    const dialog = ann.getByRole('dialog', { name: 'Share conversation' });
    await dialog.getByRole('button', { name: 'Withdraw' }).click();
    await dialog.getByText('Only you and the operator').waitFor();
    await pages.vera.getByRole('alert').getByText('no such session').waitFor();
    await pages.vera.goto(url);
    await pages.vera.getByRole('alert').getByText('no such session').waitFor();
    assert.equal(await pages.vera.getByText('say goodbye now').count(), 0);
  });
});
