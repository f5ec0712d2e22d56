import { expect, test } from 'vitest';
import { EVENTS } from '../src/protocol';
import { exitOf, timeline } from '../src/lib/timeline';

const entry = (v: object) => EVENTS['session:entry'][0]({ at: 0, ...v }, 'entry');

const ENTRIES = [
  entry({ seq: 1, at: 1000, role: 'user', id: 'm', blocks: [{ type: 'text', text: 'hi' }] }),
  entry({
    seq: 2, at: 2000, role: 'assistant', stop: 'calls', usage: { input: 5, output: 1 },
    blocks: [{ type: 'thinking', text: 'hm' }, { type: 'text', text: 'I look.' },
      { type: 'call', key: 'k1', name: 'read_file', args: { path: 'a' } }],
  }),
  entry({ seq: 3, role: 'tool', results: [{ key: 'k1', content: [{ type: 'text', text: 'x' }] }] }),
  entry({
    seq: 4, at: 4000, role: 'assistant', stop: 'end', usage: { input: 7, output: 2 },
    blocks: [{ type: 'text', text: 'Done.' }],
  }),
  entry({ seq: 5, role: 'note', code: 'auth', text: 'no key' }),
  entry({ seq: 6, role: 'summary', until: 4, turns: 1, made: 'model', blocks: [{ type: 'text', text: 'hi was said' }] }),
];

test('a turn in its order, with its sum', () => {
  const items = timeline(ENTRIES);
  expect(items.map((i) => i.kind)).toEqual(['user', 'thought', 'text', 'call', 'text', 'end', 'note', 'summary']);
  expect(items[5]).toMatchObject({ ms: 3000, usage: { input: 12, output: 3 }, stop: 'end' });
  expect(items[6]).toMatchObject({ code: 'auth', text: 'no key' });
  expect(items[7]).toMatchObject({ turns: 1, text: 'hi was said' });
  expect(new Set(items.map((i) => i.id)).size).toBe(items.length);
});

test('a stopped turn without a reply shows its mark, not the placeholder', () => {
  const stopped = { seq: 1, role: 'assistant', stop: 'canceled', blocks: [{ type: 'text', text: '(arrêté)' }] };
  expect(timeline([entry({ ...stopped, placeholder: true })])).toMatchObject([{ kind: 'end', stop: 'canceled' }]);
  expect(timeline([entry(stopped)]).map((i) => i.kind)).toEqual(['text', 'end']);
});

test('output that is no JSON is text', () => {
  const read = EVENTS['tool:output'][0];
  expect(read('plain', 'o')).toMatchObject([{ type: 'text', text: 'plain' }]);
  expect(exitOf(read('[{"type":"text","text":"x\\n[exit code 3]\\n"}]', 'o'))).toBe('exit code 3');
});

test.each([
  ['system:ready', {}], ['session:history', { messages: 1 }],
  ['tool:approval_required', { name: 'x', callId: 'y', args: [], digest: '', expiresAt: 1 }],
  ['agent:delta', { text: 5 }], ['session:entry', { seq: '1' }],
] as const)('%s that is wrong is refused', (name, v) => {
  expect(() => EVENTS[name][0](v, name)).toThrow();
});
