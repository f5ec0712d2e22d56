// Results of tools: images, sound, resources, structured content, progress, long
// text. The published server for everything, and one that sends sound.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { Bench, VIEWS, assertAccessible, calls, everything, lacking, leave, rest, say } from './kit.mjs';

const skip = await lacking();
const SHOTS = process.env.MO_SHOTS;

// Half a second of silence: 8 bit, 8 kHz.
const WAV = Buffer.alloc(44 + 4000, 128);
WAV.write('RIFF', 0); WAV.writeUInt32LE(36 + 4000, 4); WAV.write('WAVEfmt ', 8); WAV.writeUInt32LE(16, 16);
WAV.writeUInt16LE(1, 20); WAV.writeUInt16LE(1, 22); WAV.writeUInt32LE(8000, 24); WAV.writeUInt32LE(8000, 28);
WAV.writeUInt16LE(1, 32); WAV.writeUInt16LE(8, 34); WAV.write('data', 36); WAV.writeUInt32LE(4000, 40);

const SENDER = `
const rl = require('readline').createInterface({ input: process.stdin });
const write = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
const names = ['sound', 'rows', 'file', 'wait', 'long'];
const RESULTS = {
  sound: [{ type: 'audio', mimeType: 'audio/wav', data: '${WAV.toString('base64')}' }],
  rows: [{ type: 'text', text: JSON.stringify([{ city: 'Oslo', temperature: -3 }, { city: '=Rome', temperature: 18 }]) }],
  file: [{ type: 'resource', resource: { uri: 'file:///data/<b>notes</b>.html', mimeType: 'text/html', text: '<script>parent.pwned=1</script>' } },
    { type: 'resource', resource: { uri: 'file:///data/bytes.bin', mimeType: 'application/octet-stream', blob: 'AAECAw==' } }],
  long: [{ type: 'text', text: 'line of text\\n'.repeat(2000) }],
};
rl.on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'initialize') write({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'sender', version: '1' } } });
  else if (method === 'tools/list') write({ id, result: { tools: names.map((name) => ({ name, description: name, inputSchema: { type: 'object' } })) } });
  else if (method !== 'tools/call') write({ id, error: { code: -32601, message: 'no' } });
  else if (params.name === 'wait') // it never ends: progress stays
    write({ method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 3, total: 12, message: 'copying <b>files</b>' } });
  else write({ id, result: { content: RESULTS[params.name] } });
});
process.stdin.on('end', () => process.exit(0));
`;

describe('results', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.withServers(await claude({ key: 'sk-ant-0123456789' }), {
      everything, sender: { command: process.execPath, args: ['-e', SENDER] },
    });
  });
  after(() => bench?.close());

  async function called(all, options) {
    bench.model.script.push({ calls: all }, { text: 'That is it.' });
    const page = await bench.visit('/', options);
    await page.locator('[data-example]').first().waitFor();
    await say(page, 'go on');
    return page;
  }
  const open = (page, name) => page.locator('[role=log] [data-call]').filter({ hasText: name }).locator('button').first().click();

  for (const view of VIEWS) {
    const size = `${view.viewport.width}-${view.colorScheme}`;
    test(`images, sound, resources and rows, ${size}`, async () => {
      const page = await called([
        { name: 'everything_get-tiny-image', args: {} }, { name: 'sender_sound', args: {} },
        { name: 'sender_file', args: {} }, { name: 'sender_rows', args: {} },
        { name: 'everything_get-resource-links', args: { count: 2 } },
      ], view);
      await page.getByText('That is it.').waitFor();
      await rest(page);
      assert.equal(await calls(page, 'done').count(), 5);
      // Without opening anything:
      const image = page.locator('img[data-image]');
      assert.match(await image.getAttribute('src'), /^data:image\/png;base64,/);
      await until(() => image.evaluate((el) => el.naturalWidth > 0), 'the image');
      await until(() => page.locator('audio').evaluate((el) => el.duration > 0.4), 'the sound');
      for (const name of ['sender_file', 'sender_rows', 'get-resource-links']) await open(page, name);
      await page.getByText('text/html').first().waitFor();
      await page.getByText('application/octet-stream · 4 bytes').waitFor();
      assert.equal(await page.locator('[data-resource=link]').count(), 2);
      const rows = page.locator('[data-grid]').first();
      assert.deepEqual(await rows.locator('th').allInnerTexts(), ['city', 'temperature']);
      assert.deepEqual(await rows.locator('td').allInnerTexts(), ['Oslo', '-3', '=Rome', '18']);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, 'wider than the screen');
      await assertAccessible(page, `results, ${size}`);
      if (SHOTS) {
        await page.locator('[role=log]').first().evaluate((el) => el.scrollTo(0, 0));
        await page.screenshot({ path: `${SHOTS}/results-${size}.png` });
      }
      await leave(page);
    });

    test(`progress of a running call, ${size}`, async () => {
      const page = await called([{ name: 'sender_wait', args: {} }], view);
      const bar = page.getByRole('progressbar');
      await bar.waitFor();
      assert.equal(await bar.getAttribute('aria-valuenow'), '25');
      await page.getByText('copying <b>files</b>').waitFor();
      await assertAccessible(page, `progress, ${size}`);
      if (SHOTS) await page.screenshot({ path: `${SHOTS}/progress-${size}.png` });
      await page.getByRole('button', { name: 'Stop' }).click();
      await rest(page);
      bench.model.script.length = 0;
      await leave(page);
    });
  }

  test('a resource is opened as text and downloaded as bytes', async () => {
    const page = await called([{ name: 'sender_file', args: {} }]);
    await page.getByText('That is it.').waitFor();
    await open(page, 'sender_file');
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    await page.getByText('<script>parent.pwned=1</script>').waitFor();
    const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).nth(1).click()]);
    assert.equal(saved.suggestedFilename(), 'bytes.bin');
    assert.deepEqual([...await readFile(await saved.path())], [0, 1, 2, 3]);
    await leave(page);
  });

  test('rows are copied as CSV and JSON; long text is folded, with its size', async () => {
    const page = await called([{ name: 'sender_rows', args: {} }, { name: 'sender_long', args: {} }],
      { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.getByText('That is it.').waitFor();
    await open(page, 'sender_rows');
    const copied = async (name) => {
      await page.getByRole('button', { name }).click();
      return (await page.evaluate(() => navigator.clipboard.readText())).replaceAll('\r', '');
    };
    assert.equal(await copied('Copy as CSV'), 'city,temperature\nOslo,-3\n\'=Rome,18\n');
    assert.deepEqual(JSON.parse(await copied('Copy as JSON'))[1], { city: '=Rome', temperature: 18 });
    await open(page, 'sender_long');
    const result = page.locator('[data-call]').filter({ hasText: 'sender_long' }).locator('[data-result]');
    const folded = (await result.innerText()).length;
    await page.getByRole('button', { name: /Show all \(25.kB\)/ }).click();
    assert.ok((await result.innerText()).length > 3 * folded);
    await leave(page);
  });
});
