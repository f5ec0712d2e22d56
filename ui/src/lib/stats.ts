// stats - statistics of the audit log per minute: calls, durations, decisions.

import { t } from '../lang';
import type { Audit } from '../protocol';

type Row = Audit['rows'][number];

const MINUTE = 60_000;

export interface Minutes {
  calls: number[]; // that ended in each minute, the current one last
  failed: number[];
  usual: number[]; // median in ms; 0: no call ended
  longest: number[];
  median: number; // of all minutes
  by: Map<string, number>; // decisions in all minutes, by who decided
}

/** A call of a conversation has ended; its result may not be stored, but its
 *  length is. */
export const hasResult = (what: Row['what']): boolean =>
  what?.['content'] !== undefined || what?.['contentBytes'] !== undefined;

const isCall = (r: Row): boolean => r.what?.['kind'] === 'call'; // a call of the gateway
const isEnd = (r: Row): boolean => hasResult(r.what) || isCall(r);
const hasFailed = (r: Row): boolean =>
  isCall(r) ? r.what?.['outcome'] !== 'ok' : r.what?.['isError'] === true;

export const sumOf = <T>(all: T[], of: (x: T) => number): number =>
  all.reduce((n, x) => n + of(x), 0);

export const sum = (all: number[]): number => sumOf(all, (x) => x);

function median(v: number[]): number {
  if (!v.length) return 0;
  const s = v.toSorted((a, b) => a - b);
  return s[(s.length - 1) >> 1] ?? 0;
}

const DECIDERS = ['person', 'remembered', 'rule', 'time', 'cancel', 'client'] as const;

export function minutesOf(rows: Row[], now: number, n: number): Minutes {
  const took = Array.from({ length: n }, (): number[] => []);
  const failed = new Array<number>(n).fill(0);
  const by = new Map<string, number>();
  const first = Math.floor(now / MINUTE) - n + 1;
  for (const r of rows) {
    const i = Math.floor(r.at / MINUTE) - first;
    const { by: who, ms, kind } = r.what ?? {};
    if (i < 0 || i >= n) continue;
    if (isEnd(r)) {
      took[i]?.push(typeof ms === 'number' ? ms : 0);
      if (hasFailed(r)) failed[i] = (failed[i] ?? 0) + 1;
    }
    // An approval at the gateway has its own row before the row of its call.
    // Reloads of the configuration and requests for titles are no decisions.
    if ((!isEnd(r) || isCall(r)) && kind !== 'agreed' && typeof who === 'string' && DECIDERS.some((d) => d === who))
      by.set(who, (by.get(who) ?? 0) + 1);
  }
  return {
    calls: took.map((t) => t.length),
    failed,
    usual: took.map(median),
    longest: took.map((t) => Math.max(0, ...t)),
    median: median(took.flat()),
    by,
  };
}

/** Replaces the rows from `since` on by fresh ones; newest first. */
export function mergeRows(old: Row[], fresh: Row[], since: number): Row[] {
  return [
    ...fresh.filter((r) => r.at >= since), ...old.filter((r) => r.at < since),
  ];
}

/** The value of a gauge in Prometheus text. */
export function gaugeOf(text: string, name: string): number {
  const m = new RegExp(`^${name} ([0-9.e+-]+)$`, 'm').exec(text);
  return m ? Number(m[1]) : 0;
}

/** The text for who decided a call; unknown values as they are. */
export function whoDecided(by: string): string {
  const known = DECIDERS.find((d) => d === by);
  return known ? t(`over.by.${known}`) : by;
}
