// E2: a session's name is no key to it. Where the door is open to others than
// this machine, the token is what lets in; a name, a socket's id or a guess
// does not, wherever it is put, and guessing is slow.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { io } from 'socket.io-client';

import { STORES, Replicas } from '../it/replicas_kit.mjs';
import { House } from '../it/talk_kit.mjs';
import { within } from '../it/server.mjs';

const TOKEN = 'correct-horse-battery-staple-0123456789';
const GUESSES = 200;

let house, base;
before(async () => {
  house = await House.start({ config: { server: { token: TOKEN } }, headers: { authorization: `Bearer ${TOKEN}` } });
  base = `http://127.0.0.1:${house.server.port}`;
});
after(() => house.stop());

const sio = '/socket.io/?EIO=4&transport=polling';
const mine = { authorization: `Bearer ${TOKEN}` };
const status = async (path, options) => {
  const answer = await fetch(base + path, options);
  await answer.arrayBuffer();
  return answer.status;
};
const handshake = async () => {
  const text = await (await fetch(base + sio, { headers: mine })).text();
  return JSON.parse(text.slice(1)).sid;
};

test('names of sockets: issued here, long, all different', async () => {
  const sids = new Set();
  for (let i = 0; i < 64; i++) sids.add(await handshake());
  assert.equal(sids.size, 64);
  for (const sid of sids) assert.match(sid, /^[\w-]{26,}\.[\w-]+$/); // the second part names the server
  const columns = [...sids].map((s) => [...s]);
  const varied = columns[0].filter((_, i) => new Set(columns.map((c) => c[i])).size > 8).length;
  assert.ok(varied >= 22, `only ${varied} columns vary`);
});

test('a client does not pick one', async () => {
  for (const sid of ['chosen-by-me-0123456789abcdef', '..', '0'])
    assert.equal(await status(`${sio}&sid=${sid}`, { headers: mine }), 400);
});

test('somebody else with the right socket id, without the token', async () => {
  const sid = await handshake();
  for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: TOKEN }, { cookie: `mo_${house.server.port}=wrong` }]) {
    assert.equal(await status(`${sio}&sid=${sid}`, { headers }), 401);
    assert.equal(await status(`${sio}&sid=${sid}`, { method: 'POST', headers, body: '1' }), 401);
  }
  assert.equal(await status(`${sio}&sid=${sid}`, { method: 'POST', headers: mine, body: '40' }), 200, 'it lives');
});

test('somebody else with the right session name', async () => {
  const tab = house.tab();
  await tab.ready();
  for (const path of [
    `${sio}&sessionId=${tab.session}`,
    `${sio}&sessionId=${tab.session}&token=${TOKEN}`, // never in the query
    `/api/sessions/${tab.session}`,
    `/api/sessions/${tab.session}/history?token=${TOKEN}`,
    `/api/sessions`,
    '/api/audit',
  ])
    assert.equal(await status(path), 401, path);
  const stranger = io(base, {
    query: { sessionId: tab.session }, auth: { token: 'wrong' }, transports: ['websocket'], forceNew: true, reconnection: false,
  });
  await within(new Promise((resolve) => stranger.once('connect_error', resolve)), 'the refusal');
  stranger.close();
  assert.equal((await house.get('/api/sessions')).body.sessions.length, 1, 'and no session came of it');
});

test('the token goes into a cookie that scripts and other sites never see', async () => {
  const answer = await fetch(`${base}/?token=${TOKEN}`, { redirect: 'manual' });
  const cookie = answer.headers.get('set-cookie');
  assert.match(cookie, /HttpOnly/i);
  assert.match(cookie, /SameSite=Strict/i);
  assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
  assert.doesNotMatch(answer.headers.get('location') ?? '', /token/);
  assert.equal(await status('/api/sessions', { headers: { cookie: cookie.split(';')[0] } }), 200);
  assert.doesNotMatch(house.server.log, new RegExp(TOKEN));
});

test('guessing is slow, and the owner is let in meanwhile', async () => {
  const seen = new Set();
  for (let i = 0; i < GUESSES; i++) {
    const answer = await fetch(`${base}/api/sessions`, { headers: { authorization: `Bearer ${randomBytes(16).toString('hex')}` } });
    await answer.arrayBuffer();
    seen.add(answer.status);
    if (answer.status === 429) assert.ok(Number(answer.headers.get('retry-after')) >= 1);
  }
  assert.deepEqual([...seen].sort(), [401, 429]);
  assert.equal(await status('/api/sessions', { headers: mine }), 200);
});

// Leases have names, those of sessions are their ids.
for (const { name: store, skip } of STORES)
  test(`conversations that are called as the program's own leases, ${store}`, { skip }, async () => {
    const all = await Replicas.start({ store, count: 1 });
    try {
      for (const session of ['mcp-key', 'mcp', 'full-text-index', 'full-text', 'instance', 'index'])
        await all.v[0].tab({ session }).ready();
      await all.add(); // waits until it is ready, which needs these leases
      const other = all.v[1].tab();
      await other.ready();
      all.model.script.push({ text: 'Hello.' });
      assert.equal((await other.say('one')).ok, true);
      await other.event('agent:response');
    } finally {
      await all.stop();
    }
  });
