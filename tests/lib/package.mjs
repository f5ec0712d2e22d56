// Programs that are run to their end, for the tests of packages.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const top = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** The version in meson.build. */
export const version = /version : '([^']+)'/.exec(readFileSync(join(top, 'meson.build'), 'utf8'))[1];

/** {code, out, err} of a program. */
export const run = (file, args, { input = '', ...options } = {}) =>
  new Promise((resolve) => {
    const child = execFile(file, args, { maxBuffer: 1 << 26, ...options }, (error, out, err) =>
      resolve({ code: error ? (child.exitCode ?? -1) : 0, out, err }));
    child.stdin.on('error', () => {}); // it may end without reading
    child.stdin.end(input);
  });

/** What it prints; it must succeed. */
export async function good(file, args, options) {
  const r = await run(file, args, options);
  assert.equal(r.code, 0, `${file} ${args.join(' ')}: ${r.err}${r.out}`);
  return r.out;
}

/** The file in dist/ whose name matches; `make test-package` has made it. */
export async function released(pattern) {
  const name = (await readdir(join(top, 'dist')).catch(() => [])).find((f) => pattern.test(f));
  assert.ok(name, `dist/ has no ${pattern}: make test-package builds it`);
  return join(top, 'dist', name);
}

/** Every path below dir, without some. */
export const files = async (dir, ...without) =>
  (await good('find', [dir, '-xdev', ...without.flatMap((p) =>
    ['-path', join(dir, p), '-prune', '-o']), '-print'])).split('\n').filter(Boolean).sort();
