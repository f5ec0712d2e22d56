// Servers in boxes behind the gateway: the toolbox and any program, in native
// boxes, which end with their server and with us.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after, describe, test } from 'node:test';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { below, bin, isAlive } from '../lib/gateway.mjs';
import { evil } from '../lib/mcp.mjs';
import { client1, text } from '../lib/mcp_talk.mjs';
import { Home, eventually, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : false;
const boxed = (more = {}) => ({ command: 'mo-toolbox', sandbox: 'native', memoryMb: 64, ...more });
const stubborn = { command: evil, args: ['stubborn'] };
const many = (name, server) =>
  Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`${name}${i}`, server]));

// A client that is left open would keep this process from its end.
const clients = [];
after(() => Promise.all(clients.map((c) => c.close().catch(() => {}))));

/** The gateway with a client: {client, call, pid}. */
async function open(home) {
  const it = client1();
  const transport = new StdioClientTransport({
    command: bin,
    args: ['gateway', '--config', home.config],
    env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' },
  });
  await it.client.connect(transport);
  clients.push(it.client);
  return { ...it, pid: transport.pid };
}

const names = async (client) => (await client.listTools()).tools.map((t) => t.name);
const ofEight = (all) => [0, 1, 2, 3, 4, 5, 6, 7].every((i) => all.includes(`box${i}_execute_command`) && all.includes(`stub${i}_t`));

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

  test('network none: nothing leaves, nothing of ours is reached', async (t) => {
    const heard = [];
    const server = createServer((s) => heard.push(s.end('here\n'))).listen(0, '0.0.0.0');
    await once(server, 'listening');
    t.after(() => server.close());
    const { port } = server.address();
    const home = place({ tools: boxed({ network: 'none' }), open: stubborn });
    const { client, call } = await open(home);
    await eventually('the tools', async () => (await names(client)).length > 3);
    const said = text(await call({
      name: 'execute_command',
      arguments: {
        command: `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port} && head -1 <&3'; echo tcp $?;`
          + ` bash -c 'echo x > /dev/udp/127.0.0.1/${port}'; echo udp $?;`
          + ' ls /sys/class/net 2>&1; getent hosts localhost.example. ; echo done',
      },
    }));
    assert.match(said, /tcp [1-9]/);
    assert.match(said, /udp [1-9]/);
    assert.match(said, /done/);
    assert.doesNotMatch(said, /^here$|eth0/m);
    assert.equal(heard.length, 0);
    await client.close();
    await eventually('nothing remains', () => home.remains().length === 0);
  });

  test('a network that cannot be held is refused', async () => {
    const check = (server) => {
      const home = place({ it: server });
      return new Promise((resolve) => execFile(bin, ['config', 'check', '--config', home.config],
        { env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' } },
        (e, o, err) => resolve({ code: e?.code ?? 0, said: `${o}${err}` })));
    };
    assert.equal((await check(boxed({ network: 'none' }))).code, 0);
    for (const network of ['host', ['api.example.com:443']]) {
      const { code, said } = await check(boxed({ network }));
      assert.notEqual(code, 0);
      assert.match(said, /mcpServers\.it\.network.*must be "none" or an object/);
    }
    for (const [entry, why] of [['10.0.0.0/8', /not an URL or a network/], ['a..b', /is not the name of a host/],
      ['localhost:80', /127\.0\.0\.1:PORT/], ['api.example.com:53', /name server/]]) {
      const { code, said } = await check(boxed({ network: { allow: ['api.example.com', entry] } }));
      assert.notEqual(code, 0);
      assert.match(said, why);
    }
    const { code, said } = await check({ command: 'true', network: 'none' });
    assert.notEqual(code, 0);
    assert.match(said, /network' is only for servers in a box/);
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

  test('a script runs in its box, and leaves no process and no file', async () => {
    const home = place({ tools: boxed() });
    const { client, call } = await open(home);
    for (const [language, code] of [
      ['python', 'import os, socket, subprocess\nsocket.socketpair()\nsubprocess.Popen(["sleep", "600"], start_new_session=True)\nprint(os.getcwd())'],
      ['javascript', 'console.log(process.cwd())'],
    ]) {
      const r = await call({ name: 'run_script', arguments: { language, code, memory_mb: 4096 } });
      assert.equal(r.isError, false, r.content[0].text);
      assert.equal(r.structuredContent.stdout, '/workspace\n');
    }
    const left = await call({ name: 'execute_command', arguments: { command: 'ls /tmp; cat /proc/[0-9]*/comm' } });
    assert.doesNotMatch(left.structuredContent.stdout, /mo-script|sleep/);
    await client.close();
    await eventually('nothing remains', () => home.remains().length === 0);
  });

  test('kill -9 leaves nobody, neither boxes nor the stubborn', async (t) => {
    const home = place(
      { ...many('box', boxed()), ...many('stub', stubborn) }, { gateway: { prefix: 'always' } });
    const { client, call, pid } = await open(home);
    await eventually('all tools', async () => ofEight(await names(client)), 60_000);
    assert.equal(home.sockets().length, 8);
    for (let i = 0; i < 8; i++) await call({ name: `stub${i}_t`, arguments: {} });
    const children = below(pid);
    assert.equal(children.length, 8); // those in boxes are the keepers'
    const since = performance.now();
    process.kill(pid, 'SIGKILL');
    await eventually('nothing remains',
      () => home.remains().length === 0 && !children.some(isAlive));
    t.diagnostic(`all gone after ${Math.round(performance.now() - since)} ms`);
    await client.close();
  });
});

const noEngine = noDocker ? `needs ${noDocker}` : false;

test('kill -9 leaves nothing running in containers', { skip: noEngine }, async (t) => {
  const engine = await dockerd();
  t.after(() => engine.cleanUp());
  const home = new Home({
    driver: 'docker', engine: engine.host, gateway: { prefix: 'always' },
    mcpServers: { ...many('box', { ...boxed(), sandbox: 'docker' }), ...many('stub', stubborn) },
  });
  t.after(() => home.removeAll());
  const { client, call, pid } = await open(home);
  const containers = async (all = 0) =>
    (await engine.api('GET', `/containers/json?all=${all}`)).json;
  await eventually('all tools', async () => ofEight(await names(client)), 60_000);
  for (let i = 0; i < 8; i++) await call({ name: `stub${i}_t`, arguments: {} });
  assert.equal((await containers()).length, 8);
  const children = below(pid);
  const since = performance.now();
  process.kill(pid, 'SIGKILL');
  await eventually('nothing remains',
    async () => (await containers()).length === 0 && !children.some(isAlive));
  t.diagnostic(`all gone after ${Math.round(performance.now() - since)} ms`);
  await client.close();
  // The containers, empty, are taken away by whoever opens the sandbox next.
  assert.equal((await containers(1)).length, 8);
  const next = await open(home);
  await eventually('a box again', async () => (await next.client.listTools()).tools.length > 0);
  await next.call({ name: 'box0_execute_command', arguments: { command: 'true' } });
  await eventually('only its own', async () => (await containers(1)).length <= 1);
  await next.client.close();
});
