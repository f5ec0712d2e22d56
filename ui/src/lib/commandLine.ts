// commandLine - splits a command line into words without a shell: quotes group,
// a backslash escapes. Variables, globs and pipes are not expanded.

/** Returns null if a quote is not closed. */
export function splitWords(line: string): string[] | null {
  const out: string[] = [];
  let word = '';
  let open = false; // inside a word, which may be empty
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

/** True if the name of a variable or header suggests a secret. */
export const soundsSecret = (name: string): boolean =>
  /(^|[_-])(api[_-]?key|key|token|secret|password|passwd|pwd|credentials?|auth|authorization|cookie)$/i.test(name.trim());
