// "always": a rule that outlives its session and the program, about exactly one
// tool, never about what the configuration decides.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { BIN } from './server.mjs';
import { House, read, run, write } from './talk_kit.mjs';

const exec = promisify(execFile);

let house;
before(async () => {
  house = await House.start({
    config: {
      approvals: { rules: [
        { tool: 'list_files', action: 'deny', reason: 'not here' },
        { tool: 'execute_command', args: { command: '**rm**' }, action: 'ask', remember: false },
      ] },
    },
  });
});
after(() => house.stop());

const rules = async () => (await house.get('/api/rules')).body.rules;
const remove = async (id) =>
  (await fetch(`http://127.0.0.1:${house.server.port}/api/rules/${id}`, { method: 'DELETE' })).status;

/** One call; the card, when somebody is asked about it. */
async function call(tab, what, decision) {
  const [cards, answers] = [tab.count('tool:approval_required'), tab.count('agent:response')];
  house.model.script.push({ calls: [what] }, { text: 'ok' });
  await tab.say('go');
  let ack = null;
  if (decision) ack = await tab.decide((await tab.event('tool:approval_required', cards + 1))[0], decision.approved ?? true, decision);
  await tab.event('agent:response', answers + 1);
  if (!decision) assert.equal(tab.count('tool:approval_required'), cards, 'nobody is asked');
  return { ack, ...house.results()[0] };
}

test('in every session, over a restart, until it is taken back', async () => {
  const first = house.tab();
  await first.ready();
  const { ack } = await call(first, write('a', '1'), { remember: 'always' });
  assert.deepEqual(ack, { ok: true, remembered: true });
  const [rule] = await rules();
  assert.equal(rule.server, 'box');
  assert.equal(rule.tool, 'write_file');
  assert.equal(rule.action, 'allow');
  assert.match(rule.who, /127/);
  assert.equal((await stat(join(house.dir, await where()))).mode & 0o777, 0o600);

  const second = house.tab();
  await second.ready();
  assert.equal((await call(second, write('b', '2'))).error, false);
  await call(second, read('b'), {}); // another tool is still asked about

  await house.kill();
  await house.up();
  const third = house.tab();
  await third.ready();
  await call(third, write('c', '3'));
  const row = (await house.audit(third.session)).find((r) => r.tool === 'write_file');
  assert.equal(row.by, 'remembered');

  assert.equal(await remove(rule.id), 200);
  assert.equal(await remove(rule.id), 404);
  assert.deepEqual(await rules(), []);
  await call(third, write('d', '4'), {}); // asked again, at once
  await house.kill();
  await house.up();
  assert.deepEqual(await rules(), []);
});

/** The file beside the database. */
async function where() {
  for (const dir of ['', '.local/share/mcp-orchestrator', '.local/state/mcp-orchestrator'])
    if (await stat(join(house.dir, dir, 'rules.json')).then(() => true, () => false)) return join(dir, 'rules.json');
  return assert.fail('there is no rules.json');
}

test('only for such arguments', async () => {
  const tab = house.tab();
  await tab.ready();
  await call(tab, write('docs/a', '1'), { remember: 'always', conditions: { path: 'docs/**' } });
  await call(tab, write('docs/b', '2'));
  await call(tab, write('src/b', '2'), {});
  await call(tab, write('docs/../src/b', '2'), {});
  for (const r of await rules()) assert.equal(await remove(r.id), 200);
});

test('conditions of no sense are not kept; the call is approved all the same', async () => {
  const tab = house.tab();
  await tab.ready();
  const { ack, error } = await call(tab, write('x', '1'), { remember: 'always', conditions: { path: '> five' } });
  assert.deepEqual(ack, { ok: true, remembered: false });
  assert.equal(error, false);
  assert.deepEqual(await rules(), []);
  house.model.script.push({ calls: [write('y', '1')] }, { text: 'ok' });
  await tab.say('go');
  const [card] = await tab.event('tool:approval_required', 2);
  assert.equal((await tab.decide(card, true, { conditions: { path: 'x' } })).code, 'bad_request');
  await tab.decide(card, false);
});

test('never', async () => {
  const tab = house.tab();
  await tab.ready();
  const no = await call(tab, write('n', '1'), { approved: false, remember: 'always' });
  assert.equal(no.error, true);
  const other = house.tab();
  await other.ready();
  assert.match((await call(other, write('n', '1'))).text, /not allowed/);
  for (const r of await rules()) assert.equal(await remove(r.id), 200);
});

test('not where the configuration decides', async () => {
  const tab = house.tab();
  await tab.ready();
  const { ack } = await call(tab, run('rm nothing'), { remember: 'always' });
  assert.deepEqual(ack, { ok: true, remembered: false });
  assert.deepEqual(await rules(), []);
  // A rule for the same tool does not reach what must be asked, or is denied.
  await call(tab, run('true'), { remember: 'always' });
  await call(tab, run('echo quiet'));
  await call(tab, run('rm nothing'), {});
  const file = join(house.dir, await where());
  const kept = JSON.parse(await readFile(file, 'utf8'));
  kept.rules.push({ id: 'forged', server: 'box', tool: 'list_files', action: 'allow', at: 1, who: 'x' },
    { id: 'star', server: '*', tool: '*', action: 'allow', at: 1, who: 'x' });
  await house.kill();
  await writeFile(file, JSON.stringify(kept));
  await house.up();
  const back = house.tab();
  await back.ready();
  assert.match((await call(back, { name: 'list_files', args: {} })).text, /not here/);
  await call(back, read('zz'), {}); // names are names, not patterns
});

test('a broken file is said, not forgotten', async () => {
  const file = join(house.dir, await where());
  const whole = await readFile(file, 'utf8');
  await house.kill();
  await writeFile(file, whole.slice(0, -5));
  const { stderr } = await exec(BIN, ['chat', 'hello'], { cwd: house.dir, env: { ...process.env, HOME: house.dir, ...house.env, ASAN_OPTIONS: 'detect_leaks=0' } })
    .then(() => assert.fail('it went on'), (e) => e);
  assert.match(stderr, /rules\.json is damaged/);
  await writeFile(file, '{"version":1,"rules":[]}');
  await house.up();
});
