import { expect, test } from 'vitest';
import { sampleEdit, sampleForm, samplePieces } from '../src/lib/sampling';

const asked = {
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'a' }, { type: 'image', mimeType: 'image/png', data: 'AA==' }] },
    { role: 'assistant', content: { type: 'text', text: 'b' } },
    { role: 'user', content: 'no block' },
  ],
  systemPrompt: 'be',
  maxTokens: 9,
};

test('texts, images and content that is no block', () => {
  const pieces = asked.messages.flatMap((m) => samplePieces(m));
  expect(pieces.map((p) => [p.role, p.text, p.isText])).toEqual([
    ['user', 'a', true], ['user', '[image image/png]', false], ['assistant', 'b', true], ['user', '"no block"', false],
  ]);
  expect(pieces[1]?.image).toBe('data:image/png;base64,AA==');
});

test('only the changed parts are sent', () => {
  const form = sampleForm(asked);
  expect(form).toEqual({ system: 'be', texts: ['a', 'b'], maxTokens: 9 });
  expect(sampleEdit(asked, form)).toBe(null);
  expect(sampleEdit(asked, { ...form, system: '' })).toEqual({ systemPrompt: '' });
  expect(sampleEdit(asked, { ...form, texts: ['a', 'c'] })).toEqual({ texts: ['a', 'c'] });
  expect(sampleEdit(asked, { ...form, maxTokens: 5 })).toEqual({ maxTokens: 5 });
});
