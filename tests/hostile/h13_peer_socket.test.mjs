// H13: the socket through which the servers of one store join each other's
// conversations. Another user of the machine at it, or in its place; and bytes
// that no server sends.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmod, readdir, rm } from 'node:fs/promises';
import net from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { NOBODY, as, notRoot } from '../lib/attack.mjs';
import { Replicas } from '../it/replicas_kit.mjs';
import { MIB, until, within } from '../it/server.mjs';

const JOIN = 1, COMMAND = 2, EVENT = 3, ACK = 4, CLOSED = 5, PING = 6, PONG = 7;
const SAY = 0, DECIDE = 1, ANSWER = 2, ACCEPT = 3, CANCEL = 4, RESET = 5, END = 6;
const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32BE(n >>> 0); return b; };
const field = (s) => Buffer.concat([u32(Buffer.byteLength(s)), Buffer.from(s)]);
const frame = (type, ...parts) => { const d = Buffer.concat(parts); return Buffer.concat([Buffer.from([type]), u32(d.length), d]); };
/** name and role: as the gate of the other server has judged; role 4: the operator. */
const join1 = (session, { owner = '', version = '1', name = `${owner}\0`, role = 4, groups = '\0', grant = '', reads = 0 } = {}) =>
  frame(JOIN, ...[version, session, '', '', 'me', owner, name].map(field), u32(role), field(groups), field(grant), u32(reads), field('page'));
const command = (kind, ...fields) => frame(COMMAND, u32(1), u32(kind), u32(0), ...fields);

let all, tab, path, run;
before(async () => {
  all = await Replicas.start({ env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' } });
  tab = all.v[0].tab();
  await tab.ready();
  run = join(all.dirs[0], (await readdir(all.dirs[0], { recursive: true })).find((f) => f.endsWith('/run')));
  // Of two sockets: the one at which the session is.
  for (const name of (await readdir(run)).filter((f) => f.endsWith('.peer'))) {
    const got = await talk(join(run, name), [join1(tab.session)], (frames) => frames.length > 0);
    if (got.frames.some((f) => f.text.includes('system:ready'))) path = join(run, name);
  }
  assert.ok(path);
});
after(() => all.stop());

/** Sends the parts; what comes back, until the end or until enough(frames). */
async function talk(to, parts, enough = () => false) {
  const s = net.connect(to);
  let bytes = Buffer.alloc(0);
  const frames = [];
  const done = new Promise((resolve) => {
    s.on('error', resolve).on('close', resolve);
    s.on('data', (d) => {
      bytes = Buffer.concat([bytes, d]);
      while (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt32BE(1)) {
        const n = 5 + bytes.readUInt32BE(1);
        frames.push({ type: bytes[0], text: bytes.subarray(5, n).toString('latin1') });
        bytes = bytes.subarray(n);
      }
      if (enough(frames)) s.destroy();
    });
  });
  for (const p of parts) s.write(p);
  await within(done, 'the end of the connection');
  return { frames };
}

const alive = async () => {
  const said = await tab.say('are you there?');
  assert.equal(said.ok, true, JSON.stringify(said));
};

test('it and its directory are of this user only', async () => {
  const { statSync } = await import('node:fs');
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(run).mode & 0o077, 0);
});

test('another user is not answered, even behind open directories', { skip: notRoot }, async () => {
  const dirs = [];
  for (let d = run; d !== '/tmp' && d !== '/'; d = join(d, '..')) dirs.push(d);
  const { statSync } = await import('node:fs');
  const modes = dirs.map((d) => statSync(d).mode & 0o777);
  for (const d of dirs) await chmod(d, 0o777);
  await chmod(path, 0o777);
  const events = tab.events.length;
  try {
    const got = await as(NOBODY, `
      const net = await import('node:net');
      const all = [];
      for (const hex of ${JSON.stringify([join1(tab.session), join1(tab.session, { owner: 'alice' }),
    Buffer.concat([join1(tab.session), command(SAY, field('A'.repeat(24)), field('from nobody'))]),
    Buffer.concat([join1(tab.session), command(END)])].map((b) => b.toString('hex')))})
        all.push(await new Promise((done) => {
          let n = 0;
          const s = net.connect(${JSON.stringify(path)}, () => s.write(Buffer.from(hex, 'hex')));
          s.on('data', (d) => { n += d.length; }).on('error', () => {}).on('close', () => done(n));
        }));
      console.log(JSON.stringify(all));`);
    assert.deepEqual(got, [0, 0, 0, 0]);
    assert.match(all.v[0].server.log, /refused at the peer socket: another user/);
    assert.equal(tab.events.length, events, 'nobody has said or ended anything');
  } finally {
    await chmod(path, 0o600);
    for (const [i, d] of dirs.entries()) await chmod(d, modes[i]);
  }
  await alive();
});

test('bytes that no server sends end the connection, and nothing else', async () => {
  const session = tab.session;
  const rows = [
    ['an unknown type', [Buffer.from([0, 0, 0, 0, 0])]],
    ['a high type', [Buffer.from([255])]],
    ['a length of 4 GiB', [Buffer.from([JOIN, 255, 255, 255, 255])]],
    ['one byte too long', [Buffer.from([COMMAND]), u32(2 * MIB + 1)]],
    ['a command before the join', [command(CANCEL)]],
    ['a join without fields', [frame(JOIN)]],
    ['a field longer than its frame', [frame(JOIN, u32(1000), Buffer.from('1'))]],
    ['more than a join', [frame(JOIN, ...['1', session, '', '', '', '', '', 'x'].map(field))]],
    ['a name without its end', [join1(session, { name: 'me' })]],
    ['two names', [join1(session, { name: 'me\0you\0' })]],
    ['a name that would be cut', [join1(session, { name: `${'m'.repeat(97)}\0` })]],
    ['a token id that would be cut', [join1(session, { grant: 'g'.repeat(32) })]],
    ['an unknown role', [join1(session, { role: 5 })]],
    ['groups without their end', [join1(session, { groups: 'leads\n' })]],
    ['too many groups', [join1(session, { groups: `${'g'.repeat(4096)}\0` })]],
    ['a ping without groups', [join1(session), frame(PING)]],
    ['a ping with more', [join1(session), frame(PING, field('a\n\0'), field('x'))]],
    ['a flag that is none', [join1(session, { reads: 2 })]],
    ['two joins', [join1(session), join1(session)]],
    ['an event of ours', [frame(EVENT, field('agent:response'), Buffer.from('"x"'))]],
    ['an answer of ours', [frame(ACK, u32(1), u32(1), field(''), field(''), field(''))]],
    ['a closing of ours', [frame(CLOSED, field('killed'), u32(0), field(''))]],
    ['a pong of ours', [frame(PONG)]],
    ['an unknown command', [join1(session), command(99)]],
    ['a command without its fields', [join1(session), command(SAY)]],
    ['a command with too many', [join1(session), command(CANCEL, field('x'))]],
    ['a number that is none', [join1(session), frame(COMMAND, Buffer.from([1]))]],
  ];
  for (const [name, parts] of rows) {
    const { frames } = await talk(path, parts);
    assert.ok(frames.every((f) => [EVENT, ACK].includes(f.type)), name);
  }
  await alive();
});

test('values that are not valid are refused as those of a member are', async () => {
  const enough = (type) => (frames) => frames.some((f) => f.type === type);
  for (const [name, id] of [['too short', 'x'], ['with a quote', `${'A'.repeat(23)}"`], ['empty', '']]) {
    const { frames } = await talk(path, [join1(tab.session), command(SAY, field(id), field('text'))], enough(ACK));
    assert.match(frames.find((f) => f.type === ACK).text, /bad_request.*id is not valid/, name);
  }
  const long = await talk(path, [join1(tab.session), command(SAY, field('A'.repeat(24)), field('x'.repeat(256 * 1024 + 1)))], enough(ACK));
  assert.match(long.frames.find((f) => f.type === ACK).text, /longer than 256 KiB/);
  for (const [name, part, says] of [
    ['a session id', join1('../../etc'), /session id/],
    ['another version', join1(tab.session, { version: '0' }), /another version/],
    ['another owner', join1(tab.session, { owner: 'mallory' }), /no such session/],
  ]) {
    const { frames } = await talk(path, [part], enough(CLOSED));
    assert.match(frames.at(-1).text, says, name);
    assert.equal(frames.at(-1).type, CLOSED);
  }
  await alive();
});

test('a reader does not get more by asking the holder', async () => {
  const enough = (type) => (frames) => frames.some((f) => f.type === type);
  const decide = (remember) => command(DECIDE, field('c'), u32(1), u32(0xffffffff), field(''), field(''), u32(remember), field(''));
  for (const [name, ask] of [
    ['say', command(SAY, field('A'.repeat(24)), field('text'))], ['cancel', command(CANCEL)], ['reset', command(RESET)],
    ['end', command(END)], ['answer', command(ANSWER, field('r'), u32(0), field(''))],
    ['accept', command(ACCEPT, field('t'), field('d'))], ['decide before it is judged', decide(0)], ['remember', decide(1)],
  ]) {
    const { frames } = await talk(path, [Buffer.concat([join1(tab.session, { reads: 1 }), ask])], enough(ACK)); // one read
    assert.match(frames.find((f) => f.type === ACK).text, /read_only/, name);
  }
  // Judged by the row in the store: not shared with him.
  const { frames } = await talk(path, [join1(tab.session, { reads: 1, owner: 'mallory', role: 2 }), command(CANCEL)], enough(CLOSED));
  assert.deepEqual(frames.filter((f) => f.type === EVENT), []);
  assert.match(frames.at(-1).text, /no such session/);
  assert.ok(!tab.events.some(([e, entry]) => e === 'session:entry' && entry.blocks?.[0]?.text === 'text'));
  await alive();
});

test('connections that say nothing, or never read, cost little', async () => {
  const before = await all.v[0].server.rss();
  // Each claims two MiB and sends ten bytes.
  const idle = await Promise.all(Array.from({ length: 300 }, () => new Promise((resolve) => {
    const s = net.connect(path, () => { s.write(Buffer.from([JOIN, 0, 31, 255, 255, 1, 2, 3, 4, 5])); resolve(s); });
    s.on('error', () => {});
  })));
  await alive();
  assert.ok((await all.v[0].server.rss()) - before < 64 * MIB);
  for (const s of idle) s.destroy();
  // One joins, asks for much and reads nothing.
  const deaf = net.connect(path, () => {
    deaf.write(join1(tab.session));
    const bad = command(SAY, field('x'), field('x'));
    for (let i = 0; i < 10; i++) deaf.write(Buffer.concat(Array(30_000).fill(bad)));
  });
  deaf.pause();
  deaf.on('error', () => {});
  await until(() => /it reads too slowly/.test(all.v[0].server.log), 'its end');
  deaf.destroy();
  await alive();
});

test('who takes the place of a server is told nothing', { skip: notRoot }, async () => {
  const dirs = [];
  for (let d = run; d !== '/tmp' && d !== '/'; d = join(d, '..')) dirs.push(d);
  const { statSync } = await import('node:fs');
  const modes = dirs.map((d) => statSync(d).mode & 0o777);
  for (const d of dirs) await chmod(d, 0o777);
  await rm(path);
  const thief = spawn(process.execPath, ['--input-type=module', '-e', `
    process.setgroups([]); process.setgid(${NOBODY}); process.setuid(${NOBODY});
    const net = await import('node:net');
    net.createServer((s) => { console.log('come'); s.on('data', (d) => console.log('heard ' + d.length)).on('error', () => {}); })
      .listen(${JSON.stringify(path)}, () => console.log('listens'));`], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  thief.stdout.on('data', (d) => (said += d));
  try {
    await until(() => /listens/.test(said), 'the thief');
    await chmod(path, 0o777);
    const other = all.v[1].tab({ session: tab.session, auth: { token: 'sk-a-secret-key' } });
    await until(() => /come/.test(said), 'the call');
    // With the session let go, the tab is served by its own replica.
    tab.close();
    await other.ready();
    assert.doesNotMatch(said, /heard/);
  } finally {
    thief.kill();
    for (const [i, d] of dirs.entries()) await chmod(d, modes[i]);
  }
});
