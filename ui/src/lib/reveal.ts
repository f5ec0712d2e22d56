// reveal - makes invisible and direction-changing characters visible.
//
// Each becomes a piece with its name. Newlines and tabs stay.

export interface Piece {
  text: string;
  odd: string; // name of the character; empty: plain text
}

const NAMED: Record<number, string> = {
  0x00: 'null', 0x07: 'bell', 0x08: 'backspace', 0x0d: 'carriage return',
  0x1b: 'escape', 0x7f: 'delete', 0xa0: 'no-break space',
  0xad: 'soft hyphen', 0x61c: 'Arabic letter mark',
  0x200b: 'zero-width space', 0x200c: 'zero-width non-joiner',
  0x200d: 'zero-width joiner', 0x200e: 'left-to-right mark',
  0x200f: 'right-to-left mark', 0x2028: 'line separator',
  0x2029: 'paragraph separator', 0x202a: 'left-to-right embedding',
  0x202b: 'right-to-left embedding', 0x202c: 'end of direction',
  0x202d: 'left-to-right override', 0x202e: 'right-to-left override',
  0x2060: 'word joiner', 0x2066: 'left-to-right isolate',
  0x2067: 'right-to-left isolate', 0x2068: 'first strong isolate',
  0x2069: 'end of isolate', 0xfeff: 'byte order mark',
};

// Controls except \t \n, unusual spaces, zero-width, direction, fillers,
// variation selectors, private use, tags, lone surrogates.
const ODD =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ue000-\uf8ff]|[\u{e0000}-\u{e0fff}]|[\u{f0000}-\u{10ffff}]|[\ud800-\udfff]/gu;

function codeName(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

function nameOf(code: number): string {
  return NAMED[code] ? `${codeName(code)} ${NAMED[code]}` : codeName(code);
}

export function reveal(text: string): Piece[] {
  const out: Piece[] = [];
  let from = 0;
  for (const m of text.matchAll(ODD)) {
    if (m.index > from) out.push({ text: text.slice(from, m.index), odd: '' });
    const code = m[0].codePointAt(0) ?? 0;
    out.push({ text: codeName(code), odd: nameOf(code) });
    from = m.index + m[0].length;
  }
  if (from < text.length || out.length === 0)
    out.push({ text: text.slice(from), odd: '' });
  return out;
}

export function countOdd(text: string): number {
  return text.match(ODD)?.length ?? 0;
}
