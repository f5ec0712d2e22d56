// An engine that lies: a unix socket that answers as Docker would, but for
// one request that it handles as the test says.
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const json = (status, value) => {
  const body = JSON.stringify(value);
  return `HTTP/1.1 ${status} X\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
};
const empty = (status) => `HTTP/1.1 ${status} X\r\nContent-Length: 0\r\n\r\n`;

/** A frame of the attach stream. */
export const frame = (stream, text, length = Buffer.byteLength(text)) => {
  const head = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(length, 4);
  return Buffer.concat([head, Buffer.from(text)]);
};

/** What can be done to one answer: (socket, the honest answer) -> void. */
export const tricks = {
  drop: (s) => s.destroy(),
  end: (s) => s.end(),
  never: () => {},
  slice: async (s, text) => {
    for (const byte of Buffer.from(text)) {
      if (!s.write(Buffer.from([byte]))) await new Promise((r) => s.once('drain', r));
      await new Promise((r) => setImmediate(r));
    }
  },
  half: (s, text) => s.end(text.slice(0, text.length / 2)),
  longer: (s, text) => s.end(text.replace(/Content-Length: (\d+)/, (_, n) => `Content-Length: ${+n + 7}`)),
  shorter: (s, text) => s.write(text.replace(/Content-Length: (\d+)/, (_, n) => `Content-Length: ${Math.max(0, n - 7)}`)),
  twice: (s, text) => s.write(text.replace(/Content-Length: \d+/, '$&\r\nContent-Length: 3')),
  500: (s) => s.write(json(500, { message: 'something broke' })),
  409: (s) => s.write(json(409, { message: 'conflict' })),
  404: (s) => s.write(json(404, { message: 'no such thing' })),
  garbage: (s) => s.write(json(200, 0).replace('0', '{').replace('Length: 1', 'Length: 1')),
  null: (s) => s.write(json(200, null)),
  array: (s) => s.write(json(200, [[], {}, 'x'])),
  noise: (s) => s.write('\0\x01\x02 not HTTP at all\r\n\r\n'),
};

export class EvilDocker {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), 'mo-evil-'));
    this.host = `unix://${join(this.dir, 'sock')}`;
    this.boxes = new Map();
    this.sockets = new Set();
    this.seen = [];
    this.next = 1;
    this.honest();
    process.once('exit', (this.clean = () => rmSync(this.dir, { recursive: true, force: true })));
  }

  honest() {
    this.on = () => false;
  }

  /** Handle requests that match with the trick; the first `times` of them. */
  lie(what, trick, times = Infinity) {
    this.on = (line, socket, answer) => {
      if (!what.test(line) || times-- <= 0) return false;
      trick(socket, answer);
      return true;
    };
  }

  /** An event, to whom listens last. */
  tell(event) {
    const text = `${JSON.stringify(event)}\n`;
    this.events.write(`${text.length.toString(16)}\r\n${text}\r\n`);
  }

  listen() {
    this.server = net.createServer((s) => this.accept(s));
    return new Promise((r) => this.server.listen(join(this.dir, 'sock'), () => r(this)));
  }

  async close() {
    for (const s of this.sockets) s.destroy();
    await new Promise((r) => this.server.close(r));
    process.removeListener('exit', this.clean);
    this.clean();
  }

  accept(socket) {
    let buf = Buffer.alloc(0);
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('data', (d) => {
      if (socket.attached) return this.input(socket, d);
      buf = Buffer.concat([buf, d]);
      for (;;) {
        const end = buf.indexOf('\r\n\r\n');
        if (end < 0) return undefined;
        const head = buf.subarray(0, end).toString();
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (buf.length < end + 4 + length) return undefined;
        const body = buf.subarray(end + 4, end + 4 + length).toString();
        buf = buf.subarray(end + 4 + length);
        this.request(socket, head.split('\r\n')[0], body);
      }
    });
  }

  input(socket, data) {
    socket.write(frame(1, data.toString()));
  }

  request(socket, first, body) {
    const [method, url] = first.split(' ');
    const line = `${method} ${url.replace(/^\/v1\.\d+/, '')}`;
    this.seen.push(line);
    const [answer, then] = this.answer(line, body, socket);
    if (this.on(line, socket, answer)) return;
    socket.write(answer);
    then?.();
  }

  /** [what an honest engine says, what it does then] */
  answer(line, body, socket) {
    const id = /containers\/([\w-]+)/.exec(line)?.[1];
    const box = [...this.boxes.values()].find((b) => b.id === id || b.name === id);
    if (/^GET \/version/.test(line))
      return [json(200, { Version: '99', ApiVersion: '1.41', MinAPIVersion: '1.12', Arch: 'arm64' })];
    if (/^GET \/info/.test(line))
      return [json(200, { NCPU: 8, MemoryLimit: true, SwapLimit: true, PidsLimit: true,
        CpuCfsQuota: true, SecurityOptions: ['name=seccomp,profile=default'] })];
    if (/^GET \/images\/.*\/json/.test(line)) return [json(200, { Id: 'x' })];
    if (/^GET \/events/.test(line))
      return ['HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n', () => { this.events = socket; }];
    if (/^POST \/containers\/create/.test(line)) return this.create(line, body);
    if (/^GET \/containers\/json/.test(line))
      return [json(200, [...this.boxes.values()].map((b) => ({ Id: b.id, Labels: b.Labels, State: 'running' })))];
    if (!box) return [json(404, { message: 'no such container' })];
    if (/^GET .*\/json$/.test(line)) return [json(200, this.inspect(box))];
    if (/\/attach/.test(line))
      return ['HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n',
        () => { socket.attached = true; box.socket = socket; }];
    if (/\/start/.test(line)) {
      box.running = true;
      return [empty(204)];
    }
    if (/^DELETE/.test(line)) {
      this.boxes.delete(box.id);
      return [empty(204), () => box.socket?.end()];
    }
    return [empty(204)];
  }

  create(line, body) {
    const { HostConfig, ...Config } = JSON.parse(body);
    const id = String(this.next++).padStart(64, '0');
    const name = /name=([\w-]+)/.exec(line)[1];
    this.boxes.set(id, { id, name, Config, HostConfig, Labels: Config.Labels, running: false });
    return [json(201, { Id: id, Warnings: [] })];
  }

  inspect(box) {
    return { Id: box.id, Image: box.Config.Image, Mounts: [], Config: box.Config,
      HostConfig: box.HostConfig, State: { Running: box.running, ...box.state } };
  }
}
