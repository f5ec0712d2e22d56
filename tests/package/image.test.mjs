// The image, in a real Docker engine and in podman: it starts without rights,
// the page answers, and a tool runs in a box that the mounted engine makes.
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';

import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { good, released, run } from '../lib/package.mjs';
import { until } from '../it/server.mjs';

const machine = process.arch === 'x64' ? 'amd64' : 'arm64';
const NAME = 'mcp-orchestrator:0.1.0';

describe('docker', { skip: noDocker }, () => {
  let engine, docker, image;
  before(async () => {
    image = await released(new RegExp(`image-${machine}\\.tar$`));
    engine = await dockerd();
    docker = (...args) => good('docker', ['-H', engine.host, ...args]);
  });
  after(() => engine?.cleanUp());

  test('is small, and not root', async () => {
    assert.match(await docker('load', '-i', image), /mcp-orchestrator:0\.1\.0/);
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
