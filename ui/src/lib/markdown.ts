// markdown - parses Markdown into a tree, never into HTML.
//
// Supported: headings, paragraphs, lists, tasks, quotes, tables, rules, code,
// emphasis, links. HTML stays text. Links may use http, https and mailto only.
// Images become links, so that text of a peer cannot make the browser fetch a
// URL. An incomplete block (open fence, half a table) is parsed as if complete.

export type Inline =
  | { t: 'text'; text: string }
  | { t: 'code'; text: string }
  | { t: 'break' }
  | { t: 'strong' | 'em' | 'del'; kids: Inline[] }
  | { t: 'link'; href: string; kids: Inline[] };

export interface Item {
  task: '' | 'open' | 'done';
  kids: Block[];
}

export type Block =
  | { t: 'p'; kids: Inline[] }
  | { t: 'h'; level: number; kids: Inline[] }
  | { t: 'code'; lang: string; text: string }
  | { t: 'quote'; kids: Block[] }
  | { t: 'list'; ordered: boolean; start: number; items: Item[] }
  | { t: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { t: 'hr' };

const DEPTH_MAX = 12; // nesting of lists, quotes and emphasis

// --- inline --------------------------------------------------------------------

export function safeHref(href: string): string {
  const clean = href.trim().replace(/[\u0000-\u0020\u007f]/g, '');
  return /^(https?:\/\/|mailto:)/i.test(clean) ? clean : '';
}

const INLINE = new RegExp(
  [
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

function inlineOf(g: Groups, whole: string, depth: number): Inline {
  if (g['esc']) return { t: 'text', text: g['esc'].slice(1) };
  if (g['code'] !== undefined)
    return { t: 'code', text: g['code'].replace(/^ (.*) $/s, '$1') };
  if (g['br']) return { t: 'break' };
  if (g['strong'] !== undefined)
    return {
      t: g['two'] === '~~' ? 'del' : 'strong',
      kids: readInline(g['strong'], depth + 1),
    };
  if (g['em'] !== undefined)
    return { t: 'em', kids: readInline(g['em'], depth + 1) };
  const to = g['href'] ?? g['auto'] ?? g['bare'] ?? '';
  const href = safeHref(to);
  if (!href) return { t: 'text', text: whole };
  const label = g['label'] || to;
  return {
    t: 'link',
    href,
    kids: g['label']
      ? readInline(g['label'], DEPTH_MAX - 1)
      : [{ t: 'text', text: label }],
  };
}

/** An underscore inside a word (a_b_c) is not emphasis. */
function insideWord(text: string, m: RegExpMatchArray): boolean {
  const g = m.groups ?? {};
  if (g['one'] !== '_' && g['two'] !== '__') return false;
  return /\w/.test(text[(m.index ?? 0) - 1] ?? '');
}

export function readInline(text: string, depth = 0): Inline[] {
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
      const node = inlineOf(m.groups ?? {}, m[0], depth);
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
const DELIMS = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

class Lines {
  at = 0;
  constructor(readonly all: string[]) {}
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
  l.at++;
  return { t: 'code', lang: m[2] ?? '', text: body.join('\n') };
}

function readHead(l: Lines): Block | null {
  const m = HEAD.exec(l.now ?? '');
  if (!m) return null;
  l.at++;
  return { t: 'h', level: m[1]?.length ?? 1, kids: readInline(m[2] ?? '') };
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
  return { t: 'quote', kids: readBlocks(body, depth + 1) };
}

function cells(line: string): Inline[][] {
  const text = line.trim().replace(/^\||\|$/g, '');
  return text
    .split(/(?<!\\)\|/)
    .map((c) => readInline(c.trim().replaceAll('\\|', '|')));
}

function readTable(l: Lines): Block | null {
  if (!l.now?.includes('|') || !l.next?.includes('-') ||
      !DELIMS.test(l.next))
    return null;
  const head = cells(l.now);
  const rows: Inline[][][] = [];
  l.at += 2;
  while (l.now?.includes('|')) {
    rows.push(cells(l.now));
    l.at++;
  }
  return { t: 'table', head, rows };
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
    kids: readBlocks(itemLines(l, indent, first), depth + 1),
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
    QUOTE.test(line);
}

function readParagraph(l: Lines): Block {
  const body: string[] = [];
  while (l.now !== undefined && l.now.trim() !== '') {
    if (body.length > 0 && (startsBlock(l.now) || ITEM.test(l.now))) break;
    body.push(l.now.trimStart());
    l.at++;
  }
  return { t: 'p', kids: readInline(body.join('\n').trimEnd()) };
}

function readBlocks(all: string[], depth: number): Block[] {
  const l = new Lines(all);
  const out: Block[] = [];
  const deep = depth >= DEPTH_MAX;
  while (l.now !== undefined) {
    if (l.now.trim() === '') {
      l.at++;
      continue;
    }
    out.push(
      readFence(l) ?? readHead(l) ?? readRule(l) ??
      (deep ? null : readQuote(l, depth)) ?? readTable(l) ??
      (deep ? null : readList(l, depth)) ?? readParagraph(l),
    );
  }
  return out;
}

export function readMarkdown(text: string): Block[] {
  return readBlocks(text.replaceAll('\r\n', '\n').split('\n'), 0);
}
