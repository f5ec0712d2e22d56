// Webhooks of approvals: what they are told, how it is signed, what happens
// when they fail, and that nothing waits for them.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, test } from 'node:test';

import { Team, ack, event } from '../lib/team.mjs';
import { until } from './server.mjs';

const SECRET = 'the secret of this webhook 0123456789';

/** A listener; answer(rq, rs, n) is asked first. */
class Listener {
  got = [];
  async start() {
    this.server = http.createServer(async (rq, rs) => {
      let body = '';
      for await (const part of rq) body += part;
      this.got.push({ path: rq.url, method: rq.method, headers: rq.headers, body, at: Date.now() });
      if (this.answer?.(rq, rs, this.got.length)) return;
      rs.end('{"approved":true}'); // nobody reads it
    }).listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }
  of(kind) {
    return this.got.map((g) => JSON.parse(g.body)).filter((b) => b.event === kind);
  }
  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

let team, full, bare, guarded, elsewhere;
before(async () => {
  [full, bare, guarded, elsewhere] = await Promise.all(Array.from({ length: 4 }, () => new Listener().start()));
  team = await Team.start({
    env: { HOOK_SECRET: SECRET },
    approvals: {
      rules: [
        { tool: 'echo', args: { message: 'team*' }, action: 'ask', approvers: ['corp/leads'], reason: 'the team decides' },
        { tool: 'echo', args: { message: 'plain*' }, action: 'ask' },
        { tool: 'list_files', action: 'ask', approvals: 2 },
      ],
      webhooks: [
        { url: `${full.url}/full`, secret: '${env:HOOK_SECRET}', calls: 'all', arguments: true, private: true },
        { url: `${bare.url}/bare`, secret: '${env:HOOK_SECRET}', private: true },
        { url: `${guarded.url}/`, secret: '${env:HOOK_SECRET}', calls: 'all' }, // an address of this machine
      ],
    },
  });
  const { result, call } = await begin('ann', 'team'); // starts the server, and the HTTP client
  await team.decide('bob', call, true);
  await result;
  await until(() => bare.got.length === 2 && full.got.length === 2, 'both messages');
  bare.got.length = full.got.length = 0;
  team.server.fresh = await team.server.settled();
});
after(async () => {
  await team?.stop();
  for (const l of [full, bare, guarded, elsewhere]) l.stop();
});

async function begin(who, message) {
  const client = await team.client(who);
  const result = client.callTool({ name: 'echo', arguments: { message } }).finally(() => client.close());
  return { result, call: await team.oneWaiting('operator') };
}

function check({ headers, body }) {
  const at = headers['x-mcp-orchestrator-timestamp'];
  assert.ok(Math.abs(Date.now() / 1000 - at) < 60);
  assert.equal(headers['x-mcp-orchestrator-signature'], `v1=${createHmac('sha256', SECRET).update(`v1:${at}:${body}`).digest('hex')}`);
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(headers['x-mcp-orchestrator-event'], JSON.parse(body).event);
}

test('are told when a call of the team waits and when it is decided, signed', async () => {
  const { result, call } = await begin('ann', 'team <!channel>');
  await until(() => bare.got.length === 1 && full.got.length === 1, 'both messages');
  const told = JSON.parse(bare.got[0].body);
  assert.deepEqual({ ...told.call, expiresAt: 0 }, { id: call.id, server: 'fixture', tool: 'echo', askedBy: 'corp:ann',
    approvers: ['corp/leads'], approvals: 1, fourEyes: false, approvedBy: [], expiresAt: 0, argsBytes: 29 });
  assert.deepEqual([told.event, told.reason], ['approval.waiting', 'the team decides']);
  assert.match(told.text, /^fixture\/echo waits for approval, asked by corp:ann$/);
  assert.ok(!bare.got[0].body.includes('channel'), 'no arguments');
  assert.deepEqual(JSON.parse(full.got[0].body).call.args, { message: 'team <!channel>' });
  assert.equal((await team.decide('bob', call, true)).status, 200);
  await result;
  await until(() => bare.got.length === 2 && full.got.length === 2, 'the decisions');
  const [decided] = bare.of('approval.decided');
  assert.deepEqual([decided.call.id, decided.decision, decided.call.approvedBy], [call.id, { approved: true, by: 'person', who: 'corp:bob' }, ['corp:bob']]);
  for (const m of [...bare.got, ...full.got]) check(m);
});

test('of all calls, if they want', async () => {
  const { result, call } = await begin('ann', 'plain');
  await team.decide('operator', call, false, { reason: 'no' });
  await result;
  await until(() => full.got.length === 4, 'both messages');
  assert.deepEqual(full.of('approval.decided')[1].decision.approved, false);
  assert.equal(bare.got.length, 2, 'no rule names approvers');
});

test('of conversations, with the id that decides', async () => {
  const ann = await team.socket('ann', 'talk');
  await ack(ann, 'message', 'list the files');
  await event(ann, 'tool:approval_required');
  await until(() => bare.got.length === 3, 'the message');
  const { call } = JSON.parse(bare.got[2].body);
  assert.deepEqual([call.conversation, call.tool, call.approvals, call.fourEyes], ['talk', 'list_files', 2, true]);
  assert.equal((await team.api('olga', 'POST', `/api/approvals/${call.id}`, { approved: false })).status, 200);
  await until(() => bare.of('approval.decided').length === 2, 'the decision');
  await event(ann, 'agent:response');
  await ack(ann, 'session:close', {});
});

test('an address of this machine is refused unless the operator says so', () => {
  assert.equal(guarded.got.length, 0);
  assert.match(team.server.log, /webhook 2: a message was not delivered/);
  assert.ok(!team.server.log.includes(SECRET));
});

test('failures are repeated with the same id and a new signature; redirects are not followed', async () => {
  bare.got.length = 0;
  bare.answer = (rq, rs, n) => n <= 1 && !!rs.writeHead(503).end();
  const { result, call } = await begin('ann', 'team again');
  await team.decide('bob', call, true);
  await result; // long before the webhook
  await until(() => bare.got.length === 3, 'the second try, and the decision');
  const [first, second] = bare.got;
  assert.equal(first.body, second.body);
  assert.ok(second.at - first.at >= 900, 'after a pause');
  for (const m of bare.got) check(m);
  assert.deepEqual(bare.got.map((g) => JSON.parse(g.body).event), ['approval.waiting', 'approval.waiting', 'approval.decided'], 'in order');

  bare.got.length = 0;
  bare.answer = (rq, rs) => !!rs.writeHead(307, { location: `${elsewhere.url}/` }).end();
  const next = await begin('ann', 'team moved');
  await team.decide('bob', next.call, true);
  await next.result;
  await until(() => bare.got.length === 2, 'both messages, each once');
  assert.equal(elsewhere.got.length, 0);
});

test('a webhook that never answers holds nothing up, and its queue is bounded', async () => {
  bare.got.length = 0;
  bare.answer = () => true;
  const client = await team.client('ann');
  for (let i = 0; i < 150; i++) { // two messages each
    const result = client.callTool({ name: 'echo', arguments: { message: `team ${i}` } });
    const call = await team.oneWaiting('operator');
    assert.equal((await team.decide('bob', call, true)).status, 200);
    assert.equal((await result).content[0].text, `team ${i}`);
  }
  await client.close();
  assert.equal(new Set(bare.got.map((g) => g.body)).size, 1, 'one at a time: the first, perhaps again');
  assert.match(team.server.log, /webhook 1: messages are dropped: too many wait/);
});

test('other webhooks after a reload; a message decides nothing', async () => {
  await team.write({ rules: [...team.more.approvals.rules, { tool: 'of-the-reload', action: 'deny' }], webhooks: [{ url: `${elsewhere.url}/new`, secret: '${env:HOOK_SECRET}', private: true }] });
  team.server.child.kill('SIGHUP');
  await until(async () => JSON.stringify(await team.api('operator', 'GET', '/api/rules')).includes('of-the-reload'), 'the reload');
  const { result, call } = await begin('ann', 'team new');
  await until(() => elsewhere.got.length >= 1, 'the new one');
  const { headers, body } = elsewhere.got[0];
  check(elsewhere.got[0]);
  // Whoever has the message, and even the secret, is nobody here.
  for (const more of [headers, {}, { authorization: `Bearer ${SECRET}` }, { 'x-mcp-orchestrator-signature': headers['x-mcp-orchestrator-signature'] }]) {
    const { host: _h, 'content-length': _l, connection: _c, ...rest } = more;
    const r = await team.api(null, 'POST', `/api/approvals/${call.id}`, { approved: true, digest: call.digest, ...JSON.parse(body) }, rest);
    assert.ok([401, 429].includes(r.status), String(r.status));
  }
  assert.equal((await team.oneWaiting('operator')).id, call.id);
  await team.decide('operator', call, false);
  await result;
});
