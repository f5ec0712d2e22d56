// An Internet on this machine: a network namespace in which every address is
// local. One process there answers on all of them, so it sees each connection
// that leaves a box, wherever it goes, and each question to a name server.
//
// The module is that process, too, when it is started with an IPC channel.
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, isIPv6 } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const self = fileURLToPath(import.meta.url);

/** Addresses of the machine that boxes run on. */
export const OWN = '11.99.99.99';
export const OWN6 = '2a00:1234::99';

export class Internet {
  pings = 0;
  seen = []; // { tcp: ADDRESS, port, got } | { udp: ADDRESS } | { asked: NAME }

  /** answers: { NAME: [[ADDRESS...] for the first question, for the next...] },
   *  { NAME: 'OTHER NAME' } for an alias. */
  static async open(answers, ports = [7777, 443]) {
    const it = new Internet();
    it.dir = mkdtempSync(join(tmpdir(), 'mo-internet-'));
    writeFileSync(join(it.dir, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:5 attempts:1\n');
    writeFileSync(join(it.dir, 'hosts'), '127.0.0.1 localhost\n');
    writeFileSync(join(it.dir, 'nsswitch.conf'), 'hosts: files dns\n');
    const mounts = ['resolv.conf', 'hosts', 'nsswitch.conf'].map((f) => `mount --bind ${it.dir}/${f} /etc/${f}`).join(' && ');
    it.child = spawn('unshare', ['-m', '-n', 'sh', '-ec', `${mounts}
ip link set lo up; ip addr add ${OWN}/32 dev lo; ip addr add ${OWN6}/128 dev lo; ip route add local default dev lo; ip -6 route add local default dev lo
exec "$@"`, 'sh', process.execPath, self], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    it.child.on('message', (m) => { if (!m.ready && !m.pong) it.seen.push(m); });
    it.child.send({ answers, ports });
    await Promise.race([once(it.child, 'message'), once(it.child, 'exit').then(() => { throw new Error('no Internet'); })]);
    it.enter = ['nsenter', '-t', String(it.child.pid), '-m', '-n', '--'];
    return it;
  }

  /** Addresses that were reached since the last call, until now. */
  async take(kind = 'tcp') {
    const n = ++this.pings;
    const all = new Promise((done) => {
      const on = (m) => m.pong === n && (this.child.off('message', on), done());
      this.child.on('message', on);
    });
    this.child.send({ ping: n });
    await all;
    const mine = this.seen.filter((s) => s[kind] !== undefined);
    this.seen = this.seen.filter((s) => s[kind] === undefined);
    return mine;
  }

  async close() {
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
    rmSync(this.dir, { recursive: true });
  }
}

// --- the process in the namespace ----------------------------------------------

const plain = (address) => address.replace(/^::ffff:(?=\d+\.)/, '');

function connection(s) {
  const note = { tcp: plain(s.localAddress), port: s.localPort, got: '' };
  s.on('error', () => {});
  s.on('data', (d) => {
    note.got += d.toString('latin1');
    s.write(`at ${note.tcp}\n`);
  });
  s.on('end', () => s.end());
  process.send(note);
}

function addressBytes(text) {
  if (!isIPv6(text)) return Buffer.from(text.split('.').map(Number));
  let t = text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`);
  const [head, tail] = t.includes('::') ? t.split('::') : [t, undefined];
  const words = (x) => (x ? x.split(':') : []);
  const zeros = tail === undefined ? [] : Array(8 - words(head).length - words(tail).length).fill('0');
  return Buffer.from([...words(head), ...zeros, ...words(tail)].flatMap((w) => [parseInt(w, 16) >> 8, parseInt(w, 16) & 255]));
}

const nameBytes = (name) => Buffer.concat([...name.split('.').map((l) => Buffer.from([l.length, ...Buffer.from(l)])), Buffer.from([0])]);

function record(name, type, data) {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt16BE(data.length, 8); // after a time to live of 0
  return Buffer.concat([nameBytes(name), head, data]);
}

function nameServer(answers) {
  const times = new Map();
  const server = createSocket('udp4', (q, from) => {
    const labels = [];
    let at = 12;
    for (; q[at]; at += q[at] + 1) labels.push(q.toString('latin1', at + 1, at + 1 + q[at]));
    const asked = labels.join('.').toLowerCase();
    const type = q.readUInt16BE(at + 1);
    const records = [];
    let name = asked;
    if (typeof answers[name] === 'string') {
      records.push(record(name, 5, nameBytes(answers[name])));
      name = answers[name];
    }
    const n = times.get(`${name} ${type}`) ?? 0;
    times.set(`${name} ${type}`, n + 1);
    const rounds = answers[name] ?? answers['*'];
    for (const a of rounds ? rounds[Math.min(n, rounds.length - 1)] : [])
      if (type === (isIPv6(a) ? 28 : 1)) records.push(record(name, type, addressBytes(a)));
    const head = Buffer.from(q.subarray(0, 12));
    head[2] = 0x81;
    head[3] = rounds ? 0x80 : 0x83;
    head.fill(0, 8);
    head[7] = records.length;
    server.send(Buffer.concat([head, q.subarray(12, at + 5), ...records]), from.port, from.address);
    process.send({ asked, type, n });
  });
  return new Promise((done) => server.bind(53, '127.0.0.1', done));
}

if (process.argv[1] === self && process.send) {
  const [{ answers, ports }] = await once(process, 'message');
  await nameServer(answers);
  for (const port of ports) {
    const s = createServer({ allowHalfOpen: true }, connection).listen(port, '::');
    await once(s, 'listening');
    const u = createSocket('udp6', (m, from) => process.send({ udp: plain(from.address) }));
    u.bind(port);
    await once(u, 'listening');
  }
  process.send({ ready: true });
  process.on('message', ({ ping }) => process.send({ pong: ping })); // after all that was told before
}
