// A registry of npm packages for the real npm: packuments and tarballs, made
// from objects. A package: { name, version, files: {path: text}, ...the rest of
// package.json }. What it refuses is noted in `problems`.
//
//   fake.lies.set(name, integrity)  another integrity than the tarball's
//   fake.hangs.add(name)            its tarball never arrives
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { gzipSync } from 'node:zlib';

/** One entry of a ustar archive. */
function entry(path, body, { type = '0', link = '', mode = 0o644 } = {}) {
  const head = Buffer.alloc(512);
  const put = (text, at) => head.write(text, at, 'latin1');
  const octal = (n, digits) => n.toString(8).padStart(digits - 1, '0');
  put(path, 0);
  put(octal(mode, 8), 100);
  put(octal(0, 8), 108);
  put(octal(0, 8), 116);
  put(octal(body.length, 12), 124);
  put(octal(0, 12), 136);
  put('        ', 148);
  put(type, 156);
  put(link, 157);
  put('ustar\u000000', 257);
  put(`${octal(head.reduce((a, b) => a + b, 0), 7)}\u0000 `, 148);
  return Buffer.concat([head, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}

function pack({ files = {}, ...json }) {
  const all = { 'package.json': JSON.stringify(json), ...files };
  const parts = Object.entries(all).map(([path, body]) =>
    typeof body === 'string'
      ? entry(`package/${path}`, Buffer.from(body))
      : entry(`package/${path}`, Buffer.alloc(0), { type: '2', link: body.link }));
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(1024)]));
}

export async function startNpm(packages) {
  const fake = { packages, problems: [], requests: [], lies: new Map(), hangs: new Set() };
  const tarballs = new Map();

  function packument(name) {
    const versions = {};
    for (const p of fake.packages.filter((x) => x.name === name)) {
      const { files, ...json } = p;
      const bytes = pack(p);
      const path = `/tarballs/${encodeURIComponent(`${p.name}@${p.version}`)}.tgz`;
      tarballs.set(path, { name, bytes });
      versions[p.version] = {
        ...json,
        ...(['preinstall', 'install', 'postinstall'].some((s) => json.scripts?.[s]) && { hasInstallScript: true }),
        dist: {
          tarball: fake.url + path,
          shasum: createHash('sha1').update(bytes).digest('hex'),
          integrity: fake.lies.get(name) ?? `sha512-${createHash('sha512').update(bytes).digest('base64')}`,
        },
      };
    }
    const all = Object.keys(versions);
    return all.length && { name, 'dist-tags': { latest: all.at(-1) }, versions };
  }

  const server = http.createServer((rq, rs) => {
    fake.requests.push(rq.url);
    if (rq.method !== 'GET') {
      fake.problems.push(`${rq.method} ${rq.url}`);
      return rs.writeHead(405).end();
    }
    const tarball = tarballs.get(rq.url);
    if (tarball && fake.hangs.has(tarball.name)) return fake.onHang?.();
    if (tarball) return rs.writeHead(200, { 'content-type': 'application/octet-stream' }).end(tarball.bytes);
    const doc = packument(decodeURIComponent(rq.url.slice(1)));
    if (!doc) return rs.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"Not found"}');
    return rs.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(doc));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  fake.url = `http://127.0.0.1:${server.address().port}`;
  fake.sha256 = (name) => createHash('sha256').update(pack(fake.packages.findLast((p) => p.name === name))).digest('hex');
  fake.close = () => { server.closeAllConnections(); server.close(); };
  return fake;
}
