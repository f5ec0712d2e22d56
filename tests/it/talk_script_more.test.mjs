// Scripts in a conversation, further cases: a search that finds tools of the box,
// an approval that nobody gives, the choice of `auto`, the demo model, and a box
// without an interpreter.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { io } from 'socket.io-client';

import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { loadPython } from '../lib/egress.mjs';
import { published } from '../lib/gateway.mjs';
import { until } from './server.mjs';
import { House } from './talk_kit.mjs';

const allow = { server: 'box', tool: 'run_script', action: 'allow' };
const llm = (tools) => ({ provider: 'claude', model: 'claude-sonnet-5-5', tools });

async function houseFor(t, config) {
  const house = await House.start({ config });
  t.after(() => {
    house.server.fresh.fds += 16; // of a server that stays open for the next
    house.server.fresh.children += 3; // and its guard
    return house.stop();
  });
  return house;
}

/** Until the tools of its servers are known: a start may take its time. */
async function listed(house) {
  await house.tab().ready();
  await until(async () => /"tools":[1-9]/.test(JSON.stringify((await house.get('/api/mcp')).body)), 'its tools', 60_000);
}

/** A turn in which the model runs that script; the result it got. */
async function run(house, language, code) {
  house.model.script.push({ calls: [{ name: 'run_script', args: { language, code } }] }, { text: 'end' });
  const tab = house.tab();
  await tab.ready();
  await tab.say('run it');
  await tab.event('agent:response', 1, 60_000);
  return { tab, text: house.results()[0].text };
}

test('tools.find finds tools of the box, and of servers', async (t) => {
  const house = await houseFor(t, {
    approvals: { rules: [allow] }, mcpServers: { memory: published('server-memory') },
  });
  await listed(house);
  const python = await run(house, 'python', `
import tools
print(*[x["name"] for x in tools.find("write text to a file", 3)])
print(*[x["name"] for x in tools.find("create entities in the knowledge graph", 3)])
print(sorted(x["confidence"] for x in tools.find("write text to a file"))[-1] > 0.3)
print([x["name"] for x in tools.find("run a script") if x["name"] == "run_script"])`);
  const [file, graph, sure, own] = python.text.match(/write_file[\s\S]*/)[0].split('\n');
  assert.equal(file.split(' ')[0], 'write_file');
  assert.equal(graph.split(' ')[0], 'memory_create_entities');
  assert.equal(sure, 'True');
  assert.equal(own, '[]', 'a script does not start scripts');
  const js = await run(house, 'javascript', `
import tools from './tools.mjs';
const [first] = await tools.find('search for words in files');
console.log(first.name, first.server, await tools.find('search for words in files', 1).then((l) => l.length));`);
  assert.match(js.text, /search_files box 1/);
});

test('an approval that nobody gives raises, and is recorded', async (t) => {
  const house = await houseFor(t, { approvals: { timeoutSeconds: 1, rules: [allow] } });
  const code = `
import tools
try:
    tools.write_file(path="a", content="1")
except tools.Rejected as e:
    print("raised", e.kind, len(e.reason) > 0)
print(tools.list_files.__class__.__name__)`;
  const { tab, text } = await run(house, 'python', code);
  assert.match(text, /raised rejected True/);
  const card = tab.events.find(([e]) => e === 'tool:approval_required')[1];
  let rows = [];
  await until(async () => {
    rows = (await house.audit(tab.session)).filter((r) => r.script);
    return rows.length > 0;
  }, 'its rows');
  const digest = createHash('sha256').update(code).digest('hex');
  for (const r of rows) assert.deepEqual([r.script, r.line, r.parent], [digest, 4, card.parent]);
  assert.ok(rows.some((r) => r.by === 'time'), JSON.stringify(rows));
});

describe('auto', () => {
  for (const [few, offered] of [[2, 'code'], [100, 'all']])
    test(`up to ${few} tools are few: ${offered}`, async (t) => {
      const house = await houseFor(t, {
        llm: llm('auto'), gateway: { few }, mcpServers: { memory: published('server-memory') },
      });
      await listed(house);
      house.model.script.push({ text: 'Hello.' });
      const tab = house.tab();
      await tab.ready();
      await tab.say('create entities in the knowledge graph');
      await tab.event('agent:response');
      const names = house.asked().tools.map((x) => x.name);
      assert.equal(names.includes('memory_create_entities'), offered === 'all', names.join());
      assert.equal(names.includes('find_tool'), offered === 'code', names.join());
      assert.ok(names.includes('run_script'));
      assert.equal(/import tools/.test(JSON.stringify(house.asked().system)), offered === 'code');
    });
});

test('the demo model writes a script, over a stock client', async (t) => {
  const house = await houseFor(t, { llm: { provider: 'demo' }, approvals: { rules: [allow] } });
  const session = `demo-${process.pid}`;
  house.sessions.add(session);
  const socket = io(`http://127.0.0.1:${house.server.port}`, {
    query: { sessionId: session }, transports: ['websocket'], forceNew: true,
  });
  t.after(() => socket.disconnect());
  const cards = [];
  const calls = [];
  socket.on('tool:approval_required', (card) => {
    cards.push(card);
    socket.emit('tool:approval', { callId: card.callId, digest: card.digest, approved: true });
  });
  socket.on('script:call', (call) => calls.push(call));
  const answer = new Promise((resolve) => socket.on('agent:response', resolve));
  await new Promise((resolve) => socket.on('system:ready', resolve));
  socket.emit('message', 'run a script that writes hello to a.txt, b.txt and c.txt');
  await answer;
  assert.deepEqual(cards.map((c) => [c.name, c.args.path]), ['a', 'b', 'c'].map((n) => ['write_file', `${n}.txt`]));
  assert.equal(calls.length, 3);
  assert.equal(new Set(cards.map((c) => c.script)).size, 1, 'all of one script');
});

describe('a Docker image', { skip: noDocker }, () => {
  let engine;
  before(async () => {
    engine = await dockerd();
  });
  after(() => engine?.cleanUp());

  test('with Python: calls of its box and of a published server, each approved', async (t) => {
    await loadPython(engine, 'talk-python:1');
    const dir = mkdtempSync(join(tmpdir(), 'mo-memory-'));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const env = { MEMORY_FILE_PATH: join(dir, 'memory.json') };
    const house = await houseFor(t, {
      llm: llm('code'), mcpServers: { memory: { ...published('server-memory'), env } },
      sandbox: { driver: 'docker', dockerHost: engine.host, image: 'talk-python:1', warm: 0 },
    });
    await listed(house);
    house.model.script.push({ calls: [{ name: 'run_script', args: { language: 'python', code: `
import tools
tools.write_file(path="a.txt", content="from a container")
tools.memory.create_entities(entities=[{"name": "Oslo", "entityType": "city", "observations": []}])
print(open("a.txt").read(), len(tools.memory.read_graph()["entities"]))` } }] }, { text: 'end' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('run it');
    await tab.approve('run_script', 'write_file', 'memory_create_entities', 'memory_read_graph');
    await tab.event('agent:response', 1, 60_000);
    assert.match(house.results()[0].text, /from a container 1/);
  });

  test('without an interpreter has no run_script', async (t) => {
    const house = await houseFor(t, {
      llm: llm('code'), sandbox: { driver: 'docker', dockerHost: engine.host, warm: 0 },
    });
    house.model.script.push({ text: 'Hello.' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('hello');
    await tab.event('agent:response', 1, 60_000);
    const names = house.asked().tools.map((x) => x.name);
    assert.ok(names.includes('read_file') && names.includes('find_tool'), names.join());
    assert.ok(!names.includes('run_script'), names.join());
    assert.doesNotMatch(JSON.stringify(house.asked().system), /import tools/);
  });
});
