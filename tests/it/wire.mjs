// A client that sends exactly the bytes it is told to, and reads what HTTP/1.1
// answers come back without forgiving anything.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { BIN, within } from './server.mjs';

/** One answer at the start of buf: {status, headers, body, size}, or null
 *  while it is not whole. ended: no more bytes will come. */
function parseOne(buf, isHead, ended) {
  const end = buf.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [line, ...rows] = buf.subarray(0, end).toString('latin1').split('\r\n');
  const status = /^HTTP\/1\.1 (\d{3}) [ -~]+$/.exec(line);
  assert.ok(status, `no status line: ${JSON.stringify(line.slice(0, 100))}`);
  const headers = {};
  for (const row of rows) {
    const m = /^([A-Za-z0-9-]+): (.*)$/.exec(row);
    assert.ok(m, `no header: ${JSON.stringify(row)}`);
    const name = m[1].toLowerCase();
    assert.ok(!(name in headers) || name === 'vary', `${name} twice`);
    headers[name] = m[2];
  }
  const head = { status: Number(status[1]), headers };
  const from = end + 4;
  if (isHead || head.status < 200 || [204, 304].includes(head.status))
    return { ...head, body: '', size: from };
  if (headers['transfer-encoding'] === 'chunked')
    return dechunk(buf, from, head);
  const length = headers['content-length'];
  if (length === undefined) {
    if (!ended) return null;
    return { ...head, body: buf.toString('latin1', from), size: buf.length };
  }
  const size = from + Number(length);
  if (buf.length < size) return null;
  return { ...head, body: buf.toString('latin1', from, size), size };
}

function dechunk(buf, from, head) {
  let body = '';
  for (let at = from; ; ) {
    const eol = buf.indexOf('\r\n', at);
    if (eol < 0) return null;
    const n = parseInt(buf.toString('latin1', at, eol), 16);
    if (buf.length < eol + 2 + n + 2) return null;
    body += buf.toString('latin1', eol + 2, eol + 2 + n);
    at = eol + 2 + n + 2;
    if (n === 0) return { ...head, body, size: at };
  }
}

export class Raw {
  /** where: a port of 127.0.0.1, or what net.connect() takes. */
  static async connect(where, { allowHalfOpen = true } = {}) {
    const to = typeof where === 'number' ? { port: where } : where;
    const socket = net.connect({ host: '127.0.0.1', ...to, allowHalfOpen });
    const raw = new Raw(socket);
    await within(once(socket, 'connect'), 'a connection');
    return raw;
  }

  constructor(socket) {
    this.socket = socket;
    this.buf = Buffer.alloc(0);
    this.heads = []; // for each request: is it HEAD?
    this.taken = 0;
    this.ended = false;
    this.wake = () => {};
    socket.on('data', (d) => {
      this.buf = Buffer.concat([this.buf, d]);
      this.wake();
    });
    socket.on('error', (e) => (this.error = e));
    this.closed = new Promise((resolve) => {
      const end = () => {
        this.ended = true;
        this.wake();
        resolve();
      };
      socket.on('end', end);
      socket.on('close', end);
    });
  }

  send(bytes) {
    this.socket.write(Buffer.from(bytes, 'latin1'));
    return this;
  }

  /** A request with Host, and Content-Length where there is a body. */
  request(method, target, headers = {}, body) {
    this.heads.push(method === 'HEAD');
    const all = {
      Host: `localhost:${this.socket.remotePort}`,
      ...(body === undefined ? {} : { 'Content-Length': body.length }),
      ...headers,
    };
    const rows = Object.entries(all)
      .filter(([, v]) => v !== undefined)
      .map(([k, v]) => `${k}: ${v}\r\n`);
    return this.send(
      `${method} ${target} HTTP/1.1\r\n${rows.join('')}\r\n${body ?? ''}`,
    );
  }

  /** The next answer, informational ones included; null at the end. */
  async answer(ms = 20_000) {
    const next = async () => {
      for (;;) {
        const a = parseOne(this.buf, this.heads[this.taken], this.ended);
        if (a) {
          this.buf = this.buf.subarray(a.size);
          if (a.status >= 200) this.taken++;
          return a;
        }
        if (this.ended) {
          assert.equal(this.buf.toString('latin1'), '', 'half an answer');
          return null;
        }
        await new Promise((resolve) => (this.wake = resolve));
      }
    };
    return within(next(), 'an answer', ms);
  }

  /** All answers until the server closes. */
  async rest(ms = 20_000) {
    const all = [];
    for (let a = await this.answer(ms); a; a = await this.answer(ms))
      all.push(a);
    return all;
  }

  end() {
    this.socket.end();
    return this;
  }

  close() {
    this.socket.destroy();
  }
}

/** One request on a connection of its own. */
export async function ask(where, method, target, headers, body) {
  const c = await Raw.connect(where);
  try {
    return await c.request(method, target, headers, body).answer();
  } finally {
    c.close();
  }
}

/** Run a command that is expected to end by itself: {code, out, err}. */
export async function run(args, { env = {}, cwd, bin = BIN } = {}) {
  const child = spawn(bin, args, {
    cwd,
    env: {
      PATH: process.env.PATH,
      HOME: cwd ?? '/',
      ASAN_OPTIONS: 'detect_leaks=0', // slow, and other tests look for them
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { out: '', err: '' };
  child.stdout.on('data', (d) => (said.out += d));
  child.stderr.on('data', (d) => (said.err += d));
  try {
    const [code] = await within(once(child, 'close'), 'its end');
    return { code, ...said };
  } finally {
    child.kill('SIGKILL');
  }
}

/** application/problem+json with that status and stable code. */
export function assertProblem(answer, status, code) {
  assert.equal(answer?.status, status, answer?.body);
  assert.equal(answer.headers['content-type'], 'application/problem+json');
  const p = JSON.parse(answer.body);
  assert.equal(p.status, status);
  assert.equal(p.type, 'about:blank');
  assert.ok(p.title && p.detail);
  if (code) assert.equal(p.code, code);
}

/** What every answer carries, whoever made it. */
export function assertSafe(answer) {
  const h = answer.headers;
  const csp = h['content-security-policy'] ?? '';
  assert.match(csp, /default-src 'self'/);
  assert.match(csp, /frame-ancestors 'none'/);
  assert.match(csp, /object-src 'none'/);
  assert.match(csp, /base-uri 'none'/);
  assert.equal(h['x-content-type-options'], 'nosniff');
  assert.equal(h['referrer-policy'], 'no-referrer');
  assert.equal(h['cross-origin-opener-policy'], 'same-origin');
  assert.equal(h['cross-origin-resource-policy'], 'same-origin');
  assert.match(h['cache-control'] ?? '', /no-store|no-cache/);
  assert.ok(!('server' in h));
  assert.ok(!Number.isNaN(Date.parse(h.date)));
}
