// A17: the stream that carries the connections of a docker box whose engine is
// elsewhere. Its two ends lie to each other: forged frames, floods, ends in the
// middle. Judges: the other end goes on with the next honest peer, and keeps
// its limits.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { build, eventually, noNative } from '../lib/sessions.mjs';

const [HELLO, OPEN, DATA, CREDIT, EOF, RESET, QUERY, ANSWER] = [1, 2, 3, 4, 5, 6, 7, 8];
const PAD = 8 + 16384 + 1 + 2048;
const frame = (type, id, data = Buffer.alloc(0), { zero = 0, length = data.length, last = 0 } = {}) => {
  const head = Buffer.alloc(8);
  head[0] = type;
  head[1] = zero;
  head.writeUInt16BE(length, 2);
  head.writeUInt32BE(id, 4);
  return Buffer.concat([head, data, Buffer.from([last])]);
};
const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32BE(n); return b; };

/** The orchestrator's end, played by the test, of mo-box in a namespace. */
class Carrier {
  constructor(ports) {
    // The shell stays in the namespace, to be the program of the box.
    this.shell = spawn('unshare', ['-n', 'sh', '-c', `exec 3>&2; "${join(build, 'launcher/mo-box')}" --network ${ports} - <&4 >&5 2>&3 4<&- 5>&- & echo $!; exec sh -s 4<&- 5>&-`],
      { stdio: ['pipe', 'pipe', 'pipe', 'ignore', 'pipe', 'pipe'] });
    this.said = '';
    this.errors = '';
    this.frames = [];
    this.bytes = Buffer.alloc(0);
    this.in = this.shell.stdio[4];
    this.in.on('error', () => {});
    this.shell.stdin.on('error', () => {});
    this.shell.stdout.on('data', (d) => { this.said += d; });
    this.shell.stderr.on('data', (d) => { this.errors += d; });
    this.shell.stdio[5].on('data', (d) => {
      this.bytes = Buffer.concat([this.bytes, d]);
      this.parse();
    });
  }

  async ready() {
    await eventually('its number', () => /^\d+\n/.test(this.said));
    this.pid = Number(/^\d+/.exec(this.said)[0]);
    await this.greet();
    return this;
  }

  /** Frames after the last greeting that was answered. */
  parse() {
    if (!this.synced) {
      const at = this.bytes.indexOf(frame(HELLO, 0, Buffer.concat([this.nonce, Buffer.from([1])])));
      if (at < 0) return;
      this.synced = true;
      this.bytes = this.bytes.subarray(at + 26);
    }
    while (this.bytes.length >= 9) {
      const n = this.bytes.readUInt16BE(2);
      if (this.bytes.length < 9 + n) return;
      this.frames.push({ type: this.bytes[0], id: this.bytes.readUInt32BE(4), data: Buffer.from(this.bytes.subarray(8, 8 + n)) });
      this.bytes = this.bytes.subarray(9 + n);
    }
  }

  async greet() {
    this.synced = false;
    this.frames = [];
    this.nonce = randomBytes(16);
    this.in.write(Buffer.concat([Buffer.alloc(PAD, 0xff), frame(HELLO, 0, Buffer.concat([this.nonce, Buffer.from([0])]))]));
    await eventually('an answer', () => this.synced);
  }

  async next(type, id) {
    let at;
    await eventually(`frame ${type}`, () => (at = this.frames.findIndex((f) => f.type === type && (id === undefined || f.id === id))) >= 0);
    return this.frames.splice(at, 1)[0];
  }

  /** What a command in the box prints. */
  async box(command) {
    const mark = `done-${randomBytes(6).toString('hex')}`;
    this.shell.stdin.write(`${command}\necho ${mark}\n`);
    await eventually(command, () => this.said.includes(mark));
    const text = this.said.slice(this.said.indexOf('\n') + 1, this.said.indexOf(mark));
    this.said = `${this.pid}\n`;
    return text;
  }

  memory() {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'))[1]);
  }

  close() {
    this.in.end();
    this.shell.kill('SIGKILL');
  }
}

/** A program that connects, prints what it gets, and how that ended. wait: a FIFO that it reads first. */
const program = (port, { send = '', wait = '' } = {}) => `/usr/bin/python3 -c '
import socket
s = socket.create_connection(("198.18.0.1", ${port}))
got = b""
try:
    if "${send}": s.sendall(b"${send}")
    if "${wait}": open("${wait}").read()
    while True:
        d = s.recv(65536)
        if not d: break
        got += d
    print(len(got), got[:40].decode("latin1"), "eof")
except OSError as e: print(len(got), got[:40].decode("latin1"), e.errno)'`;

describe('A17: mo-box as the end of the stream', { skip: noNative ? `needs ${noNative}` : false }, () => {
  let x;
  before(async () => { x = await new Carrier('80,443').ready(); });
  after(() => x?.close());

  /** An honest connection works. */
  const works = async () => {
    const said = x.box(program(80, { send: 'hello' }));
    let id; // others may have waited for the greeting
    await eventually('hello', () => (id = x.frames.find((f) => f.type === DATA && String(f.data) === 'hello')?.id));
    assert.equal((await x.next(OPEN, id)).data.toString('hex'), '00000000000000000000ffffc6120001' + '0050');
    x.in.write(Buffer.concat([frame(DATA, id, Buffer.from('there')), frame(EOF, id)]));
    assert.equal((await said).trim(), '5 there eof');
    await x.next(EOF, id);
    x.frames = [];
  };

  test('an honest connection', works);

  test('names: a query and its answer, from the address that was asked', async () => {
    const said = x.box(`/usr/bin/python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"question", ("8.8.8.8", 53))
print(s.recvfrom(100))'`);
    const q = await x.next(QUERY);
    assert.equal(q.data.toString(), 'question');
    x.in.write(Buffer.concat([frame(ANSWER, q.id + 64, Buffer.from('forged')), frame(ANSWER, q.id, Buffer.from('answer'))]));
    assert.match(await said, /b'answer', \('8\.8\.8\.8', 53\)/);
  });

  const forged = {
    'an id that was never opened': (id) => frame(DATA, id + 100, Buffer.from('x')),
    'a type that is not known': () => frame(10, 1),
    'a file that nobody wants': () => frame(9, 1, Buffer.from('\x01x')),
    'a type of the other end': (id) => frame(OPEN, id + 1, Buffer.alloc(18, 1)),
    'a length that is too large': (id) => frame(DATA, id, Buffer.from('x'), { length: 16385 }),
    'no data': (id) => frame(DATA, id),
    'a byte that is not 0': (id) => frame(EOF, id, undefined, { zero: 1 }),
    'a last byte that is not 0': (id) => frame(DATA, id, Buffer.from('x'), { last: 1 }),
    'credit of 0': (id) => frame(CREDIT, id, u32(0)),
    'credit beyond the window': (id) => frame(CREDIT, id, u32(65536)),
    'bytes beyond the window': (id) => Buffer.concat(Array.from({ length: 5000 }, () => frame(DATA, id, Buffer.alloc(16384)))),
    'data after an end': (id) => Buffer.concat([frame(EOF, id), frame(DATA, id, Buffer.from('x'))]),
    'a second end': (id) => Buffer.concat([frame(EOF, id), frame(EOF, id)]),
    'a greeting without its row': () => frame(HELLO, 0, Buffer.alloc(17)),
    'noise': () => randomBytes(300000),
    'an end in the middle': (id) => frame(DATA, id, Buffer.alloc(1000)).subarray(0, 500),
  };
  for (const [name, make] of Object.entries(forged)) test(`forged: ${name}`, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'mo-a17-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const wait = name.startsWith('bytes') ? join(dir, 'fifo') : '';
    if (wait) execFileSync('mkfifo', [wait]);
    const said = x.box(program(80, { wait }));
    const { id } = await x.next(OPEN);
    x.in.write(make(id));
    await x.greet(); // the next orchestrator
    if (wait) writeFileSync(wait, '');
    const got = (await said).trim();
    assert.match(got, name.includes(' end') ? /(104|eof)$/ : / 104$/, 'the connection was reset');
    if (!wait) assert.match(got, /^0 /, 'no byte of a bad frame arrives');
    await works();
  });

  test('more connections than it holds wait; the rest of them come later', async () => {
    const said = x.box(`/usr/bin/python3 -c '
import socket, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
all = [socket.create_connection(("198.18.0.1", 80)) for i in range(700)]
for s in all: s.shutdown(socket.SHUT_WR)
print(sum(s.recv(10) == b"" for s in all))'`);
    await eventually('512', () => x.frames.filter((f) => f.type === OPEN).length === 512);
    const ids = () => x.frames.filter((f) => f.type === OPEN).map((f) => f.id);
    const answered = new Set();
    const answer = () => ids().filter((id) => !answered.has(id)).forEach((id) => { answered.add(id); x.in.write(frame(EOF, id)); });
    await eventually('700', () => { answer(); return ids().length === 700; });
    answer();
    assert.equal((await said).trim(), '700');
    x.frames = [];
    await works();
  });

  test('an orchestrator that gives no credit: programs wait, memory is bounded', async () => {
    const before = x.memory();
    const said = x.box(`/usr/bin/python3 -c '
import socket
all = [socket.create_connection(("198.18.0.1", 443)) for i in range(100)]
sent = 0
for s in all:
    s.settimeout(0.05)
    try:
        while True: sent += s.send(bytes(65536))
    except OSError: pass
print(sent > 0)'`);
    await eventually('all', () => x.frames.filter((f) => f.type === OPEN).length === 100);
    assert.equal((await said).trim(), 'True');
    const sums = new Map();
    for (const f of x.frames.filter((g) => g.type === DATA)) sums.set(f.id, (sums.get(f.id) ?? 0) + f.data.length);
    for (const n of sums.values()) assert.ok(n <= 65536, `${n} bytes without credit`);
    assert.ok(x.memory() - before < 16384, `${x.memory() - before} KiB more`);
    await x.greet();
    await works();
  });

  test('an orchestrator that does not read: the program goes on when it does', async () => {
    x.shell.stdio[5].pause();
    const said = x.box(`/usr/bin/python3 -c '
import socket
all = []
for i in range(300):
    s = socket.create_connection(("198.18.0.1", 80))
    s.setblocking(False)
    try: s.send(bytes(65536))
    except OSError: pass
    all.append(s)
print("over")'`);
    assert.equal((await said).trim(), 'over');
    x.shell.stdio[5].resume();
    await x.greet();
    await works();
    assert.equal(x.errors, '');
  });

  test('the end of its input ends it', async () => {
    const { pid } = x;
    x.in.end();
    await eventually('it has ended', () => {
      try {
        return /\nState:\s+Z/.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
      } catch {
        return true;
      }
    });
  });
});
