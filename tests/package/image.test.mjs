// The image, in a real Docker engine and in podman: it starts without rights,
// the page answers, and a tool runs in a box that the mounted engine makes.
import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { good, released, run, top, version } from '../lib/package.mjs';
import { until } from '../it/server.mjs';

const machine = process.arch === 'x64' ? 'amd64' : 'arm64';
const NAME = `mcp-orchestrator:${version}`;

describe('docker', { skip: noDocker }, () => {
  let engine, docker, image;
  before(async () => {
    image = await released(new RegExp(`image-${machine}\\.tar$`));
    engine = await dockerd();
    docker = (...args) => good('docker', ['-H', engine.host, ...args]);
  });
  after(() => engine?.cleanUp());

  test('is small, and not root', async () => {
    assert.ok((await docker('load', '-i', image)).includes(NAME));
    const [about] = JSON.parse(await docker('image', 'inspect', NAME));
    assert.equal(about.Config.User, '19999:19999');
    assert.ok(about.Config.Healthcheck.Test.includes('health'));
    assert.ok((await stat(image)).size <= 12e6, 'to pull');
  });

  test('serves the page without a capability or a writable root', async () => {
    await docker('run', '-d', '--name', 'srv', '--network', 'host', '--read-only', '--cap-drop', 'ALL',
      '--security-opt', 'no-new-privileges', '-v', 'mo-state:/var/lib/mcp-orchestrator',
      '-v', `${engine.sock}:/var/run/docker.sock`,
      '--group-add', String((await stat(engine.sock)).gid),
      NAME, 'serve', '--listen', '127.0.0.1', '--port', '0', '--provider', 'demo');
    const log = () => run('docker', ['-H', engine.host, 'logs', 'srv']);
    let ready;
    await until(async () => {
      const { out, err } = await log();
      ready = /http:\/\/localhost:(\d+)/.exec(out + err);
      return ready;
    }, 'the server to be ready');
    const page = await fetch(`http://127.0.0.1:${ready[1]}/`);
    assert.match(await page.text(), /<html/i);
    assert.equal(await docker('exec', 'srv', 'mcp-orchestrator', 'health'), 'the server answers\n');
    assert.match(await docker('exec', 'srv', 'mcp-orchestrator', 'open'), /token=/);
  });

  test('runs a tool in a box of the mounted engine', async () => {
    const says = await docker('exec', 'srv', 'mcp-orchestrator', 'chat', '--yes', '--sandbox', 'docker',
      '--provider', 'demo', '--json', 'list the files');
    assert.match(says, /"tool/);
  });

  test('is a gateway for a client that starts it as server.json says', async () => {
    const oci = JSON.parse(await readFile(join(top, 'dist/server.json'))).packages.find((p) => p.registryType === 'oci');
    const dir = await mkdtemp(join(tmpdir(), 'mo-oci-'));
    const config = join(dir, 'servers.json');
    await writeFile(config, JSON.stringify({ mcpServers: { shell: { command: 'mo-toolbox', sandbox: 'docker' } } }));
    await chmod(dir, 0o755);
    const words = (list) => list.flatMap((a) => [a.name, a.value.replace('{config}', config)].filter(Boolean));
    const client = new Client({ name: 'desktop', version: '1' });
    try {
      await client.connect(new StdioClientTransport({ command: 'docker', args: ['-H', engine.host, 'run', '-i', '--rm',
        ...words(oci.runtimeArguments), oci.identifier.replace(/^.*\//, ''), ...words(oci.packageArguments)] }));
      assert.deepEqual((await client.listTools()).tools.map((t) => t.name).sort(),
        ['execute', 'explain_tool', 'find_tool', 'list_capabilities']);
      const listed = await client.callTool({ name: 'list_capabilities', arguments: {} });
      assert.match(listed.content[0].text, /shell/);
    } finally {
      await client.close();
      await rm(dir, { recursive: true });
    }
  });

  test('stops in order', async () => {
    await docker('stop', 'srv');
    const [about] = JSON.parse(await docker('container', 'inspect', 'srv'));
    assert.equal(about.State.ExitCode, 0);
  });
});

test('podman loads it', async () => {
  const image = await released(new RegExp(`image-${machine}\\.tar$`));
  await good('podman', ['load', '-i', image]);
  const [about] = JSON.parse(await good('podman', ['image', 'inspect', `localhost/${NAME}`]));
  assert.equal(about.User ?? about.Config.User, '19999:19999');
  await good('podman', ['rmi', `localhost/${NAME}`]);
});
