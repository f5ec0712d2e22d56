// Servers in boxes behind the gateway: the toolbox and any program, in native
// boxes, which end with their server and with us.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, describe, test } from 'node:test';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { bin } from '../lib/gateway.mjs';
import { client1, text } from '../lib/mcp_talk.mjs';
import { Home, eventually, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : false;
const boxed = (more = {}) => ({ command: 'mo-toolbox', sandbox: 'native', memoryMb: 64, ...more });

/** The gateway with a client: {client, call, pid}. */
async function open(home) {
  const it = client1();
  const transport = new StdioClientTransport({
    command: bin,
    args: ['gateway', '--config', home.config],
    env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' },
  });
  await it.client.connect(transport);
  return { ...it, pid: transport.pid };
}

const names = async (client) => (await client.listTools()).tools.map((t) => t.name);

describe('boxed servers', { skip }, () => {
  const homes = [];
  const place = (mcpServers, more = {}) => {
    const home = new Home({ mcpServers, ...more });
    homes.push(home);
    return home;
  };
  after(() => homes.forEach((h) => h.removeAll()));

  test('the toolbox, a server of the host, and one that ends', async () => {
    const home = place({
      tools: boxed({ env: { FROM_CONFIG: 'yes' } }),
      ends: { command: 'sh', args: ['-c', 'echo bye >&2; exit 3'], sandbox: 'native' },
    });
    const { client, call } = await open(home);
    await eventually('the tools', async () => (await names(client)).length > 3);
    const list = await client.listTools();
    assert.match(list._meta['mcp-orchestrator/unavailable'].ends, /ended|exited/);
    const said = text(await call({
      name: 'execute_command',
      arguments: { command: 'pwd; echo $FROM_CONFIG; id -u' },
    }));
    assert.match(said, /\/workspace/);
    assert.match(said, /yes/);
    await client.close();
    await eventually('nothing remains', () => home.remains().length === 0);
  });

  test('`call` starts it in its box too', async () => {
    const home = place({ tools: boxed() });
    const out = await new Promise((resolve) => execFile(bin,
      ['call', 'tools', 'execute_command', '{"command":"pwd; id -u; ls /home /root 2>&1 | head -3"}', '--config', home.config],
      { env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' } }, (e, o, err) => resolve(`${o}${err}`)));
    assert.match(out, /^\/workspace$/m);
    assert.match(out, /^2\d{4}$/m);
    await eventually('nothing remains', () => home.remains().length === 0);
  });

  test('kill -9 leaves no box', async () => {
    const servers = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`s${i}`, boxed()]));
    const home = place(servers, { gateway: { prefix: 'always' } });
    const { client, pid } = await open(home);
    await eventually('all tools', async () => (await names(client)).length >= 8 * 4);
    assert.equal(home.sockets().length, 8);
    process.kill(pid, 'SIGKILL');
    await eventually('nothing remains', () => home.remains().length === 0);
    await client.close();
  });
});
