// A server that answers with the very bytes it is told to, in both eras, on
// stdio: what a tool call, a read, a prompt and a completion are to bring is in
// their own parameters. Its lists are as small as can be.
import { onLines } from '../lib/bytes.mjs';

const modernOnly = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
const lists = {
  'tools/list': { tools: [{ name: 'say', description: 'd', inputSchema: { type: 'object' } }] },
  'prompts/list': { prompts: [{ name: 'say', arguments: [{ name: 'raw', required: true }] }] },
  'resources/list': { resources: [] },
  'resources/templates/list': {
    resourceTemplates: [{ uriTemplate: 'raw:///{text}', name: 'raw' }],
  },
};
const capabilities = { tools: {}, prompts: {}, resources: {}, completions: {} };
const serverInfo = { name: 'raw', version: '1' };

const raw = {
  'tools/call': (p) => p.arguments.raw,
  'prompts/get': (p) => p.arguments.raw,
  'resources/read': (p) => Buffer.from(p.uri.slice(7), 'base64url').toString(),
  'completion/complete': (p) => p.argument.value,
};

function answer({ method, params }) {
  if (method in raw) return raw[method](params);
  if (method in lists) return JSON.stringify({ ...modernOnly, ...lists[method] });
  if (method === 'initialize')
    return JSON.stringify({ protocolVersion: '2025-11-25', capabilities, serverInfo });
  if (method === 'server/discover' && process.argv[2] === 'modern')
    return JSON.stringify({
      ...modernOnly,
      supportedVersions: ['2026-07-28'],
      capabilities,
      _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
    });
  return undefined;
}

onLines(process.stdin, (line) => {
  const m = JSON.parse(line);
  if (m.id === undefined) return;
  const text = answer(m);
  const body = text === undefined
    ? '"error":{"code":-32601,"message":"no such method"}'
    : `"result":${text}`;
  process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(m.id)},${body}}\n`);
});
