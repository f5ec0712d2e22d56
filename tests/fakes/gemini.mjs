// A fake of Google's generateContent (v1beta), streamed and not, with the
// rules of Gemini 3 and later: signatures, ids, schema words, CONTINUATION.
import { isDeepStrictEqual } from 'node:util';

import { Refusal, checkWindow, isObject, json, pieces, scripted, serve, typeOf, unknown } from './server.mjs';

const STATUS = { 400: 'INVALID_ARGUMENT', 401: 'UNAUTHENTICATED', 403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND', 429: 'RESOURCE_EXHAUSTED', 500: 'INTERNAL', 503: 'UNAVAILABLE' };
const refuse = (status, type, message, details = []) =>
  new Refusal(status, {
    error: { code: status, message, status: STATUS[status] ?? 'UNKNOWN', details },
  });
const bad = (message) => refuse(400, '', message);

const STAND_IN = 'skip_thought_signature_validator';
const MODELS = [
  ['gemini-3.5-flash-lite', 'Gemini 3.5 Flash-Lite', ['generateContent', 'countTokens']],
  ['gemini-4-argon', 'Gemini 4 Argon', ['generateContent', 'countTokens']],
  ['gemini-embedding-2', 'Gemini Embedding 2', ['embedContent']],
  ['gemini-3.8-flash', 'Gemini 3.8 Flash', ['generateContent']],
  ['gemini-2.5-flash', 'Gemini 2.5 Flash', ['generateContent']],
  ['gemini-3.8-flash-image', 'Gemini 3.8 Flash Image', ['generateContent']],
];
const PAGE = 2;

const TOP = ['contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig',
  'safetySettings', 'cachedContent', 'continuationToken'];
const CONFIG = ['maxOutputTokens', 'stopSequences', 'temperature', 'topP', 'topK',
  'responseMimeType', 'responseSchema', 'responseJsonSchema', 'thinkingConfig'];
const PART = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse',
  'executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse', 'thought', 'thoughtSignature'];
const WORDS = ['$id', '$defs', '$ref', '$anchor', 'type', 'format', 'title', 'description', 'enum',
  'items', 'prefixItems', 'minItems', 'maxItems', 'minimum', 'maximum', 'anyOf', 'oneOf',
  'properties', 'additionalProperties', 'required'];
const OPENAPI = ['type', 'format', 'title', 'description', 'nullable', 'enum', 'items', 'minItems',
  'maxItems', 'minimum', 'maximum', 'anyOf', 'properties', 'required', 'pattern', 'default',
  'minLength', 'maxLength', 'minProperties', 'maxProperties', 'propertyOrdering', 'example'];

function checkAuth(rq, url, key) {
  if (url.searchParams.has('key')) throw refuse(401, '', 'the key belongs in a header');
  if (rq.headers['x-goog-api-key'] !== key || rq.headers.authorization)
    throw refuse(400, '', `API key not valid. Please pass a valid API key: ${rq.headers['x-goog-api-key']}`);
}

function checkSchema(schema, words) {
  if (typeof schema === 'boolean') throw bad('a schema is an object');
  const odd = unknown(schema, words);
  if (odd) throw bad(`Unknown name "${odd}" in a schema: Cannot find field.`);
  if (schema.$ref !== undefined && Object.keys(schema).some((k) => !k.startsWith('$')))
    throw bad('beside $ref only $ words may stand');
  for (const [name, sub] of Object.entries(schema.properties ?? {})) {
    if (!/^[A-Za-z_]\w{0,63}$/.test(name)) throw bad(`property name ${name}`);
    checkSchema(sub, words);
  }
  for (const name of schema.required ?? [])
    if (!(name in (schema.properties ?? {}))) throw bad(`required: ${name} is not defined`);
  for (const sub of Object.values(schema.$defs ?? {})) checkSchema(sub, words);
  for (const word of ['anyOf', 'oneOf', 'prefixItems']) for (const sub of schema[word] ?? []) checkSchema(sub, words);
  if (schema.items) checkSchema(schema.items, words);
  if (isObject(schema.additionalProperties)) checkSchema(schema.additionalProperties, words);
}

function checkTools(tools = []) {
  const all = tools.flatMap((t) => t.functionDeclarations ?? []);
  if (all.length > 512) throw bad('at most 512 functions');
  if (new Set(all.map((f) => f.name)).size !== all.length) throw bad('Duplicate function declaration');
  for (const f of all) {
    const odd = unknown(f, ['name', 'description', 'parameters', 'parametersJsonSchema', 'response']);
    if (odd) throw bad(`Unknown name "${odd}"`);
    if (!/^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/.test(f.name)) throw bad(`Invalid function name ${f.name}`);
    if (f.parameters && f.parametersJsonSchema) throw bad('parameters and parametersJsonSchema');
    if (f.parameters) checkSchema(f.parameters, OPENAPI);
    if (f.parametersJsonSchema) checkSchema(f.parametersJsonSchema, WORDS);
  }
}

function checkPart(part, role) {
  const kinds = Object.keys(part).filter((k) => !['thought', 'thoughtSignature'].includes(k));
  const odd = unknown(part, PART);
  if (odd) throw bad(`Unknown name "${odd}" at a part`);
  if (kinds.length !== 1) throw bad('a part has exactly one kind of data');
  if (part.text === '' && !part.thoughtSignature) throw bad('empty text parameter');
  if (part.inlineData) {
    const { mimeType, data } = part.inlineData;
    if (/^image\//.test(mimeType) && (mimeType === 'image/gif' || typeOf(data) !== mimeType))
      throw bad(`Unsupported MIME type: ${mimeType}`);
  }
  if (part.functionCall) {
    if (role !== 'model') throw bad('functionCall in a user turn');
    if (!isObject(part.functionCall.args ?? {})) throw bad('functionCall.args');
  }
  if (part.functionResponse) {
    if (role !== 'user') throw bad('functionResponse in a model turn');
    if (!isObject(part.functionResponse.response)) throw bad('function_response.response: a Struct');
    const other = unknown(part.functionResponse, ['id', 'name', 'response', 'parts']);
    if (other) throw bad(`Unknown name "${other}"`);
  }
}

/** Responses answer the calls of the content right before, one each. */
function checkPairs(contents) {
  contents.forEach(({ parts }, i) => {
    const calls = parts.filter((p) => p.functionCall).map((p) => p.functionCall);
    const answers = parts.filter((p) => p.functionResponse).map((p) => p.functionResponse);
    const asked = (contents[i - 1]?.parts ?? []).filter((p) => p.functionCall).map((p) => p.functionCall);
    if (calls.length && contents[i - 1]?.role !== 'user')
      throw bad('a function call turn comes immediately after a user turn or a function response turn');
    if (calls.length && i === contents.length - 1) throw bad('the last turn is a function call');
    if (answers.length !== asked.length)
      throw bad('the number of function response parts is not equal to that of the function call parts');
    answers.forEach((a, k) => {
      if (!a.name || a.name !== asked[k].name) throw bad(`function response name ${a.name}`);
      if (a.id !== asked[k].id) throw bad(`function response id ${a.id} for ${asked[k].id}`);
    });
  });
}

function checkSignatures(fake, contents, model) {
  if (/^gemini-[12]/.test(model)) return;
  const real = (c) => c.role === 'user' && c.parts.some((p) => p.text !== undefined);
  const since = contents.findLastIndex(real);
  contents.forEach((content, i) => {
    if (content.role !== 'model') return;
    const first = content.parts.find((p) => p.functionCall);
    if (first && i > since && !first.thoughtSignature)
      throw bad(`Function call ${first.functionCall.name} is missing a thought_signature`);
    for (const part of content.parts) {
      if (!part.thoughtSignature || part.thoughtSignature === STAND_IN) continue;
      const issued = fake.issued.get(part.thoughtSignature);
      if (!issued || issued.model !== model) throw bad('Thought signature is not valid.');
      if (!isDeepStrictEqual(issued.part, part)) throw bad('Thought signature: its part was changed');
    }
  });
}

function check(fake, body, model) {
  const odd = unknown(body, TOP) ?? unknown(body.generationConfig ?? {}, CONFIG);
  if (odd) throw bad(`Invalid JSON payload received. Unknown name "${odd}": Cannot find field.`);
  if (!body.contents?.length) throw bad('contents is not specified');
  for (const content of body.contents) {
    content.role ??= 'user'; // as the SDK may leave it
    if (!['user', 'model'].includes(content.role)) throw bad('Please use a valid role: user, model.');
    if (!content.parts?.length) throw bad('contents.parts must not be empty.');
    for (const part of content.parts) checkPart(part, content.role);
  }
  if (body.contents[0].role !== 'user') throw bad('the first content is the user\'s');
  checkTools(body.tools);
  const mode = body.toolConfig?.functionCallingConfig?.mode;
  if (mode !== undefined && !['AUTO', 'ANY', 'NONE', 'VALIDATED'].includes(mode)) throw bad(`mode ${mode}`);
  checkPairs(body.contents);
  checkSignatures(fake, body.contents, model);
}

/** The same request as before, and the token it was given. */
function checkContinuation(fake, body) {
  const { continuationToken, ...rest } = body;
  const text = JSON.stringify(rest);
  if (continuationToken !== undefined && fake.tokens.get(continuationToken) !== text)
    throw bad('continuationToken: not for this request');
  return text;
}

function partsOf(fake, row, model) {
  const sign = (part) => {
    part.thoughtSignature = `c2ln${String(++fake.count).padStart(4, '0')}`;
    fake.issued.set(part.thoughtSignature, { model, part: structuredClone(part) });
    return part;
  };
  const modern = !/^gemini-[12]/.test(model);
  const parts = [];
  for (const text of row.thinking ? pieces(row.thinking, row) : []) parts.push({ text, thought: true });
  for (const text of row.text !== undefined ? pieces(row.text, row) : []) parts.push({ text });
  (row.calls ?? []).forEach(({ name, args = {} }, i) => {
    const functionCall = { ...(modern && !row.noIds && { id: `fc${++fake.count}` }), name, args };
    parts.push(modern && i === 0 ? sign({ functionCall }) : { functionCall });
  });
  if (modern && !row.calls && row.text !== undefined && !row.fault && !row.checkpoint && row.stop !== 'CONTINUATION')
    parts.push(sign({ text: '' }));
  return parts;
}

function chunksOf(fake, row, model, body, rest) {
  const usage = (n) => ({ promptTokenCount: 10, candidatesTokenCount: n, totalTokenCount: 10 + n,
    ...(row.thinking && { thoughtsTokenCount: 4 }) });
  const chunk = (candidate, n) => ({ candidates: [{ index: 0, ...candidate }],
    usageMetadata: usage(n), modelVersion: model, responseId: 'r1' });
  if (row.blocked) return [{ promptFeedback: { blockReason: row.blocked }, usageMetadata: usage(0) }];
  const parts = partsOf(fake, row, model);
  const out = parts.map((part, i) => chunk({ content: { role: 'model', parts: [part] } }, i + 1));
  const finishReason = row.stop ?? 'STOP';
  const token = row.stop === 'CONTINUATION' || row.checkpoint ? `dG9r${++fake.count}` : undefined;
  if (token) fake.tokens.set(token, rest);
  if (row.checkpoint) { // a token, and then the connection is gone
    out.push(chunk({ continuationToken: token }, 1));
    return out;
  }
  out.push(chunk({ content: { role: 'model', parts: [] }, finishReason, continuationToken: token }, parts.length));
  return out;
}

function generate({ fake, rq, url, body, match }) {
  checkAuth(rq, url, fake.key);
  const [, model, how] = match;
  if (!MODELS.some(([id]) => id === model)) throw refuse(404, '', `models/${model} is not found`);
  const streamed = how === 'streamGenerateContent';
  if (streamed && url.searchParams.get('alt') !== 'sse') throw bad('this fake streams with alt=sse only');
  check(fake, body, model);
  const rest = checkContinuation(fake, body);
  checkWindow(fake, (n, max) => bad(`The input token count (${n}) exceeds the maximum number of tokens allowed (${max}).`));
  const row = fake.next();
  if (row.status) {
    const { body: said } = refuse(row.status, '', 'as told', row.details);
    throw scripted(row, row.list ? [said] : said);
  }
  const chunks = chunksOf(fake, row, model, body, rest);
  if (streamed) {
    const cut = row.checkpoint ? { ...row, fault: row.fault ?? 'eof', at: 1 } : row;
    return { row: cut, events: chunks.map((c) => ({ data: json(c, row) })) };
  }
  const parts = chunks.flatMap((c) => c.candidates?.[0].content?.parts ?? []);
  return { json: { ...chunks.at(-1), candidates: [{ ...chunks.at(-1).candidates?.[0], content: { role: 'model', parts } }] } };
}

function models({ fake, rq, url }) {
  checkAuth(rq, url, fake.key);
  const from = Number(url.searchParams.get('pageToken') ?? 0);
  const page = MODELS.slice(from, from + PAGE);
  return {
    json: {
      models: page.map(([id, displayName, supportedGenerationMethods]) => ({
        name: `models/${id}`, displayName, supportedGenerationMethods,
        inputTokenLimit: fake.told ?? 1048576, outputTokenLimit: 65536, thinking: true,
      })),
      ...(from + PAGE < MODELS.length && { nextPageToken: String(from + PAGE) }),
    },
  };
}

export const gemini = (options) =>
  serve({
    base: '/v1beta',
    refuse,
    noise: () => [{ event: 'something_new', data: '{"somethingNew":{"x":[1]}}' }],
    error: (row) => {
      const error = { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' };
      return { data: JSON.stringify(row.list ? [{ error }] : { error }) };
    },
    routes: [
      ['POST', /^\/v1beta\/models\/([^/:]+):(generateContent|streamGenerateContent)$/, generate],
      ['GET', /^\/v1beta\/models$/, models],
    ],
  }, { issued: new Map(), tokens: new Map(), count: 0, ...options });
