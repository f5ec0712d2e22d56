// What `gateway --record` writes, and `replay` as a server made of it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Place, bin, fixtureServer, published } from '../lib/gateway.mjs';
import { client1, client2, text } from '../lib/mcp_talk.mjs';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';

const secret = 'quo"ted-\\secret-0815';
const place = new Place({
  fixture: fixtureServer(),
  everything: { ...published('server-everything'), env: { TOKEN: '${secret:token}' } },
});
const file = join(place.dir, 'talk.jsonl');
after(() => place.close());

const cli = (...args) => spawnSync(bin, args, { env: place.env, encoding: 'utf8', cwd: place.dir });
const rows = () => readFileSync(file, 'utf8').trim().split('\n').map((l) => JSON.parse(l));

/** Everything a server can say during a call: text, progress, logs, questions. */
async function talk(it) {
  const progress = [];
  const said = [];
  for (const [name, args] of [
    ['fixture_echo', { message: 'one' }],
    ['fixture_echo', { message: 'zwei — 2' }],
    ['test_elicitation', { message: 'who?' }],
    ['test_tool_with_progress', {}],
    ['everything_echo', { message: 'and you' }],
  ])
    said.push(text(await it.call({ name, arguments: args }, { onprogress: (p) => progress.push(p) })));
  return { said, progress };
}

describe('a recording', () => {
  let first;

  test('is written, without the secrets that are known', async (t) => {
    const set = spawnSync(bin, ['secrets', 'set', 'token', '--config', place.file],
      { env: place.env, input: secret, encoding: 'utf8' });
    assert.equal(set.status, 0, set.stderr);
    const it = client1();
    t.after(() => it.client.close());
    await it.client.connect(new Stdio1(place.command('--record', file)));
    first = await talk(it);
    assert.ok(first.progress.length >= 3);
    // What the child shows of its environment crosses us: the client gets it.
    const env = text(await it.call({ name: 'get-env', arguments: {} }));
    assert.ok(env.includes('TOKEN'));
    await it.client.close();
    const raw = readFileSync(file, 'utf8');
    assert.ok(!raw.includes(JSON.stringify(secret).slice(1, -1)));
    assert.ok(!raw.includes('secret-0815'));
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const [head, ...all] = rows();
    assert.equal(head.recording, 1);
    assert.deepEqual([...new Set(all.map((r) => r.server))].sort(), ['everything', 'fixture']);
    assert.ok(all.some((r) => r.to === 'server' && r.message.params?.arguments?.message === 'zwei — 2'));
  });

  test('is not written over another file', () => {
    const r = cli('gateway', '--config', place.file, '--record', file);
    assert.equal(r.status, 1);
    assert.match(r.stderr, /talk\.jsonl.*File exists/);
  });

  const kinds = [
    ['sdk 1.x', () => client1(), (c) => new Stdio1(c)],
    ['client 2.x auto', () => client2('auto'), (c) => new Stdio2(c)],
  ];
  for (const [name, make, transport] of kinds)
    test(`plays both servers again: ${name}`, async () => {
      const again = new Place(Object.fromEntries(['fixture', 'everything'].map((server) =>
        [server, { command: bin, args: ['replay', file, '--server', server] }])));
      const it = make();
      try {
        await it.client.connect(transport(again.command()));
        const second = await talk(it);
        assert.deepEqual(second.said, first.said);
        const r = await it.call({ name: 'fixture_echo', arguments: { message: 'never said' } })
          .catch((e) => e);
        assert.match(String(r.message ?? text(r)), /nothing was recorded for these params/);
      } finally {
        await it.client.close();
        again.close();
      }
    });

  test('has what came before an answer, under the token of now', () => {
    const call = rows().find((r) => r.message?.params?.name === 'test_tool_with_progress').message;
    const params = { ...call.params, _meta: { ...call.params._meta, progressToken: 'mine' } };
    const r = spawnSync(bin, ['replay', file, '--server', 'fixture'], {
      env: place.env, encoding: 'utf8', input: `${JSON.stringify({ ...call, id: 'x', params })}\n`,
    });
    const lines = r.stdout.trim().split('\n').map((l) => JSON.parse(l));
    const told = lines.filter((l) => l.method === 'notifications/progress').map((l) => l.params);
    assert.deepEqual(told.map((p) => p.progress), first.progress.slice(-told.length).map((p) => p.progress));
    assert.ok(told.length >= 3 && told.every((p) => p.progressToken === 'mine'));
    assert.equal(lines.at(-1).id, 'x');
    assert.ok(lines.at(-1).result.content.length);
  });

  test('with a torn last line is played without it', () => {
    const torn = join(place.dir, 'torn.jsonl');
    writeFileSync(torn, readFileSync(file, 'utf8').slice(0, -20));
    const ask = '{"jsonrpc":"2.0","id":7,"method":"ping"}\n';
    const r = spawnSync(bin, ['replay', torn, '--server', 'fixture'],
      { env: place.env, input: ask, encoding: 'utf8' });
    assert.equal(r.status, 0, r.stderr);
    assert.deepEqual(JSON.parse(r.stdout), { jsonrpc: '2.0', id: 7, result: {} });
  });

  test('says what is wrong with it', () => {
    const none = join(place.dir, 'none.jsonl');
    writeFileSync(none, '{"recording":1}\n{"ms":1}\n');
    const table = [
      [['replay', file], /several servers .*fixture/],
      [['replay', file, '--server', 'nobody'], /no server 'nobody'/],
      [['replay', place.file, '--server', 'fixture'], /no recording/],
      [['replay', none], /line 2: not a line of a recording/],
      [['replay', join(place.dir, 'missing')], /missing/],
    ];
    for (const [args, why] of table) {
      const r = cli(...args);
      assert.equal(r.status, 1, args.join(' '));
      assert.match(r.stderr, why);
    }
  });
});
