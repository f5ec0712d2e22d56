// output - the live output of a call as lines. Chunks may end inside a line. A
// carriage return overwrites the line, as on a terminal. Above LINES_MAX the
// oldest lines are dropped.

import { plain, readAnsi, stripAnsi, type Span, type Style } from './ansi';

export const LINES_MAX = 20_000;
const LINE_MAX = 8192;

export class Output {
  lines: string[] = [];
  dropped = 0;
  open = false; // the last line is incomplete

  add(chunk: string): void {
    const parts = chunk.split('\n');
    parts.forEach((part, i) => {
      const last = i === parts.length - 1;
      if (last && part === '') return;
      this.put(part, !last);
    });
    const over = this.lines.length - LINES_MAX;
    if (over <= 0) return;
    this.lines.splice(0, over);
    this.dropped += over;
  }

  put(part: string, ended: boolean): void {
    const at = this.lines.length - 1;
    let line = this.open ? (this.lines[at] ?? '') + part : part;
    const body = line.endsWith('\r') ? line.slice(0, -1) : line;
    const back = body.lastIndexOf('\r');
    if (back >= 0 && ended) line = body.slice(back + 1);
    else if (ended) line = body;
    line = line.slice(0, LINE_MAX);
    if (this.open) this.lines[at] = line;
    else this.lines.push(line);
    this.open = !ended;
  }

  get text(): string {
    return this.lines.map(stripAnsi).join('\n');
  }
}

/** Parses lines as spans. Each line starts without colours, because earlier
 *  lines may not be visible. */
export function spansOf(lines: string[]): Span[][] {
  let style: Style = plain();
  return lines.map((line) => {
    const [spans, next] = readAnsi(line, style);
    style = next;
    return spans;
  });
}
