// decisionHandler - receives the decision of a card outside of the conversation.

import type { Decision } from '../../protocol';

export interface DecisionHandler {
  canRemember: boolean; // “Always, everywhere” is offered
  /** Resolves to an error message, or to an empty string. */
  decide(d: Decision): Promise<string>;
}
