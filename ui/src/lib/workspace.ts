// workspace - the files of a conversation: requests, kinds, names.

import { bool, list, num, object, or, str } from './check';
import { bytes } from './format';
import { get, HttpError, request } from './http';
import { t } from '../lang';

const entry = object({
  name: str, type: str, size: or(num, 0), mtime: num,
});
const listing = object({ entries: list(entry), more: bool, clipped: bool });
export type FileEntry = ReturnType<typeof entry>;
export type Listing = ReturnType<typeof listing>;

const base = (session: string): string =>
  `/api/sessions/${encodeURIComponent(session)}/files`;
const query = (q: Record<string, string>): string =>
  `?${new URLSearchParams(q).toString()}`;

export const listFiles = (session: string, path: string, after = ''): Promise<Listing> =>
  get(`${base(session)}${query({ ...(path && { path }), ...(after && { after }) })}`,
    (v) => listing(v, 'files'));
/** Files that were created or changed in the last so many milliseconds. */
export const listChanged = (session: string, ms: number): Promise<Listing> =>
  get(`${base(session)}${query({ recursive: 'true', changedMs: String(Math.max(1, Math.round(ms))) })}`,
    (v) => listing(v, 'files'));
export const downloadPath = (session: string, path: string): string =>
  `${base(session)}/content${query({ path })}`;
export const viewPath = (session: string, path: string): string =>
  `${base(session)}/content${query({ path, view: 'true' })}`;
export const archivePath = (session: string): string =>
  `${base(session)}/archive`;
export const removeFile = async (session: string, path: string): Promise<void> => {
  await request(downloadPath(session, path), { method: 'DELETE' });
};

function reasonOf(x: XMLHttpRequest): string {
  try {
    const body: unknown = JSON.parse(x.responseText);
    if (typeof body === 'object' && body !== null && 'detail' in body && typeof body.detail === 'string')
      return body.detail;
  } catch { /* not ours */ }
  return x.status ? `HTTP ${x.status}` : t('error.offline');
}

/** Uploads with progress from 0 to 1, which fetch() cannot tell. */
export function uploadFile(
  session: string, path: string, file: Blob,
  o: { progress?: (part: number) => void; signal?: AbortSignal } = {},
): Promise<void> {
  return new Promise((ok, no) => {
    const x = new XMLHttpRequest();
    x.open('PUT', downloadPath(session, path));
    x.upload.onprogress = (e) => {
      if (e.lengthComputable) o.progress?.(e.loaded / e.total);
    };
    x.onload = () => {
      if (x.status < 300) ok();
      else no(new HttpError(x.status, reasonOf(x)));
    };
    x.onerror = () => no(new HttpError(x.status, reasonOf(x)));
    x.onabort = () => no(new DOMException('aborted', 'AbortError'));
    o.signal?.addEventListener('abort', () => x.abort());
    x.send(file);
  });
}

/** The size of a file, which may be small. */
export const sizeText = (n: number): string =>
  (n < 1000 ? t('files.bytes', { n }) : bytes(n));
/** The last part of a path. */
export const nameOf = (path: string): string =>
  path.slice(path.lastIndexOf('/') + 1);
export const joined = (dir: string, name: string): string =>
  (dir ? `${dir}/${name}` : name);

/** A name that the workspace takes: no slash, no control characters. */
export function safeName(name: string): string {
  const clean = name.replace(/[\u0000-\u001f\u007f/\\]+/g, '_').replace(/^\.+$/, '_').trim();
  const dot = clean.lastIndexOf('.');
  const end = dot > 0 && clean.length - dot <= 16 ? clean.slice(dot) : '';
  return (clean.slice(0, 100 - end.length).replace(end, '') + end) || 'file';
}

/** The name, with a number if it is taken. */
export function freeName(name: string, taken: Set<string>): string {
  const dot = name.lastIndexOf('.');
  const [head, end] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ''];
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${head}-${n}${end}`;
  return free;
}

export type Kind = 'image' | 'table' | 'frame' | 'text';
const IMAGE = /\.(png|jpe?g|gif|webp|avif|bmp|ico|svg)$/i;

/** How a file is shown; whether a text is one shows its content. */
export function kindOf(path: string): Kind {
  if (IMAGE.test(path)) return 'image';
  if (/\.(csv|tsv)$/i.test(path)) return 'table';
  return /\.(html?|pdf)$/i.test(path) ? 'frame' : 'text';
}

export const langOf = (path: string): string =>
  (/\.([\w+-]{1,12})$/.exec(path)?.[1] ?? '').toLowerCase();

/** Rows of comma- or tab-separated values (RFC 4180), at most `max`. */
export function rowsOf(text: string, sep: string, max: number): string[][] {
  const rows: string[][] = [];
  let row: string[] = [], cell = '', quoted = false;
  const endRow = () => {
    rows.push([...row, cell]);
    row = [];
    cell = '';
  };
  for (let i = 0; i < text.length && rows.length < max; i++) {
    const c = text.charAt(i);
    if (quoted && c === '"' && text[i + 1] === '"') {
      cell += c;
      i++;
    } else if (c === '"' && (quoted || cell === '')) quoted = !quoted;
    else if (quoted) cell += c;
    else if (c === sep) {
      row.push(cell);
      cell = '';
    } else if (c === '\n') endRow();
    else if (c !== '\r') cell += c;
  }
  if (rows.length < max && (cell || row.length)) endRow();
  return rows;
}

// --- files of turns --------------------------------------------------------

const NOT_MADE = /(^|\/)(\.[^/]*|node_modules|__pycache__)(\/|$)/;

export interface Turn {
  id: string;
  from: number; // ms, of the server
  to: number;
}

/** Which files each turn made or changed last, newest first. Files of people,
 *  hidden ones and those of package managers are left out. */
export function filesOfTurns(turns: Turn[], entries: FileEntry[]): Map<string, FileEntry[]> {
  const out = new Map<string, FileEntry[]>();
  for (const e of [...entries].sort((a, b) => b.mtime - a.mtime)) {
    if (NOT_MADE.test(e.name) || e.name.startsWith(`${UPLOADS}/`)) continue;
    const turn = turns.find((x) => e.mtime >= x.from && e.mtime <= x.to);
    if (turn) out.set(turn.id, [...(out.get(turn.id) ?? []), e]);
  }
  return out;
}

// --- attachments -----------------------------------------------------------
//
// Attached files are in the workspace. The message names them in its last lines,
// so that every model knows them and a reload shows them.

export const UPLOADS = 'uploads';
const HEAD = 'Attached files:';
/** Where the server looks for a smaller copy of an attached image. */
export const smallerCopy = (name: string): string => `${UPLOADS}/.view/${name}`;

export function withAttachments(text: string, paths: string[]): string {
  if (!paths.length) return text;
  const lines = [HEAD, ...paths.map((p) => `- ${p}`)].join('\n');
  return text ? `${text}\n\n${lines}` : lines;
}

export function splitAttachments(said: string): { text: string; paths: string[] } {
  const m = /(?:^|\n\n)Attached files:\n((?:- uploads\/[^\n]+(?:\n|$))+)$/.exec(said);
  if (!m?.[1]) return { text: said, paths: [] };
  return {
    text: said.slice(0, m.index),
    paths: m[1].trim().split('\n').map((l) => l.slice(2)),
  };
}
