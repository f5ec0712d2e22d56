// Screenshots of every view in both themes, for the documentation.
//
//     scripts/node tests/browser/screenshots.mjs DIR
import { writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { Bench, approve, approveByKey, calls, card, ready, rest, say } from './kit.mjs';

const dir = process.argv[2] ?? 'docs/img';

const SCRIPT = '#!/bin/sh\nset -eu\nrm -rf out &\nmkdir -p out\n' +
  'for f in main.c util.c; do echo \\"compiling $f\\"; sleep 0.2; done\n';

async function approved(page, text, n = 1) {
  await say(page, text);
  for (let i = 0; i < n; i++) {
    await card(page).waitFor();
    const id = await card(page).getAttribute('data-card');
    await approve(page).click();
    await page.locator(`[data-card="${id}"]`).waitFor({ state: 'detached' });
  }
  await rest(page);
}

async function connected(bench) {
  const client = new Client({ name: 'Claude Desktop', version: '1.4' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${bench.server.url}/mcp`)));
  return client;
}

/** A client whose call waits for approval while `look` runs. */
async function withPendingCall(bench, look) {
  const client = await connected(bench);
  for (const name of ['Bea', 'Cy', 'Di']) await client.callTool({ name: 'greet', arguments: { name } });
  const call = client.callTool({ name: 'greet', arguments: { name: 'Ada Lovelace', tone: 'warm', times: 2 } });
  await look();
  await call;
  await client.close();
}

async function story(bench, scheme) {
  const shot = (page, name) => page.screenshot({ path: join(dir, `${name}-${scheme}.png`) });
  const page = await bench.visit('/', { colorScheme: scheme, reducedMotion: 'reduce' });
  await ready(page);
  await page.getByRole('tab', { name: 'Console' }).waitFor();
  await page.waitForLoadState('networkidle');
  await shot(page, 'empty');
  await approved(page, `write '${SCRIPT.replaceAll('\\"', '')}' to build.sh`);
  await approved(page, 'run "sh build.sh"');
  await say(page, 'replace "rm -rf out &" with "rm -rf out" in build.sh');
  await card(page).waitFor();
  await shot(page, 'chat');
  await approve(page).click();
  await calls(page, 'done').nth(2).waitFor();
  await rest(page);
  await page.getByRole('link', { name: 'Servers' }).click();
  await page.getByRole('link', { name: 'greeter' }).click();
  await page.getByRole('button', { name: /^greet/ }).click();
  await page.getByLabel('name', { exact: true }).waitFor();
  await shot(page, 'servers');
  await page.getByRole('link', { name: 'Router' }).click();
  await page.getByLabel('Task').fill('greet somebody');
  await page.locator('[data-hit]').first().waitFor();
  await shot(page, 'router');
  await withPendingCall(bench, async () => {
    await page.getByRole('link', { name: /^Approvals/ }).click();
    await card(page).waitFor();
    await shot(page, 'approvals');
    await approveByKey(page);
  });
  for (const view of ['Overview', 'Settings']) {
    await page.getByRole('link', { name: view }).click();
    if (view === 'Overview') await page.getByRole('img', { name: /^Sandbox CPU: \d/ }).waitFor();
    else await page.waitForTimeout(500);
    await shot(page, view.toLowerCase());
  }
  await page.context().close();
}

async function phone(bench) {
  const page = await bench.visit('/', {
    viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true,
    deviceScaleFactor: 2, reducedMotion: 'reduce',
  });
  await page.locator('[data-example]').first().waitFor();
  await say(page, 'write "Tea at four" to note.txt, then show it');
  await card(page).waitFor();
  await page.screenshot({ path: join(dir, 'phone-light.png') });
  await page.context().close();
}

await mkdir(dir, { recursive: true });
const fake = fileURLToPath(new URL('../fakes/mcp.mjs', import.meta.url));
const bench = await Bench.open({
  config: (where) => {
    writeFileSync(join(where, 'greeter'), `#!/bin/sh\nexec ${process.execPath} ${fake}\n`, { mode: 0o755 });
    return {
      mcpServers: {
        greeter: { command: './greeter', description: 'Greets people' },
        night: { command: './greeter', description: 'Greets people at night', enabled: false },
      },
      approvals: { rules: [{ tool: 'greet', args: { name: 'Ada*' }, action: 'ask', reason: 'she is busy' }] },
    };
  },
});
try {
  const client = await connected(bench);
  await client.listTools(); // the gateway reads what there is
  await client.close();
  for (const scheme of ['light', 'dark']) await story(bench, scheme);
  await phone(bench);
} finally {
  await bench.close();
}
