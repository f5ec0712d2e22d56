// Presets: saved from a conversation, picked for a new one, renamed, deleted.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { until } from '../it/server.mjs';
import { Bench, VIEWS, assertAccessible, lacking, leave, ready } from './kit.mjs';

const skip = await lacking();

describe('presets', { skip: skip && !process.env.CI ? skip : false }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open();
    for (const body of [{ name: 'Brief', system: 'Be brief.', toolsOff: [{ server: 'box', tool: 'write_file' }] }, { name: 'Old' }])
      assert.equal((await fetch(`${bench.server.url}/api/presets`, { method: 'POST', body: JSON.stringify(body) })).status, 201);
  });
  after(() => bench?.close());
  const names = async () => (await (await fetch(`${bench.server.url}/api/presets`)).json()).presets.map((p) => p.name).sort();

  test('picked in the start view: its parts are set in the conversation', async () => {
    const page = await bench.visit();
    await ready(page);
    await page.getByLabel('Preset').selectOption({ label: 'Brief' });
    await until(async () => {
      const { sessions } = await (await fetch(`${bench.server.url}/api/sessions`)).json();
      const all = await Promise.all(sessions.map(async ({ id }) => (await fetch(`${bench.server.url}/api/sessions/${id}`)).json()));
      return all.some((s) => s.system === 'Be brief.');
    }, 'the instructions');
    await leave(page);
  });

  test('saved from a conversation, then used for a new one', async () => {
    const page = await bench.visit();
    await ready(page);
    await page.getByRole('tab', { name: 'Sandbox' }).click();
    const words = page.getByLabel('Instructions for this conversation');
    await words.fill('Answer in verse.');
    const save = page.getByRole('button', { name: 'Save as a preset…' });
    await save.click();
    const dialog = page.getByRole('dialog', { name: 'Save preset' });
    assert.ok(await dialog.getByRole('button', { name: 'Save preset' }).isDisabled(), 'it needs a name');
    await dialog.getByLabel('Name').fill('Poet');
    await assertAccessible(page, 'saving a preset');
    await dialog.getByRole('button', { name: 'Save preset' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('Preset “Poet” saved.').waitFor();
    const { presets } = await (await fetch(`${bench.server.url}/api/presets`)).json();
    const { id, ...poet } = presets.find((p) => p.name === 'Poet');
    assert.equal(poet.system, 'Answer in verse.');
    assert.equal(poet.mode, 'ask');
    assert.ok(poet.model, 'the model');
    await page.getByRole('button', { name: /^New conversation/ }).click();
    await page.getByLabel('Preset').selectOption({ label: 'Poet' });
    await page.getByRole('tab', { name: 'Sandbox' }).click();
    await page.waitForFunction(() => [...document.querySelectorAll('textarea')].some((t) => t.value === 'Answer in verse.'));
    assert.equal((await fetch(`${bench.server.url}/api/presets/${id}`, { method: 'DELETE' })).ok, true);
    await leave(page);
  });

  test('the settings: all sizes, both themes; renamed and deleted', async () => {
    for (const view of [...VIEWS, { viewport: { width: 1024, height: 800 }, colorScheme: 'dark' }]) {
      const page = await bench.visit('/settings', view);
      await page.getByRole('heading', { name: 'Presets' }).waitFor();
      await assertAccessible(page, `settings ${view.viewport.width} ${view.colorScheme}`);
      await leave(page);
    }
    const page = await bench.visit('/settings');
    const field = page.getByLabel('Rename “Old”');
    await field.fill('Older');
    await field.press('Tab');
    await until(async () => (await names()).includes('Older'), 'the new name');
    await page.getByRole('button', { name: 'Delete “Older”' }).click();
    await until(async () => (await names()).length === 1, 'it is gone');
    assert.deepEqual(await names(), ['Brief']);
    await leave(page);
  });
});
