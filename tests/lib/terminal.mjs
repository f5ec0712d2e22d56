// A program in a pseudo-terminal, with a person who reads and types.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { until, within } from '../it/server.mjs';

const PTY = 'import pty,sys,os; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))';

export class Terminal {
  constructor(command, options) {
    this.child = spawn('python3', ['-c', PTY, ...command], options);
    this.out = '';
    for (const s of [this.child.stdout, this.child.stderr]) s.on('data', (d) => (this.out += d));
    this.exit = once(this.child, 'close').then(([code]) => code);
  }

  /** Wait until that is on the screen; its match. */
  async sees(what) {
    const re = new RegExp(what);
    await until(() => re.test(this.out) || this.child.exitCode !== null, { toString: () => `${what} in:\n${this.out}` }, 30_000);
    const match = this.out.match(re);
    assert.ok(match, `${what} is not in:\n${this.out}`);
    return match;
  }

  type(text) {
    this.child.stdin.write(text);
  }

  async end() {
    const code = await within(this.exit, { toString: () => `the end:\n${this.out}` }, 60_000)
      .finally(() => this.child.kill('SIGKILL'));
    assert.doesNotMatch(this.out, /runtime error|Sanitizer/);
    return code;
  }
}
