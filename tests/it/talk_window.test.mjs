// A conversation that outgrows what its model may be sent: older turns give
// way to a summary, on the border of a turn, as each provider takes it. The
// fakes refuse what the real ones would (thinking behind another beginning,
// reasoning without its follower, a lost signature, half a call), so a test
// that ends with no problems has broken none of their rules.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { gemini } from '../fakes/gemini.mjs';
import { compatible, openai } from '../fakes/openai.mjs';
import { within } from './server.mjs';
import { House, run } from './talk_kit.mjs';

const WISH = 'Write a summary of this conversation';
const key = 'sk-fake-0123456789';

/** How each is started, and how its requests are read. */
const PROVIDERS = [
  {
    name: 'claude', start: claude, model: 'claude-opus-5-5', thinks: /"type":"thinking"/,
    env: (f) => ({ ANTHROPIC_API_KEY: f.key, ANTHROPIC_BASE_URL: f.url }),
    list: (b) => b.messages, quiet: (b) => b.tool_choice?.type === 'none',
  },
  {
    name: 'gemini', start: gemini, model: 'gemini-4-argon', thinks: /"thoughtSignature"/,
    env: (f) => ({ GEMINI_API_KEY: f.key, GEMINI_BASE_URL: f.url }),
    list: (b) => b.contents, quiet: (b) => b.toolConfig?.functionCallingConfig?.mode === 'NONE',
  },
  {
    name: 'openai', start: openai, model: 'gpt-6.1-sol', thinks: /"encrypted_content"/,
    env: (f) => ({ OPENAI_API_KEY: f.key, OPENAI_BASE_URL: `${f.origin}/api.openai.com/v1` }),
    list: (b) => b.input, quiet: (b) => b.tool_choice === 'none',
  },
  {
    name: 'openai', title: 'Chat Completions', start: (o) => compatible({ ...o, key: '' }), model: 'qwen3:8b',
    env: (f) => ({ OPENAI_BASE_URL: f.url }),
    list: (b) => b.messages.filter((m) => m.role !== 'system'), quiet: (b) => b.tool_choice === 'none',
  },
];

const isWish = (request) => JSON.stringify(request.body).includes(WISH);

async function start(p, { tokens = 2500, options = {}, summary, oneProcess } = {}) {
  const model = await p.start({ key, ...options });
  let summaries = 0;
  model.next = function next() {
    if (isWish(this.requests.at(-1))) return summary ?? { text: `SUMMARY-${++summaries}-END` };
    return this.script.shift() ?? { text: 'ok' };
  };
  const house = await House.start({
    oneProcess,
    // Leaks are looked for in it/talk; here it would take most of the time.
    model, env: { ...p.env(model), ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
    config: {
      llm: { provider: p.name, model: p.model, maxHistoryTokens: tokens },
      approvals: { rules: [{ tool: 'execute_command', action: 'allow' }] },
    },
  });
  return house;
}

/** A turn with a thought, a call and an answer. */
async function turn(house, tab, i) {
  const answers = tab.count('agent:response');
  house.model.script.push(
    { thinking: `thought ${i}`, calls: [run(`echo result-${i}`)] },
    { thinking: `afterthought ${i}`, text: `answer-${i} ${'a'.repeat(300)}` });
  assert.equal((await tab.say(`question-${i} ${'q'.repeat(1200)}`)).ok, true);
  const [text] = await tab.event('agent:response', answers + 1);
  assert.match(text, new RegExp(`^answer-${i} `), JSON.stringify(tab.events.filter(([e]) => e === 'agent:error')));
}

describe('crossing the window', () => {
  for (const p of PROVIDERS)
    test(p.title ?? p.name, async () => {
      const house = await start(p);
      try {
        const tab = house.tab();
        await tab.ready();
        for (let i = 1; i <= 12; i++) await turn(house, tab, i);
        assert.deepEqual(house.model.problems, []);
        assert.equal(tab.count('agent:error'), 0);

        // Everybody was told, and it stands in the history.
        const told = tab.events.filter(([e]) => e === 'history:compacted').map(([, ...a]) => a);
        assert.ok(told.length >= 2, `${told.length} times`);
        assert.match(told[0][0], /no longer sent/);
        assert.ok(told[0][1].turns >= 1 && told[0][1].made === 'model', JSON.stringify(told[0]));
        const { body } = await house.get(`/api/sessions/${tab.session}/history`);
        const marks = body.messages.filter((m) => m.role === 'summary');
        assert.deepEqual(marks.map((m) => m.until), told.map(([, t]) => t.until));
        assert.deepEqual(marks.map((m) => m.blocks[0].text), marks.map((_, i) => `SUMMARY-${i + 1}-END`));
        assert.ok(marks.every((m) => body.messages.find((e) => e.seq === m.until + 1).role === 'user'), 'on a border of turns');
        assert.equal(body.messages.filter((m) => m.role === 'user').length, 12, 'nothing is lost from the history');

        // The wish is the request as it was, and one question; no tool is used.
        const requests = house.model.requests.filter((r) => /messages|generate|GenerateContent|responses|completions/.test(r.path));
        const at = requests.findIndex(isWish);
        const [before, wish, after] = requests.slice(at - 1, at + 2).map((r) => r.body);
        assert.ok(p.quiet(wish));
        assert.deepEqual(wish.tools, before.tools);
        const bare = (v) => JSON.stringify(v).replace(/,"cache_control":\{[^}]*\}/g, '');
        const shown = p.list(wish).slice(0, -1);
        assert.equal(bare(shown), bare(p.list(before).slice(0, shown.length)), 'the same beginning');

        // Then the summary stands first, and what it is about is gone.
        const [first] = p.list(after);
        assert.match(JSON.stringify(first), /not shown any more.*made by the model.*SUMMARY-1-END/);
        assert.doesNotMatch(JSON.stringify(p.list(after)), /question-1 |answer-1 |result-1\\n/);
        const last = requests.at(-1);
        assert.match(JSON.stringify(last.body), /question-12 /);
        if (p.thinks) assert.match(JSON.stringify(last.body), p.thinks, 'what it thinks still goes back');
        const sizes = requests.filter((r) => !isWish(r)).map((r) => JSON.stringify(p.list(r.body)).length);
        assert.ok(Math.max(...sizes) < 2500 * 4 * 1.5, `${Math.max(...sizes)} bytes`);
      } finally {
        await house.stop();
      }
    });
});

describe('the provider counts otherwise than we do', () => {
  for (const p of PROVIDERS)
    test(`${p.title ?? p.name}: refused as too long, the turn goes on`, async () => {
      const house = await start(p, { tokens: 1_000_000, options: { window: 6500 } });
      try {
        const tab = house.tab();
        await tab.ready();
        for (let i = 1; i <= 12; i++) await turn(house, tab, i);
        assert.ok(house.model.long >= 1, 'it was refused');
        assert.deepEqual(house.model.problems, []);
        const [, what] = await tab.event('history:compacted');
        assert.equal(what.made, 'program', 'who is refused cannot be asked for a summary');
        const text = JSON.stringify(p.list(house.model.requests.at(-1).body)[0]);
        assert.match(text, /made by the program.*Person: question-1 q+.*Assistant: answer-1 /);
      } finally {
        await house.stop();
      }
    });

  test('one turn alone is too long: said, and the next one works', async () => {
    const [p] = PROVIDERS;
    const house = await start(p, { tokens: 1_000_000, options: { window: 6500 } });
    try {
      const tab = house.tab();
      await tab.ready();
      await tab.say('x'.repeat(40_000));
      const [why, { code }] = await tab.event('agent:error');
      assert.equal(code, 'too_long');
      assert.match(why, /long/);
      await turn(house, tab, 1);
      assert.equal(tab.count('history:compacted'), 1);
    } finally {
      await house.stop();
    }
  });
});

describe('no summary to be had', () => {
  for (const [what, summary] of [
    ['an error', { status: 400, body: { type: 'error', error: { type: 'invalid_request_error', message: 'no' } } }],
    ['a call instead', { calls: [run('touch /workspace/called')] }],
    ['silence', { text: ' ' }],
  ])
    test(`${what}: the program writes one`, async () => {
      const [p] = PROVIDERS;
      const house = await start(p, { summary });
      try {
        const tab = house.tab();
        await tab.ready();
        for (let i = 1; i <= 8; i++) await turn(house, tab, i);
        const [, { made, turns }] = await tab.event('history:compacted');
        assert.equal(made, 'program');
        assert.ok(turns >= 1);
        assert.equal(tab.count('agent:error'), 0);
        assert.equal(tab.count('tool:output'), 8, 'what it wanted to call was not');
        const { messages } = house.asked();
        assert.match(JSON.stringify(messages[0]), /Person: question-1 q+\.\.\.\\nAssistant: answer-1 a+/);
      } finally {
        await house.stop();
      }
    });

  test('stopped while it is made: the turn ends, the history is as it was', async () => {
    const [p] = PROVIDERS;
    const house = await start(p, { summary: { text: 'never whole', fault: 'stall' } });
    try {
      const tab = house.tab();
      await tab.ready();
      let i = 1;
      for (; !house.model.requests.some(isWish); i++) {
        assert.ok(i < 20);
        house.model.script.push({ thinking: 't', text: 'a'.repeat(1500) });
        const answers = tab.count('agent:response');
        await tab.say(`question-${i}`);
        await Promise.race([tab.event('agent:response', answers + 1), wished(house)]);
      }
      assert.equal((await tab.emit('agent:cancel')).ok, true);
      const [, { stopReason }] = await tab.event('agent:response', i - 1);
      assert.equal(stopReason, 'canceled');
      assert.equal(tab.count('history:compacted'), 0);
    } finally {
      await house.stop();
    }
  });
});

function wished(house) {
  return within(new Promise((resolve) => {
    const timer = setInterval(() => {
      if (!house.model.requests.some(isWish)) return;
      clearInterval(timer);
      resolve();
    }, 10);
  }), 'a wish for a summary', 30_000).catch(() => {});
}

test('the window the list of models tells is kept', async () => {
  const [p] = PROVIDERS;
  const house = await start(p, { tokens: 1_000_000, options: { told: 9000, window: 9000 },
    oneProcess: 'each process knows the lists of models that it has read' });
  try {
    await house.get('/api/models/available'); // as a page does
    const tab = house.tab();
    await tab.ready();
    for (let i = 1; i <= 14; i++) await turn(house, tab, i);
    assert.equal(house.model.long ?? 0, 0, 'nothing was refused');
    assert.ok(tab.count('history:compacted') >= 1);
  } finally {
    await house.stop();
  }
});

test('a restart, and our death right after the summary was kept', async () => {
  const [p] = PROVIDERS;
  const house = await start(p);
  try {
    let tab = house.tab();
    await tab.ready();
    for (let i = 1; i <= 12; i++) await turn(house, tab, i);
    const marks = tab.count('history:compacted');
    assert.ok(marks >= 1);
    await house.kill();
    await house.up();
    tab = house.tab({ session: tab.session });
    const { history } = await tab.ready();
    assert.equal(history.messages.filter((m) => m.role === 'summary').length, marks);
    await turn(house, tab, 13);
    const { messages } = house.asked();
    assert.match(JSON.stringify(messages[0]), new RegExp(`SUMMARY-${marks}-END`));
    assert.match(JSON.stringify(messages), /"type":"thinking"/);
    await house.kill();

    // Asked once for each plain turn, and once more behind a summary.
    await house.up(['--test-crash', 'asking:2']);
    tab = house.tab({ session: tab.session });
    await tab.ready();
    house.model.script.push({ text: 'never heard' });
    tab.socket.emit('message', `last-question ${'q'.repeat(9000)}`);
    await within(house.server.exit, 'its death', 30_000);
    assert.equal(house.server.ended.signal, 'SIGKILL');
    house.model.script.length = 0;
    house.model.script.push({ text: 'heard at last' });
    await house.up();
    tab = house.tab({ session: tab.session });
    const back = await tab.ready();
    assert.equal(back.history.messages.at(-1).role, 'summary');
    assert.equal((await tab.event('agent:response'))[0], 'heard at last');
    assert.match(JSON.stringify(house.asked().messages.at(-1)), /last-question/);
    assert.deepEqual(house.model.problems, []);
  } finally {
    await house.stop();
  }
});

test('the demo has no words of its own: the program has', async () => {
  const house = await House.start({
    config: { llm: { provider: 'demo', maxHistoryTokens: 200 }, approvals: { rules: [{ tool: '*', action: 'allow' }] } },
  });
  try {
    const tab = house.tab();
    await tab.ready();
    for (let i = 1; i <= 3; i++) {
      await tab.say('write hello to a.txt, then show it');
      assert.match((await tab.event('agent:response', i, 60_000))[0], /hello/);
    }
    const [, { made }] = await tab.event('history:compacted');
    assert.equal(made, 'program');
  } finally {
    await house.stop();
  }
});
