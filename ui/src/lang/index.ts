// lang - all texts of the page by key (en/), in the language that was chosen in
// this browser, or else in the browser's if there is a translation.
//
// A translation is a file like en.ts with the same keys, and an entry in LANGS; it
// is loaded before anything that uses this file. Texts contain {placeholders}; texts
// with a count have one form per plural category (Intl.PluralRules). Texts of
// servers are not translated.

import { en } from './en';

export type Key = keyof typeof en;
type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };
export type Texts = Record<Key, string | Forms>;

/** The {placeholders} of a text, or of all its plural forms. */
type Places<T> = T extends string
  ? T extends `${string}{${infer P}}${infer R}` ? P | Places<R> : never
  : T extends Record<string, string> ? Places<T[keyof T]> | 'n' : never;
type Values<K extends Key> = Record<Places<(typeof en)[K]>, string | number>;
type Args<K extends Key> =
  [Places<(typeof en)[K]>] extends [never] ? [] : [Values<K>];

/** The languages, each with its own name and its texts; English is always there. */
export const LANGS: Record<string, { name: string; tag?: string; load?: () => Promise<Texts> }> = {
  en: { name: 'English' },
  de: { name: 'Deutsch', load: async () => (await import('./de')).de },
  zh: { name: '简体中文', tag: 'zh-Hans', load: async () => (await import('./zh')).zh },
};
const KEY = 'mo.lang';

/** The language chosen in this browser; empty: the browser's own. */
export function chosen(): string {
  const v = typeof localStorage === 'undefined' ? '' : localStorage.getItem(KEY) ?? '';
  return Object.hasOwn(LANGS, v) ? v : '';
}

/** Keeps the choice and shows the page in that language. */
export function choose(name: string): void {
  if (name) localStorage.setItem(KEY, name);
  else localStorage.removeItem(KEY);
  location.reload();
}

const TRADITIONAL = /^zh-(hant|tw|hk|mo)\b/i;

/** The first preferred language that is available. The Chinese texts are in simplified
 *  characters: they are not for those who prefer traditional ones, not even by the
 *  plain "zh" that browsers add to "zh-TW". */
export function pick(wanted: readonly string[], there: string[]): string {
  const first = wanted.find((w) => /^zh\b/i.test(w)) ?? '';
  for (const w of wanted) {
    const base = w.toLowerCase().split('-', 1)[0] ?? '';
    const isOther = TRADITIONAL.test(w) || (/^zh$/i.test(w) && TRADITIONAL.test(first));
    if (there.includes(base) && !isOther) return base;
  }
  return 'en';
}

/** English, if the texts cannot be loaded. */
async function load(name: string): Promise<[string, Texts]> {
  const texts = await LANGS[name]?.load?.().catch(() => undefined);
  return texts ? [name, texts] : ['en', en];
}

const wanted = typeof navigator === 'undefined' ? [] : navigator.languages;
const known = chosen() || pick(wanted, Object.keys(LANGS));
export const [lang, texts] = known === 'en' ? ['en', en as Texts] : await load(known);
if (typeof document !== 'undefined') document.documentElement.lang = LANGS[lang]?.tag ?? lang;
let rules: Intl.PluralRules | null = null; // created when first needed
let numbers: Intl.NumberFormat | null = null;

/** Formats numbers for the language. Small integers skip Intl, which takes
 *  30 ms when first used. */
function write(v: string | number | undefined): string {
  if (typeof v !== 'number') return v ?? '';
  if (Number.isInteger(v) && v >= 0 && v < 1000) return String(v);
  numbers ??= new Intl.NumberFormat(lang);
  return numbers.format(v);
}

/** The text with its placeholders, in the plural form for n. */
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
