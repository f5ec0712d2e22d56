// Requests of the HTTP API about a conversation that is open at another server:
// with the same directory, and with one each, where they meet at the cluster's
// port.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { missing as noRedis } from '../lib/redis.mjs';
import { Replicas } from './replicas_kit.mjs';
import { until } from './server.mjs';
import { run, write } from './talk_kit.mjs';

const EVERYTHING = fileURLToPath(new URL('../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url));
const APPS = fileURLToPath(new URL('apps_server.mjs', import.meta.url));
const large = join(await mkdtemp(join(tmpdir(), 'mo-large-')), 'large.html');
await writeFile(large, `<p>${'"\n'.repeat(3 * 1024 * 1024)}`); // twice as long in JSON
after(() => rm(dirname(large), { recursive: true }));
const URI = 'ui://app/view';
const token = (who) => `${who}-has-this-0123456789abcdef`;
const headers = (who) => ({ authorization: `Bearer ${token(who)}` });
const config = {
  llm: { provider: 'claude', model: 'claude-sonnet-5-5', tools: 'all' },
  server: { token: token('operator'), tokens: { alice: token('alice'), bob: token('bob'), carl: token('carl') } },
  mcpServers: {
    everything: { command: process.execPath, args: [EVERYTHING] },
    apps: { command: process.execPath, args: [APPS], env: { MO_NAME: 'apps' } },
    large: { command: process.execPath, args: [APPS, large], env: { MO_NAME: 'large' } },
  },
  approvals: { rules: [{ server: 'box', tool: 'write_file', action: 'ask', approvers: ['bob'] }] },
  sandbox: { driver: 'native', warm: 0, network: { allow: ['192.0.2.2:1'] } },
};

const PLACES = [
  { name: 'on one machine', skip: false, store: 'sqlite' },
  { name: 'on another machine', skip: noRedis, store: 'redis', far: true },
];

for (const { name, skip, ...how } of PLACES)
  describe(`a conversation is open at another server, ${name}`, { skip }, () => {
    let all, tab;
    before(async () => {
      all = await Replicas.start({ ...how, headers: headers('operator'), config });
      tab = all.v[0].tab({ headers: headers('alice') });
      await tab.ready();
    });
    after(async () => {
      for (const r of all.v) {
        r.server.fresh.fds += 48; // the MCP servers stay open for the next
        r.server.fresh.children += 4;
      }
      await all.stop();
    });

    /** A request to the n-th server. */
    async function send(n, who, method, what, body, session = tab.session) {
      const answer = await fetch(`http://127.0.0.1:${all.v[n].server.port}/api/sessions/${session}${what}`, {
        method, headers: { ...headers(who), ...(body && { 'content-type': 'application/json' }) }, body: body && JSON.stringify(body),
      });
      const text = await answer.text();
      return { status: answer.status, type: answer.headers.get('content-type'), body: text && JSON.parse(text) };
    }
    const there = (...how) => send(1, ...how);

    const STRANGER = { title: 'not yours' };

    test('its title, for all who have it open', async () => {
      const { status, body } = await there('alice', 'PATCH', '', { title: 'from afar', pinned: true });
      assert.deepEqual([status, body], [200, { ok: true }]);
      const about = await tab.event('session:about');
      assert.equal(about[0].title, 'from afar');
      for (const n of [0, 1]) assert.equal((await send(n, 'alice', 'GET', '')).body.title, 'from afar');
      assert.equal((await there('operator', 'PATCH', '', { pinned: false })).status, 200);
      assert.equal((await there('alice', 'PATCH', '', { title: 1 })).status, 400, 'a refusal comes back, too');
    });

    test('prompts, resources, completions and tools', async () => {
      const { body } = await there('alice', 'GET', '/offers');
      assert.deepEqual(body, (await send(0, 'alice', 'GET', '/offers')).body);
      const prompt = body.prompts.find((p) => p.id.includes('args-prompt'));
      const got = await there('alice', 'POST', '/prompt', { name: prompt.id, arguments: { city: 'Oslo' } });
      assert.equal(got.status, 200);
      assert.match(JSON.stringify(got.body.messages), /Oslo/);
      assert.equal((await there('alice', 'POST', '/prompt', { name: prompt.id })).body.code, 'server_refused');
      const read = await there('alice', 'POST', '/resource', { uri: body.resources[0].id });
      assert.ok(read.body.contents[0].text.length > 0);
      const completable = body.prompts.find((p) => p.id.includes('completable'));
      const values = await there('alice', 'POST', '/complete', { ref: { type: 'ref/prompt', name: completable.id }, argument: { name: 'department', value: 'E' } });
      assert.ok(values.body.completion.values.includes('Engineering'));

      const offered = () => all.model.requests.at(-1).body.tools.map((t) => t.name).filter((n) => n.startsWith('everything'));
      for (const [off, some] of [[[{ server: 'everything' }], false], [[], true]]) {
        assert.equal((await there('alice', 'PUT', '/tools', { off })).status, 200);
        all.model.script.push({ text: 'seen' });
        const answers = tab.count('agent:response');
        await tab.say('look');
        await tab.event('agent:response', answers + 1);
        assert.equal(offered().length > 0, some);
      }
    });

    test('apps: a page, and a call that is asked about and runs once', async () => {
      const app = { server: 'apps', app: URI };
      const page = await there('alice', 'POST', '/apps/resource', { ...app, uri: URI });
      assert.equal(page.body.result.contents[0].text, '<p>apps');
      const big = await there('alice', 'POST', '/apps/resource', { server: 'large', app: URI, uri: URI });
      assert.equal(big.body.result.contents[0].text, await readFile(large, 'utf8'), 'over the queue of a connection');
      const note = { ...app, tool: 'note', arguments: { text: 'milk' } };
      const { body: card } = await there('alice', 'POST', '/apps/call', note);
      assert.equal(card.state, 'ask');
      const { body: done } = await there('alice', 'POST', '/apps/call', { ...note, digest: card.digest });
      assert.equal(done.result.content[0].text, 'noted 1: milk');
    });

    test('the hosts that its box talked to', { skip: !existsSync('/usr/bin/curl') && 'needs /usr/bin/curl' }, async () => {
      all.model.script.push({ calls: [run('curl -sS http://192.0.2.1:1/; true')] }, { text: 'seen' });
      await tab.say('look');
      const [card] = await tab.event('tool:approval_required');
      await tab.decide(card, true);
      await until(async () => (await there('alice', 'GET', '/connections')).body.connections.length > 0, 'a line');
      assert.equal((await there('alice', 'GET', '/connections')).body.connections[0].host, '192.0.2.1');
    });

    test('its calls that others approve are listed and decided at either', async () => {
      const approvals = async (n, who, id, body) => {
        const answer = await fetch(`http://127.0.0.1:${all.v[n].server.port}/api/approvals${id ? `/${id}` : ''}`, {
          headers: { ...headers(who), 'content-type': 'application/json' }, ...(body && { method: 'POST', body: JSON.stringify(body) }) });
        return { status: answer.status, body: await answer.json() };
      };
      all.model.script.push({ calls: [write('a.txt', 'hello')] }, { text: 'written' });
      const answers = tab.count('agent:response');
      await tab.say('write');
      let lists;
      await until(async () => {
        lists = await Promise.all([0, 1].map(async (n) => (await approvals(n, 'bob')).body.approvals));
        return lists.every((list) => list.length > 0);
      }, 'the call');
      assert.deepEqual(lists[1], lists[0]);
      const [call] = lists[1];
      assert.deepEqual([call.tool, call.conversation, call.owner], ['write_file', tab.session, 'alice']);
      const yes = { approved: true, digest: call.digest };
      assert.deepEqual((await approvals(1, 'carl')).body.approvals, []);
      assert.equal((await approvals(1, 'carl', call.id, yes)).status, 404);
      assert.equal((await approvals(1, 'alice')).body.approvals.length, 1, 'her own');
      assert.equal((await approvals(1, 'alice', call.id, yes)).status, 403, 'she asked for it');
      assert.equal((await approvals(1, 'bob', call.id, yes)).status, 200);
      await tab.event('agent:response', answers + 1);
      assert.equal((await approvals(1, 'bob')).body.approvals.length, 0);
    });

    test('another person gets the same answers through either server', async () => {
      const asked = [
        ['PATCH', '', STRANGER], ['GET', '/offers'], ['POST', '/prompt', { name: 'x' }], ['POST', '/resource', { uri: 'x://y' }],
        ['POST', '/complete', { ref: {}, argument: {} }], ['PUT', '/tools', { off: [] }], ['GET', '/connections'],
        ['POST', '/apps/resource', { server: 'apps', app: URI, uri: URI }], ['DELETE', ''], ['DELETE', '?forget=true'],
      ];
      for (const how of asked) {
        const [direct, passed] = [await send(0, 'bob', ...how), await there('bob', ...how)];
        assert.equal(passed.status, 404, `${how}`);
        assert.deepEqual(passed, direct, `${how}`);
        const [method, what, body] = how;
        const none = await send(1, 'bob', method, what, body, 'nobody-has-this');
        assert.deepEqual(none.body, passed.body, `${how}: as one that does not exist`);
      }
      assert.equal((await send(0, 'alice', 'GET', '')).body.title, 'from afar');
      assert.equal(tab.count('(disconnect)'), 0);
      // The header by which servers name a person means nothing at the port.
      const facts = Buffer.from(['1', 'alice', 'alice', '2', '', 'token', '127.0.0.1', ''].map((t) => `${t}\0`).join('')).toString('base64url');
      const forged = await fetch(`http://127.0.0.1:${all.v[1].server.port}/api/sessions/${tab.session}`, {
        method: 'PATCH', headers: { ...headers('bob'), 'mo-relay': facts, 'content-type': 'application/json' }, body: JSON.stringify(STRANGER) });
      assert.equal(forged.status, 404);
    });

    test('it is open nowhere: the server that is asked does it', async () => {
      const other = all.v[0].tab({ headers: headers('alice') });
      await other.ready();
      all.model.script.push({ text: 'heard' });
      await other.say('hello');
      await other.event('agent:response');
      other.close();
      await until(async () => (await send(1, 'alice', 'PATCH', '', { title: 'asleep' }, other.session)).status === 200, 'the change');
      assert.equal((await send(0, 'alice', 'GET', '', undefined, other.session)).body.title, 'asleep');
      assert.equal((await send(1, 'alice', 'PUT', '/tools', { off: [] }, other.session)).status, 409);
      assert.equal((await send(1, 'alice', 'DELETE', '', undefined, other.session)).status, 200);
    });

    test('its end', async () => {
      assert.equal((await there('alice', 'DELETE', '')).status, 200);
      assert.deepEqual(await tab.event('session:closed'), [{ reason: 'killed' }]);
    });

    test('the server that has it is killed: the other one does it', async () => {
      const last = all.v[0].tab({ headers: headers('alice') });
      await last.ready();
      await all.v[0].signal('SIGKILL');
      const answers = [];
      await until(async () => answers.push((await send(1, 'alice', 'PATCH', '', { title: 'alone' }, last.session)).status) && answers.at(-1) === 200, 'the change', 40_000);
      assert.deepEqual(answers.filter((s) => ![200, 409, 503].includes(s)), []);
    });
  });
