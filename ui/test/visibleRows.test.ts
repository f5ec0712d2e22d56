import { expect, test } from 'vitest';
import { visibleRange, layoutRows, rowAt } from '../src/lib/visibleRows';

const ids = Array.from({ length: 10 }, (_, i) => `r${i}`);
const rows = layoutRows(ids, new Map([['r1', 50], ['r3', 200]]), 100);

test('rows stand below each other, known ones in their own height', () => {
  expect([...rows.tops]).toEqual([0, 100, 150, 250, 450, 550, 650, 750, 850, 950, 1050]);
});

test.each([[-5, 0], [0, 0], [99, 0], [100, 1], [149, 1], [449, 3], [1049, 9], [9999, 9]])(
  'y %i is in row %i', (y, row) => expect(rowAt(rows, y)).toBe(row));

test.each([
  [0, 100, 0, { from: 0, to: 2, before: 0, after: 900 }],
  [500, 100, 0, { from: 4, to: 6, before: 450, after: 400 }],
  [500, 100, 200, { from: 3, to: 8, before: 250, after: 200 }],
  [950, 100, 500, { from: 4, to: 10, before: 450, after: 0 }],
])('from %i, %i high, %i more', (top, height, extra, want) => {
  const s = visibleRange(rows, top, height, extra);
  expect(s).toEqual(want);
  expect(s.before + s.after + (rows.tops[s.to] ?? 0) - (rows.tops[s.from] ?? 0)).toBe(1050);
});

test('nothing at all', () => {
  const none = layoutRows([], new Map(), 100);
  expect(visibleRange(none, 0, 500, 100)).toEqual({ from: 0, to: 0, before: 0, after: 0 });
});
