// Images that are attached to a message reach a model that can see, and stay in
// the conversation; a model that cannot gets their names.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { deflateSync } from 'node:zlib';

import { compatible } from '../fakes/openai.mjs';
import { gemini } from '../fakes/gemini.mjs';
import { House, read } from './talk_kit.mjs';

const u32 = (n) => Buffer.from([n >>> 24, n >>> 16, n >>> 8, n].map((b) => b & 255));
/** A PNG that wide and high; its pixels are not compared by anybody. */
const png = (width, height = 1, more = 0) => Buffer.concat([
  Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), u32(13), Buffer.from('IHDR'), u32(width), u32(height),
  Buffer.from([8, 2, 0, 0, 0]), u32(0), deflateSync(randomBytes(64)), randomBytes(more),
]);
const named = (text, ...paths) => `${text}\n\nAttached files:\n${paths.map((p) => `- uploads/${p}`).join('\n')}`;

class Images {
  constructor(house, tab) {
    Object.assign(this, { house, tab });
  }

  async put(name, bytes) {
    const r = await fetch(`http://127.0.0.1:${this.house.server.port}/api/sessions/${this.tab.session}/files/content?${new URLSearchParams({ path: `uploads/${name}` })}`,
      { method: 'PUT', body: bytes });
    assert.equal(r.status, 201);
  }

  async say(text) {
    const answers = this.tab.count('agent:response');
    assert.equal((await this.tab.say(text)).ok, true);
    await this.tab.event('agent:response', answers + 1);
  }
}

async function begin(house, how) {
  const tab = house.tab(how);
  await tab.ready();
  return new Images(house, tab);
}
const sent = (house, i = -1) => house.asked().messages.at(i).content;
const imagesOf = (content) => content.filter((b) => b.type === 'image')
  .map((b) => [b.source.media_type, b.source.data]);

describe('Claude', () => {
  let house;
  before(async () => {
    house = await House.start();
  });
  after(() => house?.stop());

  test('they are sent by their bytes, kept, and sent again after a crash', async () => {
    const one = await begin(house);
    const a = png(3), b = Buffer.from('GIF89a\x01\x00\x01\x00rest of it', 'latin1');
    await one.put('a.png', a);
    await one.put('strange.txt', b); // its name says nothing
    await one.put('fake.png', 'no picture');
    await one.say(named('what is this?', 'a.png', 'strange.txt', 'fake.png', 'gone.png'));
    const want = [['image/png', a.toString('base64')], ['image/gif', b.toString('base64')]];
    assert.deepEqual(imagesOf(sent(house)), want);
    assert.match(sent(house)[0].text, /^what is this\?\n\nAttached files:\n- uploads\/a\.png/);

    const other = house.tab({ session: one.tab.session });
    const { history } = await other.ready();
    assert.deepEqual(history.messages[0].blocks.slice(1), [
      { type: 'image', path: 'uploads/a.png', size: a.length, mimeType: 'image/png' },
      { type: 'image', path: 'uploads/strange.txt', size: b.length, mimeType: 'image/gif' },
    ], 'members get no bytes');

    await one.put('late.png', png(9));
    await house.kill();
    await house.up();
    const again = await begin(house, { session: one.tab.session });
    await again.say('and now?');
    assert.deepEqual(imagesOf(sent(house, 0)), want, 'it does not need the box for them');
  });

  test('a message that waited, and an edited one', async () => {
    const one = await begin(house);
    await one.put('a.png', png(4));
    house.model.script.push({ calls: [read('none')] }, { text: 'first' });
    await one.tab.say('wait for me');
    const [card] = await one.tab.event('tool:approval_required');
    assert.equal((await one.tab.say(named('second', 'a.png'))).queued, 1);
    await one.tab.decide(card, false);
    await one.tab.event('agent:response', 2);
    assert.equal(imagesOf(sent(house)).length, 1);
    const last = one.tab.events.filter(([e, x]) => e === 'session:entry' && x.role === 'user').at(-1)[1];
    await one.put('b.png', png(5));
    assert.equal((await one.tab.emit('message', { text: named('edited', 'b.png'), instead: last.seq })).ok, true);
    await one.tab.event('agent:response', 3);
    assert.deepEqual(imagesOf(sent(house)).map(([type]) => type), ['image/png']);
    assert.match(sent(house)[0].text, /edited/);
  });

  test('limits: a large file, a large picture, many', async () => {
    const one = await begin(house);
    const small = png(7);
    await one.put('huge.png', png(2, 2, 4_000_000));
    await one.put('wide.png', png(9000));
    await one.put('photo.png', png(3, 3, 4_000_000));
    await one.put('.view/photo.png', small);
    await one.say(named('see', 'huge.png', 'wide.png', 'photo.png'));
    assert.deepEqual(imagesOf(sent(house)).map(([, data]) => data), [small.toString('base64')], 'the copy that the page made');
    const { history } = await house.tab({ session: one.tab.session }).ready();
    assert.deepEqual(history.messages[0].blocks.slice(1).map((b) => [b.path, b.left ?? 'seen']),
      [['uploads/huge.png', 'too_big'], ['uploads/wide.png', 'too_big'], ['uploads/photo.png', 'seen']]);
    const many = Array.from({ length: 12 }, (_, i) => `n${i}.png`);
    for (const name of many) await one.put(name, png(2));
    await one.say(named('count', ...many));
    assert.equal(imagesOf(sent(house)).length, 10);
  });

  test('stopped while it reads: the message is kept', async () => {
    const one = await begin(house);
    await one.put('a.png', png(2, 2, 2_000_000));
    const said = one.tab.say(named('stop me', 'a.png'));
    await one.tab.emit('agent:cancel');
    assert.equal((await said).ok, true);
    await one.tab.event('agent:response');
    const { history } = await house.tab({ session: one.tab.session }).ready();
    assert.equal(history.messages[0].role, 'user');
    await one.say('go on');
  });
});

test('a compatible server: by the name of its model, and as configured', async () => {
  const model = await compatible();
  const config = { llm: { provider: 'openai', model: 'qwen2.5-vl' } };
  const house = await House.start({ model, config, env: { OPENAI_BASE_URL: model.url } });
  try {
    const bytes = png(3);
    const one = await begin(house);
    await one.put('a.png', bytes);
    await one.say(named('see', 'a.png'));
    assert.deepEqual(sent(house).map((p) => p.image_url?.url ?? p.type), ['text', `data:image/png;base64,${bytes.toString('base64')}`]);
    const blind = await begin(house, { model: 'tiny-text' });
    await blind.put('a.png', bytes);
    await blind.say(named('see', 'a.png'));
    assert.equal(sent(house), named('see', 'a.png'), 'a plain string with the name');
  } finally {
    await house.stop();
  }
});

test('Gemini takes a PNG, and no GIF', async () => {
  const model = await gemini({ key: 'AIza0123456789' });
  const config = { llm: { provider: 'gemini' } };
  const house = await House.start({ model, config, env: { GEMINI_API_KEY: model.key, GOOGLE_GEMINI_BASE_URL: model.url } });
  try {
    const one = await begin(house);
    const bytes = png(3);
    await one.put('a.png', bytes);
    await one.put('b.gif', Buffer.from('GIF89a\x01\x00\x01\x00rest of it', 'latin1'));
    await one.say(named('see', 'a.png', 'b.gif'));
    const { parts } = house.asked().contents.at(-1);
    assert.deepEqual(parts.filter((p) => p.inlineData).map((p) => [p.inlineData.mimeType, p.inlineData.data]), [['image/png', bytes.toString('base64')]]);
  } finally {
    await house.stop();
  }
});
