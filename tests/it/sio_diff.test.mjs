// codec/sio against npm's socket.io-parser: the same packets to both decoders,
// the same packet or a refusal from both. Where we are stricter the row says
// why; nothing may be refused there and taken here, except as named.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Decoder, Encoder, PacketType } from 'socket.io-parser';
import { Peer } from './peer.mjs';

/** The packet as the parser reads it. */
function theirs(text) {
  try {
    return JSON.parse(JSON.stringify(new Decoder().decodeString(text)));
  } catch {
    return 'error';
  }
}

const big = '9007199254740991';

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
  '7', '8', '9', '9["x"]', 'x', '-1', '\u00e9', ':', '/',
];

const stricter = [
  ['an event needs data', ['2', '212', '2/n,']],
  ['an event name is a string', ['2[1]']],
  ['a refusal needs its reason', ['4', '4/n,']],
  ['an ack needs an id', ['3[]', '3/n,[]']],
  ['an ack needs data', ['31']],
  ['no id outside events and acks', ['01', '01{}', '11', '41{}']],
  ['an id is not rounded', ['29007199254740992["x"]',
    '218446744073709551616["x"]', `2${'9'.repeat(400)}["x"]`]],
  ['blanks are no digits', ['3 12[]', '21 2["x"]', '2\t1["x"]', '2 ["x"]']],
  ['a namespace is a plain path', ['0/a b', '0/a?x=1', '0/a#b', '0/\u00e9',
    '2/nsp["x"]', '0/a"b', '0/a\\b',
    '0/a{}', '2/nsp12["x"]', `0/${'a'.repeat(128)}`]],
  ['no type is not connect', ['', ' ', ' {}', '\t']],
];

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

  // The receiver refuses packets with attachments, so ours reads the type only.
  for (const data of [['up', Buffer.from('a'), { b: [Buffer.from('b')] }], ['a', Buffer.from('b')]])
    for (const [type, binary] of [[PacketType.EVENT, 5], [PacketType.ACK, 6]])
      test(`binary packet of type ${binary}, ${data.length} values`, async () => {
        const [text] = new Encoder().encode({ type, nsp: '/n', id: 5, data });
        assert.deepEqual(await ours(text), { type: binary, nsp: '/' });
      });

  const packets = [
    { type: PacketType.CONNECT, nsp: '/' },
    { type: PacketType.CONNECT, nsp: '/admin', data: { token: 'x' } },
    { type: PacketType.DISCONNECT, nsp: '/admin' },
    { type: PacketType.EVENT, nsp: '/', data: ['say', { text: 'caf\u00e9' }] },
    { type: PacketType.EVENT, nsp: '/n', id: 3, data: ['say', '\u{1f600}\n'] },
    { type: PacketType.ACK, nsp: '/', id: 0, data: [] },
    { type: PacketType.CONNECT_ERROR, nsp: '/', data: { message: 'no' } },
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
        for (const put of ['', text[i] + text[i], ...junk.flatMap((c) => [c, text[i] + c])]) {
          const damaged = text.slice(0, i) + put + text.slice(i + 1);
          const our = await ours(damaged);
          if (our !== 'error' && our.type < 5)
            assert.deepEqual(our, theirs(damaged), damaged);
          checked++;
        }
      }
    }
    assert.ok(checked > 2000);
  });
});
