// Messages of which nobody knows whether they are stored. Redis has them here, but
// its replica does not answer in time, so their senders are told a failure.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';

import { freePort } from '../lib/port.mjs';
import { missing, redis, until as waitFor } from '../lib/redis.mjs';
import { until } from './server.mjs';
import { House } from './talk_kit.mjs';

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
