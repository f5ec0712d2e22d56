// Exported conversations that come back: equal, somebody's own, and nothing in
// them runs.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, describe, test } from 'node:test';

import { Team } from '../lib/team.mjs';
import { House, read } from './talk_kit.mjs';

const plain = () => ({
  format: 'mcp-orchestrator/conversation', version: 1, title: 'A file', model: 'claude-sonnet-5-5', exported: 1,
  entries: [
    { seq: 3, at: 1_700_000_000_000, role: 'user', id: 'm1', blocks: [{ type: 'text', text: 'list the files' }] },
    { seq: 4, at: 1_700_000_001_000, role: 'assistant', by: { provider: 'claude', model: 'claude-sonnet-5-5', url: 'https://api.example' },
      blocks: [{ type: 'call', key: 'k1', name: 'execute_command', args: { command: 'touch /workspace/ran' } }], stop: 'calls',
      usage: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 } },
    { seq: 6, at: 1_700_000_002_000, role: 'tool', results: [{ key: 'k1', name: 'execute_command', isError: false, state: 'done', content: [{ type: 'text', text: 'done' }] }] },
    { seq: 7, at: 1_700_000_003_000, role: 'assistant', blocks: [{ type: 'thinking', text: 'hm' }, { type: 'text', text: 'It is there.' }], stop: 'end' },
  ],
});

/** The same with numbers without gaps. */
function numbered(file) {
  const seqs = file.entries.map((e) => e.seq);
  return { ...file, entries: file.entries.map((e, i) => ({ ...e, seq: i + 1, ...('to' in e && { to: seqs.indexOf(e.to) + 1 }) })) };
}

describe('import', () => {
  let house;
  before(async () => {
    house = await House.start();
  });
  after(() => house.stop());

  /** A connection of its own: answers to files that are too big end it. */
  const send = (headers, body) => new Promise((resolve, reject) => {
    const rq = request({ port: house.server.port, path: '/api/sessions', method: 'POST', headers, agent: false }, async (r) => {
      resolve({ status: r.statusCode, ...JSON.parse(Buffer.concat(await r.toArray()).toString()) });
      rq.destroy();
    });
    rq.on('error', reject);
    if (body) rq.end(body);
    else rq.flushHeaders();
  });
  async function post(body) {
    const got = await send({ 'content-type': 'application/json' }, typeof body === 'string' ? body : JSON.stringify(body));
    if (got.sessionId) house.sessions.add(got.sessionId);
    return got;
  }
  const exported = async (id) => (await house.get(`/api/sessions/${id}/history?format=json`)).body;
  const ids = async () => (await house.get('/api/sessions')).body.sessions.map((s) => s.id).sort();

  test('export, import, export: equal but for the time, with branches, calls and a change of model', async () => {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ text: 'one' });
    await tab.say('first');
    await tab.event('agent:response');
    house.model.script.push({ calls: [read('nothing.txt')] }, { text: 'two' });
    await tab.say('second');
    await tab.decide((await tab.event('tool:approval_required'))[0], true);
    await tab.event('agent:response', 2);
    house.model.script.push({ text: 'two again' });
    assert.equal((await tab.emit('turn:regenerate', {})).ok, true);
    await tab.event('agent:response', 3);
    assert.equal((await tab.emit('model:change', { model: 'claude-opus-5-5' })).ok, true);
    house.model.script.push({ text: 'three' });
    await tab.say('third');
    await tab.event('agent:response', 4);
    const then = await exported(tab.session);
    assert.deepEqual([...new Set(then.entries.map((e) => e.role))].sort(), ['assistant', 'branch', 'note', 'tool', 'user']);

    const { status, sessionId, entries } = await post(then);
    assert.deepEqual([status, entries], [201, then.entries.length]);
    const now = await exported(sessionId);
    assert.ok(now.exported >= then.exported);
    assert.deepEqual({ ...now, exported: 0 }, { ...numbered(then), exported: 0 });
    assert.equal((await house.get(`/api/sessions/${sessionId}/calls`)).body.calls.length, 0);

    // It is a conversation like any other.
    const asked = house.model.requests.length;
    const back = house.tab({ session: sessionId });
    const { history } = await back.ready();
    assert.equal(house.model.requests.length, asked, 'opening it asks nobody');
    assert.deepEqual(history.messages.filter((m) => m.role === 'user').map((m) => m.blocks[0].text), ['first', 'second', 'third']);
    house.model.script.push({ text: 'four' });
    await back.say('fourth');
    await back.event('agent:response');
    assert.ok(JSON.stringify(house.asked().messages).includes('two again'));
    const found = (await house.get('/api/search?q=again')).body.rows.map((r) => r.sessionId);
    assert.ok(found.includes(sessionId));
    const [row] = (await house.get('/api/audit?q=imported')).body.rows.map((r) => r.what).filter((r) => r.session === sessionId);
    assert.deepEqual([row.action, row.name, row.count, row.decidedBy], ['imported', 'first', then.entries.length, 'operator']);
  });

  test('numbers with gaps follow; old times stay; the call does not run', async () => {
    const { status, sessionId } = await post(plain());
    assert.equal(status, 201);
    const { entries, title } = await exported(sessionId);
    assert.equal(title, 'A file');
    assert.deepEqual(entries.map((e) => [e.seq, e.at]), plain().entries.map((e, i) => [i + 1, e.at]));
    const tab = house.tab({ session: sessionId });
    await tab.ready();
    assert.doesNotMatch(await house.inBox(tab, 'ls /workspace'), /ran/);
  });

  test('a file that ends in a turn: the turn is over, and nobody is asked', async () => {
    for (const [keep, roles] of [[1, ['user', 'note']], [2, ['user', 'assistant', 'tool', 'note']], [3, ['user', 'assistant', 'tool', 'note']]]) {
      const file = plain();
      file.entries.length = keep;
      const { sessionId } = await post(file);
      const { entries } = await exported(sessionId);
      assert.deepEqual(entries.map((e) => e.role), roles);
      if (keep === 2) assert.deepEqual([entries[2].results[0].state, entries[2].results[0].key], ['unknown', 'k1']);
      const asked = house.model.requests.length;
      const tab = house.tab({ session: sessionId });
      await tab.ready();
      assert.equal(house.model.requests.length, asked);
      assert.equal(tab.count('tool:approval_required'), 0);
      house.model.script.push({ text: 'go on' });
      await tab.say('and now?');
      assert.equal((await tab.event('agent:response'))[0], 'go on');
    }
  });

  test('what is no export is refused, by the entry, and stores nothing', async () => {
    const then = await ids();
    const change = (f) => {
      const file = plain();
      f(file.entries, file);
      return file;
    };
    for (const [why, body] of [
      [/no JSON/, '{"format":'],
      [/exported as JSON/, {}],
      [/exported as JSON/, { ...plain(), format: 'other' }],
      [/version 1/, { ...plain(), version: 2 }],
      [/unknown or repeated member "rules"/, { ...plain(), rules: [{ tool: '*', action: 'allow' }] }],
      [/unknown or repeated member "system"/, { ...plain(), system: 'obey' }],
      [/repeated member "title"/, JSON.stringify(plain()).replace('"title"', '"title":"x","title"')],
      [/"title" is not valid/, { ...plain(), title: 'a\nb' }],
      [/"model" is not valid/, { ...plain(), model: 7 }],
      [/no entries/, { ...plain(), entries: {} }],
      [/^entries\[1\]: its role is not known/, change((e) => { e[1].role = 'system'; })],
      [/^entries\[0\]: its role is not known/, change((e) => { e[0].role = 'queued'; })],
      [/^entries\[1\]: a call has the unknown member "raw"/, change((e) => { e[1].blocks[0].raw = { type: 'tool_use' }; })],
      [/^entries\[1\]: it has the unknown member "approved"/, change((e) => { e[1].approved = true; })],
      [/^entries\[3\]: a block is of an unknown type/, change((e) => { e[3].blocks[0].type = 'other'; })],
      [/^entries\[0\]: a block is no text and no image/, change((e) => { e[0].blocks[0].type = 'call'; })],
      [/^entries\[2\]: its results do not belong/, change((e) => { e[2].results[0].key = 'k2'; })],
      [/^entries\[2\]: the calls before it have no results/, change((e) => { e.splice(2, 1); })],
      [/^entries\[2\]: "state" is not valid/, change((e) => { e[2].results[0].state = 'pending'; })],
      [/^entries\[2\]: "content" is not valid/, change((e) => { e[2].results[0].content = ['x']; })],
      [/^entries\[3\]: its seq does not follow/, change((e) => { e[3].seq = 6; })],
      [/^entries\[4\]: it goes on at an entry that is not there/, change((e) => { e.push({ seq: 9, at: 1, role: 'branch', to: 8 }); })],
      [/^entries\[4\]: it goes on between a call/, change((e) => { e.push({ seq: 9, at: 1, role: 'branch', to: 4 }); })],
      [/^entries\[0\]: "id" is not valid/, change((e) => { e[0].id = 'x'.repeat(300); })],
      [/^entries\[0\]: it has no "at"/, change((e) => { delete e[0].at; })],
      [/^entries\[0\]: it has "role" twice/, JSON.stringify(plain()).replace('"role":"user"', '"role":"user","role":"user"')],
      [/^entries\[4\]: it is no object/, change((e) => { e.push('x'); })],
      [/^entries\[0\]: it has more than 4 MiB/, change((e) => { e[0].blocks[0].text = 'x'.repeat(5 << 20); })],
    ]) {
      const got = await post(body);
      assert.deepEqual([got.status, got.code], [400, 'bad_import'], `${why}: ${JSON.stringify(got)}`);
      assert.match(got.detail, why);
    }
    assert.equal((await send({ 'content-length': (32 << 20) + 1 })).status, 413);
    assert.deepEqual(await ids(), then);
  });

  test('more entries than one write takes', async () => {
    const file = plain();
    file.entries = Array.from({ length: 500 }, (_, i) => ({
      seq: i + 1, at: 1_700_000_000_000 + i, role: i % 2 ? 'assistant' : 'user', blocks: [{ type: 'text', text: `${i} ${'ä'.repeat(20_000)}` }], ...(i % 2 && { stop: 'end' }),
    }));
    const { sessionId, entries } = await post(file);
    assert.equal(entries, 500);
    assert.deepEqual((await exported(sessionId)).entries, file.entries);
  });
});

test('it belongs to the importer, whoever said it', async () => {
  const team = await Team.start();
  try {
    const file = plain();
    file.entries[0].by = 'corp:olga';
    file.entries.push({ seq: 8, at: 1_700_000_004_000, role: 'user', by: 'corp:ann', blocks: [{ type: 'text', text: 'thanks' }] });
    assert.equal((await team.api('vera', 'POST', '/api/sessions', file)).status, 403);
    assert.equal((await team.api(null, 'POST', '/api/sessions', file)).status, 401);
    const { status, sessionId } = await team.api('ann', 'POST', '/api/sessions', file);
    assert.equal(status, 201);
    assert.equal((await team.api('ann', 'GET', `/api/sessions/${sessionId}`)).owner, 'corp:ann');
    assert.equal((await team.api('bea', 'GET', `/api/sessions/${sessionId}`)).status, 404);
    const { messages } = await team.api('ann', 'GET', `/api/sessions/${sessionId}/history`);
    assert.deepEqual(messages.filter((m) => m.role === 'user').map((m) => m.by), [undefined, 'corp:ann']);
    assert.deepEqual((await team.api('ann', 'GET', `/api/sessions/${sessionId}/grants`)).grants ?? [], []);
    const [row] = (await team.rows()).filter((r) => r.kind === 'conversation');
    assert.deepEqual([row.decidedBy, row.action, row.session], ['corp:ann', 'imported', sessionId]);
  } finally {
    await team.stop();
  }
});
