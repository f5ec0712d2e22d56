// kit.mjs - what the benchmarks share: start a server, load it, compare.
//
// All that is compared runs in the same minute, in turns whose order is
// reversed every other time, and the median counts. Nothing here judges:
// a line shows the goal next to the figure.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const exec = promisify(execFile);
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const built = (name) => `${process.env.MO_BUILD}/bench/${name}`;

export const program = process.env.MO_BIN;
/** What clients send to our server; load_mcp.c has it too. */
export const TOKEN = 'of-the-benchmarks-only';
export const node = (name, ...flags) => [process.execPath, ...flags, here(name)];
export const native = (name) => [built(name)];
export const npm = (path) => node(`node_modules/${path}`);

const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

// A server is a program whose first line ends in its port (or in a URL with
// it). It is killed with stop(), and with us.
export async function start(command) {
  const child = spawn(command[0], command.slice(1), {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.add(child);
  const lines = createInterface({ input: child.stdout });
  const [line] = await Promise.race([
    once(lines, 'line'),
    once(child, 'exit').then(() => {
      throw new Error(`${command.join(' ')} ended at once`);
    }),
  ]);
  return {
    port: Number(line.match(/(\d+)(\/mcp|\/)?$/)[1]),
    pid: child.pid,
    async stop() {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
      children.delete(child);
    },
  };
}

const free = async () => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
};
const answers = (port) =>
  new Promise((done) => {
    const s = connect(port, '127.0.0.1');
    s.on('connect', () => done(s.destroy() && true)).on('error', () => done(false));
  });

// A server that is told its port (PORT in the command) and says nothing of use:
// it is there when it can be connected to.
export async function startAt(command, env = {}) {
  const port = await free();
  const [file, ...args] = command.map((word) => String(word).replaceAll('PORT', port));
  const since = performance.now();
  const child = spawn(file, args, { stdio: 'ignore', env: { ...process.env, ...env } });
  children.add(child);
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`${command.join(' ')} ended at once`);
    await new Promise((r) => setTimeout(r, 2));
  }
  const ms = performance.now() - since;
  return {
    port,
    pid: child.pid,
    ms,
    async stop() {
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await gone;
      children.delete(child);
    },
  };
}

// A program of ours that prints one line of JSON.
export async function run(file, args, env = {}) {
  const { stdout } = await exec(built(file), args.map(String), { env: { ...process.env, ...env } });
  return JSON.parse(stdout);
}

export const load = (plan, server, ...rest) =>
  run('load', [plan, server.port, server.pid, ...rest]);
export const first = (idleMs, path, command) =>
  run('first', [idleMs, path, ...command]);

export function median(list) {
  const sorted = [...list].sort((a, b) => a - b);
  const mid = sorted.length >> 1;
  return sorted.length % 2 ? sorted[mid] : (sorted[mid - 1] + sorted[mid]) / 2;
}

// Let every party take its turn `times` times; figures by name, in order.
export async function inTurns(parties, times, turn) {
  const figures = Object.fromEntries(Object.keys(parties).map((k) => [k, []]));
  for (let i = 0; i < times; i++) {
    const order = Object.keys(parties);
    if (i % 2) order.reverse();
    for (const name of order) figures[name].push(await turn(parties[name]));
  }
  return figures;
}

// The median of the ratios within a turn: what disturbs a turn disturbs both.
export const ratio = (ours, theirs) =>
  median(ours.map((value, i) => value / theirs[i]));

export const say = (text) => console.log(text);

export const against = (what, name, ours, theirs, goal) =>
  say(`${what}: ratio to ${name} ${ratio(ours, theirs).toFixed(2)} ` +
    `(goal <= ${goal})`);

// --- memory and processes

export const mib = (pid) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

export function family(pid) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return {
    processes: children.length,
    mib: mib(pid),
    childrenMib: children.reduce((sum, child) => sum + mib(child), 0),
  };
}

// --- MCP clients for what is not timed

export class Client {
  static async open(port) {
    const client = new Client();
    client.url = `http://127.0.0.1:${port}/mcp`;
    await client.ask('initialize', {
      protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' },
    });
    return client;
  }

  async ask(method, params) {
    const answer = await fetch(this.url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json', accept: 'application/json, text/event-stream', ...this.session,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: (this.id = (this.id ?? 0) + 1), method, params }),
    });
    const id = answer.headers.get('mcp-session-id');
    if (id) this.session = { 'mcp-session-id': id };
    const text = await answer.text();
    return JSON.parse(text.startsWith('{') ? text : /^data: (\{.*)$/m.exec(text)[1]);
  }

  call(name, args) {
    return this.ask('tools/call', { name, arguments: args });
  }

  // The names of all tools.
  async tools() {
    const names = [];
    let cursor;
    do {
      const { result } = await this.ask('tools/list', cursor ? { cursor } : {});
      names.push(...result.tools.map((t) => t.name));
      cursor = result.nextCursor;
    } while (cursor);
    return names;
  }
}

// Of the transport of 2024-11-05.
export class OldClient {
  // Waits until `count` tools whose name ends in echo are listed.
  static async tools(port, path, count) {
    for (;;) {
      const client = new OldClient();
      const names = await client.list(`http://127.0.0.1:${port}`, path).catch(() => []);
      client.abort.abort();
      if (names.filter((name) => name.endsWith('echo')).length >= count) return names;
      await new Promise((r) => setTimeout(r, 20));
    }
  }

  abort = new AbortController();

  async list(at, path) {
    const { signal } = this.abort;
    const events = await fetch(at + path, { headers: { accept: 'text/event-stream' }, signal });
    const lines = this.lines(events.body);
    const where = new URL((await lines.next()).value, at);
    const ask = async (id, method, params) => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
      await fetch(where, { method: 'POST', headers, body, signal });
      for (;;) {
        const message = JSON.parse((await lines.next()).value);
        if (message.id === id) return message.result;
      }
    };
    await ask(1, 'initialize', {
      protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'bench', version: '1' },
    });
    return (await ask(2, 'tools/list', {})).tools.map((t) => t.name);
  }

  // What stands behind data: in each event.
  async *lines(body) {
    let text = '';
    for await (const piece of body.pipeThrough(new TextDecoderStream())) {
      text += piece;
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n')) {
        const line = text.slice(0, at).trimEnd();
        text = text.slice(at + 1);
        if (line.startsWith('data: ')) yield line.slice(6);
      }
    }
  }
}
