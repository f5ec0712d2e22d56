// markdown - parses Markdown into a tree, never into HTML.
//
// Supported: headings, paragraphs, lists, tasks, quotes, tables, rules, code,
// emphasis, links, footnotes, LaTeX maths ($..$, $$..$$, \(..\), \[..\]). HTML
// stays text. Links may use http, https and mailto only. Images become links, so
// that text of a peer cannot make the browser fetch a URL. An incomplete block
// (open fence, half a table) is parsed as if complete.

export type Inline =
  | { t: 'text'; text: string }
  | { t: 'code'; text: string }
  | { t: 'break' }
  | { t: 'math'; tex: string; display: boolean }
  | { t: 'ref'; n: number }
  | { t: 'strong' | 'em' | 'del'; kids: Inline[] }
  | { t: 'link'; href: string; kids: Inline[] };

export interface Item {
  task: '' | 'open' | 'done';
  kids: Block[];
}

export type Align = '' | 'left' | 'center' | 'right';

export interface Table {
  t: 'table';
  head: Inline[][];
  rows: Inline[][][];
  align: Align[];
}

export type Block =
  | { t: 'p'; kids: Inline[] }
  | { t: 'h'; level: number; kids: Inline[] }
  | { t: 'code'; lang: string; text: string; open: boolean }
  | { t: 'math'; tex: string; open: boolean }
  | { t: 'quote'; kids: Block[] }
  | { t: 'list'; ordered: boolean; start: number; items: Item[] }
  | Table
  | { t: 'notes'; notes: Inline[][] }
  | { t: 'hr' };

const DEPTH_MAX = 12; // nesting of lists, quotes and emphasis

// --- inline --------------------------------------------------------------------

export function safeHref(href: string): string {
  const clean = href.trim().replace(/[\u0000-\u0020\u007f]/g, '');
  return /^(https?:\/\/|mailto:)/i.test(clean) ? clean : '';
}

// Maths come before escapes: a backslash belongs to LaTeX there.
const INLINE = new RegExp(
  [
    '\\$\\$(?<show>(?:[^$\\\\]|\\\\[\\s\\S])+)\\$\\$',
    '\\\\\\[(?<showToo>(?:[^\\\\]|\\\\[^\\[\\]])+)\\\\\\]',
    '\\\\\\((?<tex>(?:[^\\\\]|\\\\[^()])+)\\\\\\)',
    '\\$(?=[^\\s$])(?<dollars>(?:[^$\\\\\\n]|\\\\[^\\n])+)(?<=\\S)\\$(?![\\w$])',
    '\\[\\^(?<ref>[^\\s\\]]{1,40})\\]',
    '(?<esc>\\\\[!-/:-@[-`{-~])',
    '(?<tick>`+)(?<code>[^`]|[^`][\\s\\S]*?[^`])\\k<tick>(?!`)',
    '(?<img>!?)\\[(?<label>(?:[^\\[\\]\\\\]|\\\\.|\\[[^\\[\\]]*\\])*)\\]' +
      '\\((?<href>[^\\s()<>]*(?:\\([^\\s()]*\\)[^\\s()<>]*)*)' +
      '(?:\\s+["\'(][^\\n]*?["\')])?\\)',
    '<(?<auto>(?:https?:\\/\\/|mailto:)[^\\s<>]+)>',
    '(?<bare>https?:\\/\\/[^\\s<>"\'`]*[^\\s<>"\'`.,;:!?)\\]}*_])',
    '(?<two>\\*\\*|__|~~)(?=\\S)(?<strong>[\\s\\S]*?\\S)\\k<two>',
    '(?<one>\\*|_)(?=\\S)(?<em>[\\s\\S]*?[^\\s*_])\\k<one>(?!\\w)',
    '(?<br>(?: {2,}|\\\\)\\n)',
  ].join('|'),
  'g',
);

type Groups = Record<string, string | undefined>;

/** Names of the footnotes of one text, in the order of their numbers. */
export type Notes = string[];

/** "$5 and 3$" are prices: maths that begin with a number contain a sign. */
function isMath(tex: string): boolean {
  return !/^\d/.test(tex) || /^[\d.,]+$/.test(tex) || /[\\^_=+{}]/.test(tex);
}

function mathOf(g: Groups, whole: string): Inline | null {
  const show = g['show'] ?? g['showToo'];
  if (show !== undefined) return { t: 'math', tex: show.trim(), display: true };
  if (g['tex'] !== undefined) return { t: 'math', tex: g['tex'].trim(), display: false };
  if (g['dollars'] === undefined) return null;
  return isMath(g['dollars'])
    ? { t: 'math', tex: g['dollars'], display: false }
    : { t: 'text', text: whole };
}

function inlineOf(g: Groups, whole: string, depth: number, notes: Notes): Inline {
  const math = mathOf(g, whole);
  if (math) return math;
  if (g['ref'] !== undefined) {
    const n = notes.indexOf(g['ref']) + 1;
    return n ? { t: 'ref', n } : { t: 'text', text: whole };
  }
  if (g['esc']) return { t: 'text', text: g['esc'].slice(1) };
  if (g['code'] !== undefined)
    return { t: 'code', text: g['code'].replace(/^ (.*) $/s, '$1') };
  if (g['br']) return { t: 'break' };
  if (g['strong'] !== undefined)
    return {
      t: g['two'] === '~~' ? 'del' : 'strong',
      kids: readInline(g['strong'], depth + 1, notes),
    };
  if (g['em'] !== undefined)
    return { t: 'em', kids: readInline(g['em'], depth + 1, notes) };
  const to = g['href'] ?? g['auto'] ?? g['bare'] ?? '';
  const href = safeHref(to);
  if (!href) return { t: 'text', text: whole };
  const label = g['label'] || to;
  return {
    t: 'link',
    href,
    kids: g['label']
      ? readInline(g['label'], DEPTH_MAX - 1, notes)
      : [{ t: 'text', text: label }],
  };
}

/** An underscore inside a word (a_b_c) is not emphasis. */
function insideWord(text: string, m: RegExpMatchArray): boolean {
  const g = m.groups ?? {};
  if (g['one'] !== '_' && g['two'] !== '__') return false;
  return /\w/.test(text[(m.index ?? 0) - 1] ?? '');
}

export function readInline(text: string, depth = 0, notes: Notes = []): Inline[] {
  if (depth >= DEPTH_MAX) return [{ t: 'text', text }];
  const out: Inline[] = [];
  let from = 0;
  const plain = (s: string) => {
    const last = out[out.length - 1];
    if (last?.t === 'text') last.text += s;
    else if (s) out.push({ t: 'text', text: s });
  };
  for (const m of text.matchAll(INLINE)) {
    plain(text.slice(from, m.index));
    from = m.index + m[0].length;
    if (insideWord(text, m)) plain(m[0]);
    else {
      const node = inlineOf(m.groups ?? {}, m[0], depth, notes);
      if (node.t === 'text') plain(node.text);
      else out.push(node);
    }
  }
  plain(text.slice(from));
  return out;
}

// --- blocks --------------------------------------------------------------------

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const HEAD = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const ITEM = /^( {0,9})([-*+]|\d{1,9}[.)])(?:\s+(.*)|)$/;
const NOTE = /^ {0,3}\[\^([^\s\]]{1,40})\]:\s*(.*)$/;
const MATH = /^ {0,3}(\$\$|\\\[|\\begin\{(?:equation|align|gather|multline|alignat|eqnarray)\*?\})(.*)$/;
const DELIMS = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

class Lines {
  at = 0;
  constructor(readonly all: string[], readonly notes: Notes) {}
  get now(): string | undefined {
    return this.all[this.at];
  }
  get next(): string | undefined {
    return this.all[this.at + 1];
  }
}

function readFence(l: Lines): Block | null {
  const m = FENCE.exec(l.now ?? '');
  if (!m) return null;
  const end = new RegExp(`^ {0,3}${m[1]?.[0]}{${m[1]?.length},}\\s*$`);
  const body: string[] = [];
  l.at++;
  while (l.now !== undefined && !end.test(l.now)) {
    body.push(l.now);
    l.at++;
  }
  const open = l.now === undefined;
  l.at++;
  const text = body.join('\n');
  return m[2] === 'math' ? { t: 'math', tex: text, open } : { t: 'code', lang: m[2] ?? '', text, open };
}

/** The end of maths that begin so. An environment is part of its LaTeX. */
function mathEnd(begin: string): string {
  if (begin === '$$') return '$$';
  return begin === '\\[' ? '\\]' : begin.replace('begin', 'end');
}

/** Maths that fill whole lines. Text behind their end makes them a paragraph. */
function readMath(l: Lines): Block | null {
  const m = MATH.exec(l.now ?? '');
  if (!m) return null;
  const begin = m[1] ?? '';
  const end = mathEnd(begin);
  const keep = begin.startsWith('\\begin');
  const body: string[] = [];
  for (let at = l.at, line = m[2] ?? ''; ; line = l.all[at] ?? '') {
    const i = line.indexOf(end);
    if (i >= 0 && line.slice(i + end.length).trim() !== '') return null;
    body.push(i >= 0 ? line.slice(0, i) : line);
    at++;
    const open = i < 0;
    if (open && at < l.all.length) continue;
    l.at = at;
    const tex = body.join('\n');
    return { t: 'math', open, tex: (keep ? begin + tex + end : tex).trim() };
  }
}

function readHead(l: Lines): Block | null {
  const m = HEAD.exec(l.now ?? '');
  if (!m) return null;
  l.at++;
  return { t: 'h', level: m[1]?.length ?? 1, kids: readInline(m[2] ?? '', 0, l.notes) };
}

function readRule(l: Lines): Block | null {
  if (!RULE.test(l.now ?? '')) return null;
  l.at++;
  return { t: 'hr' };
}

function readQuote(l: Lines, depth: number): Block | null {
  const body: string[] = [];
  for (let m = QUOTE.exec(l.now ?? ''); m; m = QUOTE.exec(l.now ?? '')) {
    body.push(m[1] ?? '');
    l.at++;
  }
  if (body.length === 0) return null;
  return { t: 'quote', kids: readBlocks(body, depth + 1, l.notes) };
}

const pieces = (line: string): string[] =>
  line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((c) => c.trim());

function cells(line: string, notes: Notes): Inline[][] {
  return pieces(line).map((c) => readInline(c.replaceAll('\\|', '|'), 0, notes));
}

function aligned(delim: string): Align {
  if (!delim.endsWith(':')) return delim.startsWith(':') ? 'left' : '';
  return delim.startsWith(':') ? 'center' : 'right';
}

function readTable(l: Lines): Block | null {
  if (!l.now?.includes('|') || !l.next?.includes('-') ||
      !DELIMS.test(l.next))
    return null;
  const head = cells(l.now, l.notes);
  const align = pieces(l.next).map(aligned);
  const rows: Inline[][][] = [];
  l.at += 2;
  while (l.now?.includes('|')) {
    rows.push(cells(l.now, l.notes));
    l.at++;
  }
  return { t: 'table', head, rows, align };
}

/** The lines of a list item: the first, and those indented below it. */
function itemLines(l: Lines, indent: number, first: string): string[] {
  const body = [first];
  l.at++;
  while (l.now !== undefined) {
    const blank = l.now.trim() === '';
    const deep = l.now.search(/\S/) >= indent;
    if (blank && (l.next === undefined || l.next.search(/\S/) < indent)) break;
    if (!blank && !deep && (ITEM.test(l.now) || startsBlock(l.now))) break;
    if (!blank && !deep && body[body.length - 1]?.trim() === '') break;
    body.push(deep ? l.now.slice(indent) : l.now.trimStart());
    l.at++;
  }
  return body;
}

function readItem(l: Lines, m: RegExpExecArray, depth: number): Item {
  const task = /^\[([ xX])\]\s+(.*)$/.exec(m[3] ?? '');
  const first = task ? (task[2] ?? '') : (m[3] ?? '');
  const indent = (m[1]?.length ?? 0) + 2;
  return {
    task: task ? (task[1] === ' ' ? 'open' : 'done') : '',
    kids: readBlocks(itemLines(l, indent, first), depth + 1, l.notes),
  };
}

function readList(l: Lines, depth: number): Block | null {
  const m = ITEM.exec(l.now ?? '');
  if (!m) return null;
  const ordered = /\d/.test(m[2] ?? '');
  const margin = m[1]?.length ?? 0;
  const items: Item[] = [];
  const out: Block = {
    t: 'list', ordered, start: ordered ? parseInt(m[2] ?? '1', 10) : 1, items,
  };
  for (;;) {
    while (l.now?.trim() === '' && ITEM.test(l.next ?? '')) l.at++;
    const it = ITEM.exec(l.now ?? '');
    if (!it || /\d/.test(it[2] ?? '') !== ordered ||
        Math.abs((it[1]?.length ?? 0) - margin) > 1)
      return out;
    items.push(readItem(l, it, depth));
  }
}

function startsBlock(line: string): boolean {
  return FENCE.test(line) || HEAD.test(line) || RULE.test(line) ||
    QUOTE.test(line) || MATH.test(line);
}

function readParagraph(l: Lines): Block {
  const body: string[] = [];
  while (l.now !== undefined && l.now.trim() !== '') {
    if (body.length > 0 && (startsBlock(l.now) || ITEM.test(l.now))) break;
    body.push(l.now.trimStart());
    l.at++;
  }
  return { t: 'p', kids: readInline(body.join('\n').trimEnd(), 0, l.notes) };
}

function readBlocks(all: string[], depth: number, notes: Notes): Block[] {
  const l = new Lines(all, notes);
  const out: Block[] = [];
  const deep = depth >= DEPTH_MAX;
  while (l.now !== undefined) {
    if (l.now.trim() === '') {
      l.at++;
      continue;
    }
    out.push(
      readFence(l) ?? readMath(l) ?? readHead(l) ?? readRule(l) ??
      (deep ? null : readQuote(l, depth)) ?? readTable(l) ??
      (deep ? null : readList(l, depth)) ?? readParagraph(l),
    );
  }
  return out;
}

/** Takes the definitions of footnotes out of the lines, except inside code. */
function takeNotes(all: string[]): { lines: string[]; notes: Map<string, string> } {
  const notes = new Map<string, string>();
  const lines: string[] = [];
  let fence: RegExp | null = null;
  for (const line of all) {
    const mark = FENCE.exec(line)?.[1];
    if (fence?.test(line)) fence = null;
    else if (!fence && mark) fence = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}\\s*$`);
    const m = fence ? null : NOTE.exec(line);
    if (m) notes.set(m[1] ?? '', m[2] ?? '');
    else lines.push(line);
  }
  return { lines, notes };
}

export function readMarkdown(text: string): Block[] {
  const all = text.replaceAll('\r\n', '\n').split('\n');
  const { lines, notes } = takeNotes(all);
  const names = [...notes.keys()];
  const blocks = readBlocks(lines, 0, names);
  if (names.length)
    blocks.push({ t: 'notes', notes: [...notes.values()].map((n) => readInline(n, 0, names)) });
  return blocks;
}

/** The text of inline nodes, without their marks. */
export function plainText(nodes: Inline[]): string {
  return nodes.map((n) => {
    if (n.t === 'break') return '\n';
    if (n.t === 'math') return n.tex;
    if (n.t === 'ref') return `[${n.n}]`;
    return 'kids' in n ? plainText(n.kids) : n.text;
  }).join('');
}
