// A7: an image that has put links where a runtime mounts things (the shapes
// of CVE-2025-31133, CVE-2025-52565 and their kin).
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { docker } from '../lib/box.mjs';
import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { busybox, load } from '../lib/image.mjs';

const skip = noDocker;
let engine;
let us;
let marker;

before(async () => {
  if (skip) return;
  engine = await dockerd();
  us = docker(engine);
  marker = join(engine.dir, 'marker');
  writeFileSync(marker, 'untouched');
}, { timeout: 120_000 });
after(async () => {
  await us?.close();
  engine?.cleanUp();
});

const program = { Entrypoint: ['/bin/sh', '-c', 'echo owned >/workspace/x; cat'] };
const link = (path, to) => ({ path, type: '2', link: to });
const paths = ['dev', 'dev/null', 'dev/pts', 'dev/console', 'dev/shm', 'proc', 'sys', 'tmp',
  'workspace', 'etc', './dev', 'dev/', './/dev//null'];

test('a link in any place of ours is refused', { skip }, async () => {
  for (const [i, path] of paths.entries()) {
    await load(engine, `evil:${i}`, [[...busybox(), link(path, marker)]], program);
    await assert.rejects(us.start('a7', { image: `evil:${i}` }), (e) => {
      assert.deepEqual([e.cause, e.errno], ['refused', 'policy'], `${path}: ${e.why}`);
      return true;
    });
  }
});

const sly = [ // layers, given the place outside
  ['in a lower layer, covered by a directory', (to) => [[...busybox(), link('dev', to)], [{ path: 'dev/', type: '5' }]]],
  ['in an upper layer', (to) => [busybox(), [link('workspace', to)]]],
  ['a hard link to one', (to) => [[...busybox(), link('x', to), { path: 'dev/null', type: '1', link: 'x' }]]],
  ['through a link in the same layer', (to) => [[...busybox(), link('x', '.'), link('x/dev', to)]]],
];
for (const [name, layers] of sly)
  test(`hidden: ${name}`, { skip }, async () => {
    await load(engine, 'evil:sly', layers(marker), program);
    await assert.rejects(us.start('a7', { image: 'evil:sly' }), { cause: 'refused', errno: 'policy' });
  });

test('nothing was made, nothing was touched', { skip }, async () => {
  assert.deepEqual((await engine.api('GET', '/containers/json?all=1')).json, []);
  assert.equal(readFileSync(marker, 'utf8'), 'untouched');
});

test('what every image has is not refused', { skip }, async () => {
  await load(engine, 'good:1', [[...busybox(),
    { path: 'dev/', type: '5' }, link('dev/fd', '/proc/self/fd'), link('dev/stdout', '/proc/self/fd/1'),
    { path: 'usr/bin/', type: '5' }, link('lib', 'usr/lib'), link('etc/mtab', '/proc/mounts'),
    link('etc/alternatives/x', '/etc/passwd')]], program);
  await us.start('good', { image: 'good:1' });
  await us.stop('good');
  assert.ok(existsSync(marker));
});
