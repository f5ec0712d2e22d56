// What is particular about each provider, through the real code.
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

/** A fake for a describe block, emptied before each test. */
function faked(start) {
  const box = {};
  before(async () => {
    box.fake = await start();
  });
  after(() => box.fake.close());
  beforeEach(() => {
    box.fake.script.length = box.fake.problems.length = box.fake.requests.length = 0;
  });
  return box;
}

const ask = (fake, provider, model, entries, ...rows) => {
  fake.script.push(...rows);
  return driver.run({ provider, model, url: fake.url, key: fake.key, system: 'Be brief.', tools, entries });
};

describe('claude', () => {
  const box = faked(claude);
  const go = (entries, ...rows) => ask(box.fake, 'claude', 'claude-opus-5-5', entries, ...rows);
  const fine = () => assert.deepEqual(box.fake.problems, []);

  test('thinking, signed, redacted, cited and unknown blocks go back untouched', async () => {
    const entries = [user('go')];
    const blocks = [
      { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: { q: 'ä' } },
      { type: 'web_search_tool_result', tool_use_id: 'srv_1', content: [{ type: 'x', url: 'http://y' }] },
    ];
    const { done } = await go(entries, {
      thinking: ['first, 😀', ''], redacted: true, text: 'cited', blocks, noise: true, escape: true, bytes: 1,
      citations: [{ type: 'char_location', cited_text: 'c' }], calls: [{ name: 'list_files' }], emptyDelta: true });
    fine();
    assert.deepEqual(done.entry.blocks.map((b) => b.type),
      ['thinking', 'thinking', 'other', 'text', 'other', 'other', 'call']);
    entries.push(done.entry, results(done.calls));
    assert.equal((await go(entries, { text: 'ok' })).done.text, 'ok');
    fine();
    const back = box.fake.requests[1].body.messages[1].content;
    assert.deepEqual(back[3].citations, [{ type: 'char_location', cited_text: 'c' }]);
    assert.deepEqual(back.slice(4, 6), blocks);
    assert.deepEqual(back[6].caller, { type: 'direct' });
  });

  test('bytes before the newest turn never change; four marks at most', async () => {
    const entries = [];
    for (let i = 0; i < 6; i++) {
      entries.push(user(`question ${i}`));
      const { done } = await go(entries, { thinking: `t${i}`, calls: [{ name: 'list_files' }, { name: 'list_files' }] });
      entries.push(done.entry, results(done.calls));
      entries.push((await go(entries, { text: 'done' })).done.entry);
    }
    fine();
    const bare = (r) => r.bytes.toString().replaceAll(/,"cache_control":\{"type":"ephemeral"\}/g, '');
    const all = box.fake.requests;
    for (let i = 1; i < all.length; i++) {
      const old = bare(all[i - 1]).replace(/\]\}$/, '').replace(/\]\}$/, '');
      assert.ok(bare(all[i]).startsWith(old), `request ${i}`);
      const marks = all[i].bytes.toString().split('cache_control').length - 1;
      assert.equal(marks, 4);
    }
    assert.ok(all.at(-1).body.tools.at(-1).cache_control);
    assert.ok(all.at(-1).body.messages.at(-1).content.at(-1).cache_control);
    assert.equal(all.at(-1).headers['anthropic-version'], '2026-10-21');
    assert.equal(all.at(-1).headers.authorization, `Bearer ${box.fake.key}`);
  });

  test('other tools, other instructions: thinking stays out, the rest goes on', async () => {
    const entries = [user('go')];
    const { done } = await go(entries, { thinking: 'hm', redacted: true, text: 'I look.', calls: [{ name: 'list_files' }] });
    entries.push(done.entry, results(done.calls));
    const ask = (more) => driver.run({ provider: 'claude', model: 'claude-opus-5-5', url: box.fake.url, key: box.fake.key,
      system: 'Be brief.', tools, entries, ...more });
    for (const [more, kept] of [[{ tools: tools.slice(1) }, 0], [{ system: 'Be long.' }, 0], [{}, 2]]) {
      assert.equal((await ask(more)).done.text, 'ok');
      fine();
      const back = box.fake.requests.at(-1).body.messages[1].content;
      assert.equal(back.filter((b) => /thinking/.test(b.type)).length, kept);
      assert.deepEqual(back.slice(-2).map((b) => b.type), ['text', 'tool_use']);
    }
  });

  test('pause_turn is asked again as it is', async () => {
    const entries = [user('search')];
    const { done } = await go(entries, { text: 'searching', stop: 'pause_turn' });
    assert.equal(done.stop, 4);
    assert.equal((await go([...entries, done.entry], { text: 'found' })).done.text, 'found');
    fine();
  });

  test('a refusal, an empty reply, an unknown stop', async () => {
    const no = await go([user('x')], { stop: 'refusal', stopDetails: { stop_details: { category: 'x' } } });
    assert.equal(no.done.stop, 3);
    const empty = await go([user('x')], {});
    assert.equal(empty.done.stop, 0);
    assert.deepEqual(empty.done.entry.blocks, []);
    const again = await go([user('x'), empty.done.entry, user('y')], { text: 'z', stop: 'brand_new' });
    assert.equal(again.done.stop, 5);
    assert.equal(again.done.entry.stopRaw, 'brand_new');
    fine();
    assert.equal(box.fake.requests.at(-1).body.messages.length, 1);
  });

  for (const [type, code] of [
    ['overloaded_error', 'overloaded'], ['rate_limit_error', 'rate_limit'], ['api_error', 'overloaded'],
    ['authentication_error', 'auth'], ['invalid_request_error', 'bad_request']])
    test(`${type} in the stream is ${code}`, async () => {
      assert.equal((await go([user('x')], { text: 'some', fault: 'error', type })).failed.code, code);
    });

  for (const [name, body, code] of [
    ['too long', { type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long: 9 > 8' } }, 'too_long'],
    ['no credit', { error: { type: 'invalid_request_error', message: 'Your credit balance is too low' } }, 'quota'],
    ['spend limit', { error: { type: 'rate_limit_error', message: 'x', details: { error_code: 'enforced_spend_limit_reached' } } }, 'quota'],
    ['ramp', { error: { type: 'other', message: 'x', details: { error_code: 'ramp_limit_exceeded' } } }, 'rate_limit']])
    test(`400, ${name}`, async () => {
      const got = await go([user('x')], { status: 400, body, headers: { 'x-should-retry': 'false' } });
      assert.equal(got.failed.code, code);
    });

  test('the list of models, all pages, newest first', async () => {
    const got = await driver.run({ op: 'models', provider: 'claude', url: box.fake.url, key: box.fake.key, ms: 60_000 });
    assert.deepEqual(got.models.map((m) => m.id), ['claude-fable-5-2', 'claude-opus-5-5',
      'claude-sonnet-5-5', 'claude-haiku-5-5', 'claude-sonnet-4-5']);
    assert.equal(got.models[0].name, 'Claude Fable 5.2');
    assert.equal(got.models[0].context, 1000000);
    assert.equal(box.fake.requests.length, 3);
    const wrong = await driver.run({ op: 'models', provider: 'claude', url: box.fake.url, key: 'sk-wrong-9876543210', ms: 60_000 });
    assert.equal(wrong.failed.code, 'auth');
  });
});

describe('gemini', () => {
  const box = faked(gemini);
  const go = (entries, ...rows) => ask(box.fake, 'gemini', 'gemini-4-argon', entries, ...rows);
  const fine = () => assert.deepEqual(box.fake.problems, []);

  test('CONTINUATION goes on until it is done; usage is summed', async () => {
    const got = await go([user('long')], { text: 'one ', stop: 'CONTINUATION' }, { text: 'two ', stop: 'CONTINUATION' }, { text: 'three' });
    fine();
    assert.equal(got.done.text, 'one two three');
    assert.equal(got.done.stop, 0);
    assert.equal(got.done.input, 30);
    assert.equal(box.fake.requests.length, 3);
  });

  test('a drop behind a checkpoint is resumed, before one it is not', async () => {
    const got = await go([user('long')], { text: 'one ', checkpoint: true }, { text: 'two' });
    fine();
    assert.equal(got.done.text, 'one two');
    const lost = await go([user('long')], { text: 'one two', fault: 'eof' });
    assert.equal(lost.failed.code, 'network');
  });

  test('a malformed call is asked for once more, not for ever', async () => {
    const row = { stop: 'MALFORMED_FUNCTION_CALL' };
    const got = await go([user('x')], row, { text: 'better' });
    assert.equal(got.done.text, 'better');
    assert.equal(got.done.input, 20);
    const twice = await go([user('x')], row, row);
    assert.equal(twice.done.stop, 5);
    assert.equal(box.fake.requests.length, 4);
    fine();
  });

  test('an endless CONTINUATION ends', async () => {
    const rows = Array.from({ length: 40 }, () => ({ text: 'x', stop: 'CONTINUATION' }));
    const got = await go([user('long')], ...rows);
    assert.equal(got.failed.code, 'network');
    assert.equal(box.fake.requests.length, 33);
    box.fake.script.length = 0;
  });

  test('a blocked prompt is refused and stays out of the next question', async () => {
    const entries = [user('bad')];
    const { done } = await go(entries, { blocked: 'PROHIBITED_CONTENT' });
    assert.equal(done.stop, 3);
    assert.equal(done.entry.stopRaw, 'PROHIBITED_CONTENT');
    assert.equal((await go([...entries, done.entry, user('good')], { text: 'fine' })).done.text, 'fine');
    const cut = await go([user('x')], { text: 'half', stop: 'SAFETY' });
    assert.equal(cut.done.stop, 3);
    fine();
  });

  test('without ids none are sent; an older model needs no signatures', async () => {
    for (const [model, row] of [['gemini-4-argon', { noIds: true }], ['gemini-2.5-flash', {}]]) {
      const entries = [user('go')];
      const { done } = await ask(box.fake, 'gemini', model, entries, { calls: [{ name: 'list_files' }, { name: 'list_files' }], ...row });
      entries.push(done.entry, results(done.calls));
      assert.equal((await ask(box.fake, 'gemini', model, entries, { text: 'ok' })).done.text, 'ok');
    }
    fine();
  });

  test('another model gets no signature of this one', async () => {
    const entries = [user('go')];
    const { done } = await go(entries, { thinking: 't', text: 'x', calls: [{ name: 'list_files' }] });
    entries.push(done.entry, results(done.calls));
    const got = await ask(box.fake, 'gemini', 'gemini-3.8-flash', entries, { text: 'ok' });
    fine();
    assert.equal(got.done.text, 'ok');
  });

  for (const [name, row, code, waits] of [
    ['RetryInfo', { details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '0.02s' }] }, undefined, 20],
    ['a whole day', { details: [{ '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
      violations: [{ quotaId: 'GenerateRequestsPerDayPerProject' }] }] }, 'quota'],
    ['34 hours', { details: [{ retryDelay: '122400s' }] }, 'rate_limit'],
    ['in a list', { list: true, headers: { 'retry-after-ms': '5' } }, undefined, 5]])
    test(`429, ${name}`, async () => {
      const got = await go([user('x')], { status: 429, ...row }, { text: 'ok' });
      assert.equal(got.failed?.code, code);
      if (waits) assert.deepEqual(got.waits.map((w) => w.ms), [waits]);
      box.fake.script.length = 0;
    });

  test('an error in the stream, as object and in a list; a bad key is 400', async () => {
    for (const list of [false, true])
      assert.equal((await go([user('x')], { text: 'some', fault: 'error', list })).failed.code, 'overloaded');
    const got = await driver.run({ provider: 'gemini', model: 'gemini-4-argon', url: box.fake.url, key: 'AIza-wrong-0001', entries: [user('x')] });
    assert.equal(got.failed.code, 'auth');
    assert.doesNotMatch(JSON.stringify(got.events), /AIza-wrong/);
  });

  test('schemas are translated, odd names come back', async () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', additionalProperties: false,
      definitions: { leaf: { type: 'string', pattern: '^a' } },
      properties: {
        path: { type: 'string', minLength: 1, description: 'Where' }, kind: { const: 'x' },
        leaf: { $ref: '#/definitions/leaf', description: 'gone' }, 'odd-name': { type: 'string' },
        n: { type: 'integer', exclusiveMinimum: 0, default: 5 }, all: { allOf: [{ type: 'string' }] },
        list: { type: 'array', items: { type: ['string', 'null'] }, uniqueItems: true }, any: true,
      },
      required: ['path', 'odd-name'], if: { properties: {} },
    };
    const odd = [{ name: '7zip', description: 'd', schema }, { name: '_7zip', description: 'd', schema: { type: 'object' } }];
    box.fake.script.push({ calls: [{ name: '_7zip' }, { name: '__7zip' }] }, { text: 'ok' });
    const request = { provider: 'gemini', model: 'gemini-4-argon', url: box.fake.url, key: box.fake.key, tools: odd };
    const { done } = await driver.run({ ...request, entries: [user('x')] });
    fine();
    assert.deepEqual(done.calls.map((c) => c.name), ['7zip', '_7zip']);
    const next = await driver.run({ ...request, entries: [user('x'), done.entry, results(done.calls)] });
    fine();
    assert.equal(next.done.text, 'ok');
    const sent = box.fake.requests[0].body.tools[0].functionDeclarations[0].parametersJsonSchema;
    assert.equal(sent.properties.path.description, 'Where (minLength: 1)');
    assert.deepEqual(sent.properties.kind.enum, ['x']);
    assert.equal(sent.properties.leaf.$ref, '#/$defs/leaf');
    assert.match(sent.$defs.leaf.description, /pattern/);
    assert.deepEqual(sent.required, ['path']);
    assert.match(sent.description, /odd-name/);
    assert.match(sent.properties.n.description, /exclusiveMinimum: 0; default: 5/);
  });

  test('the list of models: what can chat, newest first', async () => {
    const got = await driver.run({ op: 'models', provider: 'google', url: box.fake.origin, key: box.fake.key, ms: 60_000 });
    assert.deepEqual(got.models.map((m) => m.id), ['gemini-4-argon', 'gemini-3.8-flash', 'gemini-3.5-flash-lite', 'gemini-2.5-flash']);
    assert.equal(got.models[0].name, 'Gemini 4 Argon');
    assert.equal(box.fake.requests.length, 3);
  });
});

describe('openai', () => {
  const box = faked(openai);
  const go = (entries, ...rows) => ask(box.fake, 'openai', 'gpt-6-astra', entries, ...rows);
  const fine = () => assert.deepEqual(box.fake.problems, []);

  test('newer models by Responses, stateless; older by Chat', async () => {
    await go([user('x')], { text: 'a' });
    await ask(box.fake, 'openai', 'gpt-4o', [user('x')], { text: 'a' });
    fine();
    assert.deepEqual(box.fake.requests.map((r) => r.path), ['/v1/responses', '/v1/chat/completions']);
    const [{ body }] = box.fake.requests;
    assert.equal(body.store, false);
    assert.deepEqual(body.include, ['reasoning.encrypted_content']);
    assert.equal(body.tools[0].strict, false);
  });

  test('items done out of order keep their order', async () => {
    const entries = [user('x')];
    const { done } = await go(entries, { thinking: 't', calls: [{ name: 'get_weather', args: { place: '1' } }, { name: 'list_files' }], shuffle: true });
    assert.deepEqual(done.calls.map((c) => c.name), ['get_weather', 'list_files']);
    entries.push(done.entry, results(done.calls));
    assert.equal((await go(entries, { text: 'ok' })).done.text, 'ok');
    fine();
  });

  test('reasoning that nothing follows is left out', async () => {
    const { done } = await go([user('x')], { thinking: 'only', stop: 'max_output_tokens' });
    assert.equal(done.stop, 2);
    assert.equal((await go([user('x'), done.entry, user('y')], { text: 'ok' })).done.text, 'ok');
    fine();
  });

  test('a refusal; a filter; a failed response', async () => {
    for (const model of ['gpt-6-astra', 'gpt-4o']) {
      const got = await ask(box.fake, 'openai', model, [user('x')], { refusal: 'I will not' });
      assert.equal(got.done.stop, 3);
      assert.equal(got.texts.join(''), 'I will not');
    }
    assert.equal((await go([user('x')], { text: 'a', stop: 'content_filter' })).done.stop, 3);
    const failed = await go([user('x')], { text: 'a', failed: { code: 'rate_limit_exceeded', message: 'slow' } });
    assert.equal(failed.failed.code, 'rate_limit');
    fine();
  });

  for (const [code, want] of [['insufficient_quota', 'quota'], ['rate_limit_exceeded', 'rate_limit'], ['context_length_exceeded', 'too_long']])
    test(`429 ${code}`, async () => {
      const got = await go([user('x')], { status: 429, code, headers: { 'retry-after': '3600' } });
      assert.equal(got.failed.code, want);
    });

  test('the list of models: what can chat, newest first, readable', async () => {
    const got = await driver.run({ op: 'models', provider: 'chatgpt', url: box.fake.url, key: box.fake.key, ms: 60_000 });
    assert.deepEqual(got.models.map((m) => m.name), ['GPT-6.1 Sol', 'GPT-6 Astra', 'GPT-5.5', 'GPT-4o']);
  });
});

describe('compatible servers', () => {
  const box = faked(compatible);
  const go = (entries, ...rows) => ask(box.fake, 'compatible', 'qwen3:8b', entries, ...rows);
  const fine = () => assert.deepEqual(box.fake.problems, []);
  const calls = [{ name: 'get_weather', args: { place: 'A' } }, { name: 'get_weather', args: { place: 'B' } }, { name: 'list_files' }];

  for (const quirk of [
    { noIndex: true, wholeCalls: true }, { noIndex: true }, { sameIndex: true }, { indexFrom1: true },
    { emptyId: true }, { objectArgs: true }, { objectArgs: true, noIndex: true, emptyId: true },
    { repeatName: true }, { repeatName: true, noIndex: true, emptyId: true }, { stopWithCalls: true },
    { noUsage: true }, { noDone: true }, { extra: { google: { thought_signature: 'abc' } } }])
    test(Object.keys(quirk).join(' + '), async () => {
      const entries = [user('x')];
      const got = await go(entries, { calls, ...quirk });
      fine();
      assert.deepEqual(got.done.calls.map((c) => [c.name, c.args]), calls.map((c) => [c.name, c.args ?? {}]));
      entries.push(got.done.entry, results(got.done.calls));
      assert.equal((await go(entries, { text: 'ok', ...quirk })).done.text, 'ok');
      fine();
      const [first] = box.fake.requests[1].body.messages[2].tool_calls;
      if (quirk.extra) assert.deepEqual(first.extra_content, quirk.extra);
    });

  for (const piece of [1, 2, 3, 5, 100])
    test(`<think> in pieces of ${piece}`, async () => {
      const got = await go([user('x')], { think: true, thinking: 'a <b> </thin k>', text: '\n\nso <think> it is', piece, escape: true });
      assert.equal(got.done.text.trim(), 'so <think> it is');
      assert.equal(got.thoughts.join(''), 'a <b> </thin k>');
      const plain = await go([user('x')], { text: ' <thing> is no tag', piece });
      assert.equal(plain.done.text, ' <thing> is no tag');
      const short = await go([user('x')], { text: '<th', piece });
      assert.equal(short.done.text, '<th');
      fine();
    });

  for (const reasoning of ['reasoning', 'reasoning_content'])
    test(`${reasoning} goes back while the turn lasts`, async () => {
      const entries = [user('x')];
      const { done } = await go(entries, { thinking: 'hm', reasoning, calls: [{ name: 'list_files' }] });
      entries.push(done.entry, results(done.calls));
      const last = await go(entries, { text: 'ok' });
      await go([...entries, last.done.entry, user('y')], { text: 'ok' });
      fine();
      assert.equal(box.fake.requests[1].body.messages[2][reasoning], 'hm');
      assert.equal(box.fake.requests[2].body.messages[2][reasoning], undefined);
    });

  test('reasoning_details go back as they came', async () => {
    const text = (t, index, more) => ({ type: 'reasoning.text', text: t, index, ...more });
    const secret = { type: 'reasoning.encrypted', data: 'zz', index: 2 };
    const pieces = [text('a "', 0), text('b', 0, { signature: 's' }), text('c', 1), secret, text('d', 1)];
    const details = [text('a "b', 0, { signature: 's' }), text('c', 1), secret, text('d', 1)];
    const entries = [user('x')];
    const { done } = await go(entries, { details: pieces, merged: details, calls: [{ name: 'list_files' }] });
    entries.push(done.entry, results(done.calls));
    await go(entries, { text: 'ok' });
    fine();
    assert.deepEqual(box.fake.requests[1].body.messages[2].reasoning_details, details);
  });

  for (const raw of ['{"place":', 'Zürich', '["a"]', 'null'])
    test(`arguments ${raw} are told, not run`, async () => {
      const entries = [user('x')];
      const { done } = await go(entries, { calls: [{ name: 'get_weather', raw }] });
      assert.deepEqual(done.calls[0].args, {});
      assert.equal(done.calls[0].bad, raw);
      entries.push(done.entry, results(done.calls));
      assert.equal((await go(entries, { text: 'ok' })).done.text, 'ok');
      fine();
    });

  test('a server that is still loading is waited for', async () => {
    const row = { status: 503, message: 'Loading model', code: 503, type: 'unavailable_error' };
    const got = await go([user('x')], row, row, row, row, { text: 'here' });
    assert.equal(got.done.text, 'here');
    assert.equal(got.waits.length, 4);
  });

  test('a server that does not stream', async () => {
    const got = await go([user('x')], { unstreamed: true, text: 'all at once', calls: [{ name: 'list_files' }] });
    assert.equal(got.done.text, 'all at once');
    assert.equal(got.done.calls.length, 1);
  });

  test('an error with a number for a code, after output', async () => {
    assert.equal((await go([user('x')], { text: 'some', fault: 'error', numeric: true })).failed.code, 'overloaded');
  });

  test('servers on this machine are found, others are not', async () => {
    const other = await compatible({ list: { nothing: 'of ours' } });
    try {
      const places = [
        { name: 'Ollama', url: box.fake.url }, { name: 'Web', url: other.url },
        { name: 'None', url: 'http://127.0.0.1:1/v1' }];
      const got = await driver.run({ op: 'local', ms: 60_000, places });
      assert.deepEqual(got.local, [{ name: 'Ollama', url: box.fake.url, models: 1 }]);
    } finally {
      await other.close();
    }
  });

  test('their models: window and tools as they say', async () => {
    const list = { data: [{ id: 'a/b', name: 'A: B', context_length: 32768, supported_parameters: ['tools'] },
      { id: 'no-tools', supported_parameters: ['seed'] }, { id: 'nomic-embed-text' }, { id: 'BAAI/BGE-M3' }, { id: 'gguf', meta: { n_ctx_train: 8192 } }] };
    const server = await compatible({ list });
    try {
      const got = await driver.run({ op: 'models', provider: 'openrouter', url: server.url, ms: 60_000 });
      assert.deepEqual(got.models, [{ id: 'a/b', name: 'A: B', context: 32768 }, { id: 'gguf', name: 'gguf', context: 8192 }]);
    } finally {
      await server.close();
    }
  });

  test('a refused max_tokens becomes max_completion_tokens, once', async () => {
    const sent = () => server.requests.map(({ body }) => [body.max_tokens, body.max_completion_tokens]);
    const ask = () => driver.run({ provider: 'ollama', model: 'm', url: server.url, maxOutput: 9, entries: [user('x')],
      tools: [{ name: 'a', description: '', schema: { type: 'object', properties: { max_tokens: { type: 'integer' } } } }] });
    const server = await compatible({ newLimit: true });
    try {
      server.script.push({ text: 'here' });
      assert.equal((await ask()).done.text, 'here');
      assert.deepEqual(sent(), [[9, undefined], [undefined, 9]]);
      assert.deepEqual(server.requests[0].body.tools, server.requests[1].body.tools);
      server.newLimit = false; // refused for another reason: the second answer is what counts
      server.requests.length = 0;
      server.script.push({ status: 400, message: 'max_tokens: too odd' }, { status: 400, message: 'still odd' });
      assert.match((await ask()).failed.msg, /still odd/);
      assert.deepEqual(sent(), [[9, undefined], [undefined, 9]]);
    } finally {
      await server.close();
    }
  });

  test('nobody there; a base URL with a secret in it', async () => {
    const gone = await driver.run({ provider: 'ollama', url: 'http://127.0.0.1:1/v1', entries: [user('x')] });
    assert.equal(gone.failed.code, 'network');
    assert.match(gone.failed.msg, /cannot connect to http:\/\/127\.0\.0\.1:1.*check that it is running/);
    const models = await driver.run({ op: 'models', provider: 'ollama', url: 'http://127.0.0.1:1/v1', ms: 1000 });
    assert.equal(models.failed.code, 'network');
    const bad = await driver.run({ provider: 'ollama', url: 'http://me:secret@127.0.0.1:1/v1', entries: [user('x')] });
    assert.match(bad.refused, /must not contain a user/);
  });
});

test('an invented name of a tool does not spoil the conversation', async () => {
  for (const [start, provider, model] of [[claude, 'claude', 'claude-opus-5-5'], [gemini, 'gemini', 'gemini-4-argon'],
    [openai, 'openai', 'gpt-4o'], [openai, 'openai', 'gpt-6-astra']]) {
    const fake = await start();
    try {
      const by = { provider, model: 'gpt-4o', url: fake.url };
      const name = 'functions."odd" ä.name'.repeat(4);
      const raw = { id: 'i', type: 'function', function: { name, arguments: '{}' } };
      const entries = [user('x'), { role: 'assistant', by, blocks: [{ type: 'call', key: 'k-0', id: 'i', name, args: {}, raw }] },
        { role: 'tool', results: [{ key: 'k-0', name, isError: true, content: [] }] }];
      const got = await ask(fake, provider, model, entries, { text: 'sorry' });
      assert.deepEqual(fake.problems, []);
      assert.equal(got.done.text, 'sorry');
    } finally {
      await fake.close();
    }
  }
});

describe('demo', () => {
  const box = ['list_files', 'read_file', 'write_file', 'edit_file', 'search_files', 'execute_command']
    .map((name) => ({ name: `box_${name}`, description: '', schema: { type: 'object' } }));
  const run = (entries, more = {}) => driver.run({ provider: 'demo', model: 'demo', tools: box, entries, ...more });

  test('list the files, then write hello to a.txt and show it', async () => {
    const entries = [user('list the files, then write hello to a.txt and show it')];
    const seen = [];
    for (const answer of ['b.txt', 'written', 'hello']) {
      const { done, texts } = await run(entries);
      assert.ok(texts.length > 1);
      assert.equal(done.calls.length, 1);
      seen.push([done.calls[0].name, done.calls[0].args]);
      entries.push(done.entry, results(done.calls, () => answer));
    }
    assert.deepEqual(seen, [['box_list_files', {}],
      ['box_write_file', { path: 'a.txt', content: 'hello' }], ['box_read_file', { path: 'a.txt' }]]);
    const last = await run(entries);
    assert.equal(last.done.calls.length, 0);
    assert.match(last.done.text, /hello[^]*Done\.[^]*demo[^]*ANTHROPIC_API_KEY/);
  });

  test('a step that fails ends it', async () => {
    const entries = [user('run false then list files')];
    const { done } = await run(entries);
    assert.deepEqual(done.calls[0].args, { command: 'false' });
    const answer = results(done.calls, () => 'exit 1');
    answer.results[0].isError = true;
    const next = await run([...entries, done.entry, answer]);
    assert.match(next.done.text, /did not work[^]*Not done: list files/);
    assert.deepEqual(next.done.calls, []);
  });

  test('says what it is when it does not understand; no tool', async () => {
    assert.match((await run([user('What is the meaning of life?')])).done.text, /demo[^]*do not understand[^]*list the files/);
    assert.match((await run([user('list files')], { tools: [] })).done.text, /no tool list_files/);
    const got = await driver.run({ op: 'models', provider: 'demo', ms: 10 });
    assert.equal(got.models[0].id, 'demo');
  });

  test('cancel', async () => {
    const got = await run([user('list files')], { cancelAfter: 2 });
    assert.equal(got.failed.code, 'canceled');
  });
});
