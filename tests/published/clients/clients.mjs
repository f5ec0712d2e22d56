// Published clients of MCP, each behind the same few functions. It lies here
// because here is what it imports.
//
// open(where) gives {names(), call(name, args), close()}; where is {url} or
// {command, args, env}. call() gives text that contains the tool's.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const text = (v) => (typeof v === 'string' ? v : JSON.stringify(v));
const run = promisify(execFile);
const file = (...path) => join(here, 'node_modules', ...path);

/** A client whose tools are objects that can be called. */
const ofTools = (tools, nameOf, callOf, close) => ({
  names: async () => tools.map(nameOf),
  call: async (name, args) => text(await callOf(tools.find((t) => nameOf(t) === name), args)),
  close,
});

async function aiSdk(where) {
  const { createMCPClient } = await import('@ai-sdk/mcp');
  const { Experimental_StdioMCPTransport: Stdio } = await import('@ai-sdk/mcp/mcp-stdio');
  const client = await createMCPClient({
    transport: where.url ? { type: 'http', url: where.url } : new Stdio(where),
  });
  const tools = Object.entries(await client.tools());
  return ofTools(tools, ([name]) => name, ([, tool], args) =>
    tool.execute(args, { toolCallId: '1', messages: [] }), () => client.close());
}

async function langchain(where) {
  const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
  const client = new MultiServerMCPClient({
    mcpServers: { gateway: where.url ? { transport: 'http', url: where.url } : { transport: 'stdio', ...where } },
  });
  return ofTools(await client.getTools(), (t) => t.name, (t, args) => t.invoke(args), () => client.close());
}

async function openaiAgents(where) {
  const { MCPServerStdio, MCPServerStreamableHttp } = await import('@openai/agents');
  const server = where.url
    ? new MCPServerStreamableHttp({ url: where.url }) : new MCPServerStdio(where);
  await server.connect();
  return {
    names: async () => (await server.listTools()).map((t) => t.name),
    call: async (name, args) => text(await server.callTool(name, args)),
    close: () => server.close(),
  };
}

async function genkitMcp(where) {
  const { createMcpClient } = await import('@genkit-ai/mcp');
  const { genkit } = await import('genkit');
  const ai = genkit({});
  const client = createMcpClient({ name: 'published', serverName: 'gateway', mcpServer: where });
  await client.ready();
  const tools = await client.getActiveTools(ai);
  const own = (t) => t.__action.name.split('/').at(-1);
  return ofTools(tools, own, (t, args) => t(args), () => client.disable());
}

async function mastra(where) {
  const { MCPClient } = await import('@mastra/mcp');
  const client = new MCPClient({
    id: `${Date.now()}`, servers: { gateway: where.url ? { url: new URL(where.url) } : where },
  });
  const tools = Object.entries((await client.listToolsets()).gateway);
  return ofTools(tools, ([name]) => name, ([, t], args) => t.execute(args, {}), () => client.disconnect());
}

async function strands(where) {
  const { McpClient } = await import('@strands-agents/sdk');
  const [client] = await McpClient.loadServers({ gateway: where });
  const tools = await client.listTools();
  return ofTools(tools, (t) => t.name, (t, args) => client.callTool(t, args),
    () => client.disconnect());
}

async function mcpClient(where) {
  const { MCPClient } = await import('mcp-client');
  const client = new MCPClient({ name: 'published', version: '1.0.0' });
  await client.connect(where.url ? { type: 'httpStream', url: where.url } : { type: 'stdio', ...where });
  return {
    names: async () => (await client.getAllTools()).map((t) => t.name),
    call: async (name, args) => text(await client.callTool({ name, arguments: args })),
    close: () => client.close(),
  };
}

async function mcporter(where) {
  const { createRuntime } = await import('mcporter');
  const command = where.url ? { kind: 'http', url: new URL(where.url), headers: {} }
    : { kind: 'stdio', command: where.command, args: where.args, cwd: here };
  const runtime = await createRuntime({ servers: [{ name: 'gateway', command, env: where.env }] });
  return {
    names: async () => (await runtime.listTools('gateway')).map((t) => t.name),
    call: async (name, args) => text(await runtime.callTool('gateway', name, { args })),
    close: () => runtime.close(),
  };
}

/** A shell that starts the gateway: some programs take its flags for theirs. */
function starter({ command, args }) {
  const dir = mkdtempSync(join(tmpdir(), 'mo-client-'));
  const path = join(dir, 'gateway.sh');
  writeFileSync(path, `exec '${command}' ${args.map((a) => `'${a}'`).join(' ')}\n`);
  return { dir, path };
}

async function inspector(where) {
  const main = file('@modelcontextprotocol/inspector/clients/cli/build/index.js');
  const sh = where.url ? undefined : starter(where);
  const ask = async (...args) => {
    const { stdout } = await run(process.execPath,
      [main, ...(sh ? ['sh', sh.path] : [where.url]), ...args],
      { env: { ...process.env, ...where.env }, cwd: dirname(main), maxBuffer: 2 ** 26 });
    return JSON.parse(stdout);
  };
  return {
    names: async () => (await ask('--method', 'tools/list')).tools.map((t) => t.name),
    call: async (name, args) => text(await ask('--method', 'tools/call', '--tool-name', name,
      ...Object.entries(args).flatMap(([k, v]) => ['--tool-arg', `${k}=${v}`]))),
    close: () => sh && rmSync(sh.dir, { recursive: true }),
  };
}

/** It has no list without a person at the keyboard. */
async function wong2(where) {
  const dir = mkdtempSync(join(tmpdir(), 'mo-client-'));
  const config = join(dir, 'config.json');
  writeFileSync(config, JSON.stringify({ mcpServers: { gateway: where } }));
  return {
    call: async (name, args) => {
      const { stdout } = await run(process.execPath, [file('@wong2/mcp-cli/src/cli.js'), '--config', config,
        'call-tool', `gateway:${name}`, '--args', JSON.stringify(args)], { env: process.env });
      return stdout;
    },
    close: () => rmSync(dir, { recursive: true }),
  };
}

export const remote = file('mcp-remote/dist/proxy.js');

export const clients = {
  'Inspector CLI': { open: inspector },
  mcporter: { open: mcporter },
  'AI SDK': { open: aiSdk },
  'LangChain adapters': { open: langchain },
  'OpenAI Agents': { open: openaiAgents },
  Genkit: { open: genkitMcp },
  Mastra: { open: mastra },
  Strands: { open: strands },
  'mcp-client': { open: mcpClient },
  'mcp-cli': { open: wong2, only: 'stdio' },
};
