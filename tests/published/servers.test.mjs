// Published servers behind one gateway, compared with a direct connection: every
// definition the same bytes, every call the same result, for both official SDKs,
// on stdio and over HTTP (make long).
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Http, Line, items, member, members } from '../lib/bytes.mjs';
import { Place } from '../lib/gateway.mjs';
import { eventually } from '../lib/sessions.mjs';
import { KEY, entry, servers } from './servers.mjs';

// While working on one: MO_SERVERS=git,time scripts/test --published servers
const only = process.env.MO_SERVERS?.split(',');
const LEAST = only?.length ?? 25; // servers that must be comparable
const AT_ONCE = 2;
const CALLS = 3; // of a server, without arguments: the errors must be equal
const WAIT = { timeout: 120_000 };

const place = new Place({});
const docs = join(place.dir, 'docs');
mkdirSync(docs);
writeFileSync(join(docs, 'a.txt'), 'in the file, é');
const all = Object.fromEntries(Object.entries(servers(docs)).filter(([name]) => !only || only.includes(name)));
const roots = { roots: [{ uri: `file://${docs}`, name: 'docs' }] };

/** How a server is started without the gateway: in the same surroundings. */
const start = (server) => {
  const e = entry(server);
  return { ...e, cwd: place.dir, env: { PATH: process.env.PATH, HOME: place.dir, ...e.env } };
};
const gateway = () => ({ ...place.command(), cwd: place.dir });
const info = { name: 'published', version: '1' };
const capabilities = {
  roots: {}, sampling: {}, elicitation: { form: {}, url: {} },
  extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
};

function client1() {
  const client = new Client1(info, { capabilities });
  client.setRequestHandler(ListRootsRequestSchema, () => roots);
  return { client, call: (params) => client.callTool(params, undefined, WAIT) };
}
const client2 = (mode) => () => {
  const client = new v2.Client(info, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('roots/list', () => roots);
  return { client, call: (params) => client.callTool(params, WAIT) };
};

const kinds = [
  { name: 'SDK 1', make: client1, Stdio: Stdio1, Http: Http1 },
  { name: 'SDK 2, legacy', make: client2('legacy'), Stdio: Stdio2, Http: v2.StreamableHTTPClientTransport },
  { name: 'SDK 2, modern', make: client2('auto'), Stdio: Stdio2, Http: v2.StreamableHTTPClientTransport },
];

/** A result, or the error as the client tells it. */
async function outcome(it, name, args) {
  try {
    const { content, structuredContent, isError } = await it.call({ name, arguments: args });
    return JSON.stringify({ content, structuredContent, isError });
  } catch (e) {
    return `${e.code}: ${String(e.message).replace(/^MCP error -?\d+: /, '')}`;
  }
}

async function listOf(client) {
  const tools = [];
  for (let cursor; ;) {
    const page = await client.listTools(cursor ? { cursor } : {}, WAIT);
    tools.push(...page.tools);
    cursor = page.nextCursor;
    if (!cursor) return tools;
  }
}

/** The calls that are made of a server. */
const callsOf = (server, tools) => [
  ...(server.calls ?? []),
  ...tools.filter((t) => t.inputSchema.required?.length).slice(0, CALLS).map((t) => [t.name, {}]),
];

/** fn of each, few at a time. */
async function each(list, fn) {
  let at = 0;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (at < list.length) await fn(list[at++]);
  }));
}

/** A server by itself: tools as the client has them, and two outcomes of each
 *  call; a call whose outcomes differ cannot be compared. */
async function direct(kind, server) {
  const it = kind.make();
  await it.client.connect(new kind.Stdio({ ...start(server), stderr: 'ignore' }), WAIT);
  try {
    const tools = await listOf(it.client);
    const calls = [];
    for (const [name, args] of callsOf(server, tools))
      calls.push({ name, args, said: [await outcome(it, name, args), await outcome(it, name, args)] });
    return { tools, calls };
  } finally {
    await it.client.close();
  }
}

const listed = (answer) => items(member(member(answer, 'result') ?? '{"tools":[]}', 'tools') ?? '[]');
const nameIn = (tool) => JSON.parse(member(tool, 'name'));
// Its name may get a prefix; execution is what the gateway does about tasks.
const bytesOf = (tool) => JSON.stringify(
  members(tool).filter(([key]) => key !== '"name"' && key !== '"execution"'));

/** Tools of the gateway by server and own name. */
function owner(name, known) {
  const hits = known.filter(([server, own]) => name === own || name === `${server}_${own}`);
  const longer = hits.filter(([server, own]) => name === `${server}_${own}`);
  return longer[0] ?? hits[0];
}

const direct1 = new Map(); // kind -> server -> {tools, calls}
const failed = new Map(); // server -> why it could not be started directly
const own = new Map(); // `server tool` -> its definition as the server wrote it
let serve;
const sum = { tools: 0, bytes: 0, calls: 0, unstable: 0 };

before(async () => {
  for (const kind of kinds.slice(0, 2)) {
    const found = new Map();
    await each(Object.entries(all), async ([name, server]) => {
      try {
        found.set(name, await direct(kind, server));
      } catch (e) {
        failed.set(name, String(e.message));
      }
    });
    direct1.set(kind.name, found);
  }
  direct1.set(kinds[2].name, direct1.get(kinds[1].name));
  for (const name of failed.keys())
    for (const found of direct1.values()) found.delete(name);
  place.write(Object.fromEntries(Object.entries(all)
    .filter(([name]) => !failed.has(name)).map(([name, s]) => [name, entry(s)])));
  await each([...direct1.get('SDK 1').keys()], async (name) => {
    const line = await Line.open(start(all[name]), 'legacy', capabilities);
    for (const tool of listed(await line.ask('tools/list'))) own.set(`${name} ${nameIn(tool)}`, bytesOf(tool));
    line.child.kill(); // not every server ends with its input
    await line.gone;
  });
  serve = await place.serve();
});

after(async () => {
  const { code, log } = await serve.stop();
  place.close();
  console.log(`measured: ${direct1.get('SDK 1').size} servers, ${sum.tools} definitions the same bytes (three connections), `
    + `${sum.calls} answers the same, ${sum.unstable} that differ from call to call`);
  assert.equal(code, 0, log);
  assert.doesNotMatch(log, /runtime error|Sanitizer/);
});

const expected = () => [...direct1.get('SDK 1')].flatMap(([server, { tools }]) =>
  tools.map((t) => [server, t.name]));

test(`at least ${LEAST} servers can be compared`, () => {
  const found = direct1.get('SDK 1');
  assert.ok(found.size >= LEAST, [...failed].map(([n, why]) => `${n}: ${why}`).join('\n'));
  for (const [name, why] of failed) console.log(`not comparable here: ${name}: ${why}`);
});

describe('definitions', () => {
  for (const [how, era] of [['http', 'legacy'], ['http', 'modern'], ['stdio', 'legacy']])
    test(`are the same bytes, ${how}, ${era}`, async () => {
      const known = expected();
      const client = how === 'http'
        ? await Http.open({ url: serve.url }, era, capabilities) : await Line.open(gateway(), era, capabilities);
      let ours = [];
      await eventually('all tools', async () => {
        ours = listed(await client.ask('tools/list'));
        return ours.length >= known.length;
      }, 300_000);
      await client.close();
      const missing = new Set(known.map((at) => at.join(' ')));
      const surplus = [];
      for (const tool of ours) {
        const at = owner(nameIn(tool), known)?.join(' ');
        if (at) assert.equal(bytesOf(tool), own.get(at), at);
        else surplus.push(nameIn(tool));
        missing.delete(at);
      }
      assert.deepEqual({ missing: [...missing], surplus }, { missing: [], surplus: [] });
      sum.tools += known.length;
    });
});

for (const kind of kinds)
  for (const how of ['stdio', 'http'])
    describe(`${kind.name}, ${how}`, () => {
      const it = kind.make();
      const tools = new Map(); // `server own` -> tool
      before(async () => {
        await it.client.connect(how === 'http' ? new kind.Http(serve.url)
          : new kind.Stdio({ ...gateway(), stderr: 'ignore' }), WAIT);
        const known = expected();
        await eventually('all tools', async () => {
          tools.clear();
          for (const t of await listOf(it.client)) {
            const at = owner(t.name, known);
            if (at) tools.set(at.join(' '), t);
          }
          return tools.size >= known.length;
        }, 300_000);
      });
      after(() => it.client.close());

      for (const server of Object.keys(all))
        test(server, { skip: false }, async (t) => {
          const want = direct1.get(kind.name).get(server);
          if (!want) return t.diagnostic(`not comparable: ${failed.get(server)}`);
          for (const { name: own, execution: _, ...rest } of want.tools) {
            const { name, execution: __, ...got } = tools.get(`${server} ${own}`);
            assert.deepEqual(got, rest, own);
          }
          for (const { name, args, said } of want.calls) {
            if (said[0] !== said[1]) {
              sum.unstable++;
              continue;
            }
            const got = await outcome(it, tools.get(`${server} ${name}`).name, args);
            // The gateway blanks the values of secrets in errors.
            assert.equal(got, said[0].replaceAll(KEY, '[secret]'), name);
            sum.calls++;
          }
        });
    });
