// parts - the parts of messages that several of them have.

import { any, bool, list, num, object, or, record, str, type Check } from '../lib/check';

export type Checked<C> = C extends Check<infer T> ? T : never;

export const tool = object({
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

/** A skill of a server (SEP-2640). */
export const skill = object({
  uri: str,
  server: or(str, ''),
  name: str,
  description: or(str, ''),
  files: or(num, 0),
  verifiable: or(bool, true), // its files have digests
  digest: or(str, ''), // of a changed skill
  changedFrom: any, // undefined: not changed
  now: any,
});
export type Skill = Checked<typeof skill>;

export const usage = object({
  input: or(num, 0),
  output: or(num, 0),
  cacheRead: or(num, 0),
  cacheWrite: or(num, 0),
});
export type Usage = Checked<typeof usage>;

/** Tokens that tools cost, and would have cost as plain calls; estimated. */
const toolTokens = object({ sent: or(num, 0), plain: or(num, 0) });
export type ToolTokens = Checked<typeof toolTokens>;

export const content = object({
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
  path: or(str, ''), // of an image: its file in the workspace
  left: or(str, ''), // of an image: why the model is not sent it
});
export type Block = Checked<typeof block>;

/** The app of a tool (MCP Apps), and what it gets beside the content. */
export const appResult = object({
  server: str,
  tool: str,
  uri: str,
  structuredContent: any,
  _meta: any,
  cut: or(bool, false), // the structured content was too large
});
export type AppResult = Checked<typeof appResult>;

const result = object({
  key: str,
  name: or(str, ''),
  isError: or(bool, false),
  state: or(str, ''), // done, rejected, unknown; '': stored by an older server
  content: or(list(content), []),
  app: or(appResult, null),
  times: or(object({ // wall ms; 0: it did not happen
    asked: or(num, 0), decided: or(num, 0), began: or(num, 0), ended: or(num, 0), routeUs: or(num, 0), boxMs: or(num, 0),
  }), null),
});
export type Result = Checked<typeof result>;

/** Calls of a script that a person has granted ahead. */
export const scriptGrant = object({
  id: or(str, ''), // '': it was revoked
  revoked: or(bool, false), tool: or(str, ''), server: or(str, ''), same: or(record, null),
  count: or(num, 0), left: or(num, 0),
});
export type ScriptGrant = Checked<typeof scriptGrant>;

/** The calls of a script that the model wrote. */
export const script = object({
  key: str, // of the call of run_script
  grants: or(list(scriptGrant), []),
  total: or(num, 0),
  calls: or(list(object({
    key: str, line: or(num, 0), name: or(str, ''), server: or(str, ''), args: or(record, null),
    state: or(str, ''), isError: or(bool, false), by: or(str, ''), ms: or(num, -1), text: or(str, ''),
  })), []),
});
export type Script = Checked<typeof script>;

/** Where a call comes from if a script made it. */
export const origin = { parent: or(str, ''), line: or(num, 0) };
export const scriptCallMade = object({
  ...origin, callId: str, name: or(str, ''), server: or(str, ''), args: or(record, null), state: or(str, ''),
});
export type ScriptCallMade = Checked<typeof scriptCallMade>;

export const entry = object({
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
  scripts: or(list(script), []),
  usage: or(usage, null),
  toolTokens: or(toolTokens, null),
});
export type Entry = Checked<typeof entry>;

/** The server that runs a call instead of one that is down. */
export const failoverRoute = object({ server: str, insteadOf: or(str, ''), why: or(str, '') });
export type FailoverRoute = Checked<typeof failoverRoute>;

/** Who must approve a call, where a rule names them. */
export const panel = {
  approvers: or(list(str), []),
  approvals: or(num, 0), // so many persons; 0: no rule names them
  fourEyes: or(bool, false),
  approvedBy: or(list(str), []),
};

/** A connection of a box that waits for a decision. */
export const connection = object({
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

export const grant = object({
  id: str, server: or(str, ''), tool: str, action: str, who: or(str, ''), at: or(num, 0),
});
export type Grant = Checked<typeof grant>;
