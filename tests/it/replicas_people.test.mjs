// People at two servers of one store: a conversation runs at one of them, and
// whoever comes through the other is judged as they are there: by name, role,
// group, share, personal token and the rules of who approves.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Team, ack, event } from '../lib/team.mjs';
import { STORES } from './replicas_kit.mjs';
import { redis } from '../lib/redis.mjs';
import { until, within } from './server.mjs';

const READ = { read: '1' };
const RULES = { rules: [{ tool: 'list_files', action: 'ask', approvals: 2, approvers: ['corp/leads'] }] };

for (const { name: store, skip } of STORES)
  describe(`people at two servers, ${store}`, { skip }, () => {
    let a, b, server;
    before(async () => {
      server = store === 'redis' ? await redis() : undefined;
      a = await Team.start({ approvals: RULES, ...(server && { store: { url: `redis://127.0.0.1:${server.port}/0` } }) });
      b = await a.beside();
    });
    after(async () => {
      await b?.stop();
      await a?.stop();
      await server?.stop();
    });

    const share = (at, who, id, shared, may) => at.api(who, 'PUT', `/api/sessions/${id}/shares`, { with: shared, may });
    const yes = (card, more = {}) => ({ callId: card.callId, digest: card.digest, approved: true, ...more });
    /** ann's conversation at the first server, where a call waits. */
    async function asked(id, text = 'write hello to a.txt') {
      const ann = await a.socket('ann', id);
      await ack(ann, 'message', text);
      return { ann, card: await event(ann, 'tool:approval_required') };
    }

    test('a reader of a group gets everything and may do nothing', async () => {
      const { ann, card } = await asked('read');
      // Her groups are known to the second server only: her token is for it.
      await share(a, 'ann', 'read', 'corp/guests', 'read');
      const vera = await b.socket('vera', 'read');
      assert.equal((await event(vera, 'system:ready')).shared, 'read');
      assert.equal((await event(vera, 'session:history')).pending[0].callId, card.callId);
      for (const [name, body] of [['message', 'hello'], ['agent:cancel', {}], ['history:reset', {}], ['session:close', {}],
        ['elicitation:response', { requestId: 'x', action: 'accept' }], ['tool:approval', yes(card)], ['tool:approval', { ...yes(card), approved: false }]])
        assert.ok(['read_only', 'operator_only'].includes((await ack(vera, name, body)).code), name);
      assert.equal((await ack(ann, 'tool:approval', yes(card))).ok, true, 'it still waits');
      assert.equal(await event(vera, 'agent:response'), await event(ann, 'agent:response'));

      // Nobody else, whatever they ask for.
      for (const query of [READ, {}]) {
        const bea = await b.socket('bea', 'read', query, false);
        assert.match(await event(bea, 'error'), /no such session/);
        await within(bea.closed, 'the end');
        assert.deepEqual(bea.got.map(([name]) => name), ['error']);
      }
      vera.close();
      ann.close();
    });

    test('an approver decides and is named; less from now on', async () => {
      const { ann, card } = await asked('approve');
      await share(a, 'ann', 'approve', 'corp:bea', 'approve');
      const bea = await b.socket('bea', 'approve', READ);
      assert.equal((await event(bea, 'system:ready')).shared, 'approve');
      for (const [name, body] of [['message', 'hello'], ['agent:cancel', {}], ['tool:approval', yes(card, { remember: 'session' })]])
        assert.equal((await ack(bea, name, body)).code, 'read_only', name);
      assert.equal((await ack(bea, 'tool:approval', yes({ ...card, digest: '0'.repeat(64) }))).code, 'changed');
      assert.equal((await ack(bea, 'tool:approval', yes(card))).ok, true);
      await event(ann, 'agent:response');
      const { calls } = await b.api('ann', 'GET', '/api/sessions/approve/calls');
      assert.deepEqual(calls.map((c) => [c.by, c.who]), [['person', 'corp:bea']]);

      // Changed at the server that does not run it.
      ann.got.length = bea.got.length = 0;
      await share(b, 'ann', 'approve', 'corp:bea', 'read');
      await ack(ann, 'message', 'write hello to b.txt');
      const second = await event(bea, 'tool:approval_required');
      const no = { callId: 'none', digest: second.digest, approved: true };
      await until(async () => (await ack(bea, 'tool:approval', no)).code === 'read_only', 'she has become a reader');
      assert.equal((await ack(bea, 'tool:approval', yes(second))).code, 'read_only');
      await ack(ann, 'tool:approval', { callId: second.callId, approved: false });
      await event(ann, 'agent:response');
      bea.close();
      ann.close();
    });

    test('four eyes: the group that the rule names, through either server', async () => {
      const { ann, card } = await asked('four', 'list the files');
      await share(a, 'ann', 'four', 'corp/staff', 'approve');
      const [mine, bea, bob] = await Promise.all([b.socket('ann', 'four'), b.socket('bea', 'four', READ), b.socket('bob', 'four', READ)]);
      assert.equal((await ack(mine, 'tool:approval', yes(card))).code, 'not_the_approver', 'who asked');
      assert.equal((await ack(bea, 'tool:approval', yes(card))).code, 'not_the_approver', 'not of the group');
      assert.equal((await ack(bob, 'tool:approval', yes(card))).missing, 1);
      assert.equal((await ack(bob, 'tool:approval', yes(card))).ok, false, 'the same person again');
      const carl = await a.socket('carl', 'four', READ);
      assert.equal((await ack(carl, 'tool:approval', yes(card))).ok, true);
      await event(mine, 'agent:response');
      for (const s of [mine, bea, bob, carl, ann]) s.close();
    });

    test('a share that is withdrawn at either closes the reader at the other', async () => {
      const ann = await a.socket('ann', 'gone');
      for (const who of ['corp/guests', 'corp:bea', 'corp:bob']) await share(a, 'ann', 'gone', who, 'read');
      const [vera, bea, bob, walt] = await Promise.all([
        b.socket('vera', 'gone'), b.socket('bea', 'gone', READ), a.socket('bob', 'gone', READ), a.socket('walt', 'gone')]);
      await share(a, 'ann', 'gone', 'corp:bea', 'none');
      await within(bea.closed, 'relayed, and withdrawn where it runs');
      await share(b, 'ann', 'gone', 'corp:bob', 'none');
      await within(bob.closed, 'there, and withdrawn at the other');
      await share(b, 'ann', 'gone', 'corp/guests', 'none');
      await Promise.all([vera, walt].map((s) => within(s.closed, 'both of the group')));
      for (const s of [vera, bea, bob, walt]) s.got.length = 0;
      await ack(ann, 'message', 'say hello');
      await event(ann, 'agent:response');
      for (const s of [vera, bea, bob, walt]) assert.deepEqual(s.got, []);
      assert.ok(ann.connected);

      // Also while it is not open anywhere.
      await share(a, 'ann', 'gone', 'corp:bea', 'read');
      ann.close();
      const waits = await b.socket('bea', 'gone', READ, false);
      await until(() => waits.got.some(([name]) => name === 'session:shared'), 'it is not open');
      await share(a, 'ann', 'gone', 'corp:bea', 'none');
      await within(waits.closed, 'a reader who waits');
    });

    test('a reader waits, follows it wherever it opens, and opens nothing', async () => {
      let ann = await a.socket('ann', 'move');
      await share(a, 'ann', 'move', 'corp:bea', 'read');
      ann.close();
      const readers = await Promise.all([a, b].map((at) => at.socket('bea', 'move', READ, false)));
      const said = [];
      for (const at of [a, b, a]) {
        await Promise.all(readers.map((s) => event(s, 'session:shared')));
        for (const s of readers) s.got.length = 0;
        ann = await at.socket('ann', 'move');
        await Promise.all(readers.map((s) => event(s, 'session:history')));
        await ack(ann, 'message', `say ${said.push(at)}`);
        const answers = await Promise.all([ann, ...readers].map((s) => event(s, 'agent:response')));
        assert.equal(new Set(answers).size, 1);
        for (const s of readers) s.got.length = 0;
        ann.close();
      }
      await Promise.all(readers.map((s) => event(s, 'session:shared')));
      for (const s of readers) s.close();
    });

    // Tokens are read again every 15 s: once is enough.
    if (store === 'sqlite') test('a personal token that is revoked at one ends what it opened at the other', async () => {
      const zoe = await a.socket('zoe', 'token');
      const { token, id } = await a.api('zoe', 'POST', '/api/tokens', { name: 'mine', days: 1 });
      assert.ok(token);
      const mine = await b.socket({ token }, 'token');
      await ack(mine, 'message', 'say hello');
      assert.equal(await event(zoe, 'agent:response'), await event(mine, 'agent:response'));
      assert.ok((await a.api('zoe', 'DELETE', `/api/tokens/${id}`)).status < 300);
      await within(mine.closed, 'the end of the token', 30_000);
      assert.ok(zoe.connected);
      zoe.close();
    });

    test('the server that runs it is killed: readers of the other stay', async () => {
      const c = await a.beside();
      const ann = await c.socket('ann', 'killed');
      await share(a, 'ann', 'killed', 'corp/guests', 'read');
      const vera = await b.socket('vera', 'killed');
      vera.got.length = 0;
      c.server.signal('SIGKILL');
      await c.server.exit;
      ann.close();
      assert.deepEqual(await event(vera, 'session:shared'), { sessionId: 'killed', open: false, may: 'read' });
      vera.got.length = 0;
      const again = await a.socket('ann', 'killed');
      await event(vera, 'session:history');
      await ack(again, 'message', 'say hello');
      await event(vera, 'agent:response');
      assert.ok(vera.connected);
      vera.close();
      again.close();
    });
  });
