// stats - responses over HTTP about numbers and money.

import { bool, list, num, object, or, str } from '../lib/check';
import { type Checked } from './parts';

const figures = {
  calls: num, errors: num, p50Ms: num, p95Ms: num,
};
const gatewayStats = object({
  ...figures,
  perMinute: list(num), errorsPerMinute: list(num), longestMs: list(num),
  children: num, queue: num, waiting: num, savedTokens: num,
  servers: list(object({
    name: str, state: str, breaker: str, children: num, queue: num, ...figures,
    tools: list(object({ name: str, ...figures })),
  })),
});
export type GatewayStats = Checked<typeof gatewayStats>;

const stats = object({
  at: num,
  since: num,
  boxes: list(object({
    session: str, box: or(str, ''), driver: or(str, ''), memoryBytes: num,
    memoryLimit: or(num, 0), cpuPercent: or(num, null), cpuLimit: or(num, 0),
    processes: or(num, 0),
  })),
  conversations: list(object({
    session: str, model: or(str, ''), input: num, output: num,
    busy: or(bool, false),
  })),
  approvals: list(object({
    session: str, callId: str, server: or(str, ''), tool: str,
    title: or(str, ''), since: num, expiresAt: or(num, 0),
  })),
  tokens: list(object({
    provider: or(str, ''), model: or(str, ''), input: num, output: num,
    cacheRead: or(num, 0), replies: or(num, 0),
  })),
  calls: object({
    total: num, failed: num, perMinute: list(num), failedPerMinute: list(num),
    longestMs: list(num), meanMs: list(num), tokensPerMinute: list(num), tokensPerQuarter: or(list(num), []),
  }),
  gateway: or(gatewayStats, null),
});
export type Stats = Checked<typeof stats>;

const spendRow = object({
  name: or(str, ''), id: or(str, ''), tokens: num, unpricedTokens: num,
  money: or(str, null), // null: no price is known
  limits: or(object({ tokensPerDay: or(num, 0), moneyPerDay: or(str, '') }), { tokensPerDay: 0, moneyPerDay: '' }),
});
export type SpendRow = Checked<typeof spendRow>;
const spend = object({ day: str, people: list(spendRow), tokens: list(spendRow) });
export type Spend = Checked<typeof spend>;

export const readSpend = (v: unknown): Spend => spend(v, 'spend');
export const readStats = (v: unknown): Stats => stats(v, 'stats');
