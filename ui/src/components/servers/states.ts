// states - the name and dot colour of each server state.

import { t } from '../../lang';

export interface StateWords {
  name: string;
  dot: string;
}

export const STATES: Record<string, StateWords> = {
  ok: { name: t('state.ok'), dot: 'bg-ok' },
  starting: { name: t('state.starting'), dot: 'bg-accent breathe' },
  installing: { name: t('state.installing'), dot: 'bg-accent breathe' },
  cold: { name: t('state.cold'), dot: '' },
  failed: { name: t('state.failed'), dot: 'bg-bad' },
  broken: { name: t('state.broken'), dot: 'bg-bad' },
  disabled: { name: t('state.disabled'), dot: '' },
  sign_in: { name: t('state.sign_in'), dot: 'bg-warn' },
};
