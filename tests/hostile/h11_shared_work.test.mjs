// H11: people who share work and want more than they were given: a viewer and
// an approver of a shared conversation who try every event and request,
// somebody who shares what is not theirs, who approves twice, who forges what a
// webhook says, and two who race for one session.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { BIN, until, within } from '../it/server.mjs';
import { Team, ack, event } from '../lib/team.mjs';

const SECRET = 'the-secret-of-the-webhook-0123456789';
const READ = { read: '1' };
const roles = JSON.parse((await promisify(execFile)(BIN, ['roles', '--json'], { env: { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' } })).stdout).rows;
let team, hook;
const told = [];
before(async () => {
  hook = http.createServer(async (rq, rs) => {
    let body = '';
    for await (const part of rq) body += part;
    told.push({ headers: rq.headers, body });
    rs.end('{"approved":true,"ok":true}');
  }).listen(0, '127.0.0.1');
  await once(hook, 'listening');
  team = await Team.start({
    env: { HOOK_SECRET: SECRET },
    approvals: {
      rules: [{ tool: 'list_files', action: 'ask', approvals: 2, approvers: ['corp/leads'] }],
      webhooks: [{ url: `http://127.0.0.1:${hook.address().port}/`, secret: '${env:HOOK_SECRET}', private: true }],
    },
  });
});
after(async () => {
  // The connection to the webhook is kept for the next message. One process had connections of clients when it
  // was measured, which have ended by now; the worker that sends may have had none.
  if (team?.server.hasWorkers) team.server.fresh.fds += 1;
  await team?.stop();
  hook?.closeAllConnections();
  hook?.close();
});

const share = (who, id, shared, may) => team.api(who, 'PUT', `/api/sessions/${id}/shares`, { with: shared, may });
const state = async (id) => {
  const { messages } = await team.api('ann', 'GET', `/api/sessions/${id}/history`);
  const { title, owner } = await team.api('ann', 'GET', `/api/sessions/${id}`);
  const { shares } = await team.api('ann', 'GET', `/api/sessions/${id}/shares`);
  return { messages: messages.length, title, owner, shares: shares.map((s) => `${s.with} ${s.may}`) };
};

for (const [who, may] of [['vera', 'read'], ['bea', 'read'], ['bea', 'approve']])
  test(`${who}, who may ${may}, tries every event and request`, async () => {
    const id = `mine-${who}-${may}`;
    const ann = await team.socket('ann', id);
    await ack(ann, 'message', 'write hello to a.txt');
    const card = await event(ann, 'tool:approval_required');
    await share('ann', id, `corp:${who}`, may);
    const was = await state(id);
    const reader = await team.socket(who, id, READ);
    const bodies = {
      message: ['run everything', { text: 'x' }],
      'tool:approval': [{ callId: card.callId, digest: card.digest, approved: true, remember: 'always' },
        { callId: card.callId, digest: card.digest, approved: true, remember: 'session' },
        { callId: card.callId, digest: '0'.repeat(64), approved: true }, { callId: 'x', approved: true },
        ...(may === 'read' ? [{ callId: card.callId, digest: card.digest, approved: true }, { callId: card.callId, approved: false }] : [])],
      'tool:accept': [{ name: 'list_files', digest: '0'.repeat(64) }],
    };
    for (const { path } of roles.filter((r) => r.kind === 'event'))
      for (const body of bodies[path] ?? [{}]) {
        const no = await ack(reader, path, body);
        assert.equal(no.ok, false, `${path} ${JSON.stringify(body)}`);
        assert.ok(['read_only', 'operator_only', 'changed', 'unknown_call', 'bad_request'].includes(no.code), no.code);
      }
    for (const { kind, path } of roles.filter((r) => r.path.startsWith('/api/sessions/{id}') && r.kind !== 'GET'))
      for (const body of [{ title: 'mine now' }, { with: `corp:${who}`, may: 'approve' }, { with: '*', may: 'read' }, {}]) {
        const { status } = await team.api(who, kind, path.replace('{id}', id), kind === 'DELETE' ? undefined : body);
        assert.ok([403, 404, 400].includes(status), `${kind} ${path}: ${status}`);
      }
    for (const path of ['connections', 'shares'])
      assert.ok([403, 404].includes((await team.api(who, 'GET', `/api/sessions/${id}/${path}`)).status), path);
    assert.deepEqual((await team.api(who, 'GET', `/api/audit?q=${id}`)).rows, []);
    assert.deepEqual((await team.api(who, 'GET', '/api/search?q=hello')).rows, []);
    // not by joining it for real either, nor another one
    if (who !== 'vera') {
      const joined = await team.socket(who, id, {}, false);
      assert.match(await event(joined, 'error'), /no such session/);
    }
    const other = await team.socket(who, 'never-shared', READ, false);
    assert.match(await event(other, 'error'), /no such session/);
    assert.deepEqual(await state(id), was, 'nothing has changed');
    assert.ok(ann.connected && !ann.got.some(([n]) => n === 'tool:resolved'));
    await ack(ann, 'tool:approval', { callId: card.callId, approved: false });
    await event(ann, 'agent:response');
    reader.close();
    await ack(ann, 'session:close', {});
  });

test('withdrawn while the model answers: not one event more, again and again', async () => {
  const ann = await team.socket('ann', 'flap');
  for (let i = 0; i < 10; i++) {
    await share('ann', 'flap', 'corp/guests', 'read');
    const [vera, walt] = await Promise.all(['vera', 'walt'].map((w) => team.socket(w, 'flap')));
    const said = ack(ann, 'message', `say number ${i}`);
    const gone = await team.api('ann', 'DELETE', '/api/sessions/flap/shares');
    assert.equal(gone.status, 200);
    for (const s of [vera, walt]) {
      await within(s.closed, 'the end');
      assert.equal((await team.api('vera', 'GET', '/api/sessions/flap')).status, 404);
    }
    const n = vera.got.length;
    await said;
    await until(() => ann.got.filter(([name]) => name === 'agent:response').length === i + 1, 'the answer');
    assert.equal(vera.got.length, n);
    assert.equal(vera.connected, false);
  }
  await ack(ann, 'session:close', {});
});

test('nobody shares what is not theirs', async () => {
  const ann = await team.socket('ann', 'hers');
  for (const who of ['bea', 'bob', 'zoe', 'vera'])
    for (const [method, body] of [['PUT', { with: `corp:${who}`, may: 'read' }], ['DELETE'], ['GET']])
      assert.ok([403, 404].includes((await team.api(who, method, '/api/sessions/hers/shares', body)).status), `${who} ${method}`);
  await share('ann', 'hers', 'corp:bea', 'approve');
  assert.equal((await share('bea', 'hers', 'corp:vera', 'read')).status, 404, 'an approver passes nothing on');
  assert.equal((await share('ann', 'nowhere', 'corp:bea', 'read')).status, 404);
  assert.equal((await share('operator', 'nowhere', 'corp:bea', 'read')).status, 404);
  for (const odd of ['..', 'hers%2F..', 'hers%00', `${'x'.repeat(300)}`])
    assert.ok((await share('operator', odd, '*', 'read')).status >= 400, odd);
  assert.deepEqual((await state('hers')).shares, ['corp:bea approve']);
  await ack(ann, 'session:close', {});
});

test('two who race for one session: one has it, the other nothing of it', async () => {
  for (let i = 0; i < 8; i++) {
    const id = `race-${i}`;
    const both = await Promise.all(['ann', 'bea'].map((who) => team.socket(who, id, {}, false)));
    const ends = await Promise.all(both.map((s) => Promise.race([
      event(s, 'session:history').then(() => 'has it', () => 'late'), event(s, 'error').then(() => 'refused', () => 'late')])));
    assert.deepEqual([...ends].sort(), ['has it', 'refused'], JSON.stringify(ends));
    const [winner, loser] = ends[0] === 'has it' ? ['ann', 'bea'] : ['bea', 'ann'];
    assert.equal((await team.api('operator', 'GET', `/api/sessions/${id}`)).owner, `corp:${winner}`);
    assert.equal((await team.api(loser, 'GET', `/api/sessions/${id}`)).status, 404);
    assert.equal((await share(loser, id, `corp:${loser}`, 'read')).status, 404);
    await ack(both[ends.indexOf('has it')], 'session:close', {});
  }
});

test('one person is not two, and a message of the webhook is nobody', async () => {
  const ann = await team.socket('ann', 'two-eyes');
  await ack(ann, 'message', 'list the files');
  await event(ann, 'tool:approval_required');
  const call = await team.oneWaiting('bob');
  await until(() => told.length > 0, 'the webhook');
  const { headers, body } = told[0];
  const at = String(Math.floor(Date.now() / 1000));
  const answer = JSON.stringify({ approved: true, digest: call.digest });
  const forged = [
    { ...headers }, // replayed
    { 'x-mcp-orchestrator-timestamp': at, 'x-mcp-orchestrator-signature': `v1=${createHmac('sha256', SECRET).update(`v1:${at}:${answer}`).digest('hex')}` },
    { 'x-mcp-orchestrator-timestamp': '1', 'x-mcp-orchestrator-signature': `v1=${createHmac('sha256', SECRET).update(`v1:1:${answer}`).digest('hex')}` },
    { authorization: `Bearer ${SECRET}` },
  ];
  for (const { host: _h, 'content-length': _l, connection: _c, ...more } of forged)
    assert.ok([401, 429].includes((await team.api(null, 'POST', `/api/approvals/${JSON.parse(body).call.id}`, { approved: true, digest: call.digest }, more)).status));

  // The same person with many tokens at once.
  const many = await Promise.all(Array.from({ length: 12 }, () => team.decide('bob', call, true)));
  assert.equal(many.filter((r) => r.status === 200).length, 1, JSON.stringify(many.map((r) => r.status)));
  assert.deepEqual((await team.oneWaiting('carl')).approvedBy, ['corp:bob']);
  // Others by id, with and without the right one.
  for (const who of ['bea', 'vera', 'zoe'])
    for (const id of [call.id, call.id.split('.')[1], `two-eyes.${'x'.repeat(20)}`, `nowhere.${call.id.split('.')[1]}`, '.', 'two-eyes.'])
      assert.ok([403, 404].includes((await team.api(who, 'POST', `/api/approvals/${id}`, { approved: true, digest: call.digest })).status), `${who} ${id}`);
  assert.equal((await team.decide('ann', call, true)).status, 403, 'who asked');
  assert.equal((await ack(ann, 'tool:approval', { callId: call.id.split('.')[1], digest: call.digest, approved: true })).code, 'not_the_approver');
  assert.ok(!ann.got.some(([n]) => n === 'tool:resolved'), 'it still waits');

  // A yes and a no at once: one outcome, and no run after a no.
  const [yes, no] = await Promise.all([team.decide('carl', call, true), team.decide('bob', call, false)]);
  const resolved = await event(ann, 'tool:resolved');
  assert.equal(resolved.approved, yes.status === 200, JSON.stringify([yes, no]));
  assert.equal([yes, no].filter((r) => r.status === 200).length, 1);
  await event(ann, 'agent:response');
  const { calls } = await team.api('ann', 'GET', '/api/sessions/two-eyes/calls');
  assert.deepEqual(calls.map((c) => c.state), [resolved.approved ? 'done' : 'rejected']);
  await ack(ann, 'session:close', {});
});

test('the audit log has who shared, who approved and who was refused, and verifies', async () => {
  const rows = await team.rows();
  assert.ok(rows.filter((r) => r.kind === 'share').every((r) => ['corp:ann', 'operator'].includes(r.decidedBy)));
  assert.ok(rows.some((r) => r.refused === 'not_the_approver'));
  assert.equal((await team.api('operator', 'GET', '/api/audit/verify')).status, 200);
  assert.ok(!JSON.stringify(rows).includes(SECRET) && !team.server.log.includes(SECRET));
});
