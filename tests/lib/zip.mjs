// Makes zip files, good and bad ones. An entry: a text, or
// { body, mode, store, link } and what a liar would write instead of the truth:
// { size, packed, crc, flags, method, local: another name in its local header }.
import { crc32, deflateRawSync } from 'node:zlib';

const head = (signature, fields) => {
  const b = Buffer.alloc(fields.reduce((n, [width]) => n + width, 4));
  let at = b.writeUInt32LE(signature, 0);
  for (const [width, value] of fields) at = b.writeUIntLE(value, at, width);
  return b;
};
const FILE = 0o100000, LINK = 0o120000;

/** files: {path: entry}, or a list of [path, entry] with paths twice. tail:
 * bytes behind it; count: the number of entries that the end names. */
export function zip(files, { tail = Buffer.alloc(0), count, front = Buffer.alloc(0) } = {}) {
  const parts = [front], directory = [];
  let at = front.length;
  const list = Array.isArray(files) ? files : Object.entries(files);
  for (const [path, value] of list) {
    const e = typeof value === 'string' || Buffer.isBuffer(value) ? { body: value } : value;
    const body = Buffer.from(e.link ?? e.body ?? '');
    const data = e.store || e.link !== undefined ? body : deflateRawSync(body);
    const name = Buffer.from(path), local = Buffer.from(e.local ?? path);
    const common = (n) => [
      [2, 20], [2, e.flags ?? 0x800], [2, e.method ?? (data === body ? 0 : 8)], [2, 0], [2, 0x21],
      [4, e.crc ?? crc32(body)], [4, e.packed ?? data.length], [4, e.size ?? body.length], [2, n.length],
    ];
    const mode = (e.link === undefined ? FILE : LINK) | (e.mode ?? 0o644);
    const first = Buffer.concat([head(0x04034b50, [...common(local), [2, 0]]), local, data]);
    directory.push(Buffer.concat([
      head(0x02014b50, [[2, (3 << 8) | 20], ...common(name), [2, 0], [2, 0], [2, 0], [2, 0], [4, (mode << 16) >>> 0], [4, e.at ?? at]]), name,
    ]));
    parts.push(first);
    at += first.length;
  }
  const size = directory.reduce((n, d) => n + d.length, 0), n = count ?? list.length;
  return Buffer.concat([...parts, ...directory, head(0x06054b50, [[2, 0], [2, 0], [2, n], [2, n], [4, size], [4, at], [2, 0]]), tail]);
}
