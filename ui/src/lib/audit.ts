// audit - describes rows of the audit log. Conversations write a row for a
// decision and one for the outcome of the call; the gateway writes rows for
// calls, routing requests, approvals and changes of servers, and the web server
// for signing in and for refused requests.

import { t } from '../lang';
import { isRecord } from './check';
import { duration } from './format';
import { personOf } from './person';
import { hasResult, whoDecided } from './stats';
import type { Audit } from '../protocol';

export type What = Audit['rows'][number]['what'];

export const OUTCOMES = [
  'ok', 'failed', 'denied', 'unknown', 'cancelled', 'decided', 'routed', 'other',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface Guess {
  server: string;
  tool: string;
  confidence: number;
}

export const textAt = (what: What, key: string): string => {
  const v = what?.[key];
  return typeof v === 'string' ? v : '';
};

export const toolOf = (what: What): string =>
  textAt(what, 'tool') || textAt(what, 'name');

/** The name of the client, the identity the server gave it, or its address. */
export function whoOf(what: What): string {
  const client = what?.['client'];
  const name = isRecord(client) && typeof client['name'] === 'string' ? client['name'] : '';
  return name || personOf(textAt(what, 'who') || textAt(what, 'peer'));
}

const GATEWAY: Record<string, Outcome> = {
  ok: 'ok', 'tool error': 'failed', error: 'failed', unknown: 'unknown',
  cancelled: 'cancelled', denied: 'denied',
};

/** Signing in, and files of the configuration: nothing that a tool did. */
const isAccess = (kind: string): boolean => kind === 'access' || kind === 'config';

export function outcomeOf(what: What): Outcome {
  if (!what) return 'other';
  const kind = textAt(what, 'kind');
  if (kind === 'route') return 'routed';
  if (isAccess(kind)) return textAt(what, 'outcome') === 'refused' ? 'denied' : 'other';
  if (kind === 'call') return GATEWAY[textAt(what, 'outcome')] ?? 'other';
  if (hasResult(what)) return what['isError'] === true ? 'failed' : 'ok';
  return textAt(what, 'by') ? 'decided' : 'other';
}

/** The outcome in one line. */
export function outcomeText(what: What): string {
  const outcome = outcomeOf(what);
  const by = textAt(what, 'by');
  const ms = what?.['ms'];
  if (outcome === 'decided') return t('over.decidedRow', { who: whoDecided(by) });
  if (isAccess(textAt(what, 'kind'))) return textAt(what, 'outcome');
  if (outcome === 'other') return textAt(what, 'kind') || textAt(what, 'managed');
  const name = t(`audit.${outcome}`);
  return typeof ms === 'number' && outcome !== 'denied'
    ? t('over.took', { what: name, time: duration(ms) }) : name;
}

/** The tools found by a routing request, best first; empty for other rows. */
export function guessesOf(what: What): Guess[] {
  const all = what?.['candidates'];
  if (!Array.isArray(all)) return [];
  return all.filter(isRecord).map((c) => ({
    server: typeof c['server'] === 'string' ? c['server'] : '',
    tool: typeof c['tool'] === 'string' ? c['tool'] : '',
    confidence: typeof c['confidence'] === 'number' ? c['confidence'] : 0,
  }));
}

export interface Filter {
  words: string;
  server: string;
  tool: string;
  outcome: string;
  who: string;
}
export const NO_FILTER: Filter = { words: '', server: '', tool: '', outcome: '', who: '' };

export function passes(row: Audit['rows'][number], f: Filter): boolean {
  const { what, sessionId } = row;
  const words = f.words.trim().toLowerCase();
  return (!f.server || textAt(what, 'server') === f.server) &&
    (!f.tool || toolOf(what) === f.tool) &&
    (!f.outcome || outcomeOf(what) === f.outcome) &&
    (!f.who || whoOf(what) === f.who) &&
    (!words || sessionId.includes(words) || JSON.stringify(what).toLowerCase().includes(words));
}

/** The distinct values of a column, sorted. */
export function choicesOf(
  rows: Audit['rows'], of: (what: What) => string,
): string[] {
  return [...new Set(rows.map((r) => of(r.what)).filter(Boolean))].toSorted();
}
