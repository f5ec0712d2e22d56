// appApi - requests of an app (MCP Apps) to its server, through ours.

import { any, isRecord, list, object, or, record, str } from './check';
import { post } from './http';
import type { AppResult } from '../protocol';

const MIME = /^text\/html\s*;\s*profile=mcp-app\s*$/i;

const part = object({ uri: or(str, ''), mimeType: or(str, ''), text: or(str, null), blob: or(str, null) });
const readResource = object({
  result: record,
  ui: or(record, {} as Record<string, unknown>),
  refused: or(list(str), []),
  origin: or(str, ''),
});
const answer = object({
  state: str,
  reason: or(str, ''),
  digest: or(str, ''),
  name: or(str, ''),
  title: or(str, ''),
  args: or(record, {}),
  result: any,
});
export type AppAnswer = ReturnType<typeof answer>;

const path = (session: string, what: string): string => `/api/sessions/${encodeURIComponent(session)}/apps/${what}`;

export interface AppPage {
  html: string;
  csp: unknown;
  origin: string; // of its frame; empty: that of the page
  isBordered: boolean;
  refused: string[]; // domains that it asks for and does not get
  denied: string[]; // permissions of the browser, likewise
}

const utf8 = (base64: string): string =>
  new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));

export async function readAppPage(session: string, app: AppResult): Promise<AppPage> {
  const { result, ui, refused, origin } = await post(path(session, 'resource'), (v) => readResource(v, 'resource'),
    { server: app.server, app: app.uri, uri: app.uri });
  const [first] = list(part)(result['contents'], 'contents');
  const html = first?.text ?? (first?.blob ? utf8(first.blob) : null);
  if (!first || html === null || !MIME.test(first.mimeType)) throw new Error(`${first?.mimeType ?? ''}?`);
  return {
    html,
    csp: ui['csp'] ?? {},
    origin,
    isBordered: ui['prefersBorder'] !== false,
    refused: [...new Set(refused)],
    denied: isRecord(ui['permissions']) ? Object.keys(ui['permissions']) : [],
  };
}

export async function readAppResource(session: string, app: AppResult, uri: string): Promise<Record<string, unknown>> {
  const body = { server: app.server, app: app.uri, uri };
  return (await post(path(session, 'resource'), (v) => readResource(v, 'resource'), body)).result;
}

export function callAppTool(
  session: string, app: AppResult, tool: string, args: Record<string, unknown>, digest = '',
): Promise<AppAnswer> {
  return post(path(session, 'call'), (v) => answer(v, 'call'),
    { server: app.server, app: app.uri, tool, arguments: args, ...(digest && { digest }) });
}
