import { describe, expect, test } from 'vitest';
import { lengthOf, turnSteps } from '../src/lib/trace';
import { personOf } from '../src/lib/person';
import { samplePieces } from '../src/lib/sampling';
import type { Entry } from '../src/protocol';

const base = {
  id: '', code: '', text: '', model: '', turns: 0, to: 0, auto: false, stop: '', placeholder: false, blocks: [], results: [], scripts: [], usage: null, toolTokens: null,
};
const entry = (seq: number, at: number, role: string, more: Partial<Entry> = {}): Entry => ({ ...base, seq, at, role, ...more });
const result = (key: string, times: Record<string, number> | null, isError = false): Entry['results'][number] => ({
  key, name: 'run', isError, state: 'done', content: [], app: null,
  times: times && { asked: 0, decided: 0, began: 0, ended: 0, routeUs: 0, boxMs: 0, ...times },
});

describe('the trace of a turn', () => {
  const entries = [
    entry(1, 1000, 'user'),
    entry(2, 3000, 'assistant'),
    entry(3, 9000, 'tool', { results: [
      result('a', { asked: 3100, decided: 5000, began: 5000, ended: 8000, boxMs: 500 }),
      result('b', { began: 3000, ended: 3500, routeUs: 2500, boxMs: 2 }, true),
    ] }),
    entry(4, 9500, 'assistant', { stop: 'end' }),
    entry(5, 20_000, 'user'),
    entry(6, 21_000, 'assistant'),
  ];
  test('model, approval, sandbox and tool, each with its times', () => {
    expect(turnSteps(entries, 1).map((s) => [s.kind, s.callId, s.from, s.ms, s.failed])).toEqual([
      ['model', '', 0, 2000, false],
      ['approval', 'a', 2100, 1900, false],
      ['box', 'a', 4000, 500, false],
      ['tool', 'a', 4500, 2500, false],
      ['route', 'b', 2000, 2.5, false],
      ['tool', 'b', 2000, 500, true],
      ['model', '', 8000, 500, false],
    ]);
    expect(lengthOf(turnSteps(entries, 1))).toBe(8500);
  });
  test('the next turn, none, and results of an older server', () => {
    expect(turnSteps(entries, 5)).toHaveLength(1);
    expect(turnSteps(entries, 99)).toEqual([]);
    expect(turnSteps([...entries.slice(0, 1), entry(2, 3000, 'tool', { results: [result('a', null)] })], 1)).toEqual([]);
  });
});

test('without sign-in a person is this computer, or an address without a port', () => {
  expect(['127.0.0.1:39098', '[::1]:80', '::1', '[::ffff:127.0.0.1]:9', '192.168.1.7:1234', '[fe80::1]:9', 'ann', 'terminal', '127.0.0.1.example'].map(personOf))
    .toEqual(['This computer', 'This computer', 'This computer', 'This computer', '192.168.1.7', '[fe80::1]', 'ann', 'terminal', '127.0.0.1.example']);
});

test('messages of a sampling request', () => {
  expect(samplePieces({ role: 'user', content: { type: 'text', text: 'hi' } })).toEqual([{ role: 'user', text: 'hi', image: '', isText: true }]);
  expect(samplePieces({ role: 'user', content: [{ type: 'image', mimeType: 'image/png', data: 'AA==' }, { type: 'image', mimeType: 'image/svg+xml', data: 'AA==' }] }).map((p) => p.image))
    .toEqual(['data:image/png;base64,AA==', '']);
  expect(samplePieces({ role: 'user', content: 7 })[0]?.text).toBe('7');
});
