// A server without an app, whose tools and resources an app of another server wants.
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

serveStdio(() => {
  const mcp = new McpServer({ name: 'other', version: '1' });
  const say = (text) => ({ content: [{ type: 'text', text }] });
  mcp.registerTool('only_other', { inputSchema: z.object({}), annotations: { readOnlyHint: true } }, async () => say('other'));
  mcp.registerTool('note', { inputSchema: z.object({ text: z.string() }), annotations: { readOnlyHint: true } }, async () => say('other'));
  mcp.registerResource('only', 'only://other', { mimeType: 'text/plain' }, async () => ({ contents: [{ uri: 'only://other', text: 'other' }] }));
  return mcp;
});
