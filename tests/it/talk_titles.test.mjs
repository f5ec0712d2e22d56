// Titles that the model writes (llm.titles): asked for once, after the first
// answer, of the conversation's own provider. The fakes refuse what the real
// ones would, so a test that ends with no problems has broken none of their
// rules.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { gemini } from '../fakes/gemini.mjs';
import { compatible, openai } from '../fakes/openai.mjs';
import { until } from './server.mjs';
import { House, run } from './talk_kit.mjs';

const WISH = 'You write titles of conversations';
const key = 'sk-fake-0123456789';
const MESSAGE = 'please tell me what the weather in Paris will be';

/** How each is started, and how its requests are read. */
const PROVIDERS = [
  {
    name: 'claude', start: claude, model: 'claude-sonnet-5-5', most: (b) => b.max_tokens,
    env: (f) => ({ ANTHROPIC_API_KEY: f.key, ANTHROPIC_BASE_URL: f.url }),
  },
  {
    name: 'gemini', start: gemini, model: 'gemini-4-argon', most: (b) => b.generationConfig.maxOutputTokens,
    env: (f) => ({ GEMINI_API_KEY: f.key, GEMINI_BASE_URL: f.url }),
  },
  {
    name: 'openai', start: openai, model: 'gpt-6.1-sol', most: (b) => b.max_output_tokens,
    env: (f) => ({ OPENAI_API_KEY: f.key, OPENAI_BASE_URL: `${f.origin}/api.openai.com/v1` }),
  },
  {
    name: 'openai', title: 'Chat Completions', start: (o) => compatible({ ...o, key: '' }), model: 'qwen3:8b',
    most: (b) => b.max_tokens, env: (f) => ({ OPENAI_BASE_URL: f.url }),
  },
];

const isWish = (request) => JSON.stringify(request.body ?? '').includes(WISH);
const wishes = (house) => house.model.requests.filter(isWish);

/** title: the answer to the wish, as a step of the fake's script. */
async function start(p, { title = { text: '"Weather in Paris."\nAnd more' }, titles = 'model', config = {} } = {}) {
  const model = await p.start({ key });
  model.next = function next() {
    if (isWish(this.requests.at(-1))) return title;
    return this.script.shift() ?? { text: 'It will be sunny.' };
  };
  return House.start({
    model, env: p.env(model),
    config: { llm: { provider: p.name, model: p.model, titles, tools: 'all' },
      approvals: { rules: [{ tool: 'execute_command', action: 'allow' }] }, ...config },
  });
}

async function titleOf(house, tab) {
  const { body } = await house.get('/api/sessions');
  return body.sessions.find((s) => s.id === tab.session)?.title;
}
const rowsOf = async (house, tab) => (await house.audit(tab.session)).filter((w) => w.asked === 'title');

async function ask(house, text = MESSAGE) {
  const tab = house.tab();
  await tab.ready();
  await tab.say(text);
  await tab.event('agent:response');
  return tab;
}

/** The request is over: its second row is in the log. */
const over = (house, tab) => until(async () => (await rowsOf(house, tab)).length === 2, 'the end of the request for a title');

describe('a title of the model', () => {
  for (const p of PROVIDERS)
    test(p.title ?? p.name, async () => {
      const house = await start(p);
      try {
        house.model.script.push({ calls: [run('echo sunny')] }, { text: 'It will be sunny.' });
        const tab = await ask(house);
        await until(async () => (await titleOf(house, tab)) === 'Weather in Paris', 'the title');
        await until(() => tab.events.some(([e, a]) => e === 'session:about' && a.title === 'Weather in Paris'), 'members are told');
        await over(house, tab);

        const [{ body }, ...more] = wishes(house);
        assert.deepEqual(more, []);
        assert.equal(body.tools, undefined, 'no tools');
        assert.equal(p.most(body), 512);
        assert.match(JSON.stringify(body), /weather in Paris will be.*It will be sunny\./s);
        assert.doesNotMatch(JSON.stringify(body), /echo sunny/, 'nothing but the message and the answer');

        const [end, begin] = await rowsOf(house, tab);
        assert.deepEqual([begin.action, begin.by, begin.count], ['ask', 'model', 512]);
        assert.deepEqual([end.action, end.by], ['accept', 'model']);
        assert.ok(end.count > 0, 'its tokens');
        const { body: stats } = await house.get('/api/stats');
        assert.equal(stats.tokens.reduce((n, t) => n + t.replies, 0), 3, 'the turn has two replies, the title one');

        // The next answer asks for none.
        await tab.say('and tomorrow?');
        await tab.event('agent:response', 2);
        assert.equal(wishes(house).length, 1);
        assert.equal(house.model.requests.filter((r) => JSON.stringify(r.body ?? '').includes('Weather in Paris')).length, 0,
          'the title is not part of the conversation');
      } finally {
        await house.stop();
      }
    });
});

describe('the title of the rule stays', () => {
  const [p] = PROVIDERS;
  const RULE = MESSAGE;

  test('by default', async () => {
    const house = await start(p, { titles: 'rule' });
    try {
      const tab = await ask(house);
      assert.equal(await titleOf(house, tab), RULE);
      await tab.say('again');
      await tab.event('agent:response', 2);
      assert.equal(wishes(house).length, 0);
      assert.deepEqual(await rowsOf(house, tab), []);
    } finally {
      await house.stop();
    }
  });

  for (const [what, title] of [
    ['an error', { status: 400, body: { type: 'error', error: { type: 'invalid_request_error', message: 'no' } } }],
    ['an empty answer', { text: ' ' }],
    ['an answer that was cut', { text: 'Half a ti', stop: 'max_tokens' }],
    ['characters that cannot be seen', { text: 'Weather \u202e in Paris' }],
  ])
    test(what, async () => {
      const house = await start(p, { title });
      try {
        const tab = await ask(house);
        await over(house, tab);
        assert.equal(await titleOf(house, tab), RULE);
        assert.equal((await rowsOf(house, tab))[0].action, 'cancel');
        assert.equal(tab.count('agent:error'), 0, 'nobody is told');
        await tab.say('again');
        await tab.event('agent:response', 2);
        assert.equal(wishes(house).length, 1, 'it is not asked for again');
      } finally {
        await house.stop();
      }
    });

  test('a person has set one: before the answer, and while the model writes', async () => {
    let give;
    const house = await start(p, { title: { wait: new Promise((resolve) => { give = resolve; }), text: 'Too late' } });
    try {
      const name = (tab, title) => fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}`, {
        method: 'PATCH', body: JSON.stringify({ title }), headers: { 'content-type': 'application/json' } });
      const early = house.tab();
      await early.ready();
      assert.equal((await name(early, 'Mine')).status, 200);
      await early.say(MESSAGE);
      await early.event('agent:response');
      assert.equal(wishes(house).length, 0);

      const late = await ask(house);
      await until(() => wishes(house).length === 1, 'the request');
      assert.equal((await name(late, 'Mine too')).status, 200);
      give();
      await over(house, late);
      assert.equal(await titleOf(house, late), 'Mine too');
      assert.equal(await titleOf(house, early), 'Mine');
    } finally {
      give();
      await house.stop();
    }
  });

  test('SIGKILL while the model writes: no second request', async () => {
    const house = await start(p, { title: { fault: 'stall', text: 'Never' } });
    try {
      const tab = await ask(house);
      await until(() => wishes(house).length === 1, 'the request');
      for (let i = 0; i < 2; i++) {
        await house.kill();
        await house.up();
        const again = house.tab({ session: tab.session });
        await again.ready();
        await again.say('and tomorrow?');
        await again.event('agent:response');
      }
      assert.equal(wishes(house).length, 1);
      assert.equal(await titleOf(house, tab), RULE);
    } finally {
      await house.stop();
    }
  });

  test('the budget is used up: the model is not asked', async () => {
    const house = await start(p, { config: { budgets: { people: { operator: { tokensPerDay: 40_000, turns: 1 } } } } });
    try {
      const first = await ask(house); // there is room, and it is no second turn
      await until(async () => (await titleOf(house, first)) === 'Weather in Paris', 'the title');
      house.model.script.push({ text: 'Long.', usage: { input_tokens: 39_000, output_tokens: 900 } });
      const tab = await ask(house);
      await over(house, tab);
      assert.equal(wishes(house).length, 1, 'only the first');
      assert.equal(await titleOf(house, tab), RULE);
    } finally {
      await house.stop();
    }
  });
});
