import { describe, expect, test } from 'vitest';
import { plainText, readInline, readMarkdown, safeHref } from '../src/lib/markdown';

const kinds = (text: string) => readMarkdown(text).map((b) => b.t);

describe('blocks', () => {
  test.each([
    ['', []],
    ['one\ntwo\n\nthree', ['p', 'p']],
    ['# a\n## b', ['h', 'h']],
    ['```js\nlet a;\n```\nafter', ['code', 'p']],
    ['- a\n- b\n\n1. c', ['list', 'list']],
    ['> a\n> b', ['quote']],
    ['| a | b |\n|---|---|\n| 1 | 2 |', ['table']],
    ['---', ['hr']],
    ['text\n- item', ['p', 'list']],
    ['<script>alert(1)</script>', ['p']],
  ])('%j', (text, want) => {
    expect(kinds(text)).toEqual(want);
  });

  test('an open fence is code already', () => {
    expect(readMarkdown('```sh\nls')).toEqual([
      { t: 'code', lang: 'sh', text: 'ls', open: true },
    ]);
  });
  test('nested lists, tasks, numbers', () => {
    const [list] = readMarkdown('3. a\n   - b\n4. [x] c');
    expect(list).toMatchObject({
      t: 'list', ordered: true, start: 3,
      items: [{ kids: [{ t: 'p' }, { t: 'list', ordered: false }] },
        { task: 'done' }],
    });
  });
  test('a thousand quotes deep ends', () => {
    expect(readMarkdown('>'.repeat(5000) + 'x')).toHaveLength(1);
    expect(readMarkdown(`${'- '.repeat(5000)}x`)).toHaveLength(1);
  });
  // A regular expression that runs away would never come back from these.
  test.each(['*', '_', '[', '`', '**a', '![', '|-', 'a_', '[](', '\\', '$', '$$', '\\(', '\\[', '[^', '$$\n', '\\[\n'])(
    'thousands of %s come to an end', (s) => {
      expect(readMarkdown(s.repeat(3000)).length).toBeGreaterThan(0);
    });
});

describe('inline', () => {
  test.each([
    ['a `b` c', ['text', 'code', 'text']],
    ['**b** and *i* and ~~d~~', ['strong', 'text', 'em', 'text', 'del']],
    ['snake_case_name', ['text']],
    ['[x](https://a.b/c)', ['link']],
    ['[x](javascript:alert(1))', ['text']],
    ['![p](https://a.b/c.png)', ['link']],
    ['see https://a.b/c.', ['text', 'link', 'text']],
    ['\\*no\\*', ['text']],
    ['<img src=x onerror=alert(1)>', ['text']],
  ])('%j', (text, want) => {
    expect(readInline(text).map((n) => n.t)).toEqual(want);
  });
});

describe('maths', () => {
  test.each([
    ['$a\\,b$', 'a\\,b', false],
    ['\\(a\\,b\\)', 'a\\,b', false],
    ['$$x^2$$', 'x^2', true],
    ['\\[ x \\\\[2pt] y \\]', 'x \\\\[2pt] y', true],
    ['$5 + 3$', '5 + 3', false],
    ['$12$', '12', false],
  ])('%j', (text, tex, display) => {
    expect(readInline(text)).toEqual([{ t: 'math', tex, display }]);
  });
  test.each(['it costs $5 and $10', '$5-$10', 'from $5, or 4$ less', '`$a$`', '\\$a$', '$ a$', 'US$a and b$c'])(
    '%j has none', (text) => {
      expect(readInline(text).some((n) => n.t === 'math')).toBe(false);
    });
  test.each([
    ['$$\nx\n$$\nafter', ['math', 'p'], 'x', false],
    ['before\n\\[\nx\n\\]', ['p', 'math'], 'x', false],
    ['\\begin{align}\na &= b\n\\end{align}', ['math'], '\\begin{align}\na &= b\n\\end{align}', false],
    ['```math\nx\n```', ['math'], 'x', false],
    ['$$\nx +', ['math'], 'x +', true],
  ])('block %j', (text, want, tex, open) => {
    const blocks = readMarkdown(text);
    expect(blocks.map((b) => b.t)).toEqual(want);
    expect(blocks.find((b) => b.t === 'math')).toEqual({ t: 'math', tex, open });
  });
  test('text behind the end makes a paragraph', () => {
    expect(kinds('$$x$$ is small')).toEqual(['p']);
  });
});

test('columns of a table are aligned', () => {
  const [table] = readMarkdown('| a | b | c | d |\n|---|:--|:-:|--:|\n| 1 | 2 | 3 | 4 |');
  expect(table).toMatchObject({ t: 'table', align: ['', 'left', 'center', 'right'] });
});

describe('footnotes', () => {
  test('are numbered and come last', () => {
    const blocks = readMarkdown('one[^b] two[^a]\n\n[^b]: bee\n[^a]: *ay*\n\nmore');
    expect(blocks.map((b) => b.t)).toEqual(['p', 'p', 'notes']);
    expect(blocks[0]).toMatchObject({ kids: [{ text: 'one' }, { t: 'ref', n: 1 }, { text: ' two' }, { t: 'ref', n: 2 }] });
  });
  test('without a definition and inside code they stay text', () => {
    expect(readInline('a[^x]')).toEqual([{ t: 'text', text: 'a[^x]' }]);
    expect(readMarkdown('```\n[^x]: y\n```')).toMatchObject([{ t: 'code', text: '[^x]: y' }]);
  });
});

test('the plain text of a cell', () => {
  expect(plainText(readInline('**a** `b` $c$ [d](https://e.f)'))).toBe('a b c d');
});

test.each([
  ['https://a.b', 'https://a.b'], ['HTTP://a.b', 'HTTP://a.b'],
  ['mailto:a@b.c', 'mailto:a@b.c'], ['javascript:alert(1)', ''],
  ['java\nscript:alert(1)', ''], ['data:text/html,x', ''],
  ['vbscript:x', ''], ['//a.b', ''], ['/api/x', ''], ['\u0001https://a', 'https://a'],
])('href %j', (href, want) => {
  expect(safeHref(href)).toBe(want);
});
