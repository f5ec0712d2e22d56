// highlight - splits code into comments, strings, numbers and common keywords.
// One scanner for all languages; unknown languages keep their text. A diff is split
// into its lines, without their line ends.

export type Mark = '' | 'comment' | 'string' | 'number' | 'word' | 'add' | 'del' | 'hunk' | 'line';

export interface Token {
  text: string;
  mark: Mark;
}

const WORDS = new Set(
  ('abstract and as assert async await begin bool boolean break byte case ' +
  'catch char class const continue def default defer del do done double ' +
  'elif else elsif end enum esac except export extends extern false fi ' +
  'final finally float fn for foreach from func function go if impl import ' +
  'in instanceof int interface is lambda let local long loop match mod ' +
  'module mut namespace new nil none None not null of or package pass ' +
  'private protected pub public raise return select self set short signed ' +
  'sizeof static string struct super switch then this throw trait true ' +
  'True False try type typedef typeof undefined union unless unsigned until ' +
  'use using var void volatile when where while with yield').split(' '),
);

const HASH = /^(sh|bash|shell|zsh|console|py|python|rb|ruby|yaml|yml|toml|make|makefile|perl|r|conf|ini|dockerfile)$/;
const DASH = /^(sql|lua|haskell|hs|ada)$/;
const PLAIN = /^(text|txt|plain|output|log|markdown|md)?$/;

function scanner(lang: string): RegExp {
  const comment = HASH.test(lang)
    ? '#[^\\n]*'
    : DASH.test(lang)
      ? '--[^\\n]*'
      : '\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)|<!--[\\s\\S]*?(?:-->|$)';
  const string =
    '"(?:\\\\.|[^"\\\\\\n])*"?|\'(?:\\\\.|[^\'\\\\\\n])*\'?|`(?:\\\\.|[^`\\\\])*`?';
  return new RegExp(
    `(${comment})|(${string})|(\\b\\d[\\w.]*)|([A-Za-z_]\\w*)`, 'g',
  );
}

function diffMark(line: string): Mark {
  if (/^(@@|diff |index |---( |$)|\+\+\+( |$))/.test(line)) return 'hunk';
  return line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : 'line';
}

export function highlight(code: string, lang: string): Token[] {
  const name = lang.toLowerCase();
  if (/^(diff|patch|udiff)$/.test(name))
    return code.split('\n').map((text) => ({ text, mark: diffMark(text) }));
  if (PLAIN.test(name)) return [{ text: code, mark: '' }];
  const out: Token[] = [];
  let from = 0;
  const push = (text: string, mark: Mark) => {
    const last = out[out.length - 1];
    if (last && last.mark === mark) last.text += text;
    else if (text) out.push({ text, mark });
  };
  for (const m of code.matchAll(scanner(name))) {
    push(code.slice(from, m.index), '');
    from = m.index + m[0].length;
    if (m[1] !== undefined) push(m[0], 'comment');
    else if (m[2] !== undefined) push(m[0], 'string');
    else if (m[3] !== undefined) push(m[0], 'number');
    else push(m[0], WORDS.has(m[0]) ? 'word' : '');
  }
  push(code.slice(from), '');
  return out;
}
