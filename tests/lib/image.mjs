// Images made by hand, for tests: a tar as `docker save` would write it.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { arch } from 'node:os';

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

export async function load(engine, tag, layers, config) {
  const { status, text } = await engine.api('POST', '/images/load', image(tag, layers, config));
  if (status !== 200 || text.includes('"error"')) throw new Error(`load ${tag}: ${text}`);
}
