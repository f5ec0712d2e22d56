import { describe, expect, test } from 'vitest';
import { readMarkdown, type Block } from '../src/lib/markdown';
import { settle, settleInline } from '../src/lib/streaming';

const TEXT = [
  '# A heading', 'Words with **bold text**, `code`, *slanted* and [a link](https://a.b/c).',
  '| name | number |\n|:--|--:|\n| one | 1 |\n| two | 2 |',
  '```js\nlet a = `x`;\n```', '$$\n\\frac{a}{b}\n$$', '> quoted', '1. first\n2. second\n   - inner',
  '- [x] done', '```mermaid\nflowchart LR\n```', 'The end.',
].join('\n\n');
const kinds = (all: Block[]) => all.map((b) => b.t);

describe('a text that is being written', () => {
  const whole = kinds(readMarkdown(TEXT));
  test('every block is from its beginning what it will be', () => {
    for (let n = 1; n <= TEXT.length; n++) {
      const got = kinds(readMarkdown(settle(TEXT.slice(0, n))));
      expect(got, JSON.stringify(TEXT.slice(Math.max(0, n - 30), n))).toEqual(whole.slice(0, got.length));
    }
  });
  test('it ends as it is', () => {
    expect(settle(TEXT)).toBe(TEXT);
  });
  test('no text that was shown is taken back, but for marks', () => {
    const words = (n: number) => JSON.stringify(readMarkdown(settle(TEXT.slice(0, n)))).match(/bold|slanted|link|quoted|second|number/g)?.length ?? 0;
    for (let n = 2; n <= TEXT.length; n++) expect(words(n)).toBeGreaterThanOrEqual(words(n - 1));
  });
});

test.each([
  ['a **b', 'a **b**'], ['a **b*', 'a **b**'], ['a **', 'a '], ['a `b', 'a `b`'], ['a *b', 'a *b*'],
  ['see [a li', 'see a li'], ['see [a](https://b', 'see a'], ['2 * 3', '2 * 3'], ['~~x', '~~x~~'],
  ['`a ** b`', '`a ** b`'], ['plain', 'plain'], ['a\\', 'a\\'],
])('%j becomes %j', (text, want) => {
  expect(settleInline(text)).toBe(want);
});
