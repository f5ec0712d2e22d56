// visibleRows - finds the visible rows of a list with rows of different heights.
// Rows that were not measured have an estimated height. Pure.

export interface Rows {
  /** tops[i] is the top of row i; the last value is the total height. */
  tops: Float64Array;
}

export function layoutRows(
  ids: readonly string[], heights: ReadonlyMap<string, number>, guess: number,
): Rows {
  const tops = new Float64Array(ids.length + 1);
  for (let i = 0; i < ids.length; i++)
    tops[i + 1] = (tops[i] ?? 0) + (heights.get(ids[i] ?? '') ?? guess);
  return { tops };
}

/** The row at position y. */
export function rowAt({ tops }: Rows, y: number): number {
  let low = 0;
  let high = tops.length - 2;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if ((tops[mid] ?? 0) <= y) low = mid;
    else high = mid - 1;
  }
  return Math.max(0, low);
}

export interface VisibleRange {
  from: number;
  to: number; // exclusive
  before: number; // px above the first row
  after: number; // px below the last row
}

export function visibleRange(
  rows: Rows, top: number, height: number, extra: number,
): VisibleRange {
  const n = rows.tops.length - 1;
  const end = rows.tops[n] ?? 0;
  const from = rowAt(rows, top - extra);
  const to = Math.min(n, rowAt(rows, top + height + extra) + 1);
  return {
    from, to,
    before: rows.tops[from] ?? 0,
    after: end - (rows.tops[to] ?? end),
  };
}
