// G6: rules that were tightened while something was open: a conversation, a
// pending call of the gateway, a call that a client's own form was asked about,
// a call that waits across a restart. Before, a pending call of the gateway was
// not judged again when it ran. Fails on 953b0b1e.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { fixtureServer } from '../lib/gateway.mjs';
import { until } from '../it/server.mjs';
import { House, run } from '../it/talk_kit.mjs';

const BASE = { llm: { provider: 'claude', model: 'claude-sonnet-5-5' }, sandbox: { driver: 'native', warm: 0 } };
const servers = { fixture: fixtureServer() };
const ask = [{ server: 'fixture|box', action: 'ask' }];
const form = [{ server: 'fixture', action: 'ask', approver: 'client' }];
const deny = [{ server: 'fixture|box', action: 'deny', reason: 'not any more' }];

let house, client, answerForm;
before(async () => {
  house = await House.start({
    config: { mcpServers: servers, approvals: { rules: ask } },
    env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
  });
  client = new Client({ name: 'it', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => new Promise((resolve) => {
    answerForm = () => resolve({ action: 'accept', content: { decision: 'approve' } });
  }));
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${house.server.port}/mcp`)));
});
after(async () => {
  await client?.close();
  house.server.fresh.children += 4; // the fixture stays
  await house.stop();
});

const configure = (rules) => writeFile(join(house.dir, 'mcp-orchestrator.json'), JSON.stringify({ ...BASE, mcpServers: servers, approvals: { rules } }));
async function reload(rules) {
  const loads = () => house.server.log.match(/generation \d+ loaded/g)?.length ?? 0;
  const n = loads();
  await configure(rules);
  house.server.child.kill('SIGHUP');
  await until(() => loads() > n, 'the reload');
}
const say = (message) => client.callTool({ name: 'echo', arguments: { message } });
const text = (r) => r.content[0].text;
const pending = async () => (await house.get('/api/approvals')).body.approvals;

test('a pending call of the gateway is rejected at once', async () => {
  const running = say('one');
  await until(async () => (await pending()).length === 1, 'it is pending');
  const [{ id, digest }] = await pending();
  await reload(deny);
  const got = await running;
  assert.match(text(got), /not allowed here: not any more/);
  const r = await fetch(`http://127.0.0.1:${house.server.port}/api/approvals/${id}`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ approved: true, digest }),
  });
  assert.equal(r.status, 404);
});

test('a yes by the client\'s form does not count any more', async () => {
  for (const [rules, why] of [[deny, /not any more/], [ask, /the rules changed while it waited/]]) {
    await reload(form);
    answerForm = null;
    const running = say('two');
    await until(() => answerForm, 'the form');
    await reload(rules);
    answerForm();
    assert.match(text(await running), why);
  }
});

test('an open conversation, and a new one', async () => {
  await reload(ask);
  const open = house.tab();
  await open.ready();
  house.model.script.push({ calls: [run('echo ran')] }, { text: 'done' });
  await open.say('go');
  const [card] = await open.event('tool:approval_required');
  await reload(deny);
  await open.event('agent:response');
  assert.match(house.results()[0].text, /not allowed here: not any more/);
  assert.equal((await open.decide(card, true)).code, 'unknown_call');
  const fresh = house.tab();
  await fresh.ready();
  house.model.script.push({ calls: [run('echo ran')] }, { text: 'done' });
  await fresh.say('go');
  await fresh.event('agent:response');
  assert.match(house.results()[0].text, /not allowed here: not any more/);
});

test('a call that waits across a restart', async () => {
  await reload(ask);
  const open = house.tab();
  await open.ready();
  house.model.script.push({ calls: [run('echo ran')] }, { text: 'done' });
  await open.say('go');
  const [card] = await open.event('tool:approval_required');
  await client.close();
  await house.kill();
  await configure(deny);
  await house.up();
  const back = house.tab({ session: open.session });
  await back.event('agent:response');
  assert.match(house.results()[0].text, /not allowed here: not any more/);
  assert.equal((await back.decide(card, true)).code, 'unknown_call');
});
