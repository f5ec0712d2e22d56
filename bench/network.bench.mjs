// network.bench.mjs - what the network of a box costs: a client in a box
// against the same client outside, with the same host on this machine, and with
// haproxy between as a relay that decides nothing; and the start of a box with a
// network against one without. Requests are measured once more with a processor for
// the relay, client and host on another: the direct ones are slower there, too.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';

process.env.MO_SESSION_DRIVER = `${process.env.MO_BUILD}/bench/session_driver`;
const { inTurns, median, native, ratio, run, say, start, startAt } = await import('./kit.mjs');
const { Hosts, NetBox, certificate } = await import('../tests/lib/egress.mjs');
const { Home, noNative } = await import('../tests/lib/sessions.mjs');

const TURNS = 11;
const GOAL_MS = 0.2;
const GOAL_SHARE = 0.8;
const GOAL_START_MS = 1;
const BIG = 1_000_000_000;
const HAPROXY = '/usr/sbin/haproxy';

const cpuNs = (pid) => readdirSync(`/proc/${pid}/task`).reduce((sum, t) =>
  sum + Number(readFileSync(`/proc/${pid}/task/${t}/schedstat`, 'utf8').split(' ')[0]), 0);

/** haproxy, which copies between its clients and that port. */
function startRelay(dir, port) {
  writeFileSync(join(dir, 'haproxy.cfg'), `global
  nbthread 1
defaults
  mode tcp
  timeout connect 10s
  timeout client 60s
  timeout server 60s
listen relay
  bind "127.0.0.1:\${RELAY_AT}"
  server host 127.0.0.1:${port}
`);
  return startAt(['sh', '-c', `RELAY_AT=PORT exec ${HAPROXY} -f ${join(dir, 'haproxy.cfg')}`]);
}

/** All threads of a process on one processor; or on all. */
const pin = (pid, cpu) => execFileSync('taskset', ['-apc', cpu ?? `0-${cpus().length - 1}`, String(pid)], { stdio: 'ignore' });

const [BOXED, OTHER, DIRECT] = ['in a box', 'by haproxy', 'direct'];

async function requests() {
  const dir = mkdtempSync(join(tmpdir(), 'mo-bench-'));
  const pair = certificate(['api.test']);
  writeFileSync(join(dir, 'cert'), pair.cert);
  writeFileSync(join(dir, 'key'), pair.key);
  const tls = await start([...native('tls_talk'), 'host', join(dir, 'cert'), join(dir, 'key')]);
  const plain = await start([...native('tls_talk'), 'host', '-', '-']);
  const other = existsSync(HAPROXY) ? await startRelay(dir, tls.port) : null;
  const hosts = new Hosts();
  const files = await hosts.http((q, r) => r.end(readFileSync(native('tls_talk')[0])));
  const box = await NetBox.open({ maxMegabytes: 1 << 20, allow: [`api.test=127.0.0.1:${tls.port}`,
    `api.test=127.0.0.1:${plain.port}`, `files.test=127.0.0.1:${files}`] }, { level: 'warn' });
  const relay = box.client.transport.pid;
  const got = await box.run(`curl -s http://files.test:${files}/ -o talk && chmod +x talk && ls talk`);
  if (!got.endsWith('exit 0')) throw new Error(got);

  // One turn of a client; its figures with the CPU time of all three programs.
  const turn = (host, env, how, count, bytes) => async (way) => {
    const before = cpuNs(host.pid) + cpuNs(relay);
    const args = ['get', way === BOXED ? 'api.test' : 'api.test=127.0.0.1', way === OTHER ? other.port : host.port, how, count, bytes];
    let figures;
    if (way === BOXED) {
      const said = await box.run(`${Object.entries(env).map(([k, v]) => `${k}=${v}`).join(' ')} ./talk ${args.join(' ')}`);
      if (!said.endsWith('exit 0')) throw new Error(said);
      figures = JSON.parse(said.split('\n')[0]);
    } else {
      figures = await run('tls_talk', args, env);
    }
    return { ms: figures.p50_ns / 1e6, own: figures.cpu_ns / count / 1e6, cpu: figures.cpu_ns + cpuNs(host.pid) + cpuNs(relay) - before };
  };
  const parties = { boxed: BOXED, direct: DIRECT };
  try {
    for (const [how, count, alone] of [['kept', 2000, false], ['new', 200, false], ['new', 200, true]]) {
      if (alone && cpus().length < 2) continue;
      pin(tls.pid, alone ? '0' : undefined);
      for (const pid of [relay, other?.pid]) if (pid) pin(pid, alone ? '1' : undefined);
      const got = await inTurns({ ...parties, ...(other && { haproxy: OTHER }) }, TURNS, turn(tls, alone ? { BENCH_CPU: '1' } : {}, how, count, 100));
      const of = (name) => median(got[name].map((g) => g.ms));
      const added = (name, member) => median(got[name].map((g, i) => g[member] - got.direct[i][member])).toFixed(3);
      say(`small HTTPS request, ${how} connection${alone ? ', a processor for the relay' : ''}: p50 ${of('boxed').toFixed(3)} ms, direct ${of('direct').toFixed(3)} ms, ` +
        `added ${added('boxed', 'ms')} ms${alone ? '' : ` (goal <= ${GOAL_MS})`}, of it CPU of the client itself ${added('boxed', 'own')} ms; ` +
        (other ? `haproxy adds ${added('haproxy', 'ms')} ms, of it ${added('haproxy', 'own')} ms` : 'haproxy is not there'));
    }
    for (const pid of [tls.pid, relay]) pin(pid);
    for (const [name, host, env] of [['HTTPS', tls, {}], ['plain TCP', plain, { BENCH_PLAIN: '1' }]]) {
      const got = await inTurns(parties, TURNS, turn(host, env, 'kept', 1, BIG));
      const cpu = (who) => got[who].map((g) => g.cpu / 1e9);
      say(`1 GB over ${name}: CPU of all programs ${median(cpu('boxed')).toFixed(2)} s, direct ${median(cpu('direct')).toFixed(2)} s, ` +
        `share ${ratio(cpu('direct'), cpu('boxed')).toFixed(2)}${host === plain ? '' : ` (goal >= ${GOAL_SHARE})`}`);
    }
  } finally {
    await box.close();
    hosts.close();
    await tls.stop();
    await plain.stop();
    await other?.stop();
    rmSync(dir, { recursive: true });
  }
}

/** From "I want a box" to a box whose MCP server has answered. */
async function starts() {
  const none = { driver: 'native', warm: 0 };
  const homes = { without: new Home({ sandbox: none }),
    with: new Home({ sandbox: { ...none, network: { allow: ['api.test', 'db.test:5432'] } } }) };
  const servers = {};
  let n = 0;
  try {
    for (const [name, home] of Object.entries(homes)) servers[name] = await home.server();
    const us = await inTurns(servers, 61, async (s) => {
      const id = `s${++n}`;
      const ready = await s.hold(id, id);
      s.tell('end', { session: id });
      await s.next((e) => e.ev === 'ended' && e.session === id);
      return ready.us;
    });
    const ms = (name) => median(us[name].slice(1)) / 1000;
    say(`start of a box: with a network ${ms('with').toFixed(2)} ms, without ${ms('without').toFixed(2)} ms, ` +
      `later by ${(median(us.with.map((v, i) => v - us.without[i])) / 1000).toFixed(2)} ms (goal <= ${GOAL_START_MS})`);
    for (const s of Object.values(servers)) await s.close();
  } finally {
    for (const h of Object.values(homes)) h.removeAll();
  }
}

if (noNative) {
  say(`needs ${noNative}`);
} else {
  await requests();
  await starts();
}
