// The router's second opinion: an embeddings server that works, one that is gone,
// and one that misbehaves in every way.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { MISDEEDS, startEmbeddings } from '../fakes/embeddings.mjs';
import { Place, bin, metricsOf, published } from '../lib/gateway.mjs';
import { run } from '../lib/mcp.mjs';
import { client1, until } from '../lib/mcp_talk.mjs';

const KEY = 'key-of-the-test';
const MODEL = 'a-model';
const ODD = 'frobnicate the gizmo'; // the router does not know these words
const CLEAR = 'read the text of a file';

const fake = await startEmbeddings({ model: MODEL, key: KEY });
after(() => fake.close());

function furnish(embeddings) {
  const place = new Place({});
  const docs = join(place.dir, 'docs');
  mkdirSync(docs);
  place.write({
    everything: published('server-everything'), files: published('server-filesystem', docs),
    memory: { ...published('server-memory'), env: { MEMORY_FILE_PATH: join(docs, 'memory.jsonl') } },
  }, { gateway: { expose: 'search', ...(embeddings && { embeddings }) } });
  place.more = { EMBEDDINGS_KEY: KEY };
  return place;
}

const settings = (more) => ({
  url: fake.url, model: MODEL, apiKey: '${env:EMBEDDINGS_KEY}', timeoutMs: 10_000, ...more,
});

/** serve, and a client with find(query). */
async function open(place) {
  process.env.EMBEDDINGS_KEY = KEY;
  const env = { ...place.env, ...place.more };
  Object.defineProperty(place, 'env', { value: env, configurable: true });
  const serve = await place.serve();
  const { client, call } = client1();
  await client.connect(new Http1(serve.url));
  const find = async (query, limit = 5) => {
    const { structuredContent, isError } = await call({ name: 'find_tool', arguments: { query, limit } });
    assert.ok(!isError);
    return structuredContent.results.map(({ server, tool, confidence }) => ({ server, tool, confidence }));
  };
  const metric = async (name) => {
    const page = await metricsOf(serve.url);
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(page)?.[1]);
  };
  await until(async () => (await find('echo a message')).length === 5, 'tools');
  await until(async () => new Set((await find('read write create get')).map((h) => h.server)).size > 1, 'tools of all');
  return {
    find, metric,
    close: async () => {
      await client.close();
      const { code, log } = await serve.stop();
      assert.equal(code, 0, log);
      assert.doesNotMatch(log, /Sanitizer|runtime error/);
      assert.ok(!log.includes(KEY), 'the key is in the log');
    },
  };
}

test('off: nothing is sent', async () => {
  const place = furnish();
  const it = await open(place);
  await it.find(ODD);
  assert.equal(fake.requests, 0);
  assert.equal(await it.metric('mo_router_embeddings_requests_total'), 0);
  await it.close();
  place.close();
});

describe('on', () => {
  const place = furnish(settings());
  after(() => place.close());

  test('texts are sent once, and change the order of doubtful candidates', async () => {
    const other = 'gizmo frobnication please';
    const rank = (found) => found.findIndex((h) => h.tool === 'get-sum');
    const plain = furnish();
    const alone = await open(plain);
    const before = rank(await alone.find(other, 50));
    await alone.close();
    plain.close();
    assert.ok(before > 0);
    const it = await open(place);
    await it.find(ODD);
    await until(() => fake.inputs.some((t) => t.startsWith('everything: get-sum.')), 'texts of tools');
    await until(async () => await it.metric('mo_router_embeddings_vectors') >= 30, 'vectors');
    // The server says that these words mean what the text of that tool means.
    fake.alias.set(other, fake.inputs.find((t) => t.startsWith('everything: get-sum.')));
    const found = await it.find(other, 50);
    assert.ok(rank(found) < before, `${rank(found)} after ${before}`);
    assert.ok(found[0].confidence < 0.8);
    for (let i = 1; i < found.length; i++) assert.ok(found[i].confidence <= found[i - 1].confidence);
    assert.equal(new Set(fake.inputs).size, fake.inputs.length, 'a text was sent twice');
    assert.deepEqual(fake.wrong, []);
    assert.equal(await it.metric('mo_router_embeddings_failures_total'), 0);
    await it.close();
  });

  test('after a restart they are known', async () => {
    const sent = fake.inputs.length;
    const it = await open(place);
    await it.find(ODD);
    assert.ok(await it.metric('mo_router_embeddings_vectors') >= 30);
    assert.equal(fake.inputs.length, sent);
    await it.close();
  });
});

test('a server that disagrees makes nothing sure, and one that agrees neither', async () => {
  const plain = furnish();
  const alone = await open(plain);
  const sure = await alone.find(CLEAR);
  await alone.close();
  plain.close();
  const place = furnish(settings());
  const it = await open(place);
  await until(async () => await it.metric('mo_router_embeddings_vectors') >= 30, 'vectors');
  const target = fake.inputs.find((t) => t.startsWith('memory: read_graph.'));
  fake.alias.set(CLEAR, target);
  const found = await it.find(CLEAR);
  assert.ok(found[0].confidence < 0.8, JSON.stringify(found));
  assert.ok(found[0].confidence <= Math.max(sure[0].confidence, 0.79));
  await it.close();
  place.close();
});

describe('a server that misbehaves costs its opinion only', () => {
  for (const misdeed of MISDEEDS)
    test(misdeed, async () => {
      const plain = furnish();
      const alone = await open(plain);
      const want = await alone.find(CLEAR);
      await alone.close();
      plain.close();
      fake.misdeed = misdeed;
      const place = furnish(settings({ timeoutMs: 50 }));
      const it = await open(place);
      assert.deepEqual(await it.find(CLEAR), want);
      assert.ok(await it.metric('mo_router_embeddings_failures_total') > 0);
      assert.equal(await it.metric('mo_router_embeddings_vectors'), 0);
      const asked = fake.requests;
      await it.find(`${CLEAR} now`);
      assert.equal(fake.requests, asked, 'it is left alone for a while');
      fake.misdeed = undefined;
      await it.close();
      place.close();
    });
});

test('doctor', async () => {
  const place = furnish(settings());
  const ask = async () => {
    const { out } = await run(bin, ['doctor', '--json', '--config', place.file], { env: { ...place.env, EMBEDDINGS_KEY: KEY } });
    const { checks } = JSON.parse(out);
    return checks.find((c) => c.name === 'embeddings');
  };
  assert.match(JSON.stringify(await ask()), /it answers/);
  place.write({}, { gateway: { embeddings: settings({ url: 'http://127.0.0.1:9/v1' }) } });
  assert.match(JSON.stringify(await ask()), /cannot connect/);
  place.write({}, { gateway: { embeddings: settings({ url: 'http://${env:NOWHERE}/v1' }) } });
  assert.match(JSON.stringify(await ask()), /gateway\.embeddings\.url: .*NOWHERE/);
  place.write({}, {});
  assert.match(JSON.stringify(await ask()), /not used/);
  place.close();
});
