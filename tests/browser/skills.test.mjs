// Skills of servers on the page: which there are, which were read, and one that
// is held back because it changed.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { Bench, VIEWS, assertAccessible, calls, lacking, leave, rest, say } from './kit.mjs';

const skip = await lacking();
const SHOTS = process.env.MO_SHOTS;
const script = fileURLToPath(new URL('../it/skills_server.mjs', import.meta.url));
const EVIL = '<img src=x onerror="window.pwned=1"><b>bold</b>';

describe('skills', { skip }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'mo-skills-'));
  let bench, turn = 0;
  const write = (name, say, body = 'Do it.') => {
    mkdirSync(join(dir, name, 'references'), { recursive: true });
    writeFileSync(join(dir, name, 'SKILL.md'), `---\nname: ${name}\ndescription: ${say}\n---\n\n${body}\n`);
    writeFileSync(join(dir, name, 'references', 'rules.md'), 'Rules');
  };
  before(async () => {
    write('refunds', 'Refund a customer by the rules', EVIL);
    write('releases', 'Make a release');
    bench = await Bench.withServers(await claude({ key: 'sk-ant-0123456789' }),
      { desk: { command: process.execPath, args: [script, dir] } });
  });
  after(async () => {
    await bench?.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const shoot = async (page, name) => SHOTS && page.screenshot({ path: `${SHOTS}/${name}.png` });

  /** The model calls that, and the turn ends. */
  async function turnWith(page, name, args) {
    const text = `done ${++turn}`;
    bench.model.script.push({ calls: [{ name, args }] }, { text });
    await say(page, 'go');
    await page.getByText(text, { exact: true }).waitFor();
    await rest(page);
  }
  async function openPane(page) {
    const tab = page.getByRole('tab', { name: 'Sandbox' });
    if (!await tab.isVisible()) await page.getByRole('button', { name: 'Activity' }).click();
    await tab.click();
    return page.locator('[data-skills]');
  }

  for (const view of VIEWS) {
    const size = `${view.viewport.width}-${view.colorScheme}`;
    test(`a skill is listed and read, ${size}`, async () => {
      const page = await bench.visit('/', view);
      await page.locator('[data-example]').first().waitFor();
      await turnWith(page, 'read_skill', { skill: 'refunds' });
      const line = calls(page, 'done').first();
      assert.equal((await line.locator('[data-skill-read]').textContent()).trim(), 'Skill refunds');
      await line.getByRole('button').first().click();
      await line.locator('[data-result]').first().waitFor();
      assert.ok((await line.textContent()).includes(EVIL), 'the text of a skill is text');
      assert.equal(await line.locator('img').count(), 0);
      await shoot(page, `skill-read-${size}`);
      await turnWith(page, 'read_skill', { skill: 'refunds', path: 'references/rules.md' });
      await page.getByText('Skill refunds: references/rules.md').first().waitFor();
      const list = await openPane(page);
      await list.locator('[data-skill=refunds]').getByText('read', { exact: false }).first().waitFor();
      assert.match(await list.locator('[data-skill=refunds] summary').textContent(), /refunds\s+desk\s*· read/);
      assert.doesNotMatch(await list.locator('[data-skill=releases] summary').textContent(), /· read/);
      await list.locator('[data-skill=refunds] summary').click();
      await list.getByText('2 files, verified when they are read').first().waitFor();
      await assertAccessible(page, `skills, ${size}`);
      await shoot(page, `skills-${size}`);
      await leave(page);
    });
  }

  for (const view of VIEWS) {
    const size = `${view.viewport.width}-${view.colorScheme}`;
    test(`a changed skill is accepted, ${size}`, async () => {
      const page = await bench.visit('/', view);
      await page.locator('[data-example]').first().waitFor();
      write('releases', `Make a release, ${size}`);
      await turnWith(page, 'desk_reload', {});
      await until(async () => { // its list is read again meanwhile
        await turnWith(page, 'read_skill', { skill: 'releases' });
        return /changed this skill/.test(await page.locator('[role=log] [data-call]').last().innerText());
      }, 'the change is known');
      await calls(page, 'failed').last().getByText(/changed this skill/).first().waitFor();
      const list = await openPane(page);
      const change = list.locator('[data-skill=releases] [data-change]');
      await change.getByText(`Make a release, ${size}`, { exact: false }).first().waitFor();
      await assertAccessible(page, `a changed skill, ${size}`);
      await change.scrollIntoViewIfNeeded();
      await shoot(page, `skill-changed-${size}`);
      await change.getByRole('button', { name: 'Accept changed skill' }).click();
      await change.waitFor({ state: 'hidden' });
      await leave(page);
    });
  }
});
