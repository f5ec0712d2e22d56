// tokens - personal tokens: what may be chosen for a new one, and how long one
// is still valid.

import type { Token } from '../protocol';

export const ROLES = ['viewer', 'user', 'approver', 'operator'] as const;
export type Role = (typeof ROLES)[number];
export const DAYS = [1, 7, 30, 90, 365];
export const USUAL_DAYS = 90;

/** Roles that somebody of this role can give to a token. */
export const rolesUpTo = (own: string): Role[] =>
  ROLES.filter((_, i) => i <= ROLES.findIndex((r) => r === own));

/** The role that is chosen at first. */
export const usualRole = (own: string): Role | '' =>
  rolesUpTo(own).filter((r) => r === 'viewer' || r === 'user').at(-1) ?? '';

/** Names of views, separated by commas or blanks. */
export const viewNames = (text: string): string[] =>
  [...new Set(text.split(/[\s,]+/).filter(Boolean))];

/** Whole days until it expires, at least 1; 0: it has expired. */
export function daysLeft(token: Token, now = Date.now()): number {
  return token.expires <= now ? 0 : Math.ceil((token.expires - now) / 86_400_000);
}

/** Valid ones first, the newest first. */
export const inOrder = (all: Token[], now = Date.now()): Token[] =>
  [...all].sort((a, b) => Number(a.expires <= now) - Number(b.expires <= now) || b.created - a.created);
