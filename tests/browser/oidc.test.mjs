// Signing in with a provider, in Chromium: the page, the provider's own pages,
// a conversation with a boxed tool, and signing out in one of two tabs.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';

import { Server } from '../it/server.mjs';
import { Idp } from '../lib/idp.mjs';
import { CHROMIUM, FLAGS, WAIT, approve, calls, card, lacking, ready, rest, say } from './kit.mjs';

const skip = await lacking();

describe('signing in with a provider', { skip: skip && !process.env.CI ? skip : false }, () => {
  let dir, idp, server, browser;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-oidc-page-'));
    idp = await new Idp({ ann: { groups: ['staff'] }, nora: {} }).start();
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      mcpServers: {}, llm: { provider: 'demo' },
      people: {
        providers: { corp: { issuer: idp.issuer, title: 'Corp', clientId: 'page', clientSecret: 'a secret of this client', scopes: ['groups'] } },
        roles: { user: ['corp/staff'] },
      },
    }));
    server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
      dir, house: true, auth: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
    });
    idp.clients = [{ client_id: 'page', client_secret: 'a secret of this client', redirect_uris: [`http://localhost:${new URL(server.url).port}/sign-in/corp/callback`] }];
    idp.make();
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  });
  after(async () => {
    await browser?.close();
    server?.signal('SIGTERM');
    await server?.stop();
    await idp?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  const home = () => server.url.replace('127.0.0.1', 'localhost');
  async function signIn(who) {
    const context = await browser.newContext();
    context.setDefaultTimeout(WAIT);
    const page = await context.newPage();
    await page.goto(home());
    await page.getByRole('link', { name: 'Sign in with Corp' }).click();
    await page.locator('input[name=login]').fill(who);
    await page.locator('input[name=password]').fill('x');
    await page.getByRole('button').first().click();
    await page.getByRole('button', { name: /continue/i }).click();
    return page;
  }

  test('ends in a conversation with a boxed tool; signing out closes the other tab\'s', async () => {
    const page = await signIn('ann');
    await ready(page);
    assert.match(page.url(), new RegExp(`^${home()}/`));
    await say(page, 'write hello to a.txt');
    await card(page).waitFor();
    await approve(page).click();
    await calls(page, 'done').waitFor();
    await rest(page);
    assert.equal(await page.evaluate(() => document.cookie), '', 'no script sees the cookie');
    const other = await page.context().newPage();
    await other.goto(`${home()}/settings`);
    await other.getByRole('button', { name: /sign out/i }).click();
    await other.getByRole('link', { name: 'Sign in with Corp' }).waitFor();
    await page.goto(home());
    await page.getByRole('link', { name: 'Sign in with Corp' }).waitFor();
    await page.context().close();
  });

  test('somebody without a role is told so', async () => {
    const page = await signIn('nora');
    await page.getByText('has no role here').waitFor();
    await page.context().close();
  });
});
