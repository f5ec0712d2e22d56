// Results are the same bytes before and after the gateway: generated ones with
// everything in them that JSON allows, and all that the published servers say.
//
// What the protocol itself wants to differ between the eras, and nothing else:
//  - resultType, and ttlMs and cacheScope of lists and reads, are there for a
//    modern client and not for a legacy one;
//  - _meta names the server that answered (serverInfo): for a modern client
//    that is the gateway, for a legacy one nobody;
//  - structuredContent that is no object is {"result":...} for a legacy client;
//  - a legacy tool that failed because its client cannot be asked something is
//    the error for that (-32021) to a modern client;
//  - execution of a listed tool says to a legacy client what the gateway does
//    about tasks.
// Where client and server are both legacy and none of it applies, the whole
// result is the same bytes, blanks and all.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Http, Line, items, member, members } from '../lib/bytes.mjs';
import { Place, published, script } from '../lib/gateway.mjs';

const SEED = Number(process.env.MO_SEED ?? Date.now() % 2 ** 31);
const ROUNDS = Number(process.env.MO_ROUNDS ?? 60);
const hints = ['resultType', 'ttlMs', 'cacheScope'].map((k) => JSON.stringify(k));
const serverInfo = '"io.modelcontextprotocol/serverInfo"';

/** What must be equal, whoever asks whom: {own, meta}. */
function payload(result, { wrap = false } = {}) {
  const all = members(result).filter(([key]) => !hints.includes(key));
  const own = all.filter(([key]) => key !== '"_meta"').map(([key, value]) =>
    wrap && key === '"structuredContent"' && value[0] !== '{'
      ? [key, `{"result":${value}}`]
      : [key, value]);
  const meta = all.filter(([key]) => key === '"_meta"').flatMap(([, value]) => members(value))
    .filter(([key]) => key !== serverInfo);
  return { own, meta };
}

// --- generated results

/** mulberry32: the same numbers for the same seed. */
function random(seed) {
  let a = seed;
  return (n) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

const numbers = [
  '0', '-0', '-0.0', '1e400', '-1E+400', '1.0000000000000000001', '1e-400', '0.1e1',
  '12345678901234567890123', '9007199254740993', '2.50', '1E2', '5e-324',
];
const pieces = [
  'plain', 'é', 'e\u0301', '\\u00e9', '\\u0065\\u0301', '\\/', '/', '\\"', '\\\\', '\\n', '\\u000a',
  '\\u0000', '\\ud83d\\ude00', '😀', '\\uD83D\\uDE00', '\u2028', '\u00a0', '\\b\\f\\t', '',
  '\\u2028', 'ﬁ', 'Å', 'A\u030a', '\u212b', '<script>', '{\\"not\\":[json', '\ufeff',
];

function generator(seed) {
  const dice = random(seed);
  const pick = (list) => list[dice(list.length)];
  const many = (n, make) => Array.from({ length: dice(n) }, make);
  const blank = () => pick(['', '', '', '', ' ', '\t', '  ']);
  const string = () => `"${many(4, () => pick(pieces)).join('')}"`;
  const join_ = (open, items, close) =>
    `${open}${blank()}${items.join(`${blank()},${blank()}`)}${blank()}${close}`;
  const pair = (key, value) => `${key}${blank()}:${blank()}${value}`;
  const object = (depth) => join_('{', many(5, () => pair(string(), value(depth))), '}');
  function value(depth) {
    switch (dice(depth > 6 ? 4 : 6)) {
      case 0: return pick(numbers);
      case 1: return pick(['true', 'false', 'null']);
      case 2: case 3: return string();
      case 4: return join_('[', many(5, () => value(depth + 1)), ']');
      default: return object(depth + 1);
    }
  }
  const deep = () => {
    const n = 1 + dice(400);
    return '['.repeat(n) + pick(numbers) + ']'.repeat(n);
  };
  const big = () => `"${pick(pieces).repeat(1 + dice(40_000))}"`;
  const block = () => join_('{', [
    pair('"type"', '"text"'), pair('"text"', dice(12) ? string() : big()),
    ...many(3, () => pair(string(), value(3))),
  ], '}');
  /** A result of that method, as a server of that era writes it. */
  return (method, era) => {
    const body = {
      'tools/call': () => [
        pair('"content"', join_('[', many(4, block), ']')),
        ...(dice(2) ? [pair('"structuredContent"', object(0))] : []),
        ...(era === 'modern' && !dice(3) ? [pair('"structuredContent"', value(0))].slice(0, 1) : []),
        ...(dice(4) ? [] : [pair('"isError"', pick(['true', 'false']))]),
      ],
      'prompts/get': () => [pair('"messages"', join_('[', many(3, () =>
        join_('{', [pair('"role"', '"user"'), pair('"content"', block())], '}')), ']'))],
      'resources/read': () => [pair('"contents"', join_('[', many(3, () =>
        join_('{', [pair('"uri"', string()), pair('"text"', string())], '}')), ']'))],
      'completion/complete': () => [pair('"completion"',
        join_('{', [pair('"values"', join_('[', many(3, string), ']'))], '}'))],
    }[method]();
    const more = many(4, () => pair(`"x${many(3, () => pick(pieces)).join('')}"`, value(0)));
    if (!dice(6)) more.push(pair('"deep"', deep()));
    if (dice(2)) more.push(pair('"_meta"', object(4)));
    if (era === 'modern') more.push(pair('"resultType"', '"complete"'));
    const all = [...body, ...more];
    return join_('{', all.sort(() => dice(3) - 1), '}');
  };
}

const asking = {
  'tools/call': (raw) => ({ name: 'say', arguments: { raw } }),
  'prompts/get': (raw) => ({ name: 'say', arguments: { raw } }),
  'resources/read': (raw) => ({ uri: `raw:///${Buffer.from(raw).toString('base64url')}` }),
  'completion/complete': (raw) => ({
    ref: { type: 'ref/prompt', name: 'say' }, argument: { name: 'raw', value: raw },
  }),
};

const clients = [
  ['legacy', 'stdio', Line], ['modern', 'stdio', Line],
  ['legacy', 'http', Http], ['modern', 'http', Http],
];

/** A client of each kind: fn(client, era, name). */
async function withEach(place, serve, fn) {
  for (const [era, transport, Kind] of clients) {
    const where = Kind === Line ? place.command() : { url: serve.url };
    const client = await Kind.open(where, era);
    try {
      await fn(client, era, `${era} client, ${transport}`);
    } finally {
      await client.close();
    }
  }
}

for (const up of ['legacy', 'modern']) {
  test(`generated results of a ${up} server (seed ${SEED})`, async (t) => {
    const server = script('raw_mcp.mjs', up);
    const place = new Place({ raw: { ...server, toolPrefix: '' } });
    t.after(() => place.close());
    if (up === 'legacy') place.legacy(server);
    const serve = await place.serve();
    t.after(() => serve.stop());
    await withEach(place, serve, async (client, era, name) => {
      const make = generator(SEED);
      for (let i = 0; i < ROUNDS; i++) {
        const method = Object.keys(asking)[i % 4];
        const raw = make(method, up);
        if (method === 'resources/read' && raw.length > 6000) continue; // it is in a header
        const said = await client.ask(method, asking[method](raw));
        const got = member(said, 'result');
        const what = `${name}, ${method}, round ${i}`;
        assert.ok(got, `${what}: ${said.slice(0, 300)}`);
        const wrap = era === 'legacy';
        assert.deepEqual(payload(got), payload(raw, { wrap }), what);
        if (up === 'legacy' && era === 'legacy') assert.equal(got, raw, what);
        if (era === 'modern') assert.equal(member(got, 'resultType'), '"complete"');
      }
    });
  });
}

// --- what the published servers say

const waits = 30_000;

/** Arguments that fit a schema, more or less. */
function fill({ properties = {}, required = [] }, special) {
  const one = (s) => {
    if (s.default !== undefined) return s.default;
    if (s.enum) return s.enum[0];
    return {
      string: 'x', number: 1, integer: 1, boolean: true, array: [], object: {},
    }[[s.type].flat()[0]] ?? 'x';
  };
  const args = Object.fromEntries(required.map((k) => [k, one(properties[k] ?? {})]));
  return { ...args, ...special };
}

const list = async (client, method, key) => {
  const all = [];
  for (let cursor; ;) {
    const { result } = JSON.parse(await client.ask(method, cursor ? { cursor } : {}));
    all.push(...(result?.[key] ?? []));
    cursor = result?.nextCursor;
    if (!cursor) return all;
  }
};

/** Everything that can be asked of it: [method, params]. */
async function everything(client, special) {
  let tools = [];
  // A list does not wait for a server that takes long to start.
  for (let i = 0; i < 300 && !(tools = await list(client, 'tools/list', 'tools')).length; i++)
    await sleep(100);
  const resources = await list(client, 'resources/list', 'resources');
  const prompts = await list(client, 'prompts/list', 'prompts');
  return [
    ...tools.map((t) => ['tools/call', {
      name: t.name, arguments: fill(t.inputSchema, special[t.name]),
    }]),
    ...resources.map((r) => ['resources/read', { uri: r.uri }]),
    ...prompts.map((p) => ['prompts/get', {
      name: p.name,
      arguments: Object.fromEntries((p.arguments ?? []).map((a) => [a.name, '1'])),
    }]),
  ];
}

describe('what the published servers say', () => {
  const place = new Place({});
  const docs = join(place.dir, 'docs');
  after(() => place.close());
  mkdirSync(docs);
  writeFileSync(join(docs, 'a.txt'), 'in the file, é\n"quoted"\\');

  const file = join(docs, 'a.txt');
  const servers = {
    everything: {
      server: published('server-everything'),
      special: {
        'trigger-long-running-operation': { duration: 0.1, steps: 2 },
        'get-resource-reference': { resourceType: 'Text', resourceId: 1 },
        // They would ask for a task, a page on the net, or never end.
        'simulate-research-query': null,
        'gzip-file-as-resource': { name: 'a', data: 'data:text/plain,hello' },
      },
      least: 10,
    },
    filesystem: {
      server: published('server-filesystem', docs),
      special: Object.fromEntries([
        ...['read_file', 'read_text_file', 'read_media_file', 'get_file_info']
          .map((n) => [n, { path: file }]),
        ...['list_directory', 'list_directory_with_sizes', 'directory_tree', 'create_directory']
          .map((n) => [n, { path: docs }]),
        ['read_multiple_files', { paths: [file, join(docs, 'none')] }],
        ['search_files', { path: docs, pattern: '*' }],
        ['write_file', { path: join(docs, 'b.txt'), content: 'b' }],
        ['edit_file', { path: file, edits: [{ oldText: 'quoted', newText: 'q' }], dryRun: true }],
        ['move_file', { source: join(docs, 'b.txt'), destination: join(docs, 'c.txt') }],
      ]),
      least: 10,
    },
    memory: {
      server: {
        ...published('server-memory'), env: { MEMORY_FILE_PATH: join(docs, 'memory.json') },
      },
      special: {
        create_entities: {
          entities: [{ name: 'é"\\', entityType: 'person', observations: ['kind', '😀'] }],
        },
        open_nodes: { names: ['é"\\'] },
        search_nodes: { query: 'é' },
      },
      least: 5,
    },
  };

  for (const [name, { server, special, least }] of Object.entries(servers)) {
    for (const [era, Kind] of [['legacy', Line], ['modern', Http]]) {
      test(`${name}, ${era} client`, async (t) => {
        const kept = join(place.dir, `${name}-${era}`);
        const tee = {
          ...script('tee_mcp.mjs', kept, server.command, ...server.args), env: server.env,
        };
        place.write({ [name]: { ...tee, toolPrefix: '' } });
        place.legacy(tee);
        const serve = Kind === Http ? await place.serve() : undefined;
        if (serve) t.after(() => serve.stop());
        const client = await Kind.open(
          serve ? { url: serve.url } : place.command(), era,
        );
        t.after(() => client.close());
        /** What it has answered until now, one way or the other. */
        const said = () => readFileSync(kept, 'utf8').split('\n').slice(0, -1)
          .filter((line) => member(line, 'method') === undefined);
        let asked = 0;
        const errors = [];
        for (const [method, params] of await everything(client, special)) {
          if (special[params.name] === null) continue;
          const answer = await Promise.race([
            client.ask(method, params), sleep(waits, undefined, { ref: false }),
          ]);
          const what = `${method} ${params.name ?? params.uri}`;
          assert.ok(answer, `${what}: no answer`);
          const error = member(answer, 'error');
          if (error) errors.push(`${what}: ${error}`);
          if (error && era === 'modern' && member(error, 'code') === '-32021') continue;
          if (error) {
            const message = member(error, 'message');
            assert.ok(said().some((line) => member(member(line, 'error') ?? '{}', 'message') === message),
              `${what}: ${answer}`);
            continue;
          }
          asked++;
          const result = member(answer, 'result');
          const results = said().map((line) => member(line, 'result')).filter(Boolean);
          if (era === 'legacy') {
            assert.ok(results.includes(result), `${what}: ${result.slice(0, 500)}`);
            continue;
          }
          const want = JSON.stringify(payload(result));
          assert.ok(results.some((r) => JSON.stringify(payload(r)) === want),
            `${what}: ${result.slice(0, 500)}`);
        }
        assert.ok(asked >= least, `only ${asked} results; ${errors.join('; ')}`);
        // The tools as they are listed.
        const listed = (line) => members(member(line, 'result') ?? '{}')
          .filter(([key]) => key === '"tools"').flatMap(([, value]) => items(value));
        const theirs = said().flatMap(listed).map(withoutExecution);
        const ours = listed(await client.ask('tools/list')).map(withoutExecution);
        assert.ok(ours.length > 0);
        for (const tool of ours)
          assert.ok(theirs.some((o) => o === tool), `listed: ${tool.slice(0, 300)}`);
      });
    }
  }
});

const withoutExecution = (tool) => JSON.stringify(
  members(tool).filter(([key]) => key !== '"execution"'));
