// searchExcerpt - the text around a search hit.

export interface Excerpt {
  before: string;
  match: string;
  after: string;
}

const BEFORE = 24;
const AFTER = 60;

/** All texts in an entry, recursively. */
function textsOf(v: unknown, out: string[] = []): string[] {
  if (Array.isArray(v)) v.forEach((x) => textsOf(x, out));
  else if (typeof v === 'object' && v !== null)
    for (const [key, value] of Object.entries(v)) {
      if (key === 'text' && typeof value === 'string') out.push(value);
      else if (key !== 'text') textsOf(value, out);
    }
  return out;
}

export function excerptOf(entry: unknown, words: string): Excerpt {
  const texts = textsOf(entry).map((t) => t.replace(/\s+/g, ' ').trim());
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  for (const word of [words.toLowerCase(), ...wanted])
    for (const text of texts) {
      const at = text.toLowerCase().indexOf(word);
      if (at < 0) continue;
      const from = Math.max(0, at - BEFORE);
      const end = at + word.length;
      return {
        before: (from > 0 ? '…' : '') + text.slice(from, at),
        match: text.slice(at, end),
        after: text.slice(end, end + AFTER),
      };
    }
  return { before: (texts[0] ?? '').slice(0, BEFORE + AFTER), match: '', after: '' };
}
