// A legacy MCP server on the official SDK 1.x, over stdio.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer({ name: 'sdk1', version: '1.2.3' });

server.registerTool(
  'echo',
  { description: 'Say it back', inputSchema: { text: z.string() } },
  async ({ text }) => ({ content: [{ type: 'text', text }] }),
);
server.registerTool('fail', { inputSchema: {} }, async () => ({
  isError: true,
  content: [{ type: 'text', text: 'it did not work' }],
}));
server.registerTool('big', { inputSchema: { n: z.number() } }, async ({ n }) => ({
  content: [{ type: 'text', text: 'ü'.repeat(n) }],
}));
server.registerTool(
  'numbers',
  { inputSchema: {}, outputSchema: { a: z.number(), s: z.string() } },
  async () => ({
    content: [],
    structuredContent: { a: 1.5, s: 'é\u0000"' },
  }),
);
server.registerTool('env', { inputSchema: {} }, async () => ({
  content: [{ type: 'text', text: JSON.stringify(process.env) }],
}));
server.registerTool('ask', { inputSchema: {} }, async () => {
  try {
    await server.server.elicitInput({
      message: '?',
      requestedSchema: { type: 'object', properties: {} },
    });
    return { content: [{ type: 'text', text: 'asked' }] };
  } catch (e) {
    return { content: [{ type: 'text', text: `refused: ${e.message}` }] };
  }
});

await server.connect(new StdioServerTransport());
