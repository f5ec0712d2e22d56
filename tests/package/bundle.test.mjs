// The MCPB bundle and server.json: judged by the format's own tool and by our
// installer, and started exactly as the manifest says.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { getMcpConfigForManifest } from './node_modules/@anthropic-ai/mcpb/dist/index.js';
import { good, released, run, top } from '../lib/package.mjs';

const FOUR = ['execute', 'explain_tool', 'find_tool', 'list_capabilities'];
const judge = (...args) => good(process.execPath, [join(import.meta.dirname, 'node_modules/@anthropic-ai/mcpb/dist/cli/cli.js'), ...args]);
const sum = (bytes) => createHash('sha256').update(bytes).digest('hex');

let dir, bundle, unpacked, manifest, env;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-bundle-'));
  bundle = await released(/\.mcpb$/);
  unpacked = join(dir, 'unpacked');
  await judge('unpack', bundle, unpacked);
  manifest = JSON.parse(await readFile(join(unpacked, 'manifest.json')));
  env = { HOME: join(dir, 'home'), PATH: process.env.PATH };
  await mkdir(env.HOME);
  await writeFile(join(dir, 'servers.json'), JSON.stringify({
    mcpServers: { everything: { command: process.execPath,
      args: [join(top, 'tests/node_modules/@modelcontextprotocol/server-everything/dist/index.js')] } },
  }));
});
after(() => rm(dir, { recursive: true, force: true }));

describe('the bundle', () => {
  test('is valid, packs again, and its programs can be started', async () => {
    assert.match(await judge('validate', join(unpacked, 'manifest.json')), /validation passes/);
    await judge('pack', unpacked, join(dir, 'again.mcpb'));
    assert.match(await judge('info', bundle), /KB|MB/);
    assert.ok((await stat(join(unpacked, manifest.server.entry_point))).mode & 0o100);
  });

  test('a wrong manifest is refused by the same judge', async () => {
    await writeFile(join(dir, 'manifest.json'), JSON.stringify({ ...manifest, server: { type: 'binary' } }));
    await assert.rejects(judge('validate', join(dir, 'manifest.json')), /server/);
  });

  test('a client lists the four tools and calls them', async () => {
    const how = await getMcpConfigForManifest({
      manifest, extensionPath: unpacked, systemDirs: {}, pathSeparator: '/',
      userConfig: { config: join(dir, 'servers.json') },
    });
    assert.equal(how.command, join(unpacked, 'server/mcp-orchestrator'));
    const client = new Client({ name: 'desktop', version: '1' });
    await client.connect(new StdioClientTransport({ command: how.command, args: how.args, env: { ...env, ...how.env }, cwd: dir }));
    try {
      assert.deepEqual(client.getServerVersion().version, manifest.version);
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map((t) => t.name).sort(), FOUR);
      assert.deepEqual(manifest.tools.map((t) => t.name).sort(), FOUR);
      const got = await client.callTool({ name: 'execute',
        arguments: { server: 'everything', tool: 'echo', params: { message: 'from the bundle' } } });
      assert.match(got.content[0].text, /from the bundle/);
    } finally {
      await client.close();
    }
  });

  test('another processor gets a message', async () => {
    const tools = join(dir, 'tools');
    await mkdir(tools);
    await writeFile(join(tools, 'uname'), '#!/bin/sh\necho riscv64\n', { mode: 0o755 });
    const { code, err } = await run(join(unpacked, manifest.server.entry_point), ['version'],
      { env: { PATH: `${tools}:${process.env.PATH}` } });
    assert.deepEqual([code, err], [1, 'mcp-orchestrator: this bundle has no program for riscv64\n']);
  });

  test('the same programs make the same bytes, at any time', async () => {
    const tarballs = [...(await readFile(join(top, 'dist/SHA256SUMS'), 'utf8')).matchAll(/\S+-linux-\w+\.tar\.gz/g)]
      .map(([f]) => join(top, 'dist', f));
    for (const [name, TZ] of [['a', 'UTC'], ['b', 'Asia/Kathmandu']])
      await good(join(top, 'scripts/mcpb'), [join(dir, name), ...tarballs],
        { env: { PATH: process.env.PATH, TZ, SOURCE_DATE_EPOCH: '1790000000' } });
    assert.equal(sum(await readFile(join(dir, 'a'))), sum(await readFile(join(dir, 'b'))));
  });
});

describe('server.json', () => {
  let server;
  before(async () => { server = JSON.parse(await readFile(join(top, 'dist/server.json'))); });

  test('names the bundle with its digest, and the image with its label', async () => {
    const [mcpb, oci] = server.packages;
    assert.equal(mcpb.fileSha256, sum(await readFile(bundle)));
    assert.ok(mcpb.identifier.endsWith(`/${bundle.split('/').at(-1)}`));
    assert.ok(oci.identifier.endsWith(`:${manifest.version}`));
    assert.equal(server.version, manifest.version);
    const image = await good('tar', ['-xOf', await released(/-image-\w+\.tar$/), 'manifest.json']);
    const config = JSON.parse(await good('tar', ['-xOf', await released(/-image-\w+\.tar$/), JSON.parse(image)[0].Config]));
    assert.equal(config.config.Labels['io.modelcontextprotocol.server.name'], server.name);
    assert.equal(config.config.Labels['org.opencontainers.image.version'], server.version);
  });

  const wrong = {
    'description has not': (s) => { s.description = 'x'.repeat(101); },
    'name is not': (s) => { s.name = 'mcp-orchestrator'; },
    'version is not semantic': (s) => { s.version = '1.0'; },
    'fileSha256 is not': (s) => { delete s.packages[0].fileSha256; },
    'mcpb package has no version': (s) => { s.packages[0].version = '0.1.0'; },
    'not an https address': (s) => { s.packages[0].identifier = 'http://example.com/x.mcpb'; },
    'oci package has no version': (s) => { s.packages[1].version = '0.1.0'; },
    'not host/name:tag': (s) => { s.packages[1].identifier = 'registry.example.com/x'; },
    'value or valueHint': (s) => { delete s.packages[1].packageArguments[0].value; },
    'not among its variables': (s) => { delete s.packages[1].runtimeArguments[0].variables; },
    'registryType is zip': (s) => { s.packages[0].registryType = 'zip'; },
    'colour is not known': (s) => { s.colour = 'red'; },
  };
  test('the check accepts it, and refuses each fault', async () => {
    const check = async (value) => {
      await writeFile(join(dir, 'server.json'), JSON.stringify(value));
      return run(join(top, 'scripts/server-json'), ['--check', join(dir, 'server.json')]);
    };
    assert.deepEqual(await check(server), { code: 0, out: '', err: '' });
    for (const [says, spoil] of Object.entries(wrong)) {
      const bad = structuredClone(server);
      spoil(bad);
      const { code, err } = await check(bad);
      assert.deepEqual([code, err.includes(says)], [1, true], `${says}: ${err}`);
    }
  });

  test('mcp install of our own program accepts the bundle', async () => {
    const bytes = await readFile(bundle);
    const host = http.createServer((rq, rs) => rs.end(bytes)).listen(0, '127.0.0.1');
    await once(host, 'listening');
    try {
      const plan = JSON.parse(await good(join(unpacked, manifest.server.entry_point), ['mcp', 'install',
        `mcpb:http://127.0.0.1:${host.address().port}/x.mcpb@sha256:${sum(bytes)}`, '--dry-run', '--json'],
      { cwd: dir, env: { ...env, MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } })).plan;
      assert.deepEqual([plan.kind, plan.version], ['mcpb', manifest.version]);
    } finally {
      host.close();
    }
  });
});
