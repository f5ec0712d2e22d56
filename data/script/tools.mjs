// The tools that this script may call.
//
//   import tools from './tools.mjs';
//   const text = await tools.read_file({ path: 'notes.txt' });  // by its name
//   await tools.github.create_issue({ title: 'Bug' });          // by its server
//   await tools.call('any-name', { a: 1 });                     // by its exact name
//   await tools.find('send a message');       // [{ name, description, ... }]
//   await Promise.all([tools.read_file({ path: 'a' }), tools.read_file({ path: 'b' })]);
//
// A call returns the tool's structured content if there is any, else its text,
// else the whole result; tools.call(name, args, { raw: true }) returns the
// whole result. A call that fails throws a ToolError.
//
// Each call is a line of JSON over the descriptor in MO_TOOLS_FD.
import { readFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';

/** A call failed. `kind` says how; `result` is what the tool returned. */
export class ToolError extends Error {
  constructor(message, result) {
    super(message);
    this.name = this.constructor.name;
    this.kind = this.constructor.name.toLowerCase();
    this.result = result;
  }
}

/** The tool was not run, or it returned an error. */
export class Failed extends ToolError {}

/** A person said no; `reason` is what they gave as reason. */
export class Rejected extends ToolError {
  get reason() {
    return this.message;
  }
}

/** A rule forbids the call. */
export class Denied extends ToolError {}

/** The tool may have run or not: the outcome is not known. */
export class Unknown extends ToolError {}

/** There is no connection to the tools. */
export class Gone extends ToolError {}

/** The script made too many calls. */
export class Limit extends ToolError {}

const kinds = {
  failed: Failed, rejected: Rejected, denied: Denied, unknown: Unknown, gone: Gone, limit: Limit,
};

// --- the connection ---------------------------------------------------------

const LINE_MAX = 1 << 20; // bytes
const waiting = new Map(); // id: the functions that take the answer
const descriptor = Number(process.env.MO_TOOLS_FD || 0);
delete process.env.MO_TOOLS_FD; // not for what it starts
let socket;
let ended = !descriptor;
let lastId = 0;
let rest = []; // pieces of a line that has not ended

function end() {
  ended = true;
  for (const { reject } of waiting.values())
    reject(new Gone('the connection to the tools ended'));
  waiting.clear();
}

function give(line) {
  const answer = JSON.parse(line);
  const { resolve, reject } = waiting.get(answer.id) ?? {};
  if (!waiting.delete(answer.id)) return;
  if (waiting.size === 0) socket.unref(); // the script may end
  const { error } = answer;
  if (error) reject(new (kinds[error.kind] ?? Failed)(error.message));
  else resolve(answer.result);
}

function take(piece) {
  let from = 0;
  for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, from)) {
    rest.push(piece.subarray(from, at));
    const line = rest.length === 1 ? rest[0] : Buffer.concat(rest);
    rest = [];
    from = at + 1;
    give(line.toString());
  }
  if (from < piece.length) rest.push(Buffer.from(piece.subarray(from)));
}

// Bytes come without a stream's queue, in one buffer that is used again.
function connect() {
  const onread = { buffer: Buffer.allocUnsafeSlow(1 << 16), callback: (n, b) => take(b.subarray(0, n)) };
  socket = new Socket({ fd: descriptor, onread });
  socket.on('error', end).on('close', end).resume();
}

// Most lines fit into the socket at once; a stream would take longer than that.
function send(line) {
  let sent = 0;
  if (socket.writableLength === 0) {
    try {
      sent = writeSync(descriptor, line);
    } catch (e) {
      if (e.code !== 'EAGAIN') return socket.destroy(e);
    }
  }
  if (sent < line.length) socket.write(line.subarray(sent));
}

function ask(frame) {
  return new Promise((resolve, reject) => {
    const id = ++lastId;
    const line = Buffer.from(`${JSON.stringify({ id, ...frame })}\n`);
    if (line.length > LINE_MAX)
      throw new Failed('the arguments are longer than 1 MiB');
    if (ended) throw new Gone('there is no connection to the tools');
    if (!socket) connect();
    if (waiting.size === 0) socket.ref();
    waiting.set(id, { resolve, reject });
    send(line);
  });
}

// --- calls ------------------------------------------------------------------

const asSites = (_, sites) => sites;

/** The line of the script that makes this call. The stack is not written as
 *  text: that takes longer than all the rest of a call. */
function lineOfCall() {
  const { prepareStackTrace } = Error;
  Error.prepareStackTrace = asSites;
  const { stack } = new Error();
  Error.prepareStackTrace = prepareStackTrace;
  return stack?.find((s) => s.getFileName()?.endsWith('/main.mjs'))?.getLineNumber();
}

function textOf(result) {
  const parts = result.content ?? [];
  return parts.length && parts.every((p) => p.type === 'text')
    ? parts.map((p) => p.text).join('\n') : undefined;
}

function valueOf(result) {
  const text = textOf(result);
  if (result.isError) throw new Failed(text || 'the tool returned an error', result);
  return result.structuredContent ?? text ?? result;
}

/** Call a tool by its exact name. */
export function call(name, args = {}, { raw = false } = {}) {
  const answer = ask({ tool: String(name), arguments: { ...args }, line: lineOfCall() });
  return raw ? answer : answer.then(valueOf);
}

/** Tools for a task in plain words: [{ name, description, confidence }]. */
export async function find(words, limit = 10) {
  const result = await ask({ find: String(words), limit });
  const content = result.structuredContent ?? result;
  return content.tools ?? content;
}

// --- tools as functions -----------------------------------------------------

let names;

/** The name of a tool that is no identifier, such as "create-issue". */
function exact(identifier) {
  if (!names) {
    names = new Map();
    try {
      const file = new URL('./names.json', import.meta.url);
      names = new Map(Object.entries(JSON.parse(readFileSync(file, 'utf8'))));
    } catch (e) {
      if (e.code !== 'ENOENT') throw e;
    }
  }
  return names.get(identifier) ?? identifier;
}

const own = { call, find, ToolError, Failed, Rejected, Denied, Unknown, Gone, Limit };

/** tools.NAME, or tools.SERVER, whose members are its tools. */
function tool(name) {
  return new Proxy((args) => call(exact(name), args), {
    get: (_, key) => (typeof key === 'string' && key !== 'then' ? tool(`${name}_${key}`) : undefined),
  });
}

export default new Proxy(own, {
  get: (_, key) => {
    if (Object.hasOwn(own, key)) return own[key];
    return typeof key === 'string' && key !== 'then' ? tool(key) : undefined;
  },
});
