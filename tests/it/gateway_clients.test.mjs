// Every official client, on stdio and over HTTP, with real servers behind the
// gateway all at once: three published ones, the fixture, and the toolbox in a
// box.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { bin, fixtureServer, published, serveWith } from '../lib/gateway.mjs';
import { client1, client2, text } from '../lib/mcp_talk.mjs';
import { Home, eventually, noNative } from '../lib/sessions.mjs';

const inspector = fileURLToPath(new URL(
  '../node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js', import.meta.url));

/** A home with all the servers; how: of the toolbox's box. */
function furnish(how, sandbox = {}) {
  const box = { command: 'mo-toolbox', sandbox: how, memoryMb: 64 };
  const home = new Home({ driver: how, log: { level: 'warn' }, ...sandbox });
  const docs = join(home.root, 'docs');
  mkdirSync(docs);
  writeFileSync(join(docs, 'a.txt'), 'in the file');
  const config = {
    store: { dir: home.dir },
    sandbox: { driver: how, warm: 0, memoryMb: 64, workspaceMb: 8, cpus: 1, pids: 32,
      ...(sandbox.engine && { dockerHost: sandbox.engine }) },
    mcpServers: {
      fixture: fixtureServer(),
      everything: published('server-everything'),
      files: published('server-filesystem', docs),
      memory: {
        ...published('server-memory'), env: { MEMORY_FILE_PATH: join(docs, 'memory.json') },
      },
      box,
    },
  };
  writeFileSync(home.config, JSON.stringify(config));
  const env = {
    PATH: process.env.PATH, HOME: home.root, MCP_ORCHESTRATOR_STATE_DIR: home.dir,
    ASAN_OPTIONS: 'detect_leaks=0',
  };
  const command = { command: bin, args: ['gateway', '--config', home.config], env };
  return { home, docs, command, where: { cwd: home.root, env } };
}

const listed = ['create_entities', 'get-sum', 'read_text_file', 'test_simple_text', 'execute_command'];

/** The same conversation, whoever has it. */
async function converse(it, docs, mark) {
  const names = async () => (await it.client.listTools()).tools.map((t) => t.name);
  await eventually('tools of all five', async () => {
    const all = await names();
    return listed.every((n) => all.includes(n));
  });
  const all = await names();
  assert.ok(all.includes('fixture_echo'), 'two servers have an echo');
  assert.ok(all.includes('everything_echo'));
  assert.ok(!all.includes('echo'));
  const say = async (name, args) => text(await it.call({ name, arguments: args }));
  assert.equal(await say('fixture_echo', { message: 'hé' }), 'hé');
  assert.match(await say('everything_echo', { message: 'hé' }), /hé/);
  assert.match(await say('get-sum', { a: 2, b: 3 }), /5/);
  assert.equal(await say('read_text_file', { path: join(docs, 'a.txt') }), 'in the file');
  const entity = { name: `ann ${mark}`, entityType: 'person', observations: ['kind'] };
  assert.match(await say('create_entities', { entities: [entity] }), /ann/);
  assert.match(await say('execute_command', { command: 'pwd; echo in the box' }),
    /\/workspace[^]*in the box/);
  const { prompts } = await it.client.listPrompts();
  assert.ok(prompts.some((p) => p.name === 'test_simple_prompt'));
  assert.ok(prompts.length > 5, 'of more than one server');
  const { contents } = await it.client.readResource({ uri: 'test://static-text' });
  assert.match(contents[0].text, /./);
  const { completion } = await it.client.complete({
    ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
    argument: { name: 'arg1', value: 'par' },
  });
  assert.equal(completion.values[0], 'paris');
}

const modern = { pin: '2026-07-28' };
const kinds = [
  ['sdk 1.32', () => client1(), Stdio1, Http1],
  ['client 2.4, legacy', () => client2(), Stdio2, v2.StreamableHTTPClientTransport, '2025-11-25'],
  ['client 2.4, auto', () => client2('auto'), Stdio2, v2.StreamableHTTPClientTransport, '2026-07-28'],
  ['client 2.4, modern', () => client2(modern), Stdio2, v2.StreamableHTTPClientTransport, '2026-07-28'],
];

describe('with a native box', { skip: noNative ? `needs ${noNative}` : false }, () => {
  let place;
  let serve;
  before(async () => {
    place = furnish('native');
    serve = await serveWith(place.home.config, place.where);
  });
  after(async () => {
    const { code, log } = await serve.stop();
    await eventually('no box remains', () => place.home.remains().length === 0);
    place.home.removeAll();
    assert.equal(code, 0, log);
    assert.doesNotMatch(log, /runtime error|Sanitizer/);
  });

  for (const [name, make, Stdio, Http, version] of kinds) {
    for (const how of ['http', 'stdio']) {
      test(`${name}, ${how}`, async () => {
        const it = make();
        await it.client.connect(how === 'http' ? new Http(serve.url) : new Stdio(place.command));
        try {
          if (version) assert.equal(it.client.getNegotiatedProtocolVersion(), version);
          await converse(it, place.docs, `${name} ${how}`);
        } finally {
          await it.client.close();
        }
      });
    }
  }

  for (const how of ['http', 'stdio']) {
    test(`Inspector's CLI, ${how}`, async () => {
      // It would take our --config for its own.
      const starts = join(place.home.root, 'gateway.sh');
      writeFileSync(starts, `exec '${bin}' gateway --config '${place.home.config}'\n`);
      const target = how === 'http' ? [String(serve.url)] : ['sh', starts];
      const run = async (...args) => {
        const { stdout } = await promisify(execFile)(
          process.execPath, [inspector, ...target, ...args],
          // It looks for its own package.json from where it is started.
          { env: { ...process.env, ...place.where.env }, cwd: dirname(inspector) },
        );
        return JSON.parse(stdout);
      };
      await eventually('tools of all five', async () => {
        const { tools } = await run('--method', 'tools/list');
        return listed.every((n) => tools.some((t) => t.name === n));
      });
      const call = (name, ...args) => run('--method', 'tools/call', '--tool-name', name,
        ...args.flatMap((a) => ['--tool-arg', a]));
      // Each of these is two processes, so few of them.
      const path = join(place.docs, 'a.txt');
      assert.equal(text(await call('read_text_file', `path=${path}`)), 'in the file');
      assert.match(text(await call('execute_command', 'command=echo in the box')), /in the box/);
      const { messages } = await run('--method', 'prompts/get', '--prompt-name', 'test_simple_prompt');
      assert.equal(messages.length, 1);
    });
  }
});

test('with a container', { skip: noDocker ? `needs ${noDocker}` : false }, async (t) => {
  const engine = await dockerd();
  t.after(() => engine.cleanUp());
  const place = furnish('docker', { engine: engine.host });
  t.after(() => place.home.removeAll());
  const it = client2('auto');
  await it.client.connect(new Stdio2(place.command));
  const containers = async () => (await engine.api('GET', '/containers/json?all=1')).json;
  try {
    await converse(it, place.docs, 'docker');
    assert.equal((await containers()).length, 1);
  } finally {
    await it.client.close();
  }
  await eventually('no container remains', async () => (await containers()).length === 0);
});
