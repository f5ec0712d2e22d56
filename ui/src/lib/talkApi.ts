// talkApi - requests about conversations as files and as links.

import { bool, list, num, object, or, str, type Check } from './check';
import { get, post, request } from './http';

export interface ShareLink {
  id: string;
  at: number;
  by: string;
  expires: number; // 0: never
  path: string; // of a new one; else ''
}
export interface ShareLinks {
  allowed: boolean;
  links: ShareLink[];
}

const imported = object({ sessionId: str, entries: num });
const link: Check<ShareLink> = object({ id: str, at: num, by: str, expires: or(num, 0), path: or(str, '') });
const links: Check<ShareLinks> = object({ allowed: bool, links: list(link) });
export const readImported = (v: unknown): { sessionId: string; entries: number } => imported(v, 'imported');
export const readLink = (v: unknown): ShareLink => link(v, 'link');
export const readLinks = (v: unknown): ShareLinks => links(v, 'links');

/** The id of the new conversation. The file is sent as it is: the server checks it. */
export async function importConversation(file: Blob): Promise<string> {
  const r = await request('/api/sessions', {
    method: 'POST', headers: { accept: 'application/json', 'content-type': 'application/json' }, body: file,
  });
  return readImported(await r.json()).sessionId;
}

const linksAt = (id: string): string => `/api/sessions/${encodeURIComponent(id)}/links`;
export const fetchLinks = (id: string): Promise<ShareLinks> => get(linksAt(id), readLinks);
/** days 0: until it is withdrawn. */
export const makeLink = (id: string, days: number): Promise<ShareLink> =>
  post(linksAt(id), readLink, days ? { days } : {});
export const withdrawLink = (id: string, link: string): Promise<unknown> =>
  post(`${linksAt(id)}/${encodeURIComponent(link)}`, (v) => v, {}, 'DELETE');
