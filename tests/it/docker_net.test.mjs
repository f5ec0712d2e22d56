// Docker boxes with a network: the same as native ones, by a second container.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { noPodman, podman } from '../lib/dockerd.mjs';
import { Home } from '../lib/sessions.mjs';
import { cases, run } from './docker_net_cases.mjs';

cases(false);

test('podman gives boxes the same network', { skip: noPodman }, async (t) => {
  const engine = await podman();
  const home = new Home({ driver: 'docker', engine: engine.host });
  t.after(() => {
    home.removeAll();
    engine.cleanUp();
  });
  const rows = JSON.parse((await run(home, 'doctor', '--sandbox', '--json')).stdout).filter((r) => r.driver === 'docker');
  assert.deepEqual(rows.filter((r) => !r.pass), []);
  assert.ok(rows.some((r) => r.control === 'TLS names'));
  assert.deepEqual((await engine.api('GET', '/containers/json?all=1')).json, []);
});
