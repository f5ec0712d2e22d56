// A server asks for an answer of the model in the middle of a call: the person
// approves the request and then the answer. The published server-everything.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { after, before, test } from 'node:test';

import { House } from './talk_kit.mjs';

const TOOL = 'trigger-sampling-request';
const everything = {
  command: process.execPath,
  args: [fileURLToPath(new URL('../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url))],
};

let house;
before(async () => {
  house = await House.start({ config: {
    llm: { provider: 'claude', model: 'claude-sonnet-5-5', tools: 'all', maxOutputTokens: 50 },
    mcpServers: { everything },
    approvals: { rules: [{ server: 'everything', action: 'allow' }] },
  } });
  assert.equal((await fetch(`http://127.0.0.1:${house.server.port}/api/servers/everything/test`, { method: 'POST' })).status, 200);
});
after(async () => {
  house.server.fresh.fds += 16; // the server stays open for the next
  house.server.fresh.children += 3;
  await house.stop();
});

/** The model calls the tool; the request that follows. */
async function begin(script, maxTokens = 1000) {
  const tab = house.tab();
  const { ready } = await tab.ready();
  const { name } = ready.tools.find((t) => t.name.endsWith(TOOL));
  house.model.script.push({ calls: [{ name, args: { prompt: 'Name a colour.', maxTokens } }] }, ...script, { text: 'the end' });
  await tab.say('go');
  const [card] = await tab.event('sampling:required');
  return { tab, card };
}
const decide = (tab, card, action, content) => tab.emit('elicitation:response', { requestId: card.requestId, action, ...(content && { content }) });
const rowsOf = async (tab) => (await house.audit(tab.session)).filter((w) => /"sampling( result)?"/.test(JSON.stringify(w)))
  .map((w) => `${Object.values(w).find((v) => /^sampling/.test(v))}: ${w.action}`);

test('approved, answered, reviewed, returned; nothing else goes to the model', async () => {
  const { tab, card } = await begin([{ text: 'Blue.' }]);
  assert.equal(card.server, 'everything');
  assert.equal(card.state, 'asked');
  assert.equal(card.systemPrompt, 'You are a helpful test server.');
  assert.deepEqual(card.messages, [{ role: 'user', content: { type: 'text', text: `Resource ${TOOL} context: Name a colour.` } }]);
  assert.equal(card.maxTokens, 50, 'no more than the longest answer of ours');
  assert.match(card.model, /sonnet/);
  const before = house.model.requests.length;
  const late = house.tab({ session: tab.session });
  assert.deepEqual((await late.event('sampling:required'))[0], card, 'also for one who joins');
  assert.equal(house.model.requests.length, before, 'the model is not asked yet');

  assert.deepEqual(await decide(tab, card, 'accept'), { ok: true });
  const [running] = await tab.event('sampling:required', 2);
  assert.equal(running.state, 'running');
  const [review] = await tab.event('sampling:required', 3);
  assert.deepEqual([review.state, review.text], ['review', 'Blue.']);
  const asked = house.asked();
  assert.deepEqual(asked.messages.map((m) => [m.role, m.content.map((b) => b.text).join()]), [['user', `Resource ${TOOL} context: Name a colour.`]]);
  assert.match(JSON.stringify(asked.system), /helpful test server/);
  assert.equal(asked.max_tokens, 50);
  assert.equal(asked.tools, undefined);
  assert.equal(tab.count('tool:output'), 0, 'the server waits');

  assert.deepEqual(await decide(late, review, 'accept'), { ok: true });
  await tab.event('agent:response');
  assert.match(house.results()[0].text, /Blue\./);
  assert.deepEqual((await tab.event('elicitation:resolved'))[0].action, 'accept');
  assert.equal((await decide(tab, card, 'accept')).code, 'unknown_request');
  assert.deepEqual(await rowsOf(tab), ['sampling result: accept', 'sampling: accept'], 'a row for each decision');
});

test('changed by the person: the model gets that, and the log has what was sent', async () => {
  const { tab, card } = await begin([{ text: 'Red.' }]);
  const before = house.model.requests.length;
  for (const [wrong, why] of [
    [{ texts: [] }, /one text for each/], [{ texts: [' '] }, /must not be empty/], [{ texts: ['a', 'b'] }, /one text for each/],
    [{ maxTokens: 51 }, /1 to 50/], [{ systemPrompt: 7 }, /is a text/], [{ messages: [] }, /systemPrompt\?, texts\?, maxTokens\?/],
  ]) {
    const { ok, code, message } = await decide(tab, card, 'accept', wrong);
    assert.deepEqual([ok, code], [false, 'bad_request'], JSON.stringify(wrong));
    assert.match(message, why);
  }
  assert.equal(house.model.requests.length, before, 'nothing was sent');
  assert.deepEqual(await decide(tab, card, 'accept', { systemPrompt: 'Be brief.', texts: ['Name a warm colour.'], maxTokens: 12 }), { ok: true });
  const [review] = await tab.event('sampling:required', 3);
  assert.deepEqual([review.state, review.edited, review.systemPrompt, review.maxTokens], ['review', true, 'Be brief.', 12]);
  assert.deepEqual(review.messages, [{ role: 'user', content: { type: 'text', text: 'Name a warm colour.' } }]);
  const asked = house.asked();
  assert.deepEqual(asked.messages.map((m) => m.content.map((b) => b.text).join()), ['Name a warm colour.']);
  assert.match(JSON.stringify(asked.system), /Be brief\./);
  assert.doesNotMatch(JSON.stringify(asked), /helpful test server/);
  assert.equal(asked.max_tokens, 12);
  await decide(tab, review, 'accept');
  await tab.event('agent:response');
  const row = (await house.audit(tab.session)).find((w) => w.asked === 'sampling');
  assert.deepEqual([row.action, row.count, row.args.systemPrompt, row.args.messages[0].content.text, row.args.maxTokens],
    ['accept', 12, 'Be brief.', 'Name a warm colour.', 12]);
  const text = (o) => createHash('sha256').update(JSON.stringify(o)).digest('hex');
  assert.equal(row.argsDigest, text(row.args));
  assert.equal(row.argsDigestBefore, text({ messages: card.messages, systemPrompt: card.systemPrompt, maxTokens: 50 }),
    'and what the server had asked for');
});

test('approved as it is: the log has the digest of it', async () => {
  const { tab, card } = await begin([{ text: 'Red.' }]);
  await decide(tab, card, 'accept', {});
  const [review] = await tab.event('sampling:required', 3);
  assert.equal(review.edited, undefined);
  await decide(tab, review, 'accept');
  await tab.event('agent:response');
  const row = (await house.audit(tab.session)).find((w) => w.asked === 'sampling');
  assert.equal(row.args.systemPrompt, 'You are a helpful test server.');
  assert.equal(row.argsDigestBefore, undefined);
});

test('rejected: the model is not asked', async () => {
  const { tab, card } = await begin([]);
  const before = house.model.requests.length;
  assert.deepEqual(await decide(tab, card, 'decline'), { ok: true });
  await tab.event('agent:response');
  assert.equal(house.model.requests.length, before + 1, 'only with the result of the call');
  assert.match(house.results()[0].text, /rejected/);
});

test('kept back: the server does not get the answer', async () => {
  const { tab, card } = await begin([{ text: 'A secret.' }], 20);
  assert.equal(card.maxTokens, 20);
  await decide(tab, card, 'accept');
  const [review] = await tab.event('sampling:required', 3);
  assert.equal(review.text, 'A secret.');
  await decide(tab, review, 'decline');
  await tab.event('agent:response');
  assert.doesNotMatch(house.results()[0].text, /secret/);
});

test('the provider fails, and the turn is stopped meanwhile', async () => {
  const one = await begin([{ status: 400, body: { type: 'error', error: { type: 'invalid_request_error', message: 'no' } } }]);
  await decide(one.tab, one.card, 'accept');
  await one.tab.event('agent:response');
  assert.equal(house.results()[0].error, true);

  const two = await begin([]);
  house.model.script.length = 0;
  await two.tab.emit('agent:cancel');
  await two.tab.event('agent:response');
  assert.equal((await two.tab.event('elicitation:resolved'))[0].by, 'cancel');
});
