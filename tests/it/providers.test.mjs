// Providers of models, set over HTTP: keys go into the secret store and nowhere
// else, tests name the cause, the environment has precedence, and servers on
// this machine can be the default.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, readdir } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { claude } from '../fakes/claude.mjs';
import { cleanEnv, named } from '../lib/mcp.mjs';
import { ollama } from '../lib/ollama.mjs';
import { BIN, Server, until } from './server.mjs';
import { House } from './talk_kit.mjs';

const exec = promisify(execFile);
const KEY = 'sk-ant-entered-in-the-page-0123456789';
const NEXT = 'sk-ant-entered-later-9876543210';

async function live(options, f) {
  const model = options.model ?? await claude({ key: KEY });
  const house = await House.start({ config: { llm: {} }, ...options, model }).catch(async (e) => {
    await model.close();
    throw e;
  });
  const file = async () => JSON.parse(await readFile(join(house.dir, 'mcp-orchestrator.json'), 'utf8'));
  const ask = async (method, path, body, headers = {}) => {
    const answer = await fetch(`http://127.0.0.1:${house.server.port}/api/${path}`, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  };
  try {
    await f({ house, model, file, ask });
  } finally {
    await house.stop();
    await model.close();
  }
}
const trial = async (ask, body, name = 'claude') => {
  const got = await ask('PUT', `providers/${name}?dryRun=true&test=true`, body);
  assert.equal(got.status, 200, JSON.stringify(got.body));
  assert.equal(got.body.saved, false);
  return got.body.test;
};
/** Everything below the server's directory that has the text, by path. */
async function filesWith(dir, text) {
  const found = [];
  for (const one of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (!one.isFile()) continue;
    const bytes = await readFile(join(one.parentPath, one.name));
    if (bytes.includes(text)) found.push(one.name);
  }
  return found;
}
const secretNames = async (house) => {
  const { stdout } = await exec(BIN, ['secrets', 'list', '--json'], {
    cwd: house.dir, env: cleanEnv({ ...named(house.dir), HOME: house.dir, MCP_ORCHESTRATOR_STATE_DIR: join(house.dir, '.local/state/mcp-orchestrator') }),
  });
  return [...stdout.matchAll(/llm\.[a-z.0-9]+/g)].map((m) => m[0]);
};

test('a key is tested, saved, used at once, replaced and removed', async () => {
  await live({}, async ({ house, model, file, ask }) => {
    const none = (await ask('GET', 'providers')).body;
    assert.deepEqual(none.providers.map((p) => [p.name, p.key, p.fixed]), [['claude', 'none', undefined], ['gemini', 'none', undefined], ['openai', 'none', undefined]]);
    assert.deepEqual([none.editable, none.modelFixed], [true, false]);
    assert.equal((await ask('GET', 'models/available')).body.provider, 'demo');

    const wrong = await trial(ask, { key: 'sk-ant-wrong-0123456789', baseUrl: model.url });
    assert.deepEqual([wrong.ok, wrong.cause], [false, 'key']);
    assert.doesNotMatch(JSON.stringify(wrong), /sk-ant-wrong/);
    const refused = await ask('PUT', 'providers/claude?test=true', { key: 'sk-ant-wrong-0123456789', baseUrl: model.url });
    assert.deepEqual([refused.status, refused.body.code], [422, 'test_failed']);
    model.problems.length = 0; // the wrong key
    const good = await trial(ask, { key: KEY, baseUrl: model.url });
    assert.ok(good.ok && good.models.some((m) => m.id === 'claude-sonnet-5-5'), JSON.stringify(good));
    assert.equal((await file()).llm.claude, undefined, 'a test saves nothing');
    assert.deepEqual(await secretNames(house), []);

    const saved = await ask('PUT', 'providers/claude?test=true', { key: KEY, baseUrl: model.url });
    assert.equal(saved.status, 200, JSON.stringify(saved.body));
    assert.doesNotMatch(JSON.stringify(saved.body), /entered-in-the-page/);
    assert.deepEqual((await file()).llm.claude, { apiKey: '${secret:llm.claude}', baseUrl: model.url });
    const tab = house.tab();
    assert.equal((await tab.ready()).ready.provider, 'claude');
    model.script.push({ text: 'from the model' });
    await tab.say('hello');
    assert.equal((await tab.event('agent:response'))[0], 'from the model');

    // Another key: the open conversation takes it with its next turn.
    model.key = NEXT;
    assert.equal((await ask('PUT', 'providers/claude', { key: NEXT })).status, 200);
    assert.equal((await file()).llm.claude.apiKey, '${secret:llm.claude.2}');
    assert.deepEqual(await secretNames(house), ['llm.claude.2'], 'the old key is gone');
    model.script.push({ text: 'again' });
    await tab.say('and now?');
    assert.equal((await tab.event('agent:response', 2))[0], 'again');
    tab.close();

    const set = (await ask('GET', 'providers')).body.providers[0];
    assert.deepEqual([set.key, set.baseUrl], ['set', model.url]);
    const { rows } = (await ask('GET', 'audit?q=provider')).body;
    assert.deepEqual(rows.map((r) => r.what.managed).filter(Boolean).toReversed(),
      ['test provider', 'test provider', 'test provider', 'test provider', 'set provider', 'set provider']);
    assert.deepEqual(rows.find((r) => r.what.managed === 'set provider').what.entry, { key: 'set' });
    assert.equal((await ask('DELETE', 'providers/claude')).status, 200);
    assert.deepEqual((await file()).llm, { claude: {} });
    assert.deepEqual(await secretNames(house), []);
    await until(async () => (await ask('GET', 'models/available')).body.provider === 'demo', 'the demo');
    for (const key of [KEY, NEXT]) {
      assert.doesNotMatch(house.server.log, new RegExp(key));
      assert.deepEqual(await filesWith(house.dir, key), [], 'in no file as text');
    }
    assert.deepEqual(model.problems, []);
  });
});

test('a test names the cause, and a redirect does not get the key', async () => {
  const seen = [];
  const thief = http.createServer((rq, rs) => {
    seen.push(rq.headers['x-api-key'] ?? rq.headers.authorization);
    rs.end('{"data":[]}');
  }).listen(0, '127.0.0.1');
  await once(thief, 'listening');
  const odd = http.createServer((rq, rs) => {
    const [, what] = rq.url.split('/');
    if (what === 'page') return rs.writeHead(200, { 'content-type': 'text/html' }).end('<html>hello</html>');
    if (what === 'moved') return rs.writeHead(307, { location: `http://127.0.0.1:${thief.address().port}/v1/models` }).end();
    if (what === 'poor') return rs.writeHead(402, { 'content-type': 'application/json' }).end('{"error":{"type":"billing_error","message":"no credit"}}');
    if (what === 'busy') return rs.writeHead(529).end('{"error":{"type":"overloaded_error","message":"later"}}');
    return rs.writeHead(404).end('nothing');
  }).listen(0, '127.0.0.1');
  await once(odd, 'listening');
  const at = (path) => `http://127.0.0.1:${odd.address().port}/${path}`;
  try {
    await live({}, async ({ ask }) => {
      for (const [path, cause] of [['page', 'address'], ['moved', 'address'], ['gone', 'address'], ['poor', 'credit'], ['busy', 'busy']]) {
        const got = await trial(ask, { key: KEY, baseUrl: at(path) });
        assert.deepEqual([got.ok, got.cause], [false, cause], JSON.stringify(got));
        const openai = await trial(ask, { key: KEY, baseUrl: at(path) }, 'openai');
        assert.deepEqual([openai.ok, openai.cause], [false, cause], JSON.stringify(openai));
        assert.doesNotMatch(JSON.stringify([got, openai]), /entered-in-the-page/);
      }
      const free = net.createServer().listen(0, '127.0.0.1');
      await once(free, 'listening');
      const { port } = free.address();
      free.close();
      await once(free, 'close');
      assert.equal((await trial(ask, { key: KEY, baseUrl: `http://127.0.0.1:${port}` })).cause, 'network');
      assert.deepEqual(seen, []);
    });
  } finally {
    thief.close();
    odd.closeAllConnections();
    odd.close();
  }
});

test('a stored key stays at its address; wrong requests are refused', async () => {
  await live({}, async ({ house, model, ask, file }) => {
    assert.equal((await ask('PUT', 'providers/claude', { key: KEY, baseUrl: model.url })).status, 200);
    const asked = model.requests.length;
    for (const baseUrl of ['http://127.0.0.1:9/', 'https://elsewhere.example', '', null]) {
      const got = await ask('PUT', 'providers/claude?test=true', { baseUrl });
      assert.equal(got.status, 400, JSON.stringify(got.body));
      assert.match(got.body.detail, /enter the key again/);
    }
    assert.equal((await ask('PUT', 'providers/claude', { baseUrl: `${model.url}/` })).status, 200, 'the same host');
    for (const [name, body, status] of [
      ['nobody', { key: 'x' }, 404], ['claude', { key: 7 }, 400], ['claude', { baseUrl: 'file:///etc/passwd', key: KEY }, 400],
      ['claude', [], 400],
    ]) assert.equal((await ask('PUT', `providers/${name}`, body)).status, status, name);
    assert.equal((await ask('PUT', 'models/default', {})).status, 400);
    assert.equal((await ask('PUT', 'models/default', { provider: 'nobody', model: 'x' })).status, 400);
    assert.equal(model.requests.length, asked, 'nobody was asked');
    assert.equal((await file()).llm.claude.baseUrl, `${model.url}/`);
    assert.deepEqual((await filesWith(house.dir, KEY)), []);
  });
});

test('the environment has precedence and says so; the operator may lock it', async () => {
  const model = await claude({ key: KEY });
  await live({ model, env: { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: model.url, LLM_MODEL: 'claude-sonnet-5-5' } }, async ({ ask, file }) => {
    const { body } = await ask('GET', 'providers');
    assert.deepEqual(body.providers[0].fixed, ['key', 'baseUrl']);
    assert.equal(body.modelFixed, true);
    for (const wish of [{ key: NEXT }, { baseUrl: 'http://127.0.0.1:9' }, { key: null }]) {
      const got = await ask('PUT', 'providers/claude', wish);
      assert.deepEqual([got.status, got.body.code], [409, 'environment'], JSON.stringify(got.body));
    }
    assert.equal((await ask('DELETE', 'providers/claude')).status, 409);
    assert.equal((await ask('PUT', 'models/default', { model: 'claude-opus-5-5' })).status, 409);
    assert.deepEqual((await file()).llm, {});
  });
  for (const config of [{ llm: { editable: false } }, { llm: {}, server: { manage: false } }])
    await live({ config }, async ({ ask }) => {
      assert.equal((await ask('GET', 'providers')).body.editable, false);
      for (const [method, path] of [['PUT', 'providers/claude?dryRun=true&test=true'], ['DELETE', 'providers/claude'], ['PUT', 'models/default']]) {
        const got = await ask(method, path, { key: KEY, model: 'x' });
        assert.deepEqual([got.status, got.body.code], [403, 'manage_off'], JSON.stringify(got.body));
      }
    });
});

test('workers: all of them know the key at once', async () => {
  const model = await claude({ key: KEY });
  await live({ model }, async ({ house }) => {
    await house.server.stop();
    house.server = await Server.start(['--workers', '2'], { dir: house.dir, env: house.env, house: true });
    const ask = async (method, path, body) => {
      const answer = await fetch(`http://127.0.0.1:${house.server.port}/api/${path}`, {
        method, headers: { connection: 'close' }, body: body && JSON.stringify(body),
      });
      return { status: answer.status, body: await answer.json() };
    };
    assert.equal((await ask('PUT', 'providers/claude', { key: KEY, baseUrl: model.url })).status, 200);
    await until(async () => {
      const all = await Promise.all(Array.from({ length: 16 }, () => ask('GET', 'models/available')));
      return all.every((x) => x.body.provider === 'claude' && x.body.providers[0].ok);
    }, 'every worker');
  });
});

test('a server on this machine is found when asked for, and can be the default', async () => {
  const { fake, silence, close } = await ollama('nomic-embed-text', 'llama3.2:3b', 'qwen3:8b');
  try {
    await live({ oneProcess: 'each process looks for itself' }, async ({ house, ask, file }) => {
      assert.equal(fake.requests.length, 0, 'nobody has asked yet');
      const { body } = await ask('GET', 'models/available');
      assert.deepEqual(body.providers.find((p) => p.name === 'Ollama'), { name: 'Ollama', ok: true, models: 2, url: 'http://127.0.0.1:11434/v1' });
      assert.equal((await ask('PUT', 'models/default', { model: 'Ollama:qwen3:8b' })).status, 200);
      assert.deepEqual((await file()).llm, { model: 'Ollama:qwen3:8b' });
      const now = (await ask('GET', 'models/available')).body;
      assert.deepEqual([now.provider, now.model], ['Ollama', 'Ollama:qwen3:8b']);
      const tab = house.tab();
      assert.equal((await tab.ready()).ready.model, 'Ollama:qwen3:8b');
      fake.script.push({ text: 'local' });
      await tab.say('hello');
      assert.equal((await tab.event('agent:response'))[0], 'local');
      tab.close();
      // After a restart it is looked for before the first conversation.
      await house.kill();
      await house.up();
      const back = house.tab();
      assert.equal((await back.ready()).ready.model, 'Ollama:qwen3:8b');
      back.close();
      assert.deepEqual(fake.problems, []);
      await house.kill();
      silence();
      await house.up();
      const lost = house.tab();
      assert.match((await lost.event('error'))[0], /Ollama, which has the default model, does not answer/);
    });
  } finally {
    await close();
  }
});
