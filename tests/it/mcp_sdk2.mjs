// A modern MCP server on the official SDK 2.x, over stdio. Its argument says
// what becomes of a legacy opening: serve or reject.
import { McpServer, acceptedContent, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

serveStdio(
  () => {
    const server = new McpServer({ name: 'sdk2', version: '2.0.1' });
    server.registerTool(
      'echo',
      { description: 'Say it back', inputSchema: z.object({ text: z.string() }) },
      async ({ text }) => ({ content: [{ type: 'text', text }] }),
    );
    server.registerTool('ask', { inputSchema: z.object({}) }, async (_, ctx) => {
      const schema = z.object({ name: z.string() });
      const got = acceptedContent(ctx.mcpReq.inputResponses, 'who', schema);
      if (got) return { content: [{ type: 'text', text: `hello ${got.name}` }] };
      return inputRequired({
        inputRequests: {
          who: inputRequired.elicit({ message: 'who?', requestedSchema: schema }),
          where: inputRequired.listRoots(),
        },
        requestState: 'state "ü"\n',
      });
    });
    server.registerTool('forever', { inputSchema: z.object({}) }, async () =>
      inputRequired({ inputRequests: { where: inputRequired.listRoots() } }),
    );
    return server;
  },
  { legacy: process.argv[2] ?? 'serve' },
);
