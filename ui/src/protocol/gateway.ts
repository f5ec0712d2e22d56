// gateway - responses over HTTP about routing and pending calls of the gateway.

import { any, bool, list, num, object, or, record, str } from '../lib/check';
import { panel, type Checked } from './parts';

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

export const readRouted = (v: unknown): Routed => routed(v, 'route');
export const readApprovals = (v: unknown): Approvals => approvals(v, 'approvals');
