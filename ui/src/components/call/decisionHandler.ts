// decisionHandler - who takes the answer of a card that is not of the conversation.

import type { Decision } from '../../protocol';

export interface DecisionHandler {
  canRemember: boolean; // an answer may count for every later call
  /** Why it was not taken, or nothing. */
  decide(d: Decision): Promise<string>;
}
