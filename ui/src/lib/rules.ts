// rules - converts the input of the rule form for the server.

import { t } from '../lang';
import type { Draft } from '../protocol';

export interface ReadArgs {
  args: Record<string, unknown> | null; // null: invalid, see wrong
  wrong: string;
}

export function readArgs(text: string): ReadArgs {
  let v: unknown;
  try {
    v = JSON.parse(text.trim() || '{}');
  } catch (e) {
    return { args: null, wrong: e instanceof Error ? e.message : t('form.noJson') };
  }
  return typeof v === 'object' && v !== null && !Array.isArray(v)
    ? { args: v as Record<string, unknown>, wrong: '' }
    : { args: null, wrong: t('rules.notObject') };
}

/** Conditions without a path are ignored. */
export function draftRule(
  server: string, tool: string, action: '' | 'allow' | 'deny',
  conditions: { path: string; cond: string }[],
): Draft | null {
  const names = { server: server.trim(), tool: tool.trim() };
  if (!action || !names.server || !names.tool) return null;
  const args = Object.fromEntries(
    conditions.filter((c) => c.path.trim()).map((c) => [c.path.trim(), c.cond]),
  );
  return { ...names, action, ...(Object.keys(args).length ? { args } : {}) };
}
