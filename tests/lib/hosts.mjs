// Names of a test that the program under test resolves.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A command that sees this /etc/hosts: {"a.test": "127.0.0.1"}. Needs root. dir:
 * where the file goes.
 */
export function withHosts(dir, names, command) {
  const file = join(dir, 'hosts');
  writeFileSync(file, `127.0.0.1 localhost\n${Object.entries(names).map(([n, a]) => `${a} ${n}\n`).join('')}`);
  return ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', file, ...command];
}
