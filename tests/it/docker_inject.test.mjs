// Secrets set by the relay for docker boxes: programs of an image trust it.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { noPodman, podman } from '../lib/dockerd.mjs';
import { loadPython } from '../lib/egress.mjs';
import { Home } from '../lib/sessions.mjs';
import { bundle, cases, fetch, network, pair, seen } from './docker_inject_cases.mjs';

cases(false);

test('podman boxes with inject', { skip: noPodman }, async (t) => {
  const engine = await podman();
  t.after(() => engine.cleanUp());
  await loadPython(engine, 'debian:1', [bundle]);
  const home = new Home({ sandbox: { driver: 'docker', dockerHost: engine.host, warm: 0, memoryMb: 128, cpus: 1, pids: 32,
    image: 'debian:1', network: network('a') } });
  t.after(() => home.removeAll());
  writeFileSync(join(home.root, 'trust.pem'), pair.cert);
  const s = await home.server({ env: { TOKEN: 'one', SSL_CERT_FILE: join(home.root, 'trust.pem') } });
  await s.hold('h', 's1');
  seen.length = 0;
  assert.equal(await s.sh('h', fetch('a')), 'here');
  assert.deepEqual(seen, [['a.test', 'one']]);
  assert.match(await s.sh('h', 'echo x >> /run/ca-certificates.crt || echo no'), /no/);
  assert.equal(await s.close(), 0);
});
