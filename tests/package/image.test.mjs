// The image, in a real Docker engine and in podman's: it starts without rights,
// the page answers, and a tool runs in a box that the mounted engine makes. The
// image of the other architecture does the same by emulation.
import assert from 'node:assert/strict';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { dockerd, noDocker, noPodman, podman } from '../lib/dockerd.mjs';
import { emulated, good, machine, other, released, run, top, version } from '../lib/package.mjs';
import { until } from '../it/server.mjs';

const NAME = `mcp-orchestrator:${version}`;
// podman opens the filter of system calls by its path, so the state must have the
// same path inside and outside.
async function samePath(engine) {
  const dir = join(engine.dir, 'state');
  await mkdir(dir, { mode: 0o700 });
  await chown(dir, 19999, 19999);
  return ['-v', `${dir}:${dir}`, '-e', `MCP_ORCHESTRATOR_STATE_DIR=${dir}`];
}

const ENGINES = {
  docker: {
    start: dockerd, skip: noDocker, client: (host) => ['docker', '-H', host],
    state: () => ['-v', 'mo-state:/var/lib/mcp-orchestrator'],
  },
  podman: {
    start: podman, skip: noPodman, client: (host) => ['podman', '--remote', '--url', host],
    state: samePath,
  },
};

function imageTests(kind, arch) {
  let engine, client, image;
  const ask = ([program, ...first], args, how) => how(program, [...first, ...args]);
  const tell = (...args) => ask(client, args, good);

  before(async () => {
    image = await released(new RegExp(`image-${arch}\\.tar$`));
    if (arch !== machine) await emulated(arch);
    engine = await ENGINES[kind].start();
    await chmod(engine.sock, 0o660); // as podman.socket and docker.socket make it
    client = ENGINES[kind].client(engine.host);
  });
  after(() => engine?.cleanUp());

  test('is small, and not root', async () => {
    assert.ok((await tell('load', '-i', image)).includes(NAME));
    const [about] = JSON.parse(await tell('image', 'inspect', NAME));
    assert.equal(about.Architecture, arch);
    assert.equal(about.Config.User, '19999:19999');
    if (kind === 'docker') // the format OCI has no place for it
      assert.ok(about.Config.Healthcheck.Test.includes('health'));
    assert.ok((await stat(image)).size <= 12e6, 'to pull');
  });

  test('serves the page without a capability or a writable root', async () => {
    await tell('run', '-d', '--name', 'srv', '--network', 'host', '--read-only', '--cap-drop', 'ALL',
      '--security-opt', 'no-new-privileges', ...(await ENGINES[kind].state(engine)),
      '-v', `${engine.sock}:/var/run/docker.sock`,
      '--group-add', String((await stat(engine.sock)).gid),
      NAME, 'serve', '--listen', '127.0.0.1', '--port', '0', '--provider', 'demo');
    let ready;
    await until(async () => {
      const { out, err } = await ask(client, ['logs', 'srv'], run);
      ready = /http:\/\/localhost:(\d+)/.exec(out + err);
      return ready;
    }, 'the server to be ready');
    const page = await fetch(`http://127.0.0.1:${ready[1]}/`);
    assert.match(await page.text(), /<html/i);
    assert.equal(await tell('exec', 'srv', 'mcp-orchestrator', 'health'), 'the server answers\n');
    assert.match(await tell('exec', 'srv', 'mcp-orchestrator', 'open'), /token=/);
  });

  test('runs a tool in a box of the mounted engine', async () => {
    const says = await tell('exec', 'srv', 'mcp-orchestrator', 'chat', '--yes', '--sandbox', 'docker',
      '--provider', 'demo', '--json', 'list the files');
    assert.match(says, /"tool/);
  });

  // server.json names docker
  if (kind === 'docker' && arch === machine) test('is a gateway for a client that starts it as server.json says', async () => {
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
    await tell('stop', 'srv');
    const [about] = JSON.parse(await tell('container', 'inspect', 'srv'));
    assert.equal(about.State.ExitCode, 0);
  });
}

for (const kind of Object.keys(ENGINES))
  for (const arch of [machine, other])
    describe(`${kind}, ${arch}`, { skip: ENGINES[kind].skip }, () => imageTests(kind, arch));
