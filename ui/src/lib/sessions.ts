// sessions - the order of the conversations in the list. Pure.

import type { Session } from '../protocol';

/** Opening a conversation does not count: only messages do. An older server does
 *  not tell when that was. */
export const saidAt = (s: Session): number => s.lastMessage || s.lastActive;

/** The newest first; two of the same moment stay in a fixed order. */
export const inOrder = (list: Session[]): Session[] =>
  [...list].sort((a, b) => saidAt(b) - saidAt(a) || (a.id < b.id ? -1 : 1));
