// A crowd behind haproxy without stickiness: three replicas on a Redis Cluster of
// six, which are killed and ended every 20 s, while masters of Redis fail over
// and boxes die. 160 people talk (stock socket.io-client, some with two tabs),
// 40 call tools (official SDKs, both eras); an operator approves. What they wrote
// down is checked by lib/crowd_check.mjs, and the check itself is tried with
// faults planted in the same records. One minute; ten with MO_LONG=1 (make long).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { problemsOf, wordsOf } from '../lib/crowd_check.mjs';
import { haproxy, missing as noHaproxy } from '../lib/haproxy.mjs';
import { Idp } from '../lib/idp.mjs';
import { freePort, missing as noRedis } from '../lib/redis.mjs';
import { six } from '../lib/redis_cluster.mjs';
import { programs } from '../lib/toolbox.mjs';
import { BIN, until, within } from './server.mjs';

const SECONDS = Number(process.env.MO_CROWD_SECONDS ?? (process.env.MO_LONG === '1' ? 600 : 60));
const TALKERS = Number(process.env.MO_CROWD ?? 160);
const CALLERS = Math.round(TALKERS / 4);
const OPERATOR = 'the-operator-of-the-crowd-0123456789';
const everybody = [...Array(TALKERS).keys()].map((i) => i + 1).concat([...Array(CALLERS).keys()].map((i) => i + 1001));

/** One `serve` on a port of its own. */
class Replica {
  constructor(place, port) {
    Object.assign(this, { place, port, log: '' });
  }

  async up() {
    this.child = spawn(BIN, ['serve', '--port', String(this.port), '--config', join(this.place.dir, 'mcp-orchestrator.json')], {
      cwd: this.place.dir,
      env: {
        PATH: process.env.PATH, HOME: this.place.dir, ANTHROPIC_API_KEY: 'sk-ant-0123456789', ANTHROPIC_BASE_URL: this.place.model,
        MCP_ORCHESTRATOR_STATE_DIR: join(this.place.dir, 'state'),
        ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4', UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on('data', (d) => (this.log += d));
    await until(async () => {
      assert.equal(this.child.exitCode, null, this.log.slice(-3000));
      return (await fetch(`http://127.0.0.1:${this.port}/readyz`).catch(() => undefined))?.status === 200;
    }, `replica ${this.port}`, 60_000);
  }

  async end(signal) {
    const gone = once(this.child, 'exit');
    this.child.kill(signal);
    await within(gone, `the end of replica ${this.port} by ${signal}`, 60_000);
  }
}

/** The program in a box, of any of them. */
async function aBox() {
  const found = [];
  for (const pid of (await readdir('/proc')).filter((p) => /^\d+$/.test(p))) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    const root = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
    if (/mo-toolbox/.test(line) && /mo-crowd-[^ ]*\/effects/.test(root) && / \/effects /.test(root)) found.push(Number(pid));
  }
  return found[Math.floor(Math.random() * found.length)];
}

/** Everybody has a token of a provider. */
async function signUp(t, place) {
  place.url = `http://127.0.0.1:${place.port}`;
  place.idp = await new Idp(Object.fromEntries(everybody.map((who) => [`p${who}`, { groups: ['staff'] }]))).start();
  t.after(() => place.idp.stop());
  place.tokens = Object.fromEntries(everybody.map((who) =>
    [who, place.idp.token({ sub: `p${who}`, aud: `${place.url}/mcp`, groups: ['staff'] })]));
  place.tokens[0] = OPERATOR;
  place.tokensPath = join(place.dir, 'tokens');
  await writeFile(place.tokensPath, JSON.stringify(place.tokens), { mode: 0o600 });
}

async function people(t, place) {
  const child = spawn(process.execPath, [fileURLToPath(new URL('../lib/crowd_people.mjs', import.meta.url)),
    join(place.dir, 'log'), place.effects, place.tokensPath], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  place.model = url;
  return {
    begin: (where) => child.stdin.write(`${where}\n`),
    async end() {
      const gone = child.exitCode === null ? once(child, 'exit') : [child.exitCode];
      child.stdin.write('stop\n');
      const [code] = await within(gone, 'the end of the people', 240_000);
      assert.equal(code, 0);
    },
  };
}

/** MO_CROWD_KEEP: a folder for what was written down. */
async function keep(place) {
  const to = process.env.MO_CROWD_KEEP;
  if (!to) return;
  await mkdir(to, { recursive: true });
  await copyFile(join(place.dir, 'log'), join(to, 'log'));
  for (const [n, r] of (place.replicas ?? []).entries()) await writeFile(join(to, `replica-${n}`), r.log);
  await writeFile(join(to, 'records'), JSON.stringify(place.records ?? {}));
}

async function settle(t) {
  const place = { dir: await mkdtemp(join(tmpdir(), 'mo-crowd-')) };
  t.after(async () => {
    await keep(place);
    await rm(place.dir, { recursive: true, force: true });
  });
  place.effects = join(place.dir, 'effects');
  await mkdir(place.effects);
  await chmod(place.dir, 0o755);
  await chmod(place.effects, 0o777);
  if (process.getuid() === 0) await chown(place.effects, 12345, 12345); // no box writes as root
  place.redis = await six(t);
  place.port = await freePort();
  await signUp(t, place);
  place.people = await people(t, place);
  await writeFile(join(place.dir, 'mcp-orchestrator.json'), JSON.stringify({
    llm: { provider: 'claude', model: 'claude-sonnet-5-5' },
    sandbox: { driver: 'native', warm: 0, mounts: [`${place.effects}:/effects:rw`] },
    store: { url: place.redis.url, replicas: 1 },
    server: { token: OPERATOR },
    people: { url: place.url, providers: { corp: { issuer: place.idp.issuer } }, roles: { user: ['corp/staff'] } },
    gateway: { approvals: 'ask' },
    approvals: { rules: [{ server: 'counter', action: 'ask', approver: 'operator' }] },
    mcpServers: { counter: { command: programs.musl, args: ['--root', place.effects] } },
  }), { mode: 0o600 });
  place.replicas = [];
  for (let n = 0; n < 3; n++) {
    place.replicas.push(new Replica(place, await freePort()));
    await place.replicas[n].up();
  }
  t.after(() => Promise.all(place.replicas.map((r) => r.child.exitCode === null && r.child.signalCode === null && r.end('SIGKILL'))));
  place.front = await haproxy(place.port, place.replicas.map((r) => r.port));
  t.after(() => place.front.stop());
  return place;
}

/** Until the time is over: what dies when. Returns what did. */
async function disturb(place) {
  const end = Date.now() + SECONDS * 1000;
  const did = { replicas: 0, masters: 0, boxes: 0 };
  const each = async (ms, what) => {
    for (;;) {
      if (Date.now() + ms > end) return;
      await sleep(ms);
      await what();
    }
  };
  await Promise.all([
    each(20_000, async () => {
      const r = place.replicas[did.replicas % 3];
      await r.end(did.replicas++ % 2 ? 'SIGTERM' : 'SIGKILL');
      await sleep(1000);
      await r.up();
    }),
    each(15_000, async () => {
      const master = place.redis.nodes.find((n) => /role:master/.test(place.redis.says(n)));
      await place.redis.failOver(master);
      did.masters++;
    }),
    each(3000, async () => {
      const pid = await aBox();
      if (!pid) return;
      process.kill(pid, 'SIGKILL');
      did.boxes++;
    }),
  ]);
  await sleep(Math.max(0, end - Date.now()));
  return did;
}

/** All that is stored of a person's conversation. */
async function historyOf(place, who) {
  const all = [];
  for (let after = 0, more = true; more; after = all.at(-1)?.seq) {
    const r = await fetch(`${place.url}/api/sessions/crowd-${who}/history?limit=1000&after=${after}`, { headers: { authorization: `Bearer ${place.tokens[who]}` } });
    if (r.status === 404) return all; // nobody got that far
    assert.equal(r.status, 200, `the history of ${who}`);
    const body = await r.json();
    all.push(...body.messages);
    more = body.more && body.messages.length > 0;
  }
  return all;
}

const isOver = (list) => list.length === 0 || list.at(-1).role === 'note' ||
  (list.at(-1).role === 'assistant' && !list.at(-1).blocks.some((b) => b.type === 'call'));

const brief = ({ role, blocks, results, ...rest }) => ({
  role, words: wordsOf(blocks ?? results ?? rest), calls: (blocks ?? []).some((b) => b.type === 'call'),
  ...(results && { states: results.map((r) => r.state) }),
});

async function collect(place) {
  const lines = async (path) => (await readFile(path, 'utf8').catch(() => '')).split('\n').filter(Boolean);
  const histories = {};
  for (let who = 1; who <= TALKERS; who++) {
    let list;
    await until(async () => isOver(list = await historyOf(place, who)), `the end of the turn of ${who}`, 60_000);
    histories[who] = list.map(brief);
  }
  return {
    log: (await lines(join(place.dir, 'log'))).map((l) => JSON.parse(l)),
    histories,
    effects: [...(await lines(join(place.effects, 'box'))), ...(await lines(join(place.effects, 'tool')))],
  };
}

/** A copy with one fault in it, and the sentence that must be said of it. */
const FAULTS = {
  'an acknowledged message is lost': [(r) => {
    const { who, word } = r.log.find((x) => x.what === 'acked');
    r.histories[who] = r.histories[who].filter((e) => !e.words.includes(word));
  }, /acknowledged and is stored 0 times/],
  'a message is stored twice': [(r) => {
    const { who, word } = r.log.find((x) => x.what === 'acked');
    r.histories[who].push(...r.histories[who].filter((e) => e.words.includes(word)));
  }, /is stored 2 times/],
  'an answer is missing': [(r) => {
    const { who, word } = r.log.find((x) => x.what === 'acked');
    r.histories[who] = r.histories[who].filter((e) => e.role === 'user' || !e.words.includes(word));
  }, /neither an answer nor a failure|said to be done/],
  'a call runs twice': [(r) => { r.effects.push(r.effects[0]); }, /ran 2 times/],
  'a call runs that was not approved': [(r) => {
    r.log = r.log.filter((x) => !(x.what === 'decided' && x.word === r.effects[0]));
  }, /nobody approved it/],
  'an event comes to somebody else': [(r) => {
    const e = r.log.find((x) => x.what === 'event' && x.words.length);
    r.log.push({ ...e, who: e.who % TALKERS + 1 });
  }, /came to/],
  'answers come in another order': [(r) => {
    const mine = (x) => x.what === 'event' && x.name === 'agent:response' && x.tab === 0;
    const who = r.log.filter(mine).map((x) => x.who).find((w, i, all) => all.indexOf(w) !== i);
    const two = r.log.filter((x) => mine(x) && x.who === who).slice(0, 2);
    [two[0].words, two[1].words] = [two[1].words, two[0].words];
  }, /in another order/],
  'somebody cannot get in': [(r) => {
    r.log.push({ who: 1, tab: 0, what: 'event', name: 'error', words: [], args: ['Failed to initialize session: no box'] });
  }, /was sent away/],
  'a tool answers somebody else': [(r) => {
    const x = r.log.find((row) => row.what === 'result');
    x.got = ['p1001n99999'];
  }, /the result of .* speaks of/],
};

const limit = (SECONDS + 420) * 1000;
test('nothing is lost, doubled, mixed up or out of order', { skip: noRedis || noHaproxy, timeout: limit }, async (t) => {
  const place = await settle(t);
  place.people.begin(place.url);
  const did = await disturb(place);
  await place.people.end();
  const records = await collect(place);
  place.records = records;
  const count = (what) => records.log.filter((r) => r.what === what).length;
  t.diagnostic(`${SECONDS} s; died: ${did.replicas} replicas, ${did.masters} masters, ${did.boxes} boxes; ` +
    `${count('sent')} messages sent, ${count('acked')} acknowledged, ${count('heard')} ends heard; ` +
    `${count('call')} calls of clients, ${count('result')} answered; ${records.effects.length} runs of tools; ${count('event')} events`);
  const problems = problemsOf(records);
  assert.deepEqual(problems.slice(0, 20), [], `${problems.length} problems`);
  assert.ok(did.replicas && did.masters && did.boxes, JSON.stringify(did));
  for (const kind of ['acked', 'result', 'decided']) assert.ok(count(kind) > TALKERS / 4, `${kind}: ${count(kind)}`);
  for (const r of place.replicas) assert.doesNotMatch(r.log, /runtime error|Sanitizer/);
  for (const [name, [plant, said]] of Object.entries(FAULTS))
    await t.test(`the check finds: ${name}`, () => {
      const copy = structuredClone(records);
      plant(copy);
      assert.match(problemsOf(copy).join('\n'), said);
    });
});
