// G12: a public server names an address for its sign-in that resolves to our own
// network. A proxy is configured, and the name is among its exceptions.
// Fails on 953b0b1e: with a proxy variable addresses were not checked at all, so
// the host of NO_PROXY was connected at 10.0.0.5. A server reached through a
// private proxy counted as private itself, and could name any address.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';

import { Internet } from '../lib/internet.mjs';
import { bin, run } from '../lib/mcp.mjs';
import { eventually } from '../lib/outside.mjs';

const skip = process.getuid() !== 0 ? 'needs root, for a network of its own' : !existsSync('/usr/sbin/ip') && 'needs /usr/sbin/ip';
const PUBLIC = '11.22.33.44';
const PRIVATE = '10.0.0.5';
const PORT = 7777; // Internet answers there, and tells

// An MCP server that wants a sign-in elsewhere; as a proxy it is that server,
// too. Every address of the network is local to it.
const SERVER = `
require('node:http').createServer((rq, rs) => {
  rs.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="https://internal.test:${PORT}/meta"' }).end();
}).listen(8080, '::', () => console.log('ready'));`;

describe('a name of our own network, in the sign-in of a public server', { skip }, () => {
  let net, server;
  before(async () => {
    net = await Internet.open({ 'mcp.test': [[PUBLIC]], 'mark.test': [[PUBLIC]], 'internal.test': [[PRIVATE]] });
    const [command, ...args] = [...net.enter, process.execPath, '-e', SERVER];
    server = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(server.stdout, 'data');
  });
  after(async () => {
    server?.kill('SIGKILL');
    await net?.close();
  });

  const inside = (program, args, env) => run(net.enter[0], [...net.enter.slice(1), program, ...args], { env });

  const proxy = { https_proxy: `http://${PUBLIC}:3128` };
  for (const [what, env] of [
    ['no proxy', {}],
    ['an exception by name', { ...proxy, NO_PROXY: 'internal.test' }],
    ['an exception by domain', { ...proxy, no_proxy: 'other.example,.test' }],
    ['no host by the proxy', { ...proxy, NO_PROXY: '*' }],
    ['a private proxy for the server', { http_proxy: 'http://10.0.0.9:8080' }],
  ])
    test(what, async () => {
      const { code, err } = await inside(bin, ['mcp', 'test', '--sign-in', '--url', 'http://mcp.test:8080/mcp'], env);
      assert.notEqual(code, 0);
      // Connections are told in order: after this one, all of them were.
      await inside('bash', ['-c', `exec 3<>/dev/tcp/mark.test/${PORT}`]);
      await eventually('the mark', () => net.seen.some((s) => s.tcp === PUBLIC));
      assert.deepEqual((await net.take()).map((s) => s.tcp), [PUBLIC], 'nothing but the mark');
      assert.match(err, /internal\.test.*is at a private address/);
    });
});
