// A fake of the MCP Registry, API v0.1: pages, cursors, search in names, the
// newest version. Strict: what the real one refuses is refused, and noted in
// `problems`. `faults` are answers for the next requests instead:
//   { status, headers, body }  bytes as they are
//   { hang: true }             no answer
import http from 'node:http';
import { once } from 'node:events';

const OFFICIAL = 'io.modelcontextprotocol.registry/official';
const NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/;

/** A row as the registry returns it; the newest unless `latest` is false. */
export const row = (server, { status = 'active', latest = true } = {}) => ({
  server: { $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json', ...server },
  _meta: {
    [OFFICIAL]: {
      status, publishedAt: '2026-09-01T10:00:00Z', updatedAt: '2026-09-01T10:00:00Z', isLatest: latest,
    },
  },
});

const isLatest = (r) => r._meta?.[OFFICIAL]?.isLatest;

/** rows: of row(). page: the most rows of an answer, whatever was asked for. */
export async function startRegistry(rows, { page = 100 } = {}) {
  const fake = { rows, faults: [], problems: [], requests: [] };
  const refuse = (rs, status, detail) => {
    fake.problems.push(detail);
    rs.writeHead(status, { 'content-type': 'application/problem+json' });
    rs.end(JSON.stringify({ title: http.STATUS_CODES[status], status, detail }));
  };
  const answer = (rs, value) => {
    rs.writeHead(200, { 'content-type': 'application/json' });
    rs.end(JSON.stringify(value));
  };

  function list(rs, query) {
    for (const key of query.keys())
      if (!['cursor', 'limit', 'search', 'updated_since', 'version', 'include_deleted'].includes(key))
        return refuse(rs, 422, `unexpected query parameter ${key}`);
    const limit = query.has('limit') ? Number(query.get('limit')) : 30;
    if (!Number.isInteger(limit) || limit < 1 || limit > 100)
      return refuse(rs, 422, 'expected number between 1 and 100');
    const from = query.has('cursor') ? Number(/^from:(\d+)$/.exec(query.get('cursor'))?.[1]) : 0;
    if (Number.isNaN(from)) return refuse(rs, 400, 'invalid cursor');
    const word = (query.get('search') ?? '').toLowerCase();
    const all = fake.rows.filter((r) => {
      const { name, version } = r.server;
      const wanted = query.get('version');
      return String(name).toLowerCase().includes(word)
        && (!wanted || (wanted === 'latest' ? isLatest(r) : version === wanted));
    });
    const n = Math.min(limit, page);
    const servers = all.slice(from, from + n);
    const metadata = { count: servers.length };
    if (from + n < all.length) metadata.nextCursor = `from:${from + n}`;
    return answer(rs, { servers, metadata });
  }

  function one(rs, name, version) {
    if (!NAME.test(name)) return refuse(rs, 400, `invalid server name ${name}`);
    const found = fake.rows.find((r) => r.server.name === name
      && (version === 'latest' ? isLatest(r) : r.server.version === version));
    if (found) return answer(rs, found);
    rs.writeHead(404, { 'content-type': 'application/problem+json' });
    return rs.end(JSON.stringify({ title: 'Not Found', status: 404, detail: 'Server not found' }));
  }

  const server = http.createServer((rq, rs) => {
    const url = new URL(rq.url, 'http://registry');
    fake.requests.push(rq.url);
    const fault = fake.faults.shift();
    if (fault?.hang) return undefined;
    if (fault) {
      rs.writeHead(fault.status ?? 200, { 'content-type': 'application/json', ...fault.headers });
      return rs.end(fault.body ?? '');
    }
    if (rq.method !== 'GET') return refuse(rs, 405, rq.method);
    if (url.pathname === '/v0.1/servers') return list(rs, url.searchParams);
    const match = /^\/v0\.1\/servers\/([^/]+)\/versions\/([^/]+)$/.exec(url.pathname);
    if (match) return one(rs, ...match.slice(1).map(decodeURIComponent));
    return refuse(rs, 404, `no endpoint ${url.pathname}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  fake.url = `http://127.0.0.1:${server.address().port}`;
  fake.close = () => { server.closeAllConnections(); server.close(); };
  return fake;
}
