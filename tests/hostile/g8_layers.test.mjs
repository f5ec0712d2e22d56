// G8: an image whose layers our check reads differently from the engine. The
// check guessed which files are layers by their first byte, so a layer whose
// first name began with "{" was not read at all; and a GNU header's prefix,
// sparse entries and hard links to links meant other names to the engine.
// Fails on 953b0b1e: all five images were accepted and their containers ran.
// (Sparse entries are in unit/tar: the engine refuses GNU's type itself, and one
// named by pax can only be a plain file, which is no attack.)
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { busybox } from '../lib/image.mjs';
import { link, nothingHappened, skip, underAttack } from '../lib/image_attack.mjs';

const it = underAttack();

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
    const loaded = await it.load('evil:g8', layers(it.marker)).then(() => true, () => false);
    if (loaded)
      await assert.rejects(it.us.start('g8', { image: 'evil:g8' }), { cause: 'refused', errno: 'policy' });
    await it.engine.api('DELETE', '/images/evil:g8?force=1');
  });

nothingHappened(it);

test('plain layers start, also one whose first name begins with {', { skip }, async () => {
  await it.load('good:g8', [[{ path: '{', type: '0' }, ...busybox()], [{ path: 'data/', type: '5' }]]);
  await it.us.start('good', { image: 'good:g8' });
  await it.us.stop('good');
});
