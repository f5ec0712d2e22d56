// A legacy server whose answers stand in a file:
//
//   odd.mjs FILE [LOG]
//
// FILE is a JSON object: method -> result, or {"error": {...}} for an error, or
// null for no answer at all. LOG gets a line "METHOD" for each request. Other
// methods get an empty result.
import { appendFileSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [file, log] = process.argv.slice(2);
const initialize = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {}, resources: {}, prompts: {} },
  serverInfo: { name: 'odd', version: '1' },
};
const usual = {
  initialize,
  'server/discover': { error: { code: -32601, message: 'no' } },
  'tools/list': { tools: [] },
  'resources/list': { resources: [] },
  'resources/templates/list': { resourceTemplates: [] },
  'prompts/list': { prompts: [] },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  if (log) appendFileSync(log, `${method}\n`);
  const answers = { ...usual, ...JSON.parse(readFileSync(file, 'utf8')) };
  const it = answers[method] === undefined ? {} : answers[method];
  if (it === null) return;
  const answer = it.error ? { error: it.error } : { result: it };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...answer }) + '\n');
}).on('close', () => process.exit(0));
