// codec/ws against npm's ws, in both roles, three ways:
//   - the same bytes to both decoders, whole and cut: the same events;
//   - the same bytes over TCP to two echo servers and to two echo clients: the
//     same frames come back, close codes included;
//   - each of them in conversation with the other.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import WebSocket, { Receiver, WebSocketServer } from 'ws';
import { Peer } from './peer.mjs';
import rows, { CAP, wire } from './ws_rows.mjs';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const acceptFor = (key) =>
  createHash('sha1').update(key + GUID).digest('base64');
const sides = ['server', 'client'];

/** The bytes of a row as they reach the given side. */
const input = (row, side) => wire(row, (side === 'server') !== !!row.flip);

function expectation(row, ours, theirs) {
  if (!row.differs) {
    assert.deepEqual(ours, theirs);
    return;
  }
  assert.deepEqual(ours, row.differs.ours, `ours: ${row.differs.why}`);
  assert.deepEqual(theirs, row.differs.theirs, `theirs: ${row.differs.why}`);
}

// --- decoders

function statusOf(error) {
  const key = Object.getOwnPropertySymbols(error).find(
    (s) => s.description === 'status-code',
  );
  return key && error[key];
}

async function theirEvents(side, raw, step) {
  const seen = [];
  const r = new Receiver({
    isServer: side === 'server',
    maxPayload: CAP,
    extensions: {},
  });
  const note = (name) => (data) => seen.push(`${name} ${data.toString('hex')}`);
  r.on('message', (data, binary) => note(binary ? 'binary' : 'text')(data));
  r.on('ping', note('ping'));
  r.on('pong', note('pong'));
  r.on('conclude', (code, reason) => note(`close ${code}`)(reason));
  r.on('error', (e) => statusOf(e) && seen.push(`error ${statusOf(e)}`));
  for (let i = 0; i < raw.length && !r.destroyed; i += step) {
    r.write(Buffer.from(raw.subarray(i, i + step)));
    if (step > 1) await new Promise(setImmediate);
  }
  await new Promise(setImmediate);
  r.destroy();
  return seen;
}

describe('decoders', () => {
  let peer;
  before(() => {
    peer = new Peer('ws_peer', 'decode');
  });
  after(async () => assert.equal(await peer.stop(), 0));

  async function ourEvents(side, raw, step) {
    const hex = raw.toString('hex');
    const line = await peer.ask(`${side} ${CAP} ${step} ${hex}`);
    return line ? line.split(' | ') : [];
  }

  for (const side of sides)
    for (const row of rows)
      test(`${side}: ${row.name}`, async () => {
        const raw = input(row, side);
        const theirs = await theirEvents(side, raw, raw.length + 1);
        expectation(row, await ourEvents(side, raw, 0), theirs);
        const step = raw.length > 1000 ? 997 : 1;
        expectation(
          row,
          await ourEvents(side, raw, step),
          row.differs ? theirs : await theirEvents(side, raw, step),
        );
      });

  // Not in the table: ws keeps a buffer for each fragment and so has to count
  // them, we keep their bytes only.
  test('as many one-byte fragments as the cap allows', async () => {
    const n = CAP;
    const frames = Array.from({ length: n }, (_, i) => [
      i === n - 1 ? 0x80 : i === 0 ? 0x02 : 0x00,
      1,
      0x78,
    ]);
    const raw = Buffer.from(frames.flat());
    assert.deepEqual(await ourEvents('client', raw, 0), [
      `binary ${'78'.repeat(n)}`,
    ]);
  });
});

// --- over TCP

const names = { 1: 'text', 2: 'binary', 8: 'close', 9: 'ping', 10: 'pong' };

function payloadLength(raw) {
  const len7 = raw[1] & 127;
  if (len7 === 126) return [raw.readUInt16BE(2), 4];
  if (len7 === 127) return [Number(raw.readBigUInt64BE(2)), 10];
  return [len7, 2];
}

function describeFrame(op, body) {
  if (op !== 8) return `${names[op]} ${body.toString('hex')}`;
  const code = body.length ? body.readUInt16BE(0) : 'none';
  return `close ${code} ${body.subarray(2).toString('hex')}`;
}

/** What was sent back, frame by frame; masked says who sent it. */
function readFrames(raw, masked) {
  const seen = [];
  while (raw.length) {
    assert.equal(raw[0] & 0xf0, 0x80, 'whole frames, no reserved bits');
    assert.equal(raw[1] >> 7, masked ? 1 : 0, 'masked as its role wants');
    const [size, head] = payloadLength(raw);
    const at = head + (masked ? 4 : 0);
    const key = masked ? raw.subarray(head, at) : [0, 0, 0, 0];
    const body = raw.subarray(at, at + size).map((c, i) => c ^ key[i % 4]);
    assert.equal(body.length, size, 'no frame is cut off');
    seen.push(describeFrame(raw[0] & 15, Buffer.from(body)));
    raw = raw.subarray(at + size);
  }
  return seen;
}

/** Everything a socket says, until it ends. */
async function drain(socket) {
  const got = [];
  socket.on('data', (d) => got.push(d));
  socket.on('error', () => {});
  await once(socket, 'close');
  return Buffer.concat(got);
}

function split(raw) {
  const at = raw.indexOf('\r\n\r\n');
  assert.ok(at > 0, 'an HTTP head');
  return [raw.subarray(0, at).toString('latin1'), raw.subarray(at + 4)];
}

/** Raw bytes to a server behind a handshake; the frames it sends back. */
async function askServer(port, raw) {
  const key = randomBytes(16).toString('base64');
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const reply = drain(socket);
  socket.write(
    'GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n' +
      'Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
      `Sec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  socket.end(raw);
  const [head, rest] = split(await reply);
  assert.match(head, /^HTTP\/1\.1 101 /);
  const [, accept] = /^sec-websocket-accept: (.*)$/im.exec(head);
  assert.equal(accept.trim(), acceptFor(key));
  return readFrames(rest, false);
}

/** Raw bytes to whoever dials in; the frames it sends back. */
async function askClient(dial, raw) {
  const server = net.createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const done = dial(server.address().port);
  const [socket] = await once(server, 'connection');
  const reply = drain(socket);
  socket.once('data', (head) => {
    const key = /^sec-websocket-key: (.*)$/im.exec(head.toString())[1].trim();
    socket.end(
      Buffer.concat([
        Buffer.from(
          'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n' +
            'Connection: Upgrade\r\n' +
            `Sec-WebSocket-Accept: ${acceptFor(key)}\r\n\r\n`,
        ),
        raw,
      ]),
    );
  });
  const [, rest] = split(await reply);
  server.close();
  await done;
  return readFrames(rest, true);
}

function echo(ws) {
  ws.on('message', (data, binary) => ws.send(data, { binary }));
  ws.on('error', () => {});
}

async function theirServer() {
  const server = new WebSocketServer({
    port: 0,
    host: '127.0.0.1',
    maxPayload: CAP,
    perMessageDeflate: false,
  });
  server.on('connection', echo);
  await once(server, 'listening');
  return server;
}

async function theirDial(port) {
  const ws = new WebSocket(`ws://127.0.0.1:${port}`, {
    maxPayload: CAP,
    perMessageDeflate: false,
  });
  echo(ws);
  await new Promise((resolve) => ws.on('close', resolve));
}

/** The frames that are answers to a differing row's events. */
const answers = (events) =>
  events.flatMap((e) => {
    const [name, ...rest] = e.split(' ');
    if (name === 'error') return [`close ${rest[0]} `];
    if (name === 'ping') return [`pong ${rest[0]}`];
    return name === 'pong' ? [] : [e];
  });

const onWire = (row) =>
  row.differs
    ? {
        differs: {
          why: row.differs.why,
          ours: answers(row.differs.ours),
          theirs: answers(row.differs.theirs),
        },
      }
    : row;

// --- in conversation

const bye = Buffer.from('good bye').toString('hex');
const lengths = [0, 1, 125, 126, 65535, 65536, CAP];

/** Send, expect the echo, ping, close; ws is theirs, the echo is ours. */
async function converse(ws) {
  for (const n of lengths)
    for (const binary of [true, false]) {
      const data = binary ? randomBytes(n) : Buffer.alloc(n, 'some text ');
      ws.send(data, { binary });
      const [back, isBinary] = await once(ws, 'message');
      assert.equal(isBinary, binary);
      assert.ok(back.equals(data), `echo of ${n}`);
    }
  const pieces = ['one, ', '', 'two, ', 'three'];
  pieces.forEach((s, i) => ws.send(s, { fin: i === pieces.length - 1 }));
  const [joined] = await once(ws, 'message');
  assert.equal(joined.toString(), 'one, two, three');
  ws.ping('are you there');
  const [pong] = await once(ws, 'pong');
  assert.equal(pong.toString(), 'are you there');
  ws.close(4321, 'good bye');
  const [code, reason] = await once(ws, 'close');
  assert.equal(code, 4321);
  assert.equal(reason.toString(), 'good bye');
}

// --- all of it

describe('echo servers', () => {
  let server, peer, port;
  before(async () => {
    server = await theirServer();
    peer = new Peer('ws_peer', 'serve', CAP);
    port = Number((await peer.line()).split(' ')[1]);
  });
  after(async () => {
    server.close();
    assert.equal(await peer.stop(), 0);
  });

  for (const row of rows)
    test(row.name, async () => {
      const raw = input(row, 'server');
      const ours = await askServer(port, raw);
      await peer.until('end');
      const theirs = await askServer(server.address().port, raw);
      expectation(onWire(row), ours, theirs);
    });

  test('their client in conversation with our server', async () => {
    const ws = new WebSocket(`ws://127.0.0.1:${port}`); // offers deflate
    await once(ws, 'open');
    assert.equal(ws.extensions, '');
    await converse(ws);
    const events = await peer.until('end');
    assert.equal(events.at(-1), `close 4321 ${bye}`);
  });
});

describe('echo clients', () => {
  let peer;
  before(() => {
    peer = new Peer('ws_peer', 'dial', CAP);
  });
  after(async () => assert.equal(await peer.stop(), 0));

  function ourDial(port) {
    peer.send(port);
    return peer.until('end');
  }

  for (const row of rows)
    test(row.name, async () => {
      const raw = input(row, 'client');
      const ours = await askClient(ourDial, raw);
      const theirs = await askClient(theirDial, raw);
      expectation(onWire(row), ours, theirs);
    });

  test('their server in conversation with our client', async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await once(server, 'listening');
    peer.send(server.address().port);
    const [ws] = await once(server, 'connection');
    await converse(ws);
    const events = await peer.until('end');
    assert.equal(events.at(-1), `close 4321 ${bye}`);
    server.close();
  });
});
