// Scripts in pods: the model's script runs in the pod of its conversation, and
// calls the box's tools and a published server outside, each call approved; a
// script of a gateway's client has a pod of its own.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { until } from '../it/server.mjs';
import { House } from '../it/talk_kit.mjs';
import { Place, published } from '../lib/gateway.mjs';
import { python } from '../lib/image.mjs';
import { api, Namespace, noKube, ownImage } from '../lib/kube.mjs';
import { eventually } from '../lib/outside.mjs';

const skip = noKube;
const TAG = 'localhost/mo-script:test';
let ns;

before(async () => {
  if (skip) return;
  ownImage.load();
  ownImage.with(TAG, python(), '/bin:/usr/bin');
  ns = await Namespace.open();
}, { timeout: 120_000 });
after(() => ns?.close());

const pods = (image) => ({ driver: 'kubernetes', warm: 0, kubernetes: { kubeconfig: ns.kubeconfig, image, pullPolicy: 'Never' } });

/** A server whose boxes are pods of that image; the model writes scripts. */
async function houseFor(t, image, config = {}) {
  const house = await House.start({ config: {
    llm: { provider: 'claude', model: 'claude-sonnet-5-5', tools: 'code' },
    sandbox: pods(image),
    ...config } });
  t.after(() => {
    house.server.fresh.fds += 16; // of a server that stays open for the next
    house.server.fresh.children += 3; // and its guard
    return house.stop();
  });
  return house;
}

test('a script in a pod: calls of its box and of a published server, each approved', { skip }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'mo-memory-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const env = { MEMORY_FILE_PATH: join(dir, 'memory.json') };
  const house = await houseFor(t, TAG, { mcpServers: { memory: { ...published('server-memory'), env } } });
  const tab = house.tab();
  await tab.ready();
  await until(async () => /"tools":[1-9]/.test(JSON.stringify((await house.get('/api/mcp')).body)), 'its tools', 60_000);
  house.model.script.push({ calls: [{ name: 'run_script', args: { language: 'python', code: `
import os, tools
tools.write_file(path="a.txt", content="from a pod")
tools.memory.create_entities(entities=[{"name": "Oslo", "entityType": "city", "observations": []}])
print(open("a.txt").read(), len(tools.memory.read_graph()["entities"]), os.getuid() != 0, sorted(os.listdir("/sys/class/net")))` } }] },
  { text: 'end' });
  await tab.say('run it');
  await tab.approve('run_script', 'write_file', 'memory_create_entities', 'memory_read_graph');
  await tab.event('agent:response', 1, 60_000);
  assert.match(house.results()[0].text, /from a pod 1 True \['lo'\]/);
  assert.equal((await ns.pods()).length, 1, 'all in the pod of the conversation');
});

test('a script whose pod dies: the model is told, and nothing runs again', { skip }, async (t) => {
  const house = await houseFor(t, TAG);
  const tab = house.tab();
  await tab.ready();
  house.model.script.push({ calls: [{ name: 'run_script', args: { language: 'python',
    code: 'import time, tools\ntools.write_file(path="begun", content="1")\ntime.sleep(600)' } }] }, { text: 'I see.' });
  await tab.say('run it');
  await tab.approve('run_script', 'write_file');
  await eventually('the script has called', async () =>
    (await fetch(`${house.server.url}/api/sessions/${tab.session}/files/content?path=begun`)).status === 200);
  const [pod] = (await ns.pods()).filter((p) => !p.metadata.deletionTimestamp);
  await api('DELETE', `${ns.path}/pods/${pod.metadata.name}?gracePeriodSeconds=0`);
  await tab.event('agent:response', 1, 60_000);
  assert.match(house.results()[0].text, /did not come back .*its pod was deleted from outside.*Whether it had an effect is unknown/);
  assert.equal(tab.count('tool:approval_required'), 2);
});

test('an image without an interpreter has no run_script', { skip }, async (t) => {
  const house = await houseFor(t, ownImage.tag);
  house.model.script.push({ text: 'Hello.' });
  const tab = house.tab();
  await tab.ready();
  await tab.say('hello');
  await tab.event('agent:response', 1, 60_000);
  const names = house.asked().tools.map((x) => x.name);
  assert.ok(names.includes('read_file'), names.join());
  assert.ok(!names.includes('run_script'), names.join());
});

test('a script of a client of the gateway: a pod for the call', { skip }, async (t) => {
  const place = new Place({});
  const files = join(place.dir, 'files');
  mkdirSync(files);
  writeFileSync(join(files, 'a.txt'), 'word a');
  place.write({ files: published('server-filesystem', files) }, { sandbox: pods(TAG), gateway: { scripts: { enabled: true } } });
  const client = new Client({ name: 'kube', version: '1' }, { capabilities: {} });
  await client.connect(new StdioClientTransport(place.command()));
  t.after(async () => {
    await client.close();
    place.close();
  });
  const r = await client.callTool({ name: 'run_script', arguments: { language: 'python', code: `
import os, tools
print(tools.files.read_text_file(path="${files}/a.txt")["content"], os.getuid() != 0, os.path.exists("${files}"))` } }, undefined, { timeout: 60_000 });
  assert.equal(r.structuredContent?.stdout, 'word a True False\n', JSON.stringify(r));
  await eventually('its pod is gone', async () => (await ns.pods()).length === 0);
});
