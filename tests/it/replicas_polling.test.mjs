// Stock Socket.IO clients that poll, and two servers behind a balancer that sends
// each request to the next one.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, afterEach, before, describe, test } from 'node:test';

import { missing as noRedis } from '../lib/redis.mjs';
import { balancer } from './balancer.mjs';
import { Replicas } from './replicas_kit.mjs';
import { until, within } from './server.mjs';
import { Tab } from './talk_kit.mjs';

const token = (who) => `${who}-has-this-0123456789abcdef`;
const headers = (who) => ({ authorization: `Bearer ${token(who)}` });
const config = { server: { token: token('operator'), tokens: { alice: token('alice'), bob: token('bob') } } };
const env = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };
const UNKNOWN = { code: 1, message: 'Session ID unknown' };
const PLACES = [
  { name: 'on one machine', skip: false, store: 'sqlite' },
  { name: 'on two machines', skip: noRedis, store: 'redis', far: true },
];

for (const { name, skip, ...how } of PLACES)
  describe(`polling, servers ${name}`, { skip }, () => {
    let all, front;
    const tabs = [];
    before(async () => {
      all = await Replicas.start({ ...how, env, headers: headers('operator'), config });
      front = await balancer(all.v.map((r) => r.server.port));
      all.model.next = () => ({ text: 'hello' });
    });
    afterEach(() => tabs.splice(0).forEach((tab) => tab.close()));
    after(async () => {
      await front?.close();
      await all?.stop();
    });

    /** A tab of alice behind the balancer. */
    function tabOf(more) {
      const place = { server: { port: new URL(front.url).port }, sessions: all.sessions, headers: headers('alice') };
      const tab = new Tab(place, { transports: ['polling'], ...more });
      tabs.push(tab);
      return tab;
    }
    /** One request of a polling client at the n-th server. */
    async function poll(n, who, sid, body, more = {}) {
      const answer = await fetch(`http://127.0.0.1:${all.v[n].server.port}/socket.io/?EIO=4&transport=polling${sid ? `&sid=${sid}` : ''}`,
        { headers: headers(who), ...(body && { method: 'POST', body }), ...more });
      const text = await answer.text();
      return { status: answer.status, text, body: text.startsWith('{') ? JSON.parse(text) : undefined };
    }
    const open = async (n, who) => JSON.parse((await poll(n, who)).text.slice(1)).sid;

    for (const transports of [['polling'], ['polling', 'websocket']])
      test(`a conversation of a client with ${transports.join(' and ')}`, async () => {
        const at = front.seen.length;
        const tab = tabOf({ transports });
        await tab.ready();
        for (let i = 1; i <= 4; i++) {
          assert.equal((await tab.say(`message ${i} ${'ü'.repeat(20_000)}`)).ok, true);
          await tab.event('agent:response', i);
        }
        assert.equal(tab.count('(disconnect)'), 0);
        const seen = front.seen.slice(at);
        for (const r of all.v) assert.ok(seen.filter(([, port, status]) => port === r.server.port && status === 200).length > 2);
        assert.deepEqual(seen.filter(([method, , status]) => method === 'POST' && status !== 200), []);
      });

    test('ten clients at once', async () => {
      const ten = Array.from({ length: 10 }, () => tabOf());
      await Promise.all(ten.map((tab) => tab.ready()));
      await Promise.all(ten.map(async (tab, i) => {
        assert.equal((await tab.say(`from ${i}`)).ok, true);
        await tab.event('agent:response');
      }));
      assert.equal(ten.reduce((n, tab) => n + tab.count('(disconnect)'), 0), 0);
    });

    test('nobody uses the session of another, through either server', async () => {
      const sid = await open(0, 'alice');
      for (const n of [0, 1])
        for (const body of [undefined, '40']) {
          const no = await poll(n, 'bob', sid, body);
          assert.deepEqual([no.status, no.body], [400, UNKNOWN]);
        }
      assert.equal((await poll(1, 'alice', sid, '40')).text, 'ok', 'it is hers');
      assert.match((await poll(1, 'alice', sid)).text, /^4[04]/);
      const [random, home] = sid.split('.');
      const other = (random[0] === 'x' ? 'y' : 'x') + random.slice(1);
      for (const wrong of [random, `${random}.`, `.${home}`, `${other}.${home}`, `${random}.iNobodyHasThisNam`, `${random}.${'x'.repeat(100)}`, `${random}.a%00b`, `${random}.../x`, `${random}.${home}.${home}`])
        for (const n of [0, 1]) {
          const no = await poll(n, 'alice', wrong);
          assert.deepEqual([no.status, no.body], [400, UNKNOWN], wrong);
        }
    });

    test('too much at once, and a session that has ended', async () => {
      const sid = await open(0, 'alice');
      for (const n of [0, 1]) assert.equal((await poll(n, 'alice', sid, `4${'x'.repeat(1_000_001)}`)).status, 413);
      assert.equal((await poll(1, 'alice', sid, '1')).text, 'ok', 'it closes itself');
      for (const n of [0, 1]) assert.deepEqual((await poll(n, 'alice', sid)).body, UNKNOWN);
    });

    test('a client that goes away in a poll ends its session', async () => {
      const sid = await open(0, 'alice');
      for (let ms = 300, over = false; !over; ms *= 3) { // it may go away before a server has it
        assert.ok(ms < 30_000, 'its end');
        const stop = new AbortController();
        const waits = poll(1, 'alice', sid, undefined, { signal: stop.signal }).catch(() => 'gone');
        await new Promise((done) => setTimeout(done, ms));
        stop.abort();
        over = (await waits).status === 400 ||
          (await until(async () => (await poll(0, 'alice', sid, '3')).status === 400, 'its end', 3000).then(() => true, () => false));
      }
    });

    test('an upgrade to websocket is refused at the other server, and polling goes on', async () => {
      const sid = await open(0, 'alice');
      const upgrade = (n) => new Promise((done, fail) => {
        const rq = http.get(`http://127.0.0.1:${all.v[n].server.port}/socket.io/?EIO=4&transport=websocket&sid=${sid}`, { headers: {
          ...headers('alice'), connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' } });
        rq.on('upgrade', (rs, socket) => {
          socket.destroy();
          done(rs.statusCode);
        }).on('response', (rs) => {
          rs.resume();
          done(rs.statusCode);
        }).on('error', fail);
      });
      assert.equal(await upgrade(1), 400);
      assert.equal((await poll(1, 'alice', sid, '40')).text, 'ok');
      assert.match((await poll(1, 'alice', sid)).text, /^4[04]/);
      assert.equal(await upgrade(0), 101);
    });

    test('a server through which clients poll ends at once, and they go on', async () => {
      const tab = tabOf({ reconnection: true });
      await tab.ready();
      const waits = poll(1, 'alice', await open(0, 'alice')).catch(() => 'gone');
      await new Promise((done) => setTimeout(done, 300));
      const began = Date.now();
      await all.v[1].signal('SIGTERM');
      assert.ok(Date.now() - began < 8000, 'no poll delays the end');
      assert.equal(await waits, 'gone');
      const before = tab.count('agent:response');
      await until(async () => (await within(tab.socket.timeout(3000).emitWithAck('message', 'again'), 'the ack').catch(() => ({}))).ok, 'the next connection', 30_000);
      await tab.event('agent:response', before + 1);
    });
  });
