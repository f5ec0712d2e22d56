// Models set up on the page: a key is tested, saved and used at once; a server
// on this machine is offered; what the environment sets is shown as such.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { ollama } from '../lib/ollama.mjs';
import { Bench, assertAccessible, lacking, leave } from './kit.mjs';

const skip = await lacking();
const KEY = 'sk-ant-typed-into-the-page-0123456789';
const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);

describe('models', { skip }, () => {
  let bench, model;
  const llm = async () => JSON.parse(await readFile(join(bench.dir, 'mcp-orchestrator.json'), 'utf8')).llm;
  before(async () => {
    model = await claude({ key: KEY });
    bench = await Bench.open({ config: () => ({ llm: {} }) });
  });
  after(async () => {
    await bench?.close();
    await model?.close();
  });

  test('from the welcome: a wrong key, the right one, the first answer', async () => {
    const page = await bench.visit('/', { reducedMotion: 'reduce' });
    await page.getByRole('button', { name: 'Add a model' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add a model' });
    await dialog.getByRole('button', { name: 'Test', exact: true }).click();
    await dialog.getByText('Enter the API key.').waitFor();
    await dialog.getByLabel('Base URL').fill(model.url);
    await dialog.getByLabel('API key').fill('sk-ant-mistyped-000000');
    await dialog.getByRole('button', { name: 'Test', exact: true }).click();
    await dialog.locator('[data-cause=key]').getByText('The API key is not accepted.').waitFor();
    await dialog.getByRole('button', { name: 'Save anyway' }).waitFor();
    await assertAccessible(page, 'a wrong key');
    await dialog.getByLabel('Base URL').fill(`${model.url}/nowhere`);
    await dialog.getByRole('button', { name: 'Test', exact: true }).click();
    await dialog.locator('[data-cause=address]').waitFor();
    await dialog.getByLabel('Base URL').fill(model.url);
    await dialog.getByLabel('API key').fill(KEY);
    assert.equal(await dialog.getByLabel('API key').getAttribute('type'), 'password');
    await dialog.getByRole('button', { name: 'Test', exact: true }).click();
    await dialog.locator('[data-works]').getByText(/^It works: \d+ models are available\.$/).waitFor();
    assert.deepEqual(await llm(), {}, 'a test saves nothing');
    await dialog.getByLabel('Model of new conversations').selectOption('claude-sonnet-5-5');
    await assertAccessible(page, 'a key that works');
    await dialog.getByRole('button', { name: 'Test and save' }).click();
    await dialog.waitFor({ state: 'detached' });
    assert.deepEqual(await llm(), { claude: { apiKey: '${secret:llm.claude}', baseUrl: model.url }, provider: 'claude', model: 'claude-sonnet-5-5' });
    model.script.push({ text: 'A real answer.' });
    await page.getByRole('button', { name: 'Add a model' }).waitFor({ state: 'detached' });
    await page.getByRole('textbox', { name: 'Message' }).fill('hello');
    await page.keyboard.press('Enter');
    await page.getByText('A real answer.').waitFor();
    assert.ok(!(await page.content()).includes(KEY));
    await leave(page);
  });

  for (const width of [390, 1440])
    test(`in the settings at ${width} px: state, default, change, remove`, async () => {
      const colorScheme = width === 390 ? 'dark' : 'light';
      await fetch(`${bench.server.url}/api/providers/claude`, { method: 'PUT', body: JSON.stringify({ key: KEY, baseUrl: model.url }) });
      const page = await bench.visit('/settings', { viewport: { width, height: 844 }, reducedMotion: 'reduce', colorScheme });
      const models = page.locator('[data-models]');
      const row = models.locator('[data-provider=claude]');
      await row.getByText('API key in the secret store').waitFor();
      await row.getByText(/^available, \d+ models$/).waitFor();
      await models.locator('[data-provider=gemini]').getByText('no API key').waitFor();
      await assertAccessible(page, 'models');
      assert.ok(await fits(page), 'nothing sticks out');
      await models.getByLabel('Model of new conversations').selectOption({ label: 'Demo (built in, no key needed) (demo)' });
      await models.locator('[data-said]').getByText('New conversations use Demo').waitFor();
      assert.deepEqual([(await llm()).provider, (await llm()).model], ['demo', 'demo']);
      await row.getByRole('button', { name: 'Change Claude' }).click();
      const dialog = page.getByRole('dialog', { name: 'Change Claude' });
      await dialog.getByText('A key is saved.').waitFor();
      assert.equal(await dialog.getByLabel('API key').inputValue(), '');
      await dialog.getByLabel('Base URL').fill('http://127.0.0.1:9');
      await dialog.getByRole('button', { name: 'Test', exact: true }).click();
      await dialog.getByRole('alert').getByText(/enter the key again/).waitFor();
      await assertAccessible(page, 'a change');
      assert.ok(await fits(page), 'nothing sticks out');
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      await row.getByRole('button', { name: 'Remove Claude?' }).click();
      await page.getByRole('dialog', { name: 'Remove Claude?' }).getByRole('button', { name: 'Remove' }).click();
      await row.getByText('no API key').waitFor();
      assert.equal((await llm()).claude.apiKey, undefined);
      await leave(page);
    });

  test('a server on this machine is offered and used', async () => {
    const { close } = await ollama('llama3.2:3b', 'qwen3:8b', 'gemma3:4b');
    try {
      // Another configuration: the list of before counts no more.
      await fetch(`${bench.server.url}/api/models/default`, { method: 'PUT', body: JSON.stringify({ provider: 'demo', model: null }) });
      const page = await bench.visit('/settings', { reducedMotion: 'reduce' });
      const found = page.locator('[data-models] [data-found=Ollama]');
      await found.getByText('Ollama found: 3 models').waitFor();
      await assertAccessible(page, 'found');
      await found.getByRole('button', { name: 'Use Ollama' }).click();
      await page.locator('[data-said]').getByText('New conversations use Ollama:llama3.2:3b.').waitFor();
      await found.getByText('in use').waitFor();
      assert.equal((await llm()).model, 'Ollama:llama3.2:3b');
      await leave(page);
    } finally {
      await close();
    }
  });
});

describe('models of the environment', { skip }, () => {
  test('are named and not offered for change', async () => {
    const model = await claude({ key: KEY });
    const bench = await Bench.open({ model, config: () => ({ llm: {} }) });
    try {
      const page = await bench.visit('/settings');
      const row = page.locator('[data-models] [data-provider=claude]');
      await row.getByText('API key set by the environment (ANTHROPIC_API_KEY)').waitFor();
      assert.equal(await row.getByRole('button', { name: 'Remove Claude?' }).count(), 0);
      await row.getByRole('button', { name: 'Change Claude' }).click();
      const dialog = page.getByRole('dialog', { name: 'Change Claude' });
      assert.ok(await dialog.getByLabel('API key').isDisabled());
      assert.ok(await dialog.getByLabel('Base URL').isDisabled());
      await dialog.getByText('Set by the environment (ANTHROPIC_API_KEY). Change it there.').waitFor();
      await assertAccessible(page, 'of the environment');
      await leave(page);
    } finally {
      await bench.close();
    }
  });
});
