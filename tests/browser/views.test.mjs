// Every view in both themes through axe-core, and a server that restarts under
// the page.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import {
  Bench, approve, assertAccessible, calls, card, lacking, leave, ready, rest,
  say,
} from './kit.mjs';

const skip = await lacking();

const config = (dir) => ({
  mcpServers: {
    greeter: {
      command: process.execPath,
      args: [fileURLToPath(new URL('../fakes/mcp.mjs', import.meta.url))],
      env: { MO_FAKE_CHANGED: join(dir, 'changed') },
    },
    dead: { command: '/no/such/program' },
  },
});

/** Wait for what happens at the end, going there as a person would. */
async function shown(page, what) {
  const down = page.getByRole('button', { name: 'To the end' });
  for (const end = Date.now() + 30_000; !(await what.isVisible()); await page.waitForTimeout(50)) {
    assert.ok(Date.now() < end, `never shown: ${what}`);
    if (await down.isVisible()) await down.click({ timeout: 1000 }).catch(() => {});
  }
}

describe('views', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open({ config });
  });
  after(() => bench?.close());

  for (const scheme of ['light', 'dark'])
    test(`accessible in ${scheme}: empty, card, answer, other views`, async () => {
      const page = await bench.visit('/', { colorScheme: scheme, reducedMotion: 'reduce' });
      await page.locator('[data-example]').first().waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
      await assertAccessible(page, 'empty');
      await say(page, 'write "# T\\n- a" to x.md, then run "false"');
      await card(page).waitFor();
      await assertAccessible(page, 'a card');
      await page.keyboard.press('a');
      await card(page).getByText('false').first().waitFor();
      await page.keyboard.press('a');
      await rest(page);
      await calls(page, 'failed').waitFor();
      await assertAccessible(page, 'an answer');
      await page.getByRole('tab', { name: 'Box' }).click();
      await assertAccessible(page, 'box');
      await page.getByRole('link', { name: 'Servers' }).click();
      await page.getByRole('link', { name: 'greeter' }).click();
      await page.getByRole('button', { name: /^greet/ }).click();
      await page.getByLabel('name', { exact: true }).waitFor();
      await assertAccessible(page, 'servers');
      for (const view of ['Overview', 'Settings']) {
        await page.getByRole('link', { name: view }).click();
        await page.getByRole('heading', { name: view }).waitFor();
        if (view === 'Overview') await page.getByRole('img', { name: /^Calls: \d+\. \d+ failed/ }).waitFor();
        await assertAccessible(page, view);
      }
      await leave(page);
    });

  test('servers: one that is dead, a tool that is tried, one that changed', async () => {
    const page = await bench.visit('/servers/dead');
    const main = page.getByRole('main');
    await main.getByRole('button', { name: 'Connect and test' }).click();
    await main.getByRole('status').getByText(/Failed after .*no\/such\/program/).waitFor();
    await main.getByRole('heading', { name: 'Last error' }).waitFor();
    await main.getByRole('link', { name: 'greeter' }).click();
    await main.getByRole('button', { name: /^(Connect and test|Test it)$/ }).click();
    await main.getByText(/Answered in .*: 3 tools/).waitFor();
    await main.locator('[data-stderr]').getByText('greeter: listening').waitFor();
    await main.getByRole('button', { name: /^greet/ }).click();
    await main.getByRole('button', { name: 'Try it' }).click();
    await main.getByText('This is needed.').waitFor();
    await main.getByLabel('name', { exact: true }).fill('Ada');
    await main.getByLabel(/^tone/).selectOption('stiff');
    await main.getByLabel(/^extra/).fill('{"a":[1]}');
    await main.getByRole('button', { name: 'Try it' }).click();
    await main.locator('[data-ask]').getByText('Ada').waitFor();
    await main.getByRole('button', { name: 'Run it' }).click();
    await main.locator('[data-result]').getByText('hello').waitFor();
    assert.deepEqual(JSON.parse((await main.locator('[data-result]').textContent()).slice(6)),
      { name: 'Ada', times: 1, tone: 'stiff', extra: { a: [1] } });
    await writeFile(join(bench.dir, 'changed'), '');
    await page.reload();
    await main.getByText('changed', { exact: true }).waitFor();
    await main.getByRole('button', { name: /^greet/ }).click();
    await main.locator('[data-change] .bg-add').getByText('passwords').waitFor();
    await main.getByRole('button', { name: 'Accept it as it is now' }).click();
    await main.locator('[data-change]').waitFor({ state: 'detached' });
    await leave(page);
  });

  test('the server restarts under the page, and 3,000 messages stay few elements', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'write later to l.txt');
    await card(page).waitFor();
    await bench.stopServer();
    await page.locator('[data-lost]').waitFor();
    await bench.seed(page.url().split('/').at(-1), 3000);
    await bench.startServer();
    await page.locator('[data-lost]').waitFor({ state: 'hidden' });
    await card(page).getByText('l.txt').first().waitFor();
    const rows = page.locator('[role=log] [data-user], [role=log] .md');
    assert.ok(await rows.count() < 100, `${await rows.count()} of them`);
    await approve(page).click();
    await shown(page, calls(page, 'done'));
    await rest(page);
    const log = page.getByRole('log', { name: 'Conversation' });
    const first = page.locator('[data-user]').getByText('question 1', { exact: true });
    while (!(await first.count())) { // what was before comes in pages
      await log.hover();
      await page.mouse.wheel(0, -1e6);
      await page.waitForTimeout(50);
    }
    assert.ok(await rows.count() < 100, `${await rows.count()} of them`);
    await page.getByRole('button', { name: 'To the end' }).click();
    await calls(page, 'done').waitFor();
    await leave(page);
  });
});
