// Servers that are slow, hang, are still being installed or list nonsense: the
// first list waits for them, later lists do not, and each says why.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Place, published, script } from '../lib/gateway.mjs';
import { client1, client2 } from '../lib/mcp_talk.mjs';
import { Moody, until } from '../lib/moody.mjs';
import { Server } from './server.mjs';

const WHY = 'mcp-orchestrator/unavailable';

/** A list, and how often its client was told that it waits, and for whom. */
async function listed(client) {
  const told = [];
  const started = performance.now();
  const list = await client.listTools({}, { onprogress: ({ message }) => told.push(message), resetTimeoutOnProgress: true });
  return { names: list.tools.map((x) => x.name), why: list._meta?.[WHY] ?? {}, told, ms: performance.now() - started };
}

test('a server that hangs delays the first list only', async (t) => {
  const m = new Moody(t, { good: {}, hangs: { startTimeoutMs: 60_000 } });
  m.mood('hangs', 'no-init');
  const { client } = await m.open(t);
  const first = await listed(client);
  assert.equal(first.names.length, 3);
  assert.ok(first.told.length > 2, `told ${first.told}`);
  assert.ok(first.told.every((x) => x === 'waiting for hangs'), first.told.join());
  assert.match(first.why.hangs, /has not answered yet/);
  for (let i = 0; i < 20; i++) {
    const again = await listed(client);
    assert.deepEqual(again.told, [], 'a later list waits, too');
    assert.match(again.why.hangs, /has not answered yet/);
  }
  // The next gateway knows that it was late, and waits for a shorter time.
  await client.close();
  const next = await m.open(t);
  assert.ok((await listed(next.client)).told.length < first.told.length / 2);
});

/** `npx` of tests/it/npx.mjs in front of the others in PATH. */
function withNpx(t, more = {}) {
  const m = new Moody(t, { good: {} });
  const dir = m.place.dir;
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'npx'), `#!/bin/sh\nexec ${process.execPath} ${fileURLToPath(new URL('npx.mjs', import.meta.url))} "$@"\n`, { mode: 0o755 });
  const big = {
    command: 'npx', args: [dir, 'big'], env: { PATH: `${bin}:${process.env.PATH}` }, startTimeoutMs: 4000, ...more,
  };
  m.place.write({ ...m.servers, big }, { gateway: { prefix: 'always' } });
  return { m, file: (name) => join(dir, name), go: () => writeFileSync(join(dir, 'go'), '') };
}

test('installing takes longer than a start may, and the list waits for it', async (t) => {
  const { m, go } = withNpx(t);
  const { client } = await m.open(t);
  const told = [];
  const list = await client.listTools({}, {
    onprogress: ({ message }) => {
      told.push(message);
      if (told.length === 6) go(); // one a second: longer than a start may take
    },
  });
  assert.deepEqual(list.tools.map((x) => x.name).sort(), ['big_look', 'big_set', 'big_work', 'good_look', 'good_set', 'good_work']);
  assert.match(told[2], /big \(installing\)/);
});

test('two npx of one package take turns, in two gateways, too', async (t) => {
  const { m, file, go } = withNpx(t);
  const { big, ...others } = JSON.parse(readFileSync(m.place.file, 'utf8')).mcpServers;
  m.place.write({ ...others, big, twin: big }, { gateway: { prefix: 'always' } });
  let seconds = 0;
  const lists = await Promise.all([1, 2].map(async () => {
    const { client } = await m.open(t);
    return client.listTools({}, {
      onprogress: () => {
        if (++seconds === 12) go(); // two clients, one a second each
      },
    });
  }));
  for (const { tools } of lists)
    assert.deepEqual(tools.map((x) => x.name).sort(), [
      'big_look', 'big_set', 'big_work', 'good_look', 'good_set', 'good_work', 'twin_look', 'twin_set', 'twin_work']);
  assert.equal(readFileSync(file('installs'), 'utf8'), 'begins\nis done\n'.repeat(4));
});

test('installing has a state, its last lines, and a limit', async (t) => {
  const { m } = withNpx(t, { installTimeoutMs: 8000 });
  const serve = await Server.start(['--config', m.place.file], { dir: m.place.dir, env: m.place.env, house: true });
  t.after(() => serve.child.kill('SIGKILL'));
  const { client } = client1();
  await client.connect(new Http1(new URL('/mcp', serve.url)));
  t.after(() => client.close());
  const state = async () => (await (await fetch(`${serve.url}/api/mcp/big`)).json());
  const first = client.listTools();
  let seen;
  await until(async () => (seen = await state()).state === 'installing' && seen.stderr, 'installing');
  assert.match(seen.stderr, /npm http fetch GET 200/);
  await first;
  await until(async () => (seen = await state()).state === 'failed', 'its end');
  assert.match(seen.error, /not installed within 8 s \(installTimeoutMs\)/);
});

test('an installation is asked to stop, and may clean up', async (t) => {
  const { m, file } = withNpx(t);
  const { client } = await m.open(t);
  const told = new Promise((resolve) => client.listTools({}, { onprogress: resolve }).catch(() => {}));
  await told;
  await client.close();
  await until(() => existsSync(file('rolled-back')), 'the roll-back');
});

const sdks = [
  ['SDK 1', () => client1(), Stdio1],
  ['SDK 2, legacy', () => client2('legacy'), Stdio2],
  ['SDK 2, modern', () => client2('auto'), Stdio2],
];

for (const [name, make, Stdio] of sdks)
  test(`${name}: gitlab, filesystem and memory, every tool`, async (t) => {
    const place = new Place({});
    t.after(() => place.close());
    const servers = {
      gitlab: { ...published('server-gitlab'), env: { GITLAB_PERSONAL_ACCESS_TOKEN: 'none' } },
      files: published('server-filesystem', place.dir),
      memory: { ...published('server-memory'), env: { MEMORY_FILE_PATH: join(place.dir, 'memory.json') } },
    };
    place.write(servers);
    const { client } = make();
    await client.connect(new Stdio({ ...place.command(), stderr: 'ignore' }));
    t.after(() => client.close());
    let names;
    await until(async () => {
      names = (await client.listTools()).tools.map((x) => x.name);
      return ['create_merge_request', 'push_files', 'read_text_file', 'create_entities'].every((x) => names.includes(x));
    }, 'the tools of all three');
    assert.equal(names.length, new Set(names).size);
    t.diagnostic(`${names.length} tools`);
  });

test('a hanging, a slow, a malformed and a crashing server beside 20 good ones', async (t) => {
  const good = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`good${i}`, {}]));
  const timed = async (client, n) => {
    const all = [];
    for (let i = 0; i < n; i++) all.push(await listed(client));
    return { all, ms: all.map((x) => x.ms).sort((a, b) => a - b)[n >> 1] };
  };
  const alone = new Moody(t, good);
  const plain = await alone.open(t);
  await until(async () => (await plain.tools()).length === 60, 'the good ones');
  const normal = await timed(plain.client, 20);
  await plain.client.close();

  const m = new Moody(t, { ...good, hanging: { startTimeoutMs: 60_000 }, slow: {}, malformed: {}, crashing: {} });
  const odd = join(m.place.dir, 'odd.json');
  const string = { type: 'string' };
  writeFileSync(odd, JSON.stringify({
    'tools/list': { tools: [{ name: 'mended' }, { name: 'never', inputSchema: string }, 7] },
  }));
  const malformed = script('odd.mjs', odd);
  m.place.write({ ...m.servers, malformed }, { gateway: { prefix: 'always' } });
  m.place.legacy(...Object.values(m.servers), malformed);
  m.mood('hanging', 'no-init');
  m.mood('slow', 'late-list');
  m.mood('crashing', 'no-start');
  const { client } = await m.open(t);
  const first = await listed(client);
  if (!Object.keys(first.why).some((x) => x.startsWith('good'))) // else not even those could start in time
    assert.equal(first.names.length, 64, 'the slow one is waited for');
  await until(async () => (await listed(client)).names.length === 64, 'all of them');
  assert.ok((await listed(client)).names.includes('malformed_mended'));
  const later = await timed(client, 20);
  for (const { told, names, why } of later.all) {
    assert.deepEqual(told, [], 'a later list waits');
    assert.equal(names.length, 64);
    assert.deepEqual(Object.keys(why).sort(), ['crashing', 'hanging', 'malformed']);
    assert.match(why.hanging, /has not answered yet/);
    assert.match(why.malformed, /1 tools left out: tool never .*; 1 tools without a usable name/);
    assert.match(why.crashing, /ended \(exit 3\)/);
  }
  t.diagnostic(`a list takes ${later.ms.toFixed(1)} ms, ${normal.ms.toFixed(1)} ms without the bad ones; the first ${first.ms.toFixed(0)} ms`);
});
