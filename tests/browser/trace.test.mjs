// The trace of a turn on every screen, and the folded panel.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Bench, VIEWS, approve, assertAccessible, calls, card, lacking, leave, ready, rest, say } from './kit.mjs';

const skip = await lacking();

describe('the trace of a turn', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open();
  });
  after(() => bench?.close());

  for (const view of VIEWS)
    test(`${view.viewport.width} px, ${view.colorScheme}`, async () => {
      const page = await bench.visit('/', view);
      await say(page, 'run "sleep 0.3; echo done"');
      await card(page).waitFor();
      await approve(page)[view.hasTouch ? 'tap' : 'click']();
      await calls(page, 'done').waitFor();
      await rest(page);
      await page.locator('[data-trace] summary')[view.hasTouch ? 'tap' : 'click']();
      const kinds = () => page.locator('[data-step]').evaluateAll((all) => all.map((x) => x.dataset.step));
      await page.locator('[data-step=tool]').waitFor();
      assert.deepEqual((await kinds()).filter((k) => k !== 'box'), ['model', 'approval', 'tool', 'model']);
      await assertAccessible(page, 'a trace');
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no horizontal scroll');
      await page.locator('[data-step=tool] button')[view.hasTouch ? 'tap' : 'click']();
      assert.ok(await page.evaluate(() => document.activeElement?.closest('[data-call]') !== null), 'it leads to the call');
      await page.reload();
      await page.locator('[data-trace] summary').click();
      await page.locator('[data-step=approval]').waitFor();
      await leave(page);
    });

  test('the panel is folded until somebody opens it, and then stays', async () => {
    const page = await bench.visit('/', { panel: '' });
    await ready(page);
    const panel = page.getByRole('tab', { name: 'Console' });
    const button = page.getByRole('button', { name: 'Activity' });
    assert.equal(await button.getAttribute('aria-expanded'), 'false');
    assert.equal(await panel.count(), 0);
    await button.click();
    await panel.waitFor();
    await page.reload();
    await panel.waitFor();
    await button.click();
    await panel.waitFor({ state: 'detached' });
    await page.reload();
    await ready(page);
    assert.equal(await panel.count(), 0);
    await leave(page);
  });
});
