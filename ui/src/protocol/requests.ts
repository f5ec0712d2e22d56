// requests - what the page sends in a conversation, and the acknowledgement.

import { bool, num, object, or, str } from '../lib/check';
import { type Checked } from './parts';

/** Further calls of the same tool by this run of the script. */
export interface Ahead {
  count: number;
  seconds: number;
  same: string[]; // names of arguments
}

export interface Decision {
  callId: string;
  approved: boolean;
  digest: string;
  reason?: string;
  args?: Record<string, unknown>;
  remember?: 'session' | 'always';
  ahead?: Ahead;
}

export interface Answer {
  requestId: string;
  action: 'accept' | 'decline' | 'cancel';
  content?: Record<string, unknown>;
}

export interface Requests {
  'elicitation:response': Answer;
  message: { text: string; instead?: number };
  'turn:regenerate': { seq?: number };
  'turn:continue': undefined;
  'branch:switch': { seq: number };
  'tool:approval': Decision;
  'tool:accept': { name: string; digest: string };
  'agent:cancel': undefined;
  'history:reset': undefined;
  'session:close': { keep: true };
  'model:change': { model: string };
}

const ack = object({
  ok: bool,
  code: or(str, ''),
  message: or(str, ''),
  messageId: or(str, ''),
  queued: or(num, 0), // a message's place in line; 0: it does not wait
});
export type Ack = Checked<typeof ack>;

export const readAck = (v: unknown): Ack => ack(v, 'ack');
