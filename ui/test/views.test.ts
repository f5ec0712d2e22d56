// The form of a view: what it reads from an entry, and what it writes back.
import { expect, test } from 'vitest';
import { entryOf, formOf } from '../src/lib/viewApi';
import { readGatewayView } from '../src/protocol';

const view = readGatewayView({
  name: 'v', readOnly: true, expose: 'all', role: 'user', rules: 1,
  onlyServers: ['a'], patterns: ['a/*', '!*/x'],
});

test('a view fills the form', () => {
  expect(formOf(view)).toEqual({ description: '', servers: ['a'], tools: 'a/*\n!*/x', readOnly: true });
  expect(formOf(null)).toEqual({ description: '', servers: [], tools: '', readOnly: false });
});

test('members that the form does not know stay', () => {
  const old = { rules: [{ tool: 'x', action: 'deny' }], people: ['ann'], expose: 'search', tools: ['b/*'] };
  expect(entryOf({ description: ' d ', servers: ['a'], tools: ' a/* \n\n !*/x', readOnly: false }, old))
    .toEqual({ rules: old.rules, people: ['ann'], expose: 'search', description: 'd', servers: ['a'], tools: ['a/*', '!*/x'] });
});

test('empty values are left out, not written as empty', () => {
  expect(entryOf(formOf(null), { description: 'old', servers: ['a'], tools: ['a/*'], readOnly: true })).toEqual({});
  expect(entryOf({ ...formOf(null), readOnly: true }, {})).toEqual({ readOnly: true });
});
