// routing - what the router says of a tool, in a person's words.

import { t } from '../lang';
import type { Hit } from '../protocol';

const SURE = 0.8;
const MAYBE = 0.4;

/** What `execute` would do with a request answered so. */
export function bandOf(confidence: number): { name: string; dot: string } {
  if (confidence >= SURE) return { name: t('router.sure'), dot: 'bg-ok' };
  if (confidence >= MAYBE) return { name: t('router.maybe'), dot: 'bg-accent' };
  return { name: t('router.unsure'), dot: '' };
}

const REASONS = [
  'disabled', 'hidden', 'unlisted', 'circuit-open', 'sign-in', 'quarantined',
] as const;

/** Why it cannot be used; others as the server calls them. */
export function reasonOf(reason: string): string {
  const known = REASONS.find((r) => r === reason);
  return known ? t(`router.out.${known}`) : reason;
}

const PLACES = ['tool', 'description', 'arguments', 'server'] as const;

export function placesOf(where: string[]): string {
  return where
    .map((w) => PLACES.find((p) => p === w))
    .flatMap((p) => (p ? [t(`router.in.${p}`)] : []))
    .join(', ');
}

/** The name under which its own server has it. */
export const ownName = (h: Pick<Hit, 'own' | 'tool'>): string => h.own || h.tool;
