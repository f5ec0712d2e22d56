// lang - every word the page says, by its key (en.ts), in the language of the
// person's browser as far as there is one.
//
// Another language is a file beside en.ts with the same keys, and a line in
// LANGS. A text has {places}; one that counts has a form for each kind of
// number its language knows (Intl.PluralRules). Texts of the server and of
// others are not ours to translate.

import { en } from './en';

export type Key = keyof typeof en;
type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };
export type Texts = Record<Key, string | Forms>;

/** The {places} of a text; of forms, those of all of them. */
type Places<T> = T extends string
  ? T extends `${string}{${infer P}}${infer R}` ? P | Places<R> : never
  : T extends Record<string, string> ? Places<T[keyof T]> | 'n' : never;
type Values<K extends Key> = Record<Places<(typeof en)[K]>, string | number>;
type Args<K extends Key> =
  [Places<(typeof en)[K]>] extends [never] ? [] : [Values<K>];

const LANGS: Record<string, Texts> = { en };

/** The first language that is wanted and there. */
export function pick(wanted: readonly string[], there: string[]): string {
  for (const w of wanted) {
    const base = w.toLowerCase().split('-', 1)[0] ?? '';
    if (there.includes(base)) return base;
  }
  return 'en';
}

const wanted = typeof navigator === 'undefined' ? [] : navigator.languages;
export const lang = pick(wanted, Object.keys(LANGS));
const texts: Texts = LANGS[lang] ?? en;
let rules: Intl.PluralRules | null = null; // made when first needed
let numbers: Intl.NumberFormat | null = null;

/** Numbers in a text are written as the language writes them. Small ones are
 *  the same everywhere we know of, and Intl costs 30 ms when first used. */
function write(v: string | number | undefined): string {
  if (typeof v !== 'number') return v ?? '';
  if (Number.isInteger(v) && v >= 0 && v < 1000) return String(v);
  numbers ??= new Intl.NumberFormat(lang);
  return numbers.format(v);
}

/** The text with its places still open, of the form that fits n. */
export function textOf(key: Key, n = 0): string {
  const text = texts[key];
  if (typeof text === 'string') return text;
  rules ??= new Intl.PluralRules(lang);
  return text[rules.select(n)] ?? text.other;
}

export function t<K extends Key>(key: K, ...args: Args<K>): string {
  const values = args[0] as Record<string, string | number> | undefined;
  if (!values) return textOf(key);
  const n = values['n'];
  return textOf(key, typeof n === 'number' ? n : 0)
    .replace(/\{(\w+)\}/g, (_, name: string) => write(values[name]));
}
