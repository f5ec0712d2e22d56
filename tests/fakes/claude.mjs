// A fake of Anthropic's Messages API, version 2026-10-21, as strict as the
// real one is said to be: what it refuses is what old clients trip over.
import { createHash } from 'node:crypto';

import { Refusal, blank, checkWindow, isObject, json, pieces, scripted, serve, typeOf, unknown } from './server.mjs';

const refuse = (status, type, message) =>
  new Refusal(status, {
    type: 'error',
    error: { type, message },
    request_id: 'req_fake',
  });
const bad = (message) => refuse(400, 'invalid_request_error', message);

const MODELS = [
  ['claude-fable-5-2', 'Claude Fable 5.2', 1000000, 128000, 'active'],
  ['claude-opus-5-5', 'Claude Opus 5.5', 1000000, 128000, 'active'],
  ['claude-sonnet-5-5', 'Claude Sonnet 5.5', 1000000, 128000, 'active'],
  ['claude-haiku-5-5', 'Claude Haiku 5.5', 400000, 64000, 'active'],
  ['claude-sonnet-4-5', 'Claude Sonnet 4.5', 200000, 64000, 'deprecated'],
];
const PAGE = 2; // so that every client has to turn pages

const TOP = [
  'model', 'max_tokens', 'messages', 'system', 'tools', 'tool_choice', 'thinking',
  'output_config', 'stop_sequences', 'stream', 'cache_control', 'metadata',
  'service_tier', 'speed',
];
const SAMPLING = ['temperature', 'top_p', 'top_k'];
const BLOCKS = {
  text: ['type', 'text', 'citations', 'cache_control'],
  image: ['type', 'source', 'cache_control'],
  document: ['type', 'source', 'title', 'context', 'citations', 'cache_control'],
  thinking: ['type', 'thinking', 'signature'],
  redacted_thinking: ['type', 'data'],
  tool_use: ['type', 'id', 'name', 'input', 'caller', 'cache_control'],
  tool_result: ['type', 'tool_use_id', 'content', 'is_error', 'cache_control'],
  server_tool_use: ['type', 'id', 'name', 'input', 'cache_control'],
  web_search_tool_result: ['type', 'tool_use_id', 'content', 'cache_control'],
};
const NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const CHOICES = ['auto', 'any', 'tool', 'none'];

/** Without the marks, which thinking is not bound to. */
const bare = (value) =>
  JSON.stringify(value, (key, v) => (key === 'cache_control' ? undefined : v));
const digest = (...values) =>
  createHash('sha256').update(values.map(bare).join('\n')).digest('hex');

function checkAuth({ headers }, key) {
  const given = [headers['x-api-key'], headers.authorization].filter(Boolean);
  if (given.length !== 1 || ![key, `Bearer ${key}`].includes(given[0]))
    throw refuse(401, 'authentication_error', `invalid x-api-key: ${given[0]}`);
  if (!['2026-10-21', '2023-06-01'].includes(headers['anthropic-version']))
    throw bad('anthropic-version: header is required');
}

function checkTools(tools = []) {
  const names = new Set();
  for (const tool of tools) {
    const odd = unknown(tool, [
      'name', 'description', 'input_schema', 'strict', 'cache_control', 'type',
      'defer_loading', 'input_examples', 'eager_input_streaming',
    ]);
    if (odd) throw bad(`tools: ${odd}: Extra inputs are not permitted`);
    if (!NAME.test(tool.name)) throw bad(`tools.name: ${tool.name}`);
    if (names.has(tool.name)) throw bad('tools: Tool names must be unique');
    names.add(tool.name);
    if (tool.input_schema?.type !== 'object') throw bad('tools.input_schema.type: object');
  }
}

/** The type is that of the bytes; the size has a limit. */
function checkImage({ source }) {
  if (source?.type !== 'base64' || !/^image\/(png|jpeg|gif|webp)$/.test(source.media_type))
    throw bad('image.source.media_type');
  if (typeOf(source.data) !== source.media_type)
    throw bad(`The image was specified using the ${source.media_type} media type, but does not appear to be one`);
  if (source.data.length > 5 * 1024 * 1024) throw bad('image exceeds 5 MB maximum');
}

function checkResultContent(content) {
  if (content === undefined || typeof content === 'string') return;
  for (const part of content) {
    if (!['text', 'image', 'document', 'search_result'].includes(part.type))
      throw bad(`tool_result.content: ${part.type}`);
    if (part.type === 'text' && blank(part.text)) throw bad('text content blocks must be non-empty');
    if (part.type === 'image') checkImage(part);
  }
}

function checkBlock(block, role) {
  const known = BLOCKS[block.type];
  if (!known) throw bad(`content: unknown block ${block.type}`);
  const odd = unknown(block, known);
  if (odd) throw bad(`${block.type}: ${odd}: Extra inputs are not permitted`);
  const own = ['tool_use', 'thinking', 'redacted_thinking', 'server_tool_use',
    'web_search_tool_result'].includes(block.type);
  if (own && role !== 'assistant') throw bad(`${block.type} in a ${role} message`);
  if (['tool_result', 'image', 'document'].includes(block.type) && role !== 'user')
    throw bad(`${block.type} in a ${role} message`);
  if (block.type === 'text' && blank(block.text))
    throw bad('messages: text content blocks must be non-empty');
  if (block.type === 'tool_use') {
    if (!NAME.test(block.name) || !/^[a-zA-Z0-9_-]+$/.test(block.id)) throw bad('tool_use.id');
    if (!isObject(block.input)) throw bad('tool_use.input: Input should be an object');
  }
  if (block.type === 'tool_result') checkResultContent(block.content);
  if (block.type === 'image') checkImage(block);
}

function checkPairs(messages) {
  const seen = new Set();
  messages.forEach(({ content }, i) => {
    const uses = content.filter((b) => b.type === 'tool_use').map((b) => b.id);
    for (const id of uses) {
      if (seen.has(id)) throw bad('`tool_use` ids must be unique');
      seen.add(id);
    }
    const results = content.filter((b) => b.type === 'tool_result').map((b) => b.tool_use_id);
    const before = i
      ? messages[i - 1].content.filter((b) => b.type === 'tool_use').map((b) => b.id)
      : [];
    if (results.some((id) => !before.includes(id)))
      throw bad('unexpected `tool_use_id` found in `tool_result` blocks');
    if (new Set(results).size !== results.length) throw bad('each tool_use must have a single result');
    if (before.some((id) => !results.includes(id)))
      throw bad('`tool_use` ids were found without `tool_result` blocks immediately after');
    const first = content.findIndex((b) => b.type !== 'tool_result');
    if (first >= 0 && content.slice(first).some((b) => b.type === 'tool_result'))
      throw bad('tool_result blocks must come first');
  });
}

/** Thinking goes back as it came: bytes, order, and what stood before it. */
function checkThinking(fake, body) {
  body.messages.forEach(({ role, content }, i) => {
    if (role !== 'assistant') return;
    const back = content.filter((b) => /thinking$/.test(b.type));
    if (!back.length) return;
    const issued = fake.issued.get(back[0].signature ?? back[0].data);
    if (!issued) throw bad('thinking: Invalid `signature` in `thinking` block');
    if (bare(issued.blocks) !== bare(back))
      throw bad('`thinking` blocks cannot be modified');
    if (issued.prefix !== digest(body.system, body.tools, body.messages.slice(0, i)))
      throw bad('thinking: the prefix of a `thinking` block has changed');
  });
}

function checkMessages(fake, body) {
  if (!Array.isArray(body.messages) || !body.messages.length) throw bad('messages: at least one');
  for (const message of body.messages) {
    const odd = unknown(message, ['role', 'content']);
    if (odd) throw bad(`messages: ${odd}: Extra inputs are not permitted`);
    if (typeof message.content === 'string') message.content = [{ type: 'text', text: message.content }];
    if (!message.content.length) throw bad('messages: content must not be empty');
    for (const block of message.content) checkBlock(block, message.role);
  }
  body.messages.forEach(({ role }, i) => {
    if (role !== (i % 2 ? 'assistant' : 'user')) throw bad('messages: roles must alternate, user first');
  });
  const last = body.messages.at(-1);
  if (last.role === 'assistant' && !fake.paused.has(bare(last.content)))
    throw bad('This model does not support assistant message prefill');
  checkPairs(body.messages);
  checkThinking(fake, body);
}

function check(fake, body) {
  const sampled = SAMPLING.find((k) => k in body);
  if (sampled) throw bad(`${sampled}: not supported in this version`);
  const odd = unknown(body, TOP);
  if (odd) throw bad(`${odd}: Extra inputs are not permitted`);
  if (!MODELS.some(([id]) => id === body.model))
    throw refuse(404, 'not_found_error', `model: ${body.model}`);
  if (!Number.isInteger(body.max_tokens) || body.max_tokens < 1) throw bad('max_tokens: required');
  checkTools(body.tools);
  if (body.tool_choice && (!CHOICES.includes(body.tool_choice.type) || !body.tools?.length))
    throw bad('tool_choice may only be specified while providing tools');
  checkMessages(fake, body);
  if (!body.tools?.length && body.messages.some(({ content }) => content.some((b) => b.type === 'tool_use')))
    throw bad('Requests which include `tool_use` or `tool_result` blocks must define tools');
  const marks = JSON.stringify(body).split('"cache_control":').length - 1;
  if (marks > 4) throw bad(`A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`);
}

/** The blocks of the reply as they will be when all deltas are in. */
function blocksOf(fake, row) {
  const blocks = [];
  const id = (kind) => `${kind}_fake${++fake.count}`;
  for (const thought of [row.thinking ?? []].flat())
    blocks.push({ type: 'thinking', thinking: thought, signature: id('sig') });
  if (row.redacted) blocks.push({ type: 'redacted_thinking', data: id('red') });
  if (row.text !== undefined) {
    const text = Array.isArray(row.text) ? row.text.join('') : row.text;
    blocks.push({ type: 'text', text, ...(row.citations && { citations: row.citations }) });
  }
  for (const block of row.blocks ?? []) blocks.push(block);
  for (const call of row.calls ?? [])
    blocks.push({ type: 'tool_use', id: call.id ?? id('toolu'), name: call.name,
      input: call.args ?? {}, caller: { type: 'direct' } });
  return blocks;
}

const opened = {
  text: (b) => ({ type: 'text', text: '' }),
  thinking: () => ({ type: 'thinking', thinking: '', signature: '' }),
  tool_use: (b) => ({ ...b, input: {} }),
  server_tool_use: (b) => ({ ...b, input: {} }),
};

function deltasOf(block, row) {
  switch (block.type) {
    case 'text':
      return [
        ...pieces(Array.isArray(row.text) ? row.text : block.text, row)
          .map((text) => ({ type: 'text_delta', text })),
        ...(block.citations ?? []).map((citation) => ({ type: 'citations_delta', citation })),
      ];
    case 'thinking':
      return [
        ...pieces(block.thinking, row).map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: block.signature },
      ];
    case 'tool_use':
    case 'server_tool_use':
      if (!Object.keys(block.input).length) return row.emptyDelta
        ? [{ type: 'input_json_delta', partial_json: '' }] : [];
      return pieces(row.rawArgs ?? JSON.stringify(block.input), row)
        .map((partial_json) => ({ type: 'input_json_delta', partial_json }));
    default:
      return [];
  }
}

function eventsOf(blocks, row, body) {
  const usage = { input_tokens: 11, cache_creation_input_tokens: 2, cache_read_input_tokens: 3, output_tokens: 1, ...row.usage };
  const stop = row.stop ?? (row.calls?.length ? 'tool_use' : 'end_turn');
  const out = [{
    type: 'message_start',
    message: {
      id: 'msg_fake', type: 'message', role: 'assistant', content: [], model: body.model,
      stop_reason: null, stop_sequence: null, usage,
    },
  }];
  blocks.forEach((block, index) => {
    out.push({ type: 'content_block_start', index, content_block: opened[block.type]?.(block) ?? block });
    if (index === 0) out.push({ type: 'ping' });
    for (const delta of deltasOf(block, row)) out.push({ type: 'content_block_delta', index, delta });
    out.push({ type: 'content_block_stop', index });
  });
  out.push({
    type: 'message_delta',
    delta: { stop_reason: stop, stop_sequence: null, ...row.stopDetails },
    usage: { output_tokens: 42, ...row.usage, ...(row.noise && { input_tokens: null, new_counter: 1 }) },
  });
  out.push({ type: 'message_stop' });
  return out.map((e) => ({ event: e.type, data: json(e, row) }));
}

function messages({ fake, rq, body }) {
  checkAuth(rq, fake.key);
  check(fake, body);
  checkWindow(fake, (n, max) => bad(`prompt is too long: ${n} tokens > ${max} maximum`));
  const row = fake.next();
  if (row.status) throw scripted(row, refuse(row.status, row.type ?? 'api_error', 'as told').body);
  const blocks = blocksOf(fake, row);
  const thoughts = blocks.filter((b) => /thinking$/.test(b.type));
  for (const b of thoughts)
    fake.issued.set(b.signature ?? b.data, {
      blocks: thoughts, prefix: digest(body.system, body.tools, body.messages),
    });
  if (row.stop === 'pause_turn') fake.paused.add(bare(blocks));
  if (body.stream) return { row, events: eventsOf(blocks, row, body) };
  return {
    json: {
      id: 'msg_fake', type: 'message', role: 'assistant', content: blocks, model: body.model,
      stop_reason: row.stop ?? (row.calls ? 'tool_use' : 'end_turn'), stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  };
}

function models({ fake, rq, url }) {
  checkAuth(rq, fake.key);
  const row = fake.script[0]?.models ? fake.script.shift() : {};
  if (row.status) throw scripted(row, refuse(row.status, 'api_error', 'as told').body);
  const after = url.searchParams.get('after_id');
  const from = after ? MODELS.findIndex(([id]) => id === after) + 1 : 0;
  const limit = Math.min(PAGE, Number(url.searchParams.get('limit') ?? 20));
  const page = MODELS.slice(from, from + limit);
  return {
    json: {
      data: page.map(([id, display_name, max_input_tokens, max_tokens, lifecycle]) => ({
        type: 'model', id, display_name, max_input_tokens: fake.told ?? max_input_tokens, max_tokens, lifecycle,
        created_at: '2026-11-09T00:00:00Z', capabilities: null,
      })),
      has_more: from + limit < MODELS.length,
      first_id: page[0]?.[0] ?? null,
      last_id: page.at(-1)?.[0] ?? null,
    },
  };
}

export const claude = (options) =>
  serve({
    refuse,
    noise: (i) => i % 2
      ? [{ event: 'ping', data: '{"type": "ping"}' }]
      : [{ event: 'something_new', data: '{"type":"something_new","index":0,"deep":[{"x":1}]}' }],
    error: (row) => ({
      event: 'error',
      data: JSON.stringify({ type: 'error', error: { type: row.type ?? 'overloaded_error', message: 'Overloaded' } }),
    }),
    routes: [
      ['POST', /^\/v1\/messages$/, messages],
      ['GET', /^\/v1\/models$/, models],
    ],
  }, { issued: new Map(), paused: new Set(), count: 0, ...options });
