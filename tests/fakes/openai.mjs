// A fake of OpenAI: Chat Completions and Responses, and the models list. With
// { compatible: true } it is somebody else's server instead: no key needed,
// only Chat, and the quirks of such servers, each by its name in a row:
//   noIndex sameIndex indexFrom1 emptyId objectArgs repeatName wholeCalls
//   stopWithCalls noUsage noDone think reasoning: 'member' details
// { newLimit: true } refuses max_tokens, as servers with newer models do.
import { isDeepStrictEqual } from 'node:util';

import { Refusal, checkWindow, isObject, json, pieces, scripted, serve, typeOf, unknown } from './server.mjs';

const refuse = (status, code, message, type = 'invalid_request_error') =>
  new Refusal(status, { error: { message, type, param: null, code } });
const bad = (message) => refuse(400, null, message);

const MODELS = [
  ['gpt-4o', 1715367049], ['gpt-6.1-sol', 1793000000], ['gpt-6-astra', 1790000000],
  ['gpt-5.5', 1780000000], ['text-embedding-3-large', 1705953180],
  ['gpt-4o-audio-preview', 1727460443], ['whisper-1', 1677532384],
];
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const reasons = (model) => /^(gpt-[56]|o\d)/.test(model);
const needsResponses = (model) => /^gpt-(6|5\.6)/.test(model);

function checkAuth(rq, fake) {
  if (fake.compatible && !fake.key) return;
  if (rq.headers.authorization !== `Bearer ${fake.key}` || rq.headers['x-api-key'])
    throw refuse(401, 'invalid_api_key',
      `Incorrect API key provided: ${rq.headers.authorization}. You can find your API key at`);
}

const NOT_STRICT = ['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired',
  'dependentSchemas', 'patternProperties', 'propertyNames', 'prefixItems', 'contains',
  'uniqueItems', 'minProperties', 'maxProperties', 'unevaluatedProperties', 'unevaluatedItems'];

function checkStrict(schema) {
  const odd = NOT_STRICT.find((w) => w in schema);
  if (odd) throw bad(`strict: ${odd} is not permitted`);
  if (schema.properties) {
    if (schema.additionalProperties !== false) throw bad('strict: additionalProperties must be false');
    const names = Object.keys(schema.properties);
    if (names.some((n) => !schema.required?.includes(n))) throw bad('strict: all must be required');
    Object.values(schema.properties).forEach(checkStrict);
  }
}

function checkChoice({ tools, tool_choice: choice }) {
  if (choice === undefined) return;
  if (!tools?.length) throw bad("'tool_choice' is only allowed when 'tools' are specified.");
  if (!isObject(choice) && !['none', 'auto', 'required'].includes(choice)) throw bad(`tool_choice ${choice}`);
}

function checkFunction(f, seen) {
  const odd = unknown(f, ['type', 'name', 'description', 'parameters', 'strict']);
  if (odd) throw bad(`tools: unknown parameter ${odd}`);
  if (!NAME.test(f.name)) throw bad(`tools.name: ${f.name}`);
  if (seen.has(f.name)) throw bad('tools: names must be unique');
  seen.add(f.name);
  if (f.parameters !== undefined && !isObject(f.parameters)) throw bad('tools.parameters');
  if (f.strict) checkStrict(f.parameters);
}

// --- Chat Completions -------------------------------------------------------

const CHAT_TOP = ['model', 'messages', 'tools', 'tool_choice', 'parallel_tool_calls', 'stream',
  'stream_options', 'max_completion_tokens', 'max_tokens', 'reasoning_effort', 'temperature',
  'top_p', 'stop', 'response_format', 'n', 'user', 'store', 'metadata', 'prompt_cache_key', 'seed'];

function checkAssistant(fake, m) {
  const own = fake.compatible ? ['reasoning', 'reasoning_content', 'reasoning_details'] : [];
  const odd = unknown(m, ['role', 'content', 'refusal', 'tool_calls', 'name', ...own]);
  if (odd) throw bad(`messages: unknown parameter ${odd}`);
  if (m.content == null && !m.tool_calls?.length) throw bad('assistant content is null without tool_calls');
  for (const call of m.tool_calls ?? []) {
    if (typeof call.id !== 'string' || !call.id) throw bad('tool_calls.id');
    if (call.type !== 'function' || !NAME.test(call.function?.name)) throw bad('tool_calls.function');
    if (typeof call.function.arguments !== 'string') throw bad('tool_calls.arguments: a string');
    JSON.parse(call.function.arguments);
  }
  if (m.reasoning_details && !fake.issued.some((d) => isDeepStrictEqual(d, m.reasoning_details))) throw bad('reasoning_details: not as they came');
}

const isImage = (url) => {
  const [, type, data] = /^data:(image\/\w+);base64,(.+)$/.exec(url ?? '') ?? [];
  return Boolean(type) && typeOf(data) === type;
};

function checkMessages(fake, messages) {
  let open = new Set();
  for (const m of messages) {
    if (!['system', 'developer', 'user', 'assistant', 'tool'].includes(m.role)) throw bad(`role ${m.role}`);
    if (m.role === 'tool') {
      if (!open.delete(m.tool_call_id)) throw bad(`tool message for ${m.tool_call_id}, which nobody called`);
      const texts = typeof m.content === 'string' || m.content.every((p) => p.type === 'text');
      if (!texts) throw bad('tool messages hold text only');
      continue;
    }
    if (open.size) throw bad(`tool_call_ids did not have response messages: ${[...open]}`);
    if (m.role === 'assistant') {
      checkAssistant(fake, m);
      open = new Set((m.tool_calls ?? []).map((c) => c.id));
      if (open.size !== (m.tool_calls?.length ?? 0)) throw bad('tool_calls: ids must be unique');
    } else if (Array.isArray(m.content) && m.content.some((p) => p.type === 'image_url' && !isImage(p.image_url?.url))) {
      throw bad('Invalid image data');
    } else if (m.content == null || m.content.length === 0) {
      throw bad('content must not be empty');
    }
  }
  if (open.size) throw bad(`tool_call_ids did not have response messages: ${[...open]}`);
}

function checkChat(fake, body) {
  const odd = unknown(body, CHAT_TOP);
  if (odd) throw bad(`Unrecognized request argument supplied: ${odd}`);
  if (!fake.compatible) {
    if (!MODELS.some(([id]) => id === body.model))
      throw refuse(404, 'model_not_found', `The model ${body.model} does not exist`);
    if ('max_tokens' in body && reasons(body.model)) throw bad('max_tokens is not supported with this model');
    if (body.tools?.length && needsResponses(body.model) && body.reasoning_effort !== 'none')
      throw bad('function tools need /v1/responses with this model');
  }
  if (fake.newLimit && 'max_tokens' in body)
    throw Object.assign(bad("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
      { scripted: true });
  const seen = new Set();
  for (const t of body.tools ?? []) {
    if (t.type !== 'function' || !t.function) throw bad('tools.type');
    checkFunction(t.function, seen);
  }
  checkChoice(body);
  if (!body.messages?.length) throw bad('messages: empty');
  checkMessages(fake, body.messages);
}

/** The deltas of the calls, straight or crooked. */
function callDeltas(fake, row) {
  const out = [];
  (row.calls ?? []).forEach(({ name, args = {}, raw }, i) => {
    const id = row.emptyId ? '' : `call_${++fake.count}`;
    const index = row.noIndex ? undefined : row.sameIndex ? 0 : row.indexFrom1 ? i + 1 : i;
    const text = raw ?? JSON.stringify(args);
    const parts = row.wholeCalls || row.objectArgs ? [text] : pieces(text, row);
    parts.forEach((part, k) => {
      const first = k === 0;
      out.push({ tool_calls: [{
        ...(index !== undefined && { index }),
        ...((first || row.emptyId) && { id }),
        ...(first && { type: 'function' }),
        ...(first && row.extra && { extra_content: row.extra }),
        function: {
          ...((first || row.repeatName) && { name }),
          arguments: row.objectArgs ? args : part,
        },
      }] });
    });
  });
  return out;
}

function chatDeltas(fake, row) {
  const deltas = [{ role: 'assistant', content: row.calls ? null : '' }];
  for (const d of row.details ?? []) deltas.push({ reasoning_details: [d] });
  if (row.details) fake.issued.push(row.merged ?? row.details); // merged: pieces of one item
  const thought = row.thinking ? pieces(row.thinking, row) : [];
  if (row.think) deltas.push(...pieces(`<think>${row.thinking}</think>`, row).map((content) => ({ content })));
  else deltas.push(...thought.map((t) => ({ [row.reasoning ?? 'reasoning_content']: t })));
  if (row.refusal) deltas.push(...pieces(row.refusal, row).map((refusal) => ({ refusal })));
  if (row.text !== undefined) deltas.push(...pieces(row.text, row).map((content) => ({ content })));
  return [...deltas, ...callDeltas(fake, row)];
}

function chatEvents(fake, row, body) {
  const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: body.model };
  const asked = body.stream_options?.include_usage;
  const chunk = (delta, finish_reason = null) => ({
    ...base, choices: [{ index: 0, delta, finish_reason, logprobs: null }],
    ...(asked && !row.noUsage && { usage: null }),
  });
  const calls = row.calls?.length && !row.stopWithCalls;
  const events = chatDeltas(fake, row).map((d) => chunk(d));
  events.push(chunk({}, row.stop ?? (calls ? 'tool_calls' : 'stop')));
  if (asked && !row.noUsage)
    events.push({ ...base, choices: [], usage: { prompt_tokens: 20, completion_tokens: 7, total_tokens: 27,
      prompt_tokens_details: { cached_tokens: 5 } } });
  const out = events.map((e) => ({ data: json(e, row) }));
  return row.noDone ? out : [...out, { data: '[DONE]' }];
}

function chat({ fake, rq, body }) {
  checkAuth(rq, fake);
  checkChat(fake, body);
  checkWindow(fake, (n, max) => refuse(400, 'context_length_exceeded',
    `This model's maximum context length is ${max} tokens. However, your messages resulted in ${n} tokens.`));
  const row = fake.next();
  if (row.status) throw scripted(row, refuse(row.status, row.code ?? null, row.message ?? 'as told', row.type).body);
  if (!body.stream || row.unstreamed) {
    const calls = (row.calls ?? []).map((c, i) => ({ id: `call_${i}`, type: 'function',
      function: { name: c.name, arguments: JSON.stringify(c.args ?? {}) } }));
    return { json: { id: 'c', object: 'chat.completion', created: 1, model: body.model, choices: [{ index: 0,
      finish_reason: calls.length ? 'tool_calls' : 'stop',
      message: { role: 'assistant', content: row.text ?? null, ...(calls.length && { tool_calls: calls }) } }] } };
  }
  return { row, events: chatEvents(fake, row, body) };
}

// --- Responses ---------------------------------------------------------------

const RESPONSES_TOP = ['model', 'instructions', 'input', 'tools', 'tool_choice', 'max_output_tokens',
  'reasoning', 'store', 'include', 'stream', 'previous_response_id', 'parallel_tool_calls', 'text',
  'metadata', 'truncation', 'temperature', 'top_p', 'stream_options', 'prompt_cache_key'];

function checkItem(fake, item, i, input) {
  if (item.type === undefined || item.type === 'message') {
    if (!['user', 'assistant', 'system', 'developer'].includes(item.role)) throw bad(`input[${i}].role`);
    const parts = typeof item.content === 'string' ? [] : item.content;
    const want = item.role === 'assistant' ? /^(output_text|refusal)$/ : /^input_(text|image|file)$/;
    if (parts.some((p) => !want.test(p.type))) throw bad(`input[${i}].content: ${parts.map((p) => p.type)}`);
    if (parts.some((p) => p.type === 'input_image' && !isImage(p.image_url))) throw bad(`input[${i}].content: Invalid image data`);
  } else if (item.type === 'reasoning') {
    const issued = fake.items.get(item.id);
    if (!item.encrypted_content) throw refuse(404, null, `Item with id '${item.id}' not found. Items are not persisted when \`store\` is set to false.`);
    if (!issued || JSON.stringify(issued.item) !== JSON.stringify(item)) throw bad('reasoning: the encrypted content could not be verified');
    if (input[i + 1]?.id !== issued.follower)
      throw bad(`Item '${item.id}' of type 'reasoning' was provided without its required following item.`);
  } else if (item.type === 'function_call') {
    if (!NAME.test(item.name) || typeof item.arguments !== 'string') throw bad(`input[${i}]: function_call`);
    const issued = item.id && fake.items.get(item.id);
    if (issued && JSON.stringify(issued.item) !== JSON.stringify(item)) throw bad('function_call: changed');
    if (issued?.leader && input[i - 1]?.id !== issued.leader)
      throw bad(`Item '${item.id}' of type 'function_call' was provided without its required 'reasoning' item`);
  } else if (item.type !== 'function_call_output') {
    throw bad(`input[${i}].type: ${item.type}`);
  }
}

function checkInput(fake, body) {
  const input = typeof body.input === 'string' ? [] : body.input;
  const calls = new Set();
  input.forEach((item, i) => {
    checkItem(fake, item, i, input);
    if (item.type === 'function_call') {
      if (calls.has(item.call_id)) throw bad('Duplicate call_id');
      calls.add(item.call_id);
    }
    if (item.type === 'function_call_output') {
      if (!calls.has(item.call_id)) throw bad(`No tool call found for function call output with call_id ${item.call_id}.`);
      if (typeof item.output !== 'string' && !Array.isArray(item.output)) throw bad('output');
    }
  });
  const answered = new Set(input.filter((i) => i.type === 'function_call_output').map((i) => i.call_id));
  for (const id of calls) if (!answered.has(id)) throw bad(`No tool output found for function call ${id}.`);
}

function itemsOf(fake, row, encrypted) {
  const items = [];
  const id = (kind) => `${kind}_${++fake.count}`;
  if (row.thinking)
    items.push({ id: id('rs'), type: 'reasoning', summary: [{ type: 'summary_text', text: row.thinking }],
      ...(encrypted && { encrypted_content: `gAAA${fake.count}` }) });
  if (row.text !== undefined || row.refusal)
    items.push({ id: id('msg'), type: 'message', status: 'completed', role: 'assistant', content: [
      row.refusal ? { type: 'refusal', refusal: row.refusal }
        : { type: 'output_text', text: [row.text].flat().join(''), annotations: [], logprobs: [] }] });
  for (const c of row.calls ?? [])
    items.push({ id: id('fc'), type: 'function_call', status: row.unfinished ? 'incomplete' : 'completed',
      call_id: id('call'), name: c.name, arguments: c.raw ?? JSON.stringify(c.args ?? {}) });
  items.forEach((item, i) => fake.items.set(item.id, { item, follower: items[i + 1]?.id,
    leader: items[i - 1]?.type === 'reasoning' ? items[i - 1].id : undefined }));
  return items;
}

function itemEvents(item, output_index, row) {
  const at = { output_index, item_id: item.id, content_index: 0 };
  const out = [{ type: 'response.output_item.added', output_index, item: { ...item, ...(item.content && { content: [] }) } }];
  if (item.type === 'reasoning') {
    for (const delta of pieces(row.thinking, row))
      out.push({ type: 'response.reasoning_summary_text.delta', summary_index: 0, ...at, delta });
  } else if (item.type === 'message') {
    const [part] = item.content;
    out.push({ type: 'response.content_part.added', ...at, part: { ...part, text: '' } });
    const kind = part.type === 'refusal' ? 'refusal' : 'output_text';
    for (const delta of pieces(part.type === 'refusal' ? part.refusal : row.text, row))
      out.push({ type: `response.${kind}.delta`, ...at, delta, logprobs: [] });
    out.push({ type: 'response.output_text.done', ...at, text: part.text ?? '' });
  } else {
    for (const delta of pieces(item.arguments, row))
      out.push({ type: 'response.function_call_arguments.delta', output_index, item_id: item.id, delta });
    out.push({ type: 'response.function_call_arguments.done', output_index, item_id: item.id, arguments: item.arguments });
  }
  out.push({ type: 'response.output_item.done', output_index, item });
  return out;
}

function responseEvents(items, row, body) {
  const response = { id: 'resp_1', object: 'response', created_at: 1, model: body.model,
    status: 'in_progress', output: [], error: null, incomplete_details: null };
  const ended = { ...response, output: items, status: row.stop ? 'incomplete' : 'completed',
    incomplete_details: row.stop ? { reason: row.stop } : null,
    usage: { input_tokens: 30, output_tokens: 9, total_tokens: 39, input_tokens_details: { cached_tokens: 6 },
      output_tokens_details: { reasoning_tokens: 3 } } };
  let events = items.flatMap((item, i) => itemEvents(item, i, row));
  if (row.shuffle) { // calls side by side: the second is done first
    const done = events.filter((e) => e.type === 'response.output_item.done').reverse();
    events = [...events.filter((e) => e.type !== 'response.output_item.done'), ...done];
  }
  const all = [
    { type: 'response.created', response }, { type: 'response.in_progress', response }, ...events,
    row.failed
      ? { type: 'response.failed', response: { ...response, status: 'failed', error: row.failed } }
      : { type: `response.${ended.status}`, response: ended },
  ];
  return all.map((e, sequence_number) => ({ event: e.type, data: json({ ...e, sequence_number }, row) }));
}

function responses({ fake, rq, body }) {
  checkAuth(rq, fake);
  const odd = unknown(body, RESPONSES_TOP);
  if (odd) throw bad(`Unknown parameter: '${odd}'.`);
  if (!MODELS.some(([id]) => id === body.model)) throw refuse(404, 'model_not_found', `The model ${body.model} does not exist`);
  const seen = new Set();
  for (const t of body.tools ?? []) {
    if (t.type !== 'function') throw bad('tools.type');
    checkFunction(t, seen);
  }
  checkChoice(body);
  checkInput(fake, body);
  checkWindow(fake, () => refuse(400, 'context_length_exceeded',
    'Your input exceeds the context window of this model. Please adjust your input and try again.'));
  const row = fake.next();
  if (row.status) throw scripted(row, refuse(row.status, row.code ?? null, row.message ?? 'as told', row.type).body);
  const encrypted = body.include?.includes('reasoning.encrypted_content');
  const items = itemsOf(fake, row, encrypted);
  if (body.stream) return { row, events: responseEvents(items, row, body) };
  return { json: { id: 'resp_1', object: 'response', created_at: 1, model: body.model, status: 'completed', output: items } };
}

function models({ fake, rq }) {
  checkAuth(rq, fake);
  if (fake.list) return { json: fake.list };
  return { json: { object: 'list', data: MODELS.map(([id, created]) =>
    ({ id, object: 'model', created, owned_by: 'openai' })) } };
}

export const openai = (options = {}) =>
  serve({
    base: '/v1',
    refuse,
    noise: (i) => options.compatible || i % 2
      ? [{ data: '{"id":"x","object":"something.new","choices":[]}' }]
      : [{ event: 'response.something_new.delta', data: '{"type":"response.something_new.delta","choices":[]}' }],
    error: (row) => row.numeric
      ? { data: '{"error":{"code":502,"message":"upstream broke"}}' }
      : { data: '{"type":"error","error":{"message":"The server had an error","type":"server_error","code":null}}' },
    routes: [
      ['POST', /^\/v1\/chat\/completions$/, chat],
      ...(options.compatible ? [] : [['POST', /^\/v1\/responses$/, responses]]),
      ['GET', /^\/v1\/models$/, models],
    ],
  }, { issued: [], items: new Map(), count: 0, ...options });

/** Somebody else's server that speaks Chat Completions; no key. */
export const compatible = (options = {}) =>
  openai({ compatible: true, key: '', list: { object: 'list', data: [{ id: 'qwen3:8b', object: 'model' }] }, ...options });
