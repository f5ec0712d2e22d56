// E2: several persons at one server. What one of them began is not there for
// the others, by whatever door they come; the operator sees all of it.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';

import { missing as noRedis, redis } from '../lib/redis.mjs';
import { House, run } from '../it/talk_kit.mjs';
import { until } from '../it/server.mjs';

const TOKENS = {
  operator: 'the-operator-0123456789abcdef',
  alice: 'alice-has-this-0123456789abcdef',
  bob: 'bob-has-another-0123456789abcdef',
};
const headers = Object.fromEntries(Object.entries(TOKENS).map(([who, t]) => [who, { authorization: `Bearer ${t}` }]));
const fresh = () => `s-${randomBytes(9).toString('hex')}`;

const STORES = [
  { name: 'SQLite', start: async () => ({ config: {}, stop: () => {} }) },
  {
    name: 'Redis', skip: noRedis,
    start: async () => {
      const server = await redis();
      return { config: { store: { url: `redis://127.0.0.1:${server.port}` } }, stop: server.stop };
    },
  },
];

for (const { name, skip, start } of STORES)
  describe(name, { skip: skip && !process.env.CI ? skip : false }, () => {
    let house, store;
    before(async () => {
      store = await start();
      house = await House.start({
        headers: headers.operator,
        config: {
          server: { token: TOKENS.operator, tokens: { alice: TOKENS.alice, bob: '${env:BOBS}' } },
          approvals: { rules: [{ tool: 'read_file', action: 'allow' }] }, ...store.config,
        },
        env: { BOBS: TOKENS.bob, ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
      });
    });
    after(async () => {
      await house.stop();
      await store.stop();
    });

    const as = (who, how = {}) => house.tab({ ...how, headers: headers[who] });
    const ask = async (who, path, options = {}) => {
      const answer = await fetch(`http://127.0.0.1:${house.server.port}${path}`, { ...options, headers: { ...headers[who], ...options.headers } });
      const text = await answer.text();
      return { status: answer.status, body: text && /json/.test(answer.headers.get('content-type')) ? JSON.parse(text) : text };
    };
    const ids = async (who) => (await ask(who, '/api/sessions')).body.sessions.map((s) => s.id);
    /** A conversation of that person with a call in it. */
    async function talk(who, words) {
      const tab = as(who, { session: fresh() });
      await tab.ready();
      house.model.script.push({ calls: [run(`echo ${words}`)] }, { text: `heard ${words}` });
      await tab.say(`please ${words}`);
      const [card] = await tab.event('tool:approval_required');
      await tab.decide(card, true);
      await tab.event('agent:response');
      return tab;
    }
    async function turnedAway(who, session) {
      const tab = as(who, { session });
      const [why] = await tab.event('error');
      assert.match(why, /there is no such session/);
      await tab.event('(disconnect)');
      assert.equal(tab.count('system:ready') + tab.count('session:history'), 0);
    }

    test('nobody without a token, not even on this machine', async () => {
      const base = `http://127.0.0.1:${house.server.port}`;
      for (const h of [{}, { authorization: 'Bearer wrong' }, { authorization: 'Bearer ' }])
        assert.equal((await fetch(`${base}/api/sessions`, { headers: h })).status, 401);
    });

    test("another's session is not there: open, left, after a restart", async () => {
      const mine = await talk('alice', 'pineapple');
      await turnedAway('bob', mine.session);
      assert.equal(mine.count('(disconnect)'), 0, 'she noticed nothing');
      const second = as('alice', { session: mine.session });
      assert.equal((await second.ready()).history.messages.length, 4, 'her other tab is let in');
      mine.close();
      second.close();
      await until(async () => (await ask('operator', '/metrics')).body.match(/^mo_socketio_sockets\b.* \d+$/gm)?.every((l) => l.endsWith(' 0')), 'everybody to leave');
      await turnedAway('bob', mine.session);
      await house.kill();
      await house.up();
      await turnedAway('bob', mine.session);
      const back = as('alice', { session: mine.session });
      const { ready, history } = await back.ready();
      assert.equal(ready.workspace, 'kept');
      assert.match(JSON.stringify(history.messages), /heard pineapple/);
      back.close();
    });

    test('REST: lists, reads, names, ends only what is theirs', async () => {
      const mine = await talk('alice', 'mango');
      const theirs = await talk('bob', 'papaya');
      assert.deepEqual([(await ids('alice')).includes(mine.session), (await ids('alice')).includes(theirs.session)], [true, false]);
      assert.deepEqual([(await ids('bob')).includes(mine.session), (await ids('bob')).includes(theirs.session)], [false, true]);
      const all = (await ask('operator', '/api/sessions')).body.sessions;
      assert.equal(all.find((s) => s.id === mine.session).owner, 'alice');
      assert.equal(all.find((s) => s.id === theirs.session).owner, 'bob');
      const at = `/api/sessions/${mine.session}`;
      for (const [path, options] of [
        [at], [`${at}/history`], [`${at}/history?format=markdown`], [`${at}/calls`],
        [at, { method: 'DELETE' }], [`${at}?forget=true`, { method: 'DELETE' }],
        [at, { method: 'PATCH', body: '{"title":"mine now"}', headers: { 'content-type': 'application/json' } }],
      ]) {
        const { status, body } = await ask('bob', path, options);
        assert.deepEqual([status, body.code], [404, 'not_found'], path);
        const nowhere = await ask('bob', path.replace(mine.session, fresh()), options);
        assert.deepEqual([nowhere.status, nowhere.body.code], [404, 'not_found'], 'the same as for one that never was');
      }
      assert.match((await ask('alice', at)).body.title, /please mango/);
      assert.match(JSON.stringify((await ask('alice', `${at}/history`)).body), /heard mango/);
      assert.match(JSON.stringify((await ask('operator', `${at}/history`)).body), /heard mango/);
      assert.equal((await ask('alice', at, { method: 'PATCH', body: '{"title":"fruit"}', headers: { 'content-type': 'application/json' } })).status, 200);
      assert.equal((await ask('operator', at)).body.title, 'fruit');
    });

    test('the audit says whose it was, and tells nobody else; so does the search', async () => {
      const mine = await talk('alice', 'tangerine');
      const rows = async (who) => (await ask(who, '/api/audit?limit=1000')).body.rows.filter((r) => r.sessionId === mine.session);
      assert.ok((await rows('alice')).length > 0);
      assert.deepEqual(await rows('bob'), []);
      assert.ok((await ask('bob', '/api/audit?limit=1000')).body.rows.every((r) => r.what.owner === 'bob'));
      const all = await rows('operator');
      assert.ok(all.every((r) => r.what.owner === 'alice'), JSON.stringify(all));
      assert.ok(all.some((r) => r.what.who === 'alice' && r.what.name === 'execute_command'));
      const found = async (who) => (await ask(who, '/api/search?q=tangerine')).body.rows.filter((r) => r.sessionId === mine.session).length;
      await until(async () => (await found('alice')) > 0, 'the index');
      assert.equal(await found('bob'), 0);
      assert.ok((await found('operator')) > 0);
    });

    test("a page is full although others' rows come first", async () => {
      const mine = await talk('alice', 'clementine');
      const also = await talk('bob', 'clementine');
      const page = async (path) => (await ask('alice', path)).body;
      for (const q of ['', '&q=execute_command']) {
        const first = await page(`/api/audit?limit=1${q}`);
        assert.equal(first.rows.length, 1, JSON.stringify(first));
        assert.equal(first.rows[0].what.owner, 'alice');
        assert.equal(first.more, true);
        const all = await page(`/api/audit?limit=1000${q}`);
        assert.equal(all.more, false);
        assert.deepEqual(all.rows[0], first.rows[0]);
      }
      await until(async () => (await ask('operator', '/api/search?q=clementine')).body.rows.length >= 6, 'the index');
      const hers = await page('/api/search?q=clementine');
      assert.equal(hers.more, false);
      for (let limit = 1; limit < hers.rows.length; limit++) {
        const some = await page(`/api/search?q=clementine&limit=${limit}`);
        assert.deepEqual(some, { rows: hers.rows.slice(0, limit), more: true });
      }
      assert.ok(hers.rows.every((r) => r.sessionId === mine.session));
      const his = (await ask('bob', '/api/search?q=clementine&limit=1')).body;
      assert.deepEqual(his.rows.map((r) => r.sessionId), [also.session]);
    });

    test('an id that was closed begins from nothing', async () => {
      const mine = await talk('alice', 'apricot');
      assert.equal((await mine.emit('session:close')).ok, true);
      await mine.event('(disconnect)');
      const { status } = await ask('bob', `/api/sessions/${mine.session}/history`);
      assert.equal(status, 404);
      const theirs = as('bob', { session: mine.session });
      const { ready, history } = await theirs.ready();
      assert.equal(ready.resumed, false);
      assert.deepEqual(history.messages, []);
      for (const part of ['history', 'history?conversation=1', 'calls'])
        assert.doesNotMatch(JSON.stringify((await ask('bob', `/api/sessions/${mine.session}/${part}`)).body), /apricot/);
      await turnedAway('alice', mine.session);
    });

    test('what holds for all is for the operator to say', async () => {
      for (const [path, options] of [
        ['/api/rules'], ['/api/rules/x', { method: 'DELETE' }], ['/api/servers'],
        ['/api/servers/box/tools/run', { method: 'POST', body: '{}' }],
      ]) {
        const { status, body } = await ask('bob', path, options);
        assert.ok(status === 404 || (status === 403 && body.code === 'operator_only'), `${path}: ${status}`);
      }
      assert.equal((await ask('bob', '/api/rules')).status, 403);
      assert.equal((await ask('operator', '/api/rules')).status, 200);
      const tab = as('bob', { session: fresh() });
      await tab.ready();
      house.model.script.push({ calls: [run('echo kiwi')] }, { text: 'done' });
      await tab.say('go');
      const [card] = await tab.event('tool:approval_required');
      assert.equal((await tab.decide(card, true, { remember: 'always' })).code, 'operator_only');
      assert.equal((await tab.emit('tool:accept', { name: 'execute_command', digest: 'x' })).code, 'operator_only');
      assert.equal((await tab.decide(card, true, { remember: 'session' })).remembered, true);
      await tab.event('agent:response');
      assert.deepEqual((await ask('operator', '/api/rules')).body.rules, []);
    });

    test("another's socket and another's MCP session are unknown", async () => {
      const base = `http://127.0.0.1:${house.server.port}`;
      const sio = `${base}/socket.io/?EIO=4&transport=polling`;
      const { sid } = JSON.parse((await (await fetch(sio, { headers: headers.alice })).text()).slice(1));
      for (const options of [{}, { method: 'POST', body: '40' }]) {
        const answer = await fetch(`${sio}&sid=${sid}`, { ...options, headers: headers.bob });
        assert.equal(answer.status, 400);
        assert.match(await answer.text(), /Session ID unknown/);
      }
      assert.equal((await fetch(`${sio}&sid=${sid}`, { method: 'POST', body: '1', headers: headers.alice })).status, 200, 'it lives');
      const mcp = (who, body, more = {}) => fetch(`${base}/mcp`, { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', ...body }),
        headers: { ...headers[who], 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more } });
      const opened = await mcp('alice', { id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } } });
      const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') };
      await opened.text();
      assert.equal((await mcp('bob', { id: 2, method: 'ping' }, session)).status, 404);
      assert.equal((await mcp('alice', { id: 2, method: 'ping' }, session)).status, 200);
    });

    test('a token of ours is no key of the provider, and a browser gets its own cookie', async () => {
      house.model.script.push({ text: 'with the right key' });
      const tab = as('bob', { session: fresh(), auth: { token: TOKENS.bob } });
      await tab.ready();
      await tab.say('hello');
      assert.equal((await tab.event('agent:response'))[0], 'with the right key');
      const answer = await fetch(`http://127.0.0.1:${house.server.port}/?token=${TOKENS.bob}`, { redirect: 'manual' });
      const [cookie] = answer.headers.get('set-cookie').split(';');
      assert.match(cookie, /^mo_\d+=bob\.\d+\.[0-9a-f]{64}$/);
      const list = await (await fetch(`http://127.0.0.1:${house.server.port}/api/sessions`, { headers: { cookie } })).json();
      assert.ok(list.sessions.every((s) => s.owner === 'bob'));
      for (const t of Object.values(TOKENS)) assert.ok(!house.server.log.includes(t));
    });
  });
