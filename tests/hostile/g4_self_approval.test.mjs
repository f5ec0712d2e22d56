// G4: a client of the gateway that approves its own calls. It claims to have
// forms and answers them by itself, or it decides over HTTP with the very token
// that it calls with.
// Fails on 953b0b1e: the call of the `ask` rule ran, because the client
// answered the form itself. (The rules with `approver` are unknown there.)
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { Place, bin, fixtureServer } from '../lib/gateway.mjs';
import { Server, until } from '../it/server.mjs';
import { House, run } from '../it/talk_kit.mjs';

const TOKENS = { operator: 'the-operator-0123456789abcdef', alice: 'alice-has-this-0123456789abcdef' };
const bearer = (who) => ({ authorization: `Bearer ${TOKENS[who]}` });
const text = (result) => result.content[0].text;
const rules = [
  { tool: 'echo', args: { message: 'own*' }, action: 'ask', approver: 'owner' },
  { tool: 'echo', args: { message: 'form*' }, action: 'ask', approver: 'client' },
  { tool: 'echo', args: { message: 'ask*' }, action: 'ask' },
];

/** It says yes to everything that it is asked. */
async function selfApprover(transport) {
  const client = new Client({ name: 'liar', version: '1' }, { capabilities: { elicitation: {} } });
  const it = { client, asked: 0, say: (message) => client.callTool({ name: 'echo', arguments: { message } }) };
  client.setRequestHandler(ElicitRequestSchema, () => {
    it.asked++;
    return { action: 'accept', content: { decision: 'approve' } };
  });
  await client.connect(transport);
  return it;
}

async function first(list) {
  for (const end = Date.now() + 20_000; ;) {
    const [call] = await list();
    if (call) return call;
    assert.ok(Date.now() < end, 'the call is pending');
    await new Promise((r) => setTimeout(r, 20));
  }
}

const decided = (r) => [r.kind, r.by, r.door, r.byRequester];
function rowsOf(state) {
  const file = join(state, 'audit.jsonl'); // made with the first row
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  return lines.filter(Boolean).map((l) => JSON.parse(l).what ?? {});
}

/** A client on stdio that approves everything, and the command of the operator. */
async function onStdio(t, theRules) {
  const place = new Place({ fixture: fixtureServer() }, { approvals: { rules: theRules } });
  t.after(() => place.close());
  const it = await selfApprover(new StdioClientTransport(place.command()));
  t.after(() => it.client.close());
  const command = async (...args) => (await promisify(execFile)(bin, ['approvals', ...args, '--config', place.file], { env: place.env })).stdout;
  return { place, it, command };
}

test('by its own form on stdio: the call waits for the command', async (t) => {
  const { place, it, command } = await onStdio(t, [{ tool: 'echo', action: 'ask' }]);
  const running = it.say('ask me');
  const ran = running.then((r) => assert.fail(`nobody else was asked, and it ran: ${text(r)}`));
  const held = await Promise.race([first(async () => JSON.parse(await command('list', '--json'))), ran]);
  assert.deepEqual([held.byClient, held.approver], [false, 'operator']);
  assert.equal(it.asked, 0, 'nobody asked the client');
  await command('reject', held.id);
  assert.match(text(await running), /A person did not allow this call/);
  await until(() => rowsOf(place.state).length === 1, 'the row');
  assert.deepEqual(rowsOf(place.state).map(decided), [['call', 'person', 'socket', false]]);
});

test('a rule lets the client decide', async (t) => {
  const { place, it, command } = await onStdio(t, rules);
  const running = it.say('ask me');
  await command('reject', (await first(async () => JSON.parse(await command('list', '--json')))).id);
  await running;
  assert.equal(it.asked, 0);
  assert.equal(text(await it.say('form one')), 'form one');
  assert.equal(it.asked, 1);
  await until(() => rowsOf(place.state).length === 3, 'the rows');
  assert.deepEqual(rowsOf(place.state).map(decided),
    [['call', 'person', 'socket', false], ['agreed', 'client', 'client', true], ['call', 'client', 'client', true]]);
});

/** As the browser of that person, who followed the link. */
async function signIn(who, base) {
  const r = await fetch(`${base}/?token=${TOKENS[who]}`, { redirect: 'manual' });
  return { cookie: r.headers.get('set-cookie').split(';')[0] };
}

describe('over HTTP', () => {
  let dir, state, server;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-g4-'));
    state = join(dir, 'state');
    await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
      mcpServers: { fixture: fixtureServer() }, approvals: { rules },
      server: { token: TOKENS.operator, tokens: { alice: TOKENS.alice } },
    }));
    server = await Server.start([], { dir, auth: true, env: { MCP_ORCHESTRATOR_STATE_DIR: state, ASAN_OPTIONS: 'detect_leaks=0' } });
  });
  after(async () => {
    if (server) {
      server.fresh.children += 4; // the fixture stays
      server.fresh.fds += 32;
      await server.stop();
    }
    await rm(dir, { recursive: true, force: true });
  });

  const overHttp = (who) => selfApprover(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers: bearer(who) } }));
  const listFor = async (headers) => (await (await fetch(`${server.url}/api/approvals`, { headers })).json()).approvals;
  const decide = async (headers, { id, digest }, more = {}) => {
    const r = await fetch(`${server.url}/api/approvals/${id}`, {
      method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify({ approved: true, digest, ...more }),
    });
    return [r.status, (await r.json()).code];
  };

  test('with the operator\'s token, by its form or by that token', async (t) => {
    const it = await overHttp('operator');
    t.after(() => it.client.close());
    const running = it.say('ask http');
    const held = await first(() => listFor(bearer('operator')));
    assert.equal(it.asked, 0);
    assert.deepEqual(await decide(bearer('operator'), held), [403, 'not_the_approver']);
    assert.deepEqual(await decide(bearer('operator'), held, { args: { message: 'form x' } }), [200, undefined], 'arguments for which a rule says client');
    assert.equal(text(await running), 'form x');

    const second = it.say('ask again');
    const page = await signIn('operator', server.url);
    assert.deepEqual(await decide(page, await first(() => listFor(page))), [200, undefined]);
    assert.equal(text(await second), 'ask again');
    const agreed = rowsOf(state).filter((r) => r.kind === 'agreed').map((r) => [r.by, r.door, r.byRequester]);
    assert.deepEqual(agreed, [['person', 'token', true], ['person', 'page', false]]);
  });

  test('with a person\'s token: the operator decides, or that person on the page', async (t) => {
    const it = await overHttp('alice');
    t.after(() => it.client.close());
    const first1 = it.say('ask as alice');
    const held = await first(() => listFor(bearer('operator')));
    assert.equal(held.owner, 'alice');
    const page = await signIn('alice', server.url);
    for (const alice of [bearer('alice'), page]) {
      assert.deepEqual(await listFor(alice), [], 'she is not the one who decides');
      assert.equal((await decide(alice, held))[0], 404);
    }
    assert.deepEqual(await decide(bearer('operator'), held), [200, undefined], 'another one\'s token may');
    assert.equal(text(await first1), 'ask as alice');

    const second = it.say('own call');
    const hers = await first(() => listFor(page));
    assert.deepEqual(await decide(bearer('alice'), hers), [403, 'not_the_approver'], 'her client has that token');
    assert.deepEqual(await decide(page, hers), [200, undefined]);
    assert.equal(text(await second), 'own call');
  });
});

test('in a conversation: only the operator where the rule says so', async (t) => {
  const house = await House.start({
    headers: bearer('operator'),
    config: {
      server: { token: TOKENS.operator, tokens: { alice: TOKENS.alice } },
      approvals: { rules: [{ tool: 'execute_command', action: 'ask', approver: 'operator' }] },
      mcpServers: { fixture: fixtureServer() },
    },
    env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
  });
  t.after(async () => {
    house.server.fresh.children += 4;
    await house.stop();
  });
  const alice = house.tab({ headers: bearer('alice') });
  await alice.ready();
  house.model.script.push({ calls: [run('echo mine')] }, { text: 'done' });
  await alice.say('go');
  const [card] = await alice.event('tool:approval_required');
  assert.equal(card.approver, 'operator');
  const no = await alice.decide(card, true, { remember: 'session' });
  assert.equal(no.code, 'operator_only');
  const operator = house.tab({ session: alice.session });
  await operator.ready();
  assert.equal((await operator.decide(card, true)).ok, true);
  await alice.event('agent:response');
  assert.match(house.results()[0].text, /mine/);
  const done = (await house.audit(alice.session)).find((r) => r.by === 'person');
  assert.deepEqual([done.door, done.byRequester], ['token', false]);

  // A token tries a tool and answers for itself; a person on the page may.
  const base = `http://127.0.0.1:${house.server.port}`;
  const attempt = async (headers, body) => (await (await fetch(`${base}/api/servers/fixture/tools/echo/call`, {
    method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
  })).json());
  const args = { message: 'ask and answer' };
  const asked = await attempt(bearer('operator'), { args });
  assert.equal(asked.state, 'ask', JSON.stringify(asked));
  const own = await attempt(bearer('operator'), { args, digest: asked.digest });
  assert.deepEqual([own.state, /cannot approve its own call/.test(own.reason)], ['denied', true]);
  const page = await signIn('operator', base);
  const { digest } = await attempt(page, { args });
  assert.equal((await attempt(page, { args, digest })).state, 'done');
});
