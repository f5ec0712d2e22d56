import { expect, test } from 'vitest';
import { daysLeft, inOrder, rolesUpTo, usualRole, viewNames } from '../src/lib/tokens';
import { readNewToken, readTokens, type Token } from '../src/protocol';

const token = (id: string, created: number, expires: number): Token => ({
  id, owner: 'alice', name: id, role: 'user', views: [], created, expires, used: 0,
});

test.each([
  ['none', [], ''], ['viewer', ['viewer'], 'viewer'], ['user', ['viewer', 'user'], 'user'],
  ['operator', ['viewer', 'user', 'approver', 'operator'], 'user'],
])('a token of a %s has at most that role', (own, roles, usual) => {
  expect(rolesUpTo(own)).toEqual(roles);
  expect(usualRole(own)).toBe(usual);
});

test.each([
  ['', []], [' , ', []], ['docs', ['docs']], ['a, b  c,a', ['a', 'b', 'c']],
])('views %j', (text, names) => {
  expect(viewNames(text)).toEqual(names);
});

test('days that are left', () => {
  const day = 86_400_000;
  expect(daysLeft(token('x', 0, 5 * day), 0)).toBe(5);
  expect(daysLeft(token('x', 0, 1), 0)).toBe(1);
  expect(daysLeft(token('x', 0, 5), 5)).toBe(0);
});

test('valid ones first, the newest first', () => {
  const all = [token('old', 1, 100), token('over', 9, 5), token('new', 2, 100)];
  expect(inOrder(all, 10).map((x) => x.id)).toEqual(['new', 'old', 'over']);
});

test('what the server sends', () => {
  const wire = { id: 'a', owner: '', name: 'n', role: 'user', views: ['v'], created: 1, expires: 2 };
  expect(readTokens({ tokens: [wire] })).toEqual([{ ...wire, used: 0 }]);
  expect(readNewToken({ ...wire, token: 'mop_x' }).token).toBe('mop_x');
  expect(() => readNewToken(wire)).toThrow(/token/);
});
