// Tools that are switched off in a conversation.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { Bench, VIEWS, assertAccessible, everything, lacking, leave, say } from './kit.mjs';

const skip = await lacking();
const SHOTS = process.env.MO_SHOTS;

describe('tools of a conversation', { skip }, () => {
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

  for (const view of VIEWS) {
    const size = `${view.viewport.width}-${view.colorScheme}`;
    test(`tools are switched off, ${size}`, async () => {
      const page = await visit(view);
      await page.locator('[data-tool-picker]').click();
      const dialog = page.getByRole('dialog', { name: 'Tools in this conversation' });
      for (const box of [dialog.getByLabel('everything_echo', { exact: false }).first(), dialog.getByLabel('All tools of box')]) {
        const put = page.waitForResponse((r) => r.request().method() === 'PUT' && r.url().endsWith('/tools'));
        await box.uncheck();
        await put;
      }
      await assertAccessible(page, `the tools, ${size}`);
      await shoot(page, `tools-${size}`);
      await dialog.getByRole('button', { name: 'Close' }).click();
      await page.getByText(/\d+ of \d+ tools/).waitFor();
      bench.model.script.push({ text: 'fine' });
      await say(page, 'hello');
      await page.getByText('fine').waitFor();
      const names = last().tools.map((x) => x.name);
      assert.ok(names.includes('everything_get-sum'));
      assert.ok(!names.includes('everything_echo') && !names.includes('execute_command'), names.join(' '));
      await page.reload();
      await page.getByText(/\d+ of \d+ tools/).waitFor();
      await leave(page);
    });
  }
});
