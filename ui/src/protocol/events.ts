// events - what the server sends in a conversation: the arguments of each event.

import { any, bool, list, num, object, or, record, str, type Check } from '../lib/check';
import { tool, skill, usage, content, textContent, appResult, script, scriptGrant, origin, scriptCallMade, entry, failoverRoute, panel, connection, type Checked, type Content, type Connection } from './parts';

const approval = object({
  ...panel,
  ...origin,
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
  scripts: or(list(script), []),
});
export type Turn = Checked<typeof turn>;

/** A server asks for an answer of the model. */
const sample = object({
  requestId: str,
  server: or(str, ''),
  callId: or(str, ''),
  state: or(str, 'asked'), // asked, running, review
  messages: or(list(object({ role: str, content: any })), []),
  systemPrompt: or(str, ''),
  maxTokens: or(num, 0),
  model: or(str, ''),
  text: or(str, ''), // the answer, in review
  edited: or(bool, false), // the person has changed it
  expiresAt: num,
});
export type Sample = Checked<typeof sample>;

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

/** A server that is switched off in a conversation, or one of its tools. */
const switched = object({ server: str, tool: or(str, '') });

const ready = object({
  sessionId: str,
  containerId: or(str, ''),
  provider: or(str, ''),
  model: or(str, ''),
  title: or(str, ''),
  system: or(str, ''), // instructions of the person for the model
  offer: or(str, ''), // tools the person wants offered: 'all', 'search', 'code', 'auto'; '': as configured
  offered: or(str, ''), // tools that are offered: 'all', 'search' or 'code'
  tools: or(list(tool), []),
  skills: or(list(skill), []),
  toolsOff: or(list(switched), []),
  resumed: or(bool, false),
  driver: or(str, ''),
  workspace: or(str, ''), // 'fresh', 'kept' or 'lost'
  elsewhere: or(bool, false), // lost: its files are on another machine
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
  ...origin,
  callId: str,
  name: or(str, ''),
  isError: or(bool, false),
  state: or(str, ''), // as in a result
  durationMs: or(num, 0),
  truncated: or(bool, false),
  route: or(failoverRoute, null),
  app: or(appResult, null),
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
  'session:skills': [object({ skills: list(skill) }), any],
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
      ...origin, callId: str, firstId: or(str, ''), approved: bool, by: or(str, ''), reason: or(str, ''),
    }),
    any,
  ],
  'script:call': [scriptCallMade, any],
  'script:grants': [object({ callId: str, grants: or(list(scriptGrant), []) }), any],
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
  'sampling:required': [sample, any],
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

export const readConnection = (v: unknown): Connection => connection(v, 'connection');
