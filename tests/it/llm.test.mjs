// Every provider × {text, one tool, parallel tools, long stream, each failure},
// through the real code against fakes that are as strict as the real ones.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { gemini } from '../fakes/gemini.mjs';
import { compatible, openai } from '../fakes/openai.mjs';
import { Driver, results, tools, user } from './llm_kit.mjs';

let driver;
before(() => {
  driver = new Driver();
});
after(async () => {
  assert.equal(await driver.close(), 0);
});

const providers = [
  { name: 'claude', start: claude, provider: 'claude', model: 'claude-sonnet-5-5' },
  { name: 'gemini', start: gemini, provider: 'gemini', model: 'gemini-4-argon' },
  { name: 'responses', start: openai, provider: 'openai', model: 'gpt-6.1-sol' },
  { name: 'chat', start: openai, provider: 'openai', model: 'gpt-4o' },
  { name: 'compatible', start: () => compatible({ key: 'sk-local-0123456789' }), provider: 'ollama', model: 'qwen3:8b' },
];

/** A conversation with one fake: keeps the entries as a session would. */
class Talk {
  constructor(fake, { provider, model }, more = {}) {
    this.fake = fake;
    this.request = { provider, model, url: fake.url, key: fake.key, system: 'Be brief.', tools, ...more };
    this.entries = [];
  }

  async ask(text, ...rows) {
    this.entries.push(user(text));
    return this.go(...rows);
  }

  async go(...rows) {
    this.fake.script.push(...rows);
    const got = await driver.run({ ...this.request, entries: this.entries });
    if (got.done) this.entries.push(got.done.entry);
    return got;
  }

  answer(calls, how) {
    this.entries.push(results(calls, how));
  }
}

const unkind = [
  ['in one go', {}],
  ['a byte a write', { bytes: 1 }],
  ['seven bytes a write, mixed line ends', { bytes: 7, ends: 'mixed' }],
  ['with noise', { noise: true }],
  ['a byte a write, mixed ends, noise, cut characters', { bytes: 1, ends: 'mixed', noise: true, escape: true }],
];
const TEXT = 'Grüße, 世界 😀 and "quotes" \\ \n\ttabs';

for (const p of providers)
  describe(p.name, () => {
    let fake;
    before(async () => {
      fake = await p.start();
    });
    after(() => fake.close());
    beforeEach(() => {
      fake.script.length = fake.problems.length = 0;
    });
    const clean = () => {
      assert.deepEqual(fake.problems, []);
      assert.equal(fake.script.length, 0);
    };

    for (const [how, row] of unkind)
      test(`text, ${how}`, async () => {
        const talk = new Talk(fake, p);
        const got = await talk.ask('hello', { text: TEXT, thinking: 'hm, 😀 so', ...row });
        clean();
        assert.equal(got.failed, undefined);
        assert.equal(got.done.text, TEXT);
        if (!row.escape) {
          assert.equal(got.texts.join(''), TEXT);
          assert.ok(got.texts.length > 3);
          assert.equal(got.thoughts.join(''), 'hm, 😀 so');
        }
        assert.equal(got.done.stop, 0);
        assert.ok(got.done.input > 0 && got.done.output > 0);
        const by = got.done.entry.by;
        assert.deepEqual([by.model, by.url], [p.model, fake.url]);
        assert.ok(got.done.entry.blocks.some((b) => b.type === 'thinking' && b.text === 'hm, 😀 so'));
        // and the next question carries it all back
        const next = await talk.ask('more', { text: 'sure' });
        clean();
        assert.equal(next.done.text, 'sure');
      });

    test('one tool, then the answer', async () => {
      const talk = new Talk(fake, p);
      const first = await talk.ask('weather?', {
        thinking: 'a tool', text: 'Let me look.', calls: [{ name: 'get_weather', args: { place: 'Zürich "ZH"' } }],
      });
      clean();
      assert.equal(first.done.stop, 1);
      assert.equal(first.done.text, 'Let me look.');
      assert.equal(first.done.calls.length, 1);
      assert.deepEqual(first.done.calls[0].args, { place: 'Zürich "ZH"' });
      talk.answer(first.done.calls, () => 'sunny');
      const second = await talk.go({ text: 'It is sunny.' });
      clean();
      assert.equal(second.done.text, 'It is sunny.');
      assert.match(fake.requests.at(-1).bytes.toString(), /sunny/);
      const third = await talk.ask('thanks', { text: 'welcome' });
      clean();
      assert.equal(third.done.text, 'welcome');
    });

    test('parallel tools, several steps, no arguments', async () => {
      const talk = new Talk(fake, p);
      const first = await talk.ask('go', {
        thinking: 'three at once',
        calls: [{ name: 'get_weather', args: { place: 'A' } }, { name: 'list_files' }, { name: 'get_weather', args: { place: 'B' } }],
        bytes: 3, ends: 'mixed',
      });
      clean();
      assert.deepEqual(first.done.calls.map((c) => [c.name, c.args]), [
        ['get_weather', { place: 'A' }], ['list_files', {}], ['get_weather', { place: 'B' }]]);
      assert.equal(new Set(first.done.calls.map((c) => c.key)).size, 3);
      talk.answer(first.done.calls);
      const second = await talk.go({ thinking: 'one more', calls: [{ name: 'list_files' }] });
      clean();
      talk.answer(second.done.calls);
      const third = await talk.go({ text: 'done' });
      clean();
      assert.equal(third.done.text, 'done');
      assert.equal(fake.requests.at(-1).headers['x-api-key'], undefined);
    });

    test('a call nobody answered is answered as unknown', async () => {
      const talk = new Talk(fake, p);
      await talk.ask('go', { calls: [{ name: 'list_files' }, { name: 'get_weather', args: { place: 'C' } }] });
      const next = await talk.ask('what happened?', { text: 'I do not know' });
      clean();
      assert.equal(next.done.text, 'I do not know');
      assert.match(fake.requests.at(-1).bytes.toString(), /Whether it took effect is unknown/);
    });

    test('a failed tool, a picture, a link', async () => {
      const talk = new Talk(fake, p);
      const { done } = await talk.ask('go', { calls: [{ name: 'list_files' }, { name: 'list_files' }, { name: 'list_files' }] });
      talk.answer(done.calls);
      const [a, b, c] = talk.entries.at(-1).results;
      a.isError = true;
      b.content = [
        { type: 'text', text: ' ' }, { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' },
        { type: 'audio', mimeType: 'audio/wav', data: 'AAAA' }, { type: 'text', text: 'half \ud83d a pair' },
      ];
      c.content = [{ type: 'resource_link', uri: 'file:///x', name: 'x' },
        { type: 'resource', resource: { uri: 'file:///y', text: 'inside' } }];
      const next = await talk.go({ text: 'seen' });
      clean();
      assert.equal(next.done.text, 'seen');
      const sent = fake.requests.at(-1).bytes.toString();
      for (const part of [/did list_files/, /audio\/wav, 4 bytes/, /inside/, /file:\/\/\/x/]) assert.match(sent, part);
      if (p.name !== 'compatible') assert.match(sent, /iVBORw0KGgo=/);
    });

    test('a long stream', async () => {
      const text = 'word '.repeat(20000);
      const got = await new Talk(fake, p, { quiet: true }).ask('long', { text });
      clean();
      assert.equal(got.done.text, text);
      assert.ok(got.deltas >= 20000);
    });

    test('cut off by length: half a call is no call', async () => {
      const stop = { claude: 'max_tokens', gemini: 'MAX_TOKENS', responses: 'max_output_tokens' }[p.name] ?? 'length';
      const talk = new Talk(fake, p);
      const row = { text: 'I was', stop };
      const half = p.name === 'gemini' ? {} : {
        calls: [{ name: 'get_weather', args: { place: 'x' }, raw: '{"pla' }], rawArgs: '{"pla', unfinished: true };
      const got = await talk.ask('go', { ...row, ...half });
      assert.equal(got.done.stop, 2);
      assert.equal(got.done.text, 'I was');
      assert.deepEqual(got.done.calls, []);
      assert.equal((await talk.ask('go on', { text: 'yes' })).done.text, 'yes');
      clean();
    });

    for (const [fault, code] of [['cut', 'network'], ['eof', 'network'], ['garbage', 'protocol'], ['error', 'overloaded']])
      test(`${fault} in the middle of a reply`, async () => {
        const before = fake.requests.length;
        const got = await new Talk(fake, p).ask('go', { text: 'some words that were said', calls: [{ name: 'list_files' }], fault });
        clean();
        assert.equal(got.done, undefined);
        assert.equal(got.failed.code, code);
        assert.ok(got.texts.length > 0);
        assert.equal(fake.requests.length, before + 1); // bytes came: no second try
      });

    test('a stall ends in time', async () => {
      const got = await new Talk(fake, p, { idleMs: 2000 }).ask('go', { text: 'some words', fault: 'stall' });
      assert.equal(got.failed.code, 'network');
      assert.match(got.failed.msg, /sent nothing for 2000 ms/);
      clean();
    });

    for (const [name, headers, low, high] of [
      ['retry-after-ms', { 'retry-after-ms': '30' }, 30, 30],
      ['retry-after', { 'retry-after': '0.05' }, 50, 50],
      ['a date that is over', { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }, 1, 1],
      ['nothing', {}, 375, 500],
      ['nonsense', { 'retry-after': 'soon' }, 375, 500],
    ])
      test(`429, ${name}: waits ${low}-${high} ms and goes on`, async () => {
        const got = await new Talk(fake, p).ask('go', { status: 429, headers, type: 'rate_limit_error' }, { text: 'fine' });
        clean();
        assert.equal(got.done.text, 'fine');
        assert.equal(got.waits.length, 1);
        assert.ok(got.waits[0].ms >= low && got.waits[0].ms <= high, `${got.waits[0].ms}`);
        assert.equal(got.waits[0].why.code, 'rate_limit');
      });

    test('asked to wait for an hour: tells instead of waiting', async () => {
      const got = await new Talk(fake, p).ask('go', { status: 429, headers: { 'retry-after': '3600' } });
      clean();
      assert.equal(got.failed.code, 'rate_limit');
      assert.equal(got.failed.retryAfter, 3600000);
      assert.deepEqual(got.waits, []);
    });

    test('x-should-retry decides', async () => {
      const no = await new Talk(fake, p).ask('go', { status: 500, headers: { 'x-should-retry': 'false' } });
      assert.equal(no.failed.code, 'overloaded');
      const yes = await new Talk(fake, p).ask('go',
        { status: 400, headers: { 'x-should-retry': 'true', 'retry-after-ms': '5' } }, { text: 'now' });
      assert.equal(yes.done.text, 'now');
      clean();
    });

    for (const status of [500, 503, 529])
      test(`${status} three times is enough`, async () => {
        const row = { status, headers: { 'retry-after-ms': '5' } };
        const before = fake.requests.length;
        const got = await new Talk(fake, p).ask('go', row, row, row);
        clean();
        assert.equal(fake.requests.length, before + 3);
        assert.equal(got.waits.length, 2);
        assert.equal(got.failed.code, 'overloaded');
        assert.match(got.failed.msg, /try again/);
      });

    for (const [status, code, says] of [
      [401, 'auth', /does not accept the key/], [403, 'auth', /key/], [404, 'no_model', /choose another/],
      [402, 'quota', /billing/], [413, 'too_long', /too long/], [400, 'bad_request', /refused the request/]])
      test(`${status} is ${code}, at once`, async () => {
        const body = { error: { message: `about ${fake.key} …` } };
        const got = await new Talk(fake, p).ask('go', { status, body });
        clean();
        assert.equal(got.failed.code, code);
        assert.match(got.failed.msg, says);
        assert.deepEqual(got.waits, []);
      });

    test('a refusal that is no JSON', async () => {
      const got = await new Talk(fake, p).ask('go', { status: 400, body: '<html>\r\nno\0such\u001bthing</html>' });
      assert.equal(got.failed.code, 'bad_request');
      assert.match(got.failed.msg, /<html>/);
    });

    test('cancel while it streams, and while it waits', async () => {
      const streams = await new Talk(fake, p, { cancelAfter: 3 }).ask('go', { text: 'many words to be said here', bytes: 9 });
      assert.equal(streams.failed.code, 'canceled');
      assert.equal(streams.deltas, 3);
      const waits = await new Talk(fake, p, { cancelAtWait: true }).ask('go', { status: 500 });
      assert.equal(waits.failed.code, 'canceled');
      assert.equal(waits.waits.length, 1);
      clean();
    });

    test('a wrong key is told without showing it', async () => {
      const wrong = 'sk-wrong-9876543210';
      const got = await new Talk(fake, p, { key: wrong }).ask('go');
      assert.equal(got.failed.code, 'auth');
      assert.ok(!JSON.stringify(got.events).includes(wrong));
      fake.problems.length = 0;
    });

    test('what another wrote is understood', async () => {
      const talk = new Talk(fake, p);
      talk.entries.push(user('before'), {
        role: 'assistant', by: { provider: 'demo', model: 'other', url: 'demo:' },
        blocks: [
          { type: 'thinking', text: 'secret thoughts', raw: { type: 'thinking', thinking: 'x', signature: 'foreign' } },
          { type: 'text', text: 'I looked.', raw: { type: 'text', text: 'I looked.', odd: 1 } },
          { type: 'call', key: 'k-1', id: 'weird id:7', name: 'list_files', args: {}, raw: { odd: true } }],
        stop: 'calls' });
      talk.answer([{ key: 'k-1', name: 'list_files' }]);
      const got = await talk.go({ text: 'I see' });
      clean();
      assert.equal(got.done.text, 'I see');
      const sent = fake.requests.at(-1).bytes.toString();
      assert.match(sent, /I looked\./);
      assert.doesNotMatch(sent, /secret thoughts|foreign|weird/);
    });
  });

test('no key was ever said', () => {
  for (const key of ['sk-fake-0123456789', 'sk-local-0123456789'])
    assert.ok(!driver.said.includes(key));
});
