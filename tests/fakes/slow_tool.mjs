// An MCP server with one tool, `count`: it reports progress (1 of 10, 2 of 10,
// ...) every 50 ms and never ends by itself. When it is canceled it writes
// `canceled` to the file named by its first argument.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [file] = process.argv.slice(2);
const send = (m) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...m })}\n`);
const counting = new Map(); // call -> timer

function count(id, token) {
  let n = 0;
  counting.set(id, setInterval(() => {
    n = Math.min(n + 1, 9);
    if (token !== undefined)
      send({ method: 'notifications/progress', params: { progressToken: token, progress: n + Math.random() / 1000, total: 10, message: 'counting' } });
  }, 50));
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'notifications/cancelled') {
    clearInterval(counting.get(params.requestId));
    if (counting.delete(params.requestId)) appendFileSync(file, 'canceled\n');
  } else if (method === 'initialize')
    send({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'slow', version: '1' } } });
  else if (method === 'tools/list')
    send({ id, result: { tools: [{ name: 'count', description: 'Counts.', inputSchema: { type: 'object' } }] } });
  else if (method === 'tools/call') count(id, params._meta?.progressToken);
  else if (id !== undefined) send({ id, error: { code: -32601, message: 'no' } });
}).on('close', () => process.exit(0));
