// Modes and grants where several people and two servers share a store: who may
// set and revoke, and a change at one server holds at the other.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { redis } from '../lib/redis.mjs';
import { Team, ack, event } from '../lib/team.mjs';
import { STORES } from './replicas_kit.mjs';
import { until } from './server.mjs';

for (const { name: store, skip } of STORES)
  describe(`modes and grants at two servers, ${store}`, { skip }, () => {
    let a, b, server;
    before(async () => {
      server = store === 'redis' ? await redis() : undefined;
      a = await Team.start({ approvals: {}, ...(server && { store: { url: `redis://127.0.0.1:${server.port}/0` } }) });
      b = await a.beside();
    });
    after(async () => {
      await b?.stop();
      await a?.stop();
      await server?.stop();
    });

    const count = (socket, name) => socket.got.filter(([n]) => n === name).length;
    const share = (who, may, id) => a.api('ann', 'PUT', `/api/sessions/${id}/shares`, { with: who, may });
    const mode = (at, who, id, name) => at.api(who, 'PUT', `/api/sessions/${id}/mode`, { mode: name });
    const grants = (at, who, id) => at.api(who, 'GET', `/api/sessions/${id}/grants`);
    const revoke = (at, who, id, grant) => at.api(who, 'DELETE', `/api/sessions/${id}/grants/${grant}`);
    /** A turn; the card, if a person is asked: approved with what is given. */
    async function turn(ann, text, more) {
      const [cards, answers] = [count(ann, 'tool:approval_required'), count(ann, 'agent:response')];
      await ack(ann, 'message', text);
      await until(() => count(ann, 'tool:approval_required') > cards || count(ann, 'agent:response') > answers, 'a card or the answer');
      const card = ann.got.filter(([n]) => n === 'tool:approval_required')[cards]?.[1];
      if (card) assert.equal((await ack(ann, 'tool:approval', { callId: card.callId, digest: card.digest, approved: true, ...more })).ok, true);
      await until(() => count(ann, 'agent:response') > answers, 'the answer');
      return card;
    }
    const WRITE = 'write hello to a.txt';

    test('only the owner and the operator set a mode; a change at the other server holds', async () => {
      const ann = await a.socket('ann', 'modes');
      assert.ok(await turn(ann, WRITE), 'asked');
      await share('corp:bea', 'read', 'modes');
      await share('corp:bob', 'approve', 'modes');
      for (const [who, status] of [['bea', 404], ['bob', 404], ['carl', 404], ['vera', 403], ['zoe', 404]])
        for (const at of [a, b]) assert.equal((await mode(at, who, 'modes', 'box')).status, status, who);
      assert.ok(await turn(ann, WRITE), 'asked again: nobody has set it');
      assert.equal((await mode(b, 'ann', 'modes', 'box')).status, 200, 'through the other server');
      assert.equal((await event(ann, 'session:approvals')).mode, 'box');
      assert.equal(await turn(ann, WRITE), undefined, 'it runs');
      const row = (await a.rows()).findLast((r) => r.by === 'mode:box');
      assert.equal(row.who, 'corp:ann');
      assert.ok((await a.rows()).some((r) => r.kind === 'mode' && r.action === 'box' && r.decidedBy === 'corp:ann' && r.session === 'modes'));
      assert.equal((await mode(b, 'operator', 'modes', 'ask')).status, 200);
      assert.ok(await turn(ann, WRITE), 'asked from the next call on');
      ann.close();
    });

    test('a grant is revoked by whoever may approve, at any server', async () => {
      const ann = await a.socket('ann', 'grants');
      for (const [who, at] of [['bob', b], ['ann', b], ['operator', a]]) {
        assert.ok(await turn(ann, WRITE, { remember: 'session' }), 'asked');
        assert.equal(await turn(ann, WRITE), undefined, 'not asked');
        await share('corp:bea', 'read', 'grants');
        await share('corp:bob', 'approve', 'grants');
        const { grants: [grant] } = await grants(at, who, 'grants');
        assert.deepEqual([grant.tool, grant.who], ['write_file', 'corp:ann']);
        for (const [other, status] of [['bea', 404], ['carl', 404], ['vera', 403]])
          for (const where of [a, b]) {
            assert.equal((await grants(where, other, 'grants')).status, status, other);
            assert.equal((await revoke(where, other, 'grants', grant.id)).status, status, other);
          }
        assert.equal((await revoke(at, who, 'grants', grant.id)).status, 200, who);
        assert.equal((await revoke(at, who, 'grants', grant.id)).status, 404, 'once');
        assert.ok(await turn(ann, WRITE), 'asked from the next call on');
      }
      ann.close();
    });

    test('the mode goes with the conversation when its server ends', async () => {
      const ann = await b.socket('ann', 'moves');
      assert.equal((await mode(a, 'ann', 'moves', 'box')).status, 200);
      assert.equal(await turn(ann, WRITE), undefined);
      ann.close();
      let again;
      await until(async () => {
        again = await a.socket('ann', 'moves');
        return event(again, 'system:ready');
      }, 'the conversation at the other server');
      assert.equal((await event(again, 'system:ready')).approvals.mode, 'box');
      assert.equal((await mode(b, 'ann', 'moves', 'ask')).status, 200);
      assert.ok(await turn(again, WRITE));
      again.close();
    });
  });
