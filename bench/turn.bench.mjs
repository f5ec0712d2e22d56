// Turns: from a person's message to the final answer, with a model that
// answers at once, tools in native boxes, calls allowed by a rule.
//
// The floor is what nobody can leave out: a message to the server and back,
// and the model asked directly with a request as long as the server's, as
// often as the turn asks it. It is measured in the same minute by the same
// client, in turns with ours. Where one person waits that client is
// bench/talk.c, which reads and does nothing else: what a page in Node takes
// for the five events of a turn is not counted. What remains is ours: the store's commits (two
// of a plain turn, four of one with a tool, of which half run beside the
// model), the tool itself, and what is to be improved. The same turns with the
// state in memory show how much of it is the disk.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws';

import { median, node, program, ratio, run, say, start } from './kit.mjs';

const { noNative } = await import('../tests/lib/sessions.mjs');
const now = () => Number(process.hrtime.bigint()) / 1e6;
const TURNS = 300;

/** `serve` in a directory of its own, with everything but the page. */
class House {
  static async open(model, parent) {
    const h = new House();
    h.dir = mkdtempSync(join(parent, 'mo-turn-'));
    h.sockets = [];
    writeFileSync(join(h.dir, 'mcp-orchestrator.json'), JSON.stringify({
      llm: { provider: 'claude', model: 'claude-sonnet-5-5', maxHistoryTokens: 2000 },
      sandbox: { driver: 'native', warm: 0, memoryMb: 64, workspaceMb: 8 },
      sessions: { max: 1024 },
      approvals: { rules: [{ server: 'box', action: 'allow' }] },
    }));
    h.child = spawn(program, ['serve', '--no-auth', '--port', '0'], {
      cwd: h.dir, stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH, HOME: h.dir, ANTHROPIC_API_KEY: 'sk-ant-0123456789',
        ANTHROPIC_BASE_URL: `http://127.0.0.1:${model.port}` },
    });
    process.on('exit', () => h.child.kill('SIGKILL'));
    const lines = createInterface({ input: h.child.stdout });
    for await (const line of lines) {
      h.port = Number(/is ready: https?:\/\/[^:]+:(\d+)\//.exec(line)?.[1] ?? 0);
      if (h.port) break;
    }
    while (!(await fetch(`http://127.0.0.1:${h.port}/readyz`)).ok) await sleep(20);
    return h;
  }

  async close() {
    for (const s of this.sockets) s.terminate();
    const gone = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    await gone;
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** ns of processor time, all threads. */
  cpu() {
    const tasks = `/proc/${this.child.pid}/task`;
    return readdirSync(tasks).reduce((sum, t) =>
      sum + Number(readFileSync(`${tasks}/${t}/schedstat`, 'utf8').split(' ')[0]), 0);
  }

  rss() {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.child.pid}/status`, 'utf8'))[1]);
  }

  async person(id) {
    const ws = new WebSocket(`ws://127.0.0.1:${this.port}/socket.io/?EIO=4&transport=websocket&sessionId=${id}`,
      { perMessageDeflate: false });
    const p = { ws, waits: [], words: 0 };
    this.sockets.push(ws);
    ws.on('message', (data) => {
      const text = data.toString('latin1');
      if (text.startsWith('42["agent:delta"')) p.words += text.split('word').length - 1;
      else if (text === '2') ws.send('3');
      else if (text.startsWith('42["agent:error"') || text.startsWith('42["error"')) throw new Error(text);
      p.waits = p.waits.filter(({ head, done }) => !text.startsWith(head) || done());
    });
    p.next = (head) => new Promise((done) => p.waits.push({ head, done }));
    await once(ws, 'open');
    const ready = p.next('42["session:history"');
    ws.send('40');
    await ready;
    return p;
  }
}

async function turn(p, text) {
  const done = p.next('42["agent:response"');
  const began = now();
  p.ws.send(`42["message",${JSON.stringify(text)}]`);
  await done;
  return now() - began;
}

async function ping(p) {
  const began = now();
  p.ws.ping();
  await once(p.ws, 'pong');
  return now() - began;
}

/** The model asked directly, over a connection that stays. */
class Direct {
  static async open(model, text, bytes) {
    const d = new Direct();
    const body = JSON.stringify({ pad: 'x'.repeat(bytes), messages: [{ role: 'user', content: text }] });
    d.request = `POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    d.socket = connect(model.port, '127.0.0.1').setNoDelay(true).setEncoding('latin1');
    await once(d.socket, 'connect');
    let have = '';
    d.socket.on('data', (data) => {
      have += data;
      const end = have.indexOf('\r\n\r\n');
      const need = end < 0 ? Infinity : end + 4 + Number(/content-length: (\d+)/.exec(have)[1]);
      if (have.length < need) return;
      have = '';
      d.done();
    });
    return d;
  }

  /** As often as a turn asks it; ms. */
  async ask(times) {
    const began = now();
    for (let k = 0; k < times; k++) {
      const answered = new Promise((resolve) => (this.done = resolve));
      this.socket.write(this.request);
      await answered;
    }
    return now() - began;
  }

  close() {
    this.socket.destroy();
  }
}

async function many(n, f) {
  const v = [];
  for (let i = 0; i < n; i++) v.push(await f());
  return v;
}

const ms = (v) => v.toFixed(2).padStart(6);
const REQUEST = 13000; // bytes, about what the server sends
const ROUNDS = 10; // each of turns, then of what they are held against

function row(name, ours, floor, cpu, { goal, least } = {}) {
  const over = median(ours.map((v, i) => v - floor[i]));
  say(`  ${name.padEnd(28)} p50 ${ms(median(ours))} ms  floor ${ms(median(floor))} ms  ` +
    `ratio ${ratio(ours, floor).toFixed(1).padStart(5)}  over it ${ms(over)} ms  cpu ${ms(cpu)} ms a turn` +
    `${least ? `  least ${ms(least)} ms` : ''}${goal ? `   goal ${goal} ms over it` : ''}`);
}

/** One kind of turn: a round of turns, a round of the floor, and again. */
async function kind(h, model, where, name, text, asks, goal) {
  const session = `b-${name}-${where}`.replace(/\W/g, '-');
  const r = await run('talk', [h.port, h.child.pid, model.port, session, text, asks, ROUNDS, TURNS / ROUNDS]);
  const inMs = (v) => v / 1000;
  row(`${name}, ${where}`, r.ours.map(inMs), r.floor.map(inMs), r.cpu / 1000, { goal, least: r.least / 1000 });
}

/** So many people who all say something at once; from then to the last answer. */
async function together(h, model, n, name, text, asks) {
  const people = [], models = [];
  for (let i = 0; i < n; i++) {
    people.push(await h.person(`p-${name}-${i}`.replace(/\W/g, '-')));
    models.push(await Direct.open(model, text, REQUEST));
  }
  const all = async (f, of) => {
    const began = now();
    await Promise.all(of.map(f));
    return now() - began;
  };
  const ours = [], floor = [];
  let cpu = 0;
  await many(3, () => all((p) => turn(p, text), people));
  for (let i = 0; i < ROUNDS; i++) {
    const before = h.cpu();
    ours.push(await all((p) => turn(p, text), people));
    cpu += h.cpu() - before;
    floor.push(await all((p) => ping(p), people) + await all((m) => m.ask(asks), models));
  }
  for (const m of models) m.close();
  row(`${n} at once, ${name}`, ours, floor, cpu / ROUNDS / n / 1e6);
}

/** fdatasync of a page on the same disk: what one commit waits for. */
async function sync(parent) {
  const { open } = await import('node:fs/promises');
  const path = join(parent, `mo-turn-sync-${process.pid}`);
  const f = await open(path, 'w');
  const page = Buffer.alloc(4096, 1);
  try {
    const v = [];
    for (let i = 0; i < 100; i++) {
      const began = now();
      await f.write(page, 0, page.length, i * page.length);
      await f.datasync();
      v.push(now() - began);
    }
    return median(v);
  } finally {
    await f.close();
    rmSync(path);
  }
}

/* Words, each a delta of the model's: several may come in one of ours. */
async function stream(h, model) {
  const n = 20000, text = `stream ${n}`;
  const p = await h.person('b-stream');
  await turn(p, text);
  const rates = await many(5, async () => {
    p.words = 0;
    const took = await turn(p, text);
    if (p.words !== n) throw new Error(`${p.words} of ${n} words came`);
    return (p.words / took) * 1000;
  });
  const model_ = await Direct.open(model, text, 100);
  const least = (n / median(await many(5, () => model_.ask(1)))) * 1000;
  model_.close();
  say(`  ${'streamed deltas'.padEnd(28)} ${Math.round(median(rates))} /s   ` +
    `the model read directly ${Math.round(least)} /s   ratio ${(median(rates) / least).toFixed(2)}`);
}

async function memory(model, sizes) {
  const h = await House.open(model, tmpdir());
  try {
    const one = await h.person('m-0');
    await turn(one, 'hello');
    const before = h.rss();
    let open = 0;
    for (const size of sizes) {
      while (open < size) {
        const some = Math.min(20, size - open);
        await Promise.all(Array.from({ length: some }, (_, i) =>
          h.person(`m-${open + i + 1}`).then((p) => turn(p, 'hello'))));
        open += some;
      }
      say(`  ${`${size} sessions, boxes parked`.padEnd(28)} RSS ${Math.round(h.rss() / 1024)} MB, ` +
        `${((h.rss() - before) / size).toFixed(0)} KB each`);
    }
  } finally {
    await h.close();
  }
}

if (noNative) {
  say(`  needs ${noNative}`);
} else {
  const model = await start(node('peer_model.mjs'));
  try {
    for (const [where, parent] of [['disk', tmpdir()], ['memory', '/dev/shm']]) {
      const h = await House.open(model, parent);
      try {
        await kind(h, model, where, 'plain turn', 'hello', 1, 0.3);
        await kind(h, model, where, 'one tool', 'use it', 2, 1);
        if (where === 'memory') continue;
        await together(h, model, 20, 'plain turn', 'hello', 1);
        await together(h, model, 20, 'one tool', 'use it', 2);
        await stream(h, model);
      } finally {
        await h.close();
      }
    }
    say(`  ${'one fdatasync of this disk'.padEnd(28)} p50 ${ms(await sync(tmpdir()))} ms`);
    await memory(model, (process.env.SESSIONS ?? '20,1000').split(',').map(Number));
  } finally {
    await model.stop();
  }
}
