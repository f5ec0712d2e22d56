// Apps of servers (MCP Apps) in the page: the published examples, really rendered,
// and what a person decides about one.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { appOf, close, inside, open, own, path, shoot } from './apps_kit.mjs';
import { Bench, VIEWS, assertAccessible, field, lacking, leave, say } from './kit.mjs';

const skip = await lacking();
const published = (name) => ({
  command: process.execPath,
  args: [path(`../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`), '--stdio'],
});

describe('published apps', { skip }, () => {
  const EXAMPLES = [
    // [server, tool, arguments, what its app shows]
    ['basic-vanillajs', 'get-time', {}, (app) => app.getByText(/Server Time/i)],
    ['basic-react', 'get-time', {}, (app) => app.getByText(/Server Time/i)],
    ['budget-allocator', 'get-budget-data', {}, (app) => app.getByText(/Budget/i)],
    ['threejs', 'show_threejs_scene', {}, (app) => app.locator('canvas')],
  ];
  let bench;
  before(async () => {
    const model = await claude({ key: 'sk-ant-0123456789' });
    bench = await Bench.open({
      model,
      config: () => ({
        llm: { tools: 'all' },
        approvals: { rules: [{ server: '*', action: 'allow' }] },
        mcpServers: Object.fromEntries([...EXAMPLES.map(([name]) => name), 'map'].map((name) => [name, published(name)])),
      }),
    });
    await Promise.all([...EXAMPLES.map(([name]) => name), 'map'].map(async (name) =>
      assert.equal((await fetch(`${bench.server.url}/api/servers/${name}/test`, { method: 'POST' })).status, 200, name)));
  });
  after(() => bench?.close());

  for (const [name, tool, args, shows] of EXAMPLES)
    test(`${name} is rendered`, async () => {
      const page = await open(bench, {}, [{ name: `${name}_${tool}`, args }]);
      await shows(inside(page)).first().waitFor();
      await appOf(page).and(page.locator('[data-app-state=shown]')).waitFor();
      await shoot(page, `app-${name}`);
      await close(page);
    });

  test('map wants domains that are not granted: the page says which', async () => {
    const page = await open(bench, {}, [{ name: 'map_show-map', args: { west: 10, south: 59, east: 11, north: 60 } }]);
    await page.locator('[data-app-refused] summary').click();
    await page.locator('[data-app-refused]').getByText(/cesium\.com/).first().waitFor();
    await page.locator('[data-app-refused]').getByText(/openstreetmap\.org/).first().waitFor();
    await shoot(page, 'app-map');
    await close(page);
  });

  for (const view of VIEWS) {
    const size = `${view.viewport.width}-${view.colorScheme}`;
    test(`an app calls a tool of its server, and has the theme, ${size}`, async () => {
      const page = await open(bench, view, [{ name: 'basic-vanillajs_get-time', args: {} }]);
      await inside(page).getByText(/Server Time/i).first().waitFor();
      await inside(page).getByRole('button', { name: /Get.*Time/i }).click();
      await page.locator('[data-app-last]').getByText('called get-time').waitFor();
      const scheme = await inside(page).locator('html').evaluate((el) => el.dataset.theme ?? getComputedStyle(el).colorScheme);
      assert.match(scheme, new RegExp(view.colorScheme));
      const box = await appOf(page).boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= view.viewport.width, 'the app leaves the screen');
      await assertAccessible(page, `an app, ${size}`);
      await shoot(page, `app-${size}`);
      await page.locator('[data-app-full]').click();
      await until(async () => (await page.locator('[data-app] iframe').boundingBox()).width >= view.viewport.width - 1, 'full screen');
      await inside(page).getByText(/Server Time/i).first().waitFor();
      await shoot(page, `app-full-${size}`);
      await page.locator('[data-app-full]').click();
      await until(async () => (await page.locator('[data-app] iframe').boundingBox()).width < view.viewport.width, 'inline again');
      await close(page);
    });
  }

  test('a message goes into the composer, a link is confirmed by the person', async () => {
    const page = await open(bench, {}, [{ name: 'basic-vanillajs_get-time', args: {} }]);
    await inside(page).getByText(/Server Time/i).first().waitFor();
    await inside(page).getByRole('button', { name: /Send Message/i }).click();
    await until(async () => (await field(page).inputValue()).length > 0, 'the message in the composer');
    assert.equal(bench.model.script.length, 0, 'nothing was sent');
    await field(page).fill('');
    await inside(page).getByRole('button', { name: /Open Link/i }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/https?:\/\/\S+/).waitFor();
    await shoot(page, 'app-link');
    await assertAccessible(page, 'the question about a link');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal(page.context().pages().length, 1, 'no window was opened');
    await inside(page).getByRole('button', { name: /Open Link/i }).click();
    const opened = page.context().waitForEvent('page');
    await page.getByRole('dialog').getByRole('button', { name: 'Open link' }).click();
    await (await opened).close();
    await close(page);
  });
});

describe('approvals and context of an app', { skip }, () => {
  const APP = `<!doctype html><body><p id=out></p>
<button id=note>note</button><button id=tell>tell</button><button id=close>close</button>
<script type=module>
let id = 0; const waiting = new Map(); const out = document.getElementById('out');
const send = (m) => parent.postMessage({ jsonrpc: '2.0', ...m }, '*');
const ask = (method, params) => new Promise((done) => { waiting.set(++id, done); send({ id, method, params }); });
addEventListener('message', ({ data }) => {
  if (waiting.has(data.id) && !data.method) waiting.get(data.id)(data);
  else if (data.method === 'ui/notifications/tool-result') out.textContent = 'got ' + JSON.stringify(data.params.structuredContent);
  else if (data.id !== undefined) send({ id: data.id, result: {} });
});
await ask('ui/initialize', { appInfo: { name: 'x', version: '1' }, appCapabilities: {}, protocolVersion: '2026-01-26' });
send({ method: 'ui/notifications/initialized' });
const say = (a) => { out.textContent = a.error ? 'error ' + a.error.message : JSON.stringify(a.result); };
document.getElementById('note').onclick = async () => say(await ask('tools/call', { name: 'note', arguments: { text: 'milk' } }));
document.getElementById('tell').onclick = async () => say(await ask('ui/update-model-context', { content: [{ type: 'text', text: 'the person looks at Oslo' }] }));
document.getElementById('close').onclick = () => send({ method: 'ui/notifications/request-teardown' });
</script>`;
  let bench;
  before(async () => {
    bench = await Bench.open({
      model: await claude({ key: 'sk-ant-0123456789' }),
      config: (dir) => ({
        llm: { tools: 'all' },
        approvals: { rules: [{ server: '*', annotations: ['readOnlyHint'], action: 'allow' }] },
        mcpServers: { shop: own(join(dir, 'app.html'), '{"connectDomains":["https://api.example.com"]}') },
      }),
    });
    await writeFile(join(bench.dir, 'app.html'), APP);
    assert.equal((await fetch(`${bench.server.url}/api/servers/shop/test`, { method: 'POST' })).status, 200);
  });
  after(() => bench?.close());

  for (const view of VIEWS) {
    const size = `${view.viewport.width}-${view.colorScheme}`;
    test(`the person approves and rejects calls, and sees context, ${size}`, async () => {
      const page = await open(bench, view, [{ name: 'shop_show', args: { city: 'Oslo' } }]);
      await inside(page).getByText('got {"city":"Oslo"').waitFor();
      await page.locator('[data-app-refused] summary').click();
      await page.locator('[data-app-refused]').getByText('https://api.example.com').waitFor();
      await page.locator('[data-app-refused]').getByText('camera', { exact: true }).waitFor();
      const ask = page.locator('[data-app-ask]');
      await inside(page).locator('#note').click();
      await ask.getByText('milk').waitFor();
      await assertAccessible(page, `the question about a call of an app, ${size}`);
      await shoot(page, `app-ask-${size}`);
      await ask.getByRole('button', { name: 'Reject' }).click();
      await inside(page).getByText(/error .*rejected/).waitFor();
      await inside(page).locator('#note').click();
      await ask.getByRole('button', { name: 'Approve' }).click();
      await inside(page).getByText(/noted \d+: milk/).waitFor();
      await inside(page).locator('#tell').click();
      await page.locator('[data-app-context]').getByText('Context of the app of shop').waitFor();
      await shoot(page, `app-context-${size}`);
      bench.model.script.push({ text: 'I know.' });
      await say(page, 'and?');
      await page.getByText('I know.').waitFor();
      assert.match(JSON.stringify(bench.model.requests.at(-1).body.messages.at(-1)), /the person looks at Oslo/);
      assert.equal(await page.locator('[data-app-context]').count(), 0);
      await inside(page).locator('#close').click();
      await page.getByText('The app is closed.').waitFor();
      await page.getByRole('button', { name: 'Show again' }).click();
      await inside(page).getByText('got {"city":"Oslo"').waitFor();
      await page.reload();
      await inside(page).getByText('got {"city":"Oslo"').waitFor();
      await close(page);
    });
  }

  test('nothing of it is loaded before there is an app', async () => {
    const page = await bench.visit('/');
    const asked = [];
    page.on('request', (r) => asked.push(r.url()));
    await page.reload();
    await page.locator('[data-example]').first().waitFor();
    assert.deepEqual(asked.filter((u) => /AppView|app-frame|appHost/.test(u)), []);
    await leave(page);
  });
});
