// streaming - makes the end of a text that is still being written complete, so
// that it is shown as what it will become: half a table is a table, half a code
// block is code, and marks without content are not shown. Pure.

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*[\w+#.-]*[^`]*$/;
const LONE = /^\s*(#{1,6}|[-*+]|\d{1,2}|\d{1,9}[.)]|>|\||\$|\\|[`~]{1,2}|\[\^?[^\s\]]*\]?:?)\s*$/;
const PARTIAL_RULE = /^ {0,3}(-{1,2}|\*{2}|_{1,2})$/;

/** The fence that is open at the end of the lines, or ''. */
function openFence(lines: string[]): string {
  let open = '';
  for (const line of lines) {
    const mark = FENCE.exec(line)?.[1] ?? '';
    if (!open) open = mark;
    else if (mark.startsWith(open) && line.trim() === mark) open = '';
  }
  return open;
}

/** Maths that fill whole lines are open at the end of the lines. */
function isMathOpen(lines: string[]): boolean {
  let end = '';
  for (const line of lines) {
    const text = line.trim();
    if (end) {
      if (text.includes(end)) end = '';
    } else if (text.startsWith('$$') && !text.includes('$$', 2)) end = '$$';
    else if (text.startsWith('\\[') && !text.includes('\\]')) end = '\\]';
  }
  return end !== '';
}

const columns = (line: string): number =>
  line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).length;

/** A first line of a table, and half of the line below it, make a table. */
function settleTable(lines: string[]): boolean {
  const from = lines.findLastIndex((l) => l.trim() === '') + 1;
  const head = lines[from]?.trim() ?? '';
  const rest = lines.length - from;
  if (!head.startsWith('|') || head.length < 2 || rest > 2) return false;
  if (rest === 2 && !/^[|:\-\s]*$/.test(lines[from + 1] ?? '')) return false;
  const given = rest === 2 ? (lines[from + 1] ?? '').trim().replace(/^\|/, '').split('|') : [];
  const delims = Array.from({ length: columns(head) }, (_, i) =>
    (/^\s*:?-+:?\s*$/.test(given[i] ?? '') ? given[i] : '---'));
  lines[from + 1] = `|${delims.join('|')}|`;
  return true;
}

const odd = (text: string, mark: string): boolean => text.split(mark).length % 2 === 0;

/** Closes marks of a paragraph; those without content are left out. */
export function settleInline(text: string): string {
  let s = text.replace(/(^|[\s(])(\*{1,2}|_{1,2}|~{1,2}|`+|!?\[|\\)$/, '$1');
  s = s.replace(/!?\[([^\][\n]*)\]\([^)\s]*$/, '$1').replace(/!?\[([^\][\n]*)\]?$/, '$1');
  if (odd(s, '`')) return `${s}\``;
  const bare = s.replace(/`[^`]*`/g, '');
  for (const mark of ['**', '~~']) {
    const half = mark.slice(1);
    if (!odd(bare, mark)) continue;
    return (s.endsWith(half) && !s.endsWith(mark) ? s.slice(0, -1) : s.trimEnd()) + mark;
  }
  return /(^|[\s(])\*[^\s*][^*\n]*$/.test(bare) ? `${s.trimEnd()}*` : s;
}

export function settle(text: string): string {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const last = lines.length - 1;
  const before = openFence(lines.slice(0, -1));
  if (before) {
    if (/^ {0,3}(`+|~+)$/.test(lines[last] ?? '') && !(lines[last] ?? '').trim().startsWith(before))
      lines.pop();
    return lines.join('\n');
  }
  if (FENCE.test(lines[last] ?? '')) return text;
  if (isMathOpen(lines)) {
    if (/^\s*(\$|\\)$/.test(lines[last] ?? '')) lines.pop();
    return lines.join('\n');
  }
  const isMark = LONE.test(lines[last] ?? '') || PARTIAL_RULE.test(lines[last] ?? '');
  const open = isMark || lines[last] === '' ? lines.slice(0, -1) : lines;
  if (settleTable(open)) return open.join('\n');
  if (isMark) return open.join('\n');
  lines[last] = settleInline(lines[last] ?? '');
  return lines.join('\n');
}
