// serverApi - requests that list, add, change, test and remove MCP servers.

import {
  readConnectTest, readAudit, readChange, readEntry, readInstallation, readManaged, readPlan,
  readRegistryFound, readSnippets,
  type ConnectTest, type Change, type Installation, type Managed, type Plan,
  type RegistryFound, type Snippets,
} from '../protocol';
import { get, post, request } from './http';

const at = (name: string): string => `/api/mcp/${encodeURIComponent(name)}`;

/** The part of a configuration entry that the page can write. */
export interface Entry {
  command?: string;
  args?: string[];
  url?: string;
  image?: string;
  description?: string;
  env?: Record<string, string>;
  headers?: Record<string, string>;
}

export interface NewServer {
  name: string;
  entry: Entry;
  secrets: string[]; // names whose values go to the secret store
}

export const fetchManaged = (): Promise<Managed> =>
  get('/api/mcp', readManaged);
/** view: that the client is to use; empty: everything. */
export const fetchSnippets = (view = ''): Promise<Snippets> =>
  get(`/api/mcp/snippets${view ? `?view=${encodeURIComponent(view)}` : ''}`, readSnippets);

/** Tests the connection to a new server without saving it. */
export const testNewServer = ({ name, entry, secrets }: NewServer): Promise<Change> =>
  post('/api/mcp?dryRun=true&test=true', readChange,
    { name, config: entry, secrets });
export const addServer = (
  { name, entry, secrets }: NewServer, test: boolean,
): Promise<Change> =>
  post(`/api/mcp?test=${test}`, readChange, { name, config: entry, secrets });
/** The entry of the file; values that may be secret are masked. */
export const fetchEntry = async (name: string): Promise<Record<string, unknown>> =>
  (await get(at(name), readEntry)).config;
export interface ServerChange {
  name: string;
  entry: Record<string, unknown>; // null removes a member
  secrets: string[];
}
export const testChange = ({ name, entry, secrets }: ServerChange): Promise<Change> =>
  post(`${at(name)}?dryRun=true&test=true`, readChange, { config: entry, secrets }, 'PATCH');
export const changeServer = ({ name, entry, secrets }: ServerChange): Promise<Change> =>
  post(at(name), readChange, { config: entry, secrets }, 'PATCH');
export const enableServer = (name: string, enabled: boolean): Promise<Change> =>
  post(at(name), readChange, { enabled }, 'PATCH');
export const removeServer = (name: string): Promise<Change> =>
  post(at(name), readChange, {}, 'DELETE');
/** Tests a configured server in a separate connection. */
export const testSavedServer = (name: string): Promise<ConnectTest> =>
  post(`${at(name)}/test`, readConnectTest);

/** What to install, and how. */
export interface InstallWish {
  server: string; // of the registry, npm:PACKAGE, pypi:PACKAGE, mcpb:ADDRESS, oci:IMAGE or an address
  name?: string;
  env: Record<string, string>;
  args?: string[];
  hosts?: string[];
}

export const searchRegistry = (words: string): Promise<RegistryFound> =>
  get(`/api/registry?q=${encodeURIComponent(words)}`, readRegistryFound);
export const planInstall = (wish: InstallWish): Promise<Installation> =>
  post('/api/registry/plan', readInstallation, wish);
/** Installs the plan with this digest, or nothing. */
export const install = (
  wish: InstallWish, agreed: string, acceptWarnings: boolean,
): Promise<Installation> =>
  post('/api/registry/install', readInstallation,
    { ...wish, agreed, acceptWarnings });

export interface ImportHow {
  dry: boolean;
  replace: boolean;
  secrets: boolean;
}

/** Sends the file as text, because it may contain comments. */
export async function importServers(
  text: string, { dry, replace, secrets }: ImportHow,
): Promise<Plan> {
  const r = await request(
    `/api/mcp/import?dryRun=${dry}&replace=${replace}&secrets=${secrets}`,
    { method: 'POST', headers: { 'content-type': 'text/plain' }, body: text });
  return readPlan(await r.json());
}

export interface CallTime {
  at: number;
  ms: number;
  failed: boolean;
}

/** Durations of the last n calls of a server, the newest last. */
export async function fetchCallTimes(server: string, n: number): Promise<CallTime[]> {
  const { rows } = await get(
    `/api/audit?limit=400&q=${encodeURIComponent(server)}`, readAudit);
  return rows
    .flatMap(({ at: when, what }) => {
      const ms = what?.['ms'];
      return what?.['server'] === server && typeof ms === 'number'
        ? [{ at: when, ms, failed: what['isError'] === true || (what['kind'] === 'call' && what['outcome'] !== 'ok') }]
        : [];
    })
    .toSorted((a, b) => a.at - b.at)
    .slice(-n);
}
