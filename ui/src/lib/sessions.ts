// sessions - order and filters of the list of conversations. Pure.

import type { Session } from '../protocol';

/** Opening a conversation does not count: only messages do. An older server does
 *  not tell when that was. */
export const saidAt = (s: Session): number => s.lastMessage || s.lastActive;

/** Pinned ones first, then the newest; two of the same moment stay in a fixed
 *  order. */
export const inOrder = (list: Session[]): Session[] =>
  [...list].sort((a, b) =>
    Number(b.pinned) - Number(a.pinned) || saidAt(b) - saidAt(a) || (a.id < b.id ? -1 : 1));

/** Which conversations the list shows: '' (not archived), 'archived', or '#TAG'. */
export const isListed = (s: Session, filter: string): boolean => {
  if (filter === 'archived') return s.archived;
  return !s.archived && (!filter || s.tags.includes(filter.slice(1)));
};

export const tagsOf = (list: Session[]): string[] =>
  [...new Set(list.filter((s) => !s.archived).flatMap((s) => s.tags))].sort();

/** The tags of a text, between commas; each once. */
export const readTags = (text: string): string[] =>
  [...new Set(text.split(/[,，、]/).map((x) => x.trim()).filter(Boolean))];
