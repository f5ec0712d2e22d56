// The Debian package under a real systemd: socket activation, reload, restart in
// the middle of turns, and boxes within the unit's restrictions.
import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { Tab, run as command } from '../it/talk_kit.mjs';
import { machine, released } from '../lib/package.mjs';
import { freePort } from '../lib/port.mjs';
import { Machine } from '../lib/systemd.mjs';

const SERVICE = 'mcp-orchestrator.service', SOCKET = 'mcp-orchestrator.socket';
const TOKEN = 'a-token-of-this-test-0123456789abcdef';

// Without cgroup v2 systemd gives the controllers to nobody but root.
const DELEGATE_V1 = `[Service]
ExecStartPre=+/bin/sh -c 'umask 022; for c in cpu memory pids; do \\
    cd /sys/fs/cgroup/$$c && for d in mcp.slice mcp-orchestrator.slice ${SERVICE}; do \\
    mkdir -p $$d && chmod 755 $$d && cd $$d || exit 1; done && \\
    chown mcp-orchestrator: . tasks cgroup.procs || exit 1; done'
`;

let dir, m, model, port, house;

const configure = (more = {}) => m.write('etc/mcp-orchestrator/mcp-orchestrator.json', JSON.stringify({
  server: { port, token: TOKEN }, llm: { provider: 'claude', model: 'claude-sonnet-5-5' },
  sandbox: { driver: 'native', warm: 0 }, ...more,
}));

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-systemd-'));
  m = await Machine.boot(dir);
  model = await claude({ key: 'sk-ant-0123456789' });
  port = await freePort();
  await copyFile(await released(new RegExp(`_${machine}\\.deb$`)), join(m.root, 'root/p.deb'));
  await m.do('dpkg', '-i', '/root/p.deb');
  await m.do('systemctl', 'disable', '--now', SERVICE);
  await configure();
  await m.write('etc/mcp-orchestrator/keys.env',
    `ANTHROPIC_API_KEY=${model.key}\nANTHROPIC_BASE_URL=${model.url}\n`, '600');
  await m.write(`etc/systemd/system/${SOCKET}.d/port.conf`, `[Socket]\nListenStream=\nListenStream=127.0.0.1:${port}\n`);
  if (m.groups.kind === 'v1') await m.write(`etc/systemd/system/${SERVICE}.d/v1.conf`, DELEGATE_V1);
  await m.do('systemctl', 'daemon-reload');
  house = { server: { port }, headers: { authorization: `Bearer ${TOKEN}` }, sessions: new Set() };
});
after(async () => {
  await m?.halt();
  await model?.close();
  await rm(dir, { recursive: true, force: true });
});

const get = (path) => fetch(`http://127.0.0.1:${port}${path}`, { headers: house.headers });
const ready = () => until(async () => (await get('/readyz')).status === 200, 'the server to be ready');
const audit = async () => (await (await get('/api/audit?limit=1000')).json()).rows.map((r) => r.what);

test('the first connection starts the service', async () => {
  await m.do('systemctl', 'enable', '--now', SOCKET);
  assert.equal(await m.show(SERVICE, 'ActiveState'), 'inactive');
  assert.equal((await get('/healthz')).status, 200);
  await until(async () => (await m.show(SERVICE, 'ActiveState')) === 'active', 'the service');
  await ready();
});

/** A turn with one approved command in the box of that tab. */
async function turn(tab, line) {
  const [cards, answers] = [tab.count('tool:approval_required'), tab.count('agent:response')];
  model.script.push({ calls: [command(line)] }, { text: 'seen' });
  await tab.say('look');
  const [card] = await tab.event('tool:approval_required', cards + 1);
  await tab.decide(card, true);
  await tab.event('agent:response', answers + 1);
  return lastResult();
}
const lastResult = () => JSON.parse(model.requests.at(-1).bytes.toString()).messages.at(-1).content
  .filter((b) => b.type === 'tool_result').map((b) => JSON.stringify(b.content)).join();

test('a tool runs in a box, within the restrictions of the unit', async (t) => {
  const [, level] = /exposure level for \S+: ([\d.]+)/.exec(await m.do('systemd-analyze', 'security', '--no-pager', SERVICE));
  t.diagnostic(`systemd-analyze security: ${level}`);
  assert.ok(Number(level) <= 4, level);
  const tab = new Tab(house);
  await tab.ready();
  assert.match(await turn(tab, 'echo in the box; id -u'), /in the box/);
  tab.close();
});

test('reload applies a changed configuration, and refuses an invalid one', async () => {
  const pid = await m.show(SERVICE, 'MainPID');
  await configure({ llm: { provider: 'claude', model: 'claude-sonnet-5-5', systemPrompt: 'Speak plainly.' }, server: { port, token: TOKEN, drainSeconds: 1 } });
  await m.do('systemctl', 'reload', SERVICE);
  await until(async () => /llm\.systemPrompt changed"/.test(await m.log(SERVICE)), 'a word in the journal');
  assert.match(await m.log(SERVICE), /server\.drainSeconds changed; it takes effect after a restart"/);
  await until(async () => (await audit()).some((r) => r.kind === 'config' && r.outcome === 'loaded' && r.waiting?.includes('server.drainSeconds')), 'the row');
  const tab = new Tab(house);
  await tab.ready();
  model.script.push({ text: 'plain' });
  await tab.say('hello');
  await tab.event('agent:response');
  assert.match(model.requests.at(-1).bytes.toString(), /Speak plainly\./);
  tab.close();

  await m.write('etc/mcp-orchestrator/mcp-orchestrator.json', '{"server": {"port": "many"}}');
  await m.do('systemctl', 'reload', SERVICE);
  await until(async () => /keeping the old configuration/.test(await m.log(SERVICE)), 'a word in the journal');
  await until(async () => (await audit()).some((r) => r.kind === 'config' && r.reason === 'invalid'), 'the row');
  assert.equal((await get('/healthz')).status, 200);
  assert.deepEqual([await m.show(SERVICE, 'ActiveState'), await m.show(SERVICE, 'MainPID')], ['active', pid]);
  await configure();
  await m.do('systemctl', 'reload', SERVICE);
});

/** What the model was told of the call whose command begins like that. */
function resultOf(begin) {
  for (const r of model.requests) {
    const blocks = (JSON.parse(r.bytes.toString() || '{}').messages ?? []).flatMap((x) => (Array.isArray(x.content) ? x.content : []));
    const call = blocks.find((b) => b.type === 'tool_use' && b.input.command?.startsWith(begin));
    const result = call && blocks.find((b) => b.type === 'tool_result' && b.tool_use_id === call.id);
    if (result) return result;
  }
}

const history = async (id) => ({ body: await (await get(`/api/sessions/${id}/history`)).text() });

/** Connects again and again until stop(): {made, refused}. */
function knock() {
  const seen = { made: 0, refused: [] };
  let on = true;
  const one = () => new Promise((resolve) => {
    const s = connect(port, '127.0.0.1');
    s.once('connect', () => { seen.made++; s.destroy(); resolve(); });
    s.once('error', (e) => { seen.refused.push(e.code); resolve(); });
  });
  const all = (async () => { while (on) { await one(); await sleep(5); } })();
  return { stop: async () => { on = false; await all; return seen; } };
}

/** Keepers of boxes: their pids, as this machine counts them. */
const keepers = async () => (await m.do('pgrep', '-u', 'mcp-orchestrator', '-f', 'mo-box')).trim().split('\n').sort();

/** None ended, none more; a look for killed ones (mo-box --sweep) may be at work. */
const sameBoxes = async (were) => {
  let now;
  await until(async () => {
    now = await keepers();
    return now.length === were.length;
  }, 'as many boxes as before').catch(() => {});
  assert.deepEqual(now, were);
};

test('a restart in the middle of turns loses none', async () => {
  await ready();
  const busy = new Tab(house), waiting = new Tab(house);
  await busy.ready();
  await waiting.ready();
  await turn(busy, 'echo mine >kept');
  await turn(waiting, 'echo yours >kept');
  const boxes = await keepers();

  model.script.push({ calls: [command('cat kept >>waited')] });
  await waiting.say('wait');
  const [card] = await waiting.event('tool:approval_required', 2);
  model.script.push({ calls: [command('echo begun >>times; sleep 3.25; echo finished; wc -l <times')] });
  await busy.say('work');
  const [work] = await busy.event('tool:approval_required', 2);
  model.script.push({ text: 'the work is done' });
  await busy.decide(work, true);
  await until(async () => (await m.try('pgrep', '-f', '^sleep 3.25')).code === 0, 'the tool to run');

  const pid = await m.show(SERVICE, 'MainPID');
  const door = knock();
  await m.do('systemctl', 'restart', SERVICE);
  const now = await m.show(SERVICE, 'MainPID');
  await ready();
  const seen = await door.stop();
  assert.deepEqual(seen.refused, []);
  assert.ok(seen.made > 0);
  assert.notEqual(now, pid);
  await sameBoxes(boxes);

  // the one that worked
  const again = new Tab(house, { session: busy.session });
  await again.ready();
  let result;
  await until(() => (result = resultOf('echo begun')), 'the result of the work');
  assert.match(JSON.stringify(result.content), /finished.*1/s);
  const { body } = await history(busy.session);
  assert.match(body, /the work is done/);
  assert.match(await turn(again, 'cat kept; wc -l <times'), /mine.*1/s);
  // the one that waited
  const later = new Tab(house, { session: waiting.session });
  const [pending] = (await later.ready()).history.pending;
  assert.equal(pending.callId, card.callId);
  model.script.push({ text: 'it was waited for' });
  await later.decide(pending, true);
  await later.event('agent:response');
  assert.match(await turn(later, 'cat waited'), /yours/);
  await sameBoxes(boxes);
  again.close();
  later.close();
});
