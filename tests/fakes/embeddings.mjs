// A fake of an OpenAI-compatible embeddings server that refuses every request
// that a real one might refuse, and can be told to misbehave.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';

export const DIM = 48;
const TEXT_MAX = 2048;
const BATCH_MAX = 32;

/** The words of a text as counts in a few places. */
function vectorOf(text) {
  const v = new Array(DIM).fill(0);
  for (const word of text.toLowerCase().match(/[a-z]+/g) ?? ['none']) {
    let h = 7;
    for (const c of word) h = (h * 31 + c.charCodeAt(0)) % 1_000_003;
    v[h % DIM] += 1;
  }
  return v;
}

const misdeeds = {
  hang: () => {},
  error: (res) => res.writeHead(500).end('no'),
  close: (res) => res.destroy(),
  'wrong number': (res) => res.end(JSON.stringify({ data: [] })),
  'wrong dimension': (res, n) => res.end(JSON.stringify({
    data: Array.from({ length: n }, (_, index) => ({ index, embedding: n === 1 ? [] : index ? [1, 2, 3] : [1] })),
  })),
  NaN: (res, n) => res.end(`{"data":[${Array.from({ length: n }, () => '{"embedding":[1,NaN]}')}]}`),
  infinite: (res, n) => res.end(`{"data":[${Array.from({ length: n }, () => '{"embedding":[1,1e999]}')}]}`),
  'no JSON': (res) => res.end('<html>'),
  endless: (res) => {
    const more = () => {
      while (!res.destroyed && res.write(' '.repeat(65_536)));
    };
    res.on('drain', more);
    more();
  },
};
export const MISDEEDS = Object.keys(misdeeds);

/** {url, inputs, wrong, misdeed, same(text, as), close()}: inputs are the texts
 *  it was sent, wrong the requests that it refused. */
export async function startEmbeddings({ model, key }) {
  const it = { inputs: [], requests: 0, wrong: [], misdeed: undefined, alias: new Map() };
  const check = (req, body) => {
    assert.equal(`${req.method} ${req.url}`, 'POST /v1/embeddings');
    assert.match(req.headers['content-type'], /^application\/json/);
    assert.equal(req.headers.authorization, key && `Bearer ${key}`);
    const { model: asked, input, encoding_format: format, ...rest } = JSON.parse(body);
    assert.deepEqual(rest, {});
    assert.deepEqual([asked, format], [model, 'float']);
    assert.ok(Array.isArray(input) && input.length > 0 && input.length <= BATCH_MAX);
    for (const text of input) assert.ok(typeof text === 'string' && text && Buffer.byteLength(text) <= TEXT_MAX);
    return input;
  };
  const server = createServer(async (req, res) => {
    let body = '';
    for await (const piece of req.setEncoding('utf8')) body += piece;
    if (req.method === 'GET') return res.end('{"data":[]}');
    it.requests++;
    let input;
    try {
      input = check(req, body);
    } catch (e) {
      it.wrong.push(e.message);
      return res.writeHead(400).end();
    }
    if (it.misdeed) return misdeeds[it.misdeed](res, input.length);
    it.inputs.push(...input);
    const data = input.map((text, index) => ({
      object: 'embedding', index, embedding: vectorOf(it.alias.get(text) ?? text),
    }));
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify({ object: 'list', data: data.reverse(), model, usage: {} }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  it.url = `http://127.0.0.1:${server.address().port}/v1`;
  it.close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return it;
}
