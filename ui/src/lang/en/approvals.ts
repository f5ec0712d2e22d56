// approvals - texts of the approvals view.

export const approvals = {
  'approvals.intro': 'These calls run only if you approve them. Unanswered requests are denied.',
  'approvals.gateway': 'Requests from MCP clients',
  'approvals.none': 'No call is waiting. A call of an MCP client waits here if a rule says “ask” and the client cannot ask its user. An example of such a rule:',
  'approvals.conversations': 'Requests from conversations',
  'approvals.connections': 'Connections of sandboxes',
  'approvals.changed': 'Changed tools',
  'approvals.client': 'Client',
  'approvals.ofConversation': 'a conversation',
  'approvals.noName': 'unnamed client',
  'approvals.rule': 'Required by',
  'approvals.byDefault': 'default: no rule applies',
  'approvals.byRule': 'admin rule {n} ({tool} of {server})',
  'approvals.whyNot': 'Reason (sent to the client)',
  'approvals.meansAlways': 'for every client and conversation, until you remove the rule under Settings',
  'approvals.asksItself': 'waits for the user of',
} as const;
