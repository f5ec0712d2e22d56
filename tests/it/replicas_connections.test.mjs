// A person signs in at a server with `credentials: user`, and the browser comes
// back to another server than the one at which it began.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';

import { missing as noRedis } from '../lib/redis.mjs';
import { Whose, connect } from '../lib/whose.mjs';
import { Replicas } from './replicas_kit.mjs';

const token = (who) => `${who}-has-this-0123456789abcdef`;
const as = (who) => ({ authorization: `Bearer ${token(who)}` });
const PLACES = [
  { name: 'on one machine', skip: false, store: 'sqlite' },
  { name: 'on another machine', skip: noRedis, store: 'redis', far: true },
];

for (const { name, skip, ...how } of PLACES)
  describe(`the browser comes back to a server ${name}`, { skip }, () => {
    let all, whose;
    const url = (n) => all.v[n].server.url;
    const connected = async (n, who) =>
      (await (await fetch(`${url(n)}/api/connections`, { headers: as(who) })).json()).connections.filter((c) => c.connected).map((c) => c.server);
    /** Begun at the first server, finished at the n-th. */
    const signIn = (n, who, server, more = {}) => connect(url(0), as(who), server, `${who}@there`, { at: url(n), ...more });

    before(async () => {
      whose = await new Whose(3).start();
      all = await Replicas.start({ ...how, auth: true, headers: as('operator'), config: {
        mcpServers: whose.config(), approvals: { default: 'allow' },
        server: { token: token('operator'), tokens: { ann: token('ann'), bob: token('bob') } },
      } });
      for (const r of all.v) r.server.fresh.fds += 24; // connections to the servers
    });
    after(async () => {
      await all?.stop();
      await whose.stop();
    });
    afterEach(() => assert.deepEqual(whose.wrong, []));

    test('it is finished where it began', async () => {
      const done = await signIn(1, 'ann', 's0');
      assert.equal(done.status, 200, done.text);
      assert.match(done.text, /connected=s0/);
      assert.deepEqual(await connected(0, 'ann'), ['s0']);
      assert.deepEqual(await connected(0, 'bob'), []);
      const again = await fetch(new URL(done.next, url(1)), { headers: as('ann') });
      assert.deepEqual([again.status, (await again.json()).code], [403, 'sign_in_refused'], 'once');
    });

    test('a long answer of the issuer', async () => {
      const done = await signIn(1, 'ann', 's1', { back: (at) => `${at}&session_state=${'x'.repeat(3000)}` });
      assert.equal(done.status, 200, done.text);
      assert.deepEqual(await connected(0, 'ann'), ['s0', 's1']);
    });

    test("nobody finishes another's, through either server", async () => {
      const texts = [];
      for (const n of [0, 1]) {
        const no = await signIn(n, 'ann', 's2', { as: as('bob') });
        assert.equal(no.status, 403, no.text);
        texts.push(no.text);
      }
      assert.equal(texts[1], texts[0]);
      const unknown = await fetch(`${url(1)}/connections/finish?code=x&state=unknown`, { headers: as('bob') });
      assert.deepEqual([unknown.status, await unknown.text()], [403, texts[0]], 'as one that does not exist');
      const stranger = await fetch(`${url(1)}/connections/finish?code=x&state=unknown`);
      assert.ok([401, 403].includes(stranger.status));
      assert.deepEqual([await connected(0, 'ann'), await connected(0, 'bob')], [['s0', 's1'], []]);
      assert.equal((await signIn(1, 'ann', 's2')).status, 200, 'it is hers');
    });
  });
