// G6: rules that were tightened while something was open: a conversation, a
// pending call of the gateway, a call that a client's own form was asked about,
// a call that waits across a restart; and people who were given less while they
// had something open.
// Fails on e7a8afd0: the call of an open conversation ran although a rule
// denied it since the reload. Fails on 953b0b1e: the pending call of the gateway
// did, after a yes by a person or by its client's form. (A call across a restart
// was refused there, but stayed pending. `approver: client` is unknown there:
// every client with forms was asked.)
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
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

let house, client, plain, answerForm;
before(async () => {
  house = await House.start({
    config: { mcpServers: servers, approvals: { rules: ask } },
    env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
  });
  client = new Client({ name: 'it', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => new Promise((resolve) => {
    answerForm = () => resolve({ action: 'accept', content: { decision: 'approve' } });
  }));
  plain = new Client({ name: 'it', version: '1' }); // it has no forms
  for (const c of [client, plain])
    await c.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${house.server.port}/mcp`)));
});
after(async () => {
  await client?.close();
  await plain?.close();
  house.server.fresh.children += 4; // the fixture stays
  await house.stop();
});

const configure = (rules) => writeFile(join(house.dir, 'mcp-orchestrator.json'), JSON.stringify({ ...BASE, mcpServers: servers, approvals: { rules } }));
async function reload(rules) {
  await configure(rules);
  await house.server.reload();
}
const say = (message, by = client) => by.callTool({ name: 'echo', arguments: { message } });
const text = (r) => r.content[0].text;
const pending = async () => (await house.get('/api/approvals')).body.approvals;

const approve = async ({ id, digest }) => (await fetch(`http://127.0.0.1:${house.server.port}/api/approvals/${id}`, {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ approved: true, digest }),
})).status;

for (const [what, by] of [['', () => plain], [', also of a client with forms', () => client]])
  test(`a pending call of the gateway is rejected at once${what}`, async () => {
    await reload(ask);
    for (const tooLate of [true, false]) {
      answerForm = null;
      const running = say('one', by());
      await until(async () => answerForm || (await pending()).some((c) => !c.byClient), 'it is pending');
      const [card] = await pending();
      await reload(deny);
      answerForm?.(); // nobody should have asked the client
      if (tooLate) await approve(card);
      assert.match(text(await running), /not allowed here: not any more/);
      assert.equal(await approve(card), 404);
      await reload(ask);
    }
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
  for (const tooLate of [true, false]) {
    await reload(ask);
    const open = house.tab();
    await open.ready();
    house.model.script.push({ calls: [run('echo ran')] }, { text: 'done' });
    await open.say('go');
    const [card] = await open.event('tool:approval_required');
    await reload(deny);
    if (tooLate) await open.decide(card, true);
    await open.event('agent:response');
    assert.match(house.results()[0].text, /not allowed here: not any more/);
    assert.equal((await open.decide(card, true)).code, 'unknown_call');
  }
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
  await plain.close();
  await house.kill();
  await configure(deny);
  await house.up();
  const back = house.tab({ session: open.session });
  await back.ready();
  await back.decide(card, true);
  await back.event('agent:response');
  assert.match(house.results()[0].text, /not allowed here: not any more/);
  assert.equal((await back.decide(card, true)).code, 'unknown_call');
});

describe('people', () => {
  const TOKENS = { ann: 'ann-0123456789abcdefghij', bob: 'bob-0123456789abcdefghij', cleo: 'cleo-0123456789abcdefgh', dora: 'dora-0123456789abcdefgh' };
  const bearer = (token) => ({ authorization: `Bearer ${token}` });
  const config = (token, tokens, operator) => ({ mcpServers: {}, approvals: { rules: ask }, server: { token, tokens }, people: { roles: { operator } } });
  const FIRST = 'operator-0123456789abcdef';
  let people;
  before(async () => {
    people = await House.start({ config: config(FIRST, TOKENS, ['ann', 'bob']), headers: bearer(TOKENS.ann) });
  });
  after(() => people.stop());
  async function change(...how) {
    await writeFile(join(people.dir, 'mcp-orchestrator.json'), JSON.stringify({ ...BASE, ...config(...how) }));
    await people.server.reload();
  }
  const me = async (token) => (await fetch(`http://127.0.0.1:${people.server.port}/api/me`, { headers: bearer(token) })).status;

  // Fails on e32f8ab7: their sockets stayed open with the role of the handshake.
  test('who is demoted, or whose token is removed or changed, has nothing open any more', async () => {
    const ann = people.tab();
    await ann.ready();
    people.model.script.push({ calls: [run('echo ran')] }, { text: 'done' });
    await ann.say('go');
    const [card] = await ann.event('tool:approval_required');
    const tab = (token, session, transports) => people.tab({ headers: bearer(token), session, transports });
    const bob = tab(TOKENS.bob, ann.session), cleo = tab(TOKENS.cleo), dora = tab(TOKENS.dora, undefined, ['polling']);
    const operator = tab(FIRST, ann.session);
    for (const t of [bob, cleo, dora, operator]) await t.ready();
    const rotated = `${TOKENS.dora}-rotated`, second = `${FIRST}-second`;
    await change(second, { ann: TOKENS.ann, bob: TOKENS.bob, dora: rotated }, ['ann']);
    for (const t of [bob, cleo, dora, operator]) {
      await t.event('(disconnect)');
      assert.ok(!t.socket.connected);
    }
    assert.ok(ann.socket.connected, "another's stays");
    assert.equal(ann.count('(disconnect)'), 0);
    for (const [token, status] of [[TOKENS.bob, 200], [TOKENS.cleo, 401], [TOKENS.dora, 401], [rotated, 200], [FIRST, 401], [second, 200]])
      assert.equal(await me(token), status, token);
    const again = tab(TOKENS.bob, ann.session); // it comes again, as what he is now
    assert.match((await again.event('error'))[0], /no such session|not yours/);
    assert.equal(ann.count('agent:response'), 0, 'nobody has approved it');
    await ann.decide(card, true);
    await ann.event('agent:response');
    assert.match(people.results()[0].text, /ran/);
  });
});
