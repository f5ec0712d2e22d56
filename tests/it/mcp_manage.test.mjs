// MCP servers managed over HTTP: the same as the commands do, to the byte;
// tested before they are saved; and nothing that the operator does not want.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { bin, cleanEnv, named } from '../lib/mcp.mjs';
import { until } from './server.mjs';
import { House } from './talk_kit.mjs';

const FAKE = fileURLToPath(new URL('../fakes/mcp.mjs', import.meta.url));
const data = (name) => fileURLToPath(new URL(`../data/import/${name}`, import.meta.url));
const SECRET = 'sk-ant-planted-0123456789abcdef';
const STATE = '.local/state/mcp-orchestrator';
const CONFIG = {
  mcpServers: { greeter: { command: process.execPath, args: [FAKE], description: 'says hello' } },
};

let house, twin;
before(async () => {
  house = await House.start({ config: CONFIG });
  twin = await mkdtemp(join(tmpdir(), 'mo-twin-'));
  await writeFile(join(twin, 'mcp-orchestrator.json'), await file());
});
after(async () => {
  house.server.fresh.fds += 8; // servers that were looked at stay open
  house.server.fresh.children += 4; // with their guards
  await house.stop();
  await rm(twin, { recursive: true, force: true });
});

const file = (dir = house.dir) => readFile(join(dir, 'mcp-orchestrator.json'), 'utf8');
const servers = async () => JSON.parse(await file()).mcpServers;

async function rest(method, path, body, headers = {}) {
  const answer = await fetch(`http://127.0.0.1:${house.server.port}/api/mcp${path}`, {
    method, headers, body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
}
async function fine(...args) {
  const { status, body } = await rest(...args);
  assert.equal(status, args[1] === '/add' ? 201 : 200, JSON.stringify(body));
  return body;
}
/** The command line, in the twin's directory. */
const cli = (...args) => cliAt(join(twin, 'state'), ...args);
async function cliAt(state, ...args) {
  const child = spawn(bin, args, {
    cwd: twin, stdio: ['ignore', 'pipe', 'pipe'],
    env: cleanEnv({ ...named(twin), HOME: house.dir, MCP_ORCHESTRATOR_STATE_DIR: state }),
  });
  let out = '', err = '';
  child.stdout.setEncoding('utf8').on('data', (d) => (out += d));
  child.stderr.setEncoding('utf8').on('data', (d) => (err += d));
  const [code] = await once(child, 'close');
  return { code, out, err };
}
const one = async (name) => (await fine('GET', '')).servers.find((s) => s.name === name);
const node = (script) => ({ command: process.execPath, args: ['-e', script] });

test('twins: the file is the same after each step, and so is the list', async () => {
  const STEPS = [
    [['add', 'three', '--command', `npx -y 'a b'`, '--env', 'DEBUG=1', '--description', 'says "hi"'],
      ['POST', '', { name: 'three', command: 'npx', args: ['-y', 'a b'], description: 'says "hi"', env: { DEBUG: '1' } }]],
    [['add', 'far', '--url', 'https://far.example.com/mcp', '--header', 'X-A: b', '--disabled'],
      ['POST', '/add', { name: 'far', config: { url: 'https://far.example.com/mcp', headers: { 'X-A': 'b' }, enabled: false } }]],
    [['add', 'boxed', '--image', 'an/image:1', '--disabled'],
      ['POST', '', { name: 'boxed', containerImage: 'an/image:1', enabled: false }]],
    [['disable', 'three'], ['PATCH', '/three', { enabled: false }]],
    [['disable', 'three'], ['PATCH', '/three', { enabled: false }]], // again: nothing
    [['enable', 'far'], ['PATCH', '/far', { enabled: true }]],
    [['add', 'far', '--url', 'https://other.example.com/mcp', '--replace'],
      ['POST', '?replace=true', { name: 'far', url: 'https://other.example.com/mcp' }]],
    [['remove', 'boxed'], ['DELETE', '/boxed']],
    [['remove', 'far'], ['DELETE', '/far']],
  ];
  for (const [args, request] of STEPS) {
    const got = await cli('mcp', ...args);
    assert.equal(got.code, 0, got.err);
    await fine(...request);
    assert.equal(await file(), await file(twin), args.join(' '));
    const { servers: all } = await fine('GET', '');
    const list = JSON.parse((await cli('mcp', 'list', '--json')).out);
    assert.deepEqual(all.map(({ name, transport, where, enabled }) => ({ name, transport, where, enabled })), list);
  }
});

test('twins: files of other clients give the same plan, servers and secrets', async () => {
  for (const name of ['claude_desktop_config.json', 'cursor_mcp.json', 'vscode_mcp.json', 'vscode_settings.json',
    'windsurf_mcp_config.json', 'registry.json', 'mcp-config.json']) {
    const text = await readFile(data(name), 'utf8');
    const before = await file();
    const plan = JSON.parse((await cli('mcp', 'import', data(name), '--secrets', '--json')).out);
    const dry = await fine('POST', '/import?dryRun=true', text);
    assert.deepEqual(dry, { format: plan.format, written: false, servers: plan.servers }, name);
    assert.equal(await file(), before, 'a plan writes nothing');
    const done = JSON.parse((await cli('mcp', 'import', data(name), '--secrets', '--write', '--json')).out);
    const { servers: rows, written } = await fine('POST', '/import', text);
    assert.deepEqual([rows, written], [done.servers, done.written], name);
    assert.equal(await file(), await file(twin), name);
  }
  const kept = (text) => JSON.parse(text).map((s) => s.name);
  const ours = kept((await cliAt(join(house.dir, STATE), 'secrets', 'list', '--json')).out);
  assert.deepEqual(ours, kept((await cli('secrets', 'list', '--json')).out));
  assert.ok(ours.includes('github.GITHUB_PERSONAL_ACCESS_TOKEN'));
  for (const n of Object.keys(await servers())) if (n !== 'greeter') await fine('DELETE', `/${n}`);
  await writeFile(join(twin, 'mcp-orchestrator.json'), await file());
  assert.equal((await rest('POST', '/import', '{"a":1}')).status, 400);
  assert.equal((await rest('POST', '/import', 'servers:')).status, 400);
});

test('added with a test: its tools are there, then disabled, enabled, removed', async () => {
  const added = await fine('POST', '?test=true', { name: 'new', command: process.execPath, args: [FAKE] });
  assert.deepEqual([added.saved, added.test.ok, added.test.tools, added.test.serverInfo.title], [true, true, 3, 'The greeter']);
  assert.deepEqual((await fine('GET', '/new/tools')).tools.map((t) => t.name), ['greet', 'ask', 'fail']);
  assert.equal((await one('new')).state, 'ok');
  await fine('PATCH', '/new', { enabled: false });
  assert.deepEqual([(await one('new')).state, (await one('new')).enabled], ['disabled', false]);
  assert.equal((await rest('GET', '/new/tools')).status, 404);
  assert.equal((await fine('POST', '/new/test')).ok, true, 'it can be tested all the same');
  await fine('PATCH', '/new', { enabled: true });
  assert.equal((await fine('GET', '/new/tools')).tools.length, 3);
  const ask = await fine('POST', '/new/tools/greet/call', { args: { name: 'a' } });
  assert.equal(ask.state, 'ask');
  await fine('DELETE', '/new');
  assert.equal(await one('new'), undefined);
  assert.equal((await rest('POST', '/new/tools/greet/call', { args: { name: 'a' }, digest: ask.digest })).status, 404);
  await until(async () => (await fine('GET', '/health')).summary.total === 1, 'one left');
});

test('one in a box is tested in a box, and nothing of it stays', async () => {
  const boxed = await fine('POST', '?dryRun=true&test=true', { name: 'boxed', command: 'mo-toolbox', sandbox: 'native' });
  assert.deepEqual([boxed.saved, boxed.test.ok, boxed.test.error], [false, true, undefined]);
  assert.ok(boxed.test.tools > 3);
});

test('what does not work is not saved, and says why; a dry run saves nothing', async () => {
  const before = await file();
  const dead = node(`console.error('no port is free'); process.exit(7)`);
  const no = await rest('POST', '', { name: 'dead', ...dead, test: true, env: { API_KEY: SECRET } });
  assert.deepEqual([no.status, no.body.code], [422, 'test_failed']);
  assert.match(no.body.detail, /exit 7.*no port is free/);
  const dry = await fine('POST', '?dryRun=true&test=true', { name: 'dead', ...dead, env: { API_KEY: SECRET } });
  assert.deepEqual([dry.saved, dry.test.ok, dry.test.stderr, dry.secrets], [false, false, 'no port is free\n', ['dead.API_KEY']]);
  assert.equal((await fine('POST', '?dryRun=true', { name: 'x', url: 'https://x.example.com' })).saved, false);
  assert.equal(await file(), before);
  const kept = await readFile(join(house.dir, STATE, 'secrets.bin'));
  assert.ok(!kept.includes('dead.API_KEY'), 'its secret is gone again');
});

test('a key goes to the store and is never told', async () => {
  const tells = node(`console.error('got', process.env.API_KEY.length, process.env.API_KEY); process.exit(1)`);
  const added = await fine('POST', '', { name: 'keyed', ...tells, env: { API_KEY: SECRET, PLAIN: 'x' }, secrets: true });
  assert.deepEqual(added.secrets, ['keyed.API_KEY']);
  assert.deepEqual((await servers()).keyed.env, { API_KEY: '${secret:keyed.API_KEY}', PLAIN: 'x' });
  const tested = await fine('POST', '/keyed/test');
  assert.match(tested.stderr, new RegExp(`^got ${SECRET.length} `), 'it reaches its server');
  await fine('PATCH', '/keyed', { env: { PLAIN: null, OTHER: 'y' }, headers: null, timeoutMs: 500 });
  assert.deepEqual((await servers()).keyed.env, { API_KEY: '${secret:keyed.API_KEY}', OTHER: 'y' });
  await fine('PATCH', '/keyed', { env: { OTHER: 'not one by its look' }, secrets: ['OTHER'] });
  assert.equal((await servers()).keyed.env.OTHER, '${secret:keyed.OTHER}');
  const shown = (await fine('GET', '/keyed')).config;
  assert.deepEqual(shown.env, { API_KEY: '${secret:keyed.API_KEY}', OTHER: '${secret:keyed.OTHER}' });
  await fine('POST', '?replace=true', { name: 'keyed', url: 'https://u:pw@x.example.com/mcp?key=1', headers: { 'X-A': 'word' }, secrets: false, enabled: false });
  const bare = await fine('GET', '/keyed');
  assert.deepEqual([bare.config.headers, bare.config.url, bare.target], [{ 'X-A': '***' }, 'https://***@x.example.com/mcp?***', 'https://***@x.example.com/mcp?***']);
  const { body: audit } = await house.get('/api/audit?limit=100');
  assert.ok(audit.rows.some((r) => r.what.managed === 'add' && r.what.server === 'keyed' && r.what.who), 'it is in the audit log');
  for (const text of [JSON.stringify([added, tested, shown, audit]), house.server.log, await file(), await file().then(() => readFile(join(house.dir, 'mcp-orchestrator.json.bak'), 'utf8'))])
    assert.ok(!text.includes(SECRET), text);
  await fine('DELETE', '/keyed');
});

// Log lines on standard output, as so many have.
const CHATTY = `
console.log('Chatty is ready');
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const tools = [{ name: 'chatty_tool', inputSchema: { type: 'object' } }];
  const result = { initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'c', version: '1' } }, 'tools/list': { tools } }[method];
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'no' } }) }));
});`;

test('no view shows the password or the query of a URL', async () => {
  const url = 'http://person:hunter1@127.0.0.1:9/mcp?key=hunter2#hunter3';
  const masked = 'http://***@127.0.0.1:9/mcp?***';
  await fine('POST', '', { name: 'masked', url });
  assert.equal((await servers()).masked.url, url);
  const old = (await house.get('/api/servers')).body.servers.find((s) => s.name === 'masked');
  assert.equal(old.target, masked);
  const now = await one('masked');
  assert.deepEqual([now.target, now.where], [masked, masked]);
  for (const shown of [old, now, await fine('GET', '/masked'), await fine('GET', '/health')])
    assert.doesNotMatch(JSON.stringify(shown), /hunter|person/);

  await cli('mcp', 'add', 'masked', '--url', url);
  const list = await cli('mcp', 'list');
  assert.match(list.out, /^masked +http +http:\/\/\*\*\*@127\.0\.0\.1:9\/mcp\?\*\*\*$/m);
  const rows = await cli('mcp', 'list', '--json');
  assert.equal(JSON.parse(rows.out).find((s) => s.name === 'masked').where, masked);
  await cli('mcp', 'remove', 'masked');
  await fine('DELETE', '/masked');
});

test('a server that died: state, reason and its last lines stay', async () => {
  await fine('POST', '', { name: 'chatty', ...node(CHATTY) });
  await fine('POST', '', { name: 'mortal', ...node(`console.error('first'); console.error('my last words'); process.exit(3)`) });
  const { body } = await house.get('/api/servers');
  assert.ok(body.servers.some((s) => s.name === 'mortal'), 'the older list knows it too');
  assert.equal((await rest('GET', '/mortal/tools')).status, 503);
  const row = (await fine('GET', '/health')).servers.find((s) => s.name === 'mortal');
  assert.equal(row.state, 'failed');
  assert.match(row.error, /exit 3.*my last words/);
  assert.equal(row.stderr, 'first\nmy last words\n');
  assert.equal(row.gateway.breaker, 'closed');
  assert.equal((await fine('GET', '/health')).summary.unhealthy, 1);
  const old = (await fine('GET', '/health')).mcps.find((s) => s.name === 'mortal');
  assert.deepEqual([old.status, old.lastSuccess, old.error], ['unhealthy', 0, row.error]);
  assert.ok(old.consecutiveFailures > 0 && old.lastCheck > 0);

  const mcp = (message, session = {}) => fetch(`http://127.0.0.1:${house.server.port}/mcp`, {
    method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...session },
  });
  const opened = await mcp({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } } });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id'), 'mcp-protocol-version': '2025-06-18' };
  await opened.arrayBuffer();
  await (await mcp({ method: 'notifications/initialized' }, session)).arrayBuffer();
  const list = await (await mcp({ id: 2, method: 'tools/list' }, session)).text();
  assert.ok(list.includes('chatty_tool') && !list.includes('is ready'));
  assert.match((await one('chatty')).stderr, /^\[not JSON on stdout\] Chatty is ready$/m);
  const seen = await one('mortal');
  assert.ok(seen.gateway.starts > 0 && seen.gateway.fails > 0, 'the gateway has tried it too');
  assert.match(seen.gateway.error, /exit 3/);
  assert.match(seen.gateway.state, /failed|broken/);
  assert.ok((await one('greeter')).tools >= 0, 'how many tools another has is known');
  await fine('DELETE', '/mortal');
  await fine('DELETE', '/chatty');
});

test('refused, and the file is as it was', async () => {
  const before = await file();
  const ROWS = [
    ['POST', '', 'nonsense', 400, /not JSON/],
    ['POST', '', [], 400, /object/],
    ['POST', '', { command: 'x' }, 400, /name/],
    ['POST', '', { name: 'x' }, 400, /needs one of 'command', 'url' or 'image'/],
    ['POST', '', { name: 'a b', command: 'x' }, 400, /a name has/],
    ['POST', '', { name: 'x\u0000y', command: 'x' }, 400, /name/],
    ['POST', '', { name: 'x', command: 'x', url: 'http://x' }, 400, /remove one of them/],
    ['POST', '', { name: 'x', url: 'ftp://x' }, 400, /must start with http/],
    ['POST', '', { name: 'x', command: 'x', args: 'y' }, 400, /args/],
    ['POST', '', { name: 'x', command: 'x', colour: 'red' }, 400, /colour/],
    ['POST', '', { name: 'x', config: 7 }, 400, /config/],
    ['POST', '', { name: 'greeter', command: 'x' }, 409, /already/],
    ['PATCH', '/greeter', { timeoutMs: 'soon' }, 400, /timeoutMs/],
    ['PATCH', '/greeter', { command: null }, 400, /needs one of/],
    ['PATCH', '/nobody', { enabled: true }, 404, /no such/],
    ['DELETE', '/nobody', undefined, 404, /no such/],
    ['DELETE', '/constructor', undefined, 404, /no such/],
    ['GET', '/nobody', undefined, 404, /no such/],
    ['POST', '/nobody/test', undefined, 404, /no such/],
    ['POST', '/health', {}, 405, /does not support that method/],
    ['GET', '/add', undefined, 405, /does not support that method/],
    ['PUT', '/greeter', {}, 405, /does not support that method/],
    ['GET', '/x/y/z', undefined, 404, /nothing is served/],
  ];
  for (const [method, path, body, status, says] of ROWS) {
    const got = await rest(method, path, body);
    assert.equal(got.status, status, `${method} ${path} ${JSON.stringify(body)}: ${JSON.stringify(got.body)}`);
    assert.match(got.body.detail, says, `${method} ${path}`);
    assert.ok(!got.body.detail.includes(house.dir), got.body.detail);
  }
  const foreign = await rest('POST', '', { name: 'x', command: 'x' }, { origin: 'https://evil.example.com' });
  assert.deepEqual([foreign.status, foreign.body.code], [403, 'origin_refused']);
  assert.equal(await file(), before);
});

test('a command and a request at the same time lose nothing', async () => {
  const lock = spawn('flock', [house.dir, 'sleep', '0.5']);
  await once(lock, 'spawn');
  const names = Array.from({ length: 6 }, (_, i) => `n${i}`);
  const all = await Promise.all(names.map((name) => rest('POST', '', { name, url: `http://${name}/`, enabled: false })));
  assert.deepEqual(all.map((a) => a.status), names.map(() => 200));
  assert.deepEqual(Object.keys(await servers()).filter((n) => n !== 'greeter').sort(), names);
  for (const n of names) await fine('DELETE', `/${n}`);
});

test('how other clients connect', async () => {
  const got = await fine('GET', '/snippets');
  assert.equal(got.url, `http://127.0.0.1:${house.server.port}/mcp`);
  assert.deepEqual(got.args, ['gateway', '--config', join(house.dir, 'mcp-orchestrator.json')]);
  assert.ok(got.command.startsWith('/') && got.command.endsWith('/mcp-orchestrator'));
  assert.equal(got.needsToken, false);
});

test('the operator can forbid it, and looking stays possible', async () => {
  const before = await file();
  await writeFile(join(house.dir, 'mcp-orchestrator.json'), JSON.stringify({ ...JSON.parse(before), server: { manage: false } }));
  await until(async () => !(await fine('GET', '')).manage, 'the reload');
  const now = await file();
  for (const [method, path, body] of [['POST', '', { name: 'x', command: 'x' }], ['POST', '/add', { name: 'x', command: 'x' }],
    ['PATCH', '/greeter', { enabled: false }], ['DELETE', '/greeter'], ['POST', '/import', '{"mcpServers":{}}']]) {
    const got = await rest(method, path, body);
    assert.deepEqual([got.status, got.body.code], [403, 'manage_off'], `${method} ${path}`);
  }
  assert.equal((await fine('POST', '/greeter/test')).ok, true);
  assert.equal(await file(), now);
  await writeFile(join(house.dir, 'mcp-orchestrator.json'), before);
  await until(async () => (await fine('GET', '')).manage, 'the reload');
});

test('mcp add --test: only what works is written', async () => {
  const before = await file(twin);
  const no = await cli('mcp', 'add', 'dead', '--test', '--', process.execPath, '-e', `console.error('no port is free'); process.exit(7)`);
  assert.equal(no.code, 4);
  assert.match(no.err, /'dead' was not saved, because it does not work: .*exit 7.*no port is free/);
  assert.equal((await cli('mcp', 'add', 'x', '--test', '--url', 'ftp://x')).code, 3);
  assert.equal(await file(twin), before);
  const yes = await cli('mcp', 'add', 'fit', '--test', '--disabled', '--', process.execPath, FAKE);
  assert.deepEqual([yes.code, yes.err], [0, '']);
  assert.match(yes.out, /'fit' works: 3 tools\nadded 'fit'/);
  assert.deepEqual(JSON.parse(await file(twin)).mcpServers.fit, { command: process.execPath, args: [FAKE], enabled: false });
});

test('mcp health: all at once, each with its reason; 1 if one is ill', async () => {
  const dir = join(twin, 'health');
  await mkdir(dir);
  const write = (mcpServers) => writeFile(join(dir, 'c.json'), JSON.stringify({ mcpServers }));
  const health = async (...args) => cli('--config', join(dir, 'c.json'), 'mcp', 'health', ...args);
  await write({ good: { command: process.execPath, args: [FAKE] }, off: { command: 'false', enabled: false } });
  const fit = await health();
  assert.equal(fit.code, 0, fit.err);
  assert.match(fit.out, /good +ok +3 tools, \d+ ms\noff +disabled\n/);
  await write({
    good: { command: process.execPath, args: [FAKE] },
    dead: node(`console.error('cannot'); process.exit(2)`),
    absent: { command: '/no/such/program' },
    silent: node('setInterval(() => {}, 1000)'),
    secretless: { command: 'true', env: { A: '${secret:nobody.set.it}' } },
    far: { url: 'http://127.0.0.1:9/mcp' },
    off: { command: 'false', enabled: false },
  });
  const ill = await health('--json', '--timeout', '15');
  assert.equal(ill.code, 1, ill.err);
  const rows = Object.fromEntries(JSON.parse(ill.out).map((r) => [r.name, r]));
  assert.deepEqual(Object.values(rows).map((r) => r.state), ['ok', 'failed', 'failed', 'failed', 'failed', 'failed', 'disabled']);
  assert.deepEqual([rows.good.tools, rows.dead.stderr], [3, 'cannot\n']);
  assert.match(rows.absent.error, /no\/such\/program/);
  assert.match(rows.silent.error, /within 15 s/);
  assert.match(rows.secretless.error, /nobody\.set\.it/);
  assert.ok(rows.far.error);
  assert.equal((await health('--timeout', 'x')).code, 2);
});
