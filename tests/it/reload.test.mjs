// Ten thousand calls while servers come, go and change: none is lost, none is
// wrong. And what else of the configuration reaches those who are at work.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Place, below, fixtureServer, isAlive } from '../lib/gateway.mjs';
import { replaceFile, until } from './server.mjs';
import { House, run } from './talk_kit.mjs';

const CALLS = 10_000;
const AT_ONCE = 48;
const RELOADS = 24;
const STUCK_MS = 60_000;

/** A client that counts: every id has to be answered exactly once. */
class Wire {
  constructor(child) {
    this.child = child;
    this.open = new Map();
    this.id = 0;
    this.strays = [];
    createInterface({ input: child.stdout }).on('line', (line) => this.hear(JSON.parse(line)));
  }

  hear(m) {
    if (m.id === undefined) return;
    const done = this.open.get(m.id);
    this.open.delete(m.id);
    if (done) done(m);
    else this.strays.push(m);
  }

  ask(method, params) {
    const id = ++this.id;
    this.child.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\n');
    return new Promise((resolve) => this.open.set(id, resolve));
  }
}

test('reload under load', async (t) => {
  // One stays as it is, one is another at every turn, one comes and goes.
  const servers = (turn) => ({
    stays: fixtureServer(),
    changes: fixtureServer({ instances: 1 + (turn % 2), idleSeconds: 300 + turn }),
    ...(turn % 3 !== 1 && { comes: fixtureServer() }),
    ...(turn % 4 === 2 && { [`new${turn}`]: fixtureServer() }),
  });
  const more = { gateway: { prefix: 'always' } };
  const place = new Place(servers(0), more);
  t.after(() => place.close());
  place.legacy(fixtureServer());
  const { command, args, env } = place.command();
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const end = once(child, 'exit');
  const wire = new Wire(child);
  await wire.ask('initialize', {
    protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' },
  });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  await wire.ask('tools/list', {});

  const names = ['stays', 'changes', 'stays', 'changes', 'comes'];
  const wrong = [];
  let next = 0, answered = 0, absent = 0, reloads = 0, last = Date.now();
  const one = async (i) => {
    const server = names[i % names.length];
    const message = `m${i}`;
    const m = await wire.ask('tools/call', { name: `${server}_echo`, arguments: { message } });
    const said = m.result?.content?.[0]?.text;
    const gone = /no such tool|not offered any more/.test(m.error?.message ?? '');
    answered++;
    last = Date.now();
    if (server === 'comes' && gone) absent++;
    else if (said !== message) wrong.push(`${server} ${message}: ${JSON.stringify(m.error ?? m.result)}`);
  };
  const worker = async () => { while (next < CALLS) await one(next++); };
  const all = Promise.all(Array.from({ length: AT_ONCE }, worker));
  const reload = async () => {
    for (let turn = 1; turn <= RELOADS || answered < CALLS; turn++) {
      // Spread over the calls, not over the time they take here.
      while (turn <= RELOADS && answered < (turn * CALLS) / (RELOADS + 2)) {
        assert.ok(Date.now() - last < STUCK_MS, `stuck at ${answered}, ${wire.open.size} open`);
        await sleep(2);
      }
      if (turn > RELOADS) break;
      place.write(servers(turn), more);
      child.kill('SIGHUP');
      reloads++;
    }
  };
  await reload();
  const stuck = setInterval(() => {
    if (Date.now() - last > STUCK_MS) child.kill('SIGKILL');
  }, 1000);
  await Promise.race([all, end]);
  clearInterval(stuck);
  assert.equal(answered, CALLS, `${wire.open.size} were lost`);
  assert.deepEqual(wrong, []);
  assert.deepEqual(wire.strays, [], 'no answer twice');
  assert.equal(reloads, RELOADS);
  assert.ok(absent < CALLS / 5);
  const children = below(child.pid);
  child.stdin.end();
  assert.deepEqual(await end, [0, null]);
  assert.deepEqual(children.filter(isAlive), []);
});

const replace = (house, words) => replaceFile(join(house.dir, 'mcp-orchestrator.json'), words);

/** Writes another configuration, and waits until it is in use. */
async function reconfigure(house, config) {
  await replace(house, JSON.stringify({
    llm: { provider: 'claude', model: 'claude-sonnet-5-5' }, sandbox: { driver: 'native', warm: 0 }, ...config,
  }));
  const from = house.server.log.length;
  await house.server.reload();
  /** Is it said that the key has changed; with or without the need of a restart? */
  return (key, restart = false) => until(() => {
    const [, then] = house.server.log.slice(from).match(new RegExp(`${key} changed(; it takes effect after a restart)?"`)) ?? [0, null];
    return then !== null && Boolean(then) === restart;
  }, `a word on ${key}`);
}

const LLM = { provider: 'claude', model: 'claude-sonnet-5-5' };

test('a changed configuration reaches open conversations', async (t) => {
  const allow = { tool: 'execute_command', action: 'allow' };
  const house = await House.start({ oneProcess: 'sessions.max is the limit of each worker', config: { approvals: { rules: [allow] } } });
  t.after(() => house.stop());
  const tab = house.tab();
  await tab.ready();
  const turn = async () => {
    const answers = tab.count('agent:response');
    house.model.script.push({ calls: [run('echo ran')] }, { text: 'done' });
    await tab.say('go');
    await tab.event('agent:response', answers + 1);
    return house.results()[0];
  };
  assert.match((await turn()).text, /ran/);

  await t.test('a new deny holds at once, also for a tool of the box', async () => {
    const said = await reconfigure(house, { approvals: { rules: [{ tool: 'execute_command', action: 'deny', reason: 'not today' }] } });
    await said('approvals.rules');
    const { text, error } = await turn();
    assert.ok(error);
    assert.match(text, /not allowed here: not today/);
    const { body } = await house.get('/api/rules');
    assert.match(JSON.stringify(body), /not today/);
  });

  await t.test('a call that waits for a person is rejected by it', async () => {
    await reconfigure(house, {});
    const [answers, cards] = [tab.count('agent:response'), tab.count('tool:approval_required')];
    house.model.script.push({ calls: [run('echo ran')] }, { text: 'done' });
    await tab.say('go');
    const [card] = await tab.event('tool:approval_required', cards + 1);
    await reconfigure(house, { approvals: { default: 'deny' } });
    await tab.event('agent:response', answers + 1);
    assert.match(house.results()[0].text, /not allowed here/);
    assert.equal((await tab.decide(card, true)).code, 'unknown_call');
  });

  await t.test('a person cannot approve arguments that are denied', async () => {
    await reconfigure(house, { approvals: { rules: [{ tool: 'execute_command', args: { command: '**secret**' }, action: 'deny', reason: 'hush' }] } });
    const [answers, cards] = [tab.count('agent:response'), tab.count('tool:approval_required')];
    house.model.script.push({ calls: [run('echo ran')] }, { text: 'done' });
    await tab.say('go');
    const [card] = await tab.event('tool:approval_required', cards + 1);
    const no = await tab.decide(card, true, { args: { command: 'echo secret' } });
    assert.equal(no.code, 'denied', JSON.stringify(no));
    assert.match(no.message, /not allowed here: hush/);
    assert.equal((await tab.decide(card, true)).ok, true, 'as it was shown it may run');
    await tab.event('agent:response', answers + 1);
    assert.match(house.results()[0].text, /ran/);
  });

  await t.test('settings of the model hold from the next turn on', async () => {
    const said = await reconfigure(house, { approvals: { rules: [allow] }, llm: { ...LLM, systemPrompt: 'Speak plainly.', maxOutputTokens: 1234, maxSteps: 1 } });
    await said('llm.systemPrompt');
    await said('llm.maxOutputTokens');
    house.model.script.push({ text: 'yes' });
    const answers = tab.count('agent:response');
    await tab.say('hello');
    await tab.event('agent:response', answers + 1);
    assert.match(JSON.stringify(house.asked().system), /Speak plainly\./);
    assert.equal(house.asked().max_tokens, 1234);
    house.model.script.push({ calls: [run('echo ran')] });
    await tab.say('go');
    assert.match(JSON.stringify(await tab.event('agent:error')), /1 step/);
  });

  await t.test('sessions: their number at once; what needs a restart is said', async () => {
    const said = await reconfigure(house, { sessions: { max: 1, idleMinutes: 5, historyTtlSeconds: 90 }, sandbox: { driver: 'native', warm: 0, memoryMb: 300 } });
    await said('sessions.max');
    await said('sessions.idleMinutes');
    await said('sessions.historyTtlSeconds', true);
    await said('sandbox.memoryMb', true);
    const second = house.tab();
    const [why] = await second.event('error');
    assert.match(why, /1 sessions are open already/);
  });
});

test('a reload says what waits for a restart, in the log and in the audit log', async (t) => {
  const house = await House.start({ config: { sandbox: { driver: 'native', warm: 0, memoryMb: 300 } } });
  t.after(() => house.stop());
  const rows = async () => (await house.get('/api/audit?limit=100')).body.rows.map((r) => r.what).filter((r) => r.kind === 'config');
  const newest = async (n) => {
    await until(async () => (await rows()).length === n, `${n} rows`);
    return (await rows())[0];
  };
  const box = (memoryMb) => ({ sandbox: { driver: 'native', warm: 0, memoryMb } });

  await reconfigure(house, { ...box(400), llm: { ...LLM, maxSteps: 7 } });
  const one = await newest(1);
  assert.equal(one.outcome, 'loaded');
  assert.match(one.by, /^(signal|file)$/); // whichever came first
  assert.equal(one.who, `uid ${process.getuid()}`);
  assert.match(one.path, /mcp-orchestrator\.json$/);
  assert.deepEqual(one.waiting, ['sandbox.memoryMb']);
  assert.ok(one.changed.includes('llm.maxSteps') && one.changed.includes('sandbox.memoryMb'), JSON.stringify(one));

  // it still waits when another key changes
  await reconfigure(house, { ...box(400), llm: { ...LLM, maxSteps: 8 } });
  const two = await newest(2);
  assert.deepEqual([two.changed, two.waiting], [['llm.maxSteps'], ['sandbox.memoryMb']]);
  await until(() => house.server.log.includes('waiting for a restart: [\\"sandbox.memoryMb\\"]'), 'the list in the log');

  // an invalid file changes nothing, and is a row
  await replace(house, '{"llm": {"maxSteps": "many"}}');
  house.server.child.kill('SIGHUP');
  const three = await newest(3);
  assert.deepEqual([three.outcome, three.reason], ['refused', 'invalid']);
  assert.match(house.server.log, /keeping the old configuration/);

  // back to the value of the start: nothing waits
  await reconfigure(house, { ...box(300), llm: { ...LLM, maxSteps: 8 } });
  await until(() => /sandbox\.memoryMb changed; it is again as it was at the start/.test(house.server.log), 'a word on it');
  const four = await newest(4);
  assert.deepEqual([four.changed, four.waiting], [['sandbox.memoryMb'], undefined]);
});
