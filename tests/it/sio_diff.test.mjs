// codec/sio against npm's socket.io-parser: the same packets to both decoders,
// the same packet or a refusal from both. Where we are stricter the row says
// why; nothing may be refused there and taken here, except as named.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Decoder, Encoder, PacketType } from 'socket.io-parser';
import { Peer } from './peer.mjs';

const ATTACHMENTS_MAX = 64;

const decoder = () => new Decoder({ maxAttachments: ATTACHMENTS_MAX });

/** The packet as the parser reads it, before its attachments come in. */
function theirs(text) {
  try {
    const packet = decoder().decodeString(text);
    if (packet.attachments) reconstruct(text, packet.attachments);
    return JSON.parse(JSON.stringify(packet));
  } catch {
    return 'error';
  }
}

/** It looks at placeholders only when the last attachment is there. */
function reconstruct(text, attachments) {
  const d = decoder();
  d.add(text);
  for (let i = 0; i < attachments; i++) d.add(Buffer.alloc(1));
}

const big = '9007199254740991';
const ph = (num) => `{"_placeholder":true,"num":${num}}`;

const same = [
  '0', '0{}', '0{"token":"x"}', '0[]', '0null', '0"x"', '0{', '0{}x',
  '0/admin', '0/admin,', '0/admin,{"a":1}', '0/,', '0/a/b.c-d_e,{}',
  '1', '1/admin,', '1{}', '1[]', '1null',
  '2["x"]', '2[""]', '2["x",1,null,{"a":[1.5e3,"\u00e9"]}]', '2[]', '2{}',
  '2"x"', '2[null]', '2[["x"]]', '2[{}]', '2[true]', '2["x"', '2["x"]]',
  '2["x"]2["y"]', '2[ "x" , 1 ]', '2["a,b","/c,"]', '2["\\u0061"]',
  '20["x"]', '212["x"]', '2007["x"]', `2${big}["x"]`, '2/nsp,12["x"]',
  '2/nsp,["x"]', '2-1["x"]', '2+1["x"]', '21.5["x"]', '21e3["x"]',
  '20x1["x"]', '2nsp,["x"]', '2,["x"]', '2/nsp["x",1]',
  '2["connect"]', '2["connect_error"]', '2["disconnect"]',
  '2["disconnecting"]', '2["newListener"]', '2["removeListener"]',
  '2["\\u0063onnect"]', '2["message"]', '2["connected"]',
  '312[]', '30[null,"ok"]', '3/n,1["x"]', '31{}', '31null', '31"x"',
  '4{"message":"no"}', '4"no"', '4[]', '4null', '4/n,{"message":"no"}',
  '5', '51', '51["a"]', '5["a"]', '5-["a"]', '50-["a"]', '5x-["a"]',
  '5-1-["a"]', '51.5-["a"]', '564-["a"]', '565-["a"]', '51000000000-["a"]',
  '518446744073709551617-["a"]', '51-{}', '51-[]', '51-["connect"]',
  `51-["a",${ph(0)}]`, `52-/n,7["a",${ph(1)},{"x":[${ph(0)}]}]`,
  `51-["a",${ph(1)}]`, `51-["a",${ph(-1)}]`, `51-["a",${ph('"0"')}]`,
  `51-["a",${ph('null')}]`, `51-["a",${ph(1e9)}]`,
  '51-["a",{"_placeholder":true}]', '51-["a",{"_placeholder":1,"num":9}]',
  '51-["a",{"_placeholder":"true","num":9}]',
  '51-["a",{"_placeholder":false,"num":9}]',
  '51-["a",{"\\u005fplaceholder":true,"num":1}]',
  '51-["a",{"num":0,"_placeholder":true,"num":1}]',
  `61-3[${ph(0)}]`, `61-3[${ph(1)}]`, '61-3{}',
  '7', '8', '9', '9["x"]', 'x', '-1', '\u00e9', ':', '/',
];

const stricter = [
  ['an event needs data', ['2', '212', '2/n,', '51-', '51-/n,']],
  ['an event name is a string', ['2[1]', '51-[1]']],
  ['a refusal needs its reason', ['4', '4/n,']],
  ['an ack needs an id', ['3[]', '3/n,[]', '61-[]']],
  ['an ack needs data', ['31', '61-3']],
  ['no id outside events and acks', ['01', '01{}', '11', '41{}']],
  ['an id is not rounded', ['29007199254740992["x"]',
    '218446744073709551616["x"]', `2${'9'.repeat(400)}["x"]`]],
  ['blanks are no digits', ['3 12[]', '21 2["x"]', '2\t1["x"]', '2 ["x"]']],
  ['an attachment count is plain digits', ['51.0-["a"]', '51e0-["a"]',
    '50x1-["a"]', '5 1-["a"]', '5+1-["a"]']],
  ['a namespace is a plain path', ['0/a b', '0/a?x=1', '0/a#b', '0/\u00e9',
    '2/nsp["x"]', '0/a"b', '0/a\\b',
    '0/a{}', '2/nsp12["x"]', `0/${'a'.repeat(128)}`]],
  ['a placeholder is a whole number', [`51-["a",${ph(0.5)}]`]],
  ['no type is not connect', ['', ' ', ' {}', '\t']],
];

// The number reader of JSON.parse takes these; both readings are the same
// attachment, ours only wants it written plainly.
const spelled = [`51-["a",${ph('0.0')}]`, `51-["a",${ph('0e5')}]`];

describe('decoder', () => {
  let peer;
  before(() => {
    peer = new Peer('sio_peer');
  });
  after(async () => assert.equal(await peer.stop(), 0));

  async function ours(text) {
    const line = await peer.ask(Buffer.from(text).toString('hex'));
    return line === 'error' ? line : JSON.parse(line);
  }

  for (const text of same)
    test(`same: ${text.slice(0, 60)}`, async () =>
      assert.deepEqual(await ours(text), theirs(text)));

  for (const [why, texts] of stricter)
    for (const text of texts)
      test(`stricter, ${why}: ${text.slice(0, 40)}`, async () => {
        assert.equal(await ours(text), 'error');
        assert.notEqual(theirs(text), 'error', 'no longer a difference');
      });

  for (const text of spelled)
    test(`stricter, plain numbers: ${text}`, async () => {
      assert.equal(await ours(text), 'error');
      assert.notEqual(theirs(text), 'error', 'no longer a difference');
    });

  const packets = [
    { type: PacketType.CONNECT, nsp: '/' },
    { type: PacketType.CONNECT, nsp: '/admin', data: { token: 'x' } },
    { type: PacketType.DISCONNECT, nsp: '/admin' },
    { type: PacketType.EVENT, nsp: '/', data: ['say', { text: 'caf\u00e9' }] },
    { type: PacketType.EVENT, nsp: '/n', id: 3, data: ['say', '\u{1f600}\n'] },
    { type: PacketType.ACK, nsp: '/', id: 0, data: [] },
    { type: PacketType.CONNECT_ERROR, nsp: '/', data: { message: 'no' } },
    {
      type: PacketType.EVENT,
      nsp: '/',
      id: 5,
      data: ['up', Buffer.from('a'), { b: [Buffer.from('b')] }],
    },
    { type: PacketType.ACK, nsp: '/n', id: 9, data: [Buffer.from('a')] },
  ];
  packets.forEach((packet, i) =>
    test(`what their encoder writes, ${i}`, async () => {
      const [text] = new Encoder().encode(packet);
      assert.deepEqual(await ours(text), theirs(text));
      assert.notEqual(theirs(text), 'error');
    }),
  );

  // One byte changed, dropped or doubled in good packets: whatever the parser
  // refuses we refuse; whatever we take we read as it does.
  test('small damage is never read differently', async () => {
    const good = same.filter((t) => t && theirs(t) !== 'error');
    const junk = [...'0159-/,[]{}":. \u00e9\\x'];
    let checked = 0;
    for (const text of good) {
      for (let i = 0; i < text.length; i++) {
        const c = junk[(i * 7 + text.length) % junk.length];
        for (const put of ['', c, text[i] + text[i], text[i] + c]) {
          const damaged = text.slice(0, i) + put + text.slice(i + 1);
          const our = await ours(damaged);
          if (our !== 'error')
            assert.deepEqual(our, theirs(damaged), damaged);
          checked++;
        }
      }
    }
    assert.ok(checked > 2000);
  });
});
