// servers - responses over HTTP about configured MCP servers and their tools.

import { any, bool, list, num, object, or, record, str } from '../lib/check';
import { content, type Checked } from './parts';

const gatewayState = object({
  state: str,
  breaker: or(str, 'closed'),
  children: or(num, 0),
  calls: or(num, 0), // running now
  waiting: or(num, 0),
  starts: or(num, 0),
  fails: or(num, 0),
  retryMs: or(num, 0),
  instances: or(num, 1), // at most
  perSession: or(bool, false),
  error: or(str, ''),
});
export type GatewayState = Checked<typeof gatewayState>;

const mcpServer = object({
  name: str,
  enabled: or(bool, true),
  tools: or(num, -1), // -1: not known yet
  missing: or(str, ''), // why parts of its lists are not given out
  mended: or(str, ''), // definitions changed for strict clients
  gateway: or(gatewayState, null),
  kind: or(str, ''),
  target: or(str, ''),
  description: or(str, ''),
  mounts: or(list(object({ host: str, box: str, mode: str, error: or(str, '') })), []),
  workspace: or(str, ''), // folder of the host that it keeps
  state: str,
  error: or(str, ''),
  retryMs: or(num, 0),
  stderr: or(str, ''),
  version: or(str, ''),
  info: or(record, null),
  calls: or(num, 0),
});
export type McpServer = Checked<typeof mcpServer>;

const managed = object({
  manage: or(bool, false), // the page may change servers
  file: or(str, ''),
  servers: list(mcpServer),
});
export type Managed = Checked<typeof managed>;

const connectTest = object({
  ok: bool, ms: num, tools: or(num, 0), error: or(str, ''), stderr: or(str, ''),
});
export type ConnectTest = Checked<typeof connectTest>;

const change = object({
  name: str, saved: bool, secrets: list(str), test: or(connectTest, null),
});
export type Change = Checked<typeof change>;

const plan = object({
  format: str,
  written: bool,
  servers: list(object({
    name: str, was: str, action: str, why: or(str, ''), leftOut: or(str, ''),
    keyInArgs: or(bool, false),
    secrets: list(object({ name: str, known: bool })),
  })),
});
export type Plan = Checked<typeof plan>;

const registryFound = object({
  servers: list(object({
    name: str, title: or(str, ''), description: or(str, ''), version: or(str, ''),
    kinds: or(list(str), []),
  })),
  more: or(bool, false),
});
export type RegistryFound = Checked<typeof registryFound>;

const planVariable = object({
  name: str, description: or(str, ''), value: or(str, ''),
  required: or(bool, false), secret: or(bool, false),
});
const installation = object({
  agreed: str, // names this plan
  problem: or(str, ''), // why it cannot be installed yet
  installed: bool,
  plan: object({
    name: str,
    kind: str,
    registry: or(str, ''),
    package: or(str, ''),
    version: or(str, ''),
    integrity: or(str, ''),
    publisher: or(str, ''),
    repository: or(str, ''),
    description: or(str, ''),
    args: or(list(str), []),
    fixedArgs: or(num, 0), // the first of them: nobody can change these
    variables: or(list(planVariable), []),
    headers: or(list(planVariable), []),
    hosts: or(list(str), []),
    boxed: or(bool, false),
    installScripts: or(bool, false),
    notes: or(list(str), []),
    warnings: or(list(str), []),
  }),
});
export type Installation = Checked<typeof installation>;

const snippets = object({
  command: str, args: list(str), url: str, needsToken: bool, token: or(str, ''),
});
export type Snippets = Checked<typeof snippets>;

const serverTool = object({
  name: str,
  title: or(str, ''),
  description: or(str, ''),
  inputSchema: any,
  annotations: or(record, null),
  digest: str,
  changedFrom: any, // undefined: it is as it was
});
export type ServerTool = Checked<typeof serverTool>;

const toolTrial = object({
  state: str, // done, ask, denied, changed, unknown, canceled
  digest: or(str, ''),
  reason: or(str, ''),
  args: or(record, null),
  content: or(list(content), []),
  isError: or(bool, false),
  durationMs: or(num, 0),
});
export type ToolTrial = Checked<typeof toolTrial>;
const tryQuestion = object({
  id: str, mode: str, message: str, url: or(str, ''), schema: or(record, {} as Record<string, unknown>),
});
export type TryQuestion = Checked<typeof tryQuestion>;
const runningTry = object({
  progress: or(object({ progress: or(num, 0), total: or(num, 0), message: or(str, '') }), null),
  question: or(tryQuestion, null),
});
export type RunningTry = Checked<typeof runningTry>;

export const readManaged = (v: unknown): Managed => managed(v, 'servers');
export const readConnectTest = (v: unknown): ConnectTest => connectTest(v, 'test');
export const readChange = (v: unknown): Change => change(v, 'change');
export const readEntry = (v: unknown): { config: Record<string, unknown> } =>
  object({ config: record })(v, 'server');
export const readRegistryFound = (v: unknown): RegistryFound => registryFound(v, 'registry');
export const readInstallation = (v: unknown): Installation => installation(v, 'installation');
export const readPlan = (v: unknown): Plan => plan(v, 'plan');
export const readSnippets = (v: unknown): Snippets => snippets(v, 'snippets');
export const readTools = (v: unknown): ServerTool[] =>
  object({ tools: list(serverTool) })(v, 'tools').tools;
export const readTry = (v: unknown): RunningTry => runningTry(v, 'try');
export const readToolTrial = (v: unknown): ToolTrial => toolTrial(v, 'call');
