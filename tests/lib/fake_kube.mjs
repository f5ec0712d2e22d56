// An API server that does what a real one cannot be made to do: it refuses, it
// forgets, it changes what it is asked for. Strict: any other request is 400.
import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const frame = (data) => Buffer.concat([data.length < 126 ? Buffer.from([0x82, data.length])
  : Buffer.from([0x82, 126, data.length >> 8, data.length & 255]), data]);

/** The payloads of a client's small masked frames. */
function* payloads(buf) {
  while (buf.length >= 6) {
    const n = buf[1] & 0x7f;
    const mask = buf.subarray(2, 6);
    yield Buffer.from(buf.subarray(6, 6 + n)).map((b, i) => b ^ mask[i % 4]);
    buf = buf.subarray(6 + n);
  }
}

export class FakeKube {
  watches = new Set();

  static async open() {
    const k = new FakeKube();
    k.dir = mkdtempSync(join(tmpdir(), 'mo-fake-kube-'));
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
      '-days', '9', '-subj', '/CN=fake', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', join(k.dir, 'key'),
      '-out', join(k.dir, 'cert')], { stdio: 'ignore' });
    k.server = https.createServer({ cert: readFileSync(join(k.dir, 'cert')), key: readFileSync(join(k.dir, 'key')) },
      (req, res) => k.answer(req, res));
    k.server.on('upgrade', (req, socket) => k.attach(req, socket));
    await new Promise((done) => k.server.listen(0, '127.0.0.1', done));
    k.config = join(k.dir, 'config');
    writeFileSync(k.config, JSON.stringify({ 'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u', namespace: 'boxes' } }],
      clusters: [{ name: 'c', cluster: { server: `https://127.0.0.1:${k.server.address().port}`,
        'certificate-authority': 'cert' } }],
      users: [{ name: 'u', user: { token: 'fake-token' } }] }));
    k.reset();
    return k;
  }

  reset() {
    this.pods = new Map();
    this.seen = []; // "METHOD path" of each request
    this.version ??= 1;
    this.first = []; // answers that come before the regular ones: [match, status, headers, body]
    this.change = (pod) => pod;
    this.noAttach = false;
    this.cut = 0; // attaches that end as soon as they are accepted
    this.attachAfter = 0; // ms until an attach after those is accepted
    this.status = null; // of new pods; null: they run
    this.listed = () => [...this.pods.values()];
    this.part = Infinity; // objects in an answer to a list, however many are asked for
    this.claims = [];
    this.beforeGet = async () => {}; // after the answer to GET of a pod was made, before it is sent
  }

  count(what) {
    return this.seen.filter((s) => what.test(s)).length;
  }

  async answer(req, res) {
    let text = '';
    for await (const d of req) text += d;
    const what = `${req.method} ${req.url}`;
    this.seen.push(what);
    const say = (status, body, headers = {}) => {
      res.writeHead(status, { 'Content-Type': 'application/json', ...headers });
      res.end(JSON.stringify(body));
    };
    if (req.headers.authorization !== 'Bearer fake-token') return say(401, { message: 'who?' });
    const early = this.first.findIndex(([match]) => match.test(what));
    if (early >= 0) {
      const [, status, headers, body] = this.first.splice(early, 1)[0];
      return say(status, body, headers);
    }
    const pods = '/api/v1/namespaces/boxes/pods';
    const name = req.url.startsWith(`${pods}/`) ? req.url.slice(pods.length + 1) : null;
    if (/networkpolicies/.test(req.url)) return say(200, { metadata: { uid: 'policy' }, spec: {
      podSelector: { matchLabels: { 'mo.role': 'box' } }, policyTypes: ['Ingress', 'Egress'] } });
    if (what.startsWith(`GET ${pods}?watch=1`)) {
      res.writeHead(200, { 'Content-Type': 'application/json' });
      res.flushHeaders();
      this.watches.add(res);
      res.on('close', () => this.watches.delete(res));
      return undefined;
    }
    if (what.startsWith(`GET ${pods}?`)) return say(200, this.partOf(this.listed(), req.url));
    if (what.startsWith('GET /api/v1/namespaces/boxes/persistentvolumeclaims?')) return say(200, this.partOf(this.claims, req.url));
    if (what === `POST ${pods}`) {
      const pod = this.change(JSON.parse(text));
      Object.assign(pod.metadata, { uid: randomUUID(), resourceVersion: String(++this.version) });
      pod.status = this.status ?? { phase: 'Running', containerStatuses: pod.spec.containers.map(({ name }) => ({ name, state: { running: {} } })) };
      this.pods.set(pod.metadata.name, pod);
      return say(201, pod);
    }
    if (name && req.method === 'GET' && this.pods.has(name)) {
      const answer = structuredClone(this.pods.get(name));
      await this.beforeGet(name);
      return say(200, answer);
    }
    if (name && req.method === 'PATCH' && this.pods.has(name)) {
      if (req.headers['content-type'] !== 'application/merge-patch+json') return say(415, { message: what });
      Object.assign(this.pods.get(name).metadata.annotations, JSON.parse(text).metadata.annotations);
      return say(200, this.pods.get(name));
    }
    if (name && req.method === 'DELETE' && this.pods.has(name)) {
      const uid = text && JSON.parse(text).preconditions?.uid;
      if (uid && uid !== this.pods.get(name).metadata.uid) return say(409, { message: `uid ${uid}` });
      this.pods.delete(name);
      return say(200, {});
    }
    return name ? say(404, { message: `pods "${name}" not found` }) : say(400, { message: what });
  }

  /** The part of a list that is asked for. Places have characters that a query must escape. */
  partOf(all, url) {
    const query = new URL(url, 'https://x').searchParams;
    const from = Number(query.get('continue')?.replace(/^at&\+=/, '') ?? 0);
    const to = from + Math.min(Number(query.get('limit')), this.part);
    return { metadata: { resourceVersion: String(this.version), ...(to < all.length && { continue: `at&+=${to}` }) }, items: all.slice(from, to) };
  }

  /** A program that waits as mo-box --hold does, then echoes. */
  async attach(req, socket) {
    this.seen.push(`ATTACH ${req.url}`);
    socket.on('error', () => {});
    if (this.noAttach) {
      socket.end('HTTP/1.1 500 Internal Server Error\r\nContent-Length: 15\r\nConnection: close\r\n\r\nno container it');
      return;
    }
    const accept = createHash('sha1').update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64');
    const cut = this.cut-- > 0;
    if (!cut && this.attachAfter) await sleep(this.attachAfter);
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n`);
    if (cut) {
      socket.end();
      return;
    }
    socket.write(frame(Buffer.from([1])));
    let held = true;
    let deaf = this.deaf ?? 0; // letters that nobody hears yet
    socket.on('data', (d) => {
      for (const [channel, ...bytes] of payloads(d)) {
        if (channel !== 0 || (held && deaf-- > 0)) continue;
        const text = Buffer.from(bytes);
        if (held && text[0] === 10) held = false;
        else for (const to of held ? [1, 2] : [1]) socket.write(frame(Buffer.concat([Buffer.from([to]), text])));
      }
    });
    this.socket = socket;
  }

  /** To every watch. */
  tell(type, object) {
    for (const w of this.watches) w.write(JSON.stringify({ type, object }) + '\n');
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
    this.socket?.destroy();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
