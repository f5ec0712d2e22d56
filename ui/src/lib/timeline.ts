// timeline - converts the entries of a conversation to the items shown, in
// order. Pure.

import type { Content, Entry, ToolTokens, Usage } from '../protocol';
import { t } from '../lang';

export interface CallItem {
  kind: 'call';
  id: string;
  callId: string;
}

export type Item =
  | { kind: 'user'; id: string; seq: number; text: string; at: number }
  | { kind: 'continued'; id: string }
  | { kind: 'text'; id: string; text: string }
  | { kind: 'thought'; id: string; text: string }
  | CallItem
  | { kind: 'note'; id: string; code: string; text: string; branch: number }
  | { kind: 'model'; id: string; model: string }
  | { kind: 'summary'; id: string; turns: number; text: string }
  | {
    kind: 'end'; id: string; usage: Usage; tools: ToolTokens; ms: number; stop: string;
    text: string; // of the whole turn
    said: number; // seq of the message it answers
    branch: number; // seq of its entry with alternatives; 0: none
  };

interface Sum {
  usage: Usage;
  tools: ToolTokens;
  began: number;
  said: number;
  texts: string[];
  branch: number;
}

function fresh(at: number, said: number): Sum {
  return {
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, tools: { sent: 0, plain: 0 }, began: at, said, texts: [], branch: 0,
  };
}

function addUsage(sum: Sum, u: Usage | null): void {
  if (!u) return;
  sum.usage.input += u.input;
  sum.usage.output += u.output;
  sum.usage.cacheRead += u.cacheRead;
  sum.usage.cacheWrite += u.cacheWrite;
}

function assistant(e: Entry, sum: Sum, out: Item[]): void {
  let calls = 0;
  e.blocks.forEach((b, i) => {
    const id = `${e.seq}.${i}`;
    if (b.type === 'text' && b.text && !e.placeholder) {
      out.push({ kind: 'text', id, text: b.text });
      sum.texts.push(b.text);
    } else if (b.type === 'thinking' && b.text)
      out.push({ kind: 'thought', id, text: b.text });
    else if (b.type === 'call' && b.key) {
      out.push({ kind: 'call', id, callId: b.key });
      calls++;
    }
  });
  addUsage(sum, e.usage);
  sum.tools.sent += e.toolTokens?.sent ?? 0;
  sum.tools.plain += e.toolTokens?.plain ?? 0;
  if (calls === 0)
    out.push({
      kind: 'end', id: `${e.seq}.end`, usage: sum.usage, tools: sum.tools,
      ms: e.at - sum.began, stop: e.stop,
      text: sum.texts.join('\n\n'), said: sum.said, branch: sum.branch,
    });
}

export function textOf(e: Entry): string {
  if (e.role === 'note') return e.text;
  return e.blocks.filter((b) => b.type === 'text').map((b) => b.text).join('\n');
}

/** branched: the entries that have alternatives. */
export function timeline(entries: Entry[], branched: ReadonlySet<number> = new Set()): Item[] {
  const out: Item[] = [];
  let sum = fresh(0, 0);
  for (const e of entries) {
    if (e.role !== 'user' && branched.has(e.seq)) sum.branch = e.seq;
    if (e.role === 'user') {
      sum = fresh(e.at, e.seq);
      out.push(e.auto ? { kind: 'continued', id: `${e.seq}` }
        : { kind: 'user', id: `${e.seq}`, seq: e.seq, text: textOf(e), at: e.at });
    } else if (e.role === 'assistant') assistant(e, sum, out);
    else if (e.role === 'note' && e.model)
      out.push({ kind: 'model', id: `${e.seq}`, model: e.model });
    else if (e.role === 'note')
      out.push({
        kind: 'note', id: `${e.seq}`, code: e.code, text: textOf(e), branch: sum.branch,
      });
    else if (e.role === 'summary')
      out.push({
        kind: 'summary', id: `${e.seq}`, turns: e.turns, text: textOf(e),
      });
  }
  return out;
}

/** The content of a result as one text. */
export function contentText(content: Content[]): string {
  return content
    .map((c) => (c.type === 'text' ? c.text : `[${c.type} ${c.mimeType || c.uri}]`))
    .join('\n');
}

/** The exit code at the end of the output of a command, as text. */
export function exitOf(content: Content[]): string {
  const m = /\[exit code (\d+)\]\s*$/.exec(contentText(content));
  return m ? t('call.exit', { code: m[1] ?? '' }) : '';
}
