import { describe, expect, test } from 'vitest';
import { decodedSize, gridOf, partsOf } from '../src/lib/results';
import { EVENTS, textContent, type Content } from '../src/protocol';

const read = (content: unknown[]): Content[] => EVENTS['tool:output'][0](JSON.stringify(content), '') as Content[];
const kinds = (content: unknown[]) => partsOf(read(content)).map((p) => p.kind);

describe('parts of a result', () => {
  test.each([
    [[{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }], ['text']],
    [[{ type: 'image', data: 'AA==', mimeType: 'image/png' }], ['image']],
    [[{ type: 'image', data: 'AA==', mimeType: 'image/svg+xml' }], ['text']],
    [[{ type: 'image', data: 'AA==', mimeType: 'image/png;x,<script>' }], ['text']],
    [[{ type: 'audio', data: 'AA==', mimeType: 'audio/wav' }], ['audio']],
    [[{ type: 'audio', data: 'AA==', mimeType: 'text/html' }], ['text']],
    [[{ type: 'resource', resource: { uri: 'file:///a/b.txt', text: 'hi' } }], ['resource']],
    [[{ type: 'resource_link', uri: 'file:///a', name: 'a' }], ['link']],
    [[{ type: 'text', text: '{"a":1}' }, { type: 'text', text: 'x' }], ['data', 'text']],
    [[{ type: 'text', text: '[1,2]' }], ['text']],
    [[{ type: 'text', text: '{not json' }], ['text']],
  ])('%j', (content, want) => {
    expect(kinds(content)).toEqual(want);
  });
  test('a resource has a name and a size', () => {
    expect(partsOf(read([{ type: 'resource', resource: { uri: 'file:///a/b.bin', blob: 'AAAA', mimeType: 'x/y' } }])))
      .toMatchObject([{ kind: 'resource', name: 'b.bin', size: 3, mimeType: 'x/y' }]);
    expect(partsOf(read([{ type: 'resource_link', uri: 'demo://x/1', name: 'n', title: 'T', size: 9 }])))
      .toMatchObject([{ kind: 'link', name: 'T', size: 9, uri: 'demo://x/1' }]);
  });
  test('texts that follow each other are one', () => {
    expect(partsOf([textContent('a'), textContent('b')])).toEqual([{ kind: 'text', text: 'a\nb' }]);
  });
});

describe('structured content as rows', () => {
  test.each([
    [[{ a: 1, b: 'x' }, { a: 2, c: { d: 1 } }], { columns: ['a', 'b', 'c'], rows: [['1', 'x', ''], ['2', '', '{"d":1}']] }],
    [{ result: [{ a: 1 }] }, { columns: ['a'], rows: [['1']] }],
    [{ temperature: 3, unit: null }, { columns: [], rows: [['temperature', '3'], ['unit', '']] }],
    [[1, 2], null], [[], null], ['x', null], [{}, null],
    [Array.from({ length: 501 }, () => ({ a: 1 })), null],
  ])('%j', (value, want) => {
    expect(gridOf(value)).toEqual(want);
  });
});

test.each([['', 0], ['AA==', 1], ['AAA=', 2], ['AAAA', 3]])('%j stands for %d bytes', (text, n) => {
  expect(decodedSize(text)).toBe(n);
});
