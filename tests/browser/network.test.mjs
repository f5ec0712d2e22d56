// Connections of a sandbox on the page: the card in the conversation and on the
// approvals page, also after a reload, and the hosts that were talked to.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { Hosts } from '../lib/egress.mjs';
import { noNative } from '../lib/sessions.mjs';
import { Bench, assertAccessible, lacking, leave, ready, say } from './kit.mjs';

const skip = (await lacking()) || (noNative ? `needs ${noNative}` : !existsSync('/usr/bin/curl') && 'needs /usr/bin/curl');

describe('connections on the page', { skip }, () => {
  const sites = new Hosts();
  let bench, port;
  before(async () => {
    port = await sites.http((q, r) => r.end('from the host'));
    bench = await Bench.open({
      model: await claude({ key: 'sk-ant-0123456789' }),
      hosts: { 'a.ask': '127.0.0.1', 'b.ask': '127.0.0.1' },
      config: () => ({
        sandbox: { driver: 'native', warm: 0, network: { allow: [`127.0.0.1:${port}`], ask: true } },
        approvals: { rules: [{ server: 'box', action: 'allow' }] },
      }),
    });
  });
  after(async () => {
    sites.close();
    await bench?.close();
  });

  const curl = (host) => ({ name: 'execute_command',
    args: { command: `curl -sS http://${host}:${port}/some/path; echo " exit $?"` } });
  const card = (page) => page.locator('[data-connection]');

  test('allowed after a reload, and listed', async () => {
    bench.model.script.push({ text: 'I look.', calls: [curl('a.ask')] }, { text: 'I have seen it.' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'look there');
    await card(page).getByText('a.ask', { exact: true }).waitFor();
    await page.reload();
    await card(page).getByText('GET /some/path').waitFor();
    await card(page).getByText('Program, as the sandbox says: /usr/bin/curl').waitFor();
    await assertAccessible(page);
    await card(page).getByRole('button', { name: 'Allow' }).click();
    await page.getByText('I have seen it.').waitFor();
    assert.match(bench.model.requests.at(-1).bytes.toString(), /from the host exit 0/);
    assert.equal(await card(page).count(), 0);
    await page.getByRole('tab', { name: 'Network' }).click();
    const line = page.locator('[data-hosts] li');
    await line.getByText(`a.ask:${port}`).waitFor();
    await line.getByText('1 connection').waitFor();
    await line.getByText('ask: once').waitFor();
    await assertAccessible(page);
    await leave(page);
  });

  test('denied on the approvals page, for always', async () => {
    bench.model.script.push({ text: 'I look.', calls: [curl('b.ask')] }, { text: 'It was refused.' });
    const page = await bench.visit();
    await ready(page);
    await say(page, 'look there');
    await card(page).waitFor();
    const other = await bench.visit('/approvals');
    await card(other).getByText('b.ask', { exact: true }).waitFor();
    await card(other).getByText('/usr/bin/curl', { exact: true }).waitFor();
    await assertAccessible(other);
    await card(other).getByLabel('Remember for').selectOption('always');
    await card(other).getByRole('button', { name: 'Deny' }).click();
    await card(other).waitFor({ state: 'detached' });
    await page.getByText('It was refused.').waitFor();
    await card(page).waitFor({ state: 'detached' });
    const { rules } = await (await fetch(`${bench.server.url}/api/rules`)).json();
    assert.deepEqual(rules.map((r) => [r.tool, r.action, r.args.host]), [['network:connect', 'deny', '= b.ask']]);
    await leave(other);
    await leave(page);
  });
});
