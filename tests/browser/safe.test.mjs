// Text of peers stays text: it does not run, load anything or hide. And the page
// stays below its size limit.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Bench, approve, calls, card, lacking, leave, ready, rest, say } from './kit.mjs';

const WEIGHT_MAX = 200 * 1024;
const skip = await lacking();

const PAYLOADS = [
  '<img src=x onerror=window.pwned=1>',
  '<script>window.pwned=1</script>',
  '<svg onload=window.pwned=1>',
  '<iframe srcdoc="<script>parent.pwned=1</script>">',
  '<a href=javascript:window.pwned=1>x</a>',
  '[x](javascript:window.pwned=1)',
  '[x](JaVaScRiPt:window.pwned=1 "t")',
  '![x](http://example.invalid/p.png)',
  '<style>*{background:url(http://example.invalid/)}</style>',
  '{{constructor.constructor("window.pwned=1")()}}',
  '</pre></code><img src=x onerror=window.pwned=1>',
  '<http://example.invalid/auto>',
];

describe('text of others', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open({
      config: () => ({
        audit: { arguments: true }, // so that the log shows them
        mcpServers: {
          evil: {
            command: process.execPath,
            args: [fileURLToPath(new URL('../fakes/mcp.mjs', import.meta.url)), PAYLOADS[0]],
            env: { MO_FAKE_EVIL: PAYLOADS.join(' ') },
            description: PAYLOADS.join(' '),
          },
        },
      }),
    });
  });
  after(() => bench?.close());

  /** n calls in sequence, then the end of the turn. */
  async function approveAll(page, n = 1) {
    for (let i = 0; i < n; i++) {
      await card(page).waitFor();
      const call = await card(page).getAttribute('data-card');
      await approve(page).click();
      await page.locator(`[data-card="${call}"]`).waitFor({ state: 'detached' });
    }
    await rest(page);
  }

  test('what people and models write, what tools print', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, PAYLOADS.join('\n'));
    await rest(page);
    await say(page, `write '${PAYLOADS.join(' ').replaceAll("'", '')}' to x.html, then show it`);
    await approveAll(page, 2);
    assert.equal(await calls(page, 'done').count(), 2);
    for (const call of await calls(page, 'done').all()) await call.getByRole('button').first().click();
    for (const tab of ['Sandbox', 'Calls', 'Events', 'Console'])
      await page.getByRole('tab', { name: tab }).click();
    await page.reload();
    await calls(page, 'done').first().waitFor();
    const bad = await page.evaluate(() => document.querySelectorAll(
      '[role=log] :is(script,iframe,style,object,[onerror],[onload],a[href^=java])').length);
    assert.equal(bad, 0);
    await leave(page);
  });

  test('names of files and commands', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'write x to "<img/src=x/onerror=window.pwned=1>"');
    await approveAll(page);
    await say(page, 'list the files');
    await approveAll(page);
    await say(page, 'run "printf \'\\033[31mred\\033[0m<img src=x onerror=window.pwned=1>\\n\'"');
    await approveAll(page);
    await page.locator('[data-console] .fg-red').getByText('red').waitFor();
    await leave(page);
  });

  test('what servers say of themselves, of their tools, and answer', async () => {
    const page = await bench.visit('/servers/evil');
    const main = page.getByRole('main');
    await main.getByRole('button', { name: /^(Connect|Test)$/ }).click();
    await main.getByText(/Connected in .*: 3 tools/).waitFor();
    await main.locator('[data-stderr]').getByText('onerror=window.pwned').waitFor();
    await main.getByRole('button', { name: /^greet/ }).click();
    await main.getByLabel('name', { exact: true }).fill(PAYLOADS[0]);
    await main.getByRole('button', { name: 'Try it' }).click();
    await main.getByRole('button', { name: 'Run', exact: true }).click();
    await main.locator('[data-result]').getByText('onerror=window.pwned').nth(1).waitFor();
    assert.equal(await main.locator('img, iframe, script, svg:not([aria-hidden])').count(), 0);
    await page.getByRole('link', { name: 'Overview' }).click();
    await main.locator('details').filter({ hasText: 'evil' }).first().locator('summary').click();
    await main.locator('pre').getByText('onerror=window.pwned').first().waitFor();
    await page.getByRole('link', { name: 'MCP Orchestrator' }).click();
    await ready(page);
    await page.getByRole('tab', { name: 'Sandbox' }).click();
    const tool = page.locator('details').filter({ hasText: 'evil_greet' });
    await tool.locator('summary').click();
    await tool.getByText('onerror=window.pwned').first().waitFor();
    assert.equal(await page.locator('aside :is(img, iframe, script)').count(), 0);
    await leave(page);
  });

  test('nothing hides in what is to be approved', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'run "echo a\u202Eb\u200Bc\u0007"');
    await card(page).waitFor();
    const marks = await card(page).locator('figure .odd').allTextContents();
    assert.deepEqual(marks, ['U+202E', 'U+200B', 'U+0007']);
    assert.equal(await card(page).locator('figure .odd').first().getAttribute('title'),
      'U+202E right-to-left override');
    await leave(page);
  });

  test('the first load is light, and comes from this server alone', async () => {
    const page = await bench.visit();
    await ready(page);
    const files = await page.evaluate(() =>
      performance.getEntriesByType('resource')
        .concat(performance.getEntriesByType('navigation'))
        .filter((r) => !/socket\.io|\/api\/|readyz/.test(r.name))
        .map((r) => [r.name, r.encodedBodySize]));
    const sum = files.reduce((n, [, size]) => n + size, 0);
    assert.ok(files.length >= 3 && sum > 10_000, JSON.stringify(files));
    assert.ok(sum <= WEIGHT_MAX, `${sum} bytes: ${JSON.stringify(files)}`);
    await leave(page);
  });

  test('names with checksums are kept, the index is asked for', async () => {
    const index = await fetch(`${bench.server.url}/s/any`);
    const html = await index.text();
    assert.equal(index.headers.get('cache-control'), 'no-cache');
    assert.doesNotMatch(html, /<script(?![^>]*\ssrc=)|<style|\son\w+=|https?:/);
    const again = await fetch(bench.server.url, {
      headers: { 'if-none-match': index.headers.get('etag') },
    });
    assert.equal(again.status, 304);
    const icon = await fetch(`${bench.server.url}/icon.png`); // from memory, as all of it
    assert.match(icon.headers.get('content-type'), /png/);
    for (const [, path] of html.matchAll(/(?:src|href)="(\/assets\/[^"]+\.(?:js|css))"/g)) {
      const texts = new Set(); // the same, however it is packed
      for (const coding of ['br', 'gzip', 'identity']) {
        const r = await fetch(bench.server.url + path, {
          headers: { 'accept-encoding': coding },
        });
        assert.match(r.headers.get('cache-control'), /immutable/);
        assert.equal(r.headers.get('content-encoding'), coding === 'identity' ? null : coding);
        texts.add(await r.text());
      }
      assert.equal(texts.size, 1, path);
      assert.notEqual([...texts][0], '', path);
    }
  });
});
