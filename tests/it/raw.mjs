// Clients with no manners: websocket frames and Engine.IO requests put on the
// wire by hand, so that a test can say what no library would.
import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import { until, within } from './server.mjs';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export const OP = {
  cont: 0,
  text: 1,
  binary: 2,
  close: 8,
  ping: 9,
  pong: 10,
};

function lengthBytes(n) {
  if (n < 126) return Buffer.from([n]);
  if (n <= 0xffff) {
    const b = Buffer.from([126, 0, 0]);
    b.writeUInt16BE(n, 1);
    return b;
  }
  const b = Buffer.alloc(9, 0);
  b[0] = 127;
  b.writeBigUInt64BE(BigInt(n), 1);
  return b;
}

/** One frame as a client sends it. `claim`: a length other than the real. */
export function frame(
  op,
  payload = '',
  { fin = true, rsv = 0, masked = true, claim } = {},
) {
  const data = Buffer.from(payload);
  const length = lengthBytes(claim ?? data.length);
  const first = Buffer.from([(fin ? 0x80 : 0) | rsv | op]);
  if (!masked) return Buffer.concat([first, length, data]);
  const key = randomBytes(4);
  length[0] |= 0x80;
  for (let i = 0; i < data.length; i++) data[i] ^= key[i & 3];
  return Buffer.concat([first, length, key, data]);
}

export const text = (s, how) => frame(OP.text, s, how);

export function closeFrame(code, reason = '') {
  const b = Buffer.from([code >> 8, code & 255]);
  return frame(OP.close, Buffer.concat([b, Buffer.from(reason)]));
}

/** The request head of a websocket handshake, as bytes. */
export function wsHead(port, { sid, headers = {}, query = '' } = {}) {
  const all = {
    Host: `localhost:${port}`,
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
    ...headers,
  };
  const lines = Object.entries(all)
    .filter(([, v]) => v !== undefined)
    .map(([k, v]) => `${k}: ${v}\r\n`);
  const more = (sid ? `&sid=${sid}` : '') + query;
  return Buffer.from(
    `GET /socket.io/?EIO=4&transport=websocket${more} HTTP/1.1\r\n` +
      `${lines.join('')}\r\n`,
  );
}

/** Takes the first whole server frame off `buf`: {op, data, rest} or null. */
function takeFrame(buf) {
  if (buf.length < 2) return null;
  let at = 2;
  let n = buf[1] & 127;
  if (n === 126) {
    if (buf.length < 4) return null;
    n = buf.readUInt16BE(2);
    at = 4;
  } else if (n === 127) {
    if (buf.length < 10) return null;
    n = Number(buf.readBigUInt64BE(2));
    at = 10;
  }
  if (buf.length < at + n) return null;
  return {
    op: buf[0] & 15,
    first: buf[0],
    masked: !!(buf[1] & 128),
    data: buf.subarray(at, at + n),
    rest: buf.subarray(at + n),
  };
}

/** A TCP connection whose input is an HTTP head, then websocket frames. */
export class RawWs {
  /** Connect without saying anything. */
  static async connect(port) {
    const socket = net.connect(port, '127.0.0.1');
    const raw = new RawWs(socket);
    await within(
      new Promise((resolve, reject) => {
        socket.once('connect', resolve);
        socket.once('error', reject);
      }),
      'a TCP connection',
    );
    return raw;
  }

  /** Connect and shake hands; options as for wsHead. */
  static async open(port, options) {
    const raw = await RawWs.connect(port);
    raw.write(wsHead(port, options));
    await raw.head();
    return raw;
  }

  /** Open a session and CONNECT it: a socket that can send events. */
  static async socket(port, options) {
    const raw = await RawWs.open(port, options);
    raw.write(text('40'));
    await raw.message((m) => m.startsWith('40'));
    return raw;
  }

  constructor(socket) {
    this.socket = socket;
    this.buf = Buffer.alloc(0);
    this.texts = [];
    this.pongs = 0;
    this.closed = false;
    socket.setNoDelay(true);
    socket.on('data', (d) => this.take(d));
    socket.on('error', () => {});
    socket.on('end', () => (this.ended = true));
    this.gone = new Promise((resolve) =>
      socket.once('close', () => {
        this.closed = true;
        resolve();
      }),
    );
  }

  take(data) {
    this.buf = this.buf.length ? Buffer.concat([this.buf, data]) : data;
    if (!this.status && !this.takeHead()) return;
    for (;;) {
      const f = takeFrame(this.buf);
      if (!f) return;
      this.buf = f.rest;
      this.onFrame(f);
    }
  }

  takeHead() {
    const end = this.buf.indexOf('\r\n\r\n');
    if (end < 0) return false;
    this.headText = this.buf.subarray(0, end).toString('latin1');
    this.status = Number(this.headText.split(' ')[1]);
    this.buf = this.buf.subarray(end + 4);
    return this.status === 101;
  }

  onFrame(f) {
    if (f.op === OP.text) this.texts.push(f.data.toString());
    if (f.op === OP.pong) this.pongs++;
    if (f.op === OP.close) {
      this.code = f.data.length ? f.data.readUInt16BE(0) : 1005;
      this.reason = f.data.subarray(2).toString();
    }
    if (f.first & 0x70 || f.masked) this.rude = f;
  }

  write(bytes) {
    return this.socket.write(bytes);
  }

  /** write(), look at what came, and wait while the kernel takes no more. */
  async push(bytes) {
    await new Promise(setImmediate);
    if (this.closed || this.socket.destroyed || this.write(bytes)) return;
    await within(
      Promise.race([
        new Promise((resolve) => this.socket.once('drain', resolve)),
        this.gone,
      ]),
      'the server to read',
    );
  }

  async head() {
    await until(() => this.status || this.closed, 'an HTTP head');
    return this.status;
  }

  /** The first text so far, or to come, for which fits() is true. */
  async message(fits) {
    await until(() => this.texts.some(fits) || this.closed, 'a message');
    const i = this.texts.findIndex(fits);
    if (i < 0) throw new Error(`closed with ${this.code} ${this.reason}`);
    return this.texts.splice(i, 1)[0];
  }

  /** The close code the server sent before it closed; 0: none. */
  async closing() {
    await until(() => this.code || this.ended || this.closed, 'a close');
    if (!this.socket.destroyed) this.socket.end();
    await within(this.gone, 'the end of the connection');
    return this.code ?? 0;
  }

  destroy() {
    this.socket.destroy();
  }
}

export function acceptFor(key) {
  return createHash('sha1').update(key + GUID).digest('base64');
}

/** Engine.IO polling by hand. */
export class RawPoll {
  static async open(port, query = '') {
    const raw = new RawPoll(port, query);
    const { status, body } = await raw.get();
    if (status !== 200) throw new Error(`${status} ${body}`);
    raw.sid = JSON.parse(body.slice(1)).sid;
    return raw;
  }

  /** A session with a socket on it. */
  static async socket(port, query) {
    const raw = await RawPoll.open(port, query);
    await raw.post('40');
    const { body } = await raw.get();
    if (!body.startsWith('40')) throw new Error(body);
    return raw;
  }

  constructor(port, query = '') {
    this.port = port;
    this.query = query;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  }

  request(method, body, { eio = '4', sid = this.sid, headers = {} } = {}) {
    const path =
      `/socket.io/?EIO=${eio}&transport=polling` +
      `${sid ? `&sid=${sid}` : ''}${this.query}`;
    const answer = new Promise((resolve, reject) => {
      const rq = http.request(
        { port: this.port, path, method, agent: this.agent, headers },
        (rs) => {
          let text = '';
          rs.setEncoding('utf8');
          rs.on('data', (d) => (text += d));
          rs.on('end', () => resolve({ status: rs.statusCode, body: text }));
          rs.on('error', reject);
        },
      );
      rq.on('error', reject);
      rq.end(body);
    });
    return within(answer, `${method} ${path}`, 60_000);
  }

  get(how) {
    return this.request('GET', undefined, how);
  }

  post(body, how) {
    return this.request('POST', body, how);
  }

  /** Poll until a packet fits; it and those after it are lost. */
  async packet(fits) {
    for (;;) {
      const { status, body } = await this.get();
      if (status !== 200) throw new Error(`${status} ${body}`);
      const found = body.split('\x1e').find(fits);
      if (found !== undefined) return found;
    }
  }

  /** End the session too; that it may be gone already is no matter. */
  async close() {
    await this.post('1').catch(() => {});
    this.agent.destroy();
  }
}
