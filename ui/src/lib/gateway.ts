// gateway - requests to the gateway: routing, approvals, audit verification.

import {
  readChain, readApprovals, readRouted,
  type Chain, type Decision, type Approvals, type Routed,
} from '../protocol';
import { get, post, request } from './http';

const LIMIT = 8;

export const fetchRoute = (words: string): Promise<Routed> =>
  get(`/api/route?limit=${LIMIT}&q=${encodeURIComponent(words)}`, readRouted);

export interface Lesson {
  words: string;
  server: string;
  tool: string;
  right: boolean;
}
export const teachRoute = (lesson: Lesson): Promise<unknown> =>
  post('/api/route/teach', (v) => v, lesson);
export async function forgetLearnt(): Promise<void> {
  await request('/api/route/learnt', { method: 'DELETE' });
}

export const fetchApprovals = (): Promise<Approvals> => get('/api/approvals', readApprovals);
export const decidePendingCall = (
  id: string, digest: string, d: Pick<Decision, 'approved' | 'reason' | 'args' | 'remember'>, remember = false,
): Promise<unknown> =>
  post(`/api/approvals/${encodeURIComponent(id)}`, (v) => v, {
    approved: d.approved, digest, ...(d.reason ? { reason: d.reason } : {}),
    ...(d.args ? { args: d.args } : {}),
    ...(remember && d.remember ? { remember: d.remember } : {}),
  });
export const acceptChanged = (
  server: string, tool: string, digest: string,
): Promise<unknown> =>
  post('/api/approvals/tools', (v) => v, { server, tool, digest });

export const verifyAudit = (): Promise<Chain> =>
  get('/api/audit/verify', readChain);
