// A hostile app (MCP Apps) in the page: none of its attempts to reach what it was not
// granted succeeds. hostile_app.html makes them and tells how each of them ended.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { close, inside, open, own, path, shoot } from './apps_kit.mjs';
import { Bench, field, lacking } from './kit.mjs';

const skip = await lacking();

describe('a hostile app', { skip }, () => {
  let bench, outside, hits, stun, packets;
  before(async () => {
    hits = [];
    packets = 0;
    stun = createSocket('udp4').on('message', () => packets++);
    await new Promise((done) => stun.bind(0, '127.0.0.1', done));
    outside = createServer((rq, rs) => {
      hits.push(rq.url);
      rs.setHeader('access-control-allow-origin', '*').end('x');
    });
    outside.on('upgrade', (rq, socket) => {
      hits.push(`upgrade ${rq.url}`);
      socket.destroy();
    });
    await new Promise((done) => outside.listen(0, '127.0.0.1', done));
    const url = `http://127.0.0.1:${outside.address().port}`;
    bench = await Bench.open({
      model: await claude({ key: 'sk-ant-0123456789' }),
      config: (dir) => ({
        llm: { tools: 'all' },
        approvals: { rules: [
          { tool: 'note', args: { text: 'forbidden' }, action: 'deny' },
          { server: '*', annotations: ['readOnlyHint'], action: 'allow' },
        ] },
        mcpServers: {
          evil: own(join(dir, 'app.html'), JSON.stringify({ connectDomains: [url, '*'], resourceDomains: [url], frameDomains: [url] })),
          other: { command: process.execPath, args: [path('../it/apps_other.mjs')] },
        },
      }),
    });
    const html = await readFile(path('hostile_app.html'), 'utf8');
    await writeFile(join(bench.dir, 'app.html'), html.replace('OUTSIDE_URL', url).replace('HOST_URL', bench.server.url).replace('STUN_URL', stunUrl()));
    for (const name of ['evil', 'other'])
      assert.equal((await fetch(`${bench.server.url}/api/servers/${name}/test`, { method: 'POST' })).status, 200);
  });
  const stunUrl = () => `stun:127.0.0.1:${stun.address().port}`;
  after(async () => {
    outside?.close();
    stun?.close();
    await bench?.close();
  });

  test('none of its attempts succeeds', async (t) => {
    const page = await open(bench, {}, [{ name: 'evil_show', args: {} }]);
    await page.evaluate(() => {
      document.cookie = 'secret=1';
      localStorage.setItem('secret', '1');
    });
    const downloads = [];
    page.on('download', (d) => downloads.push(d.suggestedFilename()));
    const before = page.url();
    const out = inside(page).locator('#out');
    await until(async () => (await out.textContent()).startsWith('{'), 'all attempts', 90_000);
    const outcome = JSON.parse(await out.textContent());
    assert.ok(Object.keys(outcome).length >= 45, `${Object.keys(outcome).length} attempts`);
    for (const [name, how] of Object.entries(outcome))
      await t.test(name, () => assert.match(how, /^failed: /));
    assert.deepEqual(hits, [], 'requests that left the browser');
    assert.deepEqual(downloads, []);
    assert.equal(page.url(), before);
    assert.equal(page.context().pages().length, 1);
    assert.equal(await page.getByRole('dialog').count(), 0, 'no link was shown to the person');
    assert.equal(await field(page).inputValue(), '');
    assert.equal(await page.locator('[data-app-context]').count(), 0);
    const box = await page.locator('[data-app] iframe').boundingBox();
    assert.ok(box.height <= 1000 && box.width <= 1440, JSON.stringify(box));
    assert.equal(await page.evaluate(() => document.cookie.includes('mo_evil')), false);
    assert.match(outcome['tool of another server'], /no such tool/);
    assert.match(outcome['tool for the model only'], /not for apps/);
    await shoot(page, 'app-hostile');

    await t.test('it cannot leave for another page', async () => {
      await inside(page).locator('#leave').click();
      await until(async () => (await page.frames().at(-1).evaluate(() => document.body?.textContent ?? '').catch(() => '')) !== 'x', 'no foreign page');
      assert.deepEqual(hits, []);
    });
    await close(page);
  });

  test('WebRTC in frames inside it reaches nothing', async (t) => {
    const page = await open(bench, {}, [{ name: 'evil_show', args: {} }]);
    const out = inside(page).locator('#out');
    await until(async () => (await out.textContent()).startsWith('{'), 'all attempts', 90_000);
    const shown = await page.evaluate(() => sessionStorage['mo.apps']);
    assert.equal(JSON.parse(shown).length, 1);
    const path = new URL(page.url()).pathname;
    const context = page.context();
    let crashed = false;
    page.on('crash', () => { crashed = true; });
    // The browser ends the page, or tells the app that it may not.
    await inside(page).locator('#rtc').click().catch(() => {});
    await until(async () => crashed || (await out.textContent().catch(() => '')) === 'rtc ended', 'the attempts ended');
    assert.equal(packets, 0, 'nothing was sent');

    await t.test('a tab that it ended does not show it again by itself', async () => {
      await context.addInitScript((kept) => {
        if (window === top) sessionStorage['mo.apps'] ??= kept; // as the tab would have it
      }, shown);
      const again = await bench.look(context, path);
      await again.getByText('The browser ended this page while the app was shown').waitFor();
      assert.equal(await again.locator('[data-app] iframe').count(), 0);
      await shoot(again, 'app-ended');
      await again.getByRole('button', { name: 'Show again' }).click();
      await inside(again).locator('#out').waitFor();
      await context.close();
    });

    await t.test('a page without such a policy reaches it', async () => {
      const free = await (await bench.browser.newContext()).newPage();
      await free.goto(`${bench.server.url}/healthz`);
      await free.evaluate(async (urls) => {
        const c = new RTCPeerConnection({ iceServers: [{ urls }] });
        c.createDataChannel('x');
        await c.setLocalDescription(await c.createOffer());
      }, stunUrl());
      await until(() => packets > 0, 'a packet');
      await free.context().close();
    });
  });

  test('an app that floods the page is stopped', async () => {
    const page = await open(bench, {}, [{ name: 'evil_show', args: {} }]);
    const out = inside(page).locator('#out');
    await until(async () => (await out.textContent()).startsWith('{'), 'all attempts', 90_000);
    await inside(page).locator('#flood').click();
    await page.getByText('The app sent too many messages and was stopped.').waitFor();
    await shoot(page, 'app-stopped');
    assert.equal(await page.locator('[data-app] iframe').count(), 0);
    await close(page);
  });
});
