// files - the content of files as last seen in this conversation, to show a
// change as a diff. Commands may have changed a file since, so the caller must
// say what the diff compares with.

import { effectOf, isTool, type Args } from './effect';
import type { Content } from '../protocol';

export interface Seen {
  name: string;
  args: Args;
  state: string;
  content: Content[];
}

/** The text of a complete read; null if it was cut or numbered. */
function wholeRead(c: Seen): string | null {
  const only = c.content.length === 1 ? c.content[0] : undefined;
  const parts = ['start_line', 'end_line', 'offset', 'limit', 'encoding'];
  if (only?.type !== 'text' || parts.some((p) => p in c.args)) return null;
  return only.text;
}

function replaced(text: string, from: string, to: string, all: boolean) {
  if (!from || !text.includes(from)) return null;
  return all ? text.replaceAll(from, () => to) : text.replace(from, () => to);
}

/** The file as last seen by successful calls; null: never seen whole. */
export function lastSeen(calls: Iterable<Seen>, path: string): string | null {
  let text: string | null = null;
  for (const c of calls) {
    if (c.state !== 'done' || c.args['path'] !== path) continue;
    const e = effectOf(c.name, c.args);
    if (e.kind === 'write') text = e.binary ? null : e.content;
    else if (e.kind === 'edit' && text !== null)
      text = replaced(text, e.before, e.after, e.all);
    else if (isTool(c.name, 'read_file')) text = wholeRead(c);
  }
  return text;
}

export interface Change {
  before: string;
  after: string;
  known: boolean; // the whole file was known, not only the replaced part
}

export function changeOf(
  calls: Iterable<Seen>, name: string, args: Args,
): Change | null {
  const e = effectOf(name, args);
  if (e.kind === 'write') {
    if (e.binary) return null;
    const seen = lastSeen(calls, e.path);
    return { before: seen ?? '', after: e.content, known: seen !== null };
  }
  if (e.kind !== 'edit') return null;
  const seen = lastSeen(calls, e.path);
  const after = seen === null
    ? null
    : replaced(seen, e.before, e.after, e.all);
  if (seen === null || after === null)
    return { before: e.before, after: e.after, known: false };
  return { before: seen, after, known: true };
}
