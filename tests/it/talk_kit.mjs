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

/** One tab: what it was told, in order, and what it can do. */
export class Tab {
  constructor(house, { session, model, early } = {}) {
    this.session = session ?? `s-${process.pid}-${++people}`;
    house.sessions.add(this.session);
    this.events = []; // [name, ...args]
    this.waiters = [];
    this.socket = io(`http://127.0.0.1:${house.server.port}`, {
      query: { sessionId: this.session, ...(model && { model }) },
      transports: ['websocket'], forceNew: true, reconnection: false,
    });
    this.socket.onAny((...event) => {
      this.events.push(event);
      for (const w of this.waiters) w();
    });
    this.socket.on('disconnect', () => this.events.push(['(disconnect)']));
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
    return within(come, `${name} #${n}; got ${this.names()}`, ms);
  }

  names(skip = ['agent:delta', 'tool:progress', 'tool:log']) {
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

  decide({ callId }, approved, more = {}) {
    return this.emit('tool:approval', { callId, approved, ...more });
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
  static async start({ config = {}, env = {}, dir } = {}) {
    const house = new House();
    house.model = await claude({ key: 'sk-ant-0123456789' });
    house.dir = dir ?? (await mkdtemp(join(tmpdir(), 'mo-talk-')));
    house.env = {
      ANTHROPIC_API_KEY: house.model.key,
      ANTHROPIC_BASE_URL: house.model.url,
      ...env,
    };
    await writeFile(join(house.dir, 'mcp-orchestrator.json'), JSON.stringify({
      llm: { provider: 'claude', model: 'claude-sonnet-5-5' },
      sandbox: { driver: 'native', warm: 0 }, ...config,
    }));
    house.sessions = new Set();
    house.tabs = [];
    await house.up();
    return house;
  }

  async up() {
    this.server = await Server.start([], { dir: this.dir, env: this.env, house: true });
  }

  tab(how) {
    const tab = new Tab(this, how);
    this.tabs.push(tab);
    return tab;
  }

  async get(path) {
    const answer = await fetch(`http://127.0.0.1:${this.server.port}${path}`);
    return { status: answer.status, body: await answer.json() };
  }

  /** What the model was last asked, as its provider sees it. */
  asked() {
    return JSON.parse(this.model.requests.at(-1).bytes.toString());
  }

  /** Every session ended, nothing left, no rule of the provider broken. */
  async stop() {
    for (const tab of this.tabs) tab.close();
    for (const id of this.sessions)
      await fetch(`http://127.0.0.1:${this.server.port}/api/sessions/${id}?forget=true`, { method: 'DELETE' });
    // Connections to the model are kept for the next question, a few of them.
    this.server.fresh.fds += 32;
    try {
      await this.server.stopClean();
    } finally {
      await this.model.close();
      await rm(this.dir, { recursive: true, force: true });
    }
    assert.deepEqual(this.model.problems, []);
  }
}
