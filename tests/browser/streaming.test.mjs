// An answer that is still being written: half a block is shown as what it becomes,
// and thinking is folded while it streams.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { Bench, assertAccessible, lacking, leave, rest, say } from './kit.mjs';

const skip = await lacking();
const SHOTS = process.env.MO_SHOTS;

describe('streaming', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open({ model: await claude({ key: 'sk-ant-0123456789' }) });
  });
  after(() => bench?.close());

  /** The text stops coming at its end, in the middle of a turn. */
  async function stalled(row, view = {}) {
    bench.model.script.push({ piece: 1, at: 0.97, ...row, fault: 'stall' });
    const page = await bench.visit('/', view);
    await page.locator('[data-example]').first().waitFor();
    await say(page, 'write');
    return page;
  }
  async function stop(page) {
    await page.getByRole('button', { name: 'Stop' }).click();
    await rest(page);
    await leave(page);
  }

  for (const [name, text, selector] of [
    ['the first line of a table', 'Here:\n\n| name | number |      ', 'table th'],
    ['half of the line below it', 'Here:\n\n| name | number |\n|:--|--      ', 'table th'],
    ['an open fence', 'Here:\n\n```js\nlet a = 1;\n      ', 'pre code'],
    ['half a fence', 'Here:\n\n``', '.md p:only-child'],
    ['open maths', 'Here:\n\n$$\n\\frac{a}{b}\n     ', '.math-block code.tex'],
    ['a bold word', 'Here **it is bold     ', 'strong'],
  ]) test(`${name} is shown as what it becomes`, async () => {
    const page = await stalled({ text });
    const live = page.locator('[data-live-text]');
    await live.locator(selector.replace('.md ', '')).first().waitFor();
    assert.doesNotMatch(await live.innerText(), /\||``|\*\*|\$\$/);
    await stop(page);
  });

  for (const width of [1440, 390])
    for (const colorScheme of ['light', 'dark'])
      test(`thinking, ${width} px, ${colorScheme}`, async () => {
        const page = await stalled({ thinking: 'First I look.\nThen I compare the two numbers.', text: 'x', at: 0.7 },
          { viewport: { width, height: 900 }, colorScheme });
        const live = page.locator('[data-live-thought]');
        await live.getByText('Then I compare').first().waitFor();
        assert.equal(await live.evaluate((el) => el.open), false);
        assert.equal(await live.getByText('First I look').isVisible(), false);
        await assertAccessible(page, 'thinking');
        if (SHOTS) await page.screenshot({ path: `${SHOTS}/thinking-${width}-${colorScheme}.png` });
        await live.locator('summary').click();
        await live.getByText('First I look').waitFor();
        await page.reload(); // a tab that comes later sees it too
        await page.locator('[data-live-thought]').getByText('Then I compare').first().waitFor();
        await stop(page);
      });
});
