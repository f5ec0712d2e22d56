import { describe, expect, test } from 'vitest';
import { readInline, readMarkdown, safeHref } from '../src/lib/markdown';

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
      { t: 'code', lang: 'sh', text: 'ls' },
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
  test.each(['*', '_', '[', '`', '**a', '![', '|-', 'a_', '[](', '\\'])(
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

test.each([
  ['https://a.b', 'https://a.b'], ['HTTP://a.b', 'HTTP://a.b'],
  ['mailto:a@b.c', 'mailto:a@b.c'], ['javascript:alert(1)', ''],
  ['java\nscript:alert(1)', ''], ['data:text/html,x', ''],
  ['vbscript:x', ''], ['//a.b', ''], ['/api/x', ''], ['\u0001https://a', 'https://a'],
])('href %j', (href, want) => {
  expect(safeHref(href)).toBe(want);
});
