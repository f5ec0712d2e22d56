// The fakes themselves: the providers' own SDKs can talk to them, and what
// breaks a rule of the provider is refused.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';

import { claude } from '../fakes/claude.mjs';
import { gemini } from '../fakes/gemini.mjs';
import { openai } from '../fakes/openai.mjs';
import { strictJson } from '../fakes/server.mjs';

function faked(start) {
  const box = {};
  before(async () => {
    box.fake = await start();
  });
  after(() => box.fake.close());
  beforeEach(() => {
    box.fake.script.length = box.fake.problems.length = 0;
  });
  return box;
}

/** POST what a bad client would; {status, text}. */
async function post(fake, path, body, headers) {
  const rs = await fetch(fake.origin + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
  return { status: rs.status, text: await rs.text() };
}

/** Rows of [rule, body, says, headers?]: each is refused with 400 and says so. */
function refused(box, path, auth, rows) {
  for (const [rule, body, says, more] of rows)
    test(`refused: ${rule}`, async () => {
      const got = await post(box.fake, path, body, { ...auth(), ...more });
      assert.ok(got.status >= 400 && got.status < 500, `${got.status} ${got.text}`);
      assert.match(got.text, says);
      assert.equal(box.fake.problems.length, 1);
    });
}

const weather = { type: 'object', properties: { place: { type: 'string' } } };
const row = { thinking: 'hm 😀', text: 'Let me ', calls: [{ name: 'w', args: { place: 'Zürich' } }, { name: 'w' }], bytes: 5, ends: 'mixed' };

describe('claude', () => {
  const box = faked(claude);
  const say = (content, role = 'user') => ({ role, content });
  const base = (more) => ({ model: 'claude-sonnet-5-5', max_tokens: 99, messages: [say('x')], ...more });
  const tool = { name: 'w', input_schema: weather };
  const use = { type: 'tool_use', id: 't1', name: 'w', input: {} };
  const result = { type: 'tool_result', tool_use_id: 't1', content: 'y' };

  test('its SDK streams a turn with tools and thinking', async () => {
    const client = new Anthropic({ apiKey: box.fake.key, baseURL: box.fake.url, maxRetries: 1 });
    box.fake.script.push(row, { status: 529, type: 'overloaded_error', headers: { 'retry-after-ms': '5' } }, { text: 'done' });
    const messages = [say('weather?')];
    const params = { model: 'claude-sonnet-5-5', max_tokens: 1000, tools: [tool] };
    const first = await client.messages.stream({ ...params, messages }).finalMessage();
    assert.equal(first.stop_reason, 'tool_use');
    assert.deepEqual(first.content.map((b) => b.type), ['thinking', 'text', 'tool_use', 'tool_use']);
    assert.deepEqual(first.content[2].input, { place: 'Zürich' });
    messages.push(say(first.content, 'assistant'), say(first.content.filter((b) => b.type === 'tool_use')
      .map((b) => ({ type: 'tool_result', tool_use_id: b.id, content: 'sunny' }))));
    const second = await client.messages.stream({ ...params, messages }).finalMessage();
    assert.equal(second.content[0].text, 'done');
    assert.deepEqual(box.fake.problems, []);
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    assert.equal(ids.length, 5);
  });

  refused(box, '/v1/messages', () => ({ authorization: `Bearer ${box.fake.key}`, 'anthropic-version': '2026-10-21' }), [
    ['(1) two keys', base(), /authentication_error/, { 'x-api-key': 'sk-fake-0123456789' }],
    ['(1) a wrong key', base(), /authentication_error/, { authorization: 'Bearer no' }],
    ['(2) bad UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]), /invalid/],
    ['(2) a key twice', '{"model":"a","model":"b"}', /twice/],
    ['(3) an unknown member', base({ frequency_penalty: 1 }), /Extra inputs/],
    ['(8) no version', base(), /anthropic-version/, { 'anthropic-version': '2020-01-01' }],
    ['(9) sampling', base({ temperature: 1 }), /temperature/],
    ['(10) no result', base({ messages: [say('x'), say([use], 'assistant'), say('y')] }), /without `tool_result`/],
    ['(10) an orphan', base({ messages: [say([result])] }), /unexpected/],
    ['(10) two results', base({ messages: [say('x'), say([use], 'assistant'), say([result, result])] }), /single/],
    ['(10) an id twice', base({ messages: [say('x'), say([use], 'assistant'), say([result]), say([use], 'assistant'), say([result])] }), /unique/],
    ['(11) text before results', base({ messages: [say('x'), say([use], 'assistant'), say([{ type: 'text', text: 'a' }, result])] }), /first/],
    ['(12) blank text', base({ messages: [say(' \n')] }), /non-empty/],
    ['(13) a name', base({ tools: [{ ...tool, name: 'a b' }] }), /tools.name/],
    ['(13) a name twice', base({ tools: [tool, tool] }), /unique/],
    ['(13) no object', base({ tools: [{ name: 'w', input_schema: { type: 'string' } }] }), /object/],
    ['(14) foreign thinking', base({ messages: [say('x'), say([{ type: 'thinking', thinking: 'a', signature: 'b' }], 'assistant'), say('y')] }), /signature/],
    ['(15) prefill', base({ messages: [say('x'), say('y', 'assistant')] }), /prefill/],
    ['(16) five marks', base({ system: Array.from({ length: 5 }, (_, i) => ({ type: 'text', text: `${i}`, cache_control: { type: 'ephemeral' } })) }), /maximum of 4/],
    ['(17) input as text', base({ messages: [say('x'), say([{ ...use, input: '{}' }], 'assistant'), say([result])] }), /object/],
    ['roles', base({ messages: [say('x'), say('y')] }), /alternate/],
    ['a choice among no tools', base({ tool_choice: { type: 'none' } }), /tool_choice/],
    ['calls without tools', base({ messages: [say('x'), say([use], 'assistant'), say([result])] }), /must define tools/],
    ['no such model', base({ model: 'claude-2' }), /not_found/],
  ]);

  test('refused: (14) thinking behind an edited prefix', async () => {
    const client = new Anthropic({ apiKey: box.fake.key, baseURL: box.fake.url, maxRetries: 0 });
    const params = { model: 'claude-sonnet-5-5', max_tokens: 1000 };
    box.fake.script.push({ thinking: 'a', text: 'b' });
    const { content } = await client.messages.stream({ ...params, messages: [say('one')] }).finalMessage();
    const next = (first, back) => client.messages.create({ ...params, messages: [say(first), say(back, 'assistant'), say('two')] });
    await assert.rejects(next('edited', content), /prefix/);
    await assert.rejects(next('one', [{ ...content[0], thinking: 'A' }, content[1]]), /cannot be modified/);
    assert.equal((await next('one', content)).content[0].text, 'ok');
  });
});

describe('gemini', () => {
  const box = faked(gemini);
  const path = '/v1beta/models/gemini-4-argon:streamGenerateContent?alt=sse';
  const turn = (role, ...parts) => ({ role, parts });
  const x = turn('user', { text: 'x' });
  const base = (more) => ({ contents: [x], ...more });
  const call = { functionCall: { id: '1', name: 'w', args: {} }, thoughtSignature: 'skip_thought_signature_validator' };
  const answer = (more) => ({ functionResponse: { id: '1', name: 'w', response: {}, ...more } });
  const fn = (more) => base({ tools: [{ functionDeclarations: [{ name: 'w', ...more }] }] });

  test('its SDK streams a turn with tools, signatures and continuation', async () => {
    const ai = new GoogleGenAI({ apiKey: box.fake.key, httpOptions: { baseUrl: box.fake.origin } });
    const config = { tools: [{ functionDeclarations: [{ name: 'w', parametersJsonSchema: weather }] }] };
    const contents = [x];
    const read = async () => {
      const parts = [];
      for await (const chunk of await ai.models.generateContentStream({ model: 'gemini-4-argon', contents, config }))
        parts.push(...(chunk.candidates?.[0].content?.parts ?? []));
      return parts;
    };
    box.fake.script.push(row, { text: 'do', stop: 'CONTINUATION' }, { text: 'ne' });
    const parts = await read();
    const calls = parts.filter((p) => p.functionCall);
    assert.deepEqual(calls[0].functionCall.args, { place: 'Zürich' });
    assert.ok(calls[0].thoughtSignature);
    contents.push(turn('model', ...parts), turn('user', ...calls.map(({ functionCall: c }) =>
      ({ functionResponse: { id: c.id, name: c.name, response: { output: 'sunny' } } }))));
    assert.equal((await read()).map((p) => p.text).join(''), 'done');
    assert.deepEqual(box.fake.problems, []);
    const names = [];
    for await (const model of await ai.models.list()) names.push(model.name);
    assert.equal(names.length, 6);
  });

  refused(box, path, () => ({ 'x-goog-api-key': box.fake.key }), [
    ['(1) a wrong key', base(), /not valid/, { 'x-goog-api-key': 'no' }],
    ['(1) two keys', base(), /not valid/, { authorization: 'Bearer x' }],
    ['(3) an unknown member', base({ messages: [] }), /Unknown name/],
    ['(18) no signature', base({ contents: [x, turn('model', { functionCall: call.functionCall }), turn('user', answer())] }), /missing a thought_signature/],
    ['(18) a foreign signature', base({ contents: [x, turn('model', { ...call, thoughtSignature: 'AAAA' }), turn('user', answer())] }), /not valid/],
    ['(19) another id', base({ contents: [x, turn('model', call), turn('user', answer({ id: '2' }))] }), /id/],
    ['(19) another name', base({ contents: [x, turn('model', call), turn('user', answer({ name: 'v' }))] }), /name/],
    ['(19) too few', base({ contents: [x, turn('model', call, call), turn('user', answer())] }), /number of function response/],
    ['(19) as the model', base({ contents: [x, turn('model', call), turn('model', answer())] }), /in a model turn/],
    ['(19) too late', base({ contents: [x, turn('model', call), x, turn('user', answer())] }), /number of function response/],
    ['(20) an unknown word', fn({ parameters: { type: 'object', additionalProperties: false } }), /Unknown name/],
    ['(20) both schemas', fn({ parameters: { type: 'object' }, parametersJsonSchema: weather }), /and parametersJsonSchema/],
    ['(20) const', fn({ parametersJsonSchema: { const: 1 } }), /Unknown name/],
    ['(21) no parts', base({ contents: [turn('user')] }), /must not be empty/],
    ['(21) an empty part', base({ contents: [turn('user', {})] }), /exactly one/],
    ['(21) a response as text', base({ contents: [x, turn('model', call), turn('user', answer({ response: 'x' }))] }), /Struct/],
    ['(22) a foreign token', base({ continuationToken: 'abc' }), /not for this request/],
    ['first the model', base({ contents: [turn('model', { text: 'x' }), x] }), /first content/],
    ['a name', fn({ name: '7zip' }), /Invalid function name/],
  ]);
});

describe('openai', () => {
  const box = faked(openai);
  const client = () => new OpenAI({ apiKey: box.fake.key, baseURL: box.fake.url, maxRetries: 1 });
  const auth = () => ({ authorization: `Bearer ${box.fake.key}` });
  const x = { role: 'user', content: 'x' };
  const fn = { name: 'w', parameters: weather };
  const call = { id: 'c1', type: 'function', function: { name: 'w', arguments: '{}' } };
  const chat = (messages, more) => ({ model: 'gpt-4o', messages, ...more });
  const called = { role: 'assistant', content: null, tool_calls: [call] };
  const input = (items, more) => ({ model: 'gpt-6.1-sol', input: [x0, ...items], ...more });
  const x0 = { role: 'user', content: 'x' };
  const item = { type: 'function_call', call_id: 'c1', name: 'w', arguments: '{}' };
  const output = { type: 'function_call_output', call_id: 'c1', output: 'y' };

  test('its SDK streams a turn of Chat', async () => {
    box.fake.script.push({ ...row, thinking: undefined }, { text: 'done' });
    const messages = [x];
    const params = { model: 'gpt-4o', tools: [{ type: 'function', function: fn }], stream_options: { include_usage: true } };
    const first = await client().chat.completions.stream({ ...params, messages }).finalChatCompletion();
    const { message } = first.choices[0];
    assert.equal(message.tool_calls.length, 2);
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { place: 'Zürich' });
    assert.equal(first.usage.total_tokens, 27);
    messages.push({ role: 'assistant', content: message.content, tool_calls: message.tool_calls.map(
      ({ id, type, function: f }) => ({ id, type, function: { name: f.name, arguments: f.arguments } })) });
    for (const c of message.tool_calls) messages.push({ role: 'tool', tool_call_id: c.id, content: 'sunny' });
    const second = await client().chat.completions.stream({ ...params, messages }).finalChatCompletion();
    assert.equal(second.choices[0].message.content, 'done');
    assert.deepEqual(box.fake.problems, []);
  });

  test('its SDK streams a turn of Responses, stateless', async () => {
    box.fake.script.push(row, { status: 500, headers: { 'retry-after-ms': '5' } }, { text: 'done' });
    const items = [x0];
    const params = { model: 'gpt-6.1-sol', store: false, include: ['reasoning.encrypted_content'], tools: [{ type: 'function', strict: false, ...fn }] };
    const first = await client().responses.stream({ ...params, input: items }).finalResponse();
    assert.deepEqual(first.output.map((i) => i.type), ['reasoning', 'message', 'function_call', 'function_call']);
    const plain = first.output.map(({ parsed_arguments, ...i }) => i.content
      ? { ...i, content: i.content.map(({ parsed, ...c }) => c) } : i);
    items.push(...plain, ...plain.filter((i) => i.type === 'function_call')
      .map((i) => ({ type: 'function_call_output', call_id: i.call_id, output: 'sunny' })));
    const second = await client().responses.stream({ ...params, input: items }).finalResponse();
    assert.equal(second.output_text, 'done');
    assert.deepEqual(box.fake.problems, []);
    assert.equal((await client().models.list()).data.length, 7);
  });

  describe('chat', () => refused(box, '/v1/chat/completions', auth, [
    ['(1) a wrong key', chat([x]), /invalid_api_key/, { authorization: 'Bearer no' }],
    ['(3) an unknown member', chat([x], { contents: [] }), /Unrecognized/],
    ['(23) no tool message', chat([x, called, x]), /did not have response/],
    ['(23) not adjacent', chat([x, called, x, { role: 'tool', tool_call_id: 'c1', content: 'y' }]), /did not have response/],
    ['(23) an orphan', chat([x, { role: 'tool', tool_call_id: 'c1', content: 'y' }]), /nobody called/],
    ['(23) arguments as object', chat([x, { ...called, tool_calls: [{ ...call, function: { name: 'w', arguments: {} } }] }]), /a string/],
    ['(23) a picture in a tool message', chat([x, called, { role: 'tool', tool_call_id: 'c1', content: [{ type: 'image_url' }] }]), /text only/],
    ['(24) tools with effort', chat([x], { model: 'gpt-6-astra', tools: [{ type: 'function', function: fn }] }), /responses/],
    ['(24) max_tokens', chat([x], { model: 'gpt-5.5', max_tokens: 9 }), /max_tokens/],
    ['(24) strict, not all required', chat([x], { tools: [{ type: 'function', function: { ...fn, strict: true } }] }), /strict/],
    ['(24) a long name', chat([x], { tools: [{ type: 'function', function: { name: 'w'.repeat(65) } }] }), /tools.name/],
    ['null without calls', chat([x, { role: 'assistant', content: null }]), /null/],
  ]));

  test('(25) usage only if asked', async () => {
    const { text } = await post(box.fake, '/v1/chat/completions', chat([x], { stream: true }), auth());
    assert.doesNotMatch(text, /usage/);
  });

  describe('responses', () => refused(box, '/v1/responses', auth, [
    ['(26) an output nobody called', input([output]), /No tool call found/],
    ['(26) a call nobody answered', input([item]), /No tool output found/],
    ['(26) reasoning without its content', input([{ type: 'reasoning', id: 'rs_1', summary: [] }]), /not found/],
    ['(26) foreign reasoning', input([{ type: 'reasoning', id: 'rs_x', summary: [], encrypted_content: 'x' }]), /verified/],
    ['(3) messages', input([], { messages: [] }), /Unknown parameter/],
  ]));

  test('refused: (26) reasoning without its follower', async () => {
    box.fake.script.push({ thinking: 'a', calls: [{ name: 'w' }] });
    const params = { model: 'gpt-6.1-sol', store: false, include: ['reasoning.encrypted_content'] };
    const { output: items } = await client().responses.create({ ...params, input: [x0] });
    await assert.rejects(client().responses.create({ ...params, input: [x0, items[0]] }), /required following item/);
    await assert.rejects(client().responses.create({ ...params,
      input: [x0, items[1], { type: 'function_call_output', call_id: items[1].call_id, output: 'x' }] }), /required 'reasoning' item/);
  });
});

test('strict JSON', () => {
  const utf8 = (text) => Buffer.from(text);
  assert.deepEqual(strictJson(utf8('{"a":{"b":1},"b":[{"a":2},{"a":"a\\":"}]}')), { a: { b: 1 }, b: [{ a: 2 }, { a: 'a":' }] });
  for (const bad of ['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '[{"x":{"y":1,"y":2}}]', '{"a":1,}'])
    assert.throws(() => strictJson(utf8(bad)), bad);
});
