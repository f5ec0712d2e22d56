// Definitions that the official SDKs refuse. One of them empties the whole list
// of a client; behind the gateway it is mended or left out, with its reason.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Place, bin, script } from '../lib/gateway.mjs';
import { client1, client2 } from '../lib/mcp_talk.mjs';

const WHY = 'mcp-orchestrator/unavailable';
const inputSchema = { type: 'object' };
const out = (x) => ({ inputSchema, outputSchema: { type: 'object', properties: { x } } });

// Each alone makes listTools() of SDK 1 throw.
const mended = {
  no_schema: {},
  null_schema: { inputSchema: null },
  no_type: { inputSchema: { properties: { a: { type: 'string' } } } },
  two_types: { inputSchema: { type: ['object', 'null'] } },
  list_of_properties: { inputSchema: { type: 'object', properties: [] } },
  boolean_property: { inputSchema: { type: 'object', properties: { a: true } } },
  null_required: { inputSchema: { type: 'object', required: null } },
  null_description: { inputSchema, description: null },
  null_annotations: { inputSchema, annotations: null },
  odd_hint: { inputSchema, annotations: { readOnlyHint: 'yes' } },
  odd_icon: { inputSchema, icons: [{ href: 'x' }] },
  odd_meta: { inputSchema, _meta: [] },
  null_output: { inputSchema, outputSchema: null },
  untyped_output: { inputSchema, outputSchema: { properties: { x: {} } } },
  unknown_type: out({ type: 'any' }),
  lost_ref: out({ $ref: '#/$defs/nobody' }),
  foreign_ref: out({ $ref: 'https://example.org/s.json' }),
  empty_enum: out({ enum: [] }),
  odd_keyword: out({ minLength: '3' }),
  python_pattern: out({ pattern: '(?P<a>b)' }),
  open_pattern: out({ pattern: '(a' }),
};
const left_out = {
  string_schema: { inputSchema: { type: 'string' } },
  list_schema: { inputSchema: [] },
};
// Fine for the gateway and for clients of the newest revision; wrapped for older ones.
const fine = {
  array_output: {
    inputSchema,
    outputSchema: { type: 'array', items: { $ref: '#/$defs/x' }, $defs: { x: { type: 'string' } } },
  },
};
const all = { ...mended, ...left_out, ...fine };
const named = (rows) => Object.entries(rows).map(([name, more]) => ({ name, ...more }));

class Odd {
  constructor(t, answers) {
    this.place = new Place({});
    t.after(() => this.place.close());
    this.file = join(this.place.dir, 'answers.json');
    this.say(answers);
    this.server = script('odd.mjs', this.file);
    const good = script('moody.mjs', 'good', join(this.place.dir, 'mood'), join(this.place.dir, 'log'));
    this.place.write({ odd: this.server, good });
    this.place.legacy(this.server, good);
  }

  say = (answers) => writeFileSync(this.file, JSON.stringify(answers));

  async open(t, { client }, Stdio, how = this.place.command()) {
    await client.connect(new Stdio({ ...how, stderr: 'ignore' }));
    t.after(() => client.close());
    return client;
  }
}

const clients = [
  ['SDK 1', () => client1(), Stdio1],
  ['SDK 2, legacy', () => client2('legacy'), Stdio2],
  ['SDK 2, modern', () => client2('auto'), Stdio2],
];

test('the SDK refuses each of them', async (t) => {
  const odd = new Odd(t, {});
  const client = await odd.open(t, client1(), Stdio1, odd.server);
  for (const [name, more] of Object.entries({ ...mended, ...left_out })) {
    odd.say({ 'tools/list': { tools: [{ name, ...more }] } });
    await assert.rejects(client.listTools(), undefined, name);
  }
});

for (const [name, make, Stdio] of clients)
  test(`${name} lists every tool that can be mended`, async (t) => {
    const odd = new Odd(t, { 'tools/list': { tools: named(all) } });
    const client = await odd.open(t, make(), Stdio);
    const { tools, _meta } = await client.listTools();
    const names = tools.map((x) => x.name);
    const want = [...Object.keys(mended), ...Object.keys(fine), 'work', 'look', 'set'];
    assert.deepEqual(names.sort(), want.sort());
    if (_meta) assert.match(_meta[WHY].odd, /2 tools left out: tool string_schema \(its inputSchema is not of type object\)/);
    const props = tools.find((x) => x.name === 'no_type').inputSchema;
    assert.deepEqual(props, { properties: { a: { type: 'string' } }, type: 'object' });
  });

const others = {
  'resources/list': {
    resources: [
      { uri: 'u:1' }, { uri: 'u:2', name: null, size: '3' }, { uri: 'u:3', name: 'c', mimeType: null },
      { uri: 'u:4', name: 'd', annotations: { priority: 5, audience: 'user', lastModified: 'now' } },
    ],
  },
  'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'u:{x}', description: 3 }] },
  'prompts/list': {
    prompts: [
      { name: 'p1', arguments: null }, { name: 'p2', arguments: [{ name: 'a', required: 'yes' }, { title: 'b' }] },
      { name: 'p3', title: 1, icons: {} },
    ],
  },
};

for (const [name, make, Stdio] of clients)
  test(`${name} lists resources, templates and prompts`, async (t) => {
    const odd = new Odd(t, others);
    const client = await odd.open(t, make(), Stdio);
    const { resources } = await client.listResources();
    assert.deepEqual(resources.map((r) => [r.uri, r.name]), [['u:1', 'u:1'], ['u:2', 'u:2'], ['u:3', 'c'], ['u:4', 'd']]);
    assert.equal((await client.listResourceTemplates()).resourceTemplates[0].name, 'u:{x}');
    const { prompts } = await client.listPrompts();
    assert.deepEqual(prompts.map((p) => [p.name, p.arguments]), [
      ['p1', undefined], ['p2', [{ name: 'a' }]], ['p3', undefined],
    ]);
  });

test('`mcp test` says what was done', (t) => {
  const odd = new Odd(t, { 'tools/list': { tools: named({ ...left_out, no_type: mended.no_type }) } });
  const run = (...more) => execFileSync(bin, ['mcp', 'test', 'odd', '--config', odd.place.file, ...more], {
    env: odd.place.env, encoding: 'utf8',
  });
  const said = run();
  assert.match(said, /warning: 1 tool mended for strict clients: tool no_type \(its inputSchema has no type\)/);
  assert.match(said, /warning: 2 tools left out for strict clients: tool string_schema/);
  const { mended: m, leftOut } = JSON.parse(run('--json'));
  assert.match(m, /^tool no_type/);
  assert.match(leftOut, /tool list_schema \(its inputSchema is not an object\)/);
});

test('known after a restart, from the cache', async (t) => {
  const odd = new Odd(t, { 'tools/list': { tools: named({ ...left_out, no_type: mended.no_type }) } });
  const first = await odd.open(t, client1(), Stdio1);
  await first.listTools();
  await first.close();
  odd.say({ initialize: null });
  const again = await odd.open(t, client1(), Stdio1);
  const { tools, _meta } = await again.listTools();
  assert.ok(tools.some((x) => x.name === 'no_type'));
  assert.match(_meta[WHY].odd, /2 tools left out/);
});
