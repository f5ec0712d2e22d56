// Prompts and resources in the composer, of the published server for everything.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { Bench, VIEWS, assertAccessible, everything, field, lacking, leave, rest } from './kit.mjs';

const skip = await lacking();
const SHOTS = process.env.MO_SHOTS;

describe('prompts and resources', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.withServers(await claude({ key: 'sk-ant-0123456789' }), { everything });
  });
  after(() => bench?.close());

  async function visit(options) {
    const page = await bench.visit('/', options);
    await page.locator('[data-example]').first().waitFor();
    await page.locator('[data-tool-picker]').waitFor();
    return page;
  }
  const shoot = async (page, name) => SHOTS && page.screenshot({ path: `${SHOTS}/${name}.png` });
  const last = () => bench.model.requests.at(-1).body;
  const option = (page, name) => page.locator('[data-offers]').getByRole('option').filter({ hasText: name }).first();

  for (const view of VIEWS) {
    const size = `${view.viewport.width}-${view.colorScheme}`;
    test(`a prompt and a resource, ${size}`, async () => {
      const page = await visit(view);
      await field(page).fill('/args');
      await option(page, 'args-prompt').waitFor();
      await assertAccessible(page, `the menu of prompts, ${size}`);
      await shoot(page, `prompts-${size}`);
      await field(page).press('Enter');
      const form = page.getByRole('dialog');
      await form.getByLabel(/^city/).fill('Oslo');
      await assertAccessible(page, `the form of a prompt, ${size}`);
      await shoot(page, `prompt-${size}`);
      await form.getByRole('button', { name: 'Insert' }).click();
      await until(async () => /Oslo/.test(await field(page).inputValue()), 'the prompt in the field');
      assert.doesNotMatch(await field(page).inputValue(), /\/args/);

      await field(page).fill('what is in @');
      await option(page, '@').waitFor();
      await shoot(page, `resources-${size}`);
      await field(page).press('ArrowDown');
      await field(page).press('ArrowUp');
      await field(page).press('Enter');
      await until(async () => /^what is in @\[\S+\] $/.test(await field(page).inputValue()), 'the mark of the resource');
      const uri = /@\[(\S+)\]/.exec(await field(page).inputValue())[1];
      bench.model.script.push({ text: 'I have read it' });
      await field(page).press('Enter');
      await page.getByText('I have read it').waitFor();
      await rest(page);
      const sent = JSON.stringify(last().messages.at(-1).content);
      assert.ok(sent.includes(uri), sent.slice(0, 300));
      assert.match(sent, /=== resource \w{8}: .*everything/);
      const attached = page.locator('[data-attached]');
      await attached.getByText(`Resource of everything: ${uri}`).waitFor();
      assert.equal(await attached.evaluate((el) => el.open), false);
      assert.ok((await page.locator('[data-user]').boundingBox()).x >= 0, 'the message leaves the screen');
      await assertAccessible(page, `an attached resource, ${size}`);
      await shoot(page, `attached-${size}`);
      await leave(page);
    });
  }

  test('values are completed by the server; Escape closes a menu', async () => {
    const page = await visit();
    await field(page).fill('/completable');
    await option(page, 'completable').click();
    const form = page.getByRole('dialog');
    await form.getByLabel(/^department/).fill('E');
    await until(() => form.locator('datalist option[value=Engineering]').count(), 'Engineering');
    await form.getByRole('button', { name: 'Cancel' }).click();
    await field(page).fill('/');
    await page.getByRole('listbox').waitFor();
    await field(page).press('Escape');
    await page.getByRole('listbox').waitFor({ state: 'detached' });
    await leave(page);
  });

  test('a resource that cannot be read keeps the message', async () => {
    const page = await visit();
    await field(page).fill('look at @[nothing://here] please');
    await field(page).press('Enter');
    await page.getByRole('alert').waitFor();
    assert.equal(await field(page).inputValue(), 'look at @[nothing://here] please');
    await leave(page);
  });
});
