// states - how a server is, in words and as a mark.

export interface StateWords {
  name: string;
  dot: string;
}

export const STATES: Record<string, StateWords> = {
  ok: { name: 'connected', dot: 'bg-ok' },
  starting: { name: 'starting', dot: 'bg-accent breathe' },
  cold: { name: 'not started yet', dot: '' },
  failed: { name: 'failed', dot: 'bg-bad' },
  broken: { name: 'left alone for a while', dot: 'bg-bad' },
  disabled: { name: 'disabled', dot: '' },
  sign_in: { name: 'wants a sign-in', dot: 'bg-warn' },
};
