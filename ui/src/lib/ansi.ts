// ansi - parses colours and weights of terminal output. Other escape sequences
// are dropped.

export interface Span {
  text: string;
  fg: string; // '' | 'black' ... | 'bright-white' | '#rrggbb'
  bold: boolean;
  dim: boolean;
  underline: boolean;
  inverse: boolean;
}

const NAMES = [
  'black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white',
];

export type Style = Omit<Span, 'text'>;

export function plain(): Style {
  return { fg: '', bold: false, dim: false, underline: false, inverse: false };
}

// CSI (colours end in m), OSC up to its end, and the short ones.
const ESCAPES =
  /\u001b\[([0-9;:?<=>]*)[ -/]*([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]|\u001b/g;

function hex(n: number): string {
  return Math.max(0, Math.min(255, n | 0)).toString(16).padStart(2, '0');
}

function indexed(n: number): string {
  if (n < 8) return NAMES[n] ?? '';
  if (n < 16) return `bright-${NAMES[n - 8] ?? 'white'}`;
  if (n > 231) return `#${hex((n - 232) * 10 + 8).repeat(3)}`;
  const level = (v: number) => hex(v ? v * 40 + 55 : 0);
  const c = n - 16;
  return `#${level(Math.floor(c / 36))}${level(Math.floor(c / 6) % 6)}${level(c % 6)}`;
}

/** Reads 38;5;n or 38;2;r;g;b: the colour and how many numbers it used. */
function extended(codes: number[], at: number): [string, number] {
  if (codes[at + 1] === 5) return [indexed(codes[at + 2] ?? 0), 2];
  if (codes[at + 1] === 2)
    return [
      `#${hex(codes[at + 2] ?? 0)}${hex(codes[at + 3] ?? 0)}${hex(codes[at + 4] ?? 0)}`,
      4,
    ];
  return ['', 0];
}

const SIMPLE: Record<number, Partial<Style>> = {
  1: { bold: true }, 2: { dim: true }, 4: { underline: true },
  7: { inverse: true }, 22: { bold: false, dim: false },
  24: { underline: false }, 27: { inverse: false }, 39: { fg: '' },
};

function apply(style: Style, params: string): Style {
  const codes = params.split(/[;:]/).map(Number);
  let s = style;
  for (let i = 0; i < codes.length; i++) {
    const c = codes[i] ?? 0;
    if (c === 0) s = plain();
    else if (SIMPLE[c]) s = { ...s, ...SIMPLE[c] };
    else if (c >= 30 && c <= 37) s = { ...s, fg: indexed(c - 30) };
    else if (c >= 90 && c <= 97) s = { ...s, fg: indexed(c - 82) };
    else if (c === 38 || c === 48) {
      const [fg, took] = extended(codes, i);
      if (c === 38) s = { ...s, fg };
      i += took;
    }
  }
  return s;
}

/** Parses one line. style is the state at its start; the new state is returned. */
export function readAnsi(text: string, style = plain()): [Span[], Style] {
  const out: Span[] = [];
  let from = 0;
  let now = style;
  const push = (to: number) => {
    if (to > from) out.push({ text: text.slice(from, to), ...now });
  };
  for (const m of text.matchAll(ESCAPES)) {
    push(m.index);
    from = m.index + m[0].length;
    if (m[2] === 'm') now = apply(now, m[1] ?? '');
  }
  push(text.length);
  return [out, now];
}

export function stripAnsi(text: string): string {
  return text.replace(ESCAPES, '');
}
