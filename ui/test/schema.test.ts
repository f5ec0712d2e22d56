import { expect, test } from 'vitest';
import { definitionText, draftOf, fieldsOf, valuesOf } from '../src/lib/schema';

const SCHEMA = {
  type: 'object',
  required: ['name', 'sure'],
  properties: {
    name: { type: 'string', title: 'Your name' },
    mail: { type: ['string', 'null'], format: 'email' },
    age: { type: 'integer', default: 3 },
    sure: { type: 'boolean' },
    loud: { type: 'boolean' },
    kind: { enum: ['a', 2, null], enumNames: ['the first'] },
    hue: { oneOf: [{ const: '#f00', title: 'Red' }, { const: '#0f0' }] },
    many: { type: 'array', items: { enum: ['x', 'y'] } },
    deep: { type: 'object' },
    odd: true,
  },
};

test('a field for every member, of the right kind', () => {
  const fields = fieldsOf(SCHEMA);
  expect(fields.map((f) => `${f.key} ${f.kind}`)).toEqual([
    'name text', 'mail text', 'age integer', 'sure boolean', 'loud choice',
    'kind choice', 'hue choice', 'many choices', 'deep json', 'odd json',
  ]);
  expect(fields[1]?.input).toBe('email');
  expect(fields[5]?.choices.map((c) => c.label)).toEqual(['the first', '2', 'null']);
  expect(draftOf(fields)).toMatchObject({ age: '3', sure: false, many: [] });
});

test('values as their types, what is not given is left out', () => {
  const fields = fieldsOf(SCHEMA);
  const draft = draftOf(fields);
  expect(valuesOf(fields, draft)).toEqual({
    values: { age: 3, sure: false }, wrong: { name: 'This field is required.' },
  });
  Object.assign(draft, {
    name: ' a ', age: '7', loud: '1', kind: '1', hue: '0', many: [1], deep: '{"x":1}', odd: 'null',
  });
  expect(valuesOf(fields, draft)).toEqual({
    values: {
      name: ' a ', age: 7, sure: false, loud: false, kind: 2, hue: '#f00',
      many: ['y'], deep: { x: 1 }, odd: null,
    },
    wrong: {},
  });
});

test.each([
  ['age', '1.5', /whole/], ['age', 'x', /number/], ['deep', '{', /JSON|Expected/],
])('%s: %s is wrong', (key, text, why) => {
  const fields = fieldsOf(SCHEMA);
  expect(valuesOf(fields, { ...draftOf(fields), name: 'a', [key]: text }).wrong[key]).toMatch(why);
});

test('what is no schema of an object has no fields', () => {
  for (const v of [null, 1, 'x', [], { properties: [] }, {}]) expect(fieldsOf(v)).toEqual([]);
});

test('a definition as text holds all that a model reads', () => {
  const text = definitionText({ description: 'd', inputSchema: { type: 'object' }, annotations: null });
  expect(text).toBe('d\n\ninputSchema: {\n  "type": "object"\n}');
});
