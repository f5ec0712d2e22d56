// The page in German and Chinese: by the browser's language, by choice, and with
// nothing of English left in it that is the page's own.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { until } from '../it/server.mjs';
import { Bench, assertAccessible, lacking, leave } from './kit.mjs';

const skip = await lacking();
const views = ['/', '/servers', '/views', '/router', '/approvals', '/overview', '/settings'];

/** Words of the page, without code, names and fields. */
const words = (page) => page.evaluate(() => {
  const left = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const at = n.parentElement;
    if (at.closest('code, pre, kbd, option, script, style, .mono, [data-example], .pill') || !at.checkVisibility()) continue;
    left.push(...(n.data.match(/[A-Za-z]{3,}/g) ?? []));
  }
  return [...new Set(left)];
});

// Names and words of MCP. Examples are for the demo model, which knows English only;
// the marks at the top name the model and the sandbox.
const NAMES = new Set(('MCP Orchestrator Claude Gemini OpenAI Ollama Anthropic Google Token API URL JSON HTTP SSE stdio ' +
  'Docker Studio llama cpp Desktop demo CPU mcp NAME gateway view Esc Enter Shift Ctrl Tab Markdown Webhook SQLite Redis').split(' '));

describe('languages', { skip }, () => {
  let bench;
  before(async () => { bench = await Bench.open(); });
  after(() => bench?.close());

  for (const [locale, lang, send, placeholder] of [
    ['de-AT', 'de', 'Senden', /Nachricht/], ['zh-CN', 'zh', '发送', /消息/]]) {
    test(`${locale}: the page speaks it`, async () => {
      const page = await bench.visit('/', { locale });
      await page.getByRole('button', { name: send, exact: true }).waitFor();
      assert.match(await page.locator('html').getAttribute('lang'), new RegExp(`^${lang}\\b`));
      assert.match(await page.locator('textarea').first().getAttribute('placeholder'), placeholder);
      await assertAccessible(page);
      await leave(page);
    });
  }

  test('another language is English; so are traditional characters', async () => {
    for (const locale of ['fr-FR', 'zh-TW']) {
      const page = await bench.visit('/', { locale });
      await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
      assert.equal(await page.locator('html').getAttribute('lang'), 'en');
      await leave(page);
    }
  });

  test('the choice in the settings stays', async () => {
    const page = await bench.visit('/settings');
    await page.getByLabel('Language').selectOption({ label: 'Deutsch' });
    await page.getByRole('heading', { name: 'Einstellungen' }).first().waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Einstellungen' }).first().waitFor();
    await page.getByLabel('Sprache').selectOption('');
    await page.getByRole('heading', { name: 'Settings' }).first().waitFor();
    await leave(page);
  });

  test('no view has English words of its own', async () => {
    const english = [];
    const page = await bench.visit('/', { locale: 'zh-CN' });
    for (const view of views) {
      await page.goto(new URL(view, page.url()).href);
      await page.locator('main, [role=main]').first().waitFor();
      await until(async () => (await page.locator('body').innerText()).length > 60, `the view ${view}`);
      english.push(...(await words(page)).filter((w) => !NAMES.has(w)).map((w) => `${view} ${w}`));
    }
    assert.deepEqual(english, []);
    await leave(page);
  });
});
