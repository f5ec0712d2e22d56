// scripts - the calls that scripts of the conversation have made, by script.
//
// There may be thousands, so they are plain objects; `version` counts changes,
// at most once a frame.

import { markRaw, shallowReactive } from 'vue';

import { endState, type CallState } from './callState';
import type { Script, ScriptCallMade, ScriptGrant } from '../protocol';

export interface ScriptCall {
  key: string;
  line: number; // 0: unknown
  name: string;
  server: string;
  args: Record<string, unknown> | null; // null: too long to be sent
  state: CallState;
  by: string;
  ms: number;
  text: string; // of the result, perhaps cut
}

export interface ScriptRun {
  calls: Map<string, ScriptCall>; // in the order of their making
  total: number; // calls made; the first ones may be missing
  grants: ScriptGrant[]; // calls granted ahead
  version: number;
}

const TEXT_MAX = 2000; // characters of a result that are kept

/** The state that the server names, as the page shows it. */
function stateOf(state: string, isError: boolean): CallState {
  if (state === 'pending') return 'waiting';
  return state === 'running' ? 'running' : endState({ state, isError });
}

export class Scripts {
  readonly runs = shallowReactive(new Map<string, ScriptRun>());
  private changed = new Set<ScriptRun>();
  private frame = 0;

  private runOf(parent: string): ScriptRun {
    let run = this.runs.get(parent);
    if (!run) {
      run = shallowReactive<ScriptRun>({ calls: markRaw(new Map()), total: 0, grants: [], version: 0 });
      this.runs.set(parent, run);
    }
    return run;
  }
  private touch(run: ScriptRun): void {
    run.total = Math.max(run.total, run.calls.size);
    this.changed.add(run);
    if (!this.frame) this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      for (const r of this.changed) r.version++;
      this.changed.clear();
    });
  }
  private callOf(run: ScriptRun, key: string, name: string): ScriptCall {
    let call = run.calls.get(key);
    if (!call) {
      call = { key, line: 0, name, server: '', args: null, state: 'running', by: '', ms: -1, text: '' };
      run.calls.set(key, call);
    }
    return call;
  }

  /** A script has made a call, or it waits for somebody. */
  made(c: ScriptCallMade): void {
    const run = this.runOf(c.parent);
    const call = this.callOf(run, c.callId, c.name);
    Object.assign(call, { line: c.line, server: c.server, args: c.args, state: stateOf(c.state, false) });
    this.touch(run);
  }
  decided(parent: string, key: string, approved: boolean, by: string): void {
    const run = this.runOf(parent);
    const call = this.callOf(run, key, '');
    call.state = approved ? 'running' : 'rejected';
    call.by = by;
    this.touch(run);
  }
  ended(parent: string, end: { callId: string; name: string; state: string; isError: boolean; durationMs: number; by: string }, text: string): void {
    const run = this.runOf(parent);
    const call = this.callOf(run, end.callId, end.name);
    Object.assign(call, { state: stateOf(end.state, end.isError), ms: end.durationMs, text: text.slice(0, TEXT_MAX) });
    if (end.by) call.by = end.by;
    this.touch(run);
  }
  /** What is granted ahead, after each change of it. */
  granted(parent: string, grants: ScriptGrant[]): void {
    this.runOf(parent).grants = grants;
  }
  /** The server's list, of the turn that runs or of one that is over. */
  read(list: Script[]): void {
    for (const s of list) {
      const run = this.runOf(s.key);
      for (const c of s.calls)
        run.calls.set(c.key, {
          key: c.key, line: c.line, name: c.name, server: c.server, args: c.args,
          state: stateOf(c.state, c.isError), by: c.by, ms: c.ms, text: c.text.slice(0, TEXT_MAX),
        });
      run.total = Math.max(run.total, s.total);
      if (s.grants.length) run.grants = s.grants;
      this.touch(run);
    }
  }
  clear(): void {
    this.runs.clear();
    this.changed.clear();
  }
}
