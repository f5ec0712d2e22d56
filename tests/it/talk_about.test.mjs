// What a person says about a conversation: title, pin, archive, tags. The server
// keeps it, for open conversations and for others.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { until } from './server.mjs';
import { House } from './talk_kit.mjs';

describe('about a conversation', () => {
  let house;
  before(async () => {
    house = await House.start();
  });
  after(() => house.stop());

  const row = async (id) => (await house.get(`/api/sessions/${id}`)).body;
  /** What the audit log says was changed, oldest first. */
  async function changes(id) {
    const rows = (await house.get('/api/audit?q=changed&limit=1000')).body.rows.map((r) => r.what).filter((r) => r.session === id);
    assert.ok(rows.every((r) => r.kind === 'conversation' && r.action === 'changed' && r.decidedBy === 'operator'));
    return rows.map((r) => r.entry).reverse();
  }
  async function patch(id, body) {
    const answer = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${id}`, {
      method: 'PATCH', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  }
  async function talk(text) {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ text: 'yes' });
    await tab.say(text);
    await tab.event('agent:response');
    return tab;
  }

  test('the title: the first line with words, cleaned, told to every tab', async () => {
    const tab = await talk('\n\n## **Plan**   the\tjourney\nand more');
    assert.equal((await tab.event('session:about'))[0].title, 'Plan** the journey');
    const other = house.tab({ session: tab.session });
    assert.equal((await other.ready()).ready.title, 'Plan** the journey');
    await until(async () => (await row(tab.session)).title === 'Plan** the journey', 'the row');
    const long = await talk(`${'ä'.repeat(100)}`);
    const { title } = (await long.event('session:about'))[0];
    assert.ok(Buffer.byteLength(title) <= 80 && title.endsWith('ä…'), title);
  });

  test('one in which nobody has spoken yet can be named, too', async () => {
    const tab = house.tab();
    await tab.ready();
    tab.close();
    await house.kill(); // it is open nowhere, as soon as its lease is over
    await house.up();
    await until(async () => (await patch(tab.session, { title: 'Later' })).status === 200, 'the name');
    assert.equal((await row(tab.session)).title, 'Later');
    const back = house.tab({ session: tab.session });
    assert.equal((await back.ready()).ready.title, 'Later');
  });

  test('open: renamed, pinned, archived, tagged; all tabs are told, and it is kept', async () => {
    const tab = await talk('first');
    const other = house.tab({ session: tab.session });
    await other.ready();
    const told = other.count('session:about');
    assert.deepEqual(await patch(tab.session, { title: ' My\tname \nx', pinned: true, tags: [' work ', 'home'] }), { status: 200, body: { ok: true } });
    const [about] = await other.event('session:about', told + 1);
    assert.deepEqual(about, { title: 'My name', named: true, pinned: true, tags: ['work', 'home'] });
    house.model.script.push({ text: 'yes' });
    await tab.say('second'); // what else is kept with the session does not change it
    await tab.event('agent:response', 2);
    await house.kill();
    await house.up();
    const { title, pinned, archived, tags } = await row(tab.session);
    assert.deepEqual([title, pinned, archived, tags], ['My name', true, undefined, ['work', 'home']]);
    assert.deepEqual(await changes(tab.session), [{ title: 'My name', pinned: true, tags: ['work', 'home'] }]);
  });

  test('not open: the same, without a box, and its time stays', async () => {
    const tab = await talk('first');
    assert.equal((await tab.emit('session:close', { keep: true })).ok, true);
    const then = await row(tab.session);
    assert.equal((await patch(tab.session, { title: 'Asleep', archived: true, tags: ['a'] })).status, 200);
    const now = await row(tab.session);
    assert.deepEqual(now, { ...then, title: 'Asleep', archived: true, tags: ['a'] });
    assert.equal((await patch(tab.session, { archived: false, tags: [] })).status, 200);
    assert.deepEqual(await row(tab.session), { ...then, title: 'Asleep' });
    assert.deepEqual(await changes(tab.session), [{ title: 'Asleep', archived: true, tags: ['a'] }, { archived: false, tags: [] }]);
    const back = house.tab({ session: tab.session });
    const { ready, history } = await back.ready();
    assert.deepEqual([ready.title, ready.named, history.messages.length], ['Asleep', true, 2]);
  });

  test('instructions: behind those of the operator, kept, shown, in no list', async () => {
    const tab = await talk('first');
    const before = house.asked().system.map((b) => b.text).join('');
    assert.equal((await patch(tab.session, { system: '  Answer in French.\nBe brief. ' })).status, 200);
    await until(() => tab.events.filter(([e]) => e === 'session:about').at(-1)[1].system === 'Answer in French.\nBe brief.', 'the event');
    house.model.script.push({ text: 'oui' });
    await tab.say('second');
    await tab.event('agent:response', 2);
    const now = house.asked().system.map((b) => b.text).join('');
    assert.ok(now.startsWith(before) && now.endsWith('\nAnswer in French.\nBe brief.'), now);
    assert.equal((await row(tab.session)).system, 'Answer in French.\nBe brief.');
    assert.deepEqual(await changes(tab.session), [{ system: 28 }], 'their length, not their text');
    const { body } = await house.get('/api/sessions');
    assert.equal(body.sessions.find((s) => s.id === tab.session).system, undefined);
    await house.kill();
    await house.up();
    const back = house.tab({ session: tab.session });
    assert.equal((await back.ready()).ready.system, 'Answer in French.\nBe brief.');
    assert.equal((await patch(tab.session, { system: '' })).status, 200);
    house.model.script.push({ text: 'yes' });
    await back.say('third');
    await back.event('agent:response');
    assert.equal(house.asked().system.map((b) => b.text).join(''), before);
    for (const system of [7, 'x'.repeat(8193), 'a\u0001'])
      assert.equal((await patch(tab.session, { system })).status, 400);
  });

  test('an export as HTML: what was said is text, whatever it is', async () => {
    const evil = '</title><script>alert(1)</script><img src=x onerror=alert(2)> & "quoted" \'too\'';
    const tab = await talk(evil);
    house.model.script.push({ text: '<svg/onload=alert(3)>\n```\n</pre><b>bold</b>' });
    await tab.say('again');
    await tab.event('agent:response', 2);
    const answer = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}/history?format=html`);
    const html = await answer.text();
    assert.match(answer.headers.get('content-disposition'), /^attachment; filename="conversation-[\w-]+\.html"$/);
    assert.deepEqual([...new Set(html.match(/<[a-z!/][^ >]*/gi))].sort(),
      ['<!doctype', '</body', '</div', '</h1', '</h2', '</head', '</html', '</main', '</style', '</title', '<body', '<div', '<h1', '<h2', '<head', '<html', '<main', '<meta', '<style', '<title'].sort());
    assert.match(html, /&lt;script&gt;alert\(1\)&lt;\/script&gt;&lt;img src=x onerror=alert\(2\)&gt; &amp; &quot;quoted&quot; &#39;too&#39;/);
    assert.match(html, /Content-Security-Policy" content="default-src 'none';/);
  });

  test('what is wrong is refused, and changes nothing', async () => {
    const tab = await talk('first');
    for (const body of [{}, { title: ' ' }, { title: 7 }, { pinned: 'yes' }, { tags: 'a' }, { tags: [''] }, { tags: ['x'.repeat(41)] },
      { tags: Array.from({ length: 9 }, (_, i) => `t${i}`) }, { pinned: true, tags: [1] }])
      assert.equal((await patch(tab.session, body)).status, 400, JSON.stringify(body));
    assert.equal((await patch('nobody', { pinned: true })).status, 404);
    assert.deepEqual(await changes(tab.session), []);
    assert.deepEqual([(await row(tab.session)).pinned, (await row(tab.session)).title], [undefined, 'first']);
  });
});
