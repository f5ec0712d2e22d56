import { parse } from 'vue/compiler-sfc';
import { NodeTypes, type RootNode, type TemplateChildNode } from '@vue/compiler-core';
import { describe, expect, test } from 'vitest';
import { pick, t, textOf, type Key, type Texts } from '../src/lang';
import { de } from '../src/lang/de';
import { en } from '../src/lang/en';
import { zh } from '../src/lang/zh';

const SOURCES = Object.fromEntries(
  Object.entries(import.meta.glob<string>('../src/**/*.{vue,ts}', { query: '?raw', import: 'default', eager: true }))
    .map(([path, source]) => [path.replace('../src/', ''), source]));
const files = (end: string): string[] => Object.keys(SOURCES).filter((f) => f.endsWith(end));
const read = (f: string): string => SOURCES[f] ?? '';

/** Not the page's own: Unicode's names, names of
 *  programs, words of programming languages. */
const FOREIGN = ['Attached files:', 'Arabic letter mark', 'True False try ', 'Claude Desktop', 'Bearer '];

/** Not words: names of variables, tokens, keys on a keyboard, signs. */
const NAMES = /\b(?:[A-Z]+_[A-Z_]+|Esc|[A-Z])\b|[^A-Za-z]/g;
const hasWords = (s: string) => /[A-Za-z]{2}/.test(s.replace(NAMES, ' '));

// --- what stands in a template as it will be read ---

const READ = new Set(['title', 'placeholder', 'aria-label', 'alt', 'label', 'note']);
/** Texts in an expression, without keys given to t() and what is compared. */
function wordsOf(expression: string): string[] {
  const rest = expression
    .replace(/\bt\(\s*(['`])[\w.${} =?:']*?\1/g, 't(')
    .replace(/[!=]==?\s*(['"`])[^'"`]*\1/g, '')
    .replace(/\(\s*'\w+'\s*[,)]|,\s*'\w+'\s*\)/g, '()'); // names of things asked for
  return [...rest.matchAll(/(['"`])((?:(?!\1).)*)\1/g)].map((m) => m[2] ?? '')
    .filter((s) => hasWords(s.replace(/\$\{[^}]*\}/g, '')));
}

function look(node: RootNode | TemplateChildNode, found: string[]): void {
  if (node.type === NodeTypes.TEXT && hasWords(node.content)) found.push(node.content.trim());
  if (node.type === NodeTypes.INTERPOLATION) found.push(...wordsOf(node.content.loc.source));
  if (node.type === NodeTypes.ELEMENT)
    for (const p of node.props) {
      if (p.type === NodeTypes.ATTRIBUTE && READ.has(p.name) && hasWords(p.value?.content ?? ''))
        found.push(`${p.name}="${p.value?.content}"`);
      if (p.type === NodeTypes.DIRECTIVE && p.name === 'bind' && p.exp && p.arg && READ.has(p.arg.loc.source))
        found.push(...wordsOf(p.exp.loc.source));
    }
  if ('children' in node)
    for (const c of node.children) if (typeof c === 'object') look(c as TemplateChildNode, found);
}

function textsIn(source: string): string[] {
  const { descriptor } = parse(source);
  const found: string[] = [];
  if (descriptor.template?.ast) look(descriptor.template.ast, found);
  return found;
}

/** A sentence in a script: a capital, words, blanks between them. */
function sentencesIn(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$|\s\/\/ .*$/gm, '');
  return [...code.matchAll(/(['"`])([A-Z][a-z]+ (?:(?!\1|\n).)+)\1/g)].map((m) => m[2] ?? '')
    .filter((s) => !FOREIGN.some((f) => s.startsWith(f)));
}

describe('every text has a key', () => {
  test('the search finds what it must', () => {
    const sin = (template: string) => textsIn(`<template>${template}</template>`);
    expect(sin('<p>Hello there</p>')).toEqual(['Hello there']);
    expect(sin('<p title="Say it">{{ x }}</p>')).toEqual(['title="Say it"']);
    expect(sin('<p :aria-label="`Rename ${x}`" />')).toEqual(['Rename ${x}']);
    expect(sin("<p>{{ x ? 'yes' : t('form.no') }}</p>")).toEqual(['yes']);
    expect(sin("<p :class=\"x && 'text-bad'\">{{ t('form.no') }} · {{ t(`side.${n}`) }} 1.</p>")).toEqual([]);
    expect(sin("<p>{{ a === 'b' ? t('form.yes') : t('form.no', { n: 2 }) }}<code>OPENAI_API_KEY</code></p>")).toEqual([]);
    expect(sentencesIn("const a = 'This is said';\nimport 'x';")).toEqual(['This is said']);
  });
  test.each(files('.vue'))('%s', (f) => {
    const source = read(f);
    expect(textsIn(source)).toEqual([]);
    expect(sentencesIn(source.replace(/<template>[\s\S]*/, ''))).toEqual([]);
  });
  test.each(files('.ts').filter((f) => !f.startsWith('lang/')))('%s', (f) => {
    expect(sentencesIn(read(f))).toEqual([]);
  });
  test('every key is used', () => {
    const all = [...files('.vue'), ...files('.ts')].filter((f) => !/^lang\/(en|de|zh)/.test(f)).map(read).join('\n');
    const made = [...all.matchAll(/t\(`([\w.]+)\$\{/g)].map((m) => m[1] ?? '');
    const unused = Object.keys(en).filter((k) =>
      !all.includes(`'${k}'`) && !all.includes(`"${k}"`) && !made.some((m) => k.startsWith(m)));
    expect(unused).toEqual([]);
  });
});

describe('texts', () => {
  test('places, numbers, forms', () => {
    expect(t('n.lines', { n: 1 })).toBe('1 line');
    expect(t('n.lines', { n: 12345 })).toBe('12,345 lines');
    expect(t('card.position', { i: 2, total: 3 })).toBe('2 of 3');
    expect(t('shell.renameOne', { title: '{title} $& <b>' })).toBe('Rename {title} $& <b>');
    expect(textOf('call.inDir')).toBe('in {dir}');
  });
  test('the first language that is there', () => {
    expect(pick(['fr-CA', 'de-AT', 'en'], ['en', 'de'])).toBe('de');
    expect(pick(['xx'], ['en', 'de'])).toBe('en');
    expect(pick(['zh'], ['en', 'zh'])).toBe('zh');
    expect(pick(['zh-SG', 'en'], ['en', 'zh'])).toBe('zh');
    for (const w of ['zh-TW', 'zh-Hant-HK', 'zh-hk', 'zh-MO']) {
      expect(pick([w, 'zh', 'en-US', 'en'], ['en', 'zh'])).toBe('en');
      expect(pick([w, 'zh', 'de'], ['en', 'de', 'zh'])).toBe('de');
      expect(pick([w, 'zh-CN', 'en'], ['en', 'zh'])).toBe('zh'); // both are read
    }
  });
  test('forms have one for all other numbers', () => {
    for (const key of Object.keys(en) as Key[]) {
      const text = en[key];
      if (typeof text !== 'string') expect(text.other, key).toMatch(/\{n\}/);
    }
  });
});

describe.each([['German', de], ['Chinese', zh]] as [string, Texts][])('%s', (_, there) => {
  const forms = (v: Texts[Key]): string[] => (typeof v === 'string' ? [v] : Object.values(v));
  const places = (v: Texts[Key]): string[] =>
    [...new Set(forms(v).flatMap((f) => [...f.matchAll(/\{(\w+)\}/g)].map((m) => m[1] ?? '')))].sort();
  test('has every text, with the same placeholders', () => {
    for (const key of Object.keys(en) as Key[]) {
      expect(forms(there[key]).every(Boolean), key).toBe(true);
      expect(places(there[key]), key).toEqual(places(en[key]));
    }
    expect(Object.keys(there).sort()).toEqual(Object.keys(en).sort());
  });
  test('differs from English, but for names and words of MCP', () => {
    const same = (Object.keys(en) as Key[]).filter((k) => JSON.stringify(there[k]) === JSON.stringify(en[k]));
    expect(same.length).toBeLessThan(Object.keys(en).length / 12);
  });
});
