// G8: an image whose layers our check reads differently from the engine. The
// check guessed which files are layers by their first byte, so a layer whose
// first name began with "{" was not read at all; and a GNU header's prefix,
// sparse entries and hard links to links meant other names to the engine.
// Fails on 953b0b1e: all five images were accepted and their containers ran.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
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

const sly = [
  ['a layer that begins with {', (to) => [busybox(), [{ path: '{', type: '0' }, link('dev', to)]]],
  ['a layer that begins with [', (to) => [busybox(), [{ path: '[', type: '0' }, link('workspace', to)]]],
  ['through a hard link to a link', (to) => [[...busybox(), link('x', '.'),
    { path: 'y', type: '1', link: 'x' }, link('y/dev', to)]]],
  ['a name that only Go reads', (to) => [[...busybox(), { ...link('null', to), magic: 'ustar  \0', prefix: 'dev' }]]],
  ['a global header with a name', (to) => [[...busybox(),
    { path: 'g', type: 'g', data: '17 path=dev/null\n' }, link('x', to)]]],
];

for (const [name, layers] of sly)
  test(`hidden: ${name}`, { skip }, async () => {
    // an engine that refuses the image itself is as good
    const loaded = await load(engine, 'evil:g8', layers(marker), program).then(() => true, () => false);
    if (loaded)
      await assert.rejects(us.start('g8', { image: 'evil:g8' }), { cause: 'refused', errno: 'policy' });
    await engine.api('DELETE', '/images/evil:g8?force=1');
  });

test('nothing was made, nothing was touched', { skip }, async () => {
  assert.deepEqual((await engine.api('GET', '/containers/json?all=1')).json, []);
  assert.equal(readFileSync(marker, 'utf8'), 'untouched');
});

test('plain layers start, also one whose first name begins with {', { skip }, async () => {
  await load(engine, 'good:g8', [[{ path: '{', type: '0' }, ...busybox()], [{ path: 'data/', type: '5' }]], program);
  await us.start('good', { image: 'good:g8' });
  await us.stop('good');
});
