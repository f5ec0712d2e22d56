// The stream of a network container (docker_net_far.test.mjs) is cut.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';

import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { Hosts, loadPython } from '../lib/egress.mjs';
import { Home, eventually } from '../lib/sessions.mjs';

describe('the stream of a network container', { skip: noDocker }, () => {
  const hosts = new Hosts();
  const attached = new Map(); // sockets by the id in POST /containers/ID/attach
  let engine, proxy, home, port;
  const containers = async () => (await engine.api('GET', '/containers/json?all=1')).json;
  const network = async () => (await containers()).find((c) => c.Labels['mo.role'] === 'network');

  before(async () => {
    port = await hosts.http((q, r) => r.end('here'));
    engine = await dockerd({ far: true });
    await loadPython(engine, 'python:1');
    // Between us and the engine: it knows which connection is which.
    proxy = createServer((s) => {
      const to = connect(Number(new URL(engine.far).port), '127.0.0.1');
      s.on('data', (d) => {
        const id = /^POST \S*\/containers\/([0-9a-f]+)\/attach/.exec(d.toString('latin1'))?.[1];
        if (id) attached.set(id, s);
      });
      s.on('error', () => {}).on('close', () => to.destroy());
      to.on('error', () => {}).on('close', () => s.destroy());
      s.pipe(to).pipe(s);
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    home = new Home({ sandbox: { driver: 'docker', dockerHost: `tcp://127.0.0.1:${proxy.address().port}`, warm: 0, memoryMb: 64,
      cpus: 1, pids: 32, image: 'python:1', network: { allow: [`a.test=127.0.0.1:${port}`] } } });
  }, { timeout: 120_000 });
  after(() => {
    home?.removeAll();
    proxy?.close();
    hosts.close();
    engine?.cleanUp();
  });
  const wget = () => `wget -qO- http://a.test:${port}/ || echo no`;

  test('is opened again when it was cut; without its container the box goes on without a network', async () => {
    const s = await home.server({ leaks: true });
    await s.hold('h', 's1');
    for (let i = 0; i < 3; i++) {
      assert.equal(await s.sh('h', wget()), 'here');
      const { Id } = await network();
      const cut = attached.get(Id);
      attached.delete(Id);
      cut.destroy();
      await eventually('it is attached to again', () => attached.has(Id));
      await eventually('it works', async () => (await s.sh('h', wget())) === 'here');
    }
    await engine.api('POST', `/containers/${(await network()).Id}/kill`);
    await eventually('no network', async () => (await s.sh('h', wget())) === 'no\n');
    assert.equal(await s.sh('h', 'echo still here'), 'still here\n');
    s.tell('end', { session: 's1' });
    await s.next((e) => e.ev === 'ended');
    assert.deepEqual(await containers(), []);
    assert.equal(await s.close(), 0);
  });
});
