// protocol - all messages between server and page, with a check for each.
//
// The server side is described in docs/conversations.md and /api/openapi.json.
// Components use the types and never see unchecked data.

import {
  any, bool, list, num, object, or, record, str, type Check,
} from './lib/check';

type Checked<C> = C extends Check<infer T> ? T : never;

// --- parts -------------------------------------------------------------------

const tool = object({
  name: str,
  server: or(str, ''),
  title: or(str, ''),
  description: or(str, ''),
  inputSchema: any,
  annotations: or(record, null),
  digest: or(str, ''), // of a changed definition
  changedFrom: any, // undefined: not changed
});
export type Tool = Checked<typeof tool>;

const usage = object({
  input: or(num, 0),
  output: or(num, 0),
  cacheRead: or(num, 0),
  cacheWrite: or(num, 0),
});
export type Usage = Checked<typeof usage>;

const content = object({
  type: str,
  text: or(str, ''),
  data: or(str, ''),
  mimeType: or(str, ''),
  uri: or(str, ''),
  name: or(str, ''), // of a link to a resource, and the next three
  title: or(str, ''),
  description: or(str, ''),
  size: or(num, 0),
  resource: or(object({
    uri: or(str, ''), mimeType: or(str, ''), text: or(str, ''), blob: or(str, ''),
  }), null),
});
export type Content = Checked<typeof content>;

export const textContent = (text: string): Content => ({
  type: 'text', text, data: '', mimeType: '', uri: '', name: '', title: '', description: '', size: 0, resource: null,
});

const block = object({
  type: str,
  text: or(str, ''),
  key: or(str, ''),
  name: or(str, ''),
  args: or(record, null),
  bad: or(str, ''),
});
export type Block = Checked<typeof block>;

const result = object({
  key: str,
  name: or(str, ''),
  isError: or(bool, false),
  state: or(str, ''), // done, rejected, unknown; '': stored by an older server
  content: or(list(content), []),
});
export type Result = Checked<typeof result>;

const entry = object({
  seq: num,
  at: num,
  role: str,
  id: or(str, ''),
  code: or(str, ''),
  text: or(str, ''), // of a note
  model: or(str, ''), // of a note with the code 'model': who answers from here on
  turns: or(num, 0), // turns covered by a summary
  to: or(num, 0), // of a mark (role 'branch'): the entry behind which it goes on
  auto: or(bool, false), // the program's words: a button was pressed
  stop: or(str, ''),
  placeholder: or(bool, false), // its text is for the model only
  blocks: or(list(block), []),
  results: or(list(result), []),
  usage: or(usage, null),
});
export type Entry = Checked<typeof entry>;

/** The server that runs a call instead of one that is down. */
const failoverRoute = object({ server: str, insteadOf: or(str, ''), why: or(str, '') });
export type FailoverRoute = Checked<typeof failoverRoute>;

/** Who must approve a call, where a rule names them. */
const panel = {
  approvers: or(list(str), []),
  approvals: or(num, 0), // so many persons; 0: no rule names them
  fourEyes: or(bool, false),
  approvedBy: or(list(str), []),
};

const approval = object({
  ...panel,
  name: str,
  args: record,
  callId: str,
  firstId: or(str, ''), // of a call that is asked about again; its results have it
  queuePosition: or(num, 1),
  totalInQueue: or(num, 1),
  server: or(str, ''),
  title: or(str, ''),
  description: or(str, ''),
  annotations: or(record, null),
  digest: str,
  expiresAt: num,
  words: or(str, ''), // the request it was found for; '': called by name
  confidence: or(num, 0),
  route: or(failoverRoute, null),
  approver: or(str, 'owner'), // 'operator': nobody else may approve it
});
export type Approval = Checked<typeof approval>;

const turn = object({
  turnId: or(str, ''),
  state: or(str, ''),
  text: or(str, ''),
  thinking: or(str, ''),
  queued: or(num, 0),
  waiting: or(list(object({ messageId: str, text: str })), []),
  running: or(list(str), []),
});
export type Turn = Checked<typeof turn>;

const question = object({
  requestId: str,
  server: or(str, ''),
  callId: or(str, ''),
  mode: or(str, 'form'),
  message: or(str, ''),
  schema: any, // in form mode
  url: or(str, ''), // in url mode
  expiresAt: or(num, 0),
});
export type Question = Checked<typeof question>;

/** A connection of a box that waits for a decision. */
const connection = object({
  callId: str,
  args: object({ host: str, port: num }),
  request: or(str, ''), // of plain HTTP: method and path
  program: or(str, ''), // that connects, as the box says
  tls: or(bool, false),
  digest: str,
  expiresAt: num,
  approver: or(str, 'owner'),
  reason: or(str, ''),
});
export type Connection = Checked<typeof connection>;
export const CONNECT = 'network:connect'; // the name of its tool

/** What runs in the conversation without asking. */
const ownApprovals = object({
  mode: or(str, 'ask'), // 'ask', 'reads' or 'box'
  by: or(str, ''), // who set it
  at: or(num, 0),
  tools: or(num, 0), // reads: so many tools
  modes: or(list(object({ mode: str, why: or(str, '') })), []), // why: it cannot be set
  grants: or(num, 0),
});
export type OwnApprovals = Checked<typeof ownApprovals>;

const grant = object({
  id: str, server: or(str, ''), tool: str, action: str, who: or(str, ''), at: or(num, 0),
});
export type Grant = Checked<typeof grant>;

// --- server to page: the arguments of each event -------------------------------

/** A server that is switched off in a conversation, or one of its tools. */
const switched = object({ server: str, tool: or(str, '') });

const ready = object({
  sessionId: str,
  containerId: or(str, ''),
  provider: or(str, ''),
  model: or(str, ''),
  title: or(str, ''),
  system: or(str, ''), // instructions of the person for the model
  tools: or(list(tool), []),
  toolsOff: or(list(switched), []),
  resumed: or(bool, false),
  driver: or(str, ''),
  workspace: or(str, ''), // 'fresh', 'kept' or 'lost'
  keepsFiles: or(bool, false), // they outlive the sandbox
  mounts: or(list(str), []), // HOST:BOX:ro
  shared: or(str, ''), // 'read' or 'approve': somebody else's conversation
  network: or(str, ''), // of the box: 'none', 'ask' or 'some'
  approvals: or(ownApprovals, null),
});
export type Ready = Checked<typeof ready>;

/** An entry of the current branch and its alternatives, itself among them. */
const branch = object({ seq: num, of: list(num) });
export type Branch = Checked<typeof branch>;

const history = object({
  messages: list(entry),
  pending: list(approval),
  turn: or(turn, null),
  earlier: or(num, -1), // the entry before the first; 0: none, -1: an older server
  branches: or(list(branch), []),
});
export type History = Checked<typeof history>;

const outputMeta = object({
  callId: str,
  name: or(str, ''),
  isError: or(bool, false),
  state: or(str, ''), // as in a result
  durationMs: or(num, 0),
  truncated: or(bool, false),
  route: or(failoverRoute, null),
  by: or(str, ''), // who or what decided about the call
});

const responseMeta = object({
  turnId: or(str, ''),
  usage: or(usage, null),
  stopReason: or(str, ''),
});

const errorMeta = object({ code: or(str, ''), retryAfterMs: or(num, 0) });

const contents = list(content);

/** Content is sent as the text of a JSON array. */
const outputText: Check<Content[]> = (v, at) => {
  const text = str(v, at);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return [textContent(text)];
  }
  return contents(parsed, at);
};

/** Checks of the first and second argument of each event. */
export const EVENTS = {
  'system:ready': [ready, any],
  'session:history': [history, any],
  'session:entry': [entry, any],
  'session:about': [object({ title: or(str, ''), system: or(str, '') }), any],
  'session:branches': [object({ branches: list(branch) }), any],
  'agent:thinking': [any, any],
  'agent:delta': [object({ turnId: or(str, ''), text: str }), any],
  'tools:off': [object({ toolsOff: list(switched) }), any],
  'resource:updated': [object({ uri: str }), any],
  'thinking:chunk': [object({ turnId: or(str, ''), text: str }), any],
  'agent:response': [str, or(responseMeta, null)],
  'agent:error': [str, or(errorMeta, null)],
  'tool:approval_required': [approval, any],
  'tool:approved_by': [object({ ...panel, callId: str, firstId: or(str, '') }), any],
  'session:approvals': [ownApprovals, any],
  'session:shared': [object({ open: bool, may: str }), any],
  'tool:resolved': [
    object({
      callId: str, firstId: or(str, ''), approved: bool, by: or(str, ''), reason: or(str, ''),
    }),
    any,
  ],
  'tool:progress': [
    object({
      callId: or(str, ''),
      progress: or(num, 0),
      total: or(num, 0),
      message: or(str, ''),
    }),
    any,
  ],
  'tool:log': [
    object({ callId: or(str, ''), level: or(str, ''), data: any }),
    any,
  ],
  'tool:output': [outputText, outputMeta],
  'elicitation:required': [question, any],
  'elicitation:resolved': [
    object({ requestId: str, action: or(str, ''), by: or(str, '') }), any,
  ],
  'network:approval_required': [connection, any],
  'network:resolved': [object({ callId: str, approved: or(bool, false), by: or(str, '') }), any],
  'message:queued': [object({ position: num }), any],
  'session:idle': [object({ secondsLeft: num }), any],
  'session:closed': [object({ reason: or(str, '') }), any],
  'system:message': [str, any],
  error: [str, any],
} as const satisfies Record<string, readonly [Check<unknown>, Check<unknown>]>;

export type EventName = keyof typeof EVENTS;
export type First<E extends EventName> = Checked<(typeof EVENTS)[E][0]>;
export type Second<E extends EventName> = Checked<(typeof EVENTS)[E][1]>;

// --- page to server --------------------------------------------------------------

export interface Decision {
  callId: string;
  approved: boolean;
  digest: string;
  reason?: string;
  args?: Record<string, unknown>;
  remember?: 'session' | 'always';
}

export interface Answer {
  requestId: string;
  action: 'accept' | 'decline' | 'cancel';
  content?: Record<string, unknown>;
}

export interface Requests {
  'elicitation:response': Answer;
  message: { text: string; instead?: number };
  'turn:regenerate': { seq?: number };
  'turn:continue': undefined;
  'branch:switch': { seq: number };
  'tool:approval': Decision;
  'tool:accept': { name: string; digest: string };
  'agent:cancel': undefined;
  'history:reset': undefined;
  'session:close': { keep: true };
  'model:change': { model: string };
}

const ack = object({
  ok: bool,
  code: or(str, ''),
  message: or(str, ''),
  messageId: or(str, ''),
  queued: or(num, 0), // a message's place in line; 0: it does not wait
});
export type Ack = Checked<typeof ack>;

export const readAck = (v: unknown): Ack => ack(v, 'ack');

// --- HTTP --------------------------------------------------------------------------

const session = object({
  id: str,
  lastActive: or(num, 0),
  lastMessage: or(num, 0), // 0: none yet, or an older server
  created: or(num, 0),
  box: or(str, ''),
  driver: or(str, ''),
  title: or(str, ''),
  model: or(str, ''),
  asleep: or(bool, false), // its sandbox was removed after idling
  shared: or(str, ''), // 'read' or 'approve': somebody else's
  isShared: or(bool, false), // with others
  pinned: or(bool, false),
  archived: or(bool, false),
  tags: or(list(str), [] as string[]),
});
export type Session = Checked<typeof session>;

const model = object({
  id: str,
  name: or(str, ''),
  provider: or(str, ''),
  context: or(num, 0),
});
export type Model = Checked<typeof model>;

const provider = object({
  name: str, ok: or(bool, false), models: or(num, 0), error: or(str, ''),
  url: or(str, ''), // of a server on this machine
});

const models = object({
  provider: or(str, ''),
  model: or(str, ''),
  models: list(model),
  providers: or(list(provider), []),
});
export type Models = Checked<typeof models>;

const readiness = object({
  ready: bool,
  version: or(str, ''),
  checks: or(
    list(object({ name: str, ok: bool, reason: or(str, '') })), [],
  ),
});
export type Readiness = Checked<typeof readiness>;

const audit = object({
  more: or(bool, false),
  rows: list(
    object({ sessionId: or(str, ''), at: num, what: or(record, null) }),
  ),
});
export type Audit = Checked<typeof audit>;

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

const viewItem = object({ name: str, server: str, description: or(str, '') });
const gatewayView = object({
  name: str,
  description: or(str, ''),
  onlyServers: or(list(str), []),
  patterns: or(list(str), []),
  readOnly: bool,
  shows: or(str, 'all'), // or "search": the four meta tools
  counts: or(object({ tools: num }), null),
  servers: or(list(object({ name: str, known: bool, tools: num })), []),
  tools: or(list(object({
    name: str, server: str, tool: str, description: or(str, ''), readOnly: bool,
  })), []),
  resources: or(list(viewItem), []),
  templates: or(list(viewItem), []),
  prompts: or(list(viewItem), []),
  config: or(record, null), // its entry of the file
});
export type GatewayView = Checked<typeof gatewayView>;

const gatewayViews = object({ manage: bool, views: list(gatewayView) });
export type GatewayViews = Checked<typeof gatewayViews>;

const viewChange = object({ name: str, saved: bool, view: or(gatewayView, null) });
export type ViewChange = Checked<typeof viewChange>;

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

const sessionCalls = object({
  more: or(bool, false),
  calls: list(object({
    callId: str, seq: num, state: str, by: or(str, ''), reason: or(str, ''),
    ms: or(num, -1),
  })),
});
export type SessionCalls = Checked<typeof sessionCalls>;

const found = object({
  rows: list(object({ sessionId: str, at: num, what: any })),
});
export type Found = Checked<typeof found>['rows'];

const rule = object({
  id: str,
  server: or(str, ''),
  tool: or(str, ''),
  action: str,
  at: or(num, 0),
  who: or(str, ''),
  args: or(record, null),
});
export type Rule = Checked<typeof rule>;

const operatorRule = object({
  server: or(str, ''),
  tool: or(str, ''),
  action: str,
  args: or(record, null),
  annotations: or(list(str), []),
  reason: or(str, ''),
  remember: or(bool, true),
  approver: or(str, 'auto'),
});
export type OperatorRule = Checked<typeof operatorRule>;

const rules = object({
  rules: list(rule),
  operator: or(list(operatorRule), []),
  default: or(str, 'ask'),
});
export type Rules = Checked<typeof rules>;

/** A rule of the user that is not saved yet. */
export interface Draft {
  server: string;
  tool: string;
  action: 'allow' | 'deny';
  args?: Record<string, string>;
}

const keptRule = object({
  id: str,
  overriddenBy: or(object({ index: num }), null), // a rule of the operator decides
  byDefault: or(bool, false), // the default denies what no rule of the operator allows
});
export type KeptRule = Checked<typeof keptRule>;

const ruleTrial = object({
  action: str,
  by: str,
  reason: or(str, ''),
  rules: list(object({
    by: str, index: num, fits: bool, misses: or(str, ''), path: or(str, ''),
    decides: bool,
  })),
});
export type RuleTrial = Checked<typeof ruleTrial>;

const keyState = object({
  name: str, variable: or(str, ''), key: str, from: or(str, ''),
  why: or(str, ''),
  baseUrl: or(str, ''),
  fixed: or(list(str), [] as string[]), // set by the environment
});
export type Provider = Checked<typeof keyState>;
const providerSetup = object({
  providers: list(keyState), editable: or(bool, false), modelFixed: or(bool, false),
});
export type ProviderSetup = Checked<typeof providerSetup>;
const CAUSES = ['key', 'credit', 'address', 'network', 'busy'] as const;
const providerTest = object({
  ok: bool,
  models: or(list(object({ id: str, name: or(str, '') })), []),
  cause: or(str, 'busy'),
  error: or(str, ''),
});
export type ProviderTest = Omit<Checked<typeof providerTest>, 'cause'> & { cause: typeof CAUSES[number] };

const tokenMembers = {
  id: str, owner: str, name: str, role: str, views: list(str),
  created: num, expires: num, used: or(num, 0),
};
const token = object(tokenMembers);
export type Token = Checked<typeof token>;
const newToken = object({ ...tokenMembers, token: str });
export type NewToken = Checked<typeof newToken>;
const me = object({ name: str, role: str });
export type Me = Checked<typeof me>;
const ownConnection = object({
  server: str, connected: bool, description: or(str, ''), error: or(str, ''),
});
export type OwnConnection = Checked<typeof ownConnection>;

const figures = {
  calls: num, errors: num, p50Ms: num, p95Ms: num,
};
const gatewayStats = object({
  ...figures,
  perMinute: list(num), errorsPerMinute: list(num), longestMs: list(num),
  children: num, queue: num, waiting: num, savedTokens: num,
  servers: list(object({
    name: str, state: str, breaker: str, children: num, queue: num, ...figures,
    tools: list(object({ name: str, ...figures })),
  })),
});
export type GatewayStats = Checked<typeof gatewayStats>;

const stats = object({
  at: num,
  since: num,
  boxes: list(object({
    session: str, box: or(str, ''), driver: or(str, ''), memoryBytes: num,
    memoryLimit: or(num, 0), cpuPercent: or(num, null), cpuLimit: or(num, 0),
    processes: or(num, 0),
  })),
  conversations: list(object({
    session: str, model: or(str, ''), input: num, output: num,
    busy: or(bool, false),
  })),
  approvals: list(object({
    session: str, callId: str, server: or(str, ''), tool: str,
    title: or(str, ''), since: num, expiresAt: or(num, 0),
  })),
  tokens: list(object({
    provider: or(str, ''), model: or(str, ''), input: num, output: num,
    cacheRead: or(num, 0), replies: or(num, 0),
  })),
  calls: object({
    total: num, failed: num, perMinute: list(num), failedPerMinute: list(num),
    longestMs: list(num), meanMs: list(num), tokensPerMinute: list(num),
  }),
  gateway: or(gatewayStats, null),
});
export type Stats = Checked<typeof stats>;

const boxConnections = object({
  connections: list(object({
    host: str, address: or(str, ''), port: num, allowed: bool, rule: or(str, ''),
    reason: or(str, ''), count: num, sent: num, received: num, first: num, last: num,
  })),
  more: or(num, 0),
});
export type BoxConnections = Checked<typeof boxConnections>;

// The gateway: routing, pending calls, audit log.

const hit = object({
  server: str,
  tool: or(str, ''), // '': the tools of its server are not known
  own: or(str, ''), // the name on its server, if different
  confidence: num,
  score: or(num, 0),
  words: or(num, 0),
  meaning: or(num, 0),
  equivalent: or(bool, false),
  description: or(str, ''),
  shared: or(list(object({ word: str, in: list(str) })), []),
  learnt: or(num, 0), // from -1 to 1
  reason: or(str, ''), // why it is not available
  why: or(str, ''),
});
export type Hit = Checked<typeof hit>;

const routed = object({
  query: str, learnt: or(num, 0), results: list(hit), ruledOut: list(hit),
});
export type Routed = Checked<typeof routed>;

const pendingCall = object({
  ...panel,
  id: str,
  server: str,
  tool: str,
  definition: or(record, null),
  args: record,
  digest: str,
  who: or(str, ''),
  conversation: or(str, ''), // the session, of a call of a conversation
  client: or(record, null),
  reason: or(str, ''),
  rule: or(object({
    by: str, index: or(num, 0), server: or(str, ''), tool: or(str, ''),
    remember: or(bool, true),
  }), null),
  words: or(str, ''),
  confidence: or(num, -1), // -1: called by name
  at: num,
  expiresAt: num,
  byClient: or(bool, false),
  approver: or(str, 'operator'),
  session: or(str, ''), // of a connection
  program: or(str, ''),
  tls: or(bool, false),
  request: or(str, ''),
});
export type PendingCall = Checked<typeof pendingCall>;

const changedTool = object({
  server: str, tool: str, digest: str, before: any, now: record,
});
export type ChangedTool = Checked<typeof changedTool>;

const approvals = object({ approvals: list(pendingCall), changed: list(changedTool) });
export type Approvals = Checked<typeof approvals>;

const chain = object({
  ok: bool, rows: num, first: num, last: num, files: or(num, 0),
  file: or(str, ''), line: or(num, 0), why: or(str, ''),
});
export type Chain = Checked<typeof chain>;

const spendRow = object({
  name: or(str, ''), id: or(str, ''), tokens: num, unpricedTokens: num,
  money: or(str, null), // null: no price is known
  limits: or(object({ tokensPerDay: or(num, 0), moneyPerDay: or(str, '') }), { tokensPerDay: 0, moneyPerDay: '' }),
});
export type SpendRow = Checked<typeof spendRow>;
const spend = object({ day: str, people: list(spendRow), tokens: list(spendRow) });
export type Spend = Checked<typeof spend>;

export const readSpend = (v: unknown): Spend => spend(v, 'spend');
export const readRouted = (v: unknown): Routed => routed(v, 'route');
export const readBoxConnections = (v: unknown): BoxConnections => boxConnections(v, 'connections');
export const readConnection = (v: unknown): Connection => connection(v, 'connection');
export const readApprovals = (v: unknown): Approvals => approvals(v, 'approvals');
export const readChain = (v: unknown): Chain => chain(v, 'verify');
export const readStats = (v: unknown): Stats => stats(v, 'stats');
export const readProviderSetup = (v: unknown): ProviderSetup => providerSetup(v, 'providers');
export const readProviderChange = (v: unknown): { saved: boolean; test: ProviderTest | undefined } => {
  const { saved, test } = object({ saved: bool, test: or(providerTest, undefined) })(v, 'provider');
  return { saved, test: test && { ...test, cause: CAUSES.find((c) => c === test.cause) ?? 'busy' } };
};
export const readTokens = (v: unknown): Token[] =>
  object({ tokens: list(token) })(v, 'tokens').tokens;
export const readNewToken = (v: unknown): NewToken => newToken(v, 'token');
export const readMe = (v: unknown): Me => me(v, 'me');
export const readConnections = (v: unknown): OwnConnection[] =>
  object({ connections: list(ownConnection) })(v, 'connections').connections;
export const readConnectUrl = (v: unknown): string =>
  object({ url: str })(v, 'connection').url;
export const readRules = (v: unknown): Rules => rules(v, 'rules');
export const readKeptRule = (v: unknown): KeptRule => keptRule(v, 'rule');
export const readRuleTrial = (v: unknown): RuleTrial => ruleTrial(v, 'try');
export const readEntries = (v: unknown): Entry[] =>
  object({ messages: list(entry) })(v, 'history').messages;
export const readCalls = (v: unknown): SessionCalls => sessionCalls(v, 'calls');
export const readFound = (v: unknown): Found => found(v, 'search').rows;
export const readManaged = (v: unknown): Managed => managed(v, 'servers');
export const readConnectTest = (v: unknown): ConnectTest => connectTest(v, 'test');
export const readChange = (v: unknown): Change => change(v, 'change');
export const readEntry = (v: unknown): { config: Record<string, unknown> } =>
  object({ config: record })(v, 'server');
export const readRegistryFound = (v: unknown): RegistryFound => registryFound(v, 'registry');
export const readInstallation = (v: unknown): Installation => installation(v, 'installation');
export const readPlan = (v: unknown): Plan => plan(v, 'plan');
export const readSnippets = (v: unknown): Snippets => snippets(v, 'snippets');
export const readGatewayView = (v: unknown): GatewayView => gatewayView(v, 'view');
export const readGatewayViews = (v: unknown): GatewayViews => gatewayViews(v, 'views');
export const readViewChange = (v: unknown): ViewChange => viewChange(v, 'change');
export const readTools = (v: unknown): ServerTool[] =>
  object({ tools: list(serverTool) })(v, 'tools').tools;
export const readTry = (v: unknown): RunningTry => runningTry(v, 'try');
export const readToolTrial = (v: unknown): ToolTrial => toolTrial(v, 'call');
const share = object({ with: str, may: str, at: or(num, 0), by: or(str, '') });
export type Share = Checked<typeof share>;
export const readGrants = (v: unknown): Grant[] =>
  object({ grants: list(grant) })(v, 'grants').grants;
export const readShares = (v: unknown): Share[] =>
  object({ shares: list(share) })(v, 'shares').shares;

export const readSessions = (v: unknown): Session[] =>
  object({ sessions: list(session) })(v, 'sessions').sessions;
export const readModels = (v: unknown): Models => models(v, 'models');
export const readReadiness = (v: unknown): Readiness => readiness(v, 'readyz');
export const readAudit = (v: unknown): Audit => audit(v, 'audit');
