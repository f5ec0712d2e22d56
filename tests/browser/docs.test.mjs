// The documents at /docs in a browser: search, keyboard, without scripts.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Bench, lacking, leave } from './kit.mjs';

const skip = await lacking();
const PHONE = { width: 390, height: 844 };
const search = (page) => page.getByRole('searchbox', { name: 'Search' });
const results = (page) => page.locator('#results a');
const focused = (page) => page.evaluate(() => document.activeElement.textContent);

describe('documents', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open();
  });
  after(() => bench?.close());

  test('search finds a page by a word, and a section by its message', async () => {
    const page = await bench.visit('/docs');
    await search(page).fill('webhook');
    await page.locator('#results').getByText('Webhooks').click();
    await page.waitForURL('**/docs/approvals#webhooks');
    await search(page).fill('circuit breaker open');
    await results(page).filter({ hasText: 'fails again and again' }).first().waitFor();
    await search(page).fill('xyzzyplugh');
    await page.getByRole('status').getByText('Nothing found').waitFor();
    assert.equal(await results(page).count(), 0);
    await leave(page);
  });

  test('by keys alone', async () => {
    const page = await bench.visit('/docs/gateway');
    await page.keyboard.press('Tab');
    assert.equal(await focused(page), 'Skip to the text');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'content');
    await page.keyboard.press('/');
    await page.keyboard.type('backup restore');
    await results(page).first().waitFor();
    await page.keyboard.press('ArrowDown');
    const first = await focused(page);
    await page.keyboard.press('ArrowDown');
    assert.notEqual(await focused(page), first);
    await page.keyboard.press('ArrowUp');
    assert.equal(await focused(page), first);
    await page.keyboard.press('Escape');
    await page.locator('#results').waitFor({ state: 'hidden' });
    assert.equal(await page.evaluate(() => document.activeElement.id), 'q');
    await page.keyboard.press('Enter'); // opens the best one
    await page.waitForURL('**/docs/backup*');
    await leave(page);
  });

  test('the menu marks the page, and a phone reaches it by a link', async () => {
    const page = await bench.visit('/docs/secrets', { viewport: PHONE });
    assert.equal(await page.locator('#menu [aria-current=page]').textContent(), 'Keep secrets');
    await page.getByRole('link', { name: 'Contents', exact: true }).click();
    await page.waitForFunction(() => document.getElementById('menu').getBoundingClientRect().top < innerHeight / 2);
    await leave(page);
  });

  test('no page is wider than a phone', async () => {
    const page = await bench.visit('/docs', { viewport: PHONE });
    const paths = await page.locator('#menu a').evaluateAll((all) => all.map((a) => a.pathname));
    assert.ok(paths.length > 40);
    for (const path of paths) {
      await page.goto(bench.server.url + path);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), path);
    }
    await leave(page);
  });

  test('without scripts: everything but the search', async () => {
    const page = await bench.visit('/docs/approvals', { javaScriptEnabled: false });
    await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
    assert.equal(await search(page).count(), 0);
    await page.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'Webhooks' }).click();
    await page.waitForURL('**#webhooks');
    await page.getByRole('navigation', { name: 'Contents' }).getByRole('link', { name: 'Audit log' }).click();
    await page.waitForURL('**/docs/audit');
    await page.context().close();
    assert.deepEqual(page.sins, []);
  });

  test('the page leads there, and its theme counts', async () => {
    const page = await bench.visit('/settings', { colorScheme: 'light' });
    await page.getByRole('radio', { name: 'Dark' }).check();
    const opened = page.context().waitForEvent('page');
    await page.getByRole('link', { name: 'Documentation' }).click();
    const docs = await opened;
    await docs.getByRole('heading', { name: 'Documentation', level: 1 }).waitFor();
    assert.equal(new URL(docs.url()).pathname, '/docs');
    assert.equal(await docs.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await docs.close();
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByRole('link', { name: 'Documentation' }).waitFor();
    await page.keyboard.press('Escape');
    await leave(page);
  });
});
