// Planted secrets, a whole `serve` that uses them, and a search of everything
// it leaves: they are nowhere but in the child that owns them. And where else
// they may come from: a key in the kernel's keyring, the system's own stores.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { below } from '../lib/gateway.mjs';
import { bin, cleanEnv } from '../lib/mcp.mjs';
import { client1, text, until } from '../lib/mcp_talk.mjs';

// Different in every run, with signs that JSON and URLs write otherwise.
const salt = `${process.pid}-${Date.now().toString(36)}`;
const planted = { one: `plant/one"${salt}`, two: `plant+two&${salt}` };
const needles = Object.values(planted)
  .flatMap((v) => [v, JSON.stringify(v).slice(1, -1)]);

// Says its secret wherever it should not: in the middle of an error, of a
// failure, of a log message, on its standard error.
const CHILD = `
const mine = process.env.MINE, say = 'using the key ' + mine + ' did not help';
const put = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
console.error(say);
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const answers = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {}, logging: {} }, serverInfo: { name: 'c', version: '1' } },
    'tools/list': { tools: ['error', 'failure', 'log', 'echo'].map((n) => ({ name: process.env.NAME + '_' + n, inputSchema: { type: 'object' } })) },
  };
  if (answers[method]) return put({ id, result: answers[method] });
  if (method !== 'tools/call') return id !== undefined && put({ id, result: {} });
  const what = params.name.split('_')[1];
  if (what === 'error') return put({ id, error: { code: -32000, message: say, data: { key: mine } } });
  if (what === 'log') put({ method: 'notifications/message', params: { level: 'error', data: say } });
  put({ id, result: { content: [{ type: 'text', text: what === 'failure' ? say : 'done' }], isError: what === 'failure' } });
});
process.stdin.on('end', () => process.exit(0));
`;

let dir, state;
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'mo-nowhere-'));
  state = join(dir, 'state');
  writeFileSync(join(dir, 'child.cjs'), CHILD);
});
after(() => rmSync(dir, { recursive: true, force: true }));

const env = (more = {}) => cleanEnv({ HOME: dir, MCP_ORCHESTRATOR_STATE_DIR: state, ...more });
const child = (name, more = {}) => ({
  command: process.execPath, args: [join(dir, 'child.cjs')], env: { NAME: name, ...more },
});
const configure = (config) => writeFileSync(join(dir, 'mcp-orchestrator.json'), JSON.stringify(config));
const setSecret = (name, more) =>
  execFileSync(bin, ['secrets', 'set', name], { cwd: dir, env: env(more), input: planted[name] });

/** Run to the end. */
function cli(args, more) {
  try {
    return { code: 0, said: execFileSync(bin, args, { cwd: dir, env: env(more), stdio: 'pipe' }).toString() };
  } catch (e) {
    return { code: e.status, said: `${e.stdout}${e.stderr}` };
  }
}

const nowhereIn = (bytes, what) => {
  for (const needle of needles) assert.ok(!bytes.includes(needle), `a secret is in ${what}`);
};

function everyFile(at) {
  return readdirSync(at, { withFileTypes: true }).flatMap((f) => {
    const path = join(at, f.name);
    return f.isDirectory() ? everyFile(path) : f.isFile() ? [path] : [];
  });
}

test('nowhere but in the child that owns them', async (t) => {
  configure({
    server: { port: 0 }, audit: { arguments: true }, sandbox: { warm: 0 },
    approvals: { rules: [{ tool: '*', action: 'allow' }] },
    mcpServers: {
      a: child('a', { MINE: '${secret:one}' }), b: child('b', { MINE: '${secret:two}' }),
      plain: child('plain'),
    },
  });
  setSecret('one');
  setSecret('two');
  const serve = spawn(bin, ['serve', '--no-auth', '--log', 'debug'], { cwd: dir, env: env({ ASAN_OPTIONS: 'detect_leaks=0:disable_coredump=0' }), stdio: ['ignore', 'pipe', 'pipe'] });
  const end = once(serve, 'exit');
  t.after(() => serve.kill('SIGKILL'));
  let log = '';
  for (const s of [serve.stdout, serve.stderr]) s.setEncoding('utf8').on('data', (d) => (log += d));
  const url = () => /is ready: (http:\/\/[^\s]+)/.exec(log)?.[1];
  await until(url);
  const it = client1();
  const told = [];
  it.on('notifications/message', (m) => told.push(m));
  await it.client.connect(new Http1(new URL('/mcp', url())));
  t.after(() => it.client.close().catch(() => {}));
  await it.client.setLoggingLevel('debug').catch(() => {});

  for (const name of ['a', 'b', 'plain']) {
    for (const what of ['error', 'failure', 'log', 'echo']) {
      const args = { key: planted.one, also: `in the middle of ${planted.two} a text` };
      const got = await it.call({ name: `${name}_${what}`, arguments: args })
        .catch((e) => ({ failed: `${e.message} ${JSON.stringify(e.data)}` }));
      nowhereIn(JSON.stringify(got), `what ${name}_${what} answers`);
      if (name !== 'plain' && what === 'failure') assert.match(text(got), /key \[secret\] did not/);
    }
  }
  nowhereIn(JSON.stringify(told), 'log messages');
  const looked = await (await fetch(new URL('/api/mcp/a', url()))).json();
  assert.match(looked.stderr, /using the key \[secret\] did not help/);
  for (const path of ['/api/mcp', '/api/mcp/a', '/api/mcp/health', '/api/audit', '/api/stats', '/metrics'])
    nowhereIn(await (await fetch(new URL(path, url()))).text(), path);

  // Environments and command lines of all that runs for it, and of itself.
  const owners = [];
  for (const pid of [serve.pid, ...below(serve.pid)]) {
    nowhereIn(readFileSync(`/proc/${pid}/cmdline`), `the command line of ${pid}`);
    const vars = readFileSync(`/proc/${pid}/environ`, 'utf8');
    const has = Object.keys(planted).filter((k) => vars.includes(planted[k]));
    if (has.length) owners.push(`${/(?:^|\0)NAME=(\w+)/.exec(vars)?.[1]}:${has}`);
  }
  assert.deepEqual(owners.sort(), ['a:one', 'b:two']);

  // It dies badly: no core, of it or its children, wherever those go.
  assert.match(readFileSync(`/proc/${serve.pid}/limits`, 'utf8'), /^Max core file size +[01] /m);
  const rows = () => readFileSync(join(state, 'audit.jsonl'), 'utf8').trim().split('\n').length;
  await until(() => rows() >= 12);
  serve.kill('SIGSEGV');
  await end;
  const left = everyFile(dir);
  for (const kind of [/audit\.jsonl$/, /\.db$/, /secrets\.bin$/])
    assert.ok(left.some((path) => kind.test(path)), `${kind} is among ${left}`);
  for (const path of left) {
    assert.doesNotMatch(path, /\/core(\.\d+)?$/);
    if (!path.endsWith('child.cjs')) nowhereIn(readFileSync(path), path);
  }
  nowhereIn(log, 'the log');
});

// --- where they may come from

const KEY = '5eed'.repeat(16);

/** A "user" key of the user's keyring; there may be no program for it. */
function keyring(t, name, value) {
  const py = `
import ctypes, os, platform, sys
nr = {'aarch64': (217, 219), 'x86_64': (248, 250)}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
name, value = sys.argv[1].encode(), sys.stdin.buffer.read()
if value: rc = libc.syscall(nr[0], b'user', name, value, len(value), ctypes.c_int(-4))
else:
    rc = libc.syscall(nr[1], 10, ctypes.c_int(-4), b'user', name, 0)
    if rc > 0: libc.syscall(nr[1], 9, rc, ctypes.c_int(-4))
if rc < 0: sys.exit(os.strerror(ctypes.get_errno()))
`;
  const run = (input) => execFileSync('python3', ['-c', py, name], { input, stdio: 'pipe' });
  try {
    run(value);
  } catch (e) {
    return `needs the kernel's keyring: ${e.stderr}`;
  }
  t.after(() => run(''));
  return null;
}

describe('where they come from', () => {
  const call = (more) => cli(['call', 'a', 'a_error'], more);

  for (const [place, make] of [
    ['a file', () => {
      writeFileSync(join(dir, 'the.key'), `${KEY}\n`, { mode: 0o600 });
      return { key: `file:${join(dir, 'the.key')}` };
    }],
    ['a variable', () => ({ key: 'env:THE_KEY', more: { THE_KEY: KEY } })],
    ['the kernel\'s keyring', (t) => {
      const name = `mo-test-key-${process.pid}`;
      return { key: `keyring:${name}`, skip: keyring(t, name, KEY) };
    }],
  ])
    test(`the key of our own file in ${place}`, (t) => {
      const { key, more = {}, skip } = make(t);
      if (skip && !process.env.CI) return t.skip(skip);
      assert.equal(skip ?? null, null);
      const own = { ...more, MCP_ORCHESTRATOR_STATE_DIR: join(dir, `key-${place.length}`) };
      configure({ secrets: { key }, mcpServers: { a: child('a', { MINE: '${secret:one}' }) } });
      setSecret('one', own);
      assert.ok(!existsSync(join(own.MCP_ORCHESTRATOR_STATE_DIR, 'secrets.key')));
      const { said } = call(own);
      assert.match(said, /using the key \[secret\] did not/);
      for (const flags of [[], ['--json']]) {
        const failure = cli(['call', 'a', 'a_failure', ...flags], own);
        assert.equal(failure.code, 1);
        nowhereIn(failure.said, 'what a failed call prints');
        assert.match(failure.said, /using the key \[secret\] did not/);
      }
      if (place !== 'a variable') return undefined;
      assert.match(cli(['secrets', 'list'], { ...own, THE_KEY: '' }).said, /THE_KEY|64 hex digits/);
      return undefined;
    });

  test('systemd\'s credentials, and the keyring itself', (t) => {
    const credentials = join(dir, 'credentials');
    const own = { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'none'), CREDENTIALS_DIRECTORY: credentials };
    mkdirSync(credentials, { mode: 0o700 });
    const name = `sys-${process.pid}`;
    configure({ mcpServers: { a: child('a', { MINE: `\${secret:${name}}` }) } });
    assert.match(call(own).said, /has no value; set it/);
    assert.equal(cli(['secrets', 'check'], own).code, 1);
    writeFileSync(join(credentials, name), `${planted.two}\n`, { mode: 0o400 });
    assert.match(call(own).said, /using the key \[secret\] did not/);
    assert.equal(cli(['secrets', 'check'], own).code, 0);
    rmSync(join(credentials, name));
    const skip = keyring(t, `mcp-orchestrator:${name}`, planted.two);
    if (skip && !process.env.CI) return t.skip(skip);
    assert.equal(skip, null);
    assert.match(call(own).said, /using the key \[secret\] did not/);
    assert.equal(cli(['secrets', 'check'], own).code, 0);
    assert.ok(!existsSync(own.MCP_ORCHESTRATOR_STATE_DIR)
      || !readdirSync(own.MCP_ORCHESTRATOR_STATE_DIR).includes('secrets.bin'));
    assert.equal(statSync(credentials).mode & 0o777, 0o700);
    return undefined;
  });
});
