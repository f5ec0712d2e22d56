// effect - the effect of calls of known tools: a file change or a command. Other
// calls are shown by their arguments only.

import type { Approval, Tool } from '../protocol';
import { t } from '../lang';

export type Args = Record<string, unknown>;

export type Effect =
  | { kind: 'write'; path: string; content: string; binary: boolean }
  | { kind: 'edit'; path: string; before: string; after: string; all: boolean }
  | { kind: 'command'; line: string; cwd: string; shell: boolean }
  | { kind: 'script'; language: string; code: string }
  | { kind: 'other' };

function text(v: unknown): string {
  return typeof v === 'string' ? v : '';
}

/** True if name is the tool, with or without a server prefix. */
export function isTool(name: string, want: string): boolean {
  return name === want || name.endsWith(`_${want}`) ||
    name.endsWith(`-${want}`);
}

/** Quotes a word for a shell. */
export function quoteWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

function command(args: Args): Effect {
  const argv = Array.isArray(args['argv']) ? args['argv'].map(String) : [];
  const shell = typeof args['command'] === 'string';
  return {
    kind: 'command',
    line: shell ? text(args['command']) : argv.map(quoteWord).join(' '),
    cwd: text(args['cwd']),
    shell,
  };
}

/** Tools of other servers may have the same name but other arguments, so the
 *  types of the arguments are checked. */
export function effectOf(name: string, args: Args): Effect {
  const has = (key: string) => typeof args[key] === 'string';
  if (isTool(name, 'execute_command') && (has('command') || Array.isArray(args['argv'])))
    return command(args);
  if (isTool(name, 'write_file') && has('path') && has('content'))
    return {
      kind: 'write',
      path: text(args['path']),
      content: text(args['content']),
      binary: args['encoding'] === 'base64',
    };
  if (isTool(name, 'edit_file') && has('path') && has('old_string') && has('new_string'))
    return {
      kind: 'edit',
      path: text(args['path']),
      before: text(args['old_string']),
      after: text(args['new_string']),
      all: args['replace_all'] === true,
    };
  if (isTool(name, 'run_script') && has('code') && has('language'))
    return { kind: 'script', language: text(args['language']), code: text(args['code']) };
  return { kind: 'other' };
}

const HEADS: Record<Effect['kind'], string> = {
  write: t('call.write'),
  edit: t('call.change'),
  command: t('call.run'),
  script: t('script.run'),
  other: '',
};

export function headOf(a: Pick<Approval, 'name' | 'args' | 'title'>): string {
  return HEADS[effectOf(a.name, a.args).kind] || a.title || a.name;
}

/** The most telling argument, for a one-line summary. */
export function briefOf(args: Args): string {
  if (typeof args['code'] === 'string' && typeof args['language'] === 'string')
    return `${args['language']} · ${t('n.lines', { n: args['code'].trimEnd().split('\n').length })}`;
  const main = ['command', 'path', 'pattern', 'url', 'query'];
  for (const key of main)
    if (typeof args[key] === 'string' && args[key]) return text(args[key]);
  if (Array.isArray(args['argv']))
    return args['argv'].map((w) => quoteWord(String(w))).join(' ');
  const all = JSON.stringify(args);
  return all === '{}' ? '' : all;
}

export interface Claim {
  label: string;
  why: string;
  isCalm?: boolean; // nothing to be careful about
}

export const BOX = 'box'; // the server's name of the conversation's own box

/** The sandbox of a conversation: what it can reach is known, not claimed. */
function sandboxClaim(network: string): Claim | null {
  if (network === 'none') return { label: t('claim.box'), why: t('claim.boxNone'), isCalm: true };
  if (network === 'ask') return { label: t('claim.boxAsk'), why: t('claim.boxAskWhy'), isCalm: true };
  return network ? { label: t('claim.boxNetwork'), why: t('claim.boxNetworkWhy') } : null;
}

/** The annotations of a tool as labels. They are claims of its server. network:
 *  of a tool of the conversation's own box, as the server says. */
export function claimsOf(
  annotations: Approval['annotations'] | Tool['annotations'], network = '',
): Claim[] {
  const out: Claim[] = [];
  const sandbox = sandboxClaim(network);
  if (annotations?.['readOnlyHint'] === true)
    out.push({ label: t('claim.reads'), why: t('claim.readsWhy'), isCalm: true });
  else if (annotations && annotations['destructiveHint'] !== false)
    out.push({ label: t('claim.changes'), why: t('claim.changesWhy') });
  if (sandbox) out.push(sandbox);
  else if (annotations?.['openWorldHint'] === true)
    out.push({ label: t('claim.outside'), why: t('claim.outsideWhy') });
  return out;
}
