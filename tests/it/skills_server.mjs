// A server of skills and apps, made with the official SDK:
//
//   skills_server.mjs FOLDER [TOOL [APP]]
//
// FOLDER holds one folder per skill. TOOL is a tool that links to the app
// ui://APP/view. With MO_PLAIN the server cannot list directories. The tool
// `reload` reads the folder again.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { McpServer } from '@modelcontextprotocol/server';
import { SkillsExtension } from '@modelcontextprotocol/server/ext/skills';
import { loadSkills } from '@modelcontextprotocol/server/ext/skills/node';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const [folder, tool, app] = process.argv.slice(2);
const mimeType = 'text/html;profile=mcp-app';
const catalog = await loadSkills(folder);

/** The same skills, without directories. */
const plain = () => new SkillsExtension({
  source: {
    list: async () => ({ skills: [...catalog.entries] }),
    get: async (uri) => catalog.entries.find((s) => s.uri === uri),
    read: async (uri) => ({ text: await readFile(join(folder, uri.slice('skill://'.length)), 'utf8') }),
  },
});

function addApp(mcp) {
  const uri = `ui://${app}/view`;
  mcp.registerTool(tool, {
    inputSchema: z.object({}), _meta: { ui: { resourceUri: uri }, 'ui/resourceUri': uri },
  }, async () => ({ content: [{ type: 'text', text: 'without an app' }] }));
  mcp.registerResource(app, uri, { mimeType }, async () => ({
    contents: [{ uri, mimeType, text: `<p>${tool}` }] }));
}

serveStdio(() => {
  const mcp = new McpServer({ name: 'skills', version: '1' });
  (process.env.MO_PLAIN ? plain() : catalog).attach(mcp);
  mcp.registerTool('reload', { inputSchema: z.object({}) }, async () => {
    const { added } = await catalog.reload();
    return { content: [{ type: 'text', text: added.join(' ') }] };
  });
  if (tool) addApp(mcp);
  return mcp;
});
