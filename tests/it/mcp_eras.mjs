// A server of one era that writes down what it is asked.
//
//   mcp_eras.mjs FILE      FILE.era says which: dies (legacy, and ends at
//                          whatever comes before initialize) or modern
import { appendFileSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const file = process.argv[2];
const era = readFileSync(`${file}.era`, 'utf8').trim();
const tools = [{ name: 't', inputSchema: { type: 'object' } }];
const serverInfo = { name: era, version: '1' };
const done = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };

const answers = {
  dies: {
    initialize: () => ({
      protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo,
    }),
    'tools/list': () => ({ tools }),
    ping: () => ({}),
  },
  modern: {
    'server/discover': () => ({
      ...done, supportedVersions: ['2026-07-28'], capabilities: { tools: {} },
      _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
    }),
    'tools/list': () => ({ ...done, tools }),
  },
}[era];

let open = era === 'modern';
appendFileSync(file, 'start\n');
for await (const line of createInterface({ input: process.stdin })) {
  const m = JSON.parse(line);
  appendFileSync(file, `${m.method}\n`);
  if (m.method === 'initialize' && era === 'dies') open = true;
  if (!open) process.exit(1);
  if (m.id === undefined) continue;
  const result = answers[m.method]?.();
  const error = { code: -32022, message: 'too old', data: { supported: ['2026-07-28'] } };
  process.stdout.write(
    `${JSON.stringify({ jsonrpc: '2.0', id: m.id, ...(result ? { result } : { error }) })}\n`);
}
