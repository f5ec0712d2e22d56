// person - who did something, in words. Without sign-in the server knows an address
// only.

import { t } from '../lang';

const LOCAL = /^(127(\.\d+){3}|\[?::1\]?|\[?::ffff:127(\.\d+){3}\]?)(:\d+)?$/;
const ADDRESS = /^(\d+(?:\.\d+){3}|\[[0-9a-f:.]+\]):\d+$/i;

/** The port of an address says nothing to anybody. */
export function personOf(who: string): string {
  if (LOCAL.test(who)) return t('who.here');
  return ADDRESS.exec(who)?.[1] ?? who;
}
