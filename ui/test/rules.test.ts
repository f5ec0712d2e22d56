import { expect, test } from 'vitest';
import { draftRule, readArgs } from '../src/lib/rules';

test.each([
  ['{"a": 1}', { a: 1 }], ['', {}], [' {} ', {}], ['[]', null], ['1', null], ['{', null], ['null', null],
])('arguments %j', (text, args) => {
  const read = readArgs(text);
  expect(read.value).toEqual(args);
  expect(read.wrong !== '').toBe(args === null);
});

test('a draft says what was typed, once it says enough', () => {
  expect(draftRule('box', 'read', '', [])).toBeNull();
  expect(draftRule('box', ' ', 'allow', [])).toBeNull();
  expect(draftRule(' box ', 'read', 'deny', [])).toEqual({ server: 'box', tool: 'read', action: 'deny' });
  expect(draftRule('box', 'read', 'allow', [{ path: ' path ', cond: 'docs/**' }, { path: '', cond: 'x' }]))
    .toEqual({ server: 'box', tool: 'read', action: 'allow', args: { path: 'docs/**' } });
});
