// Personal tokens on the page: made, shown once, used by a program, listed and
// revoked.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';

import { Server } from '../it/server.mjs';
import { Bench, CHROMIUM, FLAGS, assertAccessible, lacking, leave } from './kit.mjs';

const skip = await lacking();
const OPERATOR = 'operator-0123456789abcdef';
const ALICE = 'alice-0123456789abcdefgh';

describe('personal tokens', { skip: skip && !process.env.CI ? skip : false }, () => {
  let dir, server, browser;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-page-tokens-'));
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      server: { token: OPERATOR, tokens: { alice: ALICE } } }));
    server = await Server.start([], { dir, house: true, auth: true });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  });
  after(async () => {
    await browser?.close();
    server?.signal('SIGTERM');
    await server?.stop();
    await rm(dir, { recursive: true, force: true });
  });
  const visit = async (token) => {
    const page = await Object.assign(new Bench(), { server, browser }).visit(`/?token=${token}`);
    await page.goto(`${server.url}/settings`);
    return page;
  };
  const me = async (token) => {
    const answer = await fetch(`${server.url}/api/me`, { headers: { authorization: `Bearer ${token}`, connection: 'close' } });
    return { status: answer.status, ...(await answer.json()) };
  };

  test('a person makes one, a program uses it, the person revokes it', async () => {
    const page = await visit(ALICE);
    const part = page.locator('[data-tokens]');
    await part.getByText('No tokens yet.').waitFor();
    assert.deepEqual(await part.getByLabel('Role').locator('option').allTextContents(), ['Viewer', 'User']);
    assert.ok(await part.getByRole('button', { name: 'Create token' }).isDisabled());
    await part.getByLabel('Name: what is it for?').fill('my laptop');
    await part.getByLabel('Valid for').selectOption('7');
    await part.getByRole('button', { name: 'Create token' }).click();
    const token = (await part.locator('[data-made] code').textContent()).trim();
    assert.match(token, /^mop_/);
    await part.getByRole('button', { name: 'Copy the token' }).waitFor();
    const row = part.locator('[data-token]');
    await row.getByText('my laptop').waitFor();
    await row.getByText('never used · expires in 7 days').waitFor();
    await assertAccessible(page, 'a new token');
    const { status, name, role } = await me(token);
    assert.deepEqual([status, name, role], [200, 'alice', 'user']);
    await page.reload();
    await row.getByText(/last used Today, .* · expires in 7 days/).waitFor();
    assert.ok(!(await page.content()).includes(token), 'not shown again');
    await row.getByRole('button', { name: 'Revoke my laptop' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await part.getByText('No tokens yet.').waitFor();
    assert.equal((await me(token)).status, 401);
    await leave(page);
  });

  test('the operator sees the owner, and a refusal is shown', async () => {
    const headers = { authorization: `Bearer ${ALICE}`, 'content-type': 'application/json', connection: 'close' };
    const made = await fetch(`${server.url}/api/tokens`, { method: 'POST', headers, body: '{"name":"of alice","views":["docs"]}' });
    assert.equal(made.status, 201);
    const page = await visit(OPERATOR);
    const part = page.locator('[data-tokens]');
    await part.locator('[data-token]').getByText('alice', { exact: true }).first().waitFor();
    await part.locator('[data-token]').getByText('docs').waitFor();
    assert.equal(await part.getByLabel('Role').locator('option').count(), 4);
    await part.getByLabel('Name: what is it for?').fill('x');
    await part.getByLabel('Only for these views').fill('no/view');
    await part.getByRole('button', { name: 'Create token' }).click();
    await part.getByRole('alert').getByText("a view's name has letters").waitFor();
    await leave(page);
  });
});
