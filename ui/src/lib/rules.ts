// rules - converts the input of the rule form for the server.

import { readObject, type ReadJson } from './json';
import type { Draft } from '../protocol';

/** An empty text stands for no arguments. */
export const readArgs = (text: string): ReadJson<Record<string, unknown>> =>
  readObject(text.trim() || '{}');

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
