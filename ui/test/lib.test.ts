import { describe, expect, test } from 'vitest';
import { excerptOf } from '../src/lib/searchExcerpt';
import { readAnsi, stripAnsi } from '../src/lib/ansi';
import { list, num, object, or, str, WireError } from '../src/lib/check';
import { countDiff, diffLines, foldSame } from '../src/lib/diff';
import { briefOf, claimsOf, effectOf, quoteWord } from '../src/lib/effect';
import { count, countdown, dayOf, duration, newId } from '../src/lib/format';
import { changeOf, lastSeen } from '../src/lib/files';
import { highlight } from '../src/lib/highlight';
import { LINES_MAX, Output } from '../src/lib/output';
import { textContent } from '../src/protocol';
import { countOdd, reveal } from '../src/lib/reveal';

describe('reveal: nothing hides', () => {
  test.each([
    ['plain text\n\twith é and 漢字', 0],
    ['a\u202Eb', 1], ['a\u200Bb\u200D', 2], ['\u0000\u001B[31m', 2],
    ['caf\u00ADe', 1], ['\u{E0041}', 1], ['\r\n', 1], ['\uD800', 1],
    ['\uFEFFx', 1], ['a\u00A0b', 1], ['\u3164', 1],
  ])('%j has %d', (text, n) => {
    expect(countOdd(text)).toBe(n);
    expect(reveal(text).filter((p) => p.odd)).toHaveLength(n);
  });
  test('the name says what it is', () => {
    expect(reveal('\u202E')).toEqual([
      { text: 'U+202E', odd: 'U+202E right-to-left override' },
    ]);
  });
});

describe('ansi', () => {
  test('colours, and nothing else, survive', () => {
    const [spans] = readAnsi('\u001b[1;31mbad\u001b[0m ok\u001b[2K\u001b]0;t\u0007!');
    expect(spans.map((s) => [s.text, s.fg, s.bold])).toEqual([
      ['bad', 'red', true], [' ok', '', false], ['!', '', false],
    ]);
  });
  test.each([
    ['\u001b[38;5;196mx', '#ff0000'], ['\u001b[38;2;1;2;3mx', '#010203'],
    ['\u001b[92mx', 'bright-green'], ['\u001b[38;5;9mx', 'bright-red'],
  ])('%j', (text, fg) => {
    expect(readAnsi(text)[0][0]?.fg).toBe(fg);
  });
  test('strip', () => expect(stripAnsi('\u001b[31ma\u001b[m')).toBe('a'));
});

describe('output', () => {
  test('chunks make lines, wherever they are cut', () => {
    const o = new Output();
    for (const c of ['a', 'b\nc', '\n', 'd\r\n', '10%\r20%\r30%\n']) o.add(c);
    expect(o.lines).toEqual(['ab', 'c', 'd', '30%']);
  });
  test('the oldest go', () => {
    const o = new Output();
    o.add('x\n'.repeat(LINES_MAX + 5));
    expect([o.lines.length, o.dropped]).toEqual([LINES_MAX, 5]);
  });
});

describe('diff', () => {
  test('one changed line among equal ones', () => {
    const d = diffLines('a\nb\nc\n', 'a\nB\nc\n');
    expect(d.map((l) => l.kind)).toEqual(['same', 'del', 'add', 'same']);
    expect(countDiff(d)).toEqual({ add: 1, del: 1 });
  });
  test('a new file is all added', () => {
    expect(diffLines('', 'a\nb').map((l) => l.kind)).toEqual(['add', 'add']);
  });
  test('far lines fold', () => {
    const a = Array.from({ length: 50 }, (_, i) => `${i}`).join('\n');
    const d = foldSame(diffLines(a, a.replace('25', 'x')));
    expect(d[0]).toEqual({ kind: 'gap', text: '22 lines', no: 0 });
    expect(d.filter((l) => l.kind === 'same')).toHaveLength(6);
  });
  test('huge texts are replaced as a whole', () => {
    const a = 'a\n'.repeat(3000);
    expect(countDiff(diffLines(a, `${a}b`))).toEqual({ add: 3001, del: 3000 });
  });
});

describe('effect', () => {
  test.each([
    ['execute_command', { command: 'ls' }, { kind: 'command', line: 'ls', shell: true }],
    ['box_execute_command', { argv: ['a b', 'c'] }, { kind: 'command', line: "'a b' c", shell: false }],
    ['write_file', { path: 'p', content: 'c' }, { kind: 'write', path: 'p', content: 'c' }],
    ['edit_file', { path: 'p', old_string: 'a', new_string: 'b', replace_all: true }, { kind: 'edit', all: true }],
    ['anything', {}, { kind: 'other' }],
    ['write_file', { path: 7 }, { kind: 'other' }],
    ['edit_file', { path: 'a', edits: [{ oldText: 'x', newText: 'y' }] }, { kind: 'other' }],
  ])('%s', (name, args, want) => {
    expect(effectOf(name, args)).toMatchObject(want);
  });
  test('words for a shell', () => {
    expect(quoteWord("it's")).toBe("'it'\\''s'");
  });
  test('brief', () => {
    expect(briefOf({ path: 'a' })).toBe('a');
    expect(briefOf({ n: 1 })).toBe('{"n":1}');
    expect(briefOf({})).toBe('');
  });
  test('claims are the server\'s', () => {
    expect(claimsOf(null)).toEqual([]);
    expect(claimsOf({ readOnlyHint: true }).map((c) => c.label)).toEqual(['read-only']);
    expect(claimsOf({ openWorldHint: true })).toHaveLength(2);
  });
});

describe('check', () => {
  const c = object({ a: str, b: or(list(num), []) });
  test('more is ignored, absent has its value', () => {
    expect(c({ a: 'x', z: 1 }, 't')).toEqual({ a: 'x', b: [] });
  });
  test.each([[null], [[]], [{}], [{ a: 1 }], [{ a: '', b: ['x'] }]])('%j is refused', (v) => {
    expect(() => c(v, 't')).toThrow(WireError);
  });
  test('the place is named', () => {
    expect(() => c({ a: '', b: [1, 'x'] }, 't')).toThrow('t.b[1]: expected a number');
  });
});

describe('format', () => {
  test.each([[5, '5 ms'], [1500, '1.5 s'], [61_000, '1 min 1 s']])('%d', (n, s) =>
    expect(duration(n)).toBe(s));
  test.each([[581_000, '9:41'], [-5, '0:00'], [999, '0:01']])('%d left', (n, s) =>
    expect(countdown(n)).toBe(s));
  test.each([[999, '999'], [3100, '3.1K'], [2_500_000, '2.5M']])('%d', (n, s) =>
    expect(count(n)).toBe(s));
  test('days', () => {
    const now = new Date(2026, 5, 15, 12).getTime();
    expect([0, 1].map((d) => dayOf(now - d * 86_400_000, now))).toEqual(['Today', 'Yesterday']);
  });
  test('names are 128 random bits', () => {
    const all = new Set(Array.from({ length: 100 }, newId));
    expect(all.size).toBe(100);
    expect([...all].every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
  });
});

test('highlighting loses no character', () => {
  for (const lang of ['c', 'sh', 'sql', '', 'x'])
    for (const code of ['int a = 1; // b', '# x "y', '/* open', "'", '`a\n`'])
      expect(highlight(code, lang).map((t) => t.text).join('')).toBe(code);
});

describe('files: what was last seen', () => {
  const call = (name: string, args: object, text = '', state = 'done') => ({
    name, args: args as Record<string, unknown>, state,
    content: [textContent(text)],
  });
  const write = call('write_file', { path: 'a', content: 'x\ny\n' });
  const edit = { path: 'a', old_string: 'y', new_string: '$&z' };
  test('written, edited, read', () => {
    expect(lastSeen([write], 'a')).toBe('x\ny\n');
    expect(lastSeen([write], 'b')).toBe(null);
    expect(lastSeen([write, call('edit_file', edit)], 'a')).toBe('x\n$&z\n');
    expect(lastSeen([call('read_file', { path: 'a' }, 'r')], 'a')).toBe('r');
    expect(lastSeen([call('read_file', { path: 'a', limit: 1 }, 'r')], 'a')).toBe(null);
  });
  test('what failed or waits has not happened', () => {
    expect(lastSeen([{ ...write, state: 'failed' }], 'a')).toBe(null);
  });
  test('a change against the file, or against the piece alone', () => {
    expect(changeOf([write], 'edit_file', edit)).toEqual(
      { before: 'x\ny\n', after: 'x\n$&z\n', known: true });
    expect(changeOf([], 'edit_file', edit)).toEqual(
      { before: 'y', after: '$&z', known: false });
    expect(changeOf([], 'write_file', { path: 'a', content: 'c' })).toEqual(
      { before: '', after: 'c', known: false });
    expect(changeOf([], 'execute_command', { command: 'ls' })).toBe(null);
  });
});

test.each([
  [{ blocks: [{ type: 'text', text: 'the blue\n teapot' }] }, 'TEAPOT', ['the blue ', 'teapot', '']],
  [{ results: [{ content: [{ text: 'x'.repeat(40) + 'needle' }] }] }, 'needle', ['…' + 'x'.repeat(24), 'needle', '']],
  [{ blocks: [{ text: 'two words' }] }, 'words two', ['two ', 'words', '']],
  [{ blocks: [{ text: 'stemmed' }] }, 'other', ['stemmed', '', '']],
  [null, 'x', ['', '', '']],
])('the words around what was found', (entry, words, [before, match, after]) => {
  expect(excerptOf(entry, words)).toEqual({ before, match, after });
});
