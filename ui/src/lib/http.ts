// http - HTTP requests to this server.

import {
  readAudit, readBoxConnections, readCalls, readConnections, readConnectUrl, readEntries, readFound, readKeptRule, readModels,
  readReadiness, readRules, readSessions, readStats, readConnectTest, readTools,
  readGrants, readMe, readNewToken, readRuleTrial, readShares, readTokens, readToolTrial,
  type Audit, type BoxConnections, type ConnectTest, type Draft, type Entry, type Found, type Grant, type KeptRule, type Models,
  type OwnConnection, type Readiness, type Rules, type ServerTool, type Session,
  type Me, type NewToken, type SessionCalls, type Share, type Stats, type Token, type RuleTrial, type ToolTrial,
} from '../protocol';
import { t } from '../lang';

export class HttpError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

async function reason(r: Response): Promise<string> {
  const body: unknown = await r.json().catch(() => null);
  const detail =
    typeof body === 'object' && body !== null && 'detail' in body
      ? body.detail
      : '';
  return typeof detail === 'string' && detail ? detail : `HTTP ${r.status}`;
}

/** Fails with an HttpError, whose status is 0 if there was no response. */
export async function request(path: string, init?: RequestInit): Promise<Response> {
  const r = await fetch(path, init).catch(() => {
    throw new HttpError(0, t('error.offline'));
  });
  if (!r.ok) throw new HttpError(r.status, await reason(r));
  return r;
}

/** The message of an error, for the user. */
export const errorText = (e: unknown): string =>
  (e instanceof Error ? e.message : String(e));

/** Resolves to an error message, or to an empty string. */
export const errorOf = (done: Promise<unknown>): Promise<string> =>
  done.then(() => '', errorText);

export async function get<T>(path: string, read: (v: unknown) => T): Promise<T> {
  const r = await request(path, { headers: { accept: 'application/json' } });
  return read(await r.json());
}

export async function post<T>(
  path: string, read: (v: unknown) => T, body: unknown = {}, method = 'POST',
): Promise<T> {
  const r = await request(path, {
    method,
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return read(await r.json());
}

export const fetchSessions = (): Promise<Session[]> =>
  get('/api/sessions', readSessions);
export const fetchModels = (): Promise<Models> =>
  get('/api/models/available', readModels);
export const fetchAudit = (after: number): Promise<Audit> =>
  get(`/api/audit?limit=1000&after=${after}`, readAudit);
export const fetchOlderAudit = (before: number): Promise<Audit> =>
  get(`/api/audit?limit=1000&before=${before}`, readAudit);
export const fetchMetrics = async (): Promise<string> =>
  (await fetch('/metrics')).text();

/** 503 also has a body, which says what is missing. */
export async function fetchReadiness(): Promise<Readiness> {
  return readReadiness(await (await fetch('/readyz')).json());
}

/** 404 counts as success. */
async function remove(path: string): Promise<void> {
  await request(path, { method: 'DELETE' }).catch((e: unknown) => {
    if (!(e instanceof HttpError) || e.status !== 404) throw e;
  });
}

export const deleteSession = (id: string): Promise<void> =>
  remove(`/api/sessions/${encodeURIComponent(id)}?forget=true`);
export const fetchStats = (): Promise<Stats> => get('/api/stats', readStats);
export const fetchMe = (): Promise<Me> => get('/api/me', readMe);
export const fetchTokens = (): Promise<Token[]> => get('/api/tokens', readTokens);
export const makeToken = (
  wish: { name: string; role: string; views: string[]; days: number },
): Promise<NewToken> => post('/api/tokens', readNewToken, wish);
export const revokeToken = (id: string): Promise<void> =>
  remove(`/api/tokens/${encodeURIComponent(id)}`);
export const fetchRules = (): Promise<Rules> => get('/api/rules', readRules);
export const addRule = (rule: Draft): Promise<KeptRule> =>
  post('/api/rules', readKeptRule, rule);
export const tryRules = (
  server: string, tool: string, args: Record<string, unknown>,
  draft: Draft | null,
): Promise<RuleTrial> =>
  post('/api/rules/try', readRuleTrial,
    { server, tool, args, ...(draft ? { draft } : {}) });
export const dropRule = (id: string): Promise<void> =>
  remove(`/api/rules/${encodeURIComponent(id)}`);

const sessionAt = (id: string): string =>
  `/api/sessions/${encodeURIComponent(id)}`;

export interface About {
  title?: string;
  pinned?: boolean;
  archived?: boolean;
  tags?: string[];
  system?: string;
  offer?: string;
}
export const changeSession = (id: string, about: About): Promise<unknown> =>
  post(sessionAt(id), (v) => v, about, 'PATCH');
export const fetchShares = (id: string): Promise<Share[]> =>
  get(`${sessionAt(id)}/shares`, readShares);
/** may: 'read', 'approve', or 'none' to withdraw it. */
export const putShare = (id: string, who: string, may: string): Promise<Share[]> =>
  post(`${sessionAt(id)}/shares`, readShares, { with: who, may }, 'PUT');
export const fetchGrants = (id: string): Promise<Grant[]> =>
  get(`${sessionAt(id)}/grants`, readGrants);
export const revokeGrant = (id: string, grant: string): Promise<void> =>
  remove(`${sessionAt(id)}/grants/${encodeURIComponent(grant)}`);
/** tools: names of those that were shown to the user; others are asked about. */
export const setMode = (id: string, mode: string, tools?: string[]): Promise<unknown> =>
  post(`${sessionAt(id)}/mode`, (v) => v, { mode, ...(tools ? { tools } : {}) }, 'PUT');
export const fetchCalls = (id: string, after: number): Promise<SessionCalls> =>
  get(`${sessionAt(id)}/calls?after=${after}`, readCalls);
export const fetchBoxConnections = (id: string): Promise<BoxConnections> =>
  get(`${sessionAt(id)}/connections`, readBoxConnections);
export const fetchServerConnections = (name: string): Promise<BoxConnections> =>
  get(`/api/mcp/${encodeURIComponent(name)}/connections`, readBoxConnections);
export const fetchEntries = (
  id: string, after: number, limit: number,
): Promise<Entry[]> =>
  get(`${sessionAt(id)}/history?after=${after}&limit=${limit}`, readEntries);
export const searchAll = (words: string): Promise<Found> =>
  get(`/api/search?limit=50&q=${encodeURIComponent(words)}`, readFound);

export const exportPath = (id: string, format: 'markdown' | 'html' | 'json' = 'markdown'): string =>
  `${sessionAt(id)}/history?format=${format}`;

const serverAt = (name: string): string =>
  `/api/servers/${encodeURIComponent(name)}`;
const toolAt = (server: string, tool: string): string =>
  `${serverAt(server)}/tools/${encodeURIComponent(tool)}`;

export const fetchTools = (server: string): Promise<ServerTool[]> =>
  get(`${serverAt(server)}/tools`, readTools);
/** The last known tools; the server is not started. */
export const fetchKnownTools = (server: string): Promise<ServerTool[]> =>
  get(`${serverAt(server)}/tools?known=true`, readTools);
export const testServer = (server: string): Promise<ConnectTest> =>
  post(`${serverAt(server)}/test`, readConnectTest);
export const callTool = (
  server: string, tool: string, args: Record<string, unknown>, digest: string, run: string,
): Promise<ToolTrial> =>
  post(`${toolAt(server, tool)}/call`, readToolTrial,
    { args, run, ...(digest ? { digest } : {}) });
export const acceptTool = (
  server: string, tool: string, digest: string,
): Promise<unknown> =>
  post(`${toolAt(server, tool)}/accept`, (v) => v, { digest });

const connectionAt = (server: string): string =>
  `/api/connections/${encodeURIComponent(server)}`;
export const fetchConnections = (): Promise<OwnConnection[]> =>
  get('/api/connections', readConnections);
/** The address at which this person signs in. */
export const beginConnection = (server: string): Promise<string> =>
  post(connectionAt(server), readConnectUrl);
export const endConnection = (server: string): Promise<unknown> =>
  post(connectionAt(server), (v) => v, {}, 'DELETE');
