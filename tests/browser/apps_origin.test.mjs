// Apps of servers (MCP Apps) in frames of another origin than the page's (apps.origin).
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { close, inside, open, path, shoot } from './apps_kit.mjs';
import { Bench, lacking } from './kit.mjs';

const skip = await lacking();

describe('apps at an origin of their own', { skip }, () => {
  let bench;
  before(async () => {
    const config = (origin) => ({
      llm: { tools: 'all' }, approvals: { rules: [{ server: '*', action: 'allow' }] },
      mcpServers: { time: { command: process.execPath, args: [path('../node_modules/@modelcontextprotocol/server-basic-vanillajs/dist/index.js'), '--stdio'] } }, ...(origin && { apps: { origin } }),
    });
    bench = await Bench.open({ model: await claude({ key: 'sk-ant-0123456789' }), config: () => config() });
    // The page is at localhost; the other name has the same port.
    await bench.stopServer();
    await writeFile(join(bench.dir, 'mcp-orchestrator.json'), JSON.stringify(config(`http://127.0.0.1:${bench.server.port}`)));
    await bench.startServer();
    assert.equal((await fetch(`${bench.server.url}/api/servers/time/test`, { method: 'POST' })).status, 200);
  });
  after(() => bench?.close());

  test('the app is rendered there, has no origin, and calls its tool', async () => {
    const page = await open(bench, {}, [{ name: 'time_get-time', args: {} }]);
    await inside(page).getByText(/Server Time/i).first().waitFor();
    const outer = await page.locator('[data-app] iframe').getAttribute('src');
    assert.equal(new URL(outer).origin, `http://127.0.0.1:${bench.server.port}`);
    assert.equal(await inside(page).locator('html').evaluate(() => self.origin), 'null');
    await inside(page).getByRole('button', { name: /Get.*Time/i }).click();
    await page.locator('[data-app-last]').getByText('called get-time').waitFor();
    await shoot(page, 'app-origin');
    await close(page);
  });
});
