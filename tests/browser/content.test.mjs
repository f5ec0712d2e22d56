// Answers with tables, maths, diffs, footnotes and diagrams.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { Bench, VIEWS, assertAccessible, lacking, leave, rest, say } from './kit.mjs';

const skip = await lacking();
const SHOTS = process.env.MO_SHOTS; // a directory for pictures of what is tested

const ANSWER = [
  '# Quadratic equations', 'The roots of $ax^2 + bx + c = 0$ are[^1]',
  '$$\nx = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}\\,.\n$$',
  'and for $a\\,b$ it costs $5, not $10. Wrong: $\\frac{a$ stays.',
  '| left | middle | right |\n|:--|:-:|--:|\n| a | **b** | 1 |\n| =1+1 | d, e | 23 |',
  '- [x] done\n- [ ] open',
  '```diff\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old line\n+new line\n```',
  '[^1]: See *any* book.',
].join('\n\n');
const FLOW = '```mermaid\nflowchart LR\n  A[Start] --> B{Ready?}\n  B -->|yes| C[Run]\n  B -->|no| A\n  click C "https://evil.example/" _blank\n```';
const hostile = (url) => '```mermaid\nflowchart LR\n' + `  A["<img src=${url} onerror=parent.pwned=1>"] --> B["<script>parent.pwned=2</script>"]\n` + '```';

async function shoot(page, name) {
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/${name}.png` });
}

describe('content of answers', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open({ model: await claude({ key: 'sk-ant-0123456789' }) });
  });
  after(() => bench?.close());

  async function answered(text, options) {
    bench.model.script.push({ text });
    const page = await bench.visit('/', options);
    await page.locator('[data-example]').first().waitFor();
    await say(page, 'go on');
    await rest(page);
    return page;
  }
  const diagram = (page, state) => page.locator(`[data-diagram][data-state=${state}]`);

  for (const view of VIEWS) {
    const name = `${view.viewport.width} px, ${view.colorScheme}`;
    test(`tables, maths, diffs and footnotes, ${name}`, async () => {
      const page = await answered(ANSWER, view);
      await page.locator('.md math mfrac').first().waitFor();
      assert.equal(await page.locator('.md math').count(), 3);
      assert.equal(await page.locator('.md code.tex').innerText(), '\\frac{a');
      await page.getByText('it costs $5, not $10.').waitFor();
      const aligned = await page.locator('.md td').evaluateAll((all) => all.slice(0, 3).map((c) => getComputedStyle(c).textAlign));
      assert.deepEqual(aligned, ['left', 'center', 'right']);
      assert.equal(await page.locator('.md .hl-add').innerText(), '+new line');
      assert.equal(await page.locator('.md .hl-del').innerText(), '-old line');
      assert.equal(await page.locator('.md ol.notes li').innerText(), 'See any book.');
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, 'wider than the screen');
      await assertAccessible(page, name);
      await shoot(page, `content-${view.viewport.width}-${view.colorScheme}`);
      await leave(page);
    });

    test(`a diagram, ${name}`, async () => {
      const page = await answered(`Here it is:\n\n${FLOW}`, view);
      await diagram(page, 'drawn').waitFor();
      let frame;
      await until(async () => { // that of the answer, no more that of the text as it came
        frame = page.frames().findLast((f) => f.url().endsWith('/diagram.html'));
        const all = await frame?.locator('.nodeLabel, text').allInnerTexts().catch(() => []) ?? [];
        return ['Start', 'Ready?', 'Run'].every((x) => all.join(' ').includes(x));
      }, 'its words');
      assert.equal(await frame.evaluate(() => origin), 'null');
      assert.equal(await frame.locator('a[href]').count(), 0);
      const box = await page.locator('[data-diagram] iframe').boundingBox();
      assert.ok(box.height > 40, `the diagram is ${box.height} px high`);
      await assertAccessible(page, `a diagram, ${name}`);
      await shoot(page, `diagram-${view.viewport.width}-${view.colorScheme}`);
      await page.getByRole('button', { name: 'Show source' }).click();
      await page.getByText('flowchart LR').waitFor();
      await page.getByRole('button', { name: 'Show diagram' }).click();
      await page.locator('[data-diagram] iframe').waitFor();
      await leave(page);
    });
  }

  test('a table is copied as CSV', async () => {
    const page = await answered(ANSWER, { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.getByRole('button', { name: 'Copy as CSV' }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText().then((x) => x.replaceAll('\r', ''))),
      'left,middle,right\na,b,1\n\'=1+1,"d, e",23\n');
    await leave(page);
  });

  test('diagrams that fail or are not supported show their source', async () => {
    const page = await answered('```mermaid\nflowchart LR\n  A --> --> nonsense [\n```\n\n```mermaid\nmindmap\n  root\n    leaf\n```');
    await until(async () => (await diagram(page, 'failed').count()) === 2, 'two failed diagrams');
    await page.getByText('A --> --> nonsense [').first().waitFor();
    await page.getByText('not supported').waitFor();
    await assertAccessible(page, 'failed diagrams');
    await leave(page);
  });

  test('a hostile diagram runs nothing and reaches nobody', async () => {
    let hits = 0;
    const spy = createServer((_rq, rs) => {
      hits++;
      rs.end();
    }).listen(0, '127.0.0.1');
    await once(spy, 'listening');
    const page = await answered(hostile(`http://127.0.0.1:${spy.address().port}/x.png`));
    await diagram(page, 'drawn').or(diagram(page, 'failed')).waitFor();
    // The browser names what the policy of the frame has refused.
    await leave(page, /^csp:|\/x\.png/);
    assert.equal(hits, 0);
    spy.close();
  });

  test('the document of diagrams is a sandbox without a network, of the page alone', async () => {
    const answer = await fetch(`${bench.server.url}/diagram.html`);
    const csp = answer.headers.get('content-security-policy');
    for (const part of ['sandbox allow-scripts', "default-src 'none'", "frame-ancestors 'self'", "form-action 'none'"])
      assert.ok(csp.includes(part), part);
    assert.doesNotMatch(csp, /allow-same-origin|connect-src|'self'.*script/);
    assert.match(await answer.text(), /script-src 'sha256-[\w+/=]+'/);
    const other = await fetch(`${bench.server.url}/`);
    assert.match(other.headers.get('content-security-policy'), /frame-ancestors 'none'/);
  });
});
