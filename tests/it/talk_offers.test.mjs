// Prompts and resources of servers for the person in a conversation, and tools
// that are switched off in it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { House } from './talk_kit.mjs';

const EVERYTHING = fileURLToPath(new URL('../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url));

let house;
before(async () => {
  house = await House.start({
    config: {
      llm: { provider: 'claude', model: 'claude-sonnet-5-5', tools: 'all' },
      mcpServers: { everything: { command: process.execPath, args: [EVERYTHING] } },
      approvals: { rules: [{ server: 'everything', action: 'allow' }] },
    },
  });
});
after(async () => {
  house.server.fresh.fds += 32; // the server stays open for the next
  house.server.fresh.children += 2;
  await house.stop();
});

const send = async (method, tab, what, body) => {
  const answer = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}/${what}`,
    { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  return { status: answer.status, body: await answer.json() };
};
const offered = () => house.model.requests.at(-1).body.tools.map((t) => t.name);

test('the lists have their servers; a prompt, a resource and a completion are got', async () => {
  const tab = house.tab();
  await tab.ready();
  const { body } = await house.get(`/api/sessions/${tab.session}/offers`);
  const prompt = body.prompts.find((p) => p.id.includes('args-prompt'));
  assert.equal(prompt.server, 'everything');
  assert.ok(prompt.arguments.some((a) => a.name === 'city' && a.required), JSON.stringify(prompt));
  assert.ok(body.resources.length > 0 && body.resources.every((r) => r.server === 'everything' && r.id.includes('://')));
  assert.ok(body.templates.some((r) => r.id.includes('{')));

  const got = await send('POST', tab, 'prompt', { name: prompt.id, arguments: { city: 'Oslo' } });
  assert.equal(got.status, 200);
  assert.match(JSON.stringify(got.body.messages), /Oslo/);
  const refused = await send('POST', tab, 'prompt', { name: prompt.id });
  assert.deepEqual([refused.status, refused.body.code], [502, 'server_refused']);

  const read = await send('POST', tab, 'resource', { uri: body.resources[0].id, subscribe: true });
  assert.equal(read.status, 200);
  assert.ok(read.body.contents[0].text.length > 0);

  const completable = body.prompts.find((p) => p.id.includes('completable'));
  const values = await send('POST', tab, 'complete', {
    ref: { type: 'ref/prompt', name: completable.id }, argument: { name: 'department', value: 'E' },
  });
  assert.ok(values.body.completion.values.includes('Engineering'), JSON.stringify(values.body));
});

test('a subscribed resource is reported when it changes', async () => {
  const tab = house.tab();
  await tab.ready();
  const { body } = await house.get(`/api/sessions/${tab.session}/offers`);
  const uri = body.resources[0].id;
  assert.equal((await send('POST', tab, 'resource', { uri, subscribe: true })).status, 200);
  house.model.script.push({ calls: [{ name: 'everything_toggle-subscriber-updates', args: {} }] }, { text: 'ok' });
  await tab.say('change it');
  await tab.event('agent:response');
  assert.deepEqual(await tab.event('resource:updated'), [{ uri }]);
});

test('bad bodies, and conversations that are not open', async () => {
  const tab = house.tab();
  await tab.ready();
  for (const [what, body] of [['prompt', {}], ['prompt', { name: 1 }], ['resource', []], ['resource', { uri: null }],
    ['complete', { ref: {} }], ['prompt', { name: 'x', arguments: [] }]])
    assert.equal((await send('POST', tab, what, body)).status, 400, `${what} ${JSON.stringify(body)}`);
  for (const body of [{}, { off: {} }, { off: [{}] }, { off: [{ server: 1 }] }, { off: [{ server: 'x', tool: 1 }] },
    { off: Array.from({ length: 257 }, () => ({ server: 'x' })) }])
    assert.equal((await send('PUT', tab, 'tools', body)).status, 400, JSON.stringify(body).slice(0, 60));
  assert.equal((await send('POST', { session: 'nobody' }, 'prompt', { name: 'x' })).status, 409);
});

test('a tool and a server that are switched off are not offered, and not run', async () => {
  const tab = house.tab();
  const { ready } = await tab.ready();
  assert.deepEqual(ready.toolsOff, []);
  house.model.script.push({ text: 'ok' });
  await tab.say('hi');
  await tab.event('agent:response');
  assert.ok(offered().includes('everything_echo') && offered().includes('everything_get-sum'));

  assert.equal((await send('PUT', tab, 'tools', { off: [{ server: 'everything', tool: 'everything_echo' }] })).status, 200);
  assert.deepEqual((await tab.event('tools:off'))[0].toolsOff, [{ server: 'everything', tool: 'everything_echo' }]);
  house.model.script.push({ calls: [{ name: 'everything_get-sum', args: { a: 1, b: 2 } }] }, { text: 'ok' });
  await tab.say('again');
  await tab.event('agent:response', 2);
  assert.ok(!offered().includes('everything_echo') && offered().includes('everything_get-sum'));

  assert.equal((await send('PUT', tab, 'tools', { off: [{ server: 'everything' }] })).status, 200);
  house.model.script.push({ text: 'ok' });
  await tab.say('once more');
  await tab.event('agent:response', 3);
  assert.ok(offered().every((name) => !name.startsWith('everything_')));
  assert.ok(offered().includes('execute_command'));
});

test('a call of a tool that was switched off meanwhile is refused', async () => {
  const tab = house.tab();
  await tab.ready();
  house.model.script.push({ calls: [{ name: 'everything_echo', args: { message: 'a' } }] }, { text: 'ok' });
  await send('PUT', tab, 'tools', { off: [{ server: 'everything', tool: 'everything_get-sum' }] });
  await tab.say('go');
  await tab.event('agent:response');
  assert.match(house.results()[0].text, /Echo: a/);
  // The model names it all the same:
  house.model.script.push({ calls: [{ name: 'everything_get-sum', args: { a: 1, b: 2 } }] }, { text: 'ok' });
  await tab.say('go');
  await tab.event('agent:response', 2);
  assert.equal(house.results()[0].error, true);
  assert.match(house.results()[0].text, /switched this tool off/);
});

test('it is kept with the session', async () => {
  const tab = house.tab();
  await tab.ready();
  await send('PUT', tab, 'tools', { off: [{ server: 'box', tool: 'execute_command' }] });
  house.model.script.push({ text: 'ok' });
  await tab.say('hi');
  await tab.event('agent:response');
  tab.close();
  house.server.signal('SIGTERM');
  await house.server.stop();
  await house.up();
  const again = house.tab({ session: tab.session });
  const { ready } = await again.ready();
  assert.deepEqual(ready.toolsOff, [{ server: 'box', tool: 'execute_command' }]);
  house.model.script.push({ text: 'ok' });
  await again.say('and now');
  await again.event('agent:response');
  assert.ok(!offered().includes('execute_command'));
});
