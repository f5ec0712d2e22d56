// A walk through the page in fifty steps, from the first visit to the settings,
// with a picture of each:
//
//     scripts/node tests/browser/walk.mjs DIR
//
// The server is real, the model is a fake of tests/fakes. A step that does not come
// to its end stops the walk.
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { claude } from '../fakes/claude.mjs';
import { inside } from './apps_kit.mjs';
import { Bench, approve, calls, card, field, ready, rest, say } from './kit.mjs';

const dir = process.argv[2] ?? 'docs/img/walk';
const KEY = 'sk-ant-0123456789';
const SCALE = 0.66;
const BIN = fileURLToPath(new URL('../node_modules/.bin', import.meta.url));
const run = (command) => ({ name: 'execute_command', args: { command } });
const write = (path, content) => ({ name: 'write_file', args: { path, content } });
const SCRIPT = `import tools

for city in ["Oslo", "Rome"]:
    tools.write_file(path=f"{city}.txt", content="12")
print("written")
`;
const REPORT = [
  'The fit is good:', '', '$$y = \\alpha x + \\beta,\\quad R^2 = 0.98$$', '',
  '| city | rain | sun |', '|:--|--:|:-:|', '| Oslo | 12 | 3 |', '| Rome | 2 | 11 |', '',
  '```mermaid', 'flowchart LR', '  A[Read] --> B[Fit] --> C[Write]', '```', '',
  '```diff', '-mean = sum(v)', '+mean = sum(v) / len(v)', '```',
].join('\n');

let page, bench, model, at = 0;

/** Takes the step, then its picture. */
async function step(name, go, { of = page } = {}) {
  await go();
  await of.waitForTimeout(250); // what moves has moved
  at++;
  await of.screenshot({ path: join(dir, `${String(at).padStart(2, '0')}-${name}.png`) });
  console.log(`${at} ${name}`);
}
const button = (name) => page.getByRole('button', { name, exact: true });
const tab = (name) => page.getByRole('tab', { name }).click();
const view = (name) => page.getByRole('link', { name }).first().click();
const says = (...replies) => model.script.push(...replies);
const approved = async () => {
  await card(page).first().locator('button:enabled', { hasText: /^\s*Approve/ }).click();
};

async function setUp() {
  await step('first-visit', () => ready(page));
  await step('demo-asks', async () => {
    await page.locator('[data-example]').first().click();
    await field(page).press('Enter');
    await card(page).waitFor();
  });
  await step('demo-answers', async () => {
    for (const n of [1, 2]) {
      await approve(page).click();
      await calls(page, 'done').nth(n - 1).waitFor();
    }
    await rest(page);
  });
  await step('add-a-model', async () => {
    await page.goto(bench.server.url);
    await button('Add a model').click();
    await page.getByRole('dialog').waitFor();
  });
  const dialog = page.getByRole('dialog');
  await step('wrong-key', async () => {
    await dialog.getByLabel('Base URL').fill(model.url);
    await dialog.getByLabel('API key').fill('sk-ant-mistyped-000000');
    await dialog.getByRole('button', { name: 'Test', exact: true }).click();
    await dialog.locator('[data-cause=key]').waitFor();
  });
  await step('right-key', async () => {
    await dialog.getByLabel('API key').fill(KEY);
    await dialog.getByRole('button', { name: 'Test', exact: true }).click();
    await dialog.locator('[data-works]').waitFor();
  });
  await step('model-saved', async () => {
    await dialog.getByRole('button', { name: 'Test and save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.locator('[data-example]').first().waitFor();
  });
}

async function decide() {
  await step('one-card', async () => {
    says({ calls: [write('plan.md', '# Plan\n\n1. Read\n2. Fit\n')] }, { text: 'The plan is in `plan.md`.' });
    await say(page, 'write a plan');
    await card(page).waitFor();
  });
  await step('approved', async () => {
    await approved();
    await page.getByText('The plan is in').waitFor();
    await rest(page);
    await page.locator('[data-made] li').first().waitFor();
  });
  await step('batch', async () => {
    says({ calls: [run('echo one'), run('echo two'), write('a.csv', 'city,rain\nOslo,12\nRome,2\n')] }, { text: 'All three are done.' });
    await say(page, 'do three things');
    await page.locator('[data-batch]').waitFor();
  });
  await step('batch-approved', async () => {
    await page.locator('[data-batch]').locator('button:enabled', { hasText: 'Approve all 3' }).click();
    await page.getByText('All three are done.').waitFor();
    await rest(page);
  });
  await step('instead', async () => {
    says({ calls: [run('rm -r out')] }, { text: 'Then I leave it.' });
    await say(page, 'tidy up');
    await card(page).waitFor();
    await field(page).fill('keep it, I need it tomorrow');
  });
  await step('rejected', async () => {
    await field(page).press('Enter');
    await page.getByText('Then I leave it.').waitFor();
    await rest(page);
  });
  await step('always-here', async () => {
    says({ calls: [run('date')] }, { text: 'It is today.' });
    await say(page, 'what is the date?');
    await card(page).getByRole('combobox').selectOption({ label: 'Always in this conversation' });
  });
  await step('grants', async () => {
    await approved();
    await page.getByText('It is today.').waitFor();
    await button('Activity').click(); // opens the panel
    await tab('Calls');
    await page.locator('[data-grant]').waitFor();
  });
  await step('modes', async () => {
    await page.locator('[data-own-approvals]').getByRole('button', { name: 'Change…' }).click();
    await page.getByRole('dialog').locator('[data-mode=box] input').check();
  });
  await step('mode-on', async () => {
    says({ calls: [run('seq 1 3')] }, { text: 'It ran by itself.' });
    await button('Use this mode').click();
    await page.locator('[data-mode-mark]').waitFor();
    await say(page, 'count to three');
    await page.getByText('It ran by itself.').waitFor();
    await rest(page);
  });
}

async function files() {
  await step('files', async () => {
    await tab('Files');
    await page.getByText('plan.md').last().waitFor();
  });
  await step('preview', async () => {
    await button('Open a.csv').first().click();
    await page.locator('[data-preview] td').first().waitFor();
  });
  await step('attach', async () => {
    await page.keyboard.press('Escape');
    await page.locator('form input[type=file]').setInputFiles([
      { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('Rain in Oslo, sun in Rome.') }]);
    await page.locator('[data-pending-files] li').first().waitFor();
    await field(page).fill('what do my notes say?');
  });
  await step('attached', async () => {
    says({ text: 'They compare Oslo and Rome.' });
    await field(page).press('Enter');
    await page.getByText('They compare').waitFor();
    await rest(page);
  });
}

async function scripts() {
  await step('script', async () => {
    await page.locator('[data-mode-mark]').click();
    await page.getByRole('dialog').locator('[data-mode=ask] input').check();
    await button('Switch off').click();
    await page.locator('[data-mode-mark]').waitFor({ state: 'detached' });
    says({ calls: [{ name: 'run_script', args: { language: 'python', code: SCRIPT, timeout: 60 } }] }, { text: 'Both files are written.' });
    await say(page, 'write one file for each city');
    await card(page).getByText('Run a script').waitFor();
  });
  await step('script-calls', async () => {
    await approved();
    await card(page).filter({ hasText: 'Oslo.txt' }).waitFor();
  });
  await step('script-done', async () => {
    await approved();
    await card(page).filter({ hasText: 'Rome.txt' }).waitFor();
    await approved();
    await page.getByText('Both files are written.').waitFor();
    await rest(page);
    await page.locator('[data-script-calls]').last().waitFor();
    await calls(page, 'done').last().locator('> button').click();
  });
}

async function apps() {
  await step('app', async () => {
    says({ calls: [{ name: 'budget_get-budget-data', args: {} }] }, { text: 'Here is the budget.' });
    await say(page, 'show me the budget');
    await card(page).waitFor();
    await approved();
    await page.getByText('Here is the budget.').waitFor();
    await inside(page).getByText(/Budget/i).first().waitFor();
    await rest(page);
  });
  await step('model-request', async () => {
    says({ calls: [{ name: 'everything_trigger-sampling-request', args: { prompt: 'Name a colour.', maxTokens: 100 } }] },
      { text: 'Blue.' }, { text: 'It says blue.' });
    await say(page, 'let the server ask the model');
    await card(page).waitFor();
    await approved();
    await page.locator('[data-sample=asked]').getByRole('button', { name: 'Edit' }).click();
    await page.locator('[data-sample-form]').getByLabel('User').fill('Name a warm colour.');
  });
  await step('model-answer', async () => {
    await button('Approve as changed').click();
    await page.locator('[data-sample=review]').waitFor();
  });
  await button('Return the answer').click();
  await page.getByText('It says blue.').waitFor();
  await rest(page);
}

async function keep() {
  await step('preset', async () => {
    await tab('Sandbox');
    await page.getByLabel('Instructions for this conversation').fill('Answer in one line.');
    await button('Save as a preset…').click();
    await page.getByRole('dialog').getByLabel('Name').fill('Brief');
  });
  await step('preset-saved', async () => {
    await button('Save preset').click();
    await page.getByText('Preset “Brief” saved.').waitFor();
  });
  await step('share-link', async () => {
    const row = page.locator('nav li', { hasText: 'write a plan' });
    await row.hover();
    await row.getByRole('button', { name: 'Share “' }).click();
    await button('Make a link').click();
    await page.locator('[data-link-new]').waitFor();
  });
  const url = (await page.locator('[data-link-new]').textContent()).trim();
  await button('Close').click();
  const stranger = await bench.visit(new URL(url).pathname, { deviceScaleFactor: SCALE });
  await step('share-page', () => stranger.getByRole('heading').first().waitFor(), { of: stranger });
  await stranger.context().close();
}

async function answers() {
  await step('maths-table-diagram', async () => {
    says({ text: REPORT });
    await say(page, 'report');
    await page.locator('math').first().waitFor();
    await page.frameLocator('iframe').first().locator('svg').first().waitFor();
    await rest(page);
  });
  await step('regenerated', async () => {
    says({ text: 'The fit is good, in one line.' });
    await button('Regenerate').last().click();
    await page.getByText('in one line').waitFor();
    await page.locator('[data-branch]').last().waitFor();
  });
  await step('edit-a-message', async () => {
    await page.locator('[data-user]').last().hover();
    await button('Edit').last().click();
    await page.getByLabel('Edit the message').fill('report, but shorter');
  });
  await step('branch', async () => {
    says({ text: 'Good fit.' });
    await button('Send').first().click();
    await page.getByText('Good fit.').waitFor();
    await rest(page);
  });
  await step('another-model', async () => {
    await page.getByLabel('Model', { exact: true }).selectOption({ index: 1 });
    await page.waitForTimeout(500);
  });
}

async function servers() {
  await step('servers', () => view('Servers'));
  await step('server', async () => {
    await page.getByRole('link', { name: 'everything' }).click();
    await page.getByRole('button', { name: /^get-sum/ }).waitFor();
  });
  await step('try-a-tool', async () => {
    await page.getByRole('button', { name: /^get-sum/ }).click();
    await page.getByLabel(/^a/).first().fill('2');
    await page.getByLabel(/^b/).first().fill('3');
  });
  await step('router', async () => {
    await view('Router');
    await page.getByLabel('Task').fill('add two numbers');
    await page.locator('[data-hit]').first().waitFor();
  });
  await step('approvals', () => view(/^Approvals/));
  await step('overview', async () => {
    await view('Overview');
    await page.getByRole('img').first().waitFor();
  });
}

async function composer() {
  await step('tools', async () => {
    await page.goBack();
    await page.goto(bench.server.url);
    await page.locator('[data-tool-picker]').click();
  });
  await step('prompts', async () => {
    await page.keyboard.press('Escape');
    await field(page).fill('/args');
    await page.locator('[data-offers]').getByRole('option').first().waitFor();
  });
  await step('prompt', async () => {
    await field(page).press('Enter');
    await page.getByRole('dialog').getByLabel(/^city/).fill('Oslo');
  });
  await step('resources', async () => {
    await button('Insert').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await field(page).fill('what is in @');
    await page.locator('[data-offers]').getByRole('option').first().waitFor();
  });
}

async function end() {
  await step('settings', async () => {
    await view('Settings');
    await page.locator('[data-models]').waitFor();
  });
  await step('dark', async () => {
    await page.getByLabel('Dark').check();
  });
  await step('phone', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goBack();
    await page.goto(bench.server.url);
    says({ calls: [write('note.txt', 'Tea at four')] }, { text: 'Noted.' });
    await say(page, 'note: tea at four');
    await card(page).waitFor();
  });
  await step('offline', async () => {
    await bench.stopServer();
    await page.locator('[data-sheet-lost]').waitFor();
  });
}

await mkdir(dir, { recursive: true });
model = await claude({ key: KEY });
bench = await Bench.open({
  env: () => ({ PATH: [BIN, dirname(process.execPath), process.env.PATH].join(':') }), // no paths of this machine in pictures
  config: () => ({
    llm: { tools: 'all' },
    mcpServers: {
      everything: { command: 'mcp-server-everything', description: 'One of everything' },
      budget: { command: 'mcp-budget-allocator-server', args: ['--stdio'], description: 'A budget with an app' },
    },
  }),
});
try {
  for (const name of ['everything', 'budget']) await fetch(`${bench.server.url}/api/servers/${name}/test`, { method: 'POST' });
  page = await bench.visit('/', { panel: '', reducedMotion: 'reduce', deviceScaleFactor: SCALE });
  for (const part of [setUp, decide, files, scripts, answers, apps, keep, servers, composer, end]) await part();
  if (at !== 50) throw new Error(`${at} steps`);
} finally {
  if (bench.server.alive) await bench.endSessions();
  await bench.browser.close();
  await bench.stopServer();
  await model.close();
}
