// Rules that say who approves: a team's approvers, several of them, and never
// the one who asked. For clients of the gateway and for conversations.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Team, ack, event } from '../lib/team.mjs';
import { until } from './server.mjs';

const text = (result) => result.content[0].text;
const rules = [
  { tool: 'echo', args: { message: 'team*' }, action: 'ask', approvers: ['corp/leads', 'zoe'], reason: 'the team decides' },
  { tool: 'echo', args: { message: 'other*' }, action: 'ask', fourEyes: true },
  { tool: 'echo', args: { message: 'two*' }, action: 'ask', approvals: 2, approvers: ['corp/leads', 'corp:ann', 'zoe'] },
  { server: 'box', tool: 'list_files', action: 'ask', approvals: 2, approvers: ['corp/leads', 'corp:ann'] },
  { server: 'box', tool: 'write_file', action: 'ask', approvers: ['corp/leads'] },
];
let team;
before(async () => {
  team = await Team.start({ approvals: { rules } });
});
after(() => team?.stop());

/** A call of this person's client, and the pending call as the operator sees it. */
async function begin(who, message) {
  const client = await team.client(who);
  const result = client.callTool({ name: 'echo', arguments: { message } }).finally(() => client.close());
  result.catch(() => {});
  return { result, call: await team.oneWaiting('operator') };
}

describe('calls of clients', () => {
  test('wait for the persons and groups of the rule', async () => {
    const { result, call } = await begin('ann', 'team work');
    assert.deepEqual([call.approvers, call.approvals, call.fourEyes, call.approvedBy],
      [['corp/leads', 'zoe'], 1, false, []]);
    assert.equal((await team.waiting('bea')).length, 0, 'a colleague sees nothing');
    assert.equal((await team.decide('bea', call, true)).status, 404);
    assert.equal((await team.waiting('ann'))[0].id, call.id, 'who asked sees for whom it waits');
    assert.deepEqual([(await team.decide('ann', call, true)).status, (await team.decide('ann', call, true)).code],
      [403, 'not_the_approver']);
    assert.equal((await team.waiting('bob'))[0].id, call.id);
    assert.match((await team.command('approvals', 'list')).stdout, /waits for\s+corp\/leads, zoe/);
    assert.equal((await team.decide('bob', call, true)).status, 200);
    assert.equal(text(await result), 'team work');
  });

  test('may be decided by a person of server.tokens, and by the operator', async () => {
    for (const who of ['zoe', 'olga', 'operator']) {
      const { result, call } = await begin('ann', `team ${who}`);
      assert.equal((await team.decide(who, call, true)).status, 200);
      assert.equal(text(await result), `team ${who}`);
    }
    const { result, call } = await begin('ann', 'team no');
    assert.equal((await team.decide('carl', call, false, { reason: 'not now' })).status, 200);
    assert.match(text(await result), /did not allow this call: not now/);
  });

  test('four eyes: never whoever asked, by no credential', async () => {
    const { result, call } = await begin('olga', 'other');
    for (const body of [{}, { reason: 'mine' }])
      assert.equal((await team.decide('olga', call, true, body)).status, 403);
    const page = await fetch(`${team.url}/?token=${team.token('operator')}`, { redirect: 'manual' });
    assert.equal(page.status, 303);
    assert.equal((await team.waiting('bob')).length, 0, 'no approver by role');
    assert.equal((await team.decide('otto', call, true)).status, 200);
    assert.equal(text(await result), 'other');
    const own = await begin('operator', 'other, too');
    const cookie = page.headers.get('set-cookie').split(';')[0];
    const no = await team.api(null, 'POST', `/api/approvals/${own.call.id}`, { approved: true, digest: own.call.digest }, { cookie });
    assert.deepEqual([no.status, no.code], [403, 'not_the_approver'], 'the operator on the page is the operator');
    await assert.rejects(team.command('approvals', 'approve', own.call.id), /another person/);
    assert.equal((await team.decide('olga', own.call, true)).status, 200);
    assert.equal(text(await own.result), 'other, too');
  });

  test('two persons: each counts once, one no is enough', async () => {
    const { result, call } = await begin('bea', 'two of us');
    assert.deepEqual([call.approvals, call.fourEyes], [2, true]);
    assert.equal((await team.decide('bob', call, true)).missing, 1);
    assert.deepEqual((await team.waiting('carl'))[0].approvedBy, ['corp:bob']);
    const again = await team.decide('bob', call, true);
    assert.deepEqual([again.status, again.code], [403, 'not_the_approver'], 'another token, the same person');
    assert.equal((await team.decide('carl', call, true, { args: { message: 'two others' } })).status, 403, 'nobody changes what the first approved');
    assert.equal((await team.decide('carl', call, true)).missing, 0);
    assert.equal(text(await result), 'two of us');

    const second = await begin('bea', 'two, no');
    assert.equal((await team.decide('bob', second.call, true)).missing, 1);
    assert.equal((await team.decide('bob', second.call, false)).status, 200, 'who approved may still say no');
    assert.match(text(await second.result), /did not allow/);
    const rows = await team.rows();
    const each = rows.filter((r) => r.kind === 'approval' && r.call === call.id);
    assert.deepEqual(each.map((r) => [r.decidedBy, r.count]), [['corp:bob', 1], ['corp:carl', 2]]);
  });

  test('who asked for it is none of the two, though the rule names them', async () => {
    const { result, call } = await begin('ann', 'two, mine');
    assert.equal((await team.decide('ann', call, true)).status, 403);
    assert.equal((await team.decide('zoe', call, true)).missing, 1);
    assert.equal((await team.decide('bob', call, true)).missing, 0);
    assert.equal(text(await result), 'two, mine');
  });

  test('many at once: exactly one row for each, and one outcome', async () => {
    const { result, call } = await begin('bea', 'two at once');
    const answers = await Promise.all(['bob', 'bob', 'carl', 'carl', 'zoe', 'zoe', 'ann'].map((who) => team.decide(who, call, true)));
    assert.equal(answers.filter((a) => a.status === 200).length, 2, JSON.stringify(answers));
    assert.equal(text(await result), 'two at once');
    const rows = (await team.rows()).filter((r) => r.call === call.id && r.kind === 'approval');
    assert.equal(rows.length, 2);
    assert.equal(new Set(rows.map((r) => r.decidedBy)).size, 2);
  });

  test('"always" does not answer such a rule', async () => {
    assert.equal((await team.api('operator', 'POST', '/api/rules', { server: 'fixture', tool: 'echo', action: 'allow' })).status, 200);
    const { result, call } = await begin('bea', 'two again');
    assert.equal((await team.decide('operator', call, true, { remember: 'always' })).status, 400);
    await team.decide('operator', call, false);
    assert.match(text(await result), /did not allow/);
    for (const { id } of (await team.api('operator', 'GET', '/api/rules')).rules)
      await team.api('operator', 'DELETE', `/api/rules/${id}`);
  });

  test('other rules: those who approved before do not count', async () => {
    const { result, call } = await begin('bea', 'two more');
    assert.equal((await team.decide('bob', call, true)).missing, 1);
    await team.write({ rules: rules.map((r) => (r.approvals ? { ...r, approvals: 3 } : r)) });
    team.server.child.kill('SIGHUP');
    await until(async () => (await team.oneWaiting('operator')).approvals === 3, 'the new rules');
    assert.deepEqual((await team.oneWaiting('operator')).approvedBy, []);
    assert.equal((await team.decide('carl', call, true)).missing, 2);
    await team.decide('operator', call, false);
    await result;
    await team.write();
    team.server.child.kill('SIGHUP');
    await until(async () => JSON.stringify(await team.api('operator', 'GET', '/api/rules')).includes('"approvals":2'), 'the old rules');
  });

  test('cannot be tried on the page by one person', async () => {
    const tried = await team.api('olga', 'POST', '/api/servers/fixture/tools/echo/call', { args: { message: 'two alone' } });
    assert.equal(tried.state, 'denied', JSON.stringify(tried));
  });
});

describe('calls of conversations', () => {
  test('wait for two others, who need not be in it', async () => {
    const socket = await team.socket('ann', 'conversation-1');
    await ack(socket, 'message', 'list the files');
    const card = await event(socket, 'tool:approval_required');
    assert.deepEqual([card.approvers, card.approvals, card.approvedBy], [['corp/leads', 'corp:ann'], 2, []]);
    const own = await ack(socket, 'tool:approval', { callId: card.callId, digest: card.digest, approved: true, remember: 'session' });
    assert.deepEqual([own.ok, own.code], [false, 'not_the_approver']);
    const call = await team.oneWaiting('bob');
    assert.deepEqual([call.conversation, call.owner, call.tool, call.digest], ['conversation-1', 'corp:ann', 'list_files', card.digest]);
    assert.equal((await team.api('bob', 'GET', '/api/sessions/conversation-1/history')).status, 404, 'the call, not the conversation');
    assert.equal((await team.decide('bea', call, true)).status, 404);
    assert.equal((await team.decide('bob', call, true)).missing, 1);
    assert.deepEqual((await event(socket, 'tool:approved_by')).approvedBy, ['corp:bob']);
    assert.equal((await team.decide('bob', call, true)).status, 403);

    // A crash between the first and the second.
    await team.restart('SIGKILL');
    const later = await team.socket('ann', 'conversation-1');
    const [shown] = (await event(later, 'session:history')).pending;
    assert.deepEqual([shown.approvedBy, shown.digest], [['corp:bob'], card.digest]);
    const kept = await team.oneWaiting('carl');
    assert.equal((await team.decide('bob', kept, true)).status, 403, 'still the same person');
    assert.equal((await team.decide('carl', kept, true)).status, 200);
    await event(later, 'agent:response');
    const { rows } = await team.api('operator', 'GET', '/api/audit?q=approvedBy');
    assert.ok(rows.some(({ what }) => what.who === 'corp:bob' && what.approvedBy.length === 1));
    assert.ok(rows.some(({ what }) => what.who === 'corp:carl' && what.approvedBy.length === 2));
    await ack(later, 'session:close', {});
  });

  test('the operator decides at the command line, with the id of the list', async () => {
    const socket = await team.socket('ann', 'conversation-of-the-command-line-with-a-long-name');
    await ack(socket, 'message', 'write hello to a.txt');
    await event(socket, 'tool:approval_required');
    const { id } = await team.oneWaiting('operator');
    const { stdout } = await team.command('approvals', 'list');
    assert.match(stdout, new RegExp(`^${id}\n[^]*asked by\\s+corp:ann\n\\s+waits for\\s+corp/leads`));
    assert.match((await team.command('approvals', 'approve', id)).stdout, /^approved /);
    assert.equal((await event(socket, 'tool:resolved')).approved, true);
    await event(socket, 'agent:response');
    await ack(socket, 'session:close', {});
  });

  test('a no of one is enough', async () => {
    const socket = await team.socket('ann', 'conversation-2');
    await ack(socket, 'message', 'list the files');
    await event(socket, 'tool:approval_required');
    const call = await team.oneWaiting('bob');
    const both = await Promise.all([team.decide('bob', call, true), team.decide('carl', call, false)]);
    if (both[1].status !== 200) // stored one after the other
      assert.equal((await team.decide('carl', call, false)).status, 200);
    assert.equal((await event(socket, 'tool:resolved')).approved, false);
    await event(socket, 'agent:response');
    await ack(socket, 'session:close', {});
  });
});
