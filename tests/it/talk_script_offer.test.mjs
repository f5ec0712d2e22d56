// How a model is told of scripts, and scripts that call tools of servers.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { until } from './server.mjs';
import { House } from './talk_kit.mjs';

// A tracker with two tools; it appends the titles it gets to a file, and its
// definition of create_issue changes when the file AT.changed exists. While AT.hold
// exists its tools are not listed. A list with the argument "note" is noted in
// the file AT.noted.
const TRACKER = `
const fs = require('node:fs');
const at = process.env.AT;
const out = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
const tools = () => [
  { name: 'create_issue', description: 'Create an issue in the tracker' + (fs.existsSync(at + '.changed') ? ', or not' : ''),
    inputSchema: { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] },
    outputSchema: { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] } },
  { name: 'list_issues', description: 'List the issues of the tracker', inputSchema: { type: 'object', properties: {} },
    annotations: { readOnlyHint: true } },
];
const list = (id) => (fs.existsSync(at + '.hold') ? setTimeout(list, 20, id) : out({ id, result: { tools: tools() } }));
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') out({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: { listChanged: true } }, serverInfo: { name: 't', version: '1' } } });
  else if (method === 'tools/list') list(id);
  else if (method === 'tools/call' && params.name === 'create_issue') {
    fs.appendFileSync(at, params.arguments.title + '\\n');
    const number = fs.readFileSync(at, 'utf8').split('\\n').length - 1;
    out({ id, result: { content: [{ type: 'text', text: 'made' }], structuredContent: { number } } });
  } else if (method === 'tools/call' && params.arguments.note) {
    fs.appendFileSync(at + '.noted', 'x');
    out({ id, result: { content: [] } });
  } else if (method === 'tools/call') out({ id, result: { content: [{ type: 'text', text: fs.existsSync(at) ? fs.readFileSync(at, 'utf8') : '' }] } });
  else if (id !== undefined) out({ id, error: { code: -32601, message: 'no' } });
});
process.stdin.on('end', () => process.exit(0));
`;

let house, at;
before(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'mo-script-'));
  at = join(dir, 'tracker');
  await writeFile(`${at}.cjs`, TRACKER);
  house = await House.start({
    dir,
    config: {
      llm: { provider: 'claude', model: 'claude-sonnet-5-5', tools: 'code' },
      approvals: { rules: [{ tool: 'run_script', action: 'allow' }, { tool: 'list_issues', action: 'allow' }] },
      mcpServers: { tracker: { command: process.execPath, args: [`${at}.cjs`], env: { AT: at } } },
    },
  });
});
after(async () => {
  house.server.fresh.fds += 16; // the server stays open for the next
  house.server.fresh.children += 3; // and its guard
  await house.stop();
});

const server = () => house.server.log;

const systemOf = (asked) => (typeof asked.system === 'string' ? asked.system : asked.system.map((b) => b.text).join('\n'));

async function run(language, code, said = 'create an issue in the tracker for each bug') {
  house.model.script.push({ calls: [{ name: 'run_script', args: { language, code } }] }, { text: 'end' });
  const tab = house.tab();
  const { ready } = await tab.ready();
  await tab.say(said);
  return { tab, ready };
}

test('the model sees the box, a search and how to write a script', async () => {
  house.model.script.push({ text: 'Hello.' });
  const tab = house.tab();
  const { ready } = await tab.ready();
  assert.equal(ready.offered, 'code');
  await tab.say('create an issue in the tracker');
  await tab.event('agent:response');
  const asked = house.asked();
  const names = asked.tools.map((t) => t.name);
  assert.ok(names.includes('run_script') && names.includes('read_file') && names.includes('find_tool'), names.join());
  assert.ok(!names.some((n) => n.startsWith('tracker_')), names.join());
  const system = systemOf(asked);
  assert.match(system, /import tools/);
  assert.match(system, /create_issue\(.*title: str/s);
  assert.ok(system.length < 8000, `${system.length} bytes`);
});

test('a choice of this conversation, until the next request', async () => {
  const tab = house.tab();
  await tab.ready();
  const change = async (offer) => {
    const r = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}`, {
      method: 'PATCH', body: JSON.stringify({ offer }), headers: { 'content-type': 'application/json' },
    });
    return r.status;
  };
  assert.equal(await change('everything'), 400);
  assert.equal(await change('all'), 200);
  house.model.script.push({ text: 'Hello.' });
  await tab.say('create an issue in the tracker');
  await tab.event('agent:response');
  const asked = house.asked();
  assert.ok(asked.tools.some((t) => t.name === 'tracker_create_issue'));
  assert.doesNotMatch(systemOf(asked), /import tools/);
});

test('python: tools of a server by server, by name and by search; structured results', async () => {
  const { tab } = await run('python', `
import tools
found = tools.find("create an issue in the tracker")
print("found", found[0]["name"], found[0]["confidence"] > 0)
print("number", tools.tracker.create_issue(title="one")["number"])
print("number", tools.call(found[0]["name"], {"title": "two"})["number"])
print("list", tools.tracker_list_issues().split())`);
  for (const n of [1, 2]) {
    const [card] = await tab.event('tool:approval_required', n);
    assert.equal(card.name, 'tracker_create_issue');
    assert.equal(card.server, 'tracker');
    assert.equal(card.line, n + 4);
    assert.ok((await tab.decide(card, true, { digest: card.digest })).ok);
  }
  await tab.event('agent:response');
  const [{ text }] = house.results();
  assert.match(text, /found tracker_create_issue True/);
  assert.match(text, /number 1\nnumber 2\nlist \['one', 'two'\]/);
});

test('javascript: the same', async () => {
  const { tab } = await run('javascript', `
import tools from './tools.mjs';
const [first] = await tools.find('create an issue in the tracker');
console.log('found', first.name);
console.log('number', (await tools.tracker.create_issue({ title: 'three' })).number);
console.log('list', (await tools.call('tracker_list_issues', {})).trim().split('\\n').length);`);
  const [card] = await tab.event('tool:approval_required');
  await tab.decide(card, true);
  await tab.event('agent:response');
  assert.match(house.results()[0].text, /found tracker_create_issue\nnumber 3\nlist 3/);
});

test('a script that ends: its calls that wait for a place are not run', async () => {
  const more = server().split('call runs').length;
  const { tab } = await run('python', `
import os, time, tools
def send(tool, arguments, times):
  for n in range(times):
    tools._connection.share().send({"tool": tool, "arguments": arguments})
def wait(path):
  while not os.path.exists(path):
    time.sleep(0.01)
send("tracker_create_issue", {"title": "late"}, 8)
wait("more")
send("tracker_list_issues", {"note": True}, 2)
wait("go")
print("over")`);
  const put = async (path) => {
    const { ok, status } = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}/files/content?path=${path}`, { method: 'PUT', body: 'x' });
    assert.ok(ok, `${status}`);
  };
  await tab.event('tool:approval_required', 8);
  await writeFile(`${at}.hold`, '');
  for (const [e, card] of tab.events.slice())
    if (e === 'tool:approval_required') assert.ok((await tab.decide(card, true)).ok);
  // All places are taken: by calls whose tool is looked at once more.
  await until(() => server().split('call runs').length === more + 9, 'them to run');
  await put('more');
  await until(() => tab.count('script:call') === 10, 'all calls');
  await put('go');
  await tab.event('agent:response', 1, 60_000);
  await rm(`${at}.hold`);
  assert.match(house.results()[0].text, /over/);
  const entry = tab.events.find(([e, d]) => e === 'session:entry' && d.role === 'tool')[1];
  for (const c of entry.scripts[0].calls) assert.deepEqual([c.state, c.text], ['done', 'The script ended.']);
  assert.equal(server().split('call runs').length, more + 9);
  await assert.rejects(readFile(`${at}.noted`), { code: 'ENOENT' });
});

test('a tool that is switched off, and one that was changed, are denied', async () => {
  const before = await readFile(at, 'utf8');
  const tab = house.tab();
  await tab.ready();
  const off = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}/tools`, {
    method: 'PUT', body: JSON.stringify({ off: [{ server: 'tracker', tool: 'tracker_list_issues' }] }), headers: { 'content-type': 'application/json' },
  });
  assert.ok(off.ok, `${off.status} ${await off.text()}`);
  house.model.script.push({ calls: [{ name: 'run_script', args: { language: 'python', code: `
import tools
try:
  tools.tracker_list_issues()
except tools.Denied as e:
  print("denied", e)` } }] }, { text: 'end' });
  await tab.say('list them');
  await tab.event('agent:response');
  assert.match(house.results()[0].text, /denied .*switched this tool off/);
  // The definition changes while the call waits: it is not sent.
  const { tab: other } = await run('python', `
import tools
try:
  tools.tracker_create_issue(title="changed")
except tools.ToolError as e:
  print(type(e).__name__, e)`);
  const [card] = await other.event('tool:approval_required');
  await writeFile(`${at}.changed`, '');
  await other.decide(card, true);
  await other.event('agent:response');
  assert.match(house.results()[0].text, /Failed The call was not run: its server changed this tool/);
  assert.equal(await readFile(at, 'utf8'), before, 'nothing was done');
});
