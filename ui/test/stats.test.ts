import { expect, test } from 'vitest';
import { gaugeOf, mergeRows, minutesOf, sumOf, whoDecided } from '../src/lib/stats';

const NOW = 600_000 + 30_000;
const end = (at: number, ms: number, isError = false) => ({ sessionId: '', at, what: { ms, isError, content: [] } });
const decision = (at: number, by: string) => ({ sessionId: '', at, what: { by } });

test('calls and decisions by the minute', () => {
  const m = minutesOf([
    end(NOW, 10), end(NOW - 1, 30, true), end(NOW - 2, 20), end(NOW - 60_000, 5), end(NOW - 600_000, 9),
    decision(NOW, 'person'), decision(NOW, 'rule'), decision(NOW, 'person'), { sessionId: '', at: NOW, what: null },
  ], NOW, 3);
  expect(m.calls).toEqual([0, 1, 3]);
  expect(m.failed).toEqual([0, 0, 1]);
  expect(m.usual).toEqual([0, 5, 20]);
  expect(m.median).toBe(10);
  expect(m.longest).toEqual([0, 5, 30]);
  expect([...m.by]).toEqual([['person', 2], ['rule', 1]]);
});

test('what is new comes in front, what overlaps once', () => {
  const old = [end(5, 1), end(3, 1)];
  expect(mergeRows(old, [end(7, 1), end(5, 1), end(5, 2), end(4, 1)], 5).map((r) => r.at)).toEqual([7, 5, 5, 3]);
});

test('one gauge of many', () => {
  expect(gaugeOf('# HELP a b\na_total 3\na 1.5e+3\n', 'a')).toBe(1500);
  expect(gaugeOf('', 'a')).toBe(0);
});

test('sums, and who decided', () => {
  expect(sumOf([{ n: 1 }, { n: 2 }], (x) => x.n)).toBe(3);
  expect([whoDecided('rule'), whoDecided('somebody')]).toEqual(['a rule', 'somebody']);
});
