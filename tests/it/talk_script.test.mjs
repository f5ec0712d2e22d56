// Scripts in a conversation: each call of a script is judged, asked about,
// shown and recorded as a call of the model; its outcome goes to the script.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';

import { until } from './server.mjs';
import { House } from './talk_kit.mjs';

const script = (language, code, more = {}) => ({ name: 'run_script', args: { language, code, ...more } });
const python = (code, more) => script('python', `import tools\n${code}`, more);
const node = (code, more) => script('javascript', `import tools from './tools.mjs';\n${code}`, more);
const digestOf = (call) => createHash('sha256').update(call.args.code).digest('hex');

const RULES = [
  { server: 'box', tool: 'run_script', action: 'allow' },
  { server: 'box', tool: 'read_file', action: 'allow' },
  { server: 'box', tool: 'list_files', action: 'deny', reason: 'not here' },
];

let house;
before(async () => {
  house = await House.start({ config: { approvals: { rules: RULES } } });
});
after(() => house.stop());

/** A turn in which the model runs that script, then ends. */
async function begin(call, on = house) {
  on.model.script.push({ calls: [call] }, { text: 'end' });
  const tab = on.tab();
  await tab.ready();
  await tab.say('run it');
  return tab;
}

const cardsOf = (tab) => tab.events.filter(([e]) => e === 'tool:approval_required').map(([, c]) => c);

/** When n cards were shown in all. */
async function cards(tab, n) {
  await tab.event('tool:approval_required', n);
  return cardsOf(tab);
}

/** The result of run_script that the model got, when the turn is over. */
async function ended(tab, on = house) {
  await tab.event('agent:response', 1, 60_000);
  return on.results()[0];
}

const entryOf = (tab) => tab.events.find(([e, d]) => e === 'session:entry' && d.role === 'tool')[1];

describe('a call of a script', () => {
  for (const [language, call] of [
    ['python', python('print(tools.write_file(path="a", content="1"))\nprint("read", tools.read_file(path="a"))')],
    ['javascript', node('console.log(await tools.write_file({ path: "a", content: "1" }));\nconsole.log("read", await tools.read_file({ path: "a" }));')],
  ])
    test(`${language}: asked about, run, answered`, async () => {
      const tab = await begin(call);
      const [card] = await cards(tab, 1);
      assert.equal(card.name, 'write_file');
      assert.deepEqual(card.args, { path: 'a', content: '1' });
      assert.equal(card.line, 2);
      assert.equal(card.script, digestOf(call));
      assert.equal(card.callId, `${card.parent}.1`);
      assert.deepEqual([card.queuePosition, card.totalInQueue], [1, 1]);
      assert.deepEqual(await tab.decide(card, true, { digest: card.digest }), { ok: true });
      const out = await ended(tab);
      assert.match(out.text, /read/);
      assert.equal(out.error, false);
      // The entry names them; no model is sent them.
      const entry = entryOf(tab);
      assert.equal(entry.results.length, 1);
      const [s] = entry.scripts;
      assert.equal(s.key, card.parent);
      assert.equal(s.language, language);
      assert.equal(s.total, 2);
      assert.deepEqual(s.calls.map((c) => [c.key, c.name, c.line, c.state]),
        [[`${s.key}.1`, 'write_file', 2, 'done'], [`${s.key}.2`, 'read_file', 3, 'done']]);
      assert.ok(!JSON.stringify(house.asked()).includes(s.digest));
      // A reload shows the same.
      const again = house.tab({ session: tab.session });
      const { history } = await again.ready();
      assert.deepEqual(history.messages.find((m) => m.role === 'tool').scripts, entry.scripts);
      // The record has script and line.
      const rows = (await house.audit(tab.session)).filter((r) => r.script && r.content);
      assert.deepEqual(rows.map((r) => [r.name, r.script, r.line, r.parent]).sort(), [
        ['read_file', s.digest, 3, s.key], ['write_file', s.digest, 2, s.key]]);
      // A live list can be drawn from events alone.
      const made = tab.events.filter(([e]) => e === 'script:call').map(([, m]) => m);
      assert.deepEqual(made.map((m) => [m.callId, m.name, m.line, m.state]),
        [[`${s.key}.1`, 'write_file', 2, 'pending'], [`${s.key}.2`, 'read_file', 3, 'running']]);
    });

  test('a no raises, with the reason', async () => {
    const tab = await begin(python(
      'try:\n  tools.write_file(path="a", content="1")\nexcept tools.Rejected as e:\n  print("no:", e.reason)'));
    const [card] = await cards(tab, 1);
    await tab.decide(card, false, { reason: 'not this file' });
    assert.match((await ended(tab)).text, /no: not this file/);
    assert.deepEqual(entryOf(tab).scripts[0].calls.map((c) => [c.state, c.by]), [['rejected', 'person']]);
    const js = await begin(node(
      'try { await tools.write_file({ path: "a", content: "1" }); } catch (e) { console.log("no:", e.constructor.name, e.reason); }'));
    const [other] = await cards(js, 1);
    await js.decide(other, false, { reason: 'nor this' });
    assert.match((await ended(js)).text, /no: Rejected nor this/);
  });

  test('a rule denies; unknown tools, other scripts and bad arguments fail', async () => {
    const tab = await begin(python(`
for name, args in [("list_files", {}), ("nothing", {}), ("run_script", {"language": "python", "code": "1"}),
                   ("write_file", {"path": 1})]:
  try:
    tools.call(name, args)
    print("ran", name)
  except tools.ToolError as e:
    print(type(e).__name__, name, e)`));
    const { text } = await ended(tab);
    assert.match(text, /Denied list_files .*not here/);
    assert.match(text, /Failed nothing There is no tool/);
    assert.match(text, /Failed run_script A script cannot run another script/);
    assert.match(text, /Failed write_file/);
    assert.doesNotMatch(text, /ran /);
    assert.equal(cardsOf(tab).length, 0);
    const rows = (await house.audit(tab.session)).filter((r) => r.script);
    assert.deepEqual(rows.map((r) => r.name).sort(), ['list_files', 'nothing', 'run_script', 'write_file']);
  });

  test('edited arguments run as edited', async () => {
    const tab = await begin(python('tools.write_file(path="a", content="1")\nprint(tools.read_file(path="b"))'));
    const [card] = await cards(tab, 1);
    await tab.decide(card, true, { args: { path: 'b', content: 'other' } });
    assert.match((await ended(tab)).text, /other/);
  });
});

describe('calls at the same time', () => {
  const five = {
    python: python(`
import asyncio
async def one(i):
  try:
    await tools.aio.write_file(path=f"f{i}", content=str(i))
    return "yes"
  except tools.Rejected as e:
    return f"no {e.reason}"
async def main():
  print(await asyncio.gather(*[one(i) for i in range(5)]))
asyncio.run(main())`),
    javascript: node(`
const one = (i) => tools.write_file({ path: 'f' + i, content: String(i) }).then(() => 'yes', (e) => 'no ' + e.reason);
console.log(JSON.stringify(await Promise.all([0, 1, 2, 3, 4].map(one))));`),
  };
  for (const [language, call] of Object.entries(five))
    test(`${language}: all are asked about; each has its own answer`, async () => {
      const tab = await begin(call);
      const all = await cards(tab, 5);
      assert.equal(new Set(all.map((c) => c.callId)).size, 5);
      assert.equal(all.at(-1).totalInQueue, 5);
      // Whoever joins now sees all of them.
      const other = house.tab({ session: tab.session });
      const { history } = await other.ready();
      assert.deepEqual(history.pending.map((p) => [p.queuePosition, p.totalInQueue]),
        [1, 2, 3, 4, 5].map((i) => [i, 5]));
      for (const c of all) await tab.decide(c, c.args.path !== 'f3', { reason: 'three' });
      const { text } = await ended(tab);
      assert.match(text, /yes.*yes.*yes.*no three.*yes/s);
      const states = entryOf(tab).scripts[0].calls.map((c) => c.state).sort();
      assert.deepEqual(states, ['done', 'done', 'done', 'done', 'rejected']);
      assert.match(await house.inBox(tab, 'ls f* | tr "\\n" " "'), /^f0 f1 f2 f4 $/);
    });

  test('two decisions about one call run it once', async () => {
    const tab = await begin(python('tools.execute_command(command="echo ran >> ran")\nprint(tools.read_file(path="ran"))'));
    const [card] = await cards(tab, 1);
    const acks = await Promise.all([1, 2, 3].map(() => tab.decide(card, true)));
    assert.equal(acks.filter((a) => a.ok).length, 1);
    assert.doesNotMatch((await ended(tab)).text, /ran\\nran|ran\nran/);
  });
});

describe('the end of a script', () => {
  const OPEN = `
import sys, time
tools._connection.share().send({"tool": "write_file", "arguments": {"path": "late", "content": "1"}})
`;

  test('it ends by itself: a call that waits is rejected', async () => {
    const tab = await begin(python(`${OPEN}
import os
while not os.path.exists("go"):
  time.sleep(0.01)
print("over")`));
    const [card] = await cards(tab, 1);
    const put = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}/files/content?path=go`, { method: 'PUT', body: 'x' });
    assert.ok(put.ok, `${put.status} ${await put.text()}`);
    const { text } = await ended(tab);
    assert.match(text, /over/);
    const [[, resolved]] = tab.events.filter(([e]) => e === 'tool:resolved');
    assert.deepEqual([resolved.callId, resolved.approved, resolved.by], [card.callId, false, 'cancel']);
    assert.equal((await tab.decide(card, true)).code, 'unknown_call');
    assert.deepEqual(entryOf(tab).scripts[0].calls.map((c) => c.state), ['rejected']);
    assert.match(await house.inBox(tab, 'test -e late || echo none'), /none/);
  });

  test('stopped by the person', async () => {
    const tab = await begin(python('tools.write_file(path="late", content="1")'));
    await cards(tab, 1);
    assert.equal((await tab.emit('agent:cancel')).ok, true);
    await tab.event('agent:response');
    house.model.script.length = 0;
    const states = tab.events.filter(([e]) => e === 'tool:output').map(([, , m]) => m.state);
    assert.ok(states.includes('rejected'));
    assert.match(await house.inBox(tab, 'test -e late || echo none'), /none/);
  });

  test('it ends while a call runs: the outcome is unknown', async () => {
    const tab = await begin(python(`
import os, time
tools._connection.share().send({"tool": "execute_command", "arguments": {"command": "touch began; sleep 60"}})
while not os.path.exists("began"):
  time.sleep(0.01)
print("over")`));
    const [card] = await cards(tab, 1);
    await tab.decide(card, true);
    assert.match((await ended(tab)).text, /over/);
    const [call] = entryOf(tab).scripts[0].calls;
    assert.equal(call.state, 'unknown');
    assert.match(call.text, /Whether it had an effect is unknown/);
  });

  test('time does not pass while a person decides', async () => {
    const tab = await begin(python('tools.write_file(path="slow", content="1")\nprint("went on")', { timeout: 5 }));
    const [card] = await cards(tab, 1);
    const since = Date.now();
    await until(() => Date.now() - since > 7000, 'more than the timeout');
    await tab.decide(card, true);
    assert.match((await ended(tab)).text, /went on/);
  });
});

describe('bad input', () => {
  test('frames that are forged or no frames', async () => {
    for (const line of ['{"id":1', '[]', '{"id":-1,"tool":"read_file"}', '{"id":1.5,"tool":"read_file"}', '{"id":1}', 'x'.repeat(2_000_000)]) {
      const tab = await begin(python(`
import os
try:
  os.write(tools._connection.fd, b${JSON.stringify(line.length > 100 ? '' : line)} + ${line.length > 100 ? `b"x" * ${line.length}` : 'b""'} + b"\\n")
except OSError:
  pass
try:
  print(tools.read_file(path="none"))
except tools.ToolError as e:
  print(type(e).__name__)`, { timeout: 20 }));
      const { text } = await ended(tab);
      assert.match(text, /Gone/, line.slice(0, 40));
    }
  });

  test('processes without end, and 100 MB of output: the box goes on', async () => {
    const tab = await begin(python(`
import os, time
n = 0
try:
  while True:
    if os.fork() == 0:
      os.setsid()
      time.sleep(1000)
    n += 1
except OSError:
  print("no room", n > 10, n < 1000)`, { timeout: 60 }));
    assert.match((await ended(tab)).text, /no room True True/);
    house.model.script.push({ calls: [python(`
import sys
for i in range(100):
  sys.stdout.write("x" * 1_000_000)
print(" the end", len([p for p in __import__("os").listdir("/proc") if p.isdigit()]) < 10)`)] }, { text: 'end' });
    await tab.say('and now');
    await tab.event('agent:response', 2, 60_000);
    const { text } = house.results()[0];
    assert.ok(text.length < 300_000, `${text.length} bytes for the model`);
    assert.match(text.slice(-400), /x the end True/, 'its end is kept, and nothing of the first is left');
  });

  test('patched stubs, and another name for an approved tool, change nothing', async () => {
    const tab = await begin(python(`
tools.read_file = lambda **k: tools.call("write_file", {"path": "x", "content": "1"})
try:
  tools.read_file(path="a")
except tools.Rejected as e:
  print("asked all the same")`));
    const [card] = await cards(tab, 1);
    assert.equal(card.name, 'write_file');
    await tab.decide(card, false);
    assert.match((await ended(tab)).text, /asked all the same/);
  });
});

describe('calls granted ahead', () => {
  const LOOP = `
def one(i, path="log"):
  try:
    tools.execute_command(command=f"echo {i} >> {path}", cwd=".")
    return "ran"
  except tools.Rejected as e:
    return "no"
`;

  test('by count and arguments; then people are asked again', async () => {
    const tab = await begin(python(`${LOOP}
print([one(i) for i in range(4)])`));
    const [card] = await cards(tab, 1);
    const granted = await tab.decide(card, true, { ahead: { count: 2, seconds: 60, same: ['cwd'] } });
    assert.deepEqual(granted, { ok: true, remembered: true });
    const [told] = await tab.event('script:grants');
    assert.equal(told.callId, card.parent);
    assert.deepEqual([told.grants[0].tool, told.grants[0].count, told.grants[0].same],
      ['execute_command', 2, { cwd: '.' }]);
    const [, last] = await cards(tab, 2);
    assert.match(last.args.command, /echo 3/);
    await tab.decide(last, false);
    assert.match((await ended(tab)).text, /\['ran', 'ran', 'ran', 'no'\]/);
    assert.deepEqual(tab.events.filter(([e]) => e === 'script:grants').map(([, m]) => m.grants[0].left), [2, 1, 0]);
    const [s] = entryOf(tab).scripts;
    assert.deepEqual(s.calls.map((c) => c.by), ['person', 'ahead', 'ahead', 'person']);
    assert.deepEqual([s.grants[0].count, s.grants[0].left], [2, 0]);
    const rows = await house.audit(tab.session);
    assert.equal(rows.filter((r) => r.granted === 'script').length, 1);
    assert.equal(rows.filter((r) => r.by === 'ahead' && r.content).length, 2);
  });

  test('other arguments are asked about; calls that wait take places', async () => {
    const tab = await begin(python(`
import asyncio
async def one(name):
  try:
    await tools.aio.write_file(path=name, content="same" if name != "d" else "other")
    return "ran"
  except tools.Rejected:
    return "no"
async def main():
  print(await asyncio.gather(*[one(n) for n in "abcd"]))
asyncio.run(main())`));
    const all = await cards(tab, 4);
    const of = (path) => all.find((c) => c.args.path === path);
    await tab.decide(of('a'), true, { ahead: { count: 10, same: ['content'] } });
    await until(() => tab.events.filter(([e, m]) => e === 'tool:resolved' && m.by === 'ahead').length === 2, 'b and c');
    await tab.decide(of('d'), false);
    assert.match((await ended(tab)).text, /\['ran', 'ran', 'ran', 'no'\]/);
  });

  test('a grant that is revoked, and grants that are not valid', async () => {
    const tab = await begin(python(`${LOOP}
import os, time
print(one(0))
while not os.path.exists("go"):
  time.sleep(0.01)
print(one(1))`));
    const [card] = await cards(tab, 1);
    assert.equal((await tab.decide(card, true, { ahead: 5 })).code, 'bad_request');
    assert.equal((await tab.decide(card, false, { ahead: { count: 1 } })).code, 'bad_request');
    await tab.decide(card, true, { ahead: { count: 5 } });
    const [told] = await tab.event('script:grants');
    const base = `http://127.0.0.1:${house.server.port}/api/sessions/${tab.session}`;
    const gone = await fetch(`${base}/grants/${told.grants[0].id}`, { method: 'DELETE' });
    assert.ok(gone.ok, `${gone.status} ${await gone.text()}`);
    assert.ok((await fetch(`${base}/files/content?path=go`, { method: 'PUT', body: 'x' })).ok);
    const [, again] = await cards(tab, 2);
    await tab.decide(again, false);
    assert.match((await ended(tab)).text, /ran\nno/);
  });
});
