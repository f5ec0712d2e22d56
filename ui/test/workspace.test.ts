import { describe, expect, test } from 'vitest';

import { filesOfTurns, freeName, kindOf, rowsOf, safeName, splitAttachments, withAttachments } from '../src/lib/workspace';

describe('attachments of a message', () => {
  test('what is named is found again', () => {
    for (const text of ['', 'look', 'two\n\nparts\n- uploads/not.me']) {
      for (const paths of [[], ['uploads/a b.png'], ['uploads/a', 'uploads/ü-2.csv']])
        expect(splitAttachments(withAttachments(text, paths))).toEqual({ text, paths });
    }
  });
  test('other lists are text', () => {
    for (const text of ['Attached files:\n- /etc/passwd', 'Attached files:\n', 'Attached files:\n- uploads/a\nand more', 'x\nAttached files:\n- uploads/a'])
      expect(splitAttachments(text)).toEqual({ text, paths: [] });
  });
});

test('names that the workspace takes', () => {
  expect(safeName('a/b\\c\n.txt')).toBe('a_b_c_.txt');
  expect(safeName('..')).toBe('_');
  expect(safeName('')).toBe('file');
  expect(safeName(`${'n'.repeat(300)}.png`)).toBe(`${'n'.repeat(96)}.png`);
  expect(safeName('archive.tar.gz')).toBe('archive.tar.gz');
  expect(freeName('a.txt', new Set(['a.txt', 'a-2.txt']))).toBe('a-3.txt');
  expect(freeName('Makefile', new Set(['Makefile']))).toBe('Makefile-2');
});

test('rows of a table', () => {
  expect(rowsOf('a,b\r\n"x, ""y""","line\nbreak"\n', ',', 9)).toEqual([['a', 'b'], ['x, "y"', 'line\nbreak']]);
  expect(rowsOf('1\t2\n3', '\t', 9)).toEqual([['1', '2'], ['3']]);
  expect(rowsOf('1\n2\n3\n', ',', 2)).toEqual([['1'], ['2']]);
  expect(rowsOf('', ',', 2)).toEqual([]);
});

test('kinds', () => {
  expect(['x.PNG', 'a.svg', 'b.csv', 'c.html', 'd.pdf', 'e.py', 'Makefile'].map(kindOf))
    .toEqual(['image', 'image', 'table', 'frame', 'frame', 'text', 'text']);
});

test('files belong to the turn that changed them last', () => {
  const f = (name: string, mtime: number) => ({ name, type: 'file', size: 1, mtime });
  const turns = [{ id: 'a', from: 10, to: 20 }, { id: 'b', from: 30, to: 40 }];
  const got = filesOfTurns(turns, [
    f('one', 10), f('two', 20), f('between', 25), f('three', 35), f('uploads/x', 35), f('.git/HEAD', 35), f('src/node_modules/y', 12), f('late', 41),
  ]);
  expect([...got].map(([id, v]) => [id, v.map((e) => e.name)])).toEqual([['b', ['three']], ['a', ['two', 'one']]]);
});
