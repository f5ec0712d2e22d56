// A server with an app (MCP Apps), made with the official SDK:
//
//   apps_server.mjs [HTML [CSP]]
//
// HTML: the file with the app; CSP: JSON, the domains it asks for. The tools:
//   show       its app is ui://app/view
//   old_show   the same, by the older flat key only
//   note       keeps a text; for the model and the app
//   count      adds one to a number; likewise
//   refresh    for apps only
//   private    for the model only
//   caps       the client's capabilities, as this server knows them
import { readFileSync } from 'node:fs';
import { RESOURCE_MIME_TYPE, getUiCapability, registerAppResource, registerAppTool } from '@modelcontextprotocol/ext-apps/server';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const [file, csp] = process.argv.slice(2);
const URI = 'ui://app/view';
const say = (text, more = {}) => ({ content: [{ type: 'text', text }], ...more });
const notes = [];
let refreshed = 0;

serveStdio(() => {
  const mcp = new McpServer({ name: process.env.MO_NAME ?? 'apps', version: '1' });
  const meta = { ui: { resourceUri: URI } };
  registerAppTool(mcp, 'show', { inputSchema: { city: z.string().optional() }, annotations: { readOnlyHint: true }, _meta: meta },
    async ({ city }) => say(`as text: ${city ?? 'nowhere'}`, {
      structuredContent: { city: city ?? 'nowhere', of: process.env.MO_NAME ?? 'apps' }, _meta: { 'test/view': 7 },
    }));
  mcp.registerTool('old_show', { inputSchema: z.object({}), annotations: { readOnlyHint: true }, _meta: { 'ui/resourceUri': URI } },
    async () => say('an older one'));
  mcp.registerTool('big', { inputSchema: z.object({}), annotations: { readOnlyHint: true }, _meta: meta },
    async () => say('big', { structuredContent: { all: 'x'.repeat(600_000) } }));
  mcp.registerTool('note', { inputSchema: z.object({ text: z.string() }) },
    async ({ text }) => {
      notes.push(text);
      return say(`noted ${notes.length}: ${text}`, { structuredContent: { notes } });
    });
  mcp.registerTool('count', { inputSchema: z.object({ n: z.number() }) }, async ({ n }) => say(String(n + 1)));
  registerAppTool(mcp, 'refresh', { inputSchema: {}, annotations: { readOnlyHint: true }, _meta: { ui: { resourceUri: URI, visibility: ['app'] } } },
    async () => say(`refreshed ${++refreshed}`, { structuredContent: { refreshed } }));
  registerAppTool(mcp, 'private', { inputSchema: {}, annotations: { readOnlyHint: true }, _meta: { ui: { visibility: ['model'] } } },
    async () => say('private'));
  mcp.registerTool('caps', { inputSchema: z.object({}), annotations: { readOnlyHint: true } },
    async (_args, ctx) => {
      // A modern client says it with every request.
      const said = ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? mcp.server.getClientCapabilities();
      return say(JSON.stringify(getUiCapability(said) ?? null));
    });
  registerAppResource(mcp, 'view', URI, { mimeType: RESOURCE_MIME_TYPE }, async () => ({
    contents: [{
      uri: URI, mimeType: RESOURCE_MIME_TYPE,
      text: file ? readFileSync(file, 'utf8') : `<p>${process.env.MO_NAME ?? 'apps'}`,
      ...(csp && { _meta: { ui: { csp: JSON.parse(csp), permissions: { camera: {} } } } }),
    }],
  }));
  mcp.registerResource('rows', 'data://rows', { mimeType: 'text/plain' }, async () => ({
    contents: [{ uri: 'data://rows', text: `rows of ${process.env.MO_NAME ?? 'apps'}` }],
  }));
  return mcp;
});
