// sessions - responses over HTTP about conversations, models and the audit log.

import { any, bool, list, num, object, or, record, str } from '../lib/check';
import { entry, grant, type Checked, type Entry, type Grant } from './parts';

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

const boxConnections = object({
  connections: list(object({
    host: str, address: or(str, ''), port: num, allowed: bool, rule: or(str, ''),
    reason: or(str, ''), count: num, sent: num, received: num, first: num, last: num,
  })),
  more: or(num, 0),
});
export type BoxConnections = Checked<typeof boxConnections>;

const chain = object({
  ok: bool, rows: num, first: num, last: num, files: or(num, 0),
  file: or(str, ''), line: or(num, 0), why: or(str, ''),
});
export type Chain = Checked<typeof chain>;

export const readBoxConnections = (v: unknown): BoxConnections => boxConnections(v, 'connections');
export const readChain = (v: unknown): Chain => chain(v, 'verify');
export const readEntries = (v: unknown): Entry[] =>
  object({ messages: list(entry) })(v, 'history').messages;
export const readCalls = (v: unknown): SessionCalls => sessionCalls(v, 'calls');
export const readFound = (v: unknown): Found => found(v, 'search').rows;
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
