// Signing in with Debian's glewlwyd, in Chromium: the page, glewlwyd's own
// pages for the password and for consent, and a conversation.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';

import { Server } from '../it/server.mjs';
import { Glewlwyd, noPages } from '../lib/glewlwyd.mjs';
import { CHROMIUM, FLAGS, WAIT, approve, calls, card, lacking, ready, rest, say } from './kit.mjs';

const SECRET = 'asecretofthepage';
const skip = (await lacking()) || noPages;

describe('signing in with glewlwyd', { skip: skip && !process.env.CI ? skip : false }, () => {
  let dir, glewlwyd, server, browser;
  const home = () => server.url.replace('127.0.0.1', 'localhost');

  before(async () => {
    glewlwyd = await new Glewlwyd().settle();
    dir = await mkdtemp(join(tmpdir(), 'mo-page-glewlwyd-'));
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      mcpServers: {}, llm: { provider: 'demo' },
      people: {
        providers: { g: { issuer: glewlwyd.issuer, title: 'Glewlwyd', clientId: 'page', clientSecret: SECRET, nameClaim: 'username', scopes: ['mcp'] } },
        roles: { user: ['g:gwen'] },
      },
    }));
    server = await Server.start(['--config', join(dir, 'mcp-orchestrator.json')], {
      dir, auth: true, house: true, env: { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') },
    });
    await glewlwyd.start({
      alg: 'RS256', pages: true,
      parameters: { claims: [{ name: 'username', 'user-property': 'username', type: 'string', mandatory: true }] },
      clients: [{ client_id: 'page', confidential: true, password: SECRET, redirect_uri: [`${home()}/sign-in/g/callback`],
        authorization_type: ['code', 'refresh_token'], token_endpoint_auth_method: ['client_secret_basic'], scope: [] }],
    });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  });
  after(async () => {
    await browser?.close();
    server?.signal('SIGTERM');
    await server?.stop();
    await glewlwyd?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  /** Goes to glewlwyd's page. */
  async function leave() {
    const context = await browser.newContext({ locale: 'en-US' });
    context.setDefaultTimeout(WAIT);
    const page = await context.newPage();
    await page.goto(home());
    await page.getByRole('link', { name: 'Sign in with Glewlwyd' }).click();
    await page.getByText('Please enter your login and password').waitFor();
    assert.ok(page.url().startsWith(`http://127.0.0.1:${glewlwyd.port}/login.html`), page.url());
    return page;
  }
  async function enter(page, password) {
    await page.getByLabel('Login').fill('gwen');
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'OK', exact: true }).click();
  }
  const signOut = async (page) => {
    await page.goto(`${home()}/settings`);
    await page.getByRole('button', { name: /sign out/i }).click();
    await page.getByRole('link', { name: 'Sign in with Glewlwyd' }).waitFor();
  };

  test('a wrong password stays there', async () => {
    const page = await leave();
    const answered = page.waitForResponse((r) => new URL(r.url()).pathname === '/api/auth/');
    await enter(page, 'not her password');
    assert.equal((await answered).status(), 401);
    await page.getByText('Please enter your login and password').waitFor();
    const me = await page.context().request.get(`${home()}/api/me`);
    assert.equal(me.status(), 401);
    await page.context().close();
  });

  test('asks for the password and for consent, and ends in a conversation', async () => {
    const page = await leave();
    await enter(page, 'a password');
    await page.getByText('Client access grant').waitFor();
    await page.getByLabel('mcp').check();
    await page.getByRole('button', { name: 'Grant access' }).click();
    await page.getByRole('button', { name: 'Continue' }).click();
    await ready(page);
    assert.match(page.url(), new RegExp(`^${home()}/`));
    const me = await page.context().request.get(`${home()}/api/me`);
    assert.deepEqual(await me.json(), { name: 'g:gwen', role: 'user' });
    await say(page, 'write hello to a.txt');
    await card(page).waitFor();
    await approve(page).click();
    await calls(page, 'done').waitFor();
    await rest(page);
    await signOut(page);
    await page.context().close();
  });
});
