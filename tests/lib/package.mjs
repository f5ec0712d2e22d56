// Programs that are run to their end, for the tests of packages.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
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

export const machine = process.arch === 'x64' ? 'amd64' : 'arm64';
export const other = machine === 'amd64' ? 'arm64' : 'amd64';

/** From now on programs of that architecture run on this machine. */
export const emulated = (arch) => good(join(top, 'scripts/emulate'), [arch]);

// A mount namespace whose root is the system: nothing is left mounted, and a
// program may make namespaces of its own, which it may not below a chroot.
const ENTER = `mount --rbind "$0" "$0" && cd "$0" && mount -t proc proc proc &&
  mount --rbind /dev dev && mount --rbind /sys sys && mkdir -p run/old &&
  pivot_root . run/old && umount -l /run/old && u=$1 && shift &&
  exec chroot --userspec="$u:$u" / "$@"`;

/** A fresh Debian system in the folder root, and how to run a command inside:
 *  good(...inside([...])). */
export async function freshSystem(root, arch) {
  const tar = (await good(join(top, 'scripts/fresh-system'), [arch])).trim();
  await mkdir(root);
  await good('tar', ['-C', root, '--numeric-owner', '-xpf', tar]);
  await copyFile('/etc/resolv.conf', join(root, 'etc/resolv.conf')).catch(() => {});
  return (command, user = 'root') => ['unshare', ['-m', 'sh', '-c', ENTER, root, user, ...command]];
}

/** Starts a server with [file, args]; resolves to {child, url} when it is ready. */
export async function started([file, args]) {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const line = await Promise.race([
    once(lines, 'line').then(([l]) => l),
    once(lines, 'close').then(() => 'nothing was printed'),
  ]);
  const url = /http:\/\/localhost:\d+/.exec(line);
  assert.ok(url, line);
  return { child, url: url[0] };
}
