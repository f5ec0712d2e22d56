// A conversation outlives its model and its box: another model takes it up where
// the old one stopped, and the list of conversations stays as it is.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { gemini } from '../fakes/gemini.mjs';
import { compatible, openai } from '../fakes/openai.mjs';
import { until } from './server.mjs';
import { House, run, write } from './talk_kit.mjs';

const key = 'sk-fake-0123456789';
const roles = (messages) => messages.map((m) => (m.role === 'note' ? m.code : m.role));

/** Each as the conversation's model, in this order; the fakes refuse what the
 *  real ones would: a lost signature, a foreign thought, half a call. */
const TOURS = [
  {
    name: 'Claude, Gemini, OpenAI and back',
    start: async () => {
      const [a, g, o] = [await claude({ key }), await gemini({ key }), await openai({ key })];
      return {
        fakes: [a, g, o],
        env: {
          ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: a.url, GEMINI_API_KEY: key, GEMINI_BASE_URL: g.url,
          OPENAI_API_KEY: key, OPENAI_BASE_URL: `${o.origin}/api.openai.com/v1`,
        },
        stops: [['claude-sonnet-5-5', a], ['gemini:gemini-4-argon', g], ['openai:gpt-6.1-sol', o], ['claude-opus-5-5', a],
          ['gemini:gemini-4-argon', g], ['claude-sonnet-5-5', a]],
      };
    },
  },
  {
    name: 'Claude and a compatible server',
    start: async () => {
      const [a, c] = [await claude({ key }), await compatible({ key: '', list: { object: 'list', data: [{ id: 'qwen3:8b', object: 'model' }] } })];
      return {
        fakes: [a, c],
        env: { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: a.url, OPENAI_BASE_URL: c.url },
        stops: [['claude-sonnet-5-5', a], ['openai:qwen3:8b', c], ['claude-sonnet-5-5', a]],
      };
    },
  },
];

describe('another model takes up the conversation', () => {
  for (const tour of TOURS)
    test(tour.name, async () => {
      const { fakes, env, stops } = await tour.start();
      const house = await House.start({
        model: fakes[0], env,
        config: {
          llm: { provider: 'claude', model: 'claude-sonnet-5-5' },
          approvals: { rules: [{ tool: 'execute_command', action: 'allow' }] },
        },
      });
      try {
        const tab = house.tab();
        await tab.ready();
        for (const [i, [id, fake]] of stops.entries()) {
          if (i > 0) {
            const greeted = tab.count('session:history');
            assert.deepEqual(await tab.emit('model:change', { model: id }), { ok: true, when: 'now' });
            const [history] = await tab.event('session:history', greeted + 1);
            assert.deepEqual(roles(history.messages).slice(-1), ['model']);
            assert.equal(history.messages.at(-1).text, `Now: ${id}`);
          }
          assert.equal(tab.events.filter(([e]) => e === 'system:ready').at(-1)[1].model, id);
          fake.script.push({ thinking: `thought ${i}`, calls: [run(`echo result-${i}`)] }, { thinking: `more ${i}`, text: `answer-${i}` });
          await tab.say(`question-${i}`);
          const [text] = await tab.event('agent:response', i + 1);
          assert.equal(text, `answer-${i}`, JSON.stringify(tab.events.filter(([e]) => e === 'agent:error')));
          // Everything said so far went along, calls with their results.
          const asked = fake.requests.at(-1).bytes.toString();
          for (let j = 0; j <= i; j++) {
            assert.ok(asked.includes(`question-${j}`) && asked.includes(`result-${j}`), `${j} of ${i}: ${asked}`);
            if (j < i) assert.ok(asked.includes(`answer-${j}`), `${j} of ${i}: ${asked}`);
          }
        }
        for (const f of fakes) assert.deepEqual(f.problems, []);
        assert.equal(tab.count('agent:error'), 0);
        const { body } = await house.get(`/api/sessions/${tab.session}/history`);
        assert.equal(body.messages.filter((m) => m.role === 'user').length, stops.length);
        assert.equal(body.conversation, 1);

        // It is that model after a restart, too.
        tab.close();
        await house.kill();
        await house.up();
        const back = house.tab({ session: tab.session });
        const { ready, history } = await back.ready();
        assert.equal(ready.model, stops.at(-1)[0]);
        assert.deepEqual(history.messages.map((m) => m.seq), body.messages.map((m) => m.seq));
      } finally {
        await house.stop();
        for (const f of fakes.slice(1)) await f.close();
      }
    });
});

describe('one conversation', () => {
  let house;
  before(async () => {
    house = await House.start();
  });
  after(() => house.stop());

  test('another model while a call waits: from the end of the turn on', async () => {
    const tab = house.tab();
    await tab.ready();
    const other = house.tab({ session: tab.session });
    await other.ready();
    house.model.script.push({ calls: [run('echo one')] }, { text: 'done' }, { text: 'next' });
    await tab.say('go');
    const [card] = await tab.event('tool:approval_required');
    assert.deepEqual(await tab.emit('model:change', { model: 'claude-opus-5-5' }), { ok: true, when: 'turn' });
    assert.match((await other.event('system:message'))[0], /will be claude-opus-5-5 when this turn is over/);
    await tab.decide(card, true);
    await tab.event('agent:response');
    assert.equal(house.asked().model, 'claude-sonnet-5-5');
    for (const t of [tab, other]) assert.equal((await t.event('system:ready', 2))[0].model, 'claude-opus-5-5');
    await other.say('and now?');
    await tab.event('agent:response', 2);
    assert.equal(house.asked().model, 'claude-opus-5-5');
    assert.equal(house.asked().messages.length, 5);
  });

  test('what is no name of a model is refused, and nothing changes', async () => {
    const tab = house.tab();
    await tab.ready();
    for (const model of ['', 'x'.repeat(300), 7, null])
      assert.equal((await tab.emit('model:change', { model })).code, 'bad_request', String(model));
    assert.equal((await tab.emit('model:change', 7)).code, 'bad_request');
    house.model.script.push({ text: 'still here' });
    await tab.say('hello');
    await tab.event('agent:response');
    assert.equal(house.asked().model, 'claude-sonnet-5-5');
  });

  test('the model of the handshake, at the next opening: the conversation goes on', async () => {
    house.model.script.push({ text: 'one' }, { text: 'two' });
    const first = house.tab();
    await first.ready();
    await first.say('remember 42');
    await first.event('agent:response');
    first.close();
    const tab = house.tab({ session: first.session, model: 'claude-opus-5-5' });
    const { ready } = await tab.ready();
    assert.equal(ready.model, 'claude-opus-5-5');
    await tab.say('what?');
    await tab.event('agent:response');
    assert.equal(house.asked().messages.length, 3);
    const { body } = await house.get(`/api/sessions/${tab.session}/history`);
    assert.deepEqual(roles(body.messages), ['user', 'assistant', 'model', 'user', 'assistant']);
  });

  test('the box is ended: the call that waits is rejected, the conversation stays', async () => {
    const tab = house.tab();
    await tab.ready();
    const other = house.tab({ session: tab.session });
    await other.ready();
    house.model.script.push({ calls: [write('a.txt', 'x')] });
    await tab.say('keep this title');
    const [card] = await tab.event('tool:approval_required');
    assert.deepEqual(await tab.emit('session:close', { keep: true }), { ok: true });
    for (const t of [tab, other]) {
      const [how] = await t.event('tool:resolved');
      assert.deepEqual([how.callId, how.approved, how.by], [card.callId, false, 'cancel']);
      assert.equal((await t.event('session:closed'))[0].reason, 'closed');
      await t.event('(disconnect)');
    }
    const { status, body } = await house.get(`/api/sessions/${tab.session}`);
    assert.deepEqual([status, body.title, body.asleep, body.box], [200, 'keep this title', true, '']);

    // It goes on in a new box, and nothing waits.
    const back = house.tab({ session: tab.session });
    const { ready, history } = await back.ready();
    assert.equal(ready.workspace, 'kept');
    assert.deepEqual([history.pending, history.turn], [[], null]);
    assert.deepEqual(roles(history.messages), ['user', 'assistant', 'tool', 'assistant']);
    assert.equal(history.messages[2].results[0].state, 'rejected');
    house.model.script.push({ text: 'on we go' });
    await back.say('go on');
    assert.equal((await back.event('agent:response'))[0], 'on we go');
  });

  test('the box is ended while nothing happens', async () => {
    const tab = house.tab();
    await tab.ready();
    assert.deepEqual(await tab.emit('session:close', { keep: true }), { ok: true });
    const { body } = await house.get(`/api/sessions/${tab.session}`);
    assert.equal(body.asleep, true);
  });

  test('the list: by the last message, and opening one changes nothing', async () => {
    const at = async (id) => (await house.get(`/api/sessions/${id}`)).body.lastMessage;
    const tab = house.tab();
    await tab.ready();
    assert.equal(await at(tab.session), undefined);
    house.model.script.push({ text: 'one' }, { text: 'two' });
    await tab.say('first');
    await tab.event('agent:response');
    let first;
    await until(async () => {
      first = await at(tab.session);
      return first > 0;
    }, 'the time of the message');
    tab.close();
    const back = house.tab({ session: tab.session });
    await back.ready();
    assert.equal(await at(tab.session), first);
    await back.say('second');
    await back.event('agent:response');
    await until(async () => (await at(tab.session)) > first, 'a later time');
  });
});
