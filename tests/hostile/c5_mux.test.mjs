// C5: an attach stream that lies about its frames. The stream is let go at the
// header, before a byte of the lie is handed on, and nothing of the size it
// names is ever asked for.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';

import { driver, runPeak } from '../lib/mcp.mjs';

const program = join(dirname(driver), 'mux_driver');
const dir = mkdtempSync(join(tmpdir(), 'mo-mux-'));
after(() => rmSync(dir, { recursive: true }));

const frame = (stream, length, filler = [0, 0, 0]) => {
  const head = Buffer.from([stream, ...filler, 0, 0, 0, 0]);
  head.writeUInt32BE(length, 4);
  return head;
};
const good = (text, stream = 1) =>
  Buffer.concat([frame(stream, text.length), Buffer.from(text)]);
const before = Buffer.concat([good('{"a":1}\n'), good('oops\n', 2), frame(1, 0)]);
const behind = Buffer.alloc(4 << 20, 'x'); // what the lie is filled with

async function feed(pieces, step = 65536) {
  const file = join(dir, 'stream');
  writeFileSync(file, Buffer.concat(pieces));
  const { code, out, err, peak } = await runPeak(program, [file, String(step)]);
  assert.equal(err, '');
  return { code, peak, ...JSON.parse(out) };
}

test('an honest stream goes through, in any pieces', async () => {
  for (const step of [1, 7, 65536]) {
    const got = await feed([before, good('y'.repeat(70000))], step);
    assert.deepEqual(
      [got.code, got.stdout, got.stderr, got.edge, got.error],
      [0, 8 + 70000, 5, true, '']);
  }
});

for (const [name, head, says] of [
  ['stream 0', frame(0, 5), /unknown stream/],
  ['stream 3', frame(3, 5), /unknown stream/],
  ['stream 255', frame(255, 5), /unknown stream/],
  ['length 4 GiB - 1', frame(1, 0xffffffff), /too long/],
  ['length 2 GiB', frame(2, 0x80000000), /too long/],
  ['one byte over the most', frame(1, (1 << 20) + 1), /too long/],
  ['first reserved byte', frame(1, 5, [1, 0, 0]), /filler/],
  ['last reserved byte', frame(2, 5, [0, 0, 255]), /filler/],
  ['everything at once', frame(255, 0xffffffff, [255, 255, 255]), /unknown stream/],
])
  test(`${name}: refused at the header, for good`, async () => {
    const calm = await feed([before, good('z'.repeat(65536))]);
    assert.equal(calm.code, 0);
    for (const step of [1, 65536]) {
      const got = await feed([before, head, behind], step);
      assert.equal(got.code, 1);
      assert.match(got.error, says);
      assert.deepEqual([got.stdout, got.stderr, got.edge], [8, 5, false]);
      // Let go at once: no more was read than the piece the lie came in.
      assert.ok(got.read <= before.length + head.length + step, `${got.read}`);
      assert.ok(got.peak - calm.peak < 4096, `${got.peak} - ${calm.peak} KiB`);
    }
  });

test('a stream that ends inside a frame is not at its edge', async () => {
  for (const cut of [1, 7, 9]) {
    const got = await feed([before, good('half').subarray(0, cut)]);
    assert.deepEqual([got.code, got.edge], [0, false]);
  }
});
