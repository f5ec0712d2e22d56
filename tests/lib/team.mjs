// A server with a team: people of an OpenID Connect provider, known by their
// access tokens and groups, and one person with a token of the configuration.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { io } from 'socket.io-client';

import { BIN, Server, until, within } from '../it/server.mjs';
import { fixtureServer } from './gateway.mjs';
import { Idp } from './idp.mjs';

export const GROUPS = {
  ann: ['staff'], bea: ['staff'], bob: ['staff', 'leads'], carl: ['staff', 'leads'],
  vera: ['guests'], walt: ['guests'], olga: ['admins'], otto: ['admins'],
};
export const OPERATOR = 'the-operator-0123456789abcdef';
export const ZOE = 'zoe-has-this-token-0123456789'; // in server.tokens

export class Team {
  static async start(more = {}) {
    const team = new Team();
    team.more = more;
    team.dir = await mkdtemp(join(tmpdir(), 'mo-team-'));
    team.file = join(team.dir, 'mcp-orchestrator.json');
    team.idp = await new Idp(Object.fromEntries(Object.entries(GROUPS).map(([n, groups]) => [n, { groups }]))).start();
    await team.write();
    await team.serve();
    return team;
  }

  /** The configuration; approvals replaces that of the start. */
  async write(approvals = this.more.approvals) {
    const { env: _env, ...more } = this.more;
    await writeFile(this.file, JSON.stringify({
      mcpServers: { fixture: fixtureServer() }, llm: { provider: 'demo' }, sandbox: { warm: 0 },
      ...more, approvals,
      server: { token: OPERATOR, tokens: { zoe: ZOE }, ...more.server },
      people: {
        providers: { corp: { issuer: this.idp.issuer } },
        roles: { operator: ['corp/admins'], user: ['corp/staff'], viewer: ['corp/guests'] },
      },
    }));
  }

  async serve() {
    this.server = await Server.start(['--config', this.file], {
      dir: this.dir, auth: true, house: true,
      env: { MCP_ORCHESTRATOR_STATE_DIR: join(this.dir, 'state'), ...this.more.env },
    });
    await this.api('ann', 'GET', '/api/me'); // reads the provider's keys; the connection stays
    const client = await this.client('ann'); // starts the server
    await client.callTool({ name: 'echo', arguments: { message: 'warm' } });
    await client.close();
    this.server.fresh = await this.server.settled();
  }

  /** Another server with the same configuration and state. */
  async beside() {
    const other = Object.assign(new Team(), { more: this.more, dir: this.dir, file: this.file, idp: this.idp, guest: true });
    await other.serve();
    return other;
  }

  get url() {
    return this.server.url;
  }

  async restart(signal = 'SIGTERM') {
    this.server.signal(signal);
    await this.server.exit;
    await this.serve();
  }

  async stop() {
    for (const s of this.sockets ?? []) s.close();
    if (this.guest) return this.server.alive && this.server.stopClean();
    for (const { id } of (await this.api('operator', 'GET', '/api/sessions')).sessions)
      await this.api('operator', 'DELETE', `/api/sessions/${id}?forget=true`);
    await this.server?.stopClean();
    await this.idp?.stop();
    await rm(this.dir, { recursive: true, maxRetries: 10 });
  }

  token(who) {
    if (who.token) return who.token; // a personal one
    if (who === 'operator') return OPERATOR;
    if (who === 'zoe') return ZOE;
    return this.idp.token({ sub: who, aud: `${this.url}/mcp`, groups: GROUPS[who] });
  }

  headers(who) {
    return who ? { authorization: `Bearer ${this.token(who)}` } : {};
  }

  async api(who, method, path, body, headers = {}) {
    const r = await fetch(this.url + path, {
      method, headers: { ...this.headers(who), ...(body && { 'content-type': 'application/json' }), ...headers },
      body: body && JSON.stringify(body),
    });
    const text = await r.text();
    return { status: r.status, ...(text.startsWith('{') ? JSON.parse(text) : { text }) };
  }

  /** The pending calls that they see. */
  async waiting(who) {
    return (await this.api(who, 'GET', '/api/approvals')).approvals;
  }

  async oneWaiting(who) {
    await until(async () => (await this.waiting(who)).length > 0, `a call that waits for ${who}`);
    return (await this.waiting(who))[0];
  }

  decide(who, call, approved, more = {}) {
    return this.api(who, 'POST', `/api/approvals/${call.id}`, { approved, digest: call.digest, ...more });
  }

  /** A client of the gateway that is theirs. */
  async client(who) {
    const client = new Client({ name: 'it', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${this.url}/mcp`), { requestInit: { headers: this.headers(who) } }));
    return client;
  }

  /** A socket of a session, with all events it got; opens: wait for the conversation. */
  async socket(who, sessionId, query = {}, opens = true) {
    const socket = io(this.url, {
      extraHeaders: this.headers(who), query: { sessionId, ...query },
      transports: ['websocket'], forceNew: true, reconnection: false,
    });
    (this.sockets ??= []).push(socket);
    socket.got = [];
    socket.onAny((name, ...args) => socket.got.push([name, ...args]));
    socket.closed = new Promise((ok) => socket.once('disconnect', ok));
    if (opens)
      await within(new Promise((ok, no) => {
        socket.once('session:history', ok).once('connect_error', no).once('error', (e) => no(new Error(e)));
      }), `${who}'s conversation`);
    return socket;
  }

  command(...args) {
    return promisify(execFile)(BIN, [...args, '--config', this.file], {
      cwd: this.dir, env: { PATH: process.env.PATH, HOME: this.dir, MCP_ORCHESTRATOR_STATE_DIR: join(this.dir, 'state') },
    });
  }

  /** Rows of the audit file. */
  async rows() {
    return (await readFile(join(this.dir, 'state', 'audit.jsonl'), 'utf8')).split('\n').slice(0, -1).map((l) => JSON.parse(l).what).filter(Boolean);
  }
}

export const event = (socket, name) => within(new Promise((ok) => {
  const had = socket.got.find(([n]) => n === name);
  if (had) ok(had[1]);
  else socket.once(name, ok);
}), name);
export const ack = (socket, name, body) => socket.timeout(20_000).emitWithAck(name, body);
export const sameSet = (got, want) => assert.deepEqual([...got].sort(), [...want].sort());
