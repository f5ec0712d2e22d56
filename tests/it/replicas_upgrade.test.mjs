// Replicas are replaced one after the other behind a balancer that looks at
// /readyz. Tabs with the published Socket.IO client move by themselves, a turn
// and a card go on at the other replica, nothing is lost and nothing is there
// twice.
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';

import { io } from 'socket.io-client';

import { until, within } from './server.mjs';
import { Replicas, STORES, messages } from './replicas_kit.mjs';
import { run } from './talk_kit.mjs';

const env = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };
const TEXT = 'one two three four five six seven eight nine ten';

/** A balancer of connections: each goes to the first server that is ready. */
async function balancer(servers) {
  const open = new Set();
  const ready = async (port) => {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    return answer?.status === 200;
  };
  const server = net.createServer(async (from) => {
    open.add(from);
    from.on('error', () => {}).on('close', () => open.delete(from));
    for (const s of servers()) {
      if (!(await ready(s.port))) continue;
      const to = net.connect(s.port, '127.0.0.1');
      to.on('error', () => from.destroy()).on('close', () => from.destroy());
      from.on('close', () => to.destroy());
      from.pipe(to).pipe(from);
      return;
    }
    from.destroy();
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => { for (const s of open) s.destroy(); server.close(); },
  };
}

/** A tab as the page has it: it reconnects with the client's own rules. */
function tabAt(url, session) {
  const events = [];
  const socket = io(url, { query: { sessionId: session }, transports: ['websocket'], forceNew: true,
    reconnectionDelay: 50, reconnectionDelayMax: 200 });
  socket.onAny((...e) => events.push(e));
  socket.on('disconnect', (why) => events.push(['(disconnect)', why]));
  const count = (name) => events.filter(([e]) => e === name).length;
  return {
    socket, events, count,
    event: async (name, n = 1) => {
      await until(() => count(name) >= n, `${name} #${n}; got ${events.map(([e]) => e)}`);
      return events.filter(([e]) => e === name)[n - 1].slice(1);
    },
  };
}

async function begin(store, drainSeconds) {
  const all = await Replicas.start({ store, env, config: { server: { drainSeconds } } });
  const way = await balancer(() => all.v.map((r) => r.server));
  const session = `s-up-${process.pid}-${store}-${Math.random().toString(36).slice(2)}`;
  all.sessions.add(session);
  return { all, way, session };
}

const said = (list, role) => list.filter((m) => m.role === role).flatMap((m) => m.blocks ?? []).filter((b) => b.text).map((b) => b.text);

for (const { name: store, skip } of STORES) {
  test(`${store}: not ready first, then connections end`, { skip }, async () => {
    const { all, way, session } = await begin(store, 600);
    const tab = tabAt(way.url, session);
    const [a] = all.v;
    try {
      await tab.event('session:history');
      assert.equal((await a.get('/readyz')).status, 200);
      a.server.signal('SIGTERM');
      await until(async () => (await a.get('/readyz')).status === 503, 'it is not ready');
      assert.match(JSON.stringify((await a.get('/readyz')).body), /shutting down/);
      // it still serves
      assert.equal(tab.count('(disconnect)'), 0);
      assert.equal((await a.get('/api/sessions')).status, 200);
      a.server.signal('SIGTERM'); // now
      await within(a.server.exit, 'its end', 30_000);
      const [why] = await tab.event('(disconnect)');
      assert.match(why, /^transport/, 'the client reconnects after this one');
      await tab.event('session:history', 2);
      all.model.script.push({ text: 'hello again' });
      assert.equal((await within(tab.socket.emitWithAck('message', 'hi'), 'the answer')).ok, true);
      await until(async () => said(await messages(all.v[1], session), 'assistant').includes('hello again'), 'the reply');
    } finally {
      tab.socket.close();
      way.stop();
      all.v[1].server.child.kill('SIGTERM'); // it drains; stop() sends the second one
      await all.stop();
    }
  });

  test(`${store}: both are replaced; a turn and a card go on`, { skip }, async () => {
    const { all, way, session } = await begin(store, 1);
    const tabs = [tabAt(way.url, session), tabAt(way.url, session)];
    const [tab] = tabs;
    try {
      for (const t of tabs) await t.event('session:history');
      // a card waits
      all.model.next = function () {
        const last = JSON.stringify(JSON.parse(this.requests.at(-1).bytes).messages.at(-1).content);
        if (/tool_result/.test(last)) return { text: `done ${TEXT}` };
        return { text: 'Let me.', calls: [run('echo ran >> ran; cat ran')] };
      };
      assert.equal((await within(tab.socket.emitWithAck('message', 'do it'), 'the answer')).ok, true);
      const [card] = await tab.event('tool:approval_required');

      const [a] = all.v;
      a.server.signal('SIGTERM');
      await within(a.server.exit, 'the end of the first', 30_000);
      for (const t of tabs) {
        const [history] = await t.event('session:history', 2);
        assert.deepEqual(history.pending.map((p) => p.callId), [card.callId], 'the card waits there');
      }
      await a.up(); // the new version of the first one
      const b = all.v[1];
      b.server.signal('SIGTERM');
      await within(b.server.exit, 'the end of the second', 30_000);
      const [history] = await tab.event('session:history', 3);
      const [pending] = history.pending;
      const yes = await within(tab.socket.emitWithAck('tool:approval',
        { callId: pending.callId, approved: true, digest: pending.digest }), 'the decision');
      assert.equal(yes.ok, true, JSON.stringify(yes));
      await until(async () => said(await messages(a, session), 'assistant').some((t) => t.startsWith('done')), 'the end of the turn');

      const list = await messages(a, session);
      assert.deepEqual(said(list, 'user'), ['do it']);
      assert.deepEqual(said(list, 'assistant'), ['Let me.', `done ${TEXT}`]);
      assert.match(JSON.stringify(list.flatMap((m) => m.results ?? [])), /"ran\\n?"/, 'it ran once');
      for (const t of tabs) assert.equal(t.count('(disconnect)'), 2);
    } finally {
      for (const t of tabs) t.socket.close();
      way.stop();
      await all.stop();
    }
  });
}
