// A server of the tests that does as its mood is: a file that says so, read at
// every call. Each call it gets is a line in another file, so that a test can
// count what was really done.
//
//   moody.mjs NAME MOOD_FILE LOG_FILE
//
// Moods: ok, die (of the call), die-once, hang, slow, wait (until it has another mood),
// eat (memory), error, pid (says its own), hold (answers behind the next call), big:BYTES, big-last:BYTES (the id
// behind the result), big-ask:BYTES (a request of its own), big-tell:BYTES (a
// notification). At start: no-init (hangs in initialize), no-start (dies at once), nonsense
// (answers what is no JSON), noisy (fills stderr), many:N (lists N tools),
// late-list (after 3 s), stray, bare-stray (starts a process in a session of its own, the
// second without an environment; the log has both pids).
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [name, moodFile, logFile] = process.argv.slice(2);
const mood = () => (existsSync(moodFile) ? readFileSync(moodFile, 'utf8').trim() : 'ok') || 'ok';
const say = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n');
const text = (t) => ({ content: [{ type: 'text', text: t }] });
const inputSchema = { type: 'object' };
const tools = [
  { name: 'work', description: 'Do the work', inputSchema },
  { name: 'look', description: 'Look at the work', inputSchema, annotations: { readOnlyHint: true } },
  { name: 'set', description: 'Set the work', inputSchema, annotations: { idempotentHint: true } },
];

let held = () => {};

const calls = {
  pid: (id) => say({ id, result: text(`${process.pid}`) }),
  hold: (id, what) => { held = () => { held = () => {}; calls.ok(id, what); }; },
  ok: (id, what) => say({ id, result: text(`${name} ${what}`) }),
  die: () => process.kill(process.pid, 'SIGKILL'),
  'die-once': () => { writeFileSync(moodFile, 'ok'); calls.die(); },
  hang: () => {},
  eat: () => { for (const all = []; ;) all.push(Buffer.alloc(1 << 24, 1)); }, // memory
  slow: (id, what) => setTimeout(() => calls.ok(id, what), 700),
  wait: (id, what) => { const look = setInterval(() => { if (mood() === 'wait') return; clearInterval(look); calls.ok(id, what); }, 20); },
  error: (id) => say({ id, error: { code: -32000, message: `${name} says no, sk-planted-secret-1` } }),
};

const line = (m) => process.stdout.write(JSON.stringify(m) + '\n');
const big = {
  big: (id, t) => say({ id, result: text(t) }),
  'big-last': (id, t) => line({ result: text(t), jsonrpc: '2.0', id }),
  'big-ask': (id, t) => say({ id, method: 'sampling/createMessage', params: { x: t } }),
  'big-tell': (id, t) => say({ method: 'notifications/message', params: { level: 'info', data: t } }),
};

function call(id, { name: tool, arguments: args }) {
  const now = mood();
  appendFileSync(logFile, `${name} ${tool} ${args?.n ?? ''} ${now}\n`);
  const [, how, bytes] = /^(big[a-z-]*):(\d+)$/.exec(now) ?? [];
  if (how) big[how](id, 'é'.repeat(Number(bytes) / 2));
  else (calls[now] ?? calls.ok)(id, `${tool} ${args?.n ?? ''}`);
  if (now !== 'hold') held();
}

function list(id) {
  const many = Number(/^many:(\d+)/.exec(mood())?.[1] ?? 0);
  const more = Array.from({ length: many }, (_, i) => ({ name: `t${i}`, inputSchema }));
  const answer = () => say({ id, result: { tools: [...tools, ...more] } });
  if (mood() === 'late-list') setTimeout(answer, 3000);
  else answer();
}

const methods = {
  initialize: (id) => mood() === 'no-init' || say({
    id,
    result: {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name, version: '1' },
    },
  }),
  'server/discover': (id) => say({ id, error: { code: -32601, message: 'no' } }),
  'tools/list': list,
  'tools/call': call,
};

if (mood() === 'no-start') process.exit(3);
if (/^(bare-)?stray$/.test(mood())) {
  const env = mood() === 'stray' ? process.env : {};
  const { pid } = spawn('sleep', ['100000'], { detached: true, stdio: 'ignore', env });
  appendFileSync(logFile, `${process.pid} ${pid}\n`);
}
if (mood() === 'noisy') for (let i = 0; i < 2000; i++) process.stderr.write(`${'noise '.repeat(100)}\n`);
createInterface({ input: process.stdin }).on('line', (line) => {
  if (mood() === 'nonsense') for (let i = 0; i < 100; i++) process.stdout.write('what a nice day\n');
  const m = JSON.parse(line);
  if (m.id !== undefined) (methods[m.method] ?? ((id) => say({ id, result: {} })))(m.id, m.params);
}).on('close', () => process.exit(0));
