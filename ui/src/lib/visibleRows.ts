// visibleRows - which of many rows of unlike heights are in sight. Pure.
//
// A row that was never seen has a guessed height; one that was, its own.

export interface Rows {
  /** tops[i] is where row i begins; the last one, where all end. */
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

/** The row that y falls into. */
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
  to: number; // the first that is not
  before: number; // px above the first
  after: number; // px below the last
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
