// Several `serve` processes on one store, with one fake model behind them.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { claude } from '../fakes/claude.mjs';
import { missing as noRedis, redis } from '../lib/redis.mjs';
import { Server, until, within } from './server.mjs';
import { Tab } from './talk_kit.mjs';

/** The stores on which replicas are tried. */
export const STORES = [
  { name: 'sqlite', skip: false },
  { name: 'redis', skip: noRedis },
];

const isRefused = (port) => new Promise((resolve) => {
  const socket = connect(port, '127.0.0.1', () => {
    socket.destroy();
    resolve(false);
  });
  socket.on('error', (e) => resolve(e.code === 'ECONNREFUSED'));
});

/** One of them; what a Tab needs to know of it. */
class Replica {
  constructor(all, n) {
    Object.assign(this, { all, n, headers: all.headers, sessions: all.sessions });
  }

  async up(args = []) {
    this.dir ??= await this.all.place();
    this.server = await Server.start([...this.all.args, ...args], { dir: this.dir, env: this.all.env, house: this.all.config.sandbox.driver === 'none' ? 'none' : true, auth: this.all.auth, bin: this.all.own[this.n]?.bin ?? this.all.bin,
      oneProcess: this.all.oneProcess });
    this.server.fresh.fds += 40; // connections to the model and to others
    if (this.all.far) await this.hideSockets();
    return this;
  }

  /** As on another machine: the others do not find its unix sockets. */
  async hideSockets() {
    const sockets = async () => (await readdir(this.dir, { recursive: true })).filter((f) => /\.(peer|http)$/.test(f));
    const workers = this.server.hasWorkers ? 2 : 1; // the only number that is used
    await until(async () => (await sockets()).length >= 2 * workers, 'its sockets');
    for (const f of await sockets()) await rm(join(this.dir, f));
  }

  tab(how) {
    const tab = new Tab(this, how);
    this.all.tabs.push(tab);
    return tab;
  }

  async get(path) {
    const answer = await fetch(`http://127.0.0.1:${this.server.port}${path}`, { headers: this.headers });
    return { status: answer.status, body: await answer.json() };
  }

  async signal(signal) {
    this.server.signal(signal);
    await within(this.server.exit, `the end of replica ${this.n} by ${signal}`, 30_000);
    // The kernel kills the workers after their parent.
    await until(() => isRefused(this.server.port), `the end of the workers of replica ${this.n}`);
  }
}

export class Replicas {
  /** apart: each in a directory of its own. far: they reach each other through
   *  the cluster's port only; keys: of each, if not the same. own: what differs
   *  for each, its program (bin) and its configuration. oneProcess: as of
   *  Server.start(). */
  static async start({ store = 'sqlite', apart, far, keys = [], own = [], redisArgs = [], args = [], count = 2, config = {}, env = {}, headers = {}, crash = [], auth, bin, oneProcess } = {}) {
    const all = new Replicas();
    Object.assign(all, { headers, auth, bin, oneProcess, sessions: new Set(), tabs: [] });
    all.model = await claude({ key: 'sk-ant-0123456789' });
    all.redis = store === 'redis' ? await redis({ args: redisArgs }) : undefined;
    all.env = { ANTHROPIC_API_KEY: all.model.key, ANTHROPIC_BASE_URL: all.model.url, ...env };
    all.config = {
      llm: { provider: 'claude', model: 'claude-sonnet-5-5' },
      sandbox: { driver: 'native', warm: 0 },
      audit: { arguments: true },
      ...(all.redis && { store: { url: `redis://127.0.0.1:${all.redis.port}/0` } }),
      ...config,
    };
    all.dirs = [];
    all.apart = apart || far;
    all.far = far;
    Object.assign(all, { keys, own, args });
    all.v = [];
    for (let n = 0; n < count; n++) all.v.push(await new Replica(all, n).up(crash[n] ? ['--test-crash', crash[n]] : []));
    return all;
  }

  /** One more of them. */
  async add() {
    this.v.push(await new Replica(this, this.v.length).up());
  }

  /** The directory of the next replica. */
  async place() {
    if (this.apart || this.dirs.length === 0) {
      this.dirs.push(await mkdtemp(join(tmpdir(), 'mo-many-')));
      const n = this.dirs.length - 1;
      const cluster = this.far && { listen: '127.0.0.1:0', key: this.keys[n] ?? 'k'.repeat(32) };
      const config = { ...this.config, ...(cluster && { cluster }), ...this.own[n]?.config?.(this) };
      await writeFile(join(this.dirs[n], 'mcp-orchestrator.json'), JSON.stringify(config));
    }
    return this.dirs.at(-1);
  }

  /** Two tabs of one session: the first at the replica that gets the lease,
   *  the second at another one. */
  async pair(how = {}) {
    const here = this.v[0].tab(how);
    await here.ready();
    const there = this.v[1].tab({ ...how, session: here.session });
    await there.ready();
    return { here, there };
  }

  async stop() {
    for (const tab of this.tabs) tab.close();
    const alive = this.v.filter((r) => r.server.alive);
    for (const id of this.sessions)
      await until(async () => {
        const r = await fetch(`http://127.0.0.1:${alive[0].server.port}/api/sessions/${id}?forget=true`, { method: 'DELETE', headers: this.headers });
        return [200, 204, 404].includes(r.status);
      }, `the end of ${id}`);
    try {
      for (const r of alive) await r.server.stopClean();
    } finally {
      await this.model.close();
      await this.redis?.stop();
      for (const dir of this.dirs) await rm(dir, { recursive: true, force: true, maxRetries: 10 });
    }
    assert.deepEqual(this.model.problems, []);
  }
}

/** What a tab was told, without what differs between tabs: its own greeting,
 *  and the news that its message waits. */
export const told = (tab, from = 0) =>
  tab.events.slice(from).filter(([e]) => !['system:ready', 'session:history', 'message:queued'].includes(e)).map((e) => JSON.stringify(e));

/** All entries of a conversation, page by page. */
export async function messages(replica, session) {
  const all = [];
  for (let after = 0, more = true; more; after = all.at(-1)?.seq) {
    const { body } = await replica.get(`/api/sessions/${session}/history?limit=1000&after=${after}`);
    all.push(...body.messages);
    more = body.more && body.messages.length > 0;
  }
  return all;
}

/** Both tabs hear the same of two turns, and either may speak. How many events
 *  each had heard before, for told(). */
export async function bothHear(all, here, there) {
  const from = [here.events.length, there.events.length];
  all.model.script.push({ text: 'Hello to both of you.' }, { text: 'And to you.' });
  assert.equal((await here.say('one')).ok, true);
  await there.event('agent:response');
  assert.equal((await there.say('two')).ok, true, 'from the tab whose replica relays');
  await here.event('agent:response', 2);
  await there.event('agent:response', 2);
  assert.deepEqual(told(there, from[1]), told(here, from[0]));
  assert.ok(there.count('agent:delta') > 0);
  return from;
}
