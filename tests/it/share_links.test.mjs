// Links by which everybody reads a conversation: frozen, without rights to
// anything else, withdrawn, expired, guessed, switched off.
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';

import { Team, ack, event } from '../lib/team.mjs';
import { until } from './server.mjs';
import { House, read } from './talk_kit.mjs';

describe('one person: links are on', () => {
  let house;
  before(async () => {
    house = await House.start({ config: { log: { level: 'debug' } } });
  });
  after(() => house.stop());

  async function api(method, path, body) {
    const answer = await fetch(`${house.server.url}${path}`, { method, body: body && JSON.stringify(body) });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, ...(text.startsWith('{') && JSON.parse(text)) };
  }
  const links = (id) => `/api/sessions/${id}/links`;
  async function talk(text, answer) {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ text: answer });
    await tab.say(text);
    await tab.event('agent:response');
    return tab;
  }

  test('everybody reads it as it was, and gets nothing else', async () => {
    const tab = await talk('the first <b>question</b>', 'the first answer');
    house.model.script.push({ calls: [read('nothing.txt')] }, { text: 'no such file' });
    await tab.say('read it');
    await tab.decide((await tab.event('tool:approval_required'))[0], true);
    await tab.event('agent:response', 2);
    const made = await api('POST', links(tab.session), { days: 7 });
    assert.equal(made.status, 201);
    assert.match(made.path, /^\/shared\/[\w-]{32}$/);
    assert.equal(made.expires - made.at, 7 * 24 * 3600 * 1000);

    const page = await api('GET', made.path);
    assert.equal(page.status, 200);
    for (const [name, value] of [['content-type', /^text\/html/], ['referrer-policy', /^no-referrer$/], ['x-robots-tag', /noindex/],
      ['cache-control', /no-store/], ['content-security-policy', /^default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/]])
      assert.match(page.headers.get(name), value, name);
    assert.equal(page.headers.get('set-cookie'), null);
    for (const part of ['the first &lt;b&gt;question', 'the first answer', 'nothing.txt', 'no such file']) assert.ok(page.text.includes(part), part);
    assert.doesNotMatch(page.text, /<script|<form|<iframe/);
    assert.ok(!page.text.includes(tab.session), 'the id of the conversation is not told');

    // Later words, another branch and another title are not in it.
    house.model.script.push({ text: 'a secret later' });
    await tab.say('and now?');
    await tab.event('agent:response', 3);
    house.model.script.push({ text: 'another answer' });
    assert.equal((await tab.emit('turn:regenerate', {})).ok, true);
    await tab.event('agent:response', 4);
    await api('PATCH', `/api/sessions/${tab.session}`, { title: 'Hidden' });
    assert.equal((await api('GET', made.path)).text, page.text);
    const newer = await api('POST', links(tab.session), {});
    assert.match((await api('GET', newer.path)).text, /<h1>Hidden<\/h1>[^]*another answer/);
    assert.ok(!(await api('GET', newer.path)).text.includes('a secret later'), 'the branch that was left');

    const list = await api('GET', links(tab.session));
    assert.equal(list.allowed, true);
    assert.deepEqual(list.links.map((l) => [l.id, l.by, l.expires]).sort(), [[made.id, 'operator', made.expires], [newer.id, 'operator', undefined]].sort());
    assert.ok(!list.text.includes(made.path.slice(8)), 'the token was told once');

    // The store and the logs do not have it either.
    const token = made.path.slice(8);
    for (const name of await readdir(house.dir, { recursive: true }).then((all) => all.filter((n) => /\.(db|db-wal|jsonl|log)$/.test(n))))
      assert.ok(!(await readFile(join(house.dir, name))).includes(token), name);
    assert.ok(!house.server.log.includes(token), 'the log');

    assert.equal((await api('DELETE', `${links(tab.session)}/${made.id}`)).status, 200);
    assert.equal((await api('GET', made.path)).status, 404);
    assert.equal((await api('DELETE', `${links(tab.session)}/${made.id}`)).status, 404);
    assert.equal((await api('GET', newer.path)).status, 200);
    const rows = (await api('GET', '/api/audit?q=share-link')).rows.map((r) => r.what).filter((r) => r.kind === 'share-link');
    assert.deepEqual(rows.map((r) => [r.action, r.name, r.session, r.decidedBy]).reverse(), [
      ['made', made.id, tab.session, 'operator'], ['made', newer.id, tab.session, 'operator'], ['withdrawn', made.id, tab.session, 'operator']]);
  });

  test('it ends in time, and with its conversation', async () => {
    const tab = await talk('short', 'lived');
    const { path, id } = await api('POST', links(tab.session), { days: 1 });
    const other = await api('POST', links(tab.session), {});
    await house.kill();
    const files = await readdir(house.dir, { recursive: true });
    const db = new DatabaseSync(join(house.dir, files.find((f) => f.endsWith('.db'))), { timeout: 5000 });
    const key = `share-links:${tab.session}:${id}`;
    const row = db.prepare('SELECT doc FROM mark WHERE id = ?').get(key);
    db.prepare('UPDATE mark SET doc = ? WHERE id = ?').run(JSON.stringify({ ...JSON.parse(row.doc), expires: 1 }), key);
    db.close();
    await house.up();
    assert.equal((await api('GET', path)).status, 404, 'its time is over');
    assert.equal((await api('GET', other.path)).status, 200, 'a restart does not end it');
    assert.equal((await api('DELETE', `/api/sessions/${tab.session}?forget=true`)).status, 200);
    assert.equal((await api('GET', other.path)).status, 404);
    const again = house.tab({ session: tab.session }); // the same id
    await again.ready();
    house.model.script.push({ text: 'new words' });
    await again.say('anew');
    await again.event('agent:response');
    assert.equal((await api('GET', other.path)).status, 404);
  });

  test('nonsense, an empty conversation, too many', async () => {
    const empty = house.tab();
    await empty.ready();
    assert.deepEqual([(await api('POST', links(empty.session), {})).code, (await api('POST', links('nobody'), {})).status], ['empty', 404]);
    for (const body of [{ days: 0 }, { days: 366 }, { days: 'x' }, { days: -1 }, []]) assert.equal((await api('POST', links(empty.session), body)).status, 400);
    const tab = await talk('many', 'links');
    for (let i = 0; i < 32; i++) assert.equal((await api('POST', links(tab.session), {})).status, 201);
    assert.equal((await api('POST', links(tab.session), {})).code, 'too_many');
    assert.equal((await api('GET', links(tab.session))).links.length, 32);
    assert.equal((await api('POST', '/shared/x')).status, 405);
  });

  test('guesses are slowed down, as at the sign-in', async () => {
    const tab = await talk('guess', 'me');
    const { path } = await api('POST', links(tab.session), {});
    const answers = [];
    for (let i = 0; i < 40; i++) answers.push((await api('GET', `/shared/${String(i).padStart(32, 'A')}`)).status);
    assert.deepEqual([...new Set(answers)], [404, 429]);
    assert.equal((await api('GET', path)).status, 200, 'who has a link is not kept out');
    await until(async () => (await api('GET', '/api/audit?q=link_unknown')).rows.some((r) => r.what.outcome === 'refused'), 'a row of the guesses');
  });
});

describe('a team', () => {
  for (const [shareLinks, status] of [[undefined, 403], [true, 201]])
    test(`server.shareLinks ${shareLinks}: ${status}`, async () => {
      const team = await Team.start({ server: { shareLinks } });
      try {
        const ann = await team.socket('ann', 'one');
        await ack(ann, 'message', 'say hello to the team');
        await event(ann, 'agent:response');
        const made = await team.api('ann', 'POST', '/api/sessions/one/links', {});
        assert.equal(made.status, status);
        assert.equal((await team.api('ann', 'GET', '/api/sessions/one/links')).allowed, status === 201);
        if (status === 403) {
          assert.equal(made.code, 'links_off');
          return;
        }
        for (const [who, method] of [['bea', 'GET'], ['bea', 'POST'], ['vera', 'POST'], [null, 'GET']])
          assert.ok([404, 403, 401].includes((await team.api(who, method, '/api/sessions/one/links', method === 'POST' ? {} : undefined)).status), `${who} ${method}`);
        assert.match((await team.api(null, 'GET', made.path)).text, /say hello to the team/);
        for (const path of ['/api/sessions', '/api/sessions/one', '/api/sessions/one/history', '/api/sessions/one/files', '/api/me'])
          assert.equal((await team.api(null, 'GET', path)).status, 401, path);
        const token = made.path.slice(8);
        assert.equal((await team.api({ token }, 'GET', '/api/me')).status, 401, 'it is no token of the API');
        const [row] = (await team.rows()).filter((r) => r.kind === 'share-link');
        assert.deepEqual([row.decidedBy, row.action, row.session], ['corp:ann', 'made', 'one']);
      } finally {
        await team.stop();
      }
    });
});
