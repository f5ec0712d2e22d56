import { expect, test } from 'vitest';
import { EVENTS } from '../src/protocol';
import { currentBranch } from '../src/lib/branches';
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

test('the whole text of a turn, the message it answers, its alternatives', () => {
  const items = timeline(ENTRIES, new Set([2]));
  expect(items[5]).toMatchObject({ text: 'I look.\n\nDone.', said: 1, branch: 2 });
  expect(timeline(ENTRIES)[5]).toMatchObject({ branch: 0 });
});

test('the current branch is read backwards', () => {
  const said = (seq: number) => entry({ seq, role: 'user' });
  const mark = (seq: number, to: number) => entry({ seq, role: 'branch', to });
  // 1 2 3 | behind 1: 5 6 | behind 3: 8
  const all = [said(1), said(2), said(3), mark(4, 1), said(5), said(6), mark(7, 3), said(8)];
  const seqs = (part: { entries: { seq: number }[] }) => part.entries.map((e) => e.seq);
  expect(seqs(currentBranch(all))).toEqual([1, 2, 3, 8]);
  expect(seqs(currentBranch(all, 6))).toEqual([1, 5, 6]);
  expect(seqs(currentBranch([...all, mark(9, 0)]))).toEqual([]);
  // In parts, the newest first.
  const last = currentBranch(all.slice(5));
  expect([seqs(last), last.earlier]).toEqual([[8], 3]);
  expect(seqs(currentBranch(all.slice(0, 5), last.earlier))).toEqual([1, 2, 3]);
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
