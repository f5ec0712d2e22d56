// pendingCall - converts a pending call of the gateway for ApprovalCard.

import { t } from '../lang';
import { isRecord } from './check';
import { readConnection, type Approval, type Connection, type PendingCall } from '../protocol';

const text = (v: unknown): string => (typeof v === 'string' ? v : '');

export function asApproval(c: PendingCall): Approval {
  const annotations = c.definition?.['annotations'];
  return {
    name: c.tool,
    server: c.server,
    args: c.args,
    callId: c.id,
    firstId: '',
    parent: '',
    line: 0,
    queuePosition: 1,
    totalInQueue: 1,
    title: text(c.definition?.['title']),
    description: text(c.definition?.['description']),
    annotations: isRecord(annotations) ? annotations : null,
    digest: c.digest,
    expiresAt: c.expiresAt,
    words: c.words,
    confidence: c.confidence,
    route: null,
    approver: c.approver,
    approvers: c.approvers,
    approvals: c.approvals,
    fourEyes: c.fourEyes,
    approvedBy: c.approvedBy,
  };
}

export const asConnection = (c: PendingCall): Connection => readConnection({ ...c, callId: c.id });

/** The name and version that the client gave, or that a conversation asks. */
export function clientOf(c: Pick<PendingCall, 'client' | 'conversation'>): string {
  if (c.conversation) return t('approvals.ofConversation');
  const name = text(c.client?.['title']) || text(c.client?.['name']);
  const version = text(c.client?.['version']);
  return name ? [name, version].filter(Boolean).join(' ') : t('approvals.noName');
}

/** Whom the call waits for; '': no rule names them. */
export function waitsFor(c: Pick<Approval, 'approvers' | 'approvals' | 'fourEyes'>): string {
  if (!c.approvals) return '';
  const who = c.approvers.join(', ') || t('card.anyApprover');
  if (c.approvals > 1) return t('card.waitsForMany', { n: c.approvals, who });
  return t(c.fourEyes ? 'card.waitsForOther' : 'card.waitsFor', { who });
}

/** The rule that requires approval. */
export function ruleOf(c: Pick<PendingCall, 'rule'>): string {
  if (!c.rule || c.rule.by !== 'operator') return t('approvals.byDefault');
  return t('approvals.byRule', {
    n: c.rule.index + 1,
    tool: c.rule.tool || t('rules.anyTool'),
    server: c.rule.server || t('rules.anyServer'),
  });
}
