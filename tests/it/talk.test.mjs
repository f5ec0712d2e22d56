// Conversations as the contract tells them: the published socket.io-client, a
// strict fake model, tools in real boxes.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';

import { wordsOf } from '../lib/gateway.mjs';
import { until } from './server.mjs';
import { House, read, run, write } from './talk_kit.mjs';

let house;
before(async () => {
  house = await House.start();
});
after(() => house.stop());

const results = () => house.results();

/** The state of each call, as its output and as the stored entry tell it. */
const statesOf = (tab) => ({
  output: tab.events.filter(([e]) => e === 'tool:output').map(([, , about]) => about.state),
  entry: tab.events.filter(([e, d]) => e === 'session:entry' && d.role === 'tool')
    .flatMap(([, d]) => d.results.map((r) => r.state)),
});

/** How many processes of the host, and so of all boxes, were started so. */
const running = (command) => readdirSync('/proc')
  .filter((pid) => wordsOf(pid).join(' ') === `${command} `).length;

describe('a turn', () => {
  test('plain words', async () => {
    house.model.script.push({ text: 'Good morning.' });
    const tab = house.tab();
    const { ready, history } = await tab.ready();
    assert.equal(ready.sessionId, tab.session);
    assert.equal(ready.provider, 'claude');
    assert.equal(ready.model, 'claude-sonnet-5-5');
    assert.equal(ready.driver, 'native');
    assert.equal(ready.resumed, false);
    assert.match(ready.containerId, /^\w{8,}$/);
    assert.ok(ready.tools.some((t) => t.name === 'execute_command'));
    assert.deepEqual(history, { messages: [], pending: [], turn: null, earlier: 0, branches: [] });
    const ack = await tab.say('hello');
    assert.equal(ack.ok, true);
    const [text, more] = await tab.event('agent:response');
    assert.equal(text, 'Good morning.');
    assert.equal(more.turnId, ack.turnId);
    assert.equal(more.stopReason, 'end');
    assert.ok(more.usage.output > 0);
    const deltas = tab.events.filter(([e]) => e === 'agent:delta').map(([, d]) => d.text);
    assert.equal(deltas.join(''), text);
    assert.deepEqual(tab.names(), ['system:ready', 'session:history',
      'session:entry', 'agent:thinking', 'session:entry', 'agent:response']);
    const said = tab.events.filter(([e]) => e === 'session:entry').map(([, d]) => d);
    assert.deepEqual(said.map((e) => [e.role, e.blocks[0].text]),
      [['user', 'hello'], ['assistant', 'Good morning.']]);
    assert.equal(said[0].id, ack.messageId);
    assert.ok(said[1].seq > said[0].seq);
  });

  test('one tool, approved', async () => {
    house.model.script.push({ text: 'Writing.', calls: [write('a.txt', 'hello')] }, { text: 'Done.' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('write it');
    const [card] = await tab.event('tool:approval_required');
    assert.equal(card.name, 'write_file');
    assert.deepEqual(card.args, { path: 'a.txt', content: 'hello' });
    assert.equal(card.queuePosition, 1);
    assert.equal(card.totalInQueue, 1);
    assert.equal(card.server, 'box');
    assert.match(card.digest, /^[0-9a-f]{64}$/);
    assert.ok(card.expiresAt > Date.now());
    assert.equal(card.annotations.readOnlyHint, false);
    assert.deepEqual(await tab.decide(card, true, { digest: card.digest }), { ok: true });
    const [output, about] = await tab.event('tool:output');
    assert.equal(about.callId, card.callId);
    assert.equal(about.isError, false);
    assert.equal(about.state, 'done');
    assert.match(JSON.parse(output)[0].text, /a\.txt/);
    assert.equal((await tab.event('agent:response'))[0], 'Done.');
    assert.deepEqual(tab.names().slice(2), [
      'session:entry', 'agent:thinking', 'session:entry', 'tool:approval_required',
      'tool:resolved', 'agent:thinking', 'tool:output', 'session:entry',
      'agent:thinking', 'session:entry', 'agent:response']);
  });

  test('three tools, the second rejected: the model is told why', async () => {
    house.model.script.push({ calls: [write('1', 'one'), write('2', 'two'), write('3', 'three')] }, { text: 'ok' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('three');
    const cards = [];
    for (let i = 1; i <= 3; i++) cards.push((await tab.event('tool:approval_required', i))[0]);
    assert.deepEqual(cards.map((c) => [c.queuePosition, c.totalInQueue]), [[1, 3], [2, 3], [3, 3]]);
    await tab.decide(cards[2], true);
    await tab.event('tool:output', 1); // it ran before the others were answered
    await tab.decide(cards[0], true);
    await tab.decide(cards[1], false, { reason: 'not that one' });
    await tab.event('agent:response');
    const [first, second, third] = results();
    assert.match(first.text, /1/);
    assert.equal(first.error, false);
    assert.match(second.text, /rejected this call.*not that one/);
    assert.equal(second.error, true);
    assert.match(third.text, /3/);
    const [resolved] = tab.events.filter(([e, r]) => e === 'tool:resolved' && !r.approved).map(([, r]) => r);
    assert.equal(resolved.reason, 'not that one');
    assert.deepEqual(statesOf(tab).entry, ['done', 'rejected', 'done']);
  });

  test('the only one rejected: the model answers, nobody waits', async () => {
    house.model.script.push({ calls: [run('rm -rf /workspace')] }, { text: 'As you wish.' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('clean up');
    const [card] = await tab.event('tool:approval_required');
    await tab.decide(card, false);
    assert.equal((await tab.event('agent:response'))[0], 'As you wish.');
    assert.match(results()[0].text, /The person rejected this call/);
  });

  test('a tool that fails, one that is not there, bad arguments', async () => {
    house.model.script.push({ calls: [read('nowhere.txt'), { name: 'no_such_tool', args: {} }, run('exit 3')] }, { text: 'I see.' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('try');
    for (let i = 1; i <= 2; i++) await tab.decide((await tab.event('tool:approval_required', i))[0], true);
    assert.equal((await tab.event('agent:response'))[0], 'I see.');
    const [missing, unknown, failed] = results();
    assert.equal(missing.error, true);
    assert.match(missing.text, /nowhere\.txt/);
    assert.equal(unknown.error, true);
    assert.match(unknown.text, /no tool named "no_such_tool"/);
    assert.match(failed.text, /3/);
    assert.equal(tab.count('tool:output'), 3);
    const { output, entry } = statesOf(tab);
    assert.deepEqual(entry, ['done', 'rejected', 'done']);
    assert.deepEqual(output.toSorted(), ['done', 'done', 'rejected']);
  });

  test('half a character in the arguments: refused, said, and forgotten', async () => {
    house.model.script.push({ calls: [read('x')], rawArgs: '{"path":"a\\ud800.txt"}' },
      { calls: [read('x')], rawArgs: '{"path":"a\\ud83d\\ude00.txt"}' }, { text: 'I see.' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('try');
    const [card] = await tab.event('tool:approval_required');
    assert.equal(card.args.path, 'a\u{1f600}.txt', 'a whole one is a character like others');
    assert.match(results()[0].text, /not run: .*ud800 is half of a character/);
    assert.doesNotMatch(JSON.stringify(house.asked().messages.at(-2)), /d800/, 'it does not go back');
    await tab.decide(card, true);
    await tab.event('agent:response');
  });

  test('live output while it runs', async () => {
    house.model.script.push({ calls: [run('echo one; sleep 1000')] });
    const tab = house.tab();
    await tab.ready();
    await tab.say('run');
    await tab.decide((await tab.event('tool:approval_required'))[0], true);
    const live = () => JSON.stringify(tab.events.filter(([e]) => e === 'tool:progress' || e === 'tool:log'));
    await until(() => /one/.test(live()), 'its first line');
    assert.equal(tab.count('tool:output'), 0);
    await tab.emit('agent:cancel');
    await tab.event('agent:response');
  });

  test('edited arguments are what runs, and what the model reads', async () => {
    house.model.script.push({ calls: [write('e.txt', 'theirs')] }, { calls: [read('e.txt')] }, { text: 'ok' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('edit');
    const [card] = await tab.event('tool:approval_required');
    await tab.decide(card, true, { args: { path: 'e.txt', content: 'mine' } });
    const [again] = await tab.event('tool:approval_required', 2);
    await tab.decide(again, true);
    await tab.event('agent:response');
    assert.equal(results()[0].text, 'mine');
  });

  test('as many calls as a reply may have', async () => {
    const calls = Array.from({ length: 64 }, (_, i) => write(`many/${i}`, `${i}`));
    house.model.script.push({ calls }, { text: 'all of them' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('write many files');
    for (let i = 1; i <= calls.length; i++) {
      const [card] = await tab.event('tool:approval_required', i);
      assert.deepEqual([card.queuePosition, card.totalInQueue], [i, calls.length]);
      await tab.decide(card, true);
    }
    assert.equal((await tab.event('agent:response'))[0], 'all of them');
    assert.equal(results().length, calls.length);
  });

  test('a model that fails says what to do', async () => {
    house.model.script.push({ status: 401, body: { type: 'error', error: { type: 'authentication_error', message: 'no' } } });
    const tab = house.tab();
    await tab.ready();
    await tab.say('hello');
    const [text, about] = await tab.event('agent:error');
    assert.equal(about.code, 'auth');
    assert.match(text, /key/i);
    assert.doesNotMatch(JSON.stringify(tab.events), new RegExp(house.model.key));
    house.model.script.push({ text: 'again' });
    await tab.say('and now?');
    assert.equal((await tab.event('agent:response'))[0], 'again');
  });
});

describe('people', () => {
  test('a message before ready is kept', async () => {
    house.model.script.push({ text: 'early bird' });
    const tab = house.tab({ early: 'quick' });
    assert.equal((await tab.early).ok, true);
    assert.equal((await tab.event('agent:response'))[0], 'early bird');
  });

  test('a message during an approval waits in line', async () => {
    house.model.script.push({ calls: [run('true')] }, { text: 'first' }, { text: 'second' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('one');
    const [card] = await tab.event('tool:approval_required');
    const acks = [await tab.say('two'), await tab.say('three')];
    assert.deepEqual(acks.map((a) => [a.ok, a.queued]), [[true, 1], [true, 2]]);
    assert.deepEqual((await tab.event('message:queued', 2))[0], { position: 2 });
    assert.equal(tab.count('agent:response'), 0);
    house.model.script.push({ text: 'third' });
    await tab.decide(card, true);
    await tab.event('agent:response', 3);
    const texts = tab.events.filter(([e]) => e === 'agent:response').map(([, t]) => t);
    assert.deepEqual(texts, ['first', 'second', 'third']);
    const { body } = await house.get(`/api/sessions/${tab.session}/history`);
    const said = body.messages.filter((m) => m.role === 'user');
    assert.deepEqual(said.map((m) => m.blocks[0].text), ['one', 'two', 'three']);
    assert.deepEqual(said.slice(1).map((m) => m.id), acks.map((a) => a.messageId));
    assert.deepEqual([...new Set(body.messages.map((m) => m.role))], ['user', 'assistant', 'tool']);
  });

  test('a message in line is there after a reload of the page', async () => {
    house.model.script.push({ calls: [run('true')] }, { text: 'first' }, { text: 'second' });
    const before = house.tab();
    await before.ready();
    await before.say('one');
    const [card] = await before.event('tool:approval_required');
    const { messageId } = await before.say('two');
    before.close();
    const tab = house.tab({ session: before.session });
    const { history } = await tab.ready();
    assert.deepEqual(history.turn.waiting, [{ messageId, text: 'two' }]);
    await tab.decide(card, true);
    await tab.event('agent:response', 2);
    assert.equal(tab.events.filter(([e, x]) => e === 'session:entry' && x.id === messageId).length, 1);
  });

  test('two tabs see the same, and one answer counts', async () => {
    house.model.script.push({ calls: [run('echo x >> count')] }, { text: 'ok' });
    const a = house.tab();
    await a.ready();
    const b = house.tab({ session: a.session });
    const { ready } = await b.ready();
    assert.equal(ready.containerId, (await a.ready()).ready.containerId);
    await a.say('go');
    const [card] = await b.event('tool:approval_required');
    const acks = await Promise.all([a.decide(card, true), b.decide(card, true), a.decide(card, false)]);
    assert.equal(acks.filter((r) => r.ok).length, 1);
    assert.ok(acks.filter((r) => !r.ok).every((r) => r.code === 'unknown_call'));
    await a.event('agent:response');
    await b.event('agent:response');
    assert.equal(a.count('tool:resolved'), 1);
    assert.equal(b.count('tool:resolved'), 1);
    assert.equal(b.count('tool:output'), 1);
  });

  test('reload in the middle of an approval', async () => {
    house.model.script.push({ text: 'Let me.', calls: [run('echo once >> ran; cat ran')] }, { text: 'ok' });
    const before = house.tab();
    await before.ready();
    await before.say('go');
    const [card] = await before.event('tool:approval_required');
    before.close();
    const tab = house.tab({ session: before.session });
    const { ready, history } = await tab.ready();
    assert.equal(ready.resumed !== undefined, true);
    assert.deepEqual(history.pending.map((p) => p.callId), [card.callId]);
    assert.equal(history.turn.state, 'calls');
    assert.deepEqual(history.messages.map((m) => m.role), ['user', 'assistant']);
    await tab.decide(history.pending[0], true, { digest: card.digest });
    await tab.event('agent:response');
    assert.equal(results()[0].text.trim(), 'once');
  });

  test('reload in the middle of an answer; the turn goes on alone', async () => {
    house.model.script.push({ text: Array.from({ length: 40 }, (_, i) => `word${i} `), bytes: 20 });
    const before = house.tab();
    await before.ready();
    await before.say('long');
    await before.event('agent:delta');
    before.close();
    const tab = house.tab({ session: before.session });
    const { history } = await tab.ready();
    if (history.turn) await tab.event('agent:response');
    const { body } = await house.get(`/api/sessions/${tab.session}/history`);
    assert.match(body.messages.at(-1).blocks[0].text, /word0 .*word39 /);
  });

  test('another model keeps the box and the conversation', async () => {
    house.model.script.push({ text: 'one' }, { text: 'two' });
    const before = house.tab();
    const first = await before.ready();
    await before.say('remember 42');
    await before.event('agent:response');
    before.close();
    const tab = house.tab({ session: before.session, model: 'claude-opus-5-5' });
    const { ready } = await tab.ready();
    assert.equal(ready.containerId, first.ready.containerId);
    assert.equal(ready.model, 'claude-opus-5-5');
    await tab.say('what?');
    await tab.event('agent:response');
    assert.equal(house.asked().messages.length, 3);
    assert.equal(house.asked().model, 'claude-opus-5-5');
  });

  test('a fresh start on request', async () => {
    house.model.script.push({ text: 'one' }, { text: 'two' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('first');
    await tab.event('agent:response');
    assert.deepEqual(await tab.emit('history:reset'), { ok: true });
    assert.equal((await tab.event('system:message'))[0], 'Conversation history cleared. Starting fresh.');
    await tab.say('second');
    await tab.event('agent:response', 2);
    assert.equal(house.asked().messages.length, 1);
  });

  test('no session id, a bad one', async () => {
    const tab = house.tab({ session: 'with blanks' });
    house.sessions.delete('with blanks');
    assert.match((await tab.event('error'))[0], /a session id is/);
    await tab.event('(disconnect)');
  });

  test('remembered for the session', async () => {
    house.model.script.push({ calls: [run('echo 1')] }, { calls: [run('echo 2')] }, { text: 'ok' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('go');
    await tab.decide((await tab.event('tool:approval_required'))[0], true, { remember: 'session' });
    await tab.event('agent:response');
    assert.equal(tab.count('tool:approval_required'), 1);
    assert.equal(tab.count('tool:output'), 2);
  });
});

// The toolbox kills what was stopped in its own time, a moment later.
const GONE = `for i in $(seq 100); do
n=$(ps ax | grep -c "[s]leep 100[01]"); [ "$n" = 0 ] && break; sleep 0.1; done; echo left: $n`;

describe('stop', () => {
  test('while it talks', async () => {
    house.model.script.push({ text: 'a'.repeat(50), fault: 'stall' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('talk');
    await tab.event('agent:delta');
    assert.equal((await tab.emit('agent:cancel')).ok, true);
    const [text, about] = await tab.event('agent:response');
    assert.equal(about.stopReason, 'canceled');
    assert.match('a'.repeat(50), new RegExp(`^${text}`));
    house.model.script.push({ text: 'fine' });
    await tab.say('go on');
    assert.equal((await tab.event('agent:response', 2))[0], 'fine');
  });

  test('while a person is asked', async () => {
    house.model.script.push({ calls: [run('echo no > never')] });
    const tab = house.tab();
    await tab.ready();
    await tab.say('ask');
    const [card] = await tab.event('tool:approval_required');
    await tab.emit('agent:cancel');
    await tab.event('agent:response');
    assert.equal((await tab.decide(card, true)).code, 'unknown_call');
    house.model.script.push({ text: 'ok' });
    await tab.say('next');
    await tab.event('agent:response', 2);
    assert.equal(tab.count('tool:output'), 1);
  });

  test('while a tool runs: it and its children end', async () => {
    house.model.script.push({ calls: [run('sleep 1000 & sleep 1001')] });
    const tab = house.tab();
    await tab.ready();
    await tab.say('run');
    await tab.decide((await tab.event('tool:approval_required'))[0], true);
    await tab.emit('agent:cancel');
    await tab.event('agent:response');
    assert.match(JSON.stringify(await tab.event('tool:output')), /stopped/);
    house.model.script.push({ calls: [run(GONE)] }, { text: 'ok' });
    await tab.say('look');
    await tab.decide((await tab.event('tool:approval_required', 2))[0], true);
    await tab.event('agent:response', 2);
    assert.match(results()[0].text, /left: 0\n/);
  });

  // A program that cannot be read is hidden by some ways to mount /proc.
  test('while a tool runs: also who made itself unreadable ends', async () => {
    const mark = `${1e6 + process.pid}`;
    house.model.script.push({ calls: [run(
      `cp "$(command -v sleep)" veiled; chmod 111 veiled; setsid ./veiled ${mark} & ./veiled ${mark}`)] });
    const tab = house.tab();
    await tab.ready();
    await tab.say('run');
    await tab.decide((await tab.event('tool:approval_required'))[0], true);
    await until(() => running(`./veiled ${mark}`) === 2, 'both to run');
    await tab.emit('agent:cancel');
    await tab.event('agent:response');
    await until(() => running(`./veiled ${mark}`) === 0, 'both to end');
  });
});

test('twenty at once, each with its own box and files', async () => {
  house.model.script.length = 0;
  const tabs = Array.from({ length: 20 }, () => house.tab());
  const boxes = new Set();
  for (const tab of tabs) boxes.add((await tab.ready()).ready.containerId);
  assert.equal(boxes.size, 20);
  const acks = await Promise.all(tabs.map((tab) => tab.say('hello')));
  assert.ok(acks.every((a) => a.ok));
  for (const tab of tabs) assert.equal((await tab.event('agent:response'))[0], 'ok');
});
