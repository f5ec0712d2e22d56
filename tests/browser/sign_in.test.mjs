// Signing in with a browser: what a person without a cookie sees, the link, the
// form; and a page of another site, which can do neither.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';

import { Server, until } from '../it/server.mjs';
import { CHROMIUM, FLAGS, WAIT, approve, calls, card, lacking, ready, rest, say } from './kit.mjs';

const skip = await lacking();

describe('signing in', { skip: skip && !process.env.CI ? skip : false }, () => {
  let dir, server, browser, token;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-sign-in-'));
    const state = join(dir, 'state');
    server = await Server.start([], {
      dir, house: true, auth: true, env: { MCP_ORCHESTRATOR_STATE_DIR: state },
    });
    token = (await readFile(join(state, 'token'), 'utf8')).trim();
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  });
  after(async () => {
    await browser?.close();
    const headers = { authorization: `Bearer ${token}` };
    const { sessions } = await (await fetch(`${server.url}/api/sessions`, { headers })).json();
    for (const { id } of sessions)
      await fetch(`${server.url}/api/sessions/${id}?forget=true`, { method: 'DELETE', headers });
    server?.signal('SIGTERM');
    await server?.stop();
    await rm(dir, { recursive: true, force: true });
  });
  const visit = async () => {
    const context = await browser.newContext();
    context.setDefaultTimeout(WAIT);
    return context.newPage();
  };

  test('the link leads to a conversation with a boxed tool', async () => {
    const page = await visit();
    await page.goto(`${server.url}/?token=${token}`);
    assert.equal(page.url().includes(token), false, 'not in the address bar');
    await ready(page);
    await say(page, 'write hello to a.txt');
    await card(page).waitFor();
    await approve(page).click();
    await calls(page, 'done').waitFor();
    await rest(page);
    const stored = await page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }));
    assert.ok(!stored.includes(token), 'no script can read the token');
    await page.context().close();
  });

  test('without a cookie the page says what to do, and takes a token', async () => {
    const page = await visit();
    await page.goto(`${server.url}/servers`);
    await page.getByText('mcp-orchestrator open').first().waitFor();
    await page.getByLabel('Or paste a token').fill('not-the-right-token');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('That token is not right').waitFor();
    await page.getByLabel('Or paste a token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await ready(page);
    await page.context().close();
  });

  test('signing out removes the cookie, and is in the audit log', async () => {
    const page = await visit();
    await page.goto(`${server.url}/?token=${token}`);
    await page.goto(`${server.url}/settings`);
    await page.getByRole('button', { name: 'Sign out of this browser' }).click();
    await page.getByLabel('Or paste a token').waitFor();
    assert.deepEqual(await page.context().cookies(server.url), []);
    const signed = async () => {
      const { rows } = await (await fetch(`${server.url}/api/audit`, { headers: { authorization: `Bearer ${token}` } })).json();
      return rows.map((r) => r.what).filter((w) => w?.kind === 'access' && w.outcome.startsWith('signed')).map((w) => `${w.outcome}: ${w.door}`);
    };
    await until(async () => (await signed())[0] === 'signed out: page', 'the row');
    assert.equal((await signed())[1], 'signed in: link');
    await page.context().close();
  });

  test('a page of another site neither acts nor signs in', async () => {
    const other = createServer((rq, rs) => rs.setHeader('content-type', 'text/html').end(
      rq.url === '/' ? '<!doctype html><title>evil</title>' : `<form method=post action="${server.url}/sign-in">
        <input name=token value="${token}"></form><a href="${server.url}/?token=${token}">x</a>`));
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const evil = `http://127.0.0.1:${other.address().port}`;
    const page = await visit();
    // as a person who is signed in: the browser has the cookie
    await page.goto(`${server.url}/?token=${token}`);
    await page.goto(evil);
    const got = await page.evaluate(async (url) => {
      const attempt = (path, options) => fetch(url + path, { credentials: 'include', ...options })
        .then((r) => `${r.type} ${r.status}`, (e) => e.name);
      return [
        await attempt('/api/sessions'),
        await attempt('/api/mcp', { method: 'POST', body: '{"name":"x","command":"/bin/true"}' }),
        await attempt('/api/mcp', { method: 'POST', mode: 'no-cors', body: '{"name":"x","command":"/bin/true"}' }),
        await new Promise((done) => {
          const ws = new WebSocket(`${url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket`);
          ws.onopen = () => done('open');
          ws.onerror = () => done('refused');
        }),
      ];
    }, server.url);
    assert.ok(got.every((x) => x === 'TypeError' || x === 'refused' || x === 'opaque 0'), got.join());
    const list = await (await fetch(`${server.url}/api/mcp`, { headers: { authorization: `Bearer ${token}` } })).json();
    assert.deepEqual(list.servers.filter((s) => s.name === 'x'), []);
    await page.context().close();
    // as a person who is not: neither a link nor a form of that page signs in
    for (const act of [(p) => p.click('a'), (p) => p.evaluate(() => document.forms[0].submit())]) {
      const fresh = await visit();
      await fresh.goto(`${evil}/form`);
      await act(fresh);
      await fresh.waitForURL(`${server.url}/**`);
      assert.deepEqual(await fresh.context().cookies(server.url), []);
      await fresh.context().close();
    }
    other.close();
  });
});
