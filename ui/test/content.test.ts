// Maths, diffs and CSV of answers.
import { describe, expect, test } from 'vitest';
import { toCsv } from '../src/lib/csv';
import { highlight } from '../src/lib/highlight';
import { readTex, type MathElement } from '../src/lib/tex';

const math = (tex: string): MathElement => {
  const got = readTex(tex, true);
  if ('error' in got) throw new Error(got.error);
  return got.math;
};
const every = (n: MathElement): MathElement[] =>
  [n, ...n.kids.flatMap((k) => (typeof k === 'string' ? [] : every(k)))];
const text = (n: MathElement | string): string =>
  (typeof n === 'string' ? n : n.kids.map(text).join(''));

describe('LaTeX', () => {
  test.each([
    ['\\frac{a}{b}', 'mfrac'], ['x^2', 'msup'], ['x_i', 'msub'], ['\\sqrt{2}', 'msqrt'],
    ['\\sum_{i=1}^n i', 'munderover'], ['\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}', 'mtable'],
    ['\\begin{align}a&=b\\\\c&=d\\end{align}', 'mtable'], ['a\\,b', 'mspace'],
    ['\\color{red}x', 'mi'], ['\\text{if } x', 'mtext'], ['\\cancel{x}', 'mrow'],
  ])('%s has %s', (tex, tag) => {
    expect(every(math(tex)).map((n) => n.tag)).toContain(tag);
  });
  test.each(['\\frac{a', '\\nonsense', 'a & b', '\\href{https://a.b}{x}', '\\includegraphics{https://a.b/c.png}',
    '\\htmlClass{a}{b}', '\\url{https://a.b}'])('%s is refused', (tex) => {
    expect(readTex(tex, false)).toHaveProperty('error');
  });
  test('only known elements and attributes come out', () => {
    const all = every(math('\\text{<img src=x onerror=alert(1)>} \\colorbox{blue}{y} \\mathscr{L}\\tag{1}\\label{a}'));
    expect(text(math('\\text{<b>}'))).toContain('<b>');
    for (const n of all) {
      expect(n.tag).toMatch(/^m[a-z]+$|^semantics$|^none$/);
      expect(Object.keys(n.attrs).filter((k) => /^(on.*|.*href|src|style|id)$/.test(k))).toEqual([]);
      expect(JSON.stringify(n.style)).not.toMatch(/url/i);
    }
  });
  test.each(['{'.repeat(5000), '\\def\\a{\\a\\a}\\a', 'x'.repeat(30_000)])('%.12s… comes to an end', (tex) => {
    expect(readTex(tex, true)).toHaveProperty('error');
  });
});

test('a diff is split into its lines', () => {
  const lines = highlight('--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same', 'diff');
  expect(lines.map((l) => l.mark)).toEqual(['hunk', 'hunk', 'hunk', 'del', 'add', 'line']);
  expect(lines.map((l) => l.text).join('\n')).toContain('\n-old\n+new\n same');
});

test('CSV quotes where it must, and holds no formulas', () => {
  expect(toCsv([['a', 'b "c"', 'd,e'], ['1\n2', '=HYPERLINK(1)', '-5'], ['@x', '+1', '-a']]))
    .toBe('a,"b ""c""","d,e"\r\n"1\n2",\'=HYPERLINK(1),-5\r\n\'@x,+1,\'-a\r\n');
});
