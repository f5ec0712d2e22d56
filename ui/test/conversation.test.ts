// The conversation store against events, without a connection.
import { createPinia, setActivePinia } from 'pinia';
import { shallowRef } from 'vue';
import { beforeEach, expect, test, vi } from 'vitest';
import type { Handlers, Link, SocketOptions } from '../src/composables/useSocket';
import { useConversationStore } from '../src/stores/conversation';
import { EVENTS } from '../src/protocol';

let handlers: Handlers;
vi.mock('../src/composables/useSocket', () => ({
  useSocket: (o: SocketOptions): Link => {
    handlers = o.handlers;
    return { state: shallowRef('open'), send: () => Promise.reject(new Error()), retry: () => undefined, close: () => undefined };
  },
}));
beforeEach(() => {
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
