// spend - what models have cost: one day, and how a row is written.

import { readSpend, type Spend, type SpendRow } from '../protocol';
import { get } from './http';

/** ago: days before today (UTC). */
export const fetchSpend = (ago = 0): Promise<Spend> =>
  get(`/api/spend?ago=${ago}`, readSpend);

export interface Cost {
  money: string; // empty: unknown
  isPartly: boolean; // models without a price were used, too
}

/** A cost that is not known is not 0. */
export const costOf = (row: SpendRow): Cost => ({
  money: row.money ?? '',
  isPartly: row.money !== null && row.unpricedTokens > 0,
});

/** The part of a limit that is used, 0 to 1; null: there is no limit. */
export function usedOf(row: SpendRow): number | null {
  const { tokensPerDay, moneyPerDay } = row.limits;
  const parts = [
    ...(tokensPerDay ? [row.tokens / tokensPerDay] : []),
    ...(moneyPerDay && row.money ? [Number(row.money) / Number(moneyPerDay)] : []),
  ];
  return parts.length ? Math.min(1, Math.max(...parts)) : null;
}
