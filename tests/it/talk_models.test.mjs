// Which model a conversation gets, under what name; servers that speak OpenAI's
// protocol without being OpenAI.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { compatible } from '../fakes/openai.mjs';
import { ollama } from '../lib/ollama.mjs';
import { House } from './talk_kit.mjs';

const list = (...ids) => ({ object: 'list', data: ids.map((id) => ({ id, object: 'model' })) });

/** f(house, server): Claude with a key, and/or a compatible server. */
async function live({ options, config, env, oneProcess }, f) {
  const server = await compatible(options);
  const house = await House.start({ config, oneProcess, env: { ...env, OPENAI_BASE_URL: server.url } });
  try {
    await f(house, server);
    assert.deepEqual(server.problems, []);
  } finally {
    await house.stop();
    await server.close();
  }
}
/** Only the compatible server is configured. */
const ALONE = { env: { ANTHROPIC_API_KEY: '', ANTHROPIC_BASE_URL: '' } };
const asked = (server) => server.requests.filter((r) => r.path.endsWith('/chat/completions')).map((r) => r.body);

test('with several providers a model has one name everywhere', async () => {
  await live({ options: { list: list('qwen3:8b') } }, async (house, server) => {
    const { body } = await house.get('/api/models/available');
    const ids = body.models.map((m) => m.id);
    assert.ok(ids.includes('claude-sonnet-5-5') && ids.includes('openai:qwen3:8b') && ids.includes('demo:demo'), String(ids));
    assert.equal(body.model, 'claude-sonnet-5-5');
    for (const model of ids) {
      const tab = house.tab({ model });
      assert.equal((await tab.ready()).ready.model, model);
      tab.close();
    }
    const usual = house.tab();
    assert.equal((await usual.ready()).ready.model, body.model);

    const tab = house.tab({ model: 'openai:qwen3:8b' });
    await tab.ready();
    server.script.push({ text: 'one' });
    await tab.say('hello');
    assert.equal((await tab.event('agent:response'))[0], 'one');
    assert.equal(asked(server).at(-1).model, 'qwen3:8b');
    const { body: sessions } = await house.get('/api/sessions');
    assert.equal(sessions.sessions.find((s) => s.id === tab.session).model, 'openai:qwen3:8b');
    tab.close();

    // It is that provider's model after a restart, too, and not a fresh start.
    await house.kill();
    await house.up();
    const back = house.tab({ session: tab.session });
    const { ready, history } = await back.ready();
    assert.equal(ready.model, 'openai:qwen3:8b');
    assert.deepEqual(history.messages.map((m) => m.role), ['user', 'assistant']);
    server.script.push({ text: 'two' });
    await back.say('again');
    assert.equal((await back.event('agent:response'))[0], 'two');
  });
});

test('a model that stops answering: the turn ends after llm.timeoutMs', async () => {
  await live({ ...ALONE, config: { llm: { timeoutMs: 1000, model: 'm' } } }, async (house, server) => {
    const tab = house.tab();
    await tab.ready();
    server.script.push({ text: 'a long answer', fault: 'stall' });
    await tab.say('hello');
    const [text, about] = await tab.event('agent:error');
    assert.equal(about.code, 'network');
    assert.match(text, /try again, or check the network/);
  });
});

for (const provider of ['openai', 'auto'])
  test(`a compatible server without llm.model: the first chat model of its list (${provider})`, async () => {
    const options = { list: list('nomic-embed-text:latest', 'Qwen/Qwen3-Embedding-8B', 'bge-m3', 'whisper-large-v3', 'llama3.2:3b', 'qwen3:8b') };
    await live({ options, ...ALONE, config: { llm: { provider } } }, async (house, server) => {
      const tab = house.tab();
      assert.equal((await tab.ready()).ready.model, 'llama3.2:3b');
      server.script.push({ text: 'here' });
      await tab.say('hello');
      assert.equal((await tab.event('agent:response'))[0], 'here');
      assert.equal(asked(server)[0].model, 'llama3.2:3b');
      const { body } = await house.get('/api/models/available');
      assert.deepEqual([body.provider, body.model], ['openai', 'llama3.2:3b']);
      assert.deepEqual(body.models.filter((m) => m.provider === 'openai').map((m) => m.id), ['llama3.2:3b', 'qwen3:8b']);
    });
  });

test('a server without a chat model: an error says so, and is over when it has one', async () => {
  await live({ options: { list: list('nomic-embed-text') }, ...ALONE, config: { llm: { provider: 'openai' } } }, async (house, server) => {
    const tab = house.tab();
    assert.match((await tab.event('error'))[0], /llm\.model.*no model for conversations/);
    server.list = list('qwen3:8b');
    const next = house.tab();
    assert.equal((await next.ready()).ready.model, 'qwen3:8b');
  });
});

test('max_tokens refused: once more with max_completion_tokens, and remembered', async () => {
  const oneProcess = 'each process finds out once what the model refuses';
  await live({ oneProcess, options: { newLimit: true }, ...ALONE, config: { llm: { provider: 'openai', maxOutputTokens: 1000 } } }, async (house, server) => {
    for (const text of ['one', 'two']) {
      const tab = house.tab(); // each with a mo_llm of its own
      await tab.ready();
      server.script.push({ text });
      await tab.say('hello');
      assert.equal((await tab.event('agent:response'))[0], text);
      assert.equal(tab.count('agent:error'), 0);
    }
    assert.deepEqual(asked(server).map((b) => [b.max_tokens, b.max_completion_tokens]),
      [[1000, undefined], [undefined, 1000], [undefined, 1000]]);
  });
});

test('a model server found on this machine: picked by its id, also after a restart', async () => {
  const { fake: server, close } = await ollama('nomic-embed-text', 'llama3.2:3b');
  const house = await House.start();
  try {
    const { body } = await house.get('/api/models/available');
    assert.ok(body.models.some((m) => m.id === 'Ollama:llama3.2:3b'), JSON.stringify(body.models.map((m) => m.id)));
    const tab = house.tab({ model: 'Ollama:llama3.2:3b' });
    assert.equal((await tab.ready()).ready.model, 'Ollama:llama3.2:3b');
    server.script.push({ text: 'one' });
    await tab.say('hello');
    assert.equal((await tab.event('agent:response'))[0], 'one');
    tab.close();
    await house.kill();
    await house.up();
    const back = house.tab({ session: tab.session });
    assert.equal((await back.ready()).ready.model, 'Ollama:llama3.2:3b');
    server.script.push({ text: 'two' });
    await back.say('again');
    assert.equal((await back.event('agent:response'))[0], 'two');
    assert.deepEqual(asked(server).map((b) => b.model), ['llama3.2:3b', 'llama3.2:3b']);
    const usual = house.tab({ model: 'ollama' }); // its name alone: its first
    assert.equal((await usual.ready()).ready.model, 'Ollama:llama3.2:3b');
  } finally {
    await house.stop();
    await close();
  }
});
