// A crowd behind haproxy without stickiness: three replicas on a Redis Cluster of
// six, which are killed and ended every 20 s, while masters of Redis fail over
// and boxes die. People talk (stock socket.io-client, some with two tabs), a fifth
// of all call tools (official SDKs, both eras); an operator approves. What they
// wrote down is checked by crowd_check.mjs, and the check itself is tried with
// faults planted in the same records.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { problemsOf, wordOf, wordsOf } from './crowd_check.mjs';
import { historyOf, isOver } from './crowd_history.mjs';
import { haproxy, missing as noHaproxy } from './haproxy.mjs';
import { Idp } from './idp.mjs';
import { freePort } from './port.mjs';
import { missing as noRedis } from './redis.mjs';
import { six } from './redis_cluster.mjs';
import { programs } from './toolbox.mjs';
import { BIN, until, within, workers } from '../it/server.mjs';

const OPERATOR = 'the-operator-of-the-crowd-0123456789';

/** How long a crowd stays. */
export const SECONDS = Number(process.env.MO_CROWD_SECONDS ?? (process.env.MO_LONG === '1' ? 600 : 60));
/** Why there can be none, or false. */
export const missing = noRedis || noHaproxy;

/** One `serve` on a port of its own. */
class Replica {
  constructor(place, port) {
    Object.assign(this, { place, port, log: '' });
  }

  async up() {
    const args = ['--port', String(this.port), '--config', join(this.place.dir, 'mcp-orchestrator.json')];
    this.child = spawn(BIN, ['serve', ...workers(args), ...args], {
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

/** Everybody has a token of a provider. */
async function signUp(t, place) {
  place.url = `http://127.0.0.1:${place.port}`;
  place.idp = await new Idp(Object.fromEntries(place.everybody.map((who) => [`p${who}`, { groups: ['staff'] }]))).start();
  t.after(() => place.idp.stop());
  place.tokens = Object.fromEntries(place.everybody.map((who) =>
    [who, place.idp.token({ sub: `p${who}`, aud: `${place.url}/mcp`, groups: ['staff'], exp: Math.floor(Date.now() / 1000) + SECONDS + 3600 })]));
  place.tokens[0] = OPERATOR;
  place.tokensPath = join(place.dir, 'tokens');
  await writeFile(place.tokensPath, JSON.stringify(place.tokens), { mode: 0o600 });
}

async function people(t, place) {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./crowd_people.mjs', import.meta.url)),
    join(place.dir, 'log'), place.effects, place.tokensPath, place.house.effects], { stdio: ['pipe', 'pipe', 'inherit'] });
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

async function settle(t, house) {
  const { talkers } = house;
  const place = { house, dir: await mkdtemp(join(tmpdir(), 'mo-crowd-')) };
  place.everybody = [...Array(talkers).keys()].map((i) => i + 1).concat([...Array(Math.round(talkers / 4)).keys()].map((i) => i + 1001));
  t.after(async () => { // hooks run in the order in which they were set
    await Promise.all((place.replicas ?? []).map((r) => r.child?.exitCode === null && r.child.signalCode === null && r.end('SIGKILL')));
    await keep(place);
    await rm(place.dir, { recursive: true, force: true, maxRetries: 10 });
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
    sandbox: house.sandbox(place),
    ...house.more,
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
      did.boxes += await place.house.killBox(place);
    }),
  ]);
  await sleep(Math.max(0, end - Date.now()));
  return did;
}

const brief = ({ role, blocks, results, ...rest }) => ({
  role, words: wordsOf(blocks ?? results ?? rest), calls: (blocks ?? []).some((b) => b.type === 'call'),
  // An error says that it did not run, or not to its end.
  ...(results && { states: results.map((r) => (r.isError && r.state === 'done' ? 'error' : r.state)) }),
});

const lines = async (path) => (await readFile(path, 'utf8').catch(() => '')).split('\n').filter(Boolean);

/** What is known of a person whose turn does not end. */
async function lastOf(place, who) {
  const log = (await lines(join(place.dir, 'log'))).filter((l) => JSON.parse(l).who === who);
  const servers = place.replicas.flatMap((r, n) => r.log.split('\n').filter((l) => l.includes(`crowd-${who}"`)).slice(-20).map((l) => `replica ${n}: ${l}`));
  return ['what was stored last:', ...(await historyOf(place, who)).slice(-3).map((e) => JSON.stringify(e)),
    'what the person saw last:', ...log.slice(-30), 'what the servers said of it:', ...servers].join('\n');
}

async function collect(place) {
  const log = (await lines(join(place.dir, 'log'))).map((l) => JSON.parse(l));
  const histories = {};
  for (let who = 1; who <= place.house.talkers; who++) {
    let list;
    await until(async () => isOver(list = await historyOf(place, who)), `the end of the turn of ${who}`, 60_000)
      .catch(async (e) => assert.fail(`${e.message}\n${await lastOf(place, who)}`));
    histories[who] = list.map(brief);
  }
  return {
    log,
    histories,
    effects: (await Promise.all([join(place.effects, 'tool'), ...await place.house.written(place)].map(lines))).flat(),
  };
}

/** A copy with one fault in it, and the sentence that must be said of it. */
const faultsOf = (talkers) => ({
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
  }, /neither an answer nor a failure in its history|said to be done/],
  'a call runs twice': [(r) => { r.effects.push(r.effects[0]); }, /ran 2 times/],
  'a call runs that was not approved': [(r) => {
    r.log = r.log.filter((x) => !(x.what === 'decided' && x.word === r.effects[0]));
  }, /nobody approved it/],
  'an event comes to somebody else': [(r) => {
    const e = r.log.find((x) => x.what === 'event' && x.words.length);
    r.log.push({ ...e, who: e.who % talkers + 1 });
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
    x.got = [wordOf(1001, 99999)];
  }, /the result of .* speaks of/],
});

/** Time for one, in ms. */
export const limit = (SECONDS + 420) * 1000;

/** The test. house says which boxes they have: talkers, how many people talk;
 *  sandbox(place), the configuration; effects, the file in a box that tools write
 *  to; written(place), where the test finds these files; killBox(place), which
 *  ends one and returns how many; more, further configuration. Returns the place,
 *  whose replicas still run. place.effects is a folder of this machine. */
export async function crowd(t, house) {
  const place = await settle(t, house);
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
  for (const kind of ['acked', 'result', 'decided']) assert.ok(count(kind) > house.talkers / 4, `${kind}: ${count(kind)}`);
  for (const r of place.replicas) assert.doesNotMatch(r.log, /runtime error|Sanitizer/);
  for (const [name, [plant, said]] of Object.entries(faultsOf(house.talkers)))
    await t.test(`the check finds: ${name}`, () => {
      const copy = structuredClone(records);
      plant(copy);
      assert.match(problemsOf(copy).join('\n'), said);
    });
  return place;
}
