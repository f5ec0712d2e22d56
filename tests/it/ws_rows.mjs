// What both implementations are fed: rows of frames, written once and sent
// unmasked to a client and masked to a server.
//
// A row whose two readers must not agree says so: `ours` and `theirs` are the
// events each of them is to show, `why` is the reason. Everywhere else the
// events must be equal, whatever they are.

export const CAP = 70000;

const CONT = 0;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

const hex = (s) => Buffer.from(s.replaceAll(' ', ''), 'hex');

/**
 * One frame. `form` (0, 2 or 8 bytes) overrides the shortest length field,
 * `claim` the length in it, `b0` the whole first byte.
 */
function frame(op, payload = '', opt = {}) {
  return { op, payload: Buffer.from(payload), fin: true, ...opt };
}

const part = (op, payload, opt) => frame(op, payload, { fin: false, ...opt });

function lengthField(n, form) {
  const shortest = n < 126n ? 0 : n < 65536n ? 2 : 8;
  const width = form ?? shortest;
  if (width === 0) return [Number(n)];
  const field = Buffer.alloc(8);
  field.writeBigUInt64BE(n);
  return [width === 2 ? 126 : 127, ...field.subarray(8 - width)];
}

/** A row's bytes as the given side sends them. */
export function wire(row, fromClient, key = [0x37, 0xfa, 0x21, 0x3d]) {
  const out = row.frames.map((f) => {
    if (Buffer.isBuffer(f)) return f;
    const masked = f.masked ?? fromClient;
    const [len7, ...ext] = lengthField(
      f.claim ?? BigInt(f.payload.length),
      f.form,
    );
    const b0 = f.b0 ?? (f.fin ? 0x80 : 0) | f.op;
    const head = [b0, len7 | (masked ? 0x80 : 0), ...ext];
    if (!masked) return Buffer.concat([Buffer.from(head), f.payload]);
    const body = f.payload.map((c, i) => c ^ key[i % 4]);
    return Buffer.concat([Buffer.from([...head, ...key]), body]);
  });
  return Buffer.concat(out);
}

const fill = (n) => Buffer.alloc(n, 'The quick brown fox. ');
const code = (n, reason = '') =>
  Buffer.concat([Buffer.from([n >> 8, n & 255]), Buffer.from(reason)]);

const euro = hex('e2 82 ac');
const smile = hex('f0 9f 98 80');

const rows = [];
const row = (name, ...frames) => rows.push({ name, frames });
const differ = (name, frames, ours, theirs, why) =>
  rows.push({ name, frames, differs: { ours, theirs, why } });

// --- lengths

for (const n of [0, 1, 125, 126, 127, 255, 256, 65535, 65536, CAP]) {
  row(`binary of ${n}`, frame(BINARY, fill(n)));
  row(`text of ${n}`, frame(TEXT, fill(n)));
  row(`${n} in two fragments`, part(TEXT, fill(n)), frame(CONT, ''));
}
row('one over the cap', frame(BINARY, fill(CAP + 1)));
row('over the cap by a fragment', part(BINARY, fill(CAP)), frame(CONT, 'x'));
for (const [name, n] of [
  ['2^31', 1n << 31n],
  ['2^32', 1n << 32n],
  ['2^53 - 1', (1n << 53n) - 1n],
  ['2^63 - 1', (1n << 63n) - 1n],
])
  row(`a claim of ${name}`, frame(BINARY, 'x', { claim: n }));
for (const [name, n] of [
  ['2^63', 1n << 63n],
  ['2^64 - 1', (1n << 64n) - 1n],
])
  differ(
    `a claim of ${name}`,
    [frame(BINARY, 'x', { claim: n })],
    ['error 1002'],
    ['error 1009'],
    'RFC 6455 5.2: the top bit must be 0, so this is no length at all',
  );
for (const [n, form] of [
  [0, 2],
  [125, 2],
  [0, 8],
  [126, 8],
  [65535, 8],
])
  differ(
    `${n} in ${form} bytes of length`,
    [frame(BINARY, fill(n), { form })],
    ['error 1002'],
    [`binary ${fill(n).toString('hex')}`],
    'RFC 6455 5.2: the minimal number of bytes must be used; ws takes any',
  );

// --- reserved bits and opcodes

for (const bits of [0x10, 0x20, 0x40, 0x70]) {
  row(`reserved bits ${bits}`, frame(TEXT, 'x', { b0: 0x81 | bits }));
  row(`reserved bits ${bits} in a ping`, frame(PING, '', { b0: 0x89 | bits }));
  row(
    `reserved bits ${bits} in a continuation`,
    part(TEXT, 'a'),
    frame(CONT, 'b', { b0: 0x80 | bits }),
  );
}
for (const op of [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) {
  row(`opcode ${op}`, frame(op, 'x'));
  row(`opcode ${op} after a message`, frame(TEXT, 'x'), frame(op));
  row(`opcode ${op} unfinished`, part(op, 'x'));
}

// --- masking

row('masked the wrong way round', frame(TEXT, 'hello'));
rows.at(-1).flip = true;
row('masked ping the wrong way round', frame(PING, 'hello'));
rows.at(-1).flip = true;

// --- fragments and controls

row('three fragments', part(TEXT, 'a'), part(CONT, 'b'), frame(CONT, 'c'));
row('empty fragments', part(TEXT, ''), part(CONT, ''), frame(CONT, ''));
row('fragments of binary', part(BINARY, [0, 255]), frame(CONT, [128]));
row(
  'controls between fragments',
  part(TEXT, 'a'),
  frame(PING, 'one'),
  part(CONT, 'b'),
  frame(PONG, 'two'),
  frame(PING, ''),
  frame(CONT, 'c'),
);
row(
  'a hundred one-byte fragments',
  part(TEXT, 'x'),
  ...Array.from({ length: 99 }, () => part(CONT, 'y')),
  frame(CONT, 'z'),
);
row('close between fragments', part(TEXT, 'a'), frame(CLOSE, code(1001)));
row('text after fragments', part(TEXT, 'a'), frame(CONT), frame(TEXT, 'b'));
row('continuation of nothing', frame(CONT, 'x'));
row('unfinished continuation of nothing', part(CONT, 'x'));
row('continuation of a whole text', frame(TEXT, 'x'), frame(CONT, 'y'));
row('text in a text', part(TEXT, 'a'), frame(TEXT, 'b'));
row('binary in a text', part(TEXT, 'a'), part(BINARY, 'b'));
row('text in a binary', part(BINARY, 'a'), frame(TEXT, 'b'));
for (const [name, op] of [
  ['ping', PING],
  ['pong', PONG],
]) {
  for (const n of [0, 1, 124, 125]) row(`${name} of ${n}`, frame(op, fill(n)));
  for (const n of [126, 65536]) row(`${name} of ${n}`, frame(op, fill(n)));
  row(`${name} of 5 in two bytes of length`, frame(op, 'hello', { form: 2 }));
  row(`fragmented ${name}`, part(op, 'x'), frame(CONT, 'y'));
}

// --- close

row('close, empty', frame(CLOSE));
row('close of one byte', frame(CLOSE, [3]));
for (const n of [
  0, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010,
  1011, 1012, 1013, 1014, 1015, 1016, 1100, 2000, 2999, 3000, 3999, 4000, 4999,
  5000, 65535,
])
  row(`close ${n}`, frame(CLOSE, code(n, 'why')));
row('close with a long reason', frame(CLOSE, code(1000, 'r'.repeat(123))));
row('close too long', frame(CLOSE, code(1000, 'r'.repeat(124))));
row('close with utf-8', frame(CLOSE, code(1000, 'caf\u00e9 \u20ac')));
row('close with bad utf-8', frame(CLOSE, hex('03e8 ff')));
row('close with half a character', frame(CLOSE, hex('03e8 e282')));
row('bad code and bad utf-8', frame(CLOSE, hex('03ed ff')));
row('fragmented close', part(CLOSE, code(1000)));
row('text after close', frame(CLOSE, code(1000)), frame(TEXT, 'late'));
row('close after close', frame(CLOSE, code(1000)), frame(CLOSE, code(1001)));
row('nonsense after close', frame(CLOSE), hex('ffffffff'));
row('text after an error', frame(3), frame(TEXT, 'late'));

// --- text

row('utf-8', frame(TEXT, '\u00e9\u20ac\u{1f600}'));
for (const [name, s] of [
  ['three bytes', euro],
  ['four bytes', smile],
])
  for (let i = 0; i <= s.length; i++)
    row(
      `${name} cut at ${i}`,
      part(TEXT, s.subarray(0, i)),
      frame(PING, hex('ff')),
      frame(CONT, s.subarray(i)),
    );
row('a byte a fragment', ...[...smile].map((c, i) => ({
  ...frame(i ? CONT : TEXT, [c]),
  fin: i === 3,
})));
for (const [name, h] of [
  ['lone tail', '80'],
  ['0xff', 'ff'],
  ['half a character', 'e282'],
  ['half of four', 'f09f98'],
  ['overlong 2', 'c0af'],
  ['overlong 3', 'e080af'],
  ['overlong 4', 'f08080af'],
  ['surrogate', 'eda080'],
  ['U+110000', 'f4908080'],
  ['five bytes', 'f888808080'],
]) {
  row(`${name} as text`, frame(TEXT, hex(h)));
  const late = Buffer.concat([fill(200), hex(h)]);
  row(`${name} after good text`, frame(TEXT, late));
  row(`${name} in the last fragment`, part(TEXT, 'a'), frame(CONT, hex(h)));
  row(`${name} as binary`, frame(BINARY, hex(h)));
  row(`${name} as ping`, frame(PING, hex(h)));
}
row('U+10FFFF', frame(TEXT, hex('f48fbfbf')));
row('half a character, then nothing', part(TEXT, hex('e282')), frame(CONT));
differ(
  'bad text in an unfinished message',
  [part(TEXT, hex('ff')), frame(PING, 'p')],
  ['error 1007'],
  ['ping 70'],
  'we refuse the byte when it comes, ws when the message ends',
);
differ(
  'bad text in an unfinished frame',
  [frame(TEXT, hex('61ff'), { claim: 100n })],
  ['error 1007'],
  [],
  'we refuse the byte when it comes, ws when the message ends',
);

// --- cut off: nothing may be said yet

rows.push({ name: 'nothing', frames: [] });
rows.push({ name: 'half a header', frames: [hex('81')] });
row('text not all there', frame(TEXT, 'hell', { claim: 5n }));
row('ping not all there', frame(PING, 'hell', { claim: 5n }));
row('a text, then half of one', frame(TEXT, 'a'), part(TEXT, 'b'));

export default rows;
