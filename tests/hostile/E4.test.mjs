// HOSTILE E4: websocket garbage against the real server, put on the wire by
// hand. Each row says how the server must close it (RFC 6455); afterwards an
// honest client is served, no descriptor is left and no memory held.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  OP,
  RawWs,
  acceptFor,
  closeFrame,
  frame,
  text,
  wsHead,
} from '../it/raw.mjs';
import { BUILDS, MIB, Server, until } from '../it/server.mjs';

const GROW = 16 * MIB;

async function honest(server) {
  const ws = await RawWs.socket(server.port);
  ws.write(text('420["honest"]'));
  await ws.message((m) => m === '430[]');
  assert.equal(ws.rude, undefined);
  ws.write(closeFrame(1000));
  assert.equal(await ws.closing(), 1000);
}

const bytes = (...n) => Buffer.from(n);
const part = (op, data) => frame(op, data, { fin: false });

/** A 64-bit length put there as it is. */
function length64(hex) {
  const head = Buffer.from(`81ff${hex}01020304`, 'hex');
  return Buffer.concat([head, Buffer.from('abc')]);
}

// [what, bytes after the handshake, close code]
const rows = [
  ['an unmasked frame', frame(OP.text, '40', { masked: false }), 1002],
  ['an unmasked ping', frame(OP.ping, '', { masked: false }), 1002],
  ['RSV1', text('40', { rsv: 0x40 }), 1002],
  ['RSV2', text('40', { rsv: 0x20 }), 1002],
  ['RSV3', text('40', { rsv: 0x10 }), 1002],
  ['RSV1 on a control frame', frame(OP.ping, '', { rsv: 0x40 }), 1002],
  ['opcode 3', frame(3, 'x'), 1002],
  ['opcode 7', frame(7, 'x'), 1002],
  ['opcode 11', frame(11, 'x'), 1002],
  ['opcode 15', frame(15, 'x'), 1002],
  ['length 2^63', length64('8000000000000000'), 1002],
  ['length 2^64-1', length64('ffffffffffffffff'), 1002],
  ['length 2^63-1', length64('7fffffffffffffff'), 1009],
  ['length 2^32', length64('0000000100000000'), 1009],
  ['64 bits for a length of 3', length64('0000000000000003'), 1002],
  ['16 bits for a length of 3', bytes(0x81, 0xfe, 0, 3, 1, 2, 3, 4), 1002],
  ['a fragmented ping', part(OP.ping, 'x'), 1002],
  ['a fragmented close', part(OP.close, bytes(3, 232)), 1002],
  ['a ping of 126 bytes', frame(OP.ping, 'x'.repeat(126)), 1002],
  ['a close of 126 bytes', closeFrame(1000, 'x'.repeat(124)), 1002],
  ['a continuation of nothing', frame(OP.cont, 'x'), 1002],
  [
    'a message inside another',
    Buffer.concat([part(OP.text, '4'), text('x')]),
    1002,
  ],
  [
    'a continuation after the end',
    Buffer.concat([part(OP.text, '3'), frame(OP.cont), frame(OP.cont)]),
    1002,
  ],
  ['text that is not UTF-8', text(bytes(0x34, 0xff)), 1007],
  ['overlong UTF-8', text(bytes(0x34, 0xc0, 0x80)), 1007],
  ['a surrogate in UTF-8', text(bytes(0x34, 0xed, 0xa0, 0x80)), 1007],
  ['over U+10FFFF', text(bytes(0x34, 0xf4, 0x90, 0x80, 0x80)), 1007],
  ['a character cut off', text(bytes(0x34, 0xe2, 0x82)), 1007],
  [
    'bad UTF-8 in a fragment, before the end',
    part(OP.text, bytes(0x34, 0xff)),
    1007,
  ],
  [
    'a character cut off by the last fragment',
    Buffer.concat([part(OP.text, '4'), frame(OP.cont, bytes(0xe2))]),
    1007,
  ],
  ['a binary message', frame(OP.binary, 'x'), 1003],
  ['an empty binary message', frame(OP.binary), 1003],
  ['close 1005 on the wire', closeFrame(1005), 1002],
  ['close 1006 on the wire', closeFrame(1006), 1002],
  ['close 1004', closeFrame(1004), 1002],
  ['close 1015', closeFrame(1015), 1002],
  ['close 1016', closeFrame(1016), 1002],
  ['close 999', closeFrame(999), 1002],
  ['close 0', closeFrame(0), 1002],
  ['close 2999', closeFrame(2999), 1002],
  ['close 5000', closeFrame(5000), 1002],
  ['close 65535', closeFrame(65535), 1002],
  ['a close of one byte', frame(OP.close, 'x'), 1002],
  [
    'a close reason that is not UTF-8',
    frame(OP.close, bytes(3, 232, 0xff)),
    1007,
  ],
  ['a close without a code', frame(OP.close), 1005],
  ['close 1000', closeFrame(1000, 'bye'), 1000],
  ['close 3000', closeFrame(3000), 3000],
  ['close 4999', closeFrame(4999), 4999],
  ['a close, then garbage', Buffer.concat([closeFrame(1000), bytes(255)]), 1000],
  ['plain text', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 1002],
  ['zeros', Buffer.alloc(100_000), 1002],
  ['0xff', Buffer.alloc(100_000, 0xff), 1002],
];

// [what, headers, status]
const handshakes = [
  ['version 12', { 'Sec-WebSocket-Version': '12' }, 400],
  ['version 8, 13', { 'Sec-WebSocket-Version': '8, 13' }, 400],
  ['no version', { 'Sec-WebSocket-Version': undefined }, 400],
  ['no key', { 'Sec-WebSocket-Key': undefined }, 400],
  ['empty key', { 'Sec-WebSocket-Key': '' }, 400],
  ['key of 15 bytes', { 'Sec-WebSocket-Key': btoa('x'.repeat(15)) }, 400],
  ['key of 17 bytes', { 'Sec-WebSocket-Key': btoa('x'.repeat(17)) }, 400],
  ['key not base64', { 'Sec-WebSocket-Key': '!'.repeat(24) }, 400],
  ['upgrade to another protocol', { Upgrade: 'h2c' }, 400],
  ['no upgrade', { Upgrade: undefined }, 400],
  ['no connection upgrade', { Connection: 'keep-alive' }, 400],
];

for (const { name, bin } of BUILDS) {
  describe(`E4, ${name} build`, () => {
    let server;
    let start;

    before(async () => {
      server = await Server.start(['--test-echo'], { bin });
      await honest(server);
      start = await server.measure();
    });

    after(() => server.stopClean());

    const judged = (what, run) =>
      test(what, async () => {
        await run();
        assert.ok(server.alive, server.log);
        await honest(server);
        await server.assertBack(start, { grow: GROW });
      });

    for (const [what, data, code] of rows) {
      judged(`${what}: ${code}`, async () => {
        const ws = await RawWs.open(server.port);
        ws.write(data);
        assert.equal(await ws.closing(), code);
        assert.equal(ws.rude, undefined, 'the server keeps to the rules');
      });
    }

    judged('every row again, a byte at a time', async () => {
      for (const [what, data, code] of rows) {
        if (data.length > 1000) continue;
        const ws = await RawWs.open(server.port);
        for (let i = 0; i < data.length && !ws.code; i++)
          await ws.push(data.subarray(i, i + 1));
        assert.equal(await ws.closing(), code, what);
      }
    });

    for (const [what, headers, status] of handshakes) {
      judged(`handshake with ${what}: ${status}`, async () => {
        const ws = await RawWs.open(server.port, { headers });
        assert.equal(ws.status, status);
        assert.match(ws.headText, /\r\nSec-WebSocket-Version: 13\b/i);
        ws.destroy();
      });
    }

    judged('a handshake by POST: 400', async () => {
      const ws = await RawWs.connect(server.port);
      const head = wsHead(server.port).toString().replace('GET', 'POST');
      ws.write(head);
      assert.equal(await ws.head(), 400);
      ws.destroy();
    });

    judged('the accept header is the right one', async () => {
      const key = 'dGhlIHNhbXBsZSBub25jZQ==';
      const ws = await RawWs.open(server.port, {
        headers: { 'Sec-WebSocket-Key': key },
      });
      assert.equal(ws.status, 101);
      const line = `Sec-WebSocket-Accept: ${acceptFor(key)}`;
      assert.ok(ws.headText.includes(line), ws.headText);
      ws.destroy();
    });

    judged('extensions and subprotocols are not negotiated', async () => {
      const ws = await RawWs.socket(server.port, {
        headers: {
          'Sec-WebSocket-Extensions':
            'permessage-deflate; client_max_window_bits, x-webkit-deflate-frame',
          'Sec-WebSocket-Protocol': 'chat, superchat',
        },
      });
      assert.doesNotMatch(ws.headText, /Sec-WebSocket-(Ext|Prot)/i);
      ws.write(text('42["x"]', { rsv: 0x40 }));
      assert.equal(await ws.closing(), 1002);
    });

    judged('frames in the segment of the handshake', async () => {
      const ws = await RawWs.connect(server.port);
      ws.write(
        Buffer.concat([
          wsHead(server.port),
          text('40'),
          frame(OP.ping, 'early'),
          text('420["a"]'),
          part(OP.text, '421["'),
          frame(OP.cont, 'b"]'),
        ]),
      );
      await ws.message((m) => m === '430[]');
      await ws.message((m) => m === '431[]');
      assert.equal(ws.pongs, 1);
      ws.destroy();
    });

    judged('an offence in the segment of the handshake', async () => {
      const ws = await RawWs.connect(server.port);
      const rest = [text('40'), text('9'), text('42["x"]')];
      ws.write(Buffer.concat([wsHead(server.port), ...rest]));
      assert.equal(await ws.closing(), 1002);
    });

    judged('a close in the segment of the handshake', async () => {
      const ws = await RawWs.connect(server.port);
      ws.write(Buffer.concat([wsHead(server.port), closeFrame(1000)]));
      assert.equal(await ws.closing(), 1000);
    });

    judged('handshake and frames a byte at a time', async () => {
      const ws = await RawWs.connect(server.port);
      const all = Buffer.concat([
        wsHead(server.port),
        text('40'),
        frame(OP.ping, 'x'),
        text(`420["${'é'.repeat(100)}"]`),
      ]);
      for (const b of all) await ws.push(Buffer.from([b]));
      await ws.message((m) => m === '430[]');
      ws.destroy();
    });

    judged('1e6 fragments of one byte: 1009 in the end', async () => {
      const ws = await RawWs.socket(server.port);
      await ws.push(part(OP.text, '4'));
      const some = Buffer.concat(
        Array.from({ length: 1e4 }, () => part(OP.cont, 'x')),
      );
      let most = 0;
      for (let i = 0; i < 101 && !ws.code; i++) {
        await ws.push(some);
        if (i % 10 === 0) most = Math.max(most, await server.rss());
      }
      assert.equal(await ws.closing(), 1009);
      assert.ok(most - start.rss < GROW, 'bounded all the time');
    });

    judged('1e6 empty fragments cost nothing', async () => {
      const ws = await RawWs.socket(server.port);
      await ws.push(part(OP.text, '420["still'));
      const some = Buffer.concat(
        Array.from({ length: 1e4 }, () => part(OP.cont, '')),
      );
      for (let i = 0; i < 100; i++) await ws.push(some);
      await ws.push(frame(OP.cont, ' here"]'));
      await ws.message((m) => m === '430[]');
      assert.ok((await server.rss()) - start.rss < GROW);
      ws.destroy();
    });

    judged('pings between the fragments of a message', async () => {
      const ws = await RawWs.socket(server.port);
      for (const c of '420["in pieces') {
        await ws.push(part(ws.begun ? OP.cont : OP.text, c));
        await ws.push(frame(OP.ping, c));
        ws.begun = true;
      }
      await ws.push(frame(OP.cont, '"]'));
      await ws.message((m) => m === '430[]');
      await until(() => ws.pongs === 14, 'every pong');
      ws.destroy();
    });

    // Memory follows the bytes that came, not the length that was claimed.
    judged('100 big claims and little data', async () => {
      const all = await Promise.all(
        Array.from({ length: 100 }, () => RawWs.socket(server.port)),
      );
      for (const ws of all) ws.write(text('4', { claim: 1_000_000 }));
      await sleep(200);
      assert.ok((await server.rss()) - start.rss < GROW);
      for (const ws of all) ws.destroy();
    });

    judged('a connection reset in the middle of a frame', async () => {
      for (let i = 0; i < 20; i++) {
        const ws = await RawWs.socket(server.port);
        ws.write(text('42["x"]', { claim: 1000 }));
        await ws.push(text('x').subarray(0, i % 7));
        ws.socket.resetAndDestroy();
        await ws.gone;
      }
    });
  });
}
