// G4: a client of the gateway that approves its own calls. It claims to have
// forms and answers them by itself, or it decides over HTTP with the very token
// that it calls with.
// Fails on 953b0b1e: the call of the `ask` rule ran, because the client
// answered the form itself, on stdio and over HTTP. So did one that it approved
// with the operator's token, with which it had called, and one that it tried with
// a digest. (The key `approver` is part of the fix: without it there is nothing
// to attack in the tests of "where a rule names the approver".)
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
const ask = [{ tool: 'echo', args: { message: 'ask*' }, action: 'ask' }];
const rules = [
  { tool: 'echo', args: { message: 'own*' }, action: 'ask', approver: 'owner' },
  { tool: 'echo', args: { message: 'form*' }, action: 'ask', approver: 'client' },
  ...ask,
];

/** It says yes to everything that it is asked. forms: or is asked nothing. */
async function selfApprover(transport, { forms = true } = {}) {
  const client = new Client({ name: 'liar', version: '1' }, { capabilities: forms ? { elicitation: {} } : {} });
  const it = { client, asked: 0, say: (message) => client.callTool({ name: 'echo', arguments: { message } }) };
  if (forms) client.setRequestHandler(ElicitRequestSchema, () => {
    it.asked++;
    return { action: 'accept', content: { decision: 'approve' } };
  });
  await client.connect(transport);
  return it;
}

/** The first pending call that another than its client is asked about. */
async function first(list) {
  for (const end = Date.now() + 20_000; ;) {
    const call = (await list()).find((c) => !c.byClient);
    if (call) return call;
    assert.ok(Date.now() < end, 'the call is pending');
    await new Promise((r) => setTimeout(r, 20));
  }
}

/** The same; fails if the call runs before. */
const held = (running, list) => Promise.race([first(list),
  running.then((r) => assert.fail(`nobody else was asked, and it ran: ${text(r)}`))]);

const decided = (r) => [r.kind, r.by, r.door, r.byRequester];
function rowsOf(state) {
  const file = join(state, 'audit.jsonl'); // made with the first row
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  return lines.slice(0, -1).map((l) => JSON.parse(l).what ?? {});
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
  const { place, it, command } = await onStdio(t, ask);
  const running = it.say('ask me');
  const call = await held(running, async () => JSON.parse(await command('list', '--json')));
  assert.deepEqual([call.byClient, call.approver], [false, 'operator']);
  assert.equal(it.asked, 0, 'nobody asked the client');
  await command('reject', call.id);
  assert.match(text(await running), /A person did not allow this call/);
  await until(() => rowsOf(place.state).length === 1, 'the row');
  assert.deepEqual(rowsOf(place.state).map(decided), [['call', 'person', 'socket', false]]);
});

/** `serve` with these rules and two tokens, and clients of it. */
class Http {
  static async start(theRules) {
    const it = new Http();
    it.dir = await mkdtemp(join(tmpdir(), 'mo-g4-'));
    it.state = join(it.dir, 'state');
    const file = join(it.dir, 'mcp-orchestrator.json');
    await writeFile(file, JSON.stringify({
      mcpServers: { fixture: fixtureServer() }, approvals: { rules: theRules },
      server: { token: TOKENS.operator, tokens: { alice: TOKENS.alice } },
    }));
    it.server = await Server.start(['--config', file, '--provider', 'demo'], { dir: it.dir, house: true, auth: true,
      env: { MCP_ORCHESTRATOR_STATE_DIR: it.state, ASAN_OPTIONS: 'detect_leaks=0' } });
    it.url = it.server.url;
    return it;
  }

  async stop() {
    this.server.fresh.children += 4; // the fixture stays
    this.server.fresh.fds += 32;
    await this.server.stop();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** Closed at the end of the test. */
  async client(t, who, how) {
    const it = await selfApprover(
      new StreamableHTTPClientTransport(new URL(`${this.url}/mcp`), { requestInit: { headers: bearer(who) } }), how);
    t.after(() => it.client.close());
    return it;
  }

  list(headers) {
    return async () => (await (await fetch(`${this.url}/api/approvals`, { headers })).json()).approvals;
  }

  /** [status, code] */
  async decide(headers, { id, digest }, more = {}) {
    const r = await fetch(`${this.url}/api/approvals/${id}`, {
      method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify({ approved: true, digest, ...more }),
    });
    return [r.status, (await r.json()).code];
  }

  /** As the browser of that person, who followed the link. */
  async signIn(who) {
    const r = await fetch(`${this.url}/?token=${TOKENS[who]}`, { redirect: 'manual' });
    return { cookie: r.headers.get('set-cookie').split(';')[0] };
  }
}

describe('over HTTP', () => {
  let http;
  before(async () => { http = await Http.start(ask); });
  after(() => http?.stop());

  test('by its own form: the call waits for the page', async (t) => {
    const it = await http.client(t, 'operator');
    const running = it.say('ask http');
    const page = await http.signIn('operator');
    const call = await held(running, http.list(page));
    assert.equal(it.asked, 0);
    assert.deepEqual(await http.decide(page, call), [200, undefined]);
    assert.equal(text(await running), 'ask http');
  });

  test('by the operator\'s token, with which it calls', async (t) => {
    const it = await http.client(t, 'operator', { forms: false });
    const running = it.say('ask again');
    const call = await held(running, http.list(bearer('operator')));
    assert.deepEqual(await http.decide(bearer('operator'), call), [403, 'not_the_approver']);
    assert.deepEqual(await http.decide(await http.signIn('operator'), call), [200, undefined]);
    assert.equal(text(await running), 'ask again');
    const agreed = rowsOf(http.state).filter((r) => r.kind === 'agreed').map((r) => [r.by, r.door, r.byRequester]);
    assert.deepEqual(agreed, [['person', 'page', false], ['person', 'page', false]]);
  });

  test('by its form or token, as a person\'s client: the operator decides', async (t) => {
    const it = await http.client(t, 'alice');
    const running = it.say('ask as alice');
    const call = await held(running, http.list(bearer('operator')));
    for (const alice of [bearer('alice'), await http.signIn('alice')]) {
      assert.equal((await http.decide(alice, call))[0], 404);
      assert.deepEqual(await http.list(alice)(), [], 'she is not the one who decides');
    }
    assert.equal(call.owner, 'alice');
    assert.deepEqual(await http.decide(bearer('operator'), call), [200, undefined], 'another one\'s token may');
    assert.equal(text(await running), 'ask as alice');
  });

  test('by a digest, as it tries a tool; a person on the page may', async () => {
    const attempt = async (headers, body) => (await (await fetch(`${http.url}/api/servers/fixture/tools/echo/call`, {
      method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
    })).json());
    const args = { message: 'ask and answer' };
    const asked = await attempt(bearer('operator'), { args });
    assert.equal(asked.state, 'ask', JSON.stringify(asked));
    const own = await attempt(bearer('operator'), { args, digest: asked.digest });
    assert.deepEqual([own.state, /cannot approve its own call/.test(own.reason)], ['denied', true]);
    const page = await http.signIn('operator');
    const { digest } = await attempt(page, { args });
    assert.equal((await attempt(page, { args, digest })).state, 'done');
  });
});

describe('where a rule names the approver', () => {
  test('the client, by its form on stdio', async (t) => {
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

  test('the client or the owner, over HTTP', async (t) => {
    const http = await Http.start(rules);
    t.after(() => http.stop());
    const it = await http.client(t, 'operator');
    const one = it.say('ask http');
    const call = await held(one, http.list(bearer('operator')));
    assert.deepEqual(await http.decide(bearer('operator'), call), [403, 'not_the_approver']);
    assert.deepEqual(await http.decide(bearer('operator'), call, { args: { message: 'form x' } }), [200, undefined], 'arguments for which a rule says client');
    assert.equal(text(await one), 'form x');
    const agreed = rowsOf(http.state).filter((r) => r.kind === 'agreed').map((r) => [r.by, r.door, r.byRequester]);
    assert.deepEqual(agreed, [['person', 'token', true]]);

    const two = (await http.client(t, 'alice')).say('own call');
    const page = await http.signIn('alice');
    const hers = await held(two, http.list(page));
    assert.deepEqual(await http.decide(bearer('alice'), hers), [403, 'not_the_approver'], 'her client has that token');
    assert.deepEqual(await http.decide(page, hers), [200, undefined]);
    assert.equal(text(await two), 'own call');
  });

  test('the operator, in a conversation', async (t) => {
    const house = await House.start({
      headers: bearer('operator'),
      config: {
        server: { token: TOKENS.operator, tokens: { alice: TOKENS.alice } },
        approvals: { rules: [{ tool: 'execute_command', action: 'ask', approver: 'operator' }] },
      },
      env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
    });
    t.after(() => house.stop());
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
  });
});
