// Legacy MCP sessions behind a balancer without stickiness: the official client
// talks to two replicas in turn and notices nothing; the one that has the
// session may die.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StreamableHTTPClientTransport as Http } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { fixtureServer } from '../lib/gateway.mjs';
import { client1 } from '../lib/mcp_talk.mjs';
import { balancer } from './balancer.mjs';
import { Replicas, STORES } from './replicas_kit.mjs';
import { until } from './server.mjs';

const text = (result) => result.content[0].text;
const token = (who) => `${who}-has-this-0123456789abcdef`;
const bearer = (who) => ({ authorization: `Bearer ${token(who)}` });
const both = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

/** Two replicas behind a balancer; fn gets them. */
async function pair(how, fn) {
  const all = await Replicas.start({ ...how, config: { mcpServers: { fixture: fixtureServer() }, ...how.config } });
  const front = await balancer(all.v.map((r) => r.server.port));
  const clients = [];
  /** A client through the balancer, whose session is at the first replica. */
  const connect = async (headers = {}, url = front.url) => {
    const c = client1();
    const transport = new Http(url, { requestInit: { headers } });
    clients.push(c.client);
    front.next(front.ports[0]);
    await c.client.connect(transport);
    await until(() => front.seen.some(([method, , status]) => method === 'GET' && status === 200), 'the GET stream');
    return { ...c, transport, id: transport.sessionId };
  };
  try {
    await fn({ all, front, connect });
  } finally {
    for (const c of clients) await c.close().catch(() => {});
    await front.close();
    await all.stop();
  }
}

/** The status of one request with that session id, at each port. */
async function statuses(ports, id, headers = {}, method = 'POST') {
  const got = [];
  for (const port of ports) {
    const stop = new AbortController();
    const answer = await fetch(`http://localhost:${port}/mcp`, {
      method,
      signal: stop.signal,
      headers: { ...both, 'mcp-session-id': id, ...headers },
      ...(method === 'POST' && { body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'ping' }) }),
    });
    got.push(answer.status);
    stop.abort();
  }
  return got;
}

for (const { name: store, skip } of STORES) {
  test(`${store}: a session goes on at whichever replica`, { skip }, async () => {
    await pair({ store }, async ({ front, connect }) => {
      const { client, call, on, id } = await connect();
      let changed = 0;
      on('notifications/tools/list_changed', () => { changed += 1; });
      for (let i = 0; i < 4; i++) assert.ok((await client.listTools()).tools.length > 5);
      for (let i = 0; i < 2; i++) {
        const progress = [];
        const done = await call({ name: 'test_tool_with_progress', arguments: {} }, { onprogress: (p) => progress.push(p.progress) });
        assert.ok(!done.isError);
        assert.deepEqual(progress, [0, 50, 100]);
        assert.match(text(await call({ name: 'test_elicitation', arguments: { message: 'who?' } })), /accept/);
      }
      // Big answers come piece by piece.
      const message = 'ü'.repeat(700_000);
      for (let i = 0; i < 2; i++) assert.ok(text(await call({ name: 'echo', arguments: { message } })).includes(message));
      await call({ name: 'test_trigger_tool_change', arguments: {} });
      await until(() => changed > 0, 'the change on the GET stream');
      const used = new Set(front.seen.map(([, port]) => port));
      assert.equal(used.size, 2, 'both replicas were asked');
      assert.deepEqual(front.seen.filter(([method, , status]) => method === 'POST' && status >= 400), []);
      assert.deepEqual(await statuses(front.ports, id), [200, 200]);
    });
  });

  test(`${store}: GET stream at the replica that has not the session`, { skip }, async () => {
    await pair({ store }, async ({ all, front, connect }) => {
      const { id, call } = await connect();
      const stop = new AbortController();
      const answer = await fetch(`http://localhost:${all.v[1].server.port}/mcp`, {
        headers: { accept: 'text/event-stream', 'mcp-session-id': id }, signal: stop.signal,
      });
      assert.equal(answer.status, 200);
      const heard = (async () => {
        let seen = '';
        for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
          seen += piece;
          if (seen.includes('tools/list_changed')) return true;
        }
        return false;
      })();
      await call({ name: 'test_trigger_tool_change', arguments: {} });
      assert.ok(await heard);
      stop.abort();
      assert.deepEqual(await statuses(front.ports, id), [200, 200]);
    });
  });

  test(`${store}: the replica that has the session is killed`, { skip }, async () => {
    await pair({ store }, async ({ all, front, connect }) => {
      const { client, call, id } = await connect();
      assert.ok((await client.listTools()).tools.length > 5);
      // Through the other one, so it can say what became of the call.
      front.next(front.ports[1]);
      const lost = call({ name: 'never', arguments: {} }, { timeout: 30_000 }).then(() => 'answered', (e) => e.message);
      await until(() => front.seen.filter(([m]) => m === 'POST').length >= 4, 'the call that never ends');
      await all.v[0].signal('SIGKILL');
      assert.match(await lost, /has ended/);
      // The next requests begin it again, all at once, under the same id.
      const lists = await Promise.all(Array.from({ length: 5 }, () => client.listTools()));
      assert.ok(lists.every(({ tools }) => tools.length > 5));
      assert.match(text(await call({ name: 'test_elicitation', arguments: { message: 'still?' } })), /accept/);
      assert.deepEqual(await statuses([front.ports[1]], id), [200]);
    });
  });

  test(`${store}: three replicas, and two of them end`, { skip }, async () => {
    await pair({ store, count: 3 }, async ({ all, front, connect }) => {
      const { client, id } = await connect();
      await all.v[0].signal('SIGKILL');
      await Promise.all(Array.from({ length: 6 }, () => client.listTools()));
      // One of the two has it now; the other passes requests on.
      assert.deepEqual(await statuses(front.ports.slice(1), id), [200, 200]);
      const holds = all.v.slice(1).filter((r) => r.server.log.includes('continues here'));
      assert.equal(holds.length, 1, 'one of them began it again');
      await holds[0].signal('SIGTERM');
      const left = all.v.find((r) => r.server.alive);
      assert.deepEqual(await statuses([left.server.port], id), [200]);
      assert.ok((await client.listTools()).tools.length > 5);
    });
  });

  test(`${store}: an ended session stays ended`, { skip }, async () => {
    await pair({ store }, async ({ all, front, connect }) => {
      const { id } = await connect();
      assert.deepEqual(await statuses([front.ports[1]], id, {}, 'DELETE'), [204]);
      assert.deepEqual(await statuses(front.ports, id), [404, 404]);
      assert.deepEqual(await statuses(front.ports, id, {}, 'GET'), [404, 404]);
      await all.v[0].signal('SIGKILL');
      assert.deepEqual(await statuses([front.ports[1]], id), [404], 'also when its replica is dead');
    });
  });

  test(`${store}: ids of others and forged ones`, { skip }, async () => {
    const config = { server: { token: token('operator'), tokens: { alice: token('alice'), bob: token('bob') } } };
    await pair({ store, headers: bearer('operator'), config }, async ({ all, front, connect }) => {
      const { id } = await connect(bearer('alice'));
      assert.deepEqual(await statuses(front.ports, id, bearer('alice')), [200, 200]);
      assert.deepEqual(await statuses(front.ports, id, bearer('bob')), [404, 404]);
      for (const at of [3, 60, id.length - 3]) {
        const forged = id.slice(0, at) + (id[at] === 'A' ? 'B' : 'A') + id.slice(at + 1);
        assert.deepEqual(await statuses(front.ports, forged, bearer('alice')), [404, 404], `changed at ${at}`);
      }
      // What only a replica may state means nothing here.
      const stated = Buffer.from(['1', 'alice', 'alice', '2', '', 'token', 'x', '', ''].join('\0')).toString('base64url');
      assert.deepEqual(await statuses(front.ports, id, { ...bearer('bob'), 'mo-relay': stated }), [404, 404]);
      assert.deepEqual(await statuses(front.ports, id, { 'mo-relay': stated }), [401, 401]);
      await all.v[0].signal('SIGKILL');
      assert.deepEqual(await statuses([front.ports[1]], id, bearer('bob')), [404]);
      assert.deepEqual(await statuses([front.ports[1]], id, bearer('alice')), [200]);
    });
  });

  test(`${store}: a held call is decided at the other replica`, { skip }, async () => {
    const config = {
      server: { token: token('operator'), tokens: { alice: token('alice'), bob: token('bob'), carol: { token: token('carol'), role: 'approver' } } },
      approvals: { timeoutSeconds: 600, rules: [{ tool: 'echo', args: { message: 'ask*' }, action: 'ask' }] },
    };
    await pair({ store, headers: bearer('operator'), config }, async ({ all, connect }) => {
      const api = async (n, who, path, body) => {
        const answer = await fetch(`http://localhost:${all.v[n].server.port}${path}`, {
          method: body ? 'POST' : 'GET',
          headers: { ...bearer(who), 'content-type': 'application/json' },
          ...(body && { body: JSON.stringify(body) }),
        });
        return { status: answer.status, body: await answer.json() };
      };
      const { call } = await connect(bearer('alice'));
      for (const approved of [true, false]) {
        const answer = call({ name: 'echo', arguments: { message: 'ask me' } });
        let held;
        await until(async () => {
          [held] = (await api(1, 'carol', '/api/approvals')).body.approvals;
          return held;
        }, 'the call in the list of the other replica');
        assert.equal((await api(0, 'carol', '/api/approvals')).body.approvals.length, 1, 'once');
        assert.deepEqual((await api(1, 'bob', '/api/approvals')).body.approvals, [], "not another person's");
        const at = `/api/approvals/${held.id}`;
        const says = { approved, digest: held.digest };
        assert.equal((await api(1, 'bob', at, says)).status, 403, 'who may is judged where it waits');
        assert.equal((await api(1, 'alice', at, { ...says, approved: true })).status, 403, 'her own client asked');
        assert.equal((await api(1, 'carol', at, { ...says, approved: true, digest: 'x' })).status, 409);
        assert.deepEqual((await api(1, 'carol', at, says)).status, 200);
        assert.equal((await api(1, 'carol', at, says)).status, 404, 'once');
        assert.equal(!(await answer).isError, approved);
      }
      const { body } = await api(1, 'operator', '/api/audit?limit=100');
      assert.ok(JSON.stringify(body).includes('"carol"'), 'the audit log names the person');
      assert.equal((await api(1, 'carol', '/api/approvals/none', { approved: false })).status, 404);
    });
  });
}
