// Images for models, and requests of servers for the model, on every screen.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { Bench, VIEWS, assertAccessible, everything, field, lacking, leave, ready, rest, say } from './kit.mjs';

const skip = await lacking();
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const sent = (model, i = -1) => JSON.parse(model.requests.at(i).bytes.toString()).messages.at(-1).content;

describe('images and sampling', { skip }, () => {
  let bench, model;
  before(async () => {
    model = await claude({ key: 'sk-ant-0123456789' });
    bench = await Bench.withServers(model, { everything });
  });
  after(() => bench?.close());

  test('an attached image is shown, and the model gets it', async () => {
    const page = await bench.visit();
    await ready(page);
    await page.locator('form input[type=file]').setInputFiles([{ name: 'dot.png', mimeType: 'image/png', buffer: PNG }]);
    await field(page).fill('what is it?');
    model.script.push({ text: 'A dot.' });
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('A dot.').waitFor();
    assert.deepEqual(sent(model).filter((b) => b.type === 'image').map((b) => b.source.data), [PNG.toString('base64')]);
    const check = () => page.waitForFunction(() => document.querySelector('[role=log] [data-files] [data-image]')?.naturalWidth === 1);
    await check();
    await page.reload();
    await check();
    await leave(page);
  });

  test('a large photo: the model gets a smaller copy, the workspace the original', async () => {
    const page = await bench.visit();
    await ready(page);
    await page.evaluate(async () => { // noise does not compress
      const c = new OffscreenCanvas(2400, 1600), to = c.getContext('2d'), all = to.createImageData(2400, 1600);
      for (let i = 0; i < all.data.length; i += 65536) crypto.getRandomValues(all.data.subarray(i, Math.min(all.data.length, i + 65536)));
      for (let i = 3; i < all.data.length; i += 4) all.data[i] = 255;
      to.putImageData(all, 0, 0);
      const d = new DataTransfer();
      d.items.add(new File([await c.convertToBlob({ type: 'image/png' })], 'photo.png', { type: 'image/png' }));
      document.querySelector('textarea').dispatchEvent(new ClipboardEvent('paste', { clipboardData: d, bubbles: true, cancelable: true }));
    });
    await field(page).fill('and this?');
    await page.getByRole('button', { name: 'Send' }).and(page.locator(':enabled')).waitFor({ timeout: 60_000 });
    model.script.push({ text: 'Noise.' });
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('Noise.').waitFor();
    const [image] = sent(model).filter((b) => b.type === 'image');
    assert.equal(image.source.media_type, 'image/jpeg');
    assert.ok(image.source.data.length < 4 * 1024 * 1024);
    await leave(page);
  });

  for (const view of VIEWS)
    test(`a request of a server for the model: ${view.viewport.width} px, ${view.colorScheme}`, async () => {
      const page = await bench.visit('/', view);
      model.script.push(
        { calls: [{ name: 'everything_trigger-sampling-request', args: { prompt: 'Name a colour.', maxTokens: 40 } }] },
        { text: 'Blue, I think.' }, { text: 'It said blue.' });
      await say(page, 'ask it');
      const asked = page.locator('[data-sample=asked]');
      await asked.waitFor();
      await asked.locator('[data-part=user]').getByText('Name a colour.').waitFor();
      await asked.locator('[data-part=system]').getByText('You are a helpful test server.').waitFor();
      await asked.getByText('at most 40 tokens').waitFor();
      await assertAccessible(page, 'a sampling request');
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no horizontal scroll');
      await asked.getByRole('button', { name: 'Edit' }).click();
      const form = asked.locator('[data-sample-form]');
      const user = form.getByLabel('User');
      await user.fill('');
      await asked.getByText('A message must not be empty.').waitFor();
      assert.ok(await asked.getByRole('button', { name: 'Approve as changed' }).isDisabled());
      await user.fill('Name a warm colour.');
      await form.getByLabel('Instructions of the server').fill('Be brief.');
      await form.getByLabel('Longest answer').fill('12');
      await assertAccessible(page, 'a sampling request that is being changed');
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no horizontal scroll');
      await asked.getByRole('button', { name: 'Approve as changed' })[view.hasTouch ? 'tap' : 'click']();
      const review = page.locator('[data-sample=review]');
      await review.locator('[data-part=answer]').getByText('Blue, I think.').waitFor();
      await review.locator('[data-part=user]').getByText('Name a warm colour.').waitFor();
      await review.locator('[data-edited]').waitFor();
      await until(() => review.getByRole('button', { name: 'Return the answer' }).evaluate((b) => {
        const r = b.getBoundingClientRect();
        return document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2) === b;
      }), 'it is in view, and nothing lies over it');
      const { system, messages, max_tokens: most } = JSON.parse(model.requests.at(-1).bytes.toString());
      assert.deepEqual([system.map((b) => b.text).join(), messages.at(-1).content.map((b) => b.text).join(), most],
        ['Be brief.', 'Name a warm colour.', 12]);
      await assertAccessible(page, 'its answer');
      await page.reload();
      await review.locator('[data-part=answer]').getByText('Blue, I think.').waitFor();
      await review.getByRole('button', { name: 'Return the answer' })[view.hasTouch ? 'tap' : 'click']();
      await page.getByText('It said blue.').waitFor();
      await rest(page);
      await leave(page);
    });
});
