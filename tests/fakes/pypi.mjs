// A package index for the real pip: the simple API as JSON (PEP 691) or HTML
// (PEP 503), and wheels made from objects. A package: { name, version, summary,
// readme, requires: [], scripts: {name: 'module:function'}, urls: {label: url},
// files: {path: text}, sdist: true, yanked: 'reason', entries: further entries of
// the wheel, file: another name of it }. What it refuses is noted in `problems`.
//
//   fake.lies.set(name, sha256)  another hash than the wheel's
//   fake.hangs.add(name)         its wheel never arrives
//   fake.html = true             HTML only, as old indexes
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { gzipSync } from 'node:zlib';

import { zip } from '../lib/zip.mjs';

const JSON_TYPE = 'application/vnd.pypi.simple.v1+json';
export const normal = (name) => name.toLowerCase().replace(/[-_.]+/g, '-');
const hash = (bytes) => createHash('sha256').update(bytes).digest();
const hex = (bytes) => hash(bytes).toString('hex');

export function wheel({ name, version, summary, readme = '', requires = [], scripts = {}, urls = {}, files = {}, entries = {}, record = [], metadata = {} }) {
  const base = `${normal(name).replaceAll('-', '_')}-${version}.dist-info`;
  const all = {
    ...files,
    [`${base}/METADATA`]: [
      'Metadata-Version: 2.1', `Name: ${metadata.name ?? name}`, `Version: ${version}`, ...(summary ? [`Summary: ${summary}`] : []),
      'Author: Ada', ...Object.entries(urls).map(([label, url]) => `Project-URL: ${label}, ${url}`),
      ...requires.map((r) => `Requires-Dist: ${r}`), 'Description-Content-Type: text/markdown', '', readme, '',
    ].join('\n'),
    [`${base}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    ...(Object.keys(scripts).length && {
      [`${base}/entry_points.txt`]: `[console_scripts]\n${Object.entries(scripts).map(([k, v]) => `${k} = ${v}\n`).join('')}`,
    }),
    ...entries,
  };
  const rows = Object.entries(all).map(([path, e]) => {
    const body = Buffer.from(typeof e === 'string' ? e : (e.link ?? e.body));
    return `${path},sha256=${hash(body).toString('base64url')},${body.length}`;
  });
  return zip({ ...all, [`${base}/RECORD`]: `${[...rows, ...record, `${base}/RECORD,,`].join('\n')}\n` });
}

export async function startPypi(packages) {
  const fake = { packages, problems: [], requests: [], lies: new Map(), hangs: new Set(), html: false };
  const files = new Map();

  function filesOf(name) {
    return fake.packages.filter((p) => normal(p.name) === name).map((p) => {
      const stem = `${normal(p.name).replaceAll('-', '_')}-${p.version}`;
      const filename = p.file ?? (p.sdist ? `${stem}.tar.gz` : `${stem}-py3-none-any.whl`);
      const bytes = p.sdist ? gzipSync(Buffer.alloc(1024)) : wheel(p);
      files.set(`/files/${filename}`, { name, bytes });
      return {
        filename, url: `${fake.url}/files/${filename}`, hashes: { sha256: fake.lies.get(name) ?? hex(bytes) },
        yanked: p.yanked ?? false,
      };
    });
  }

  function index(rq, rs, name) {
    if (name !== normal(name)) {
      fake.problems.push(`not normalised: ${name}`);
      rs.writeHead(404);
      return rs.end();
    }
    const list = filesOf(name);
    if (!list.length) {
      rs.writeHead(404);
      return rs.end();
    }
    if (!fake.html && rq.headers.accept?.includes(JSON_TYPE)) {
      rs.writeHead(200, { 'content-type': JSON_TYPE });
      return rs.end(JSON.stringify({ meta: { 'api-version': '1.0' }, name, files: list }));
    }
    rs.writeHead(200, { 'content-type': 'text/html' });
    return rs.end(`<!DOCTYPE html><html><body>${list.map((f) =>
      `<a href="${f.url}#sha256=${f.hashes.sha256}"${f.yanked ? ` data-yanked="${f.yanked}"` : ''}>${f.filename}</a>`).join('\n')}</body></html>`);
  }

  const server = http.createServer((rq, rs) => {
    const { pathname } = new URL(rq.url, 'http://pypi');
    fake.requests.push(pathname);
    const match = /^\/simple\/([^/]+)\/$/.exec(pathname);
    if (rq.method === 'GET' && match) return index(rq, rs, match[1]);
    const file = files.get(decodeURIComponent(pathname));
    if (rq.method === 'GET' && file) {
      if (fake.hangs.has(file.name)) return fake.onHang?.();
      rs.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': file.bytes.length });
      return rs.end(file.bytes);
    }
    fake.problems.push(`${rq.method} ${rq.url}`);
    rs.writeHead(404);
    return rs.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  fake.url = `http://127.0.0.1:${server.address().port}`;
  fake.close = () => { server.closeAllConnections(); server.close(); };
  return fake;
}
