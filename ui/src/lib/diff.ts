// diff - a line diff of two texts, with context around each change.

export interface DiffLine {
  kind: 'same' | 'add' | 'del' | 'gap';
  text: string;
  no: number; // line number in its own text; 0 for a gap
}

const CELLS_MAX = 4_000_000; // lines × lines; above it, all lines count as replaced

function lines(text: string): string[] {
  if (text === '') return [];
  const out = text.split('\n');
  if (out[out.length - 1] === '') out.pop();
  return out;
}

/** Lengths of the longest common subsequences of the tails. */
function table(a: string[], b: string[]): Uint32Array[] {
  const rows = Array.from(
    { length: a.length + 1 }, () => new Uint32Array(b.length + 1),
  );
  for (let i = a.length - 1; i >= 0; i--) {
    const row = rows[i] as Uint32Array;
    const below = rows[i + 1] as Uint32Array;
    for (let j = b.length - 1; j >= 0; j--)
      row[j] = a[i] === b[j]
        ? (below[j + 1] ?? 0) + 1
        : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
  }
  return rows;
}

export function diffLines(before: string, after: string): DiffLine[] {
  const a = lines(before);
  const b = lines(after);
  const out: DiffLine[] = [];
  const del = (i: number) =>
    out.push({ kind: 'del', text: a[i] ?? '', no: i + 1 });
  const add = (j: number) =>
    out.push({ kind: 'add', text: b[j] ?? '', no: j + 1 });
  if (a.length * b.length > CELLS_MAX) {
    a.forEach((_, i) => del(i));
    b.forEach((_, j) => add(j));
    return out;
  }
  const t = table(a, b);
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      out.push({ kind: 'same', text: b[j] ?? '', no: j + 1 });
      i++;
      j++;
    } else if ((t[i + 1]?.[j] ?? 0) >= (t[i]?.[j + 1] ?? 0)) del(i++);
    else add(j++);
  }
  while (i < a.length) del(i++);
  while (j < b.length) add(j++);
  return out;
}

/** Keeps `around` equal lines at each change; the rest becomes gaps. */
export function foldSame(all: DiffLine[], around = 3): DiffLine[] {
  const keep = all.map(() => false);
  all.forEach((l, i) => {
    if (l.kind === 'same') return;
    const end = Math.min(all.length - 1, i + around);
    for (let k = Math.max(0, i - around); k <= end; k++) keep[k] = true;
  });
  const out: DiffLine[] = [];
  let hidden = 0;
  all.forEach((l, i) => {
    if (!keep[i]) {
      hidden++;
      return;
    }
    if (hidden) out.push({ kind: 'gap', text: `${hidden} lines`, no: 0 });
    hidden = 0;
    out.push(l);
  });
  if (hidden) out.push({ kind: 'gap', text: `${hidden} lines`, no: 0 });
  return out;
}

export function countDiff(all: DiffLine[]): { add: number; del: number } {
  return {
    add: all.filter((l) => l.kind === 'add').length,
    del: all.filter((l) => l.kind === 'del').length,
  };
}
