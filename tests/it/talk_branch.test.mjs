// Branches of a conversation: an earlier message is edited, an answer is made
// again, a turn goes on. Nothing is lost, and the model gets the current branch
// alone.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { until } from './server.mjs';
import { House, run } from './talk_kit.mjs';

const words = (m) => (m.blocks ?? []).map((b) => b.text ?? b.name).join('') || m.code || m.role;
const shown = (history) => history.messages.map(words);
const alternatives = (history) => Object.fromEntries(history.branches.map((b) => [b.seq, b.of]));

describe('branches', () => {
  let house;
  before(async () => {
    house = await House.start({
      config: { approvals: { rules: [{ tool: 'execute_command', action: 'allow' }] } },
    });
  });
  after(() => house.stop());

  const last = (tab, name) => tab.events.filter(([e]) => e === name).at(-1)?.slice(1);
  /** Says it, and waits for the answer. */
  async function ask(tab, text, answer, more = {}) {
    const n = tab.count('agent:response');
    house.model.script.push({ text: answer });
    const ack = await tab.emit('message', { text, ...more });
    assert.equal(ack.ok, true, JSON.stringify(ack));
    assert.equal((await tab.event('agent:response', n + 1))[0], answer);
    return ack;
  }
  async function talk() {
    const tab = house.tab();
    await tab.ready();
    await ask(tab, 'one', 'ONE');
    await ask(tab, 'two', 'TWO');
    await ask(tab, 'three', 'THREE');
    return tab;
  }
  /** As somebody sees it who comes now. */
  async function fresh(session) {
    const tab = house.tab({ session });
    const { history } = await tab.ready();
    tab.close();
    return history;
  }
  const sent = () => house.asked().messages.map((m) => m.content.map((b) => b.text ?? b.type).join(''));

  test('an earlier message is edited: a branch, seen by all tabs, kept over a crash', async () => {
    const tab = await talk();
    const other = house.tab({ session: tab.session });
    const { history } = await other.ready();
    assert.deepEqual([history.branches, history.earlier], [[], 0]);
    const two = history.messages.find((m) => words(m) === 'two');
    await ask(tab, 'two, but better', 'BETTER', { instead: two.seq });
    assert.deepEqual(sent(), ['one', 'ONE', 'two, but better']);
    for (const t of [tab, other]) {
      const [now] = await t.event('session:history', 2);
      assert.deepEqual(shown(now).slice(0, 3), ['one', 'ONE', 'two, but better']);
      const edited = now.messages[2].seq;
      assert.deepEqual(alternatives(now), { [edited]: [two.seq, edited] });
    }
    await house.kill();
    await house.up();
    const now = await fresh(tab.session);
    assert.deepEqual(shown(now), ['one', 'ONE', 'two, but better', 'BETTER']);

    // And back: what was said there is there, and goes on.
    const back = house.tab({ session: tab.session });
    await back.ready();
    assert.deepEqual(await back.emit('branch:switch', { seq: two.seq }), { ok: true });
    const [old] = last(back, 'session:history');
    assert.deepEqual(shown(old), ['one', 'ONE', 'two', 'TWO', 'three', 'THREE']);
    assert.deepEqual(alternatives(old), { [two.seq]: [two.seq, now.messages[2].seq] });
    await ask(back, 'four', 'FOUR');
    assert.deepEqual(sent(), ['one', 'ONE', 'two', 'TWO', 'three', 'THREE', 'four']);
    await house.kill();
    await house.up();
    assert.deepEqual(shown(await fresh(tab.session)), ['one', 'ONE', 'two', 'TWO', 'three', 'THREE', 'four', 'FOUR']);

    // An export for people is of the current branch, one for programs of all.
    const exported = async (format) => {
      const answer = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}/history?format=${format}`);
      return { type: answer.headers.get('content-type'), text: await answer.text() };
    };
    const markdown = await exported('markdown');
    assert.match(markdown.text, /^# one\n\n## You\n\none\n\n## Assistant\n\nONE\n[^]*FOUR/);
    assert.doesNotMatch(markdown.text, /better/i);
    const html = await exported('html');
    assert.match(html.type, /^text\/html/);
    assert.match(html.text, /default-src 'none'[^]*<h1>one<\/h1>[^]*FOUR/);
    assert.doesNotMatch(html.text, /better|<script/i);
    const json = JSON.parse((await exported('json')).text);
    assert.deepEqual([json.format, json.version, json.title], ['mcp-orchestrator/conversation', 1, 'one']);
    assert.match(JSON.stringify(json.entries), /BETTER/);

    // The store has all of it, and the search finds it.
    const { body } = await house.get(`/api/sessions/${tab.session}/history`);
    assert.equal(body.messages.filter((m) => m.role === 'user').length, 5);
    assert.deepEqual(body.messages.filter((m) => m.role === 'branch').length, 2);
    const found = await house.get('/api/search?q=better');
    assert.ok(found.body.rows.some((r) => r.sessionId === tab.session));
  });

  test('the first message is edited', async () => {
    const tab = await talk();
    const [history] = last(tab, 'session:history');
    assert.equal(history.messages.length, 0);
    const one = tab.events.find(([e, m]) => e === 'session:entry' && words(m) === 'one')[1];
    await ask(tab, 'uno', 'UNO', { instead: one.seq });
    assert.deepEqual(sent(), ['uno']);
    assert.deepEqual(shown(await fresh(tab.session)), ['uno', 'UNO']);
  });

  test('an answer is made again, twice; each can be seen again', async () => {
    const tab = await talk();
    for (const text of ['THREE B', 'THREE C']) {
      const n = tab.count('agent:response');
      house.model.script.push({ text });
      const ack = await tab.emit('turn:regenerate');
      assert.ok(ack.ok && ack.turnId, JSON.stringify(ack));
      assert.equal((await tab.event('agent:response', n + 1))[0], text);
      assert.deepEqual(sent(), ['one', 'ONE', 'two', 'TWO', 'three']);
    }
    const history = await fresh(tab.session);
    assert.deepEqual(shown(history), ['one', 'ONE', 'two', 'TWO', 'three', 'THREE C']);
    const [[seq, of]] = Object.entries(alternatives(history));
    assert.deepEqual([Number(seq), of.length], [history.messages.at(-1).seq, 3]);
    // The same was told at once.
    await until(() => last(tab, 'session:branches')?.[0].branches[0]?.of.length === 3, 'the alternatives');
    for (const [i, text] of ['THREE', 'THREE B', 'THREE C'].entries()) {
      assert.equal((await tab.emit('branch:switch', { seq: of[i] })).ok, true);
      assert.equal(words(last(tab, 'session:history')[0].messages.at(-1)), text);
    }
  });

  test('an answer with calls is made again: the calls of the first stay on record', async () => {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ calls: [run('echo first')] }, { text: 'A' }, { calls: [run('echo second')] }, { text: 'B' });
    await tab.say('go');
    await tab.event('agent:response');
    const { seq } = tab.events.find(([e, m]) => e === 'session:entry' && m.role === 'user')[1];
    assert.equal((await tab.emit('turn:regenerate', { seq })).ok, true);
    await tab.event('agent:response', 2);
    assert.deepEqual(house.results().map((r) => r.text.trim()).map((t) => t.split('\n')[0]), ['second']);
    assert.doesNotMatch(JSON.stringify(house.asked().messages), /first/);
    const { body } = await house.get(`/api/sessions/${tab.session}/calls`);
    assert.deepEqual(body.calls.map((c) => c.state), ['done', 'done']);
  });

  test('a turn that was stopped goes on; one that failed is asked again', async () => {
    const tab = house.tab();
    await tab.ready();
    assert.equal((await tab.emit('turn:continue')).code, 'bad_request');
    house.model.script.push({ text: 'The first half', fault: 'stall' });
    await tab.say('tell me');
    await tab.event('agent:delta');
    await tab.emit('agent:cancel');
    await tab.event('session:entry', 2); // it is stored
    house.model.script.push({ text: 'the other half' });
    assert.equal((await tab.emit('turn:continue')).ok, true);
    assert.equal((await tab.event('agent:response', 2))[0], 'the other half');
    assert.match(sent().at(-1), /Continue exactly/);
    const history = await fresh(tab.session);
    assert.deepEqual(history.messages.map((m) => [m.role, m.auto === true]),
      [['user', false], ['assistant', false], ['user', true], ['assistant', false]]);

    house.model.script.push({ status: 400, type: 'invalid_request_error' }, { text: 'now it works' });
    await tab.say('again');
    await tab.event('agent:error');
    await until(async () => (await fresh(tab.session)).messages.at(-1).role === 'note', 'the note');
    assert.equal((await tab.emit('turn:continue')).ok, true);
    assert.equal((await tab.event('agent:response', 3))[0], 'now it works');
    assert.equal(sent().at(-1), 'again');
  });

  test('a server that dies while it answers again: the answer is made after the restart', async () => {
    const tab = await talk();
    house.model.script.push({ text: 'a long answer that stalls', fault: 'stall' });
    const deltas = tab.count('agent:delta');
    assert.equal((await tab.emit('turn:regenerate')).ok, true);
    await tab.event('agent:delta', deltas + 1);
    await house.kill();
    house.model.script.length = 0;
    house.model.script.push({ text: 'after the crash' });
    await house.up();
    const back = house.tab({ session: tab.session });
    const { history } = await back.ready();
    if (history.turn) await back.event('agent:response');
    assert.deepEqual(shown(await fresh(tab.session)), ['one', 'ONE', 'two', 'TWO', 'three', 'after the crash']);
  });

  test('while a turn runs, and for what is not there: refused', async () => {
    const tab = await talk();
    const seq = (text) => tab.events.find(([e, m]) => e === 'session:entry' && words(m) === text)[1].seq;
    for (const [name, arg, code] of [
      ['message', { text: 'x', instead: 999 }, 'not_found'],
      ['message', { text: 'x', instead: seq('ONE') }, 'not_found'],
      ['message', { text: 'x', instead: 0 }, 'bad_request'],
      ['message', { text: 'x', instead: 'one' }, 'bad_request'],
      ['message', { text: '  ', instead: seq('one') }, 'bad_request'],
      ['turn:regenerate', { seq: 999 }, 'not_found'],
      ['branch:switch', { seq: 999 }, 'not_found'],
      ['branch:switch', {}, 'not_found'],
      ['branch:switch', { seq: -1 }, 'bad_request'],
    ]) assert.equal((await tab.emit(name, arg)).code, code, `${name} ${JSON.stringify(arg)}`);
    house.model.script.push({ text: 'a long answer that stalls', fault: 'stall' });
    const deltas = tab.count('agent:delta');
    await tab.say('wait');
    await tab.event('agent:delta', deltas + 1);
    for (const [name, arg] of [['message', { text: 'x', instead: seq('one') }], ['turn:regenerate'], ['turn:continue'], ['branch:switch', { seq: seq('one') }]])
      assert.equal((await tab.emit(name, ...(arg ? [arg] : []))).code, 'busy', name);
    await tab.emit('agent:cancel');
    await tab.event('agent:response', 4);
    assert.deepEqual(shown(await fresh(tab.session)).slice(0, 7), ['one', 'ONE', 'two', 'TWO', 'three', 'THREE', 'wait']);
  });
});
