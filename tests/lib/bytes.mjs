// Clients that keep what they are told as the bytes it was, and JSON read
// without changing any of them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Lines of a stream. Not readline: to it U+2028 ends a line, too. */
export function onLines(stream, tell) {
  let left = '';
  stream.setEncoding('utf8').on('data', (text) => {
    const lines = (left + text).split('\n');
    left = lines.pop();
    lines.forEach(tell);
  });
}

/** Where the value ends that begins at `at`; the text is valid JSON. */
function endOf(text, at) {
  const first = text[at];
  if (first === '"') {
    for (let i = at + 1; ; i++) {
      if (text[i] === '\\') i++;
      else if (text[i] === '"') return i + 1;
    }
  }
  if (first !== '{' && first !== '[') {
    const rest = /[\s,\]}]/g;
    rest.lastIndex = at;
    const m = rest.exec(text);
    return m ? m.index : text.length;
  }
  for (let i = at, depth = 0; ; i++) {
    if (text[i] === '"') i = endOf(text, i) - 1;
    else if (text[i] === '{' || text[i] === '[') depth++;
    else if (text[i] === '}' || text[i] === ']') depth--;
    if (depth === 0) return i + 1;
  }
}

const skip = (text, at) => {
  while (/[\s,:]/.test(text[at])) at++;
  return at;
};

/** The members of an object: [key, value], both as they are written. */
export function members(text) {
  const all = [];
  for (let at = skip(text, 1); text[at] !== '}'; at = skip(text, at)) {
    const key = text.slice(at, (at = endOf(text, at)));
    at = skip(text, at);
    all.push([key, text.slice(at, (at = endOf(text, at)))]);
  }
  return all;
}

/** The values of an array, as they are written. */
export function items(text) {
  const all = [];
  for (let at = skip(text, 1); text[at] !== ']'; at = skip(text, at))
    all.push(text.slice(at, (at = endOf(text, at))));
  return all;
}

export const member = (text, name) =>
  members(text).find(([key]) => key === JSON.stringify(name))?.[1];

const MODERN = '2026-07-28';
const P = 'io.modelcontextprotocol/';
const clientInfo = { name: 'bytes', version: '1' };
const metaOf = (capabilities) => ({
  [`${P}protocolVersion`]: MODERN,
  [`${P}clientCapabilities`]: capabilities,
  [`${P}clientInfo`]: clientInfo,
});
const hello = (capabilities) => ({ protocolVersion: '2025-11-25', capabilities, clientInfo });

function isObject(text) {
  try {
    return text[0] === '{' && Boolean(JSON.parse(text));
  } catch {
    return false;
  }
}

/** The message of that id among the texts of messages. */
const isAnswer = (text, id) => member(text, 'id') === String(id);

/** A client on stdio: ask(method, params) gives the answer's text. It refuses
 *  every question, whatever its capabilities say. */
export class Line {
  static async open({ command, args = [], env, cwd }, era, capabilities = {}) {
    const it = new Line();
    it.era = era;
    it.meta = metaOf(capabilities);
    it.last = 0;
    it.waiting = new Map();
    it.child = spawn(command, args, {
      env: env ?? process.env, cwd, stdio: ['pipe', 'pipe', 'ignore'],
    });
    it.gone = once(it.child, 'exit');
    onLines(it.child.stdout, (text) => {
      if (!isObject(text)) return; // a server that prints other things, too
      const [asked, number] = [member(text, 'method'), member(text, 'id')];
      if (asked && number)
        it.tell({ id: JSON.parse(number), error: { code: -32601, message: 'no answers here' } });
      const id = Number(number);
      if (asked || !it.waiting.has(id)) return;
      it.waiting.get(id)(text);
      it.waiting.delete(id);
    });
    it.gone.then(() => it.waiting.forEach((tell) => tell('{}')));
    if (era === 'legacy') {
      await it.ask('initialize', hello(capabilities));
      it.tell({ method: 'notifications/initialized' });
    }
    return it;
  }

  tell(m) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...m })}\n`);
  }

  ask(method, params = {}) {
    const id = ++this.last;
    const all = this.era === 'modern' ? { ...params, _meta: this.meta } : params;
    this.tell({ id, method, params: all });
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  async close() {
    this.child.stdin.end();
    await this.gone;
  }
}

const named = {
  'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri',
};

const plain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;
const header = (text) =>
  plain.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;

/** The same over HTTP. */
export class Http {
  static async open({ url }, era, capabilities = {}) {
    const it = new Http();
    it.url = url;
    it.era = era;
    it.meta = metaOf(capabilities);
    it.last = 0;
    if (era === 'legacy') {
      await it.ask('initialize', hello(capabilities));
      await it.post({ method: 'notifications/initialized' });
    }
    return it;
  }

  async post(m) {
    const name = named[m.method] && header(m.params[named[m.method]]);
    const answer = await fetch(this.url, {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', ...m }),
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': this.era === 'modern' ? MODERN : '2025-11-25',
        ...(this.session && { 'mcp-session-id': this.session }),
        ...(this.era === 'modern' && { 'mcp-method': m.method }),
        ...(this.era === 'modern' && name && { 'mcp-name': name }),
      },
    });
    this.session ??= answer.headers.get('mcp-session-id') ?? undefined;
    const body = await answer.text();
    if (!/event-stream/.test(answer.headers.get('content-type') ?? '')) return [body];
    return body.split('\n\n').map((event) =>
      event.split('\n').filter((l) => l.startsWith('data:'))
        .map((l) => l.slice(5).trimStart()).join('\n')).filter(Boolean);
  }

  async ask(method, params = {}) {
    const id = ++this.last;
    const all = this.era === 'modern' ? { ...params, _meta: this.meta } : params;
    const said = await this.post({ id, method, params: all });
    const mine = said.find((text) => text.startsWith('{') && isAnswer(text, id));
    assert.ok(mine, `no answer to ${method}: ${said.join('\n').slice(0, 300)}`);
    return mine;
  }

  async close() {}
}
