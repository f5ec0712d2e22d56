// A6: an image whose WORKDIR leads to an open descriptor of the runtime
// (the shape of CVE-2024-21626), or anywhere else it has no business.
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

const created = async () => {
  const { json } = await engine.api('GET', '/containers/json?all=1');
  return json.length;
};

const bad = [...Array(24).keys()].map((i) => `/proc/self/fd/${i + 7}`).concat(
  '/proc', '/proc/self/cwd', '/sys/fs/cgroup', '/dev/fd/8', '/a/../proc/self/fd/8', '//proc/self', '/a/./b');
test('every such WORKDIR is refused before anything is made', { skip }, async () => {
  for (const [i, WorkingDir] of bad.entries()) {
    await load(engine, `evil:${i}`, [busybox()], { WorkingDir, Entrypoint: ['/bin/sh', '-c', 'pwd; cat'] });
    await assert.rejects(us.start('a6', { image: `evil:${i}` }), (e) => {
      assert.deepEqual([e.cause, e.errno], ['refused', 'policy'], `${WorkingDir}: ${e.why}`);
      return true;
    });
  }
  assert.equal(await created(), 0);
});

test('a WORKDIR reached through a link of the image is refused', { skip }, async () => {
  await load(engine, 'evil:link',
    [[...busybox(), { path: 'app', type: '2', link: '/proc/self/fd/8' }]],
    { WorkingDir: '/app', Entrypoint: ['/bin/sh'] });
  await assert.rejects(us.start('a6', { image: 'evil:link' }), { errno: 'policy' });
  await load(engine, 'evil:way',
    [[...busybox(), { path: 'x', type: '2', link: '/proc/self' }]],
    { WorkingDir: '/x/fd/8', Entrypoint: ['/bin/sh'] });
  await assert.rejects(us.start('a6', { image: 'evil:way' }), { errno: 'policy' });
  assert.equal(await created(), 0);
});

test('with a command of ours its WORKDIR does not count, an honest one does', { skip }, async () => {
  await load(engine, 'good:1', [[...busybox(), { path: 'app/', type: '5' }]],
    { WorkingDir: '/app', Entrypoint: ['/bin/sh', '-c', 'pwd; cat'] });
  await us.start('own', { image: 'good:1' });
  assert.equal(await us.until('own', '\n'), '/app\n');
  await us.stop('own');
  await us.start('ours', { image: 'good:1', argv: ['/bin/sh', '-c', 'pwd; cat'] });
  assert.equal(await us.until('ours', '\n'), '/workspace\n');
  await us.stop('ours');
});
