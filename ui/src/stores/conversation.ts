// conversation - the open conversation: its messages, running calls and calls
// that wait for approval. All state comes from the server; after a reload it is
// restored from session:history alone.

import { defineStore } from 'pinia';
import { computed, effectScope, markRaw, reactive, ref, shallowReactive, shallowRef, triggerRef, type EffectScope, watch } from 'vue';

import { useSocket, type Handlers, type Link } from '../composables/useSocket';
import { fetchCalls, fetchEntries } from '../lib/http';
import { Output } from '../lib/output';
import { currentBranch } from '../lib/branches';
import { firstLine, newId } from '../lib/format';
import { Scripts } from '../lib/scripts';
import { endState, type CallEnd, type CallState } from '../lib/callState';
import { contentText, textOf, timeline } from '../lib/timeline';
import type {
  Ack, Answer, Approval, AppResult, Branch, Connection, Content, Decision, Entry, History, Question, Sample,
  OwnApprovals, Ready, Requests, Result, FailoverRoute, Turn,
} from '../protocol';
import { t } from '../lang';

export interface Call {
  callId: string;
  name: string;
  args: Record<string, unknown>;
  state: CallState;
  approval: Approval | null;
  by: string;
  reason: string;
  content: Content[];
  durationMs: number;
  truncated: boolean;
  route: FailoverRoute | null; // the server that ran it, if another one than planned
  app: AppResult | null; // shown below the result
  output: Output;
  version: number; // counts changes of output, which is not reactive
  began: number;
  progress: { value: number; total: number; message: string } | null; // total 0: unknown
}

export interface OutgoingMessage {
  id: string;
  text: string;
  state: 'sending' | 'queued' | 'sent' | 'failed';
  position: number;
  messageId: string;
  why: string;
}

export interface Notice {
  id: string;
  text: string;
  kind: 'info' | 'error';
  isOfTurn: boolean; // it is over with the next text of the model
}

export interface RawEvent {
  n: number;
  at: number;
  name: string;
  args: unknown[];
}

const RAW_MAX = 500;
const NOTICES_MAX = 5;
const PAGE = 1000; // entries per request

function newCall(callId: string, name: string): Call {
  return reactive<Call>({
    callId, name, args: {}, state: 'running', approval: null, by: '',
    reason: '', content: [], durationMs: -1, truncated: false, route: null, app: null,
    output: markRaw(new Output()), version: 0, began: Date.now(), progress: null,
  });
}

export const useConversationStore = defineStore('conversation', () => {
  const sessionId = ref('');
  const requestedModel = ref(''); // sent in the handshake; empty: the default
  const link = shallowRef<Link | null>(null);
  const ready = shallowRef<Ready | null>(null);
  const isReading = ref(false); // it is somebody else's, if it is shared
  const shared = ref(''); // 'read' or 'approve': what we may do with it
  const approvals = shallowRef<OwnApprovals | null>(null); // its mode and grants
  const joined = ref(false); // session:history has arrived on this connection
  const restored = ref(false);
  const entries = shallowRef<Entry[]>([]);
  const earlier = ref(0); // the entry before the first one loaded; 0: none
  const hasEarlier = computed(() => earlier.value > 0);
  const branches = shallowRef<Branch[]>([]); // entries with alternatives
  const isLoading = ref(false);
  const calls = shallowReactive(new Map<string, Call>());
  const scripts = new Scripts(); // their calls are in `calls` only while they wait
  const questions = shallowRef<Question[]>([]); // elicitation requests of servers
  const samples = shallowRef<Sample[]>([]); // sampling requests of servers
  const connections = shallowRef<Connection[]>([]); // of the box, waiting for a decision
  const streamedText = ref(''); // the part of the reply received so far
  const streamedThought = ref(''); // and of its thinking
  const toolsOff = ref<Ready['toolsOff']>([]); // switched off by the person
  const isTurnRunning = ref(false);
  const outgoing = ref<OutgoingMessage[]>([]);
  const notices = ref<Notice[]>([]);
  const failure = ref(''); // why the conversation could not be opened
  const closed = ref('');
  const idleEnds = ref(0); // ms: when the sandbox is removed; 0: not soon
  const raw = shallowRef<RawEvent[]>([]);
  const lastCall = ref(''); // the console shows the output of this call
  let rawCount = 0;
  let scope: EffectScope | null = null;
  let pendingText = '';
  let pendingThought = '';
  let frame = 0;
  const changedCalls = new Set<Call>(); // calls with new output

  // --- derived state ---

  const items = computed(() => timeline(entries.value, new Set(branches.value.map((b) => b.seq))));
  const waiting = computed(() =>
    [...calls.values()].filter((c) => c.state === 'waiting'));
  // Those that we may decide, without anybody else's word.
  const decidable = computed(() =>
    waiting.value.flatMap((c) => (c.approval && !c.approval.approvals ? [c.approval] : [])));
  const running = computed(() =>
    [...calls.values()].filter((c) => c.state === 'running'));
  // The server's; an older one says none, and a reader of a closed one gets none.
  const givenTitle = ref('');
  const instructions = ref('');
  const title = computed(() => {
    const first = entries.value.find((e) => e.role === 'user');
    return givenTitle.value || (first ? firstLine(textOf(first), 60) : '');
  });
  const state = computed(() => link.value?.state.value ?? 'connecting');
  const isOpen = computed(() =>
    state.value === 'open' && joined.value && !closed.value);
  watch(state, (s) => {
    if (s !== 'open') joined.value = false;
  });
  // Messages sent before the sandbox is ready or while the connection is lost
  // are queued by the socket.
  const canSend = computed(() =>
    link.value !== null && !closed.value && !failure.value && !shared.value);

  function notice(text: string, kind: Notice['kind'] = 'info', isOfTurn = false): void {
    if (notices.value.some((n) => n.text === text)) return;
    notices.value = [...notices.value, { id: newId(), text, kind, isOfTurn }]
      .slice(-NOTICES_MAX);
  }
  /** The model answers: a wait for its provider is over. */
  function endTurnNotices(): void {
    if (notices.value.some((n) => n.isOfTurn))
      notices.value = notices.value.filter((n) => !n.isOfTurn);
  }
  function dismiss(id: string): void {
    notices.value = notices.value.filter((n) => n.id !== id);
  }

  // --- streaming: the view is updated once a frame ---

  function flush(): void {
    frame = 0;
    streamedText.value += pendingText;
    streamedThought.value += pendingThought;
    pendingText = '';
    pendingThought = '';
    for (const c of changedCalls) c.version++;
    changedCalls.clear();
  }
  function addText(text: string): void {
    pendingText += text;
    if (!frame) frame = requestAnimationFrame(flush);
  }
  function addThought(text: string): void {
    pendingThought += text;
    if (!frame) frame = requestAnimationFrame(flush);
  }
  function setText(text: string, thought = ''): void {
    pendingText = '';
    pendingThought = '';
    streamedText.value = text;
    streamedThought.value = thought;
  }

  // --- calls ---

  function callOf(callId: string, name = ''): Call {
    let c = calls.get(callId);
    if (!c) {
      c = newCall(callId, name);
      calls.set(callId, c);
    }
    if (name) c.name = name;
    return c;
  }
  function addPending(a: Approval): void {
    const c = callOf(a.firstId || a.callId, a.name);
    c.args = a.args;
    c.approval = a;
    c.route = a.route;
    c.state = 'waiting';
    if (a.parent) scripts.made({ ...a, callId: a.firstId || a.callId, state: 'pending' });
  }
  function finishCall(c: Call, content: Content[], end: CallEnd): void {
    c.content = content;
    c.approval = null;
    if (c.state !== 'rejected') c.state = endState(end);
  }
  function applyResult(r: Result): void {
    const c = callOf(r.key, r.name);
    if (c.state === 'waiting' || c.state === 'running' || !c.content.length)
      finishCall(c, r.content, r);
    if (r.app && !c.app) c.app = markRaw(r.app);
  }
  function readCalls(e: Entry): void {
    for (const b of e.blocks) {
      if (b.type !== 'call' || !b.key) continue;
      const c = callOf(b.key, b.name);
      if (!c.approval && b.args) c.args = b.args;
    }
    e.results.forEach(applyResult);
    scripts.read(e.scripts);
  }
  function addOutput(callId: string, text: string): void {
    const c = calls.get(callId);
    if (!c || !text) return;
    c.output.add(text);
    changedCalls.add(c);
    if (!frame) frame = requestAnimationFrame(flush);
    lastCall.value = callId;
  }

  // --- events of the server ---

  function applyTurn(t: Turn | null): void {
    isTurnRunning.value = t !== null;
    if (!t) endTurnNotices();
    setText(t?.text ?? '', t?.thinking);
    scripts.read(t?.scripts ?? []);
    const runningIds = new Set(t?.running ?? []);
    for (const c of calls.values()) {
      if (runningIds.has(c.callId)) c.state = 'running';
      else if (c.state === 'running') c.state = 'unknown';
    }
  }
  /** Messages that the server has are shown from there, those in line too. */
  function restoreOutgoing(h: History): void {
    const mine = outgoing.value.filter((s) => !s.messageId && s.state !== 'sent');
    const waiting = h.turn?.waiting ?? [];
    outgoing.value = [
      ...waiting.map((m, i): OutgoingMessage => ({
        id: m.messageId, text: m.text, state: 'queued', position: i + 1,
        messageId: m.messageId, why: '',
      })),
      ...mine,
    ];
  }
  function restore(h: History): void {
    entries.value = h.messages;
    questions.value = []; // open ones follow as events
    samples.value = [];
    connections.value = []; // likewise
    earlier.value = h.earlier >= 0 ? h.earlier : (h.messages[0]?.seq ?? 1) - 1;
    branches.value = h.branches;
    const kept = new Map(calls);
    calls.clear();
    scripts.clear();
    for (const e of h.messages) readCalls(e);
    h.pending.forEach(addPending);
    applyTurn(h.turn);
    for (const [id, c] of calls) {
      const old = kept.get(id);
      if (!old) continue;
      c.output = old.output;
      c.by = old.by;
      c.durationMs = old.durationMs;
    }
    restoreOutgoing(h);
    restored.value = true;
    if (calls.size) void loadDecisions();
  }
  /** Loads a shared conversation that nobody has open. */
  async function loadShared(): Promise<void> {
    const id = sessionId.value;
    const found = await fetchEntries(id, 0, PAGE).catch(() => null);
    if (found && sessionId.value === id && !joined.value)
      restore({ messages: currentBranch(found).entries, pending: [], turn: null, earlier: 0, branches: [] });
  }
  /** Loads the page of entries before the first one loaded. */
  async function loadEarlier(): Promise<void> {
    const id = sessionId.value;
    const tip = earlier.value;
    if (isLoading.value || tip <= 0) return;
    isLoading.value = true;
    const after = Math.max(0, tip - PAGE);
    const found = await fetchEntries(id, after, PAGE).catch(() => null);
    isLoading.value = false;
    if (!found || sessionId.value !== id || earlier.value !== tip)
      return;
    const part = currentBranch(found, tip);
    const older = part.entries;
    const kept = [...calls];
    calls.clear();
    older.forEach(readCalls);
    for (const c of calls.values())
      if (c.state === 'running') c.state = 'unknown';
    for (const [key, c] of kept) calls.set(key, c);
    entries.value = [...older, ...entries.value];
    earlier.value = after > 0 ? part.earlier : 0;
    void loadDecisions();
  }
  /** Loads who decided each call and its duration, which entries do not have. */
  async function loadDecisions(): Promise<void> {
    const id = sessionId.value;
    for (let after = 0, more = true; more;) {
      const page = await fetchCalls(id, after).catch(() => null);
      if (!page || sessionId.value !== id) return;
      for (const r of page.calls) {
        const c = calls.get(r.callId);
        after = r.seq;
        if (!c || c.by) continue;
        c.by = r.by;
        c.reason = r.reason;
        if (r.ms >= 0 && c.state !== 'waiting' && c.state !== 'running')
          c.durationMs = r.ms;
        if (r.state === 'rejected') c.state = 'rejected';
      }
      more = page.more && page.calls.length > 0;
    }
  }
  function addEntry(e: Entry): void {
    if (entries.value.some((x) => x.seq === e.seq)) return;
    entries.value = [...entries.value, e];
    readCalls(e);
    if (e.role === 'user') {
      isTurnRunning.value = true;
      outgoing.value = outgoing.value.filter((s) => s.messageId !== e.id);
    } else setText('');
    if (e.role === 'assistant') endTurnNotices();
    if (e.role === 'note') {
      const text = textOf(e);
      notices.value = notices.value.filter((n) => n.text !== text);
    }
  }
  /** The session is over: a call that waits will not run any more. */
  function endTurn(): void {
    isTurnRunning.value = false;
    questions.value = [];
    samples.value = [];
    connections.value = [];
    for (const c of waiting.value) {
      c.approval = null;
      c.state = 'rejected';
      c.by = 'cancel';
    }
  }
  function forgetQuestion(id: string): void {
    questions.value = questions.value.filter((q) => q.requestId !== id);
    samples.value = samples.value.filter((x) => x.requestId !== id);
  }
  function forgetConnection(id: string): void {
    connections.value = connections.value.filter((c) => c.callId !== id);
  }
  function logText(data: unknown): string {
    if (typeof data === 'string') return `${data}\n`;
    if (typeof data === 'object' && data !== null && 'text' in data)
      return typeof data.text === 'string' ? data.text : '';
    return data === undefined ? '' : `${JSON.stringify(data)}\n`;
  }

  const handlers: Handlers = {
    'system:ready': (r) => {
      ready.value = r;
      givenTitle.value = r.title;
      instructions.value = r.system;
      shared.value = r.shared;
      approvals.value = r.approvals;
      failure.value = '';
      closed.value = '';
      idleEnds.value = 0;
      toolsOff.value = r.toolsOff;
      requestedModel.value = ''; // it is the conversation's own from now on
      if (r.workspace === 'lost')
        notice(t(r.elsewhere ? 'chat.filesElsewhere' : 'chat.boxIsNew'));
    },
    'session:history': (h) => {
      restore(h);
      joined.value = true; // what waits for us is as it is now
    },
    'session:entry': addEntry,
    'session:about': (a) => {
      givenTitle.value = a.title;
      instructions.value = a.system;
    },
    'session:branches': (b) => {
      branches.value = b.branches;
    },
    'agent:thinking': () => {
      isTurnRunning.value = true;
    },
    'agent:delta': (d) => {
      isTurnRunning.value = true;
      endTurnNotices();
      addText(d.text);
    },
    'tools:off': (o) => {
      toolsOff.value = o.toolsOff;
    },
    'session:skills': (s) => {
      if (ready.value) ready.value = { ...ready.value, skills: s.skills };
    },
    'resource:updated': (r) => notice(t('offers.changed', { uri: r.uri })),
    'thinking:chunk': (d) => {
      isTurnRunning.value = true;
      endTurnNotices();
      addThought(d.text);
    },
    'agent:response': () => {
      isTurnRunning.value = false;
      endTurnNotices();
    },
    'agent:error': (text) => {
      isTurnRunning.value = false;
      setText('');
      notice(text, 'error');
    },
    'session:approvals': (a) => {
      approvals.value = a;
    },
    'session:shared': (s) => {
      shared.value = s.may;
      joined.value = false;
      void loadShared();
    },
    'tool:approved_by': (a) => {
      const c = calls.get(a.firstId || a.callId);
      if (c?.approval) c.approval = { ...c.approval, approvedBy: a.approvedBy };
    },
    'tool:approval_required': addPending,
    'script:call': (c) => scripts.made(c),
    'script:grants': (g) => scripts.granted(g.callId, g.grants),
    'tool:resolved': (r) => {
      if (r.parent) {
        scripts.decided(r.parent, r.firstId || r.callId, r.approved, r.by);
        calls.delete(r.firstId || r.callId);
        return;
      }
      const c = callOf(r.firstId || r.callId);
      c.state = r.approved ? 'running' : 'rejected';
      c.by = r.by;
      c.reason = r.reason;
      c.approval = null;
      c.began = Date.now();
      if (r.approved) lastCall.value = c.callId;
    },
    'tool:progress': (p) => {
      const c = calls.get(p.callId);
      if (c && p.total > 0) c.progress = { value: p.progress, total: p.total, message: p.message };
      else addOutput(p.callId, p.message);
    },
    'tool:log': (l) => {
      // Output of the sandbox also arrives as tool:progress.
      const known = typeof l.data === 'object' && l.data !== null &&
        'stream' in l.data;
      if (!known) addOutput(l.callId, logText(l.data));
    },
    'tool:output': (content, m) => {
      if (m.parent) {
        scripts.ended(m.parent, m, contentText(content));
        calls.delete(m.callId);
        return;
      }
      const c = callOf(m.callId, m.name);
      c.durationMs = m.durationMs;
      c.truncated = m.truncated;
      c.route = m.route;
      if (m.app) c.app = markRaw(m.app);
      if (m.by) c.by = m.by;
      finishCall(c, content, m);
      lastCall.value = m.callId;
    },
    'elicitation:required': (q) => {
      questions.value = [
        ...questions.value.filter((x) => x.requestId !== q.requestId), q,
      ];
    },
    'sampling:required': (q) => {
      samples.value = [...samples.value.filter((x) => x.requestId !== q.requestId), q];
    },
    'elicitation:resolved': (r) => forgetQuestion(r.requestId),
    'network:approval_required': (c) => {
      connections.value = [...connections.value.filter((x) => x.callId !== c.callId), c];
    },
    'network:resolved': (r) => forgetConnection(r.callId),
    'message:queued': (q) => {
      const s = outgoing.value.findLast((x) => x.state === 'sending');
      if (!s) return;
      s.state = 'queued';
      s.position = q.position;
    },
    'session:idle': (i) => {
      idleEnds.value = Date.now() + i.secondsLeft * 1000;
    },
    'session:closed': (c) => {
      closed.value = c.reason || 'closed';
      if (c.reason !== 'shutdown') endTurn();
    },
    // The model is asked before the message is stored: its turn may not have begun here.
    'system:message': (text) => notice(text, 'info', isTurnRunning.value || outgoing.value.length > 0),
    error: (text) => {
      // Another person's session does not exist for us, unless it is shared.
      if (!isReading.value && text.includes('no such session')) queueMicrotask(read);
      else failure.value = text;
    },
  };

  function recordEvent(name: string, args: unknown[]): void {
    const all = raw.value;
    all.push({ n: rawCount++, at: Date.now(), name, args });
    if (all.length > RAW_MAX) all.splice(0, all.length - RAW_MAX);
    triggerRef(raw);
  }

  // --- actions of the user ---

  function leave(): void {
    scope?.stop();
    scope = null;
    link.value = null;
    ready.value = null;
    approvals.value = null;
    joined.value = false;
    restored.value = false;
    entries.value = [];
    isLoading.value = false;
    earlier.value = 0;
    givenTitle.value = instructions.value = '';
    branches.value = [];
    calls.clear();
    scripts.clear();
    questions.value = [];
    samples.value = [];
    connections.value = [];
    setText('');
    isTurnRunning.value = false;
    outgoing.value = [];
    notices.value = [];
    failure.value = closed.value = lastCall.value = shared.value = '';
    idleEnds.value = 0;
    raw.value = [];
  }
  function open(id: string, model = ''): void {
    if (sessionId.value === id && requestedModel.value === model && link.value) return;
    isReading.value = false;
    connect(id, model);
  }
  function read(): void {
    isReading.value = true;
    connect(sessionId.value, '');
  }
  function connect(id: string, model: string): void {
    leave();
    sessionId.value = id;
    requestedModel.value = model;
    scope = effectScope(true);
    scope.run(() => {
      link.value = useSocket({
        sessionId: id, model, read: isReading.value, handlers, raw: recordEvent,
        broken: (why) =>
          notice(t('chat.unexpected', { why }), 'error'),
      });
    });
  }
  async function submit(s: OutgoingMessage): Promise<void> {
    if (!link.value) return;
    const ack = await link.value.send('message', { text: s.text });
    const mine = outgoing.value.find((x) => x.id === s.id);
    if (!mine) return;
    if (!ack.ok) {
      mine.state = 'failed';
      mine.why = ack.message;
    } else if (entries.value.some((e) => e.id === ack.messageId)) removeOutgoing(s.id);
    else {
      mine.state = ack.queued ? 'queued' : 'sent';
      mine.position = ack.queued;
      mine.messageId = ack.messageId;
    }
  }
  function sendMessage(text: string): void {
    const s: OutgoingMessage = {
      id: newId(), text, state: 'sending', position: 0, messageId: '', why: '',
    };
    idleEnds.value = 0;
    outgoing.value = [...outgoing.value, s];
    void submit(s);
  }
  /** In place of an earlier message, on a branch of its own. Resolves to an error
   *  message, or to an empty string. */
  async function editMessage(seq: number, text: string): Promise<string> {
    const ack = await link.value?.send('message', { text, instead: seq });
    return ack && !ack.ok ? ack.message : '';
  }
  function removeOutgoing(id: string): void {
    outgoing.value = outgoing.value.filter((x) => x.id !== id);
  }
  async function decide(d: Decision): Promise<Ack | null> {
    if (!link.value) return null;
    const ack = await link.value.send('tool:approval', d);
    // unknown_call: another tab decided first; its event follows.
    if (!ack.ok && ack.code !== 'unknown_call') notice(ack.message, 'error');
    return ack;
  }
  /** Decides all these calls alike, each by its own digest. False: at least one
   *  of them could not be; a notice says why. */
  async function decideAll(which: Approval[], more: { approved: boolean; reason?: string }): Promise<boolean> {
    const acks = await Promise.all(which.map(({ callId, digest }) =>
      decide({ callId, digest, ...more })));
    return acks.every((ack) => ack?.ok || ack?.code === 'unknown_call');
  }
  /** Rejects every call that waits for us, with the same reason. */
  const rejectAll = (reason: string): Promise<boolean> =>
    decideAll(decidable.value, { approved: false, reason });
  /** Resolves to an error message, or to an empty string. */
  async function decideConnection(d: Decision): Promise<string> {
    if (!link.value) return t('banner.lost');
    const ack = await link.value.send('tool:approval', d);
    if (ack.ok || ack.code === 'unknown_call') forgetConnection(d.callId);
    return ack.ok || ack.code === 'unknown_call' ? '' : ack.message;
  }
  async function answer(a: Answer): Promise<Ack | null> {
    if (!link.value) return null;
    const ack = await link.value.send('elicitation:response', a);
    const isSample = samples.value.some((x) => x.requestId === a.requestId); // goes on by events
    if ((ack.ok && !isSample) || ack.code === 'unknown_request') forgetQuestion(a.requestId);
    return ack;
  }
  /** Accepts the changed definition of a tool. */
  async function accept(name: string, digest: string): Promise<void> {
    const ack = await link.value?.send('tool:accept', { name, digest });
    if (!ack?.ok) {
      if (ack) notice(ack.message, 'error');
      return;
    }
    if (ready.value)
      ready.value = {
        ...ready.value,
        tools: ready.value.tools.map((t) =>
          t.name === name ? { ...t, digest: '', changedFrom: undefined } : t),
      };
  }
  async function request<R extends keyof Requests>(what: R, value?: Requests[R]): Promise<void> {
    const ack = await link.value?.send(what, value);
    if (ack && !ack.ok) notice(ack.message, 'error');
  }
  /** Now, or when the turn is over; the server says which. */
  function changeModel(model: string): void {
    if (joined.value) void request('model:change', { model });
    else open(sessionId.value, model);
  }
  function reopen(): void {
    const id = sessionId.value;
    const model = requestedModel.value;
    leave();
    open(id, model);
  }

  return {
    sessionId, requestedModel, shared, ready, restored, entries, hasEarlier, isLoading, calls, streamedText, streamedThought, toolsOff, isTurnRunning, outgoing,
    notices, failure, closed, idleEnds, raw, lastCall, items, waiting, decidable, running,
    title, state, isOpen, canSend, notice, dismiss, open, leave, sendMessage, removeOutgoing, decide, decideAll, rejectAll, approvals,
    scripts: scripts.runs, questions, samples, connections, decideConnection, answer, accept, loadEarlier, reopen,
    setOffer: (offer: string) => {
      if (ready.value) ready.value = { ...ready.value, offer };
    },
    stop: () => request('agent:cancel'),
    reset: () => request('history:reset'),
    end: () => request('session:close', { keep: true }),
    changeModel, instructions, branches, editMessage,
    regenerate: (seq: number) => request('turn:regenerate', { seq }),
    goOn: () => request('turn:continue'),
    switchBranch: (seq: number) => request('branch:switch', { seq }),
  };
});
