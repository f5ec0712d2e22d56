// A8: an image that declares volumes, health checks, an environment, another
// user, what is to be done on build: nothing of it is obeyed but what we look
// at first.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { docker } from '../lib/box.mjs';
import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { busybox, load } from '../lib/image.mjs';

const skip = noDocker;
let engine;
let us;

before(async () => {
  if (skip) return;
  engine = await dockerd();
  us = docker(engine);
}, { timeout: 120_000 });
after(async () => {
  await us?.close();
  engine?.cleanUp();
});

const volumes = async () => (await engine.api('GET', '/volumes')).json.Volumes ?? [];

test('all of it at once: overridden, covered, compared', { skip }, async () => {
  await load(engine, 'evil:8', [[...busybox(), { path: 'data/', type: '5', mode: 0o777 }]], {
    User: 'root',
    Volumes: { '/data': {}, '/var/lib/x': {}, '/tmp': {} },
    Healthcheck: { Test: ['CMD-SHELL', 'touch /data/health'], Interval: 1e9 },
    Env: ['HOME=/root', 'LD_PRELOAD=/evil.so', 'PATH=/bin:/evil', 'X=1'],
    Entrypoint: ['/bin/sh', '-c'],
    Cmd: ['id -u; env | sort; touch /data/w && echo data; ls -A /data; cat'],
    Labels: { 'mo.store': 'other', 'mo.session': 'forged', 'mo.instance': 'forged', 'mo.warm': '1' },
    OnBuild: ['RUN touch /evil'],
    ExposedPorts: { '80/tcp': {} },
    StopSignal: 'SIGUSR1',
  });
  const { id } = await us.start('a8', { image: 'evil:8', session: 'mine', env: ['Y=2'] });
  const text = await us.until('a8', 'data\nw\n');
  const lines = text.split('\n');
  assert.match(lines[0], /^2[01]\d{3}$/, 'not root');
  for (const want of ['HOME=/workspace', 'X=1', 'Y=2', 'LANG=C.UTF-8']) assert.ok(lines.includes(want), want);

  const { Config: c, HostConfig: h, Mounts, State } =
    (await engine.api('GET', `/containers/${id}/json`)).json;
  assert.deepEqual(Mounts, [], 'no volume on the host\'s disk');
  assert.deepEqual(await volumes(), []);
  assert.deepEqual(Object.keys(h.Tmpfs).sort(), ['/data', '/tmp', '/var/lib/x', '/workspace']);
  assert.match(h.Tmpfs['/data'], /noexec,nosuid,nodev,size=\d+/);
  assert.deepEqual(c.Healthcheck.Test, ['NONE']);
  assert.equal(State.Health, undefined);
  assert.equal(c.StopSignal, 'SIGKILL');
  assert.deepEqual([c.Labels['mo.store'], c.Labels['mo.session'], c.Labels['mo.instance'], c.Labels['mo.warm']],
    ['test', 'mine', 'one', '0']);
  assert.deepEqual((h.PortBindings ?? {}), {});
  await us.stop('a8');
  assert.deepEqual(await volumes(), []);
});

const refused = [
  ['a volume in /proc', { Volumes: { '/proc/x': {} } }],
  ['a volume in /dev', { Volumes: { '/dev/shm': {} } }],
  ['the root as a volume', { Volumes: { '/': {} } }],
  ['a volume with options in its name', { Volumes: { '/a,exec': {} } }],
  ['a volume that climbs', { Volumes: { '/a/../../b': {} } }],
  ['too many volumes', { Volumes: Object.fromEntries([...Array(9).keys()].map((i) => [`/v${i}`, {}])) }],
  ['too long an environment', { Env: [...Array(99).keys()].map((i) => `A${i}=1`) }],
  ['no program', { Entrypoint: null }],
];
for (const [name, config] of refused)
  test(`refused: ${name}`, { skip }, async () => {
    await load(engine, 'evil:no', [busybox()], { Entrypoint: ['/bin/sh'], ...config });
    await assert.rejects(us.start('no', { image: 'evil:no' }), { cause: 'refused', errno: 'policy' });
    assert.deepEqual((await engine.api('GET', '/containers/json?all=1')).json, []);
  });
