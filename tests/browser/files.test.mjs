// Files of a conversation on the page: the tab, previews, attachments.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Bench, approve, assertAccessible, calls, card, field, lacking, leave, ready, rest, say } from './kit.mjs';
import { until } from '../it/server.mjs';

const skip = await lacking();
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const file = (name, content, mimeType = 'text/plain') => ({ name, mimeType, buffer: Buffer.from(content) });
const row = (page, path) => page.locator(`[data-file="${path}"]`);

describe('files', { skip }, () => {
  let bench;
  before(async () => {
    bench = await Bench.open();
  });
  after(() => bench?.close());

  const filesOf = (page) => `${bench.server.url}/api/sessions/${page.url().split('/').pop()}/files`;

  test('the tab: upload, preview, download, delete', async () => {
    const page = await bench.visit();
    await ready(page);
    await page.getByRole('tab', { name: 'Files' }).click();
    await page.getByText('The workspace is empty').waitFor();
    await page.locator('#pane input[type=file]').setInputFiles([
      file('code.py', 'def answer():\n    return 42\n'), file('t.csv', 'name,age\n"Ann, B",7\n'),
      file('p.html', '<style>p{color:red}</style><p>hello</p><script>parent.window.pwned = 1; window.top.pwned = 1</script>'),
      { name: 'dot.png', mimeType: 'image/png', buffer: PNG }, file('blob.bin', Buffer.from([0, 1, 2, 255])),
    ]);
    await row(page, 'blob.bin').waitFor();
    assert.equal(await row(page, 'code.py').locator('a').getAttribute('download'), 'code.py');

    await row(page, 'code.py').getByRole('button', { name: 'Open code.py' }).click();
    await page.locator('[data-preview] .hl-word', { hasText: 'return' }).waitFor();
    await page.keyboard.press('Escape');
    await row(page, 't.csv').getByRole('button', { name: 'Open t.csv' }).click();
    await page.locator('[data-preview] td', { hasText: 'Ann, B' }).waitFor();
    await page.keyboard.press('Escape');
    await row(page, 'dot.png').getByRole('button', { name: 'Open dot.png' }).click();
    await page.waitForFunction(() => document.querySelector('[data-preview] img')?.naturalWidth === 1);
    await page.keyboard.press('Escape');
    await row(page, 'blob.bin').getByRole('button', { name: 'Open blob.bin' }).click();
    await page.locator('[data-preview]').getByText('There is no preview').waitFor();
    await page.keyboard.press('Escape');
    await row(page, 'p.html').getByRole('button', { name: 'Open p.html' }).click();
    const frame = page.frameLocator('[data-preview] iframe');
    await frame.getByText('hello').waitFor();
    assert.equal(await page.locator('[data-preview] iframe').getAttribute('sandbox'), '');
    await page.keyboard.press('Escape');
    await assertAccessible(page, 'the tab Files');

    await row(page, 't.csv').getByRole('button', { name: 'Delete t.csv' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await row(page, 't.csv').waitFor({ state: 'detached' });
    const left = (await (await fetch(filesOf(page))).json()).entries.map((e) => e.name);
    assert.deepEqual(left, ['blob.bin', 'code.py', 'dot.png', 'p.html']);
    page.sins = page.sins.filter((s) => !/sandboxed|script-src/.test(s)); // the script of p.html was refused
    await leave(page);
  });

  test('files that a turn made are below its answer', async () => {
    const page = await bench.visit();
    await ready(page);
    await say(page, 'run "mkdir -p out node_modules; echo a,b > out/made.csv; echo x > node_modules/no.js"');
    await card(page).waitFor();
    await approve(page).click();
    await calls(page, 'done').waitFor();
    await rest(page);
    const made = page.locator('[data-made] li');
    await made.getByText('made.csv').waitFor();
    assert.equal(await made.count(), 1);
    await made.getByRole('button', { name: 'Open made.csv' }).click();
    await page.locator('[data-preview] th', { hasText: 'b' }).waitFor();
    await page.keyboard.press('Escape');
    await page.reload();
    await made.getByText('made.csv').waitFor();
    await leave(page);
  });

  test('attach by button, paste and drop; a reload shows them', async () => {
    const page = await bench.visit();
    await ready(page);
    await page.locator('form input[type=file]').setInputFiles([file('one.txt', 'first'), file('gone.txt', 'x')]);
    const pending = page.locator('[data-pending-files] li');
    await page.getByRole('button', { name: 'Remove gone.txt' }).click();
    const give = (how) => page.evaluate(([kind, bytes]) => {
      const d = new DataTransfer();
      d.items.add(new File([new Uint8Array(bytes)], `${kind}.png`, { type: 'image/png' }));
      const target = kind === 'paste' ? document.querySelector('textarea') : document.body;
      const e = kind === 'paste'
        ? new ClipboardEvent('paste', { clipboardData: d, bubbles: true, cancelable: true })
        : new DragEvent('drop', { dataTransfer: d, bubbles: true, cancelable: true });
      target.dispatchEvent(e);
      return e.defaultPrevented;
    }, [how, [...PNG]]);
    assert.equal(await give('paste'), true);
    assert.equal(await give('drop'), true, 'the browser does not leave the page');
    await pending.nth(2).waitFor();
    await field(page).fill('what is this?');
    await page.getByRole('button', { name: 'Send' }).click();
    await rest(page);
    const chips = page.locator('[role=log] [data-files] li');
    const check = async () => {
      await chips.nth(2).waitFor();
      assert.deepEqual((await chips.locator('.truncate').allTextContents()).sort(), ['drop.png', 'one.txt', 'paste.png']);
      assert.equal(await page.locator('[data-user]').textContent(), 'what is this?');
      await page.waitForFunction(() => [...document.querySelectorAll('[role=log] [data-files] img')].every((i) => i.naturalWidth === 1));
    };
    await check();
    const names = async () => (await (await fetch(`${filesOf(page)}?path=uploads`)).json()).entries.map((e) => e.name).join();
    await until(async () => (await names()) === 'drop.png,one.txt,paste.png', 'the removed file is gone');
    await page.reload();
    await check();
    await leave(page);
  });
});
