// rules - responses over HTTP about rules for calls.

import { bool, list, num, object, or, record, str } from '../lib/check';
import { type Checked } from './parts';

const rule = object({
  id: str,
  server: or(str, ''),
  tool: or(str, ''),
  action: str,
  at: or(num, 0),
  who: or(str, ''),
  args: or(record, null),
});
export type Rule = Checked<typeof rule>;

const operatorRule = object({
  server: or(str, ''),
  tool: or(str, ''),
  action: str,
  args: or(record, null),
  annotations: or(list(str), []),
  reason: or(str, ''),
  remember: or(bool, true),
  approver: or(str, 'auto'),
});
export type OperatorRule = Checked<typeof operatorRule>;

const rules = object({
  rules: list(rule),
  operator: or(list(operatorRule), []),
  default: or(str, 'ask'),
});
export type Rules = Checked<typeof rules>;

/** A rule of the user that is not saved yet. */
export interface Draft {
  server: string;
  tool: string;
  action: 'allow' | 'deny';
  args?: Record<string, string>;
}

const keptRule = object({
  id: str,
  overriddenBy: or(object({ index: num }), null), // a rule of the operator decides
  byDefault: or(bool, false), // the default denies what no rule of the operator allows
});
export type KeptRule = Checked<typeof keptRule>;

const ruleTrial = object({
  action: str,
  by: str,
  reason: or(str, ''),
  rules: list(object({
    by: str, index: num, fits: bool, misses: or(str, ''), path: or(str, ''),
    decides: bool,
  })),
});
export type RuleTrial = Checked<typeof ruleTrial>;

export const readRules = (v: unknown): Rules => rules(v, 'rules');
export const readKeptRule = (v: unknown): KeptRule => keptRule(v, 'rule');
export const readRuleTrial = (v: unknown): RuleTrial => ruleTrial(v, 'try');
