// An MCP server of 2025-06-18 with a mark in all that it offers, for the tests
// of views: node shelf.mjs MARK [STOP]. If the file STOP exists it does not
// start. At SIGUSR2 it logs a line, says that its page has changed, and asks its
// client for a completion; the answer goes to the file STOP.asked.
import { existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , mark, stop] = process.argv;
if (stop && existsSync(stop)) process.exit(1);

const send = (m) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...m })}\n`);
const note = (method, params) => send({ method: `notifications/${method}`, params });
const inputSchema = { type: 'object', properties: {} };
const tools = [
  { name: 'read', description: `Reads a ${mark} book`, inputSchema, annotations: { readOnlyHint: true } },
  { name: 'write', description: `Writes a ${mark} book`, inputSchema },
  { name: 'delete_all', description: `Deletes every ${mark} book`, inputSchema },
  { name: 'long', description: `A long ${mark} text`, inputSchema, annotations: { readOnlyHint: true } },
  { name: 'touch', description: `Changes a ${mark} page`, inputSchema },
  { name: 'grow', description: `Adds a ${mark} tool`, inputSchema },
  { name: 'chat', description: `Logs a line about ${mark}`, inputSchema },
  { name: 'hang', description: `Waits for ${mark}, forever`, inputSchema },
];
const say = (text) => ({ content: [{ type: 'text', text }] });
const run = {
  read: () => say(`${mark} read`),
  write: () => say(`${mark} written`),
  delete_all: () => say(`${mark} deleted`),
  long: () => say(`${mark} `.repeat(1000)),
  touch: () => (note('resources/updated', { uri: `${mark}://page` }), say('touched')),
  grow: () => {
    tools.push({ name: `${mark}_new${tools.length}`, inputSchema });
    note('tools/list_changed');
    return say('grown');
  },
  chat: () => (note('message', { level: 'error', data: `${mark} log` }), say('logged')),
};
run.hang = ({ _meta }) => (note('progress', { progressToken: _meta?.progressToken, progress: 1 }), null);
const none = { code: -32602, message: 'no such thing' };
const answers = {
  initialize: () => ({
    protocolVersion: '2025-06-18', serverInfo: { name: mark, version: '1' },
    capabilities: {
      tools: { listChanged: true }, resources: { subscribe: true, listChanged: true },
      prompts: {}, completions: {}, logging: {},
    },
  }),
  ping: () => ({}),
  'logging/setLevel': () => ({}),
  'tools/list': () => ({ tools }),
  'tools/call': (params) => (run[params.name] ?? (() => say(`new ${params.name}`)))(params),
  'resources/list': () => ({ resources: [{ uri: `${mark}://page`, name: 'page' }] }),
  'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: `${mark}://{n}`, name: 'any' }] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: `${mark} page` }] }),
  'resources/subscribe': () => ({}),
  'resources/unsubscribe': () => ({}),
  'prompts/list': () => ({ prompts: [{ name: `${mark}_prompt`, arguments: [{ name: 'a' }] }] }),
  'prompts/get': () => ({ messages: [{ role: 'user', content: { type: 'text', text: `${mark} prompt` } }] }),
  'completion/complete': () => ({ completion: { values: [mark] } }),
};
process.on('SIGUSR2', () => {
  note('message', { level: 'error', data: `${mark} log` });
  note('resources/updated', { uri: `${mark}://page` });
  send({ id: 'asked', method: 'sampling/createMessage', params: {
    maxTokens: 1, messages: [{ role: 'user', content: { type: 'text', text: mark } }],
  } });
});
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === 'asked') writeFileSync(`${stop}.asked`, line);
  if (id === undefined || id === 'asked') return;
  const result = answers[method]?.(params ?? {});
  if (result !== null) send(result ? { id, result } : { id, error: none });
});
