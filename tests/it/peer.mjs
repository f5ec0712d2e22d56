// A small C program from this directory, spoken to in lines.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const build =
  process.env.MO_BUILD ??
  fileURLToPath(new URL('../../build-asan', import.meta.url));

export class Peer {
  constructor(name, ...args) {
    this.child = spawn(join(build, 'tests/it', name), args.map(String), {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.lines = createInterface({ input: this.child.stdout })[
      Symbol.asyncIterator
    ]();
    this.exit = once(this.child, 'exit');
  }

  /** The next line it prints; undefined at its end. */
  async line() {
    const { value } = await this.lines.next();
    return value;
  }

  send(line) {
    this.child.stdin.write(`${line}\n`);
  }

  ask(line) {
    this.send(line);
    return this.line();
  }

  /** Everything up to and without a line that is `last`. */
  async until(last) {
    const seen = [];
    for (;;) {
      const line = await this.line();
      if (line === last || line === undefined) return seen;
      seen.push(line);
    }
  }

  /** End of its input; resolves to its exit status. */
  async stop() {
    this.child.stdin.end();
    const [code] = await this.exit;
    return code;
  }
}
