// commandLine - a command line as the words it is made of, without a shell: quotes
// group, a backslash takes the next letter as it is. What a shell would do
// beyond that (variables, stars, pipes) is not done.

/** null: a quote is not closed. */
export function splitWords(line: string): string[] | null {
  const out: string[] = [];
  let word = '';
  let open = false; // a word has begun, be it empty
  let quote = '';
  for (let i = 0; i < line.length; i++) {
    const c = line.charAt(i);
    if (c === '\\' && quote !== "'" && i + 1 < line.length) {
      word += line.charAt(++i);
      open = true;
    } else if (quote ? c === quote : c === '"' || c === "'") {
      quote = quote ? '' : c;
      open = true;
    } else if (!quote && /\s/.test(c)) {
      if (open) out.push(word);
      word = '';
      open = false;
    } else {
      word += c;
      open = true;
    }
  }
  if (quote) return null;
  if (open) out.push(word);
  return out;
}

/** Does a variable or header of that name hold a key, by its name? */
export const soundsSecret = (name: string): boolean =>
  /(^|[_-])(api[_-]?key|key|token|secret|password|passwd|pwd|credentials?|auth|authorization|cookie)$/i.test(name.trim());
