// Our death while a script runs: nothing of it runs twice, and what nobody
// knows is said, about the script and about each of its calls.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { until, within } from './server.mjs';
import { House } from './talk_kit.mjs';

const CODE = `
import tools
tools.execute_command(command="echo ran >> ran")
print(tools.read_file(path="ran"))`;

/** Points of the first call of the script; state: of that call afterwards. The
 *  script's own call passes "running" first. */
const POINTS = [
  { at: 'nested', state: undefined, ran: 0 }, // it is not stored
  { at: 'deciding', state: 'rejected', ran: 0 }, // the yes is not written
  { at: 'running:2', state: 'unknown', ran: 0 },
  { at: 'outcome', state: 'unknown', ran: 1 },
];

/** Says yes to every card. */
function approve(tab) {
  tab.event('tool:approval_required').then(([card]) => tab.socket.emit('tool:approval',
    { callId: card.callId, approved: true, digest: card.digest }), () => {});
}

for (const point of POINTS)
  test(`at ${point.at}`, async () => {
    // Leaks are looked for in it/talk; here it would take most of the time.
    const house = await House.start({
      env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
      config: { approvals: { rules: [{ tool: 'run_script', action: 'allow' }] } },
    });
    try {
      await house.server.stop();
      await house.up(['--test-crash', point.at]);
      house.model.script.push({ calls: [{ name: 'run_script', args: { language: 'python', code: CODE } }] }, { text: 'never' });
      const tab = house.tab();
      await tab.ready();
      approve(tab);
      tab.socket.emit('message', 'do it');
      await within(house.server.exit, `the end at ${point.at}`, 30_000);
      assert.equal(house.server.ended.signal, 'SIGKILL');
      await until(() => tab.count('(disconnect)'), 'the disconnect');
      house.model.script.length = 0;

      await house.up();
      house.model.script.push({ text: 'I see.' });
      const back = house.tab({ session: tab.session });
      const { history } = await back.ready();
      assert.deepEqual(history.pending, [], 'nobody is asked for a script that is gone');
      await until(async () => {
        const { body } = await house.get(`/api/sessions/${tab.session}/history`);
        return body.messages.at(-1)?.role === 'assistant' && body.messages.some((m) => m.role === 'tool');
      }, 'the end of the turn');
      const { body } = await house.get(`/api/sessions/${tab.session}/history`);
      const entry = body.messages.find((m) => m.role === 'tool');
      assert.deepEqual(entry.results.map((r) => [r.state, r.isError]), [['unknown', true]]);
      const told = JSON.stringify(entry.results);
      assert.match(told, /Whether it had an effect is unknown; it was not run again/);
      const calls = entry.scripts?.[0].calls ?? [];
      assert.deepEqual(calls.map((c) => c.state), point.state ? [point.state] : []);
      if (point.state === 'unknown') assert.match(told, /the outcome of 1 is unknown, 0 waited/);
      if (point.state === 'rejected') assert.match(told, /the outcome of 0 is unknown, 1 waited/);
      const rows = (await house.audit(tab.session)).filter((r) => r.script && r.content);
      assert.ok(rows.length <= 1, `${rows.length} outcomes of one call`);
      // Side effects: as many as were approved and sent, never more.
      const ran = Number(await house.inBox(back, 'cat ran 2>/dev/null | wc -l'));
      assert.ok(ran <= 1 && ran >= point.ran, `ran ${ran} times`);
      if (point.at !== 'outcome') assert.equal(ran, 0);
    } finally {
      await house.stop();
    }
  });
