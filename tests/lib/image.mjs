// Images made by hand, for tests: a tar as `docker save` would write it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';

const sha256 = (data) => createHash('sha256').update(data).digest('hex');

/** One tar entry: {path, type: '0' file, '2' link, '5' directory, link, data, mode, magic, prefix}. */
function entry({ path, type = '0', link = '', data = Buffer.alloc(0), mode = 0o755,
  magic = 'ustar\0' + '00', prefix = '' }) {
  const h = Buffer.alloc(512);
  const body = Buffer.from(data);
  h.write(path, 0);
  h.write(mode.toString(8).padStart(7, '0'), 100);
  h.write('0000000', 108);
  h.write('0000000', 116);
  h.write(body.length.toString(8).padStart(11, '0'), 124);
  h.write('00000000000', 136);
  h.write('        ', 148);
  h.write(type, 156);
  h.write(link, 157);
  h.write(magic, 257);
  h.write(prefix, 345);
  h.write(h.reduce((a, b) => a + b, 0).toString(8).padStart(6, '0') + '\0 ', 148);
  return Buffer.concat([h, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}
export const tar = (entries) => Buffer.concat([...entries.map(entry), Buffer.alloc(1024)]);

/** An image of one layer or more, each a list of entries. */
export function image(tag, layers, config = {}) {
  const tars = layers.map(tar);
  const text = JSON.stringify({
    architecture: { x64: 'amd64' }[arch()] ?? arch(), os: 'linux', config,
    rootfs: { type: 'layers', diff_ids: tars.map((t) => `sha256:${sha256(t)}`) },
  });
  return tar([
    ...tars.map((data, i) => ({ path: `${i}/layer.tar`, data })),
    { path: `${sha256(text)}.json`, data: text },
    { path: 'manifest.json', data: JSON.stringify([{ Config: `${sha256(text)}.json`,
      RepoTags: [tag], Layers: tars.map((_, i) => `${i}/layer.tar`) }]) },
  ]);
}

/** What every image needs to run a shell. */
export const busybox = () => [
  { path: 'bin/', type: '5' },
  { path: 'bin/busybox', data: readFileSync('/bin/busybox') },
  ...['sh', 'cat', 'ls', 'id', 'env', 'touch', 'sleep', 'pwd'].map((n) =>
    ({ path: `bin/${n}`, type: '2', link: 'busybox' })),
];

/** A program of this machine with its libraries. */
export function hostProgram(path) {
  const libraries = execFileSync('ldd', [path], { encoding: 'utf8' }).match(/\/\S+/g) ?? [];
  return [path, ...libraries].map((p) => ({ path: p.slice(1), data: readFileSync(p) }));
}

/** This machine's Python with the modules that need no other library than OpenSSL. */
export function python() {
  const home = readdirSync('/usr/lib').filter((n) => /^python3\.\d+$/.test(n)).map((n) => join('/usr/lib', n))[0];
  const walk = (dir) => readdirSync(dir, { withFileTypes: true }).flatMap((e) => {
    const path = join(dir, e.name);
    if (e.isDirectory()) return /^(__pycache__|test|idlelib|lib2to3|ensurepip|pydoc_data|config-.*)$/.test(e.name) ? [] : walk(path);
    return e.isFile() && path.length < 100 ? [{ path: path.slice(1), data: readFileSync(path) }] : [];
  });
  const all = [...hostProgram('/usr/bin/python3'), ...walk(home),
    ...readdirSync(join(home, 'lib-dynload')).filter((n) => n.startsWith('_ssl.')).flatMap((n) =>
      hostProgram(join(home, 'lib-dynload', n)))];
  return [...new Map(all.map((e) => [e.path, e])).values()];
}

export async function load(engine, tag, layers, config) {
  const { status, text } = await engine.api('POST', '/images/load', image(tag, layers, config));
  if (status !== 200 || text.includes('"error"')) throw new Error(`load ${tag}: ${text}`);
}
