// attached - resources of servers in a message.
//
// A resource is named in a message by a mark, `@[URI]`. When the message is sent,
// the content of each is added below it, between two lines with a random word: text
// of a server cannot end its own part. The model reads whose it is. Pure.

import { list, str } from './check';

const MARK = /@\[([^\]\s]+)\]/g;

export const markOf = (uri: string): string => `@[${uri}]`;
export const markedIn = (text: string): string[] => [...new Set([...text.matchAll(MARK)].map((m) => m[1] ?? ''))];

export interface Attached {
  server: string;
  uri: string;
  mimeType: string;
  text: string;
}

const word = (): string => Math.random().toString(36).slice(2, 10).padEnd(8, '0');

export function withAttached(text: string, all: Attached[]): string {
  return all.reduce((said, a) => {
    const w = word();
    return `${said}\n\n=== resource ${w}: ${JSON.stringify([a.server, a.uri, a.mimeType])} ===\n${a.text}\n=== end of resource ${w} ===`;
  }, text);
}

const PART = /\n\n=== resource (\w{8}): (\[.*\]) ===\n([\s\S]*?)\n=== end of resource \1 ===/g;

/** A message as it was written, and what was attached to it. */
export function splitAttached(text: string): { text: string; attached: Attached[] } {
  const attached: Attached[] = [];
  const rest = text.replace(PART, (whole: string, _w: string, head: string, body: string) => {
    try {
      const [server, uri, mimeType] = list(str)(JSON.parse(head), '');
      attached.push({ server: server ?? '', uri: uri ?? '', mimeType: mimeType ?? '', text: body });
      return '';
    } catch {
      return whole;
    }
  });
  return { text: rest, attached };
}
