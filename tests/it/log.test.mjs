// The log as an operator reads it: one line for each thing that happened, with
// its subject as fields, and never a message, an argument or a secret.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { Place, fixtureServer } from '../lib/gateway.mjs';
import { Server, until } from './server.mjs';
import { House, run, write } from './talk_kit.mjs';

/** The JSON lines of a log; what is printed for people is left out. */
const linesOf = (log) => log.split('\n').filter((l) => l.startsWith('{')).map((l) => JSON.parse(l));

/** All processes: their number, user and command line. */
function processes() {
  const read = (pid, file) => {
    try { return readFileSync(`/proc/${pid}/${file}`, 'latin1'); } catch { return ''; }
  };
  return readdirSync('/proc').filter((p) => /^\d+$/.test(p)).map((p) => ({
    pid: Number(p), line: read(p, 'cmdline'), uid: /^Uid:\t(\d+)/m.exec(read(p, 'status'))?.[1],
  }));
}

/** The first line with these fields, when it has been written. */
async function line(server, fields) {
  const find = () => linesOf(server.log).find((l) =>
    Object.entries(fields).every(([k, v]) => (v instanceof RegExp ? v.test(l[k]) : l[k] === v)));
  await until(find, `a line with ${Object.entries(fields).join(' ')}`);
  return find();
}

describe('a conversation', () => {
  let house;
  before(async () => {
    house = await House.start();
  });
  after(() => house.stop());

  test('from the opening of its session to the end of its box', async () => {
    house.model.script.push(
      { text: 'Writing.', calls: [write('plans.txt', 'an-argument-in-private')] }, { text: 'Done.' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('some-words-in-private');
    const [card] = await tab.event('tool:approval_required');
    await tab.decide(card, true);
    await tab.event('agent:response');
    const session = tab.session;
    const ended = await line(house.server, { session, msg: 'turn ended' });
    await fetch(`${house.server.url}/api/sessions/${session}`, { method: 'DELETE' });
    await line(house.server, { session, msg: /^box ended/ });

    const mine = linesOf(house.server.log).filter((l) => l.session === session);
    const told = mine.map((l) => l.msg.replace(/box \S+ started/, 'box started'));
    const order = ['box started', 'opened', 'turn begun', 'call waits for a person',
      'call approved by person', 'call runs', 'call ended', 'turn ended',
      'closed: killed', 'box ended: stopped'];
    assert.deepEqual(told.filter((m) => order.includes(m)), order, house.server.log);
    for (const l of mine.filter((m) => /^call/.test(m.msg))) {
      assert.equal(l.turn, ended.turn);
      assert.equal(l.call, card.callId);
      assert.equal(l.server, 'box');
      assert.equal(l.tool, 'write_file');
    }
    for (const msg of [/^box \S+ started/, /^opened/, /^call ended/, /^turn ended/, /^box ended/])
      assert.ok(mine.find((l) => msg.test(l.msg)).ms > 0, `${msg} has no time`);
    for (const secret of ['in-private', house.model.key, 'plans.txt'])
      assert.ok(!house.server.log.includes(secret), `the log has ${secret}`);
  });

  test('a call that a person rejects, and one that fails', async () => {
    house.model.script.push({ calls: [run('true')] }, { text: 'Well.' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('run it');
    const [card] = await tab.event('tool:approval_required');
    await tab.decide(card, false);
    await tab.event('agent:response');
    await line(house.server, { call: card.callId, msg: 'call rejected by person' });
    house.model.script.push({ calls: [{ name: 'read_file', args: { path: 'missing' } }] }, { text: 'Gone.' });
    await tab.say('read it');
    const [second] = await tab.event('tool:approval_required', 2);
    await tab.decide(second, true);
    await tab.event('agent:response', 2);
    await line(house.server, { call: second.callId, msg: 'call ended with an error' });
  });

  test('a box that dies by itself has a warning with its cause', async () => {
    const id = `60.${process.pid}`;
    house.model.script.push({ calls: [run(`sleep ${id}`)] }, { text: 'It died.' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('run it');
    const [card] = await tab.event('tool:approval_required');
    await tab.decide(card, true);
    const sleeper = () => processes().find((p) => p.line === `sleep\0${id}\0`);
    await until(sleeper, 'its command');
    const { uid } = sleeper();
    for (const p of processes().filter((x) => x.uid === uid))
      try { process.kill(p.pid, 'SIGKILL'); } catch { /* gone */ }
    const ended = await line(house.server, { session: tab.session, msg: 'box ended: killed' });
    assert.equal(ended.level, 'warn');
    assert.ok(ended.ms > 0);
    await line(house.server, { call: card.callId, msg: 'call ended, outcome unknown' });
    await tab.event('agent:response');
  });

  test('a request of /api has a line, one of the page has none', async () => {
    await fetch(`${house.server.url}/healthz`);
    await fetch(`${house.server.url}/`);
    const { status } = await fetch(`${house.server.url}/api/sessions?limit=1&q=in-a-query`);
    assert.equal(status, 200);
    const access = await line(house.server, { room: 'access', msg: 'GET /api/sessions' });
    assert.equal(access.level, 'info');
    assert.equal(access.status, 200);
    assert.ok(access.request > 0 && access.ms > 0);
    assert.match(access.from, /^127\.0\.0\.1|^::1|^\[/);
    const rooms = linesOf(house.server.log).filter((l) => l.room === 'access').map((l) => l.msg);
    assert.ok(rooms.every((m) => / \/(api|mcp)(\/|$)/.test(m)), rooms.join('\n'));
    assert.ok(!house.server.log.includes('in-a-query'));
  });
});

describe('the gateway', () => {
  const call = async (url, name) => {
    const client = new Client({ name: 'it', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const result = await client.callTool({ name, arguments: { message: 'an-argument-in-private' } });
    await client.close();
    return result;
  };

  test('a call has the number of its request, and its server a line', async (t) => {
    const place = new Place({ fixture: fixtureServer(), broken: { command: '/bin/false' } });
    t.after(() => place.close());
    const serve = await place.serve('--log', 'info,gateway=debug,access=debug');
    await call(serve.url, 'echo');
    const { code, log } = await serve.stop();
    assert.equal(code, 0, log);
    const lines = linesOf(log);
    const one = (about) => {
      const found = lines.find((l) => about(l));
      assert.ok(found, `${about}\n${log}`);
      return found;
    };
    one((l) => l.room === 'serve' && /^started: version /.test(l.msg));
    one((l) => l.room === 'upstream' && l.server === 'fixture' && l.msg === 'started' && l.ms > 0);
    one((l) => l.level === 'warn' && l.server === 'broken' && /^could not be started/.test(l.msg));
    const ran = one((l) => l.server === 'fixture' && l.tool === 'echo' && l.msg === 'call ended');
    assert.ok(ran.ms > 0);
    const access = one((l) => l.room === 'access' && l.request === ran.request && l.worker === ran.worker);
    assert.equal(access.msg, 'POST /mcp');
    assert.equal(access.status, 200);
    one((l) => l.room === 'serve' && l.msg === 'stopped');
    assert.ok(!log.includes('in-private'), log);
  });

  test('by default a call that ran is only the line of its request', async (t) => {
    const place = new Place({ fixture: fixtureServer() });
    t.after(() => place.close());
    const serve = await place.serve();
    await call(serve.url, 'echo');
    const { log } = await serve.stop();
    const lines = linesOf(log);
    assert.ok(lines.some((l) => l.room === 'access' && l.msg === 'POST /mcp'));
    assert.ok(!lines.some((l) => l.tool === 'echo'), log);
  });
});

test('as text, fields follow the message', async (t) => {
  const place = new Place({}, { log: { format: 'text' } });
  t.after(() => place.close());
  const serve = await place.serve();
  await fetch(new URL('/api/nothing-of-that-name', serve.url));
  const { log } = await serve.stop();
  assert.match(log,
    /^\d\d:\d\d:\d\d info {2}access {3}GET \/api\/nothing-of-that-name (worker=\d )?request=\d+ from=\S+ status=404 ms=\d+\.\d{3}$/m);
});

test('a level hides the access lines', async () => {
  const server = await Server.start(['--log', 'info,access=warn']);
  await fetch(`${server.url}/api/nothing-of-that-name`);
  await server.stopClean();
  assert.ok(!server.log.includes('nothing-of-that-name'), server.log);
});
