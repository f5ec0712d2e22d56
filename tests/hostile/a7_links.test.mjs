// A7: an image that has put links where a runtime mounts things (the shapes
// of CVE-2025-31133, CVE-2025-52565 and their kin).
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { busybox } from '../lib/image.mjs';
import { link, nothingHappened, skip, underAttack } from '../lib/image_attack.mjs';

const it = underAttack();
const paths = ['dev', 'dev/null', 'dev/pts', 'dev/console', 'dev/shm', 'proc', 'sys', 'tmp',
  'workspace', 'etc', './dev', 'dev/', './/dev//null'];

test('a link in any place of ours is refused', { skip }, async () => {
  for (const [i, path] of paths.entries()) {
    await it.load(`evil:${i}`, [[...busybox(), link(path, it.marker)]]);
    await assert.rejects(it.us.start('a7', { image: `evil:${i}` }), (e) => {
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
    await it.load('evil:sly', layers(it.marker));
    await assert.rejects(it.us.start('a7', { image: 'evil:sly' }), { cause: 'refused', errno: 'policy' });
  });

nothingHappened(it);

test('what every image has is not refused', { skip }, async () => {
  await it.load('good:1', [[...busybox(),
    { path: 'dev/', type: '5' }, link('dev/fd', '/proc/self/fd'), link('dev/stdout', '/proc/self/fd/1'),
    { path: 'usr/bin/', type: '5' }, link('lib', 'usr/lib'), link('etc/mtab', '/proc/mounts'),
    link('etc/alternatives/x', '/etc/passwd')]]);
  await it.us.start('good', { image: 'good:1' });
  await it.us.stop('good');
  assert.ok(existsSync(it.marker));
});
