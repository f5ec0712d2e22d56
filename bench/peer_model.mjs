// peer_model.mjs - a model that answers at once: Anthropic's stream, made in
// advance, by a server that looks at no more of a request than it must.
// Prints its port.
//
// "use it": one call of a tool, then a word. "stream N": N deltas. Anything
// else: a word.
import { createServer } from 'node:net';

const event = (type, data) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
const block = (start, deltas) =>
  event('content_block_start', { index: 0, content_block: start }) +
  deltas.map((delta) => event('content_block_delta', { index: 0, delta })).join('') +
  event('content_block_stop', { index: 0 });
const reply = (blocks, stop_reason) => {
  const body = Buffer.from(event('message_start', { message: {
    id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-5-5', content: [],
    stop_reason: null, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 1 } } }) +
    blocks + event('message_delta', { delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: 5 } }) + event('message_stop', {}));
  return Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n' +
    `content-length: ${body.length}\r\n\r\n`), body]);
};
const words = (n) => reply(block({ type: 'text', text: '' },
  Array.from({ length: n }, (_, i) => ({ type: 'text_delta', text: `word${i} ` }))), 'end_turn');
const word = words(1);
const streams = new Map();
const models = Buffer.from(JSON.stringify({ has_more: false, data: [{ type: 'model',
  id: 'claude-sonnet-5-5', display_name: 'Claude Sonnet 5.5', created_at: '2026-11-09T00:00:00Z',
  max_input_tokens: 1000000, max_tokens: 128000, lifecycle: 'active' }] }));
const list = Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n' +
  `content-length: ${models.length}\r\n\r\n`), models]);
let calls = 0;
const call = () => reply(block({ type: 'tool_use', id: `toolu_${++calls}`, name: 'read_file', input: {} },
  [{ type: 'input_json_delta', partial_json: '{"path":"a.txt"}' }]), 'tool_use');

function answer(body) {
  const said = body.lastIndexOf('"role":"user"');
  const last = body.slice(said);
  const many = /stream (\d+)/.exec(last);
  if (last.includes('"tool_result"')) return word;
  if (last.includes('use it')) return call();
  if (!many) return word;
  if (!streams.has(many[1])) streams.set(many[1], words(Number(many[1])));
  return streams.get(many[1]);
}

const server = createServer((socket) => {
  let have = '';
  socket.setNoDelay(true);
  socket.setEncoding('latin1');
  socket.on('error', () => {});
  socket.on('data', (d) => {
    have += d;
    for (;;) {
      const head = have.indexOf('\r\n\r\n');
      if (head < 0) return;
      const n = Number(/content-length: *(\d+)/i.exec(have.slice(0, head))?.[1] ?? 0);
      if (have.length < head + 4 + n) return;
      const body = have.slice(head + 4, head + 4 + n);
      socket.write(have.startsWith('GET') ? list : answer(body));
      have = have.slice(head + 4 + n);
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
