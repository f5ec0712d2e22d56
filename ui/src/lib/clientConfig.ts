// clientConfig - configuration entries for MCP clients that use this gateway.

import type { Snippets } from '../protocol';

const NAME = 'orchestrator';

export interface Snippet {
  client: string;
  file: string; // the configuration file of the client
  way: 'start' | 'address';
  text: string;
}

const json = (v: unknown): string => JSON.stringify(v, null, 2);

export function snippetsFor(s: Snippets): Snippet[] {
  const start = { command: s.command, args: s.args };
  const headers = s.needsToken
    ? { headers: { Authorization: `Bearer ${s.token}` } }
    : {};
  const address = { url: s.url, ...headers };
  const mcp = (v: unknown) => json({ mcpServers: { [NAME]: v } });
  const code = (v: unknown) => json({ servers: { [NAME]: v } });
  return [
    { client: 'Claude Desktop', file: 'claude_desktop_config.json', way: 'start', text: mcp(start) },
    { client: 'Cursor', file: '~/.cursor/mcp.json', way: 'start', text: mcp(start) },
    { client: 'Cursor', file: '~/.cursor/mcp.json', way: 'address', text: mcp(address) },
    { client: 'Windsurf', file: '~/.codeium/windsurf/mcp_config.json', way: 'start', text: mcp(start) },
    { client: 'Windsurf', file: '~/.codeium/windsurf/mcp_config.json', way: 'address', text: mcp({ serverUrl: s.url, ...headers }) },
    { client: 'VS Code', file: '.vscode/mcp.json', way: 'start', text: code({ type: 'stdio', ...start }) },
    { client: 'VS Code', file: '.vscode/mcp.json', way: 'address', text: code({ type: 'http', ...address }) },
  ];
}
