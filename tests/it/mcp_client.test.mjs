// The real program as a client of real MCP servers, over stdio.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { alive, bin, driver, published, run, script } from '../lib/mcp.mjs';
import { eventually } from '../lib/outside.mjs';

let dir;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-mcp-'));
  await writeFile(join(dir, 'a.txt'), 'grüß dich\n');
});
after(() => rm(dir, { recursive: true }));

const everything = published('server-everything');
const files = () => published('server-filesystem', dir);
const memory = published('server-memory');
const sdk1 = script('mcp_sdk1.mjs');
const sdk2 = script('mcp_sdk2.mjs');
const sdk2only = script('mcp_sdk2.mjs', 'reject');

const cli = (args, more) => run(bin, args, { cwd: dir, ...more });

describe('every server opens', () => {
  for (const [name, command, era, version] of [
    ['everything', everything, 'auto', '2025-11-25'],
    ['filesystem', null, 'auto', '2025-11-25'],
    ['memory', memory, 'auto', '2025-11-25'],
    ['SDK 1', sdk1, 'auto', '2025-11-25'],
    ['SDK 1, no probe', sdk1, 'legacy', '2025-11-25'],
    ['SDK 2', sdk2, 'auto', '2026-07-28'],
    ['SDK 2, modern only', sdk2only, 'auto', '2026-07-28'],
    ['SDK 2, the old way', sdk2, 'legacy', '2025-11-25'],
    ['SDK 2, the new way', sdk2, 'modern', '2026-07-28'],
  ])
    test(`${name}: ${version}`, async () => {
      const { code, out, err } = await cli([
        'mcp', 'test', '--json', '--era', era, '--command', command ?? files(),
      ]);
      assert.equal(err, '');
      assert.equal(code, 0);
      const said = JSON.parse(out);
      assert.equal(said.protocolVersion, version);
      assert.equal(said.era, version < '2026' ? 'legacy' : 'modern');
      assert.ok(said.tools > 0);
      assert.equal(said.noise, 0);
    });

  for (const [name, command, era, says] of [
    ['modern wanted, legacy there', sdk1, 'modern', /server\/discover/],
    ['legacy wanted, modern there', sdk2only, 'legacy', /-32022/],
    ['no such program', '/no/such/program', 'auto', /No such file/],
    ['no server', 'true', 'auto', /the server ended \(exit 0\)/],
    ['last words', `sh -c 'echo one >&2; echo two >&2; exit 3'`, 'auto',
      /exit 3\); it said: one\|two/],
  ])
    test(`${name}: 4 and a reason`, async () => {
      const { code, out, err } = await cli([
        'mcp', 'test', '--era', era, '--command', command,
      ]);
      assert.match(err, says);
      assert.equal(code, 4);
      assert.equal(out, '');
    });
});

describe('calls', () => {
  for (const [name, command, tool, args, code, want] of [
    ['text', everything, 'echo', { message: 'hällo\n"du"' }, 0,
      'Echo: hällo\n"du"\n'],
    ['a sum', everything, 'get-sum', { a: 2, b: 3 }, 0, /\b5\b/],
    ['a file', null, 'read_text_file', () => ({ path: join(dir, 'a.txt') }), 0,
      /grüß dich/],
    ['outside the root', null, 'read_text_file', { path: '/etc/passwd' }, 1,
      /outside allowed/],
    ['a graph', memory, 'search_nodes', { query: 'nobody' }, 0, /"entities": \[\]/],
    ['SDK 1', sdk1, 'echo', { text: 'a\tb' }, 0, 'a\tb\n'],
    ['SDK 1 fails', sdk1, 'fail', {}, 1, 'it did not work\n'],
    ['SDK 2', sdk2, 'echo', { text: '✓' }, 0, '✓\n'],
  ])
    test(name, async () => {
      const value = typeof args === 'function' ? args() : args;
      const got = await cli([
        'call', '--command', command ?? files(), tool, JSON.stringify(value),
      ]);
      assert.equal(got.err, '');
      assert.equal(got.code, code);
      if (typeof want === 'string') assert.equal(got.out, want);
      else assert.match(got.out, want);
    });

  test('a result is printed as it came', async () => {
    const { out } = await cli(['call', '--json', '--command', sdk1, 'numbers']);
    assert.deepEqual(JSON.parse(out).structuredContent, { a: 1.5, s: 'é\0"' });
    assert.match(out, /"a": 1\.5/);
  });

  test('two million bytes in one line', async () => {
    const { out, code } = await cli([
      'call', '--command', sdk1, 'big', '{"n":1000000}',
    ]);
    assert.equal(code, 0);
    assert.equal(out, 'ü'.repeat(1000000) + '\n');
  });

  test('an unknown tool is an error, whoever says so', async () => {
    for (const command of [sdk1, sdk2]) {
      const { code, out, err } = await cli(['call', '--command', command, 'nix']);
      assert.equal(code, 1);
      assert.match(out + err, /nix/);
    }
  });

  test('a slow tool is cut off', async () => {
    const { code, err } = await cli([
      'call', '--timeout', '1', '--command', everything,
      'trigger-long-running-operation', '{"duration":60,"steps":2}',
    ]);
    assert.equal(code, 4);
    assert.match(err, /tools\/call: no /);
  });
});

describe('configuration', () => {
  const config = (servers) =>
    writeFile(join(dir, 'mcp-orchestrator.json'),
      JSON.stringify({ mcpServers: servers }));
  const server = (name, more = {}) => ({
    command: process.execPath,
    args: [script(name).split(' ')[1].replaceAll("'", '')],
    ...more,
  });

  test('by name; the child sees what it may see, and nothing else', async () => {
    await config({
      one: server('mcp_sdk1.mjs', {
        env: { MY_KEY: '${env:SECRET_OF_MINE}', TERM: 'vt52' },
      }),
    });
    const { code, out } = await cli(['call', 'one', 'env'], {
      env: { SECRET_OF_MINE: 's3cr3t', OTHER: 'not for you', TERM: 'xterm' },
    });
    assert.equal(code, 0);
    const env = JSON.parse(out);
    assert.equal(env.MY_KEY, 's3cr3t');
    assert.equal(env.TERM, 'vt52');
    assert.equal(env.HOME, '/tmp');
    assert.deepEqual(
      Object.keys(env).filter((k) => !/^(HOME|PATH|TERM|MY_KEY)$/.test(k)),
      ['MCP_ORCHESTRATOR_CHILD']); // the mark by which its processes are found
  });

  test('list, with tools; a dead one does not spoil it', async () => {
    await config({
      good: server('mcp_sdk2.mjs'),
      dead: { command: 'false' },
      off: { command: 'false', enabled: false },
    });
    const { code, out } = await cli(['mcp', 'list', '--tools', '--json']);
    assert.equal(code, 0);
    const [good, dead, off] = JSON.parse(out);
    assert.deepEqual(good.tools.map((t) => t.name), ['echo', 'ask', 'forever']);
    assert.match(dead.error, /the server ended/);
    assert.equal(off.enabled, false);
    assert.equal(off.tools, undefined);
    const text = (await cli(['mcp', 'list'])).out;
    assert.match(text, /^good +stdio /m);
    assert.match(text, /^off +stdio +false \(disabled\)/m);
  });

  test('info has everything', async () => {
    const { code, out } = await cli(['mcp', 'info', 'good', '--json']);
    assert.equal(code, 0);
    const info = JSON.parse(out);
    assert.equal(info.serverInfo.name, 'sdk2');
    assert.equal(info.tools[0].inputSchema.properties.text.type, 'string');
    assert.match((await cli(['mcp', 'info', 'good'])).out,
      /^sdk2 2\.0\.1, MCP 2026-07-28\ntools \(3\)\n {2}echo\n/);
  });

  for (const [args, code, says] of [
    [['call', 'nobody', 't'], 3, /there is no server 'nobody'/],
    [['call', 'good'], 2, /SERVER, TOOL/],
    [['call', 'good', 'echo', '[]'], 2, /must be a JSON object/],
    [['call', 'good', 'echo', '{'], 2, /not JSON/],
    [['mcp', 'test'], 2, /needs a server's name/],
    [['mcp', 'test', 'good', '--command', 'x'], 2, /needs a server's name/],
    [['mcp', 'test', 'good', '--era', 'stone'], 2, /--era is/],
    [['mcp', 'test', 'good', '--timeout', '0'], 2, /--timeout is/],
    [['mcp', 'test', '--command', `'x`], 2, /quote is not closed/],
  ])
    test(`${args.join(' ')}: ${code}`, async () => {
      const got = await cli(args);
      assert.match(got.err, says);
      assert.equal(got.code, code);
    });
});

describe('what servers ask of us', () => {
  const words = (line) => line.split(' ').map((w) => w.replaceAll("'", ''));
  const drive = async (command, tool, args = {}) => {
    const { out } = await run(driver, [tool, JSON.stringify(args), ...words(command)]);
    return out.trim().split('\n').map((l) => JSON.parse(l));
  };
  const only = (events, key) => events.filter((e) => key in e).map((e) => e[key]);

  for (const [name, command, tool, asked, says] of [
    ['roots, legacy', everything, 'get-roots-list', 'roots/list', /file:\/\/\/srv\/x/],
    ['sampling, legacy', everything, 'trigger-sampling-request',
      'sampling/createMessage', /sampled/],
    ['elicitation, legacy', everything, 'trigger-elicitation-request',
      'elicitation/create', /Ada/],
    ['elicitation, SDK 1', sdk1, 'ask', 'elicitation/create', /asked/],
    ['input_required, SDK 2', sdk2only, 'ask', 'elicitation/create', /hello Ada/],
    ['elicitation, SDK 2 the old way', `${sdk2}`, 'ask', 'elicitation/create',
      /hello Ada/],
  ])
    test(name, async () => {
      const events = await drive(command, tool, { prompt: 'x', maxTokens: 9 });
      assert.ok(only(events, 'asked').includes(asked));
      assert.match(JSON.stringify(only(events, 'result')), says);
      assert.equal(only(events, 'closed').length, 1);
    });

  test('a server that never has enough is stopped after ten rounds', async () => {
    const events = await drive(sdk2only, 'forever');
    assert.equal(only(events, 'asked').length, 10);
    assert.deepEqual(only(events, 'failed'), [-4]);
  });

  test('progress comes in order', async () => {
    const events = await drive(everything, 'trigger-long-running-operation',
      { duration: 0.5, steps: 4 });
    assert.deepEqual(only(events, 'progress').map((p) => p.progress), [1, 2, 3, 4]);
  });
});

test('no server is left behind', async () => {
  // Other files run some of them for a while, too.
  await eventually('they are gone', () => ![...alive('server-everything'), ...alive('mcp_sdk')].length);
});
