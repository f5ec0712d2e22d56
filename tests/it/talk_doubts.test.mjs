// Messages and decisions of which nobody knows whether they are stored. Redis has
// them here, but its replica does not answer in time, so their senders are told a
// failure.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, before, beforeEach, describe, test } from 'node:test';

import { freePort } from '../lib/port.mjs';
import { missing, redis, until as waitFor } from '../lib/redis.mjs';
import { until } from './server.mjs';
import { House, run } from './talk_kit.mjs';

describe('a message that may be stored', { skip: missing }, () => {
  let master, replica, house, a, b;

  const connected = () => { // and it has all that the master has
    const info = master.cli('INFO', 'replication');
    return info.includes(`state=online,offset=${/master_repl_offset:(\d+)/.exec(info)?.[1]},`);
  };
  before(async () => {
    master = await redis();
    replica = await redis({ port: await freePort(), args: ['--replicaof', '127.0.0.1', String(master.port)] });
    await waitFor('the replica follows', connected);
    house = await House.start({ config: { store: { url: `redis://127.0.0.1:${master.port}`, replicas: 1 } } });
  });
  after(async () => {
    replica?.child.kill('SIGCONT');
    await house?.stop();
    await replica?.stop();
    await master?.stop();
  });
  beforeEach(async () => {
    do { // a replica that is late by half a second costs the answer
      a = house.tab();
      await a.ready();
      b = house.tab({ session: a.session });
      await b.ready();
      await say(a, 'first');
      await until(() => a.count('agent:response') + a.count('agent:error'), 'an answer');
    } while (!a.count('agent:response'));
  });

  /** Says it while the replica sleeps: refused, and stored. */
  async function inDoubt(tab, text) {
    replica.child.kill('SIGSTOP');
    const said = await tab.say(text);
    assert.equal(said.code, 'state_unavailable');
    replica.child.kill('SIGCONT');
    await waitFor('the replica follows', connected);
  }

  /** Says it until it is taken: the first write after a loss waits for its replica
   *  a millisecond only. */
  const say = (tab, text) => until(async () => {
    const said = await tab.say(text);
    assert.ok(said.ok || said.code === 'state_unavailable', JSON.stringify(said));
    return said.ok;
  }, text);

  const texts = async () => (await house.get(`/api/sessions/${a.session}/history`)).body.messages.map((m) => m.blocks[0].text);

  test('is said once if its sender says it again', async () => {
    await inDoubt(a, 'second');
    house.model.script.push({ text: 'to the second' });
    await say(a, 'second');
    await until(async () => (await texts()).at(-1) === 'to the second', 'the answer');
    assert.deepEqual(await texts(), ['first', 'ok', 'second', 'to the second']);
  });

  test('is answered before another one, and known when it is said again', async () => {
    await inDoubt(b, 'second');
    house.model.script.push({ text: 'to the second' }, { text: 'to the third' });
    await say(a, 'third');
    await until(async () => (await texts()).at(-1) === 'to the third', 'both answers');
    assert.deepEqual(await texts(), ['first', 'ok', 'second', 'to the second', 'third', 'to the third']);
    await say(b, 'second');
    assert.equal((await texts()).length, 6);
    house.model.script.push({ text: 'to the same words' });
    await say(b, 'second'); // a message of its own
    await until(async () => (await texts()).at(-1) === 'to the same words', 'its answer');
    assert.equal((await texts()).length, 8);
  });

  test('is known when it is said again while the store is asked', async () => {
    await inDoubt(b, 'second');
    house.model.script.push({ text: 'one' }, { text: 'two' });
    await Promise.all([say(a, 'third'), say(b, 'second')]);
    await until(async () => (await texts()).length === 6, 'both answers');
    assert.deepEqual(await texts(), ['first', 'ok', 'second', 'one', 'third', 'two']);
  });

  test('is known to the process that takes the conversation over', async () => {
    replica.child.kill('SIGSTOP');
    assert.equal((await a.say('second')).code, 'state_unavailable');
    await house.kill();
    replica.child.kill('SIGCONT');
    await waitFor('the replica follows', connected);
    house.model.script.push({ text: 'to the second' });
    await house.up();
    a = house.tab({ session: a.session });
    const said = a.say('second'); // while the history is read
    await a.ready();
    assert.equal((await said).ok, true);
    await until(async () => (await texts()).at(-1) === 'to the second', 'the answer');
    assert.deepEqual(await texts(), ['first', 'ok', 'second', 'to the second']);
  });

  /** It waits behind a turn, and is stored as such. */
  for (const [when, wait] of [['while the history is read', () => {}], ['after its answer', (last) => until(last, 'its answer')]])
    test(`in line, is known to the process that takes the conversation over, ${when}`, async () => {
      let go;
      house.model.script.push({ wait: new Promise((done) => (go = done)), text: 'never heard of' });
      await say(a, 'second');
      replica.child.kill('SIGSTOP');
      assert.equal((await b.say('third')).code, 'state_unavailable');
      await house.kill();
      go();
      replica.child.kill('SIGCONT');
      await waitFor('the replica follows', connected);
      house.model.script.length = 0;
      house.model.script.push({ text: 'to the second' }, { text: 'to the third' });
      await house.up();
      b = house.tab({ session: a.session });
      if (when === 'after its answer') await b.ready();
      await wait(async () => (await texts()).at(-1) === 'to the third');
      await say(b, 'third');
      await until(async () => (await texts()).at(-1) === 'to the third', 'both answers');
      assert.deepEqual(await texts(), ['first', 'ok', 'second', 'to the second', 'third', 'to the third']);
      house.model.script.push({ text: 'to the same words' });
      await say(b, 'third'); // a message of its own
      await until(async () => (await texts()).at(-1) === 'to the same words', 'its answer');
    });

  test('is forgotten if it is not there', async () => {
    replica.child.kill('SIGSTOP');
    const said = await b.say('second');
    assert.equal(said.code, 'state_unavailable');
    const list = master.cli('KEYS', `mcp:conversation:*${a.session}*:1`);
    assert.match(list, /^mcp:conversation:\S+$/);
    assert.match(master.cli('RPOP', list), /second/); // as a fail-over loses it
    replica.child.kill('SIGCONT');
    await waitFor('the replica follows', connected);
    house.model.script.push({ text: 'to the third' });
    await say(a, 'third');
    await until(async () => (await texts()).at(-1) === 'to the third', 'the answer');
    assert.deepEqual(await texts(), ['first', 'ok', 'third', 'to the third']);
  });
});

// Its results do not say whether they are errors.
const PLAIN = `
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (method === 'initialize')
    send({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'plain', version: '1' } } });
  else if (method === 'tools/list')
    send({ id, result: { tools: [{ name: 'say', inputSchema: { type: 'object' } }] } });
  else if (method === 'tools/call') send({ id, result: { content: [{ type: 'text', text: 'said' }] } });
  else if (id !== undefined) send({ id, error: { code: -32601, message: 'no' } });
});
process.stdin.on('end', () => process.exit(0));
`;

describe('a decision that may be stored', { skip: missing }, () => {
  let master, replica, house, tab;

  const connected = () => {
    const info = master.cli('INFO', 'replication');
    return info.includes(`state=online,offset=${/master_repl_offset:(\d+)/.exec(info)?.[1]},`);
  };
  before(async () => {
    master = await redis();
    replica = await redis({ port: await freePort(), args: ['--replicaof', '127.0.0.1', String(master.port)] });
    await waitFor('the replica follows', connected);
  });
  after(async () => {
    await replica?.stop();
    await master?.stop();
  });

  /** A call that waits for a person, in a house of its own. */
  async function asked(t, { call = run('echo ran'), ...config } = {}) {
    const dir = await mkdtemp(join(tmpdir(), 'mo-talk-'));
    await writeFile(join(dir, 'plain.cjs'), PLAIN);
    house = await House.start({ dir, config: {
      store: { url: `redis://127.0.0.1:${master.port}`, replicas: 1 },
      mcpServers: { plain: { command: process.execPath, args: [join(dir, 'plain.cjs')] } },
      ...config,
    } });
    t.after(async () => {
      replica.child.kill('SIGCONT');
      house.server.fresh.fds += 8; // the server stays for the next
      house.server.fresh.children += 2;
      await house.stop();
    });
    tab = house.tab();
    await tab.ready();
    house.model.script.push({ calls: [call] }, { text: 'the end' });
    assert.equal((await tab.say('do it')).ok, true);
    return (await tab.event('tool:approval_required'))[0];
  }

  async function wake() {
    replica.child.kill('SIGCONT');
    await waitFor('the replica follows', connected);
  }

  /** Decides while the replica sleeps: refused, and stored. */
  async function inDoubt(card, approved) {
    replica.child.kill('SIGSTOP');
    assert.equal((await tab.decide(card, approved)).code, 'state_unavailable');
    await wake();
  }

  /** Decides until it is taken, as say() above. */
  const decide = (card, approved) => until(async () => {
    const said = await tab.decide(card, approved);
    assert.ok(said.ok || said.code === 'state_unavailable', JSON.stringify(said));
    return said.ok;
  }, 'the decision');

  test('a yes is followed by a no', async (t) => {
    const card = await asked(t);
    await inDoubt(card, true);
    await decide(card, false);
    assert.match((await tab.event('tool:output'))[0], /rejected/);
    await tab.event('agent:response');
    assert.doesNotMatch(house.results()[0].text, /ran/);
  });

  test('a no is followed by a yes, and the result counts', async (t) => {
    const card = await asked(t, { call: { name: 'plain_say', args: {} } });
    await inDoubt(card, false);
    await decide(card, true);
    const [text, about] = await tab.event('tool:output');
    assert.match(text, /said/);
    assert.equal(about.isError, false);
    await tab.event('agent:response');
    assert.deepEqual(house.results(), [{ text: 'said', error: false }]);
  });

  test('a yes is followed by a stop, which is asked for once', async (t) => {
    const card = await asked(t);
    await inDoubt(card, true);
    assert.equal((await tab.emit('agent:cancel')).ok, true);
    assert.equal((await tab.event('agent:response', 1, 60_000))[1].stopReason, 'canceled');
  });

  test('a stop that is not stored is stored later', async (t) => {
    await asked(t);
    replica.child.kill('SIGSTOP');
    assert.equal((await tab.emit('agent:cancel')).ok, true);
    await until(() => /0 of 1 replicas/.test(house.server.log), 'it is refused');
    await wake();
    assert.equal((await tab.event('agent:response', 1, 60_000))[1].stopReason, 'canceled');
    assert.match((await tab.event('tool:output'))[0], /stopped/);
  });

  test('a tab that opens sees no card before its call is stored', async (t) => {
    await decide(await asked(t), true);
    await tab.event('agent:response');
    let go;
    house.model.script.push({ wait: new Promise((done) => (go = done)), calls: [run('echo ran')] });
    assert.equal((await tab.say('do it again')).ok, true);
    replica.child.kill('SIGSTOP');
    go();
    while (!tab.count('system:message')) {
      const late = house.tab({ session: tab.session });
      // Another worker may not find out whose conversation it is.
      await until(() => late.count('session:history') + late.count('error'), 'an answer');
      for (const [name, history] of late.events)
        if (name === 'session:history') assert.deepEqual(history.pending, []);
      late.close();
    }
    assert.equal(tab.count('tool:approval_required'), 1);
    await wake();
    const [later] = await tab.event('tool:approval_required', 2); // Redis has had it since
    await decide(later, true);
    await tab.event('agent:response', 2);
    const { body } = await house.get(`/api/sessions/${tab.session}/history`);
    assert.deepEqual(body.messages.map((m) => m.role).slice(4), ['user', 'assistant', 'tool', 'assistant']);
  });

  test('the end of the time is not stored again and again', async (t) => {
    await asked(t, { approvals: { timeoutSeconds: 2 } });
    replica.child.kill('SIGSTOP');
    const ends = async () => (await readFile(join(house.dir, '.local/state/mcp-orchestrator/audit.jsonl'), 'utf8')).split('"by":"time"').length - 1;
    await until(ends, 'the end of its time');
    await sleep(3000); // attempts
    assert.ok(await ends() <= 5, `${await ends()} rows`);
    await wake();
    assert.match((await tab.event('tool:output', 1, 60_000))[0], /Nobody answered in time/);
    await tab.event('agent:response');
  });
});
