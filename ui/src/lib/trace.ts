// trace - the steps of a turn with their times, from the entries of the
// conversation. Pure.

import type { Entry, Result } from '../protocol';

export type StepKind = 'model' | 'route' | 'approval' | 'box' | 'tool';

export interface Step {
  kind: StepKind;
  name: string; // of the tool
  callId: string; // '': of the model
  from: number; // ms since the message
  ms: number;
  failed: boolean;
}

const BOX_MIN = 5; // ms; less is not worth a row

function stepsOf(r: Result, began: number, asked: number): Step[] {
  const x = r.times;
  if (!x) return [];
  const row = (kind: StepKind, from: number, ms: number): Step =>
    ({ kind, name: r.name, callId: r.key, from: Math.max(0, from - began), ms: Math.max(0, ms), failed: kind === 'tool' && r.isError });
  const out: Step[] = [];
  if (x.routeUs) out.push(row('route', asked, x.routeUs / 1000));
  if (x.asked && x.decided) out.push(row('approval', x.asked, x.decided - x.asked));
  const box = x.boxMs >= BOX_MIN ? x.boxMs : 0;
  if (x.began && box) out.push(row('box', x.began, box));
  if (x.began && x.ended) out.push(row('tool', x.began + box, x.ended - x.began - box));
  return out;
}

/** The steps of the turn that answers the message `said`; empty: it is not known. */
export function turnSteps(entries: Entry[], said: number): Step[] {
  const first = entries.findIndex((e) => e.seq === said && e.role === 'user');
  const out: Step[] = [];
  const message = entries[first];
  if (!message) return out;
  let last = message.at;
  for (const e of entries.slice(first + 1)) {
    if (e.role === 'user') break;
    if (e.role === 'assistant')
      out.push({ kind: 'model', name: '', callId: '', from: last - message.at, ms: Math.max(0, e.at - last), failed: false });
    if (e.role === 'tool') out.push(...e.results.flatMap((r) => stepsOf(r, message.at, last)));
    if (e.role === 'assistant' || e.role === 'tool') last = e.at;
  }
  return out;
}

/** How long all of it took. */
export const lengthOf = (steps: Step[]): number => Math.max(1, ...steps.map((s) => s.from + s.ms));
