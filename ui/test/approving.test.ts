import { describe, expect, test } from 'vitest';
import { claimsOf } from '../src/lib/effect';
import { isInView } from '../src/lib/seen';
import { plainName } from '../src/composables/useNotify';

describe('in view', () => {
  const view = { top: 100, bottom: 500 };
  test.each([
    ['inside', 150, 250, true],
    ['exactly', 100, 500, true],
    ['above', -300, 90, false],
    ['its end only', -300, 150, false],
    ['its start only', 480, 700, false],
    ['larger, most of the view', -100, 400, true],
    ['larger, its last quarter', -900, 200, false],
    ['touches the edge', 500, 600, false],
  ])('%s', (_name, top, bottom, want) => {
    expect(isInView({ top, bottom }, view)).toBe(want);
  });
});

describe('claims', () => {
  const labels = (a: Record<string, unknown> | null, network = '') => claimsOf(a, network).map((c) => c.label);
  test('of a server are claims', () => {
    expect(labels({ readOnlyHint: true, openWorldHint: true })).toEqual(['read-only', 'external access']);
    expect(labels({})).toEqual(['can modify data']);
    expect(labels(null)).toEqual([]);
  });
  test('of the box are what the sandbox can do', () => {
    const open = { openWorldHint: true, destructiveHint: false };
    expect(labels(open, 'none')).toEqual(['runs in the sandbox']);
    expect(labels(open, 'ask')).toEqual(['runs in the sandbox, asks before it connects']);
    expect(labels(open, 'some')).toEqual(['runs in the sandbox, with network access']);
  });
  test('reading and the closed sandbox are nothing to be careful about', () => {
    expect(claimsOf({ readOnlyHint: true }, 'none').map((c) => c.isCalm)).toEqual([true, true]);
    expect(claimsOf({}, 'some').map((c) => c.isCalm ?? false)).toEqual([false, false]);
  });
});

test('names in a notification are short and plain', () => {
  expect(plainName('write_file')).toBe('write_file');
  expect(plainName('a\u202eb\u200bc')).toBe('abc');
  expect(plainName('x'.repeat(100))).toHaveLength(61);
});
