// The rows of the event table that no other file is about, and the first start
// on a machine that has nothing.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Server } from './server.mjs';
import { House, Tab, run } from './talk_kit.mjs';

const QUICK = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };

// Its tools answer with an error of the protocol, with isError, with too much.
const ODD = `
const rl = require('readline').createInterface({ input: process.stdin });
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
const text = (t, more) => ({ content: [{ type: 'text', text: t }], ...more });
const calls = {
  throws: (id) => send({ id, error: { code: -32603, message: 'the disk is on fire' } }),
  fails: (id) => send({ id, result: text('no such page', { isError: true }) }),
  floods: (id) => send({ id, result: text('x'.repeat(300000) + 'THE END') }),
};
rl.on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize')
    send({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } } });
  else if (method === 'tools/list')
    send({ id, result: { tools: Object.keys(calls).map((name) => ({ name, inputSchema: { type: 'object' } })) } });
  else if (method === 'tools/call') calls[params.name](id);
  else if (id !== undefined) send({ id, error: { code: -32601, message: 'no' } });
});
process.stdin.on('end', () => process.exit(0));
`;

describe('the event table', () => {
  let house;
  before(async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mo-talk-'));
    await writeFile(join(dir, 'odd.cjs'), ODD);
    house = await House.start({
      dir, env: QUICK,
      config: {
        mcpServers: { odd: { command: process.execPath, args: [join(dir, 'odd.cjs')] } },
        sessions: { idleMinutes: 1, sweepSeconds: 1 },
        approvals: { rules: [{ server: 'odd', action: 'allow' }] },
      },
    });
  });
  after(async () => {
    house.server.fresh.fds += 8; // the odd server stays for the next
    house.server.fresh.children += 2;
    await house.stop();
  });

  test('session:idle is told before the box is taken, and a word keeps it', async () => {
    const tab = house.tab();
    await tab.ready();
    const told = tab.count('session:idle');
    house.model.script.push({ text: 'hello' });
    await tab.say('hello'); // whatever was told before we listened counts no more
    await tab.event('agent:response');
    const [{ secondsLeft }] = await tab.event('session:idle', told + 1);
    assert.ok(secondsLeft > 0 && secondsLeft <= 60, `${secondsLeft}`);
    house.model.script.push({ calls: [run('echo still here')] }, { text: 'ok' });
    await tab.say('go on');
    await tab.decide((await tab.event('tool:approval_required'))[0], true);
    assert.match((await tab.event('tool:output'))[0], /still here/);
    await tab.event('agent:response', 2);
  });

  test('session:closed: every tab hears why, and is let go', async () => {
    const tab = house.tab();
    await tab.ready();
    const other = house.tab({ session: tab.session });
    await other.ready();
    assert.deepEqual(await tab.emit('session:close'), { ok: true });
    for (const t of [tab, other]) {
      const [{ reason }] = await t.event('session:closed');
      assert.equal(reason, 'killed');
      await t.event('(disconnect)');
    }
    assert.equal((await house.get(`/api/sessions/${tab.session}`)).status, 404);
  });

  test('agent:error: what, for how long, in which turn', async () => {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ status: 429, type: 'rate_limit_error', headers: { 'retry-after': '600' } });
    const { turnId } = await tab.say('hello');
    const [text, more] = await tab.event('agent:error');
    assert.match(text, /\w/);
    assert.deepEqual([more.code, more.turnId], ['rate_limit', turnId]);
    assert.equal(more.retryAfterMs, 600_000);
    await tab.event('session:entry', 2); // the note is written behind the event
    const { body } = await house.get(`/api/sessions/${tab.session}/history`);
    assert.deepEqual(body.messages.map((m) => [m.role, m.code]), [['user', undefined], ['note', 'rate_limit']]);
    house.model.script.push({ text: 'better now' });
    await tab.say('again');
    assert.equal((await tab.event('agent:response'))[0], 'better now');
  });

  test('a tool that throws, one that says it failed, one that says too much', async () => {
    const tab = house.tab();
    await tab.ready();
    house.model.script.push({ calls: ['throws', 'fails', 'floods'].map((name) => ({ name: `odd_${name}`, args: {} })) }, { text: 'I see.' });
    await tab.say('try');
    assert.equal((await tab.event('agent:response'))[0], 'I see.');
    const [thrown, failed, flood] = house.results();
    assert.equal(thrown.error, true);
    assert.match(thrown.text, /the disk is on fire/);
    assert.equal(failed.error, true);
    assert.match(failed.text, /no such page/);
    assert.equal(flood.error, false);
    assert.ok(flood.text.length < 70_000, `${flood.text.length} bytes`);
    assert.match(flood.text, /left out here; call [\w-]+ keeps all/);
    const outputs = tab.events.filter(([e]) => e === 'tool:output').map(([, text, about]) => [about.name, about.isError, about.truncated, text.length > 250_000]);
    assert.deepEqual(outputs.sort(), [['odd_fails', true, false, false], ['odd_floods', false, true, true], ['odd_throws', true, false, false]]);
  });

  test('an event nobody knows, one without its argument', async () => {
    const tab = house.tab();
    await tab.ready();
    assert.equal((await tab.emit('agent:dance')).code, 'unknown_event');
    for (const [event, ...args] of [['message'], ['message', 5], ['message', {}], ['message', ' '], ['tool:approval'], ['tool:approval', { callId: 'x' }], ['elicitation:response', 'x']]) {
      const ack = await tab.emit(event, ...args);
      assert.deepEqual([ack.ok, ack.code], [false, 'bad_request'], `${event} ${JSON.stringify(args)}`);
    }
  });
});

test('the first start: no key, no engine, no Redis, nothing configured', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'mo-first-'));
  const server = await Server.start([], { dir, env: { ...QUICK, DOCKER_HOST: 'unix:///nonexistent/docker.sock' }, house: true });
  const tab = new Tab({ server, sessions: new Set(), headers: {} });
  try {
    const { ready } = await tab.ready();
    assert.equal(ready.provider, 'demo');
    await tab.say('list the files, then write hello to a.txt and show it');
    for (const [i, name] of ['list_files', 'write_file', 'read_file'].entries()) {
      const [card] = await tab.event('tool:approval_required', i + 1);
      assert.equal(card.name, name);
      assert.equal((await tab.decide(card, true, { digest: card.digest })).ok, true);
    }
    const [text, { stopReason }] = await tab.event('agent:response', 1, 60_000);
    assert.equal(stopReason, 'end');
    assert.match(text, /hello/);
    assert.match(JSON.stringify(tab.events.filter(([e]) => e === 'agent:delta')), /demo/i, 'it says what it is');
    await tab.emit('session:close');
    assert.ok((await readdir(dir, { recursive: true })).some((f) => /\.db$/.test(f)), 'kept in a file of its own');
  } finally {
    tab.close();
    server.fresh.fds += 32;
    await server.stopClean().finally(() => rm(dir, { recursive: true, force: true }));
  }
});
