// What the fake providers share: a server that reads strictly, streams as
// unkindly as the network may, and fails on demand.
//
// A fake answers each request with the next row of its script:
//   { text, thinking, calls: [{ name, args }], stop, usage, ... }  a reply
//   { status, headers, body }                                      a refusal
// and any row may say how it is delivered:
//   bytes: 1        so many bytes a write
//   ends: 'mixed'   LF, CR and CRLF in turn
//   noise: true     comments, pings, unknown events and members
//   escape: true    text cut between UTF-16 units, all of it \uXXXX
//   fault: 'cut'    the connection breaks in the middle of an event
//          'eof'    the stream ends in order, but before its end mark
//          'stall'  it stops coming
//          'garbage' an event that is no JSON
//          'error'  the provider's own error event, after some output
// With an empty script the reply is "ok". A request that breaks a rule of the
// provider is refused as the provider would, and noted in `problems`.
import http from 'node:http';
import { once } from 'node:events';

export class Refusal extends Error {
  constructor(status, body, headers = {}) {
    super(JSON.stringify(body));
    Object.assign(this, { status, body, headers });
  }
}

/** JSON that is UTF-8 and has no key twice; throws. */
export function strictJson(bytes) {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  const value = JSON.parse(text);
  const levels = [];
  const tokens = text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g);
  for (const [token, colon] of tokens) {
    if (token === '{' || token === '[') levels.push(new Set());
    else if (token === '}' || token === ']') levels.pop();
    else if (colon !== undefined) {
      const key = JSON.parse(token.slice(0, token.length - colon.length));
      if (levels.at(-1).has(key)) throw new Error(`the key ${key} stands twice`);
      levels.at(-1).add(key);
    }
  }
  return value;
}

/** Cut into pieces as a model would; by UTF-16 units when `escape`. */
export function pieces(text, { escape = false, piece = 5 } = {}) {
  if (Array.isArray(text)) return text;
  const units = escape ? text.split('') : [...text];
  const out = [];
  for (let i = 0; i < units.length; i += piece)
    out.push(units.slice(i, i + piece).join(''));
  return out;
}

export const json = (value, { escape = false } = {}) =>
  escape
    ? JSON.stringify(value).replace(
        /[\u0080-\uffff]/g,
        (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
    : JSON.stringify(value);

const ENDS = ['\n', '\r\n', '\r'];

/** One SSE event as text. Mixed ends: no LF follows a CR that ends a line. */
function frame({ event, data }, ends, turn) {
  const end = ends === 'mixed' ? ENDS[turn % 3] : '\n';
  const head = event ? `event: ${event}${end}` : '';
  return `${head}data: ${data}${end}${end}`;
}

const pause = () => new Promise(setImmediate);

async function send(rs, bytes, how) {
  const step = how.bytes ?? (how.chunk || bytes.length);
  for (let i = 0; i < bytes.length; i += step) {
    if (rs.destroyed) return;
    rs.write(bytes.subarray(i, i + step));
    if (i % 64 < step) await pause();
  }
}

/** Write the events, as the row says; `fakes` adds its noise and its error. */
async function stream(rs, events, row, fake) {
  rs.writeHead(200, { 'content-type': 'text/event-stream', ...row.headers });
  rs.flushHeaders();
  await row.wait; // a promise: what follows comes after it
  rs.socket?.setNoDelay(true);
  const frames = [];
  events.forEach((event, i) => {
    if (row.noise && i > 0) frames.push(': a comment\n\n', ...fake.noise(i).map((n) => frame(n)));
    frames.push(frame(event, row.ends, i));
  });
  const half = Math.max(1, Math.floor(frames.length * (row.at ?? 0.5)));
  if (row.noise) frames[0] = `\ufeff${frames[0]}`;
  switch (row.fault) {
    case 'cut': {
      const some = Buffer.from(frames.slice(0, half + 1).join(''));
      const last = Buffer.from(frames[half]).length;
      await send(rs, some.subarray(0, some.length - Math.ceil(last / 2)), row);
      await pause();
      rs.socket?.destroy();
      return;
    }
    case 'eof':
      await send(rs, Buffer.from(frames.slice(0, half).join('')), row);
      break;
    case 'stall':
      await send(rs, Buffer.from(frames.slice(0, half).join('')), row);
      return;
    case 'garbage':
      await send(rs, Buffer.from(`${frames.slice(0, half).join('')}data: {"type":"conte\n\n`), row);
      break;
    case 'error':
      await send(rs, Buffer.from(frames.slice(0, half).join('') + frame(fake.error(row))), row);
      break;
    default:
      await send(rs, Buffer.from(frames.join('')), row);
  }
  rs.end();
}

async function body(rq) {
  const parts = [];
  for await (const part of rq) parts.push(part);
  return Buffer.concat(parts);
}

/**
 * provider: { refuse(status, type, message) => Refusal, noise(i), error(row),
 *   routes: [[method, RegExp, handler]] }. A handler gets { fake, rq, url,
 *   match, body, row } and returns an object (JSON), or { events }.
 */
export async function serve(provider, options = {}) {
  const fake = {
    key: 'sk-fake-0123456789',
    ...options,
    script: [],
    requests: [],
    problems: [],
    noise: provider.noise,
    error: provider.error,
    /** The next row, or what an empty script says. */
    next() {
      return this.script.shift() ?? { text: 'ok' };
    },
  };
  const answer = async (rq, rs) => {
    // A proxy's path in front, as in http://proxy/api.openai.com/v1.
    const url = new URL(rq.url.replace(/^\/api\.openai\.com\//, '/'), 'http://fake');
    const route = provider.routes.find(
      ([method, path]) => rq.method === method && path.test(url.pathname),
    );
    if (!route) throw provider.refuse(404, 'not_found', `no ${rq.method} ${url.pathname}`);
    const bytes = await body(rq);
    let parsed;
    if (rq.method === 'POST') {
      try {
        parsed = strictJson(bytes);
      } catch (e) {
        throw provider.refuse(400, 'invalid', e.message);
      }
      if (!/^application\/json/.test(rq.headers['content-type'] ?? ''))
        throw provider.refuse(400, 'invalid', 'content-type');
    }
    fake.requests.push({ path: url.pathname, headers: rq.headers, body: parsed, bytes });
    const said = await route[2]({
      fake, rq, url, body: parsed, match: route[1].exec(url.pathname),
    });
    if (said.events) return stream(rs, said.events, said.row, fake);
    rs.writeHead(200, { 'content-type': 'application/json', ...said.headers });
    rs.end(JSON.stringify(said.json));
  };
  const server = http.createServer((rq, rs) =>
    answer(rq, rs).catch((e) => {
      if (!(e instanceof Refusal)) {
        fake.problems.push(e.stack);
        e = provider.refuse(500, 'broken', String(e.stack));
      } else if (!e.scripted) {
        fake.problems.push(e.message);
      }
      if (rs.headersSent) return rs.destroy();
      const text = typeof e.body === 'string' ? e.body : JSON.stringify(e.body);
      rs.writeHead(e.status, { 'content-type': 'application/json', ...e.headers });
      rs.end(text);
    }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  fake.origin = `http://127.0.0.1:${server.address().port}`;
  fake.url = fake.origin + (provider.base ?? '');
  fake.close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return fake;
}

/** A row that is a refusal; it is no problem of the client's. */
export function scripted(row, fallback) {
  const refusal = new Refusal(row.status, row.body ?? fallback, row.headers);
  refusal.scripted = true;
  return refusal;
}

/**
 * With { window } a fake refuses what has more tokens, four bytes each. That
 * is no mistake of the client's, who cannot count them; it is counted in
 * `long`. say(tokens, window) is the provider's refusal.
 */
export function checkWindow(fake, say) {
  const tokens = Math.ceil(fake.requests.at(-1).bytes.length / 4);
  if (!fake.window || tokens <= fake.window) return;
  fake.long = (fake.long ?? 0) + 1;
  throw Object.assign(say(tokens, fake.window), { scripted: true });
}

/** Only these members; the first other one, or undefined. */
export const unknown = (object, names) =>
  Object.keys(object).find((key) => !names.includes(key));

export const isObject = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);
export const blank = (v) => typeof v !== 'string' || v.trim() === '';

const MAGIC = [
  ['image/png', '89504e470d0a1a0a'], ['image/jpeg', 'ffd8ff'], ['image/gif', '474946383961'], ['image/gif', '474946383761'],
];
/** The type of an image by its bytes, or ''. */
export function typeOf(base64) {
  const bytes = Buffer.from(base64, 'base64').toString('hex');
  if (/^52494646.{8}57454250/.test(bytes)) return 'image/webp';
  return MAGIC.find(([, magic]) => bytes.startsWith(magic))?.[0] ?? '';
}
