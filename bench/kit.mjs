// kit.mjs - what the benchmarks share: start a server, load it, compare.
//
// All that is compared runs in the same minute, in turns whose order is
// reversed every other time, and the median counts. Nothing here judges:
// a line shows the goal next to the figure.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const exec = promisify(execFile);
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const built = (name) => `${process.env.MO_BUILD}/bench/${name}`;

export const program = process.env.MO_BIN;
export const node = (name, ...flags) => [process.execPath, ...flags, here(name)];
export const native = (name) => [built(name)];

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
export async function run(file, args) {
  const { stdout } = await exec(built(file), args.map(String));
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
