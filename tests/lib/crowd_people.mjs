// The people of crowd.mjs, and the model they talk to, in a process of
// their own:
//
//   node crowd_people.mjs LOG FOLDER TOKENS FILE
//
// It prints the address of the model, reads the address of the balancer from
// stdin, and begins. At the next line everybody finishes what they have begun;
// then it ends. LOG gets the rows that crowd_check.mjs reads. Tools write to
// FOLDER, those of boxes to FILE there. TOKENS is a file with everybody's token by
// number: 0 is the operator, from 1 on people who talk, from 1001 on those who
// call tools.
import assert from 'node:assert/strict';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { io } from 'socket.io-client';

import { claude } from '../fakes/claude.mjs';
import { numberOf, ownerOf, wordOf, wordsOf } from './crowd_check.mjs';
import { historyOf, isOver } from './crowd_history.mjs';

const [logPath, folder, tokensPath, inBox] = process.argv.slice(2);
let tokens;
const tokenOf = (who) => `Bearer ${tokens[who]}`;
const TABS_EVERY = 5; // one person of so many has a second tab
const ANSWER_MS = 60_000;
const ACK_MS = 60_000;

const out = createWriteStream(logPath);
const log = (who, tab, what, more) => out.write(`${JSON.stringify({ at: Date.now(), who, tab, what, ...more })}\n`);
let over = false;

/** A pause as people make it, cut short when all is over. */
async function pause(ms) {
  const end = Date.now() + ms * (0.5 + Math.random());
  while (!over && Date.now() < end) await sleep(100);
}

/** A model that answers by what it is asked, whoever asks and how often: a
 *  question gets a call of a tool, everything else the same word back. */
function think(model) {
  model.requests = { push(r) { this.last = r; }, at() { return this.last; } };
  model.next = function () {
    const last = this.requests.at(-1).body.messages.at(-1).content;
    const result = last.find((b) => b.type === 'tool_result');
    const word = wordsOf(this.requests.at(-1).body.messages.filter((m) => m.role === 'user').map((m) => m.content.filter((b) => b.type === 'text'))).at(-1);
    if (result || !/do it/.test(last.at(-1).text)) return { text: `the answer to ${word}` };
    return { calls: [{ name: 'execute_command', args: { command: `echo ${word} >> ${inBox}` } }] };
  };
}

// --- people with a conversation -----------------------------------------------------

class Talker {
  constructor(who, url) {
    Object.assign(this, { who, url, n: 0, open: [], heard: new Map(), failed: new Set(), deciding: new Map(), tabs: [], turns: [], left: false });
    for (let tab = 0; tab < (who % TABS_EVERY ? 1 : 2); tab++) this.tabs.push(this.enter(tab));
  }

  enter(tab) {
    const socket = io(this.url, {
      query: { sessionId: `crowd-${this.who}` }, extraHeaders: { authorization: tokenOf(this.who) },
      transports: ['websocket'], forceNew: true, reconnectionDelay: 100, reconnectionDelayMax: 1000,
    });
    socket.ready = false;
    socket.on('disconnect', async (why) => {
      socket.ready = false;
      if (why !== 'io server disconnect') return;
      await sleep(1000); // a session that could not be opened: the person tries again
      if (!this.left) socket.connect();
    });
    socket.onAny((name, ...args) => {
      const words = wordsOf(args);
      const strange = words.some((w) => ownerOf(w) !== this.who);
      const kept = strange || /error|closed/.test(name);
      if (strange || name !== 'agent:delta') log(this.who, tab, 'event', { name, words, turn: args[1]?.turnId, ...(kept && { args }) });
      if (name === 'session:history') socket.ready = true;
      this.hear(name, args, tab);
      for (const card of name === 'session:history' ? args[0].pending : name === 'tool:approval_required' ? [args[0]] : [])
        this.decide(socket, tab, card);
    });
    return socket;
  }

  /** The end of a turn, however it is told. */
  hear(name, args, tab) {
    const tell = (word, how) => {
      if (this.heard.has(word)) return;
      this.heard.set(word, how);
      log(this.who, tab, 'heard', { word, how });
    };
    if (name === 'agent:response') wordsOf(args).forEach((w) => tell(w, 'answer'));
    if (name === 'session:entry' && args[0].role === 'user') this.turns[tab] = wordsOf(args)[0];
    if (name === 'agent:error') this.hearError(args[1].turnId, tab, tell);
    if (name !== 'session:history') return;
    const list = args[0].messages;
    this.turns[tab] = wordsOf(list.findLast((m) => m.role === 'user'))[0];
    const answered = list.filter((m) => m.role === 'assistant' && !m.blocks.some((b) => b.type === 'call'));
    for (const m of answered) wordsOf(m).forEach((w) => tell(w, 'answer'));
    const last = list.findLastIndex((m) => m.role === 'user');
    if (last >= 0 && list.slice(last).some((m) => m.role === 'note')) wordsOf(list[last]).forEach((w) => tell(w, 'failure'));
  }

  /** Of the message that the tab saw last, acknowledged or not, unless that has its
   *  answer: turns end in their order. Every tab hears it. */
  hearError(turn, tab, tell) {
    if (this.failed.has(turn)) return;
    this.failed.add(turn);
    const word = this.turns[tab];
    if (word && this.heard.get(word) !== 'answer') tell(word, 'failure');
    else if (this.open.length) tell(this.open[0], 'failure');
  }

  /** One word in ten is a no. Each tab answers, so many cards get two answers. */
  async decide(socket, tab, card) {
    const { callId, digest, args } = card;
    const key = `${tab} ${callId}`;
    const word = wordsOf(args)[0];
    const approved = numberOf(word) % 10 !== 9;
    const isOpen = this.deciding.has(key);
    this.deciding.set(key, isOpen && card);
    if (isOpen) return;
    log(this.who, tab, 'decided', { word, approved });
    let a;
    do {
      if (a) await sleep(500);
      a = await socket.timeout(ACK_MS).emitWithAck('tool:approval', { callId, approved, digest }).catch(() => undefined);
      log(this.who, tab, 'decision', { word, callId, ...a });
    } while (a?.code === 'state_unavailable');
    const again = this.deciding.get(key);
    this.deciding.delete(key);
    // A card that came again before its answer, from the next server, may still be open.
    if (again && !a?.ok) await this.decide(socket, tab, again);
  }

  /** Sent until somebody says what became of it. */
  async send(socket, tab, word, text) {
    for (;;) {
      if (!(await this.connected(socket))) return undefined;
      const a = await socket.timeout(ACK_MS).emitWithAck('message', text).catch(() => undefined);
      if (a?.ok) log(this.who, tab, 'acked', { word });
      else log(this.who, tab, a ? 'not' : 'silence', { word, code: a?.code, message: a?.message });
      // The same words at once are the same message.
      if (a?.code === 'state_unavailable' && !over) await sleep(500);
      else return a;
    }
  }

  async connected(socket) {
    const end = Date.now() + ACK_MS;
    while (!socket.ready && Date.now() < end) await sleep(20);
    return socket.ready;
  }

  async speak(tab) {
    const socket = this.tabs[tab];
    while (!over) {
      await pause(4000);
      if (over || !(await this.connected(socket))) continue;
      const word = wordOf(this.who, ++this.n);
      log(this.who, tab, 'sent', { word });
      this.open.push(word);
      const a = await this.send(socket, tab, word, this.n % 3 ? word : `${word}: do it`);
      const end = Date.now() + ANSWER_MS;
      while (a?.ok && !this.heard.has(word) && Date.now() < end) await sleep(50);
      this.open = this.open.filter((w) => w !== word);
    }
  }

  /** A turn that waits for the store goes on, and may ask for a decision. */
  async atRest() {
    return isOver(await historyOf({ url: this.url, tokens }, this.who).catch(() => [{}]));
  }

  async live() {
    await pause(4000);
    await Promise.all(this.tabs.map((_, tab) => this.speak(tab)));
    const end = Date.now() + ANSWER_MS;
    do await sleep(500);
    while (!(await this.atRest()) && Date.now() < end);
    this.left = true;
    for (const socket of this.tabs) socket.disconnect();
  }
}

// --- people with an MCP client -------------------------------------------------------

class Caller {
  constructor(who, url) {
    Object.assign(this, { who, url, n: 0 });
  }

  /** Half of them speak the newest revision. */
  async connect() {
    const where = new URL('/mcp', this.url);
    const how = { requestInit: { headers: { authorization: tokenOf(this.who) } } };
    const client = this.who % 2
      ? new Client({ name: 'crowd', version: '1' })
      : new Client2({ name: 'crowd', version: '1' });
    client.onerror = () => {};
    await client.connect(this.who % 2 ? new StreamableHTTPClientTransport(where, how) : new Transport2(where, how));
    return client;
  }

  async call(client) {
    const word = wordOf(this.who, ++this.n);
    log(this.who, 0, 'call', { word });
    const args = { name: 'execute_command', arguments: { command: `echo ${word} >> ${folder}/tool; echo ${word}` } };
    const how = { timeout: ANSWER_MS };
    try {
      const r = await (this.who % 2 ? client.callTool(args, undefined, how) : client.callTool(args, how));
      const text = JSON.stringify(r.content);
      log(this.who, 0, r.isError ? 'failed' : 'result', { word, got: wordsOf(text), ...(r.isError && { text }) });
    } catch (e) {
      log(this.who, 0, 'failed', { word, text: String(e) });
    }
  }

  async live() {
    let client;
    while (!over) {
      await pause(4000);
      if (over) break;
      client ??= await this.connect().catch((e) => void log(this.who, 0, 'failed', { text: String(e) }));
      if (client) await this.call(client);
    }
    await client?.close().catch(() => {});
  }
}

/** The operator approves what waits, anywhere. */
async function approve(url, isOver) {
  const headers = { authorization: tokenOf(0), 'content-type': 'application/json' };
  while (!isOver()) {
    await sleep(300);
    const list = await fetch(`${url}/api/approvals`, { headers }).then((r) => r.json()).catch(() => undefined);
    for (const { id, digest, args } of list?.approvals ?? []) {
      const word = wordsOf(args)[0];
      log(0, 0, 'decided', { word, approved: true });
      const status = await fetch(`${url}/api/approvals/${id}`, {
        method: 'POST', headers, body: JSON.stringify({ approved: true, digest }),
      }).then((r) => r.status).catch((e) => String(e));
      log(0, 0, 'decision', { word, status });
    }
  }
}

// --- the run ---------------------------------------------------------------------------

const model = await claude({ key: 'sk-ant-0123456789' });
think(model);
console.log(model.url);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const url = (await lines.next()).value;
tokens = JSON.parse(await readFile(tokensPath, 'utf8'));
const people = Object.keys(tokens).map(Number).filter((who) => who > 0)
  .map((who) => (who < 1000 ? new Talker(who, url) : new Caller(who, url)));
let allDone = false;
const approver = approve(url, () => allDone);
const lives = people.map((p) => p.live());
await lines.next();
over = true;
await Promise.all(lives);
allDone = true;
await approver;
await model.close();
await new Promise((done) => out.end(done));
assert.deepEqual(model.problems, []);
process.exit(0);
