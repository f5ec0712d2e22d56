// callState - the state of a tool call as the page shows it.

export type CallState =
  | 'waiting' | 'running' | 'done' | 'failed' | 'rejected' | 'unknown';

/** The members of a result and of tool:output that say how a call ended. */
export interface CallEnd {
  state: string;
  isError: boolean;
}

/** Older servers stored no state: a rejected call then counts as failed until
 *  /api/sessions/ID/calls names its state. */
export function endState({ state, isError }: CallEnd): CallState {
  if (state === 'rejected' || state === 'unknown') return state;
  return isError ? 'failed' : 'done';
}
