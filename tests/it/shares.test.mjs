// Conversations that are shared: who reads them, who decides in them, and what
// happens when a share is changed or withdrawn.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Team, ack, event } from '../lib/team.mjs';
import { until, within } from './server.mjs';

let team;
before(async () => {
  team = await Team.start({ approvals: { rules: [{ tool: 'read_file', action: 'ask', approver: 'operator' }] } });
});
after(() => team?.stop());

const share = (who, id, shared, may) => team.api(who, 'PUT', `/api/sessions/${id}/shares`, { with: shared, may });
const ids = async (who) => (await team.api(who, 'GET', '/api/sessions')).sessions.map((s) => s.id);
const READ = { read: '1' };

test('a reader gets what was said and what is said, and sends nothing', async () => {
  const ann = await team.socket('ann', 'one');
  await ack(ann, 'message', 'say hello to the team');
  await event(ann, 'agent:response');
  assert.deepEqual(await ids('vera'), []);
  assert.equal((await team.api('vera', 'GET', '/api/sessions/one/history')).status, 404);
  assert.deepEqual((await share('ann', 'one', 'corp/guests', 'read')).shares.map((s) => [s.with, s.may, s.by]), [['corp/guests', 'read', 'corp:ann']]);

  const seen = (await team.api('vera', 'GET', '/api/sessions')).sessions;
  assert.deepEqual(seen.map((s) => [s.id, s.owner, s.shared]), [['one', 'corp:ann', 'read']]);
  assert.equal((await team.api('ann', 'GET', '/api/sessions/one')).isShared, true);
  const { messages } = await team.api('vera', 'GET', '/api/sessions/one/history');
  assert.ok(messages.length >= 2 && messages[0].by === 'corp:ann');
  assert.equal((await team.api('vera', 'GET', '/api/sessions/one/calls')).status, 200);

  const vera = await team.socket('vera', 'one');
  assert.equal((await event(vera, 'system:ready')).shared, 'read');
  assert.equal((await event(vera, 'session:history')).messages.length, messages.length);
  vera.got.length = ann.got.length = 0;
  await ack(ann, 'message', 'list the files');
  const card = await event(ann, 'tool:approval_required');
  assert.equal((await event(vera, 'tool:approval_required')).callId, card.callId, 'live');
  await ack(ann, 'tool:approval', { callId: card.callId, digest: card.digest, approved: true });
  const [mine, theirs] = await Promise.all([ann, vera].map((s) => event(s, 'agent:response')));
  assert.equal(mine, theirs);

  // Nobody else.
  assert.equal((await team.api('bea', 'GET', '/api/sessions/one')).status, 404);
  const bea = await team.socket('bea', 'one', READ, false);
  assert.match(await event(bea, 'error'), /no such session/);
  await within(bea.closed, 'the end');
  vera.close();
  ann.close();
});

test('a reader opens nothing and keeps nothing open', async () => {
  const boxes = async () => (await team.api('operator', 'GET', '/api/sessions')).sessions.length;
  const n = await boxes();
  const nowhere = await team.socket('vera', 'never-existed', {}, false);
  assert.match(await event(nowhere, 'error'), /no such session/);
  assert.equal(await boxes(), n);
  const before = await team.socket('vera', 'one', {}, false);
  assert.deepEqual(await event(before, 'session:shared'), { sessionId: 'one', open: false, may: 'read' });
  const ann = await team.socket('ann', 'one');
  assert.ok((await event(before, 'session:history')).messages.length, 'when the owner comes');
  before.got.length = 0;
  ann.close();
  assert.equal((await event(before, 'session:shared')).open, false, 'when the owner leaves');
  before.close();
});

test('a reader reads files while the box runs, and starts none', async () => {
  const ann = await team.socket('ann', 'filed');
  await event(ann, 'system:ready');
  assert.equal((await share('ann', 'filed', 'corp/guests', 'read')).status, 200);
  assert.equal((await share('ann', 'filed', 'corp:bea', 'approve')).status, 200);
  const files = (who) => team.api(who, 'GET', '/api/sessions/filed/files');
  assert.equal((await files('vera')).status, 200);
  assert.equal((await ack(ann, 'session:close', { keep: true })).ok, true);
  const row = () => team.api('ann', 'GET', '/api/sessions/filed');
  assert.equal((await row()).asleep, true);
  for (const who of ['vera', 'bea'])
    for (const path of ['files', 'files/archive', 'files/content?path=a.txt']) {
      const { status, code, detail } = await team.api(who, 'GET', `/api/sessions/filed/${path}`);
      assert.deepEqual([status, code], [409, 'asleep'], `${who} ${path}: ${detail}`);
    }
  const { asleep, box } = await row();
  assert.deepEqual([asleep, box], [true, ''], 'it sleeps on');
  assert.equal((await files('ann')).status, 200, 'its owner starts it');
  assert.equal((await row()).asleep, undefined);
  assert.equal((await files('vera')).status, 200, 'now it runs');
  ann.close();
});

test('an approver of the share decides, and does not talk', async () => {
  const ann = await team.socket('ann', 'two');
  assert.equal((await share('ann', 'two', 'corp:bea', 'approve')).status, 200);
  const bea = await team.socket('bea', 'two', READ);
  assert.equal((await event(bea, 'system:ready')).shared, 'approve');
  await ack(ann, 'message', 'list the files');
  const card = await event(bea, 'tool:approval_required');
  for (const [name, body] of [['message', 'hello'], ['agent:cancel', {}], ['history:reset', {}], ['session:close', {}],
    ['elicitation:response', { requestId: 'x', action: 'accept' }],
    ['tool:approval', { callId: card.callId, digest: card.digest, approved: true, remember: 'session' }]])
    assert.equal((await ack(bea, name, body)).code, 'read_only', name);
  assert.equal((await ack(bea, 'tool:approval', { callId: card.callId, digest: '0'.repeat(64), approved: true })).code, 'changed');
  assert.equal((await ack(bea, 'tool:approval', { callId: card.callId, digest: card.digest, approved: true })).ok, true);
  await event(ann, 'agent:response');
  const { calls } = await team.api('ann', 'GET', '/api/sessions/two/calls');
  assert.deepEqual(calls.map((c) => [c.by, c.who]), [['person', 'corp:bea']]);

  ann.got.length = bea.got.length = 0;
  await ack(ann, 'message', 'show notes.txt'); // a rule: only the operator
  const second = await event(bea, 'tool:approval_required');
  assert.equal((await ack(bea, 'tool:approval', { callId: second.callId, digest: second.digest, approved: true })).code, 'operator_only');
  assert.equal((await ack(bea, 'tool:approval', { callId: second.callId, approved: false })).ok, true);
  await event(ann, 'agent:response');

  // Less from now on, at once.
  assert.equal((await share('ann', 'two', 'corp:bea', 'read')).shares.length, 1);
  ann.got.length = bea.got.length = 0;
  await ack(ann, 'message', 'list the files');
  const third = await event(bea, 'tool:approval_required');
  assert.equal((await ack(bea, 'tool:approval', { callId: third.callId, digest: third.digest, approved: true })).code, 'read_only');
  await ack(ann, 'tool:approval', { callId: third.callId, approved: false });
  await event(ann, 'agent:response');
  bea.close();
  ann.close();
});

test('a share that is withdrawn closes the streams of those who lost it, and of nobody else', async () => {
  const ann = await team.socket('ann', 'three');
  for (const who of ['corp/guests', 'corp:bea', 'corp:vera']) assert.equal((await share('ann', 'three', who, 'read')).status, 200);
  const [vera, walt, bea] = await Promise.all(['vera', 'walt', 'bea'].map((who) => team.socket(who, 'three', READ)));
  assert.equal((await share('ann', 'three', 'corp/guests', 'none')).shares.length, 2);
  await within(walt.closed, 'walt is out');
  assert.equal((await team.api('walt', 'GET', '/api/sessions/three/history')).status, 404);
  await ack(ann, 'message', 'say hello');
  await Promise.all([event(vera, 'agent:response'), event(bea, 'agent:response')]); // named otherwise
  assert.ok(!walt.got.some(([name]) => name === 'agent:response'));
  assert.equal((await team.api('ann', 'DELETE', '/api/sessions/three/shares')).shares.length, 0);
  await Promise.all([within(vera.closed, 'vera is out'), within(bea.closed, 'bea is out')]);
  assert.equal((await share('ann', 'three', 'corp:bea', 'none')).status, 404);
  assert.ok(ann.connected);
  const rows = (await team.rows()).filter((r) => r.kind === 'share' && r.session === 'three');
  assert.deepEqual(rows.map((r) => [r.decidedBy, r.action, r.name]), [
    ['corp:ann', 'read', 'corp/guests'], ['corp:ann', 'read', 'corp:bea'], ['corp:ann', 'read', 'corp:vera'],
    ['corp:ann', 'withdrawn', 'corp/guests'], ['corp:ann', 'withdrawn', undefined]]);
  ann.close();
});

test('roles and everybody; many changes at once; nonsense', async () => {
  const ann = await team.socket('ann', 'four');
  assert.equal((await share('ann', 'four', '@user', 'read')).status, 200);
  assert.deepEqual([(await ids('bea')).includes('four'), (await ids('vera')).includes('four'), (await ids('zoe')).includes('four')], [true, false, true]);
  await share('ann', 'four', '*', 'read');
  assert.ok((await ids('vera')).includes('four'));
  assert.equal((await team.api(null, 'GET', '/api/sessions/four/history')).status, 401);
  const all = await Promise.all([...Array(40).keys()].map((i) => share('ann', 'four', `corp:p${i}`, 'read')));
  assert.deepEqual(all.map((a) => a.status), Array(40).fill(200));
  assert.equal((await team.api('ann', 'GET', '/api/sessions/four/shares')).shares.length, 42, 'none is lost');
  const more = await Promise.all([...Array(30).keys()].map((i) => share('ann', 'four', `corp:q${i}`, 'read')));
  assert.equal(more.filter((a) => a.status === 409).length, 8, 'at most 64');
  for (const body of [{}, { with: 'x' }, { with: 'x', may: 'write' }, { with: '', may: 'read' }, { with: 7, may: 'read' },
    { with: '@boss', may: 'read' }, { with: 'a\nb', may: 'read' }, { with: 'x'.repeat(200), may: 'read' }])
    assert.equal((await team.api('ann', 'PUT', '/api/sessions/four/shares', body)).status, 400, JSON.stringify(body));
  await share('operator', 'four', 'corp:p1', 'none');
  assert.equal((await share('operator', 'four', 'zoe', 'approve')).shares.at(-1).by, 'operator');
  ann.close();
});

test('shares survive a restart, and end with the session', async () => {
  await team.restart();
  assert.deepEqual((await ids('vera')).sort(), ['filed', 'four', 'one']);
  const ann = await team.socket('ann', 'four');
  const vera = await team.socket('vera', 'four');
  await ack(ann, 'session:close', {});
  await within(vera.closed, 'its end');
  await until(async () => !(await ids('vera')).includes('four'), 'it is gone');
  assert.equal((await team.api('vera', 'GET', '/api/sessions/four/history')).status, 404);
  const again = await team.socket('bea', 'four'); // the same id, another session
  assert.deepEqual((await ids('vera')).sort(), ['filed', 'one']);
  const late = await team.socket('vera', 'four', {}, false);
  assert.match(await event(late, 'error'), /no such session/);
  await ack(again, 'session:close', {});
});
