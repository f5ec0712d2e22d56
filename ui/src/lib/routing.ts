// routing - texts for answers of the router.

import { t } from '../lang';
import type { Hit } from '../protocol';

const SURE = 0.8;
const MAYBE = 0.4;

/** How `execute` treats a match with this confidence. */
export function bandOf(confidence: number): { name: string; dot: string } {
  if (confidence >= SURE) return { name: t('router.sure'), dot: 'bg-ok' };
  if (confidence >= MAYBE) return { name: t('router.maybe'), dot: 'bg-accent' };
  return { name: t('router.unsure'), dot: '' };
}

const REASONS = [
  'disabled', 'hidden', 'unlisted', 'circuit-open', 'sign-in', 'quarantined',
] as const;

/** Why a tool is not available; unknown reasons as they are. */
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

/** The name of the tool on its own server. */
export const ownName = (h: Pick<Hit, 'own' | 'tool'>): string => h.own || h.tool;
