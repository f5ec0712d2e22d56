// A server with sessions in real boxes and a fake model behind it, and people
// who talk to it through the published socket.io-client.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { io } from 'socket.io-client';

import { claude } from '../fakes/claude.mjs';
import { Server, within } from './server.mjs';

let people = 0;

/** Calls of the box's tools, as a model makes them. */
export const write = (path, content) => ({ name: 'write_file', args: { path, content } });
export const read = (path) => ({ name: 'read_file', args: { path } });
export const run = (command) => ({ name: 'execute_command', args: { command } });

/** One tab: what it was told, in order, and what it can do. */
export class Tab {
  constructor(house, { session, model, early, headers = house.headers, auth, transports = ['websocket'], reconnection = false } = {}) {
    this.session = session ?? `s-${process.pid}-${++people}`;
    house.sessions.add(this.session);
    this.events = []; // [name, ...args]
    this.waiters = [];
    this.socket = io(`http://127.0.0.1:${house.server.port}`, {
      query: { sessionId: this.session, ...(model && { model }) },
      transports, forceNew: true, reconnection,
      extraHeaders: headers, ...(auth && { auth }),
    });
    const saw = (...event) => {
      this.events.push(event);
      for (const w of this.waiters) w();
    };
    this.socket.onAny(saw);
    this.socket.on('disconnect', () => saw('(disconnect)'));
    if (early) this.early = this.say(early);
  }

  /** The n-th event of that name, when it has come. */
  async event(name, n = 1, ms = 20_000) {
    const found = () => this.events.filter(([e]) => e === name)[n - 1];
    const come = new Promise((resolve) => {
      const look = () => found() && resolve(found().slice(1));
      this.waiters.push(look);
      look();
    });
    return within(come, { toString: () => `${name} #${n}; got ${this.names()}` }, ms);
  }

  names(skip = ['agent:delta', 'thinking:chunk', 'tool:progress', 'tool:log', 'session:about']) {
    return this.events.map(([e]) => e).filter((e) => !skip.includes(e));
  }

  count(name) {
    return this.events.filter(([e]) => e === name).length;
  }

  emit(name, ...args) {
    return within(this.socket.emitWithAck(name, ...args), `the ack of ${name}`);
  }

  say(text) {
    return this.emit('message', text);
  }

  /** As the page: edited arguments go with the digest of the card. */
  decide({ callId, digest }, approved, more = {}) {
    return this.emit('tool:approval', { callId, approved, ...(more.args && { digest }), ...more });
  }

  /** The first calls that ask: they have these names, and are approved. */
  async approve(...names) {
    for (const [i, name] of names.entries()) {
      const [card] = await this.event('tool:approval_required', i + 1, 60_000);
      assert.equal(card.name, name);
      await this.decide(card, true);
    }
  }

  async ready() {
    const [ready] = await this.event('system:ready');
    const [history] = await this.event('session:history');
    return { ready, history };
  }

  close() {
    this.socket.disconnect();
  }
}

/** The server, the model, and everybody's tabs. */
export class House {
  /** model: another fake, told of in env and config; oneProcess: as of
   *  Server.start(). */
  static async start({ config = {}, env = {}, dir, headers = {}, model, hosts, oneProcess } = {}) {
    const house = new House();
    house.oneProcess = oneProcess;
    house.hosts = hosts;
    house.headers = headers;
    house.model = model ?? (await claude({ key: 'sk-ant-0123456789' }));
    house.dir = dir ?? (await mkdtemp(join(tmpdir(), 'mo-talk-')));
    house.env = {
      ...(!model && { ANTHROPIC_API_KEY: house.model.key, ANTHROPIC_BASE_URL: house.model.url }),
      ...env,
    };
    await writeFile(join(house.dir, 'mcp-orchestrator.json'), JSON.stringify({
      llm: { provider: 'claude', model: 'claude-sonnet-5-5' },
      sandbox: { driver: 'native', warm: 0 },
      audit: { arguments: true }, // many look at them in the log
      ...config,
    }));
    house.sessions = new Set();
    house.tabs = [];
    await house.up();
    return house;
  }

  async up(args = []) {
    this.server = await Server.start(args, { dir: this.dir, env: this.env, house: true, hosts: this.hosts, oneProcess: this.oneProcess });
  }

  tab(how) {
    const tab = new Tab(this, how);
    this.tabs.push(tab);
    return tab;
  }

  async get(path) {
    const answer = await fetch(`http://127.0.0.1:${this.server.port}${path}`, { headers: this.headers });
    return { status: answer.status, body: await answer.json() };
  }

  /** The results that last went to the model, by the text of each. */
  results() {
    return this.asked().messages.at(-1).content.filter((b) => b.type === 'tool_result').map((b) => ({
      text: (b.content ?? []).map?.((c) => c.text).join('') ?? b.content,
      error: b.is_error === true,
    }));
  }

  /** What a command says in the box of that tab, asked for and approved. */
  async inBox(tab, command) {
    const cards = tab.count('tool:approval_required');
    const outputs = tab.count('tool:output');
    const answers = tab.count('agent:response');
    this.model.script.push({ calls: [run(command)] }, { text: 'seen' });
    await tab.say('look');
    const [card] = await tab.event('tool:approval_required', cards + 1);
    await tab.decide(card, true);
    const [out] = await tab.event('tool:output', outputs + 1);
    await tab.event('agent:response', answers + 1);
    return JSON.parse(out).map((c) => c.text).join('');
  }

  /** Rows of the audit log that tell of that session, the newest first. */
  async audit(session) {
    const { body } = await this.get('/api/audit?limit=1000');
    return body.rows.filter((r) => r.sessionId === session).map((r) => r.what);
  }

  /** It dies at once; started again in the same place by up(). */
  async kill() {
    this.server.signal('SIGKILL');
    await within(this.server.exit, 'the end by SIGKILL');
  }

  /** What the model was last asked, as its provider sees it. */
  asked() {
    return JSON.parse(this.model.requests.at(-1).bytes.toString());
  }

  /** Every session ended, nothing left, no rule of the provider broken. */
  async stop() {
    for (const tab of this.tabs) tab.close();
    for (const id of this.sessions)
      await fetch(`http://127.0.0.1:${this.server.port}/api/sessions/${id}?forget=true`, { method: 'DELETE', headers: this.headers });
    // Connections to the model are kept for the next question, a few of them.
    this.server.fresh.fds += 32;
    try {
      await this.server.stopClean();
    } finally {
      await this.model.close();
      await rm(this.dir, { recursive: true, force: true, maxRetries: 10 });
    }
    assert.deepEqual(this.model.problems, []);
  }
}
