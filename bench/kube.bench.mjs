// Sessions in pods: warm and cold, beside the same pod created and attached by
// hand, and beside a bare one, without volumes and limits of rights.
//
// Needs the cluster of scripts/kube. The server is tests/it/session_driver.c in
// release, as in sessions.bench.mjs. Writes are counted in the audit log of the
// API server: those of our service account from the request for a session to
// its answer.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import https from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

process.env.MO_SESSION_DRIVER = `${process.env.MO_BUILD}/bench/session_driver`;
const { api, Namespace, noKube, ownImage, state } = await import('../tests/lib/kube.mjs');
const { Home } = await import('../tests/lib/sessions.mjs');

const COLD = 20;
// A kubelet looks every second at what its runtime has started. Without a pause
// of random length each start would meet that second at the same place, half a
// second earlier or later than its neighbour, in all rounds.
const LOOK_MS = 1000;
const WARM = 12;
const at = (v, q) => v[Math.min(v.length - 1, Math.floor(v.length * q))];
const sorted = (v) => [...v].sort((a, b) => a - b);
const line = (what, text) => console.log(`  ${what.padEnd(40)} ${text}`);
function say(what, ms, goal) {
  const v = sorted(ms);
  line(what, `p50 ${at(v, 0.5).toFixed(1)} ms  p95 ${at(v, 0.95).toFixed(1)} ms   ${goal}`);
  return at(v, 0.5);
}
const now = () => performance.timeOrigin + performance.now();

// --- ours ---------------------------------------------------------------------

const home = (ns, warm) => new Home({ sandbox: { driver: 'kubernetes', warm, memoryMb: 64, workspaceMb: 8,
  kubernetes: { kubeconfig: ns.kubeconfig, image: ownImage.tag, pullPolicy: 'Never' } } });

async function end(server, id) {
  server.tell('end', { session: id });
  await server.next((e) => e.ev === 'ended' && e.session === id);
}

/** One session: its time, its pod, when it was asked for and answered. */
async function session(server, id) {
  const from = now();
  const ready = await server.hold(id, id);
  return { ms: ready.us / 1000, pod: ready.box, from, to: now() };
}

/** Microseconds count here: "2026-11-17T02:54:01.123456Z". */
const toMs = (t) => Date.parse(`${t.slice(0, 19)}Z`) + Number(`0${t.slice(19, -1)}`) * 1000;

/** Writes of our account: [{ verb, pod, at }]. */
function writes(ns) {
  return readFileSync(join(state, 'log/audit.log'), 'utf8').split('\n')
    .filter((l) => l.includes(`"system:serviceaccount:${ns.name}:`))
    .map((l) => JSON.parse(l))
    .filter((e) => ['create', 'update', 'patch', 'delete'].includes(e.verb) && !e.objectRef?.subresource)
    .map((e) => ({ verb: e.verb, pod: e.objectRef?.name, at: toMs(e.requestReceivedTimestamp) }));
}

// --- by hand --------------------------------------------------------------------

const hello = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {
  protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'b', version: '1' } } })}\n`;

function frame(text) {
  const data = Buffer.concat([Buffer.from([0]), Buffer.from(text)]);
  const mask = randomBytes(4);
  return Buffer.concat([Buffer.from([0x82, 0x80 | 126, data.length >> 8, data.length & 255]), mask,
    data.map((b, i) => b ^ mask[i % 4])]);
}

const ask = (ns, path, headers = {}) => https.request({ host: '10.77.0.1', port: 6443, path, agent: false,
  ca: readFileSync(join(state, 'pki/ca.crt')), headers: { Authorization: `Bearer ${ns.token}`, ...headers } });

const BARE = {
  restartPolicy: 'Never', terminationGracePeriodSeconds: 0, automountServiceAccountToken: false,
  containers: [{ name: 'box', image: ownImage.tag, imagePullPolicy: 'Never', stdin: true,
    resources: { limits: { memory: '64Mi', cpu: '1' }, requests: { memory: '64Mi', cpu: '10m' } } }] };

/** What a pod of ours is made of, without what the cluster has added. */
async function specOf(ns, pod) {
  const { nodeName, serviceAccount, serviceAccountName, priority, preemptionPolicy, tolerations, ...spec } =
    (await api('GET', `${ns.path}/pods/${pod}`)).json.spec;
  return spec;
}

/** Create, watch until it runs, attach, initialize; then delete. */
async function byHand(ns, name, spec) {
  const from = now();
  const made = await api('POST', `${ns.path}/pods`, { metadata: { name }, spec });
  if (made.status >= 300) throw new Error(made.text);
  await new Promise((done, fail) => {
    let text = '';
    const req = ask(ns, `${ns.path}/pods?watch=1&fieldSelector=metadata.name%3D${name}`);
    req.on('error', fail).on('response', (res) => res.on('data', (d) => {
      text += d;
      if (!text.includes('"phase":"Running"')) return;
      req.destroy();
      done();
    }).on('error', () => {})).end();
  });
  const socket = await new Promise((done, fail) => {
    ask(ns, `${ns.path}/pods/${name}/attach?container=box&stdin=1&stdout=1&stderr=1`, { Connection: 'Upgrade',
      Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Protocol': 'v4.channel.k8s.io',
      'Sec-WebSocket-Key': randomBytes(16).toString('base64') })
      .on('upgrade', (_, s) => done(s)).on('error', fail)
      .on('response', (r) => fail(new Error(`attach: ${r.statusCode}`))).end();
  });
  const heard = new Promise((done) => socket.on('data', (d) => d.includes('serverInfo') && done()));
  let over = false;
  heard.then(() => { over = true; });
  while (!over) { // what is said before the runtime passes output on is lost
    socket.write(frame(hello));
    await Promise.race([heard, sleep(100)]);
  }
  const ms = now() - from;
  socket.destroy();
  await api('DELETE', `${ns.path}/pods/${name}`, { gracePeriodSeconds: 0 });
  return ms;
}

// --- all ------------------------------------------------------------------------

async function warm(ns) {
  const h = home(ns, 4);
  try {
    const server = await h.server();
    const seen = [];
    for (let i = 0; i < WARM; i++) {
      while ((await server.stats()).warm < 4) await sleep(20);
      seen.push(await session(server, `w${i}`));
      await end(server, `w${i}`);
    }
    await server.close();
    const all = writes(ns);
    const during = seen.flatMap((s) => all.filter((w) => w.at >= s.from && w.at <= s.to).map((w) => ({ ...w, s })));
    say('warm session', seen.map((s) => s.ms), 'goal 10 ms');
    line('... writes to its pod until it answers', `${during.filter((w) => w.pod === w.s.pod).length} of ${
      WARM} sessions   goal 0`);
    line('... pods created meanwhile, for the pool', `${during.filter((w) => w.verb === 'create').length}`);
  } finally {
    h.removeAll();
  }
}

async function cold(ns) {
  const h = home(ns, 0);
  const [ours, same, bare] = [[], [], []];
  let spec;
  try {
    const server = await h.server();
    for (let i = 0; i < COLD + 1; i++) {
      await sleep(Math.random() * LOOK_MS);
      const one = await session(server, `c${i}`);
      spec ??= await specOf(ns, one.pod);
      await end(server, `c${i}`);
      await sleep(Math.random() * LOOK_MS);
      const other = await byHand(ns, `same${i}`, spec);
      await sleep(Math.random() * LOOK_MS);
      const third = await byHand(ns, `bare${i}`, BARE);
      if (i > 0) ours.push(one.ms), same.push(other), bare.push(third);
    }
    await server.close();
  } finally {
    h.removeAll();
  }
  const [a, b, c] = [say('cold session', ours, ''), say('the same pod by hand', same, ''), say('a bare pod by hand', bare, '')];
  line('cold to the same by hand', `${(a / b).toFixed(2)}   goal 1.1`);
  line('cold to a bare one', (a / c).toFixed(2));
}

if (noKube) {
  console.log(`  needs ${noKube}: scripts/kube up`);
} else {
  ownImage.load();
  const ns = await Namespace.open();
  try {
    await warm(ns);
    await cold(ns);
  } finally {
    await ns.close();
  }
}
