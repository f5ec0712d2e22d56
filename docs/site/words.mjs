// The search index: which words stand in which section of which page.
//
// {pages: [[address, title]], sections: [[page, anchor, heading]], words:
// {word: list}}; a list is the numbers of sections in base 36, each as the
// distance from the one before. search.js reads it.

const COMMON = new Set(('a an and are as at be but by can do does for from has have if in into is it its may no not '
  + 'of on one or so such than that the their them then there these they this to was when which who will with you your').split(' '));

export const split = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+(?:[._-][\p{L}\p{N}]+)*/gu) ?? [];

/** A compound such as mcp-orchestrator.json is found by its parts as well. */
const parts = (word) => (/[._-]/.test(word) ? [word, ...word.split(/[._-]/)] : [word]);

/** Numbers of three to five digits are statuses, ports and standards. */
const isWord = (w) => w.length > 1 && w.length <= 40 && !COMMON.has(w)
  && (/\p{L}/u.test(w) || /^\d{3,5}$/.test(w));

/** Singular and plural are one word; search.js does the same. */
const stem = (w) => (w.length > 3 && /[^s]s$/.test(w) ? w.slice(0, -1) : w);

const wordsOf = (text) => new Set(split(text).flatMap(parts).filter(isWord).map(stem));

/** The text of any token of marked: paragraphs, lists, tables, code. */
function textOf(token, plain) {
  if (token.type === 'table')
    return [token.header, ...token.rows].flat().map((c) => plain(c.tokens)).join(' ');
  if (token.type === 'list')
    return token.items.flatMap((i) => i.tokens.map((t) => textOf(t, plain))).join(' ');
  if (token.type === 'html' || token.type === 'space') return '';
  return token.tokens ? plain(token.tokens) : (token.text ?? '');
}

// It speaks of everything; another page explains each.
const TITLE_ONLY = ['CHANGES'];

export function buildIndex(pages, plain) {
  const sections = [];
  const words = new Map();
  const enter = (text) => {
    for (const w of wordsOf(text)) {
      const list = words.get(w) ?? [];
      if (list.at(-1) !== sections.length - 1) list.push(sections.length - 1);
      words.set(w, list);
    }
  };
  pages.forEach((page, at) => {
    for (const token of page.tokens) {
      if (token.type === 'heading' && (token.depth === 1 || (token.depth <= 3 && !TITLE_ONLY.includes(page.name))))
        sections.push(token.depth === 1 ? [at] : [at, token.id, token.words]);
      if (token.type === 'heading' && token.depth === 1) enter(page.title);
      if (token.depth === 1 || !TITLE_ONLY.includes(page.name)) enter(textOf(token, plain));
    }
  });
  const coded = ([word, list]) => [word, list.map((n, i) => (n - (i ? list[i - 1] : 0)).toString(36)).join(' ')];
  return {
    pages: pages.map((p) => [p.url, p.title]),
    sections,
    words: Object.fromEntries([...words].sort(([a], [b]) => (a < b ? -1 : 1)).map(coded)),
  };
}
