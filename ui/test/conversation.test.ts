// The conversation store against events, without a connection.
import { createPinia, setActivePinia } from 'pinia';
import { shallowRef } from 'vue';
import { beforeEach, expect, test, vi } from 'vitest';
import type { Handlers, Link, SocketOptions } from '../src/composables/useSocket';
import { useConversationStore } from '../src/stores/conversation';
import { waitsFor } from '../src/lib/pendingCall';
import { EVENTS } from '../src/protocol';

let handlers: Handlers;
let reads: boolean[] = [];
vi.mock('../src/composables/useSocket', () => ({
  useSocket: (o: SocketOptions): Link => {
    handlers = o.handlers;
    reads.push(o.read);
    return { state: shallowRef('open'), send: () => Promise.reject(new Error()), retry: () => undefined, close: () => undefined };
  },
}));
beforeEach(() => {
  reads = [];
  vi.stubGlobal('fetch', () => Promise.reject(new Error('offline')));
  setActivePinia(createPinia());
});

const call = (key: string) => ({ type: 'call', key, name: 'run', args: {} });
const result = (key: string, text: string, more: object) =>
  ({ key, name: 'run', isError: true, content: [{ type: 'text', text }], ...more });

test.each([
  ['rejected', 'La personne a dit non.', { state: 'rejected' }],
  ['rejected', 'Nobody answered in time, so it was not run.', { state: 'rejected' }],
  ['failed', 'The person rejected nothing: I am a tool.', { state: 'done' }],
  ['unknown', 'The server was restarted.', { state: 'unknown' }],
  ['done', 'fine', { state: 'done', isError: false }],
  ['failed', 'The person rejected this call.', {}], // by an older server
])('a restored call is %s by its state, not by its words', (state, text, more) => {
  const chat = useConversationStore();
  chat.open('s');
  const messages = [
    { seq: 1, at: 1, role: 'assistant', blocks: [call('k')] },
    { seq: 2, at: 2, role: 'tool', results: [result('k', text, more)] },
  ];
  handlers['session:history'](EVENTS['session:history'][0]({ messages, pending: [], turn: null }, ''), undefined);
  expect(chat.calls.get('k')?.state).toBe(state);
});

test('a call that a rule refuses is rejected when its output arrives', () => {
  const chat = useConversationStore();
  chat.open('s');
  const about = EVENTS['tool:output'][1]({ callId: 'k', name: 'run', isError: true, state: 'rejected' }, '');
  handlers['tool:output'](EVENTS['tool:output'][0]('[]', ''), about);
  expect(chat.calls.get('k')?.state).toBe('rejected');
});

test('a call that is asked about again has a new id for the decision only', () => {
  const chat = useConversationStore();
  chat.open('s');
  const card = (more: object) => EVENTS['tool:approval_required'][0]({
    name: 'run', args: {}, digest: 'd', expiresAt: 1, ...more,
  }, '');
  handlers['tool:approval_required'](card({ callId: 'k' }), undefined);
  handlers['tool:approval_required'](card({ callId: 'new', firstId: 'k' }), undefined);
  expect(chat.waiting.map((c) => [c.callId, c.approval?.callId])).toEqual([['k', 'new']]);
  const done = { callId: 'new', firstId: 'k', approved: true, by: 'person' };
  handlers['tool:resolved'](EVENTS['tool:resolved'][0](done, ''), undefined);
  expect(chat.calls.get('k')?.state).toBe('running');
  expect(chat.calls.has('new')).toBe(false);
});

test('a connection of the box waits until it is resolved', () => {
  const chat = useConversationStore();
  chat.open('s');
  const card = EVENTS['network:approval_required'][0]({
    name: 'network:connect', callId: 'n', args: { host: 'a.test', port: 443 }, digest: 'd', expiresAt: 1, tls: true,
  }, '');
  handlers['network:approval_required'](card, undefined);
  handlers['network:approval_required'](card, undefined); // sent again
  expect(chat.connections.map((c) => [c.args.host, c.request, c.tls])).toEqual([['a.test', '', true]]);
  handlers['network:resolved'](EVENTS['network:resolved'][0]({ callId: 'n', approved: true, by: 'person' }, ''), undefined);
  expect(chat.connections).toEqual([]);
});

test('a session of somebody else is read, if it is shared', async () => {
  const chat = useConversationStore();
  chat.open('s');
  handlers.error('Failed to initialize session: there is no such session', undefined);
  await Promise.resolve();
  expect([reads, chat.failure]).toEqual([[false, true], '']);
  handlers['session:shared'](EVENTS['session:shared'][0]({ sessionId: 's', open: false, may: 'read' }, ''), undefined);
  expect([chat.shared, chat.canSend, chat.isOpen]).toEqual(['read', false, false]);
  handlers['system:ready'](EVENTS['system:ready'][0]({ sessionId: 's', shared: 'approve' }, ''), undefined);
  expect([chat.shared, chat.canSend, chat.isOpen]).toEqual(['approve', false, false]);
  handlers['session:history'](EVENTS['session:history'][0]({ messages: [], pending: [], turn: null }, ''), undefined);
  expect([chat.shared, chat.canSend, chat.isOpen]).toEqual(['approve', false, true]);
  handlers.error('there is no such session', undefined); // withdrawn
  expect(chat.failure).toBe('there is no such session');
  chat.open('other');
  expect([chat.shared, reads.at(-1)]).toEqual(['', false]);
});

test('a card shows who has approved', () => {
  const chat = useConversationStore();
  chat.open('s');
  const panel = { approvers: ['corp/leads'], approvals: 2, fourEyes: true };
  const card = { name: 'run', args: {}, digest: 'd', expiresAt: 1, callId: 'k', ...panel, approvedBy: [] };
  handlers['tool:approval_required'](EVENTS['tool:approval_required'][0](card, ''), undefined);
  handlers['tool:approved_by'](EVENTS['tool:approved_by'][0]({ callId: 'k', ...panel, approvedBy: ['corp:bob'] }, ''), undefined);
  const [waiting] = chat.waiting;
  expect(waiting?.approval?.approvedBy).toEqual(['corp:bob']);
  expect(waiting?.approval && waitsFor(waiting.approval)).toBe('Waiting for 2 people out of corp/leads, not the person who asked');
});
