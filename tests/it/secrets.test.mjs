// The secret store: planted values are found nowhere but in the environment
// and the headers of the server that owns them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod, mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { bin, cleanEnv } from '../lib/mcp.mjs';

// Different in every run, so that what is found is of this one.
const salt = `${process.pid}-${Date.now().toString(36)}`;
const planted = {
  one: `plant-one-${salt}`,
  two: `plant-two-${salt}`,
  three: `plant-three-${salt}`,
};
const KEY = 'c0ffee'.repeat(10) + 'beef';

// Says its environment, waits to be looked at, dies with its secret on its
// lips, or blurts it out in an answer.
const CHILD = `
const fs = require('fs'), rl = require('readline').createInterface({ input: process.stdin });
const put = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\\n');
if (process.env.DIES) { console.error('my key ' + process.env.MINE + ' is wrong'); process.exit(3); }
rl.on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize')
    return put({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'c', version: '1' } } });
  if (method === 'tools/list')
    return put({ id, result: { tools: ['env', 'wait', 'blurt'].map((name) => ({ name, inputSchema: { type: 'object' } })) } });
  if (method !== 'tools/call')
    return id !== undefined && put({ id, error: { code: -32601, message: 'no' } });
  if (params.name === 'blurt')
    return put({ id, error: { code: -32000, message: 'bad key ' + process.env.MINE } });
  if (params.name === 'wait') {
    fs.writeFileSync(process.env.WAIT + '.here', '');
    while (!fs.existsSync(process.env.WAIT + '.go')) await new Promise((r) => setTimeout(r, 20));
  }
  put({ id, result: { content: [{ type: 'text', text: JSON.stringify(process.env) }] } });
});
process.stdin.on('end', () => process.exit(0));
`;

let dir, state, remote, seen;
const answers = { status: 403 };

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-secrets-'));
  state = join(dir, 'state');
  seen = [];
  remote = createServer((req, res) => {
    seen.push(req.headers);
    res.writeHead(answers.status).end(`no: ${req.headers['x-mine']}`);
  }).listen(0, '127.0.0.1');
  await once(remote, 'listening');
  await writeFile(join(dir, 'child.cjs'), CHILD);
  const child = (env) => ({ command: process.execPath, args: [join(dir, 'child.cjs')], env });
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    mcpServers: {
      a: child({ MINE: '${secret:one}', WAIT: join(dir, 'wait') }),
      b: child({ MINE: 'prefix-${secret:two}' }),
      plain: child({ NOTHING: 'x' }),
      dies: child({ MINE: '${secret:one}', DIES: '1' }),
      far: {
        url: `http://127.0.0.1:${remote.address().port}/mcp`,
        headers: { Authorization: 'Bearer ${secret:three}', 'X-Mine': '${secret:three}' },
        oauth: { enabled: false },
      },
      lost: child({ MINE: '${secret:nobody}' }),
    },
  }, null, 2));
});
after(async () => {
  remote.close();
  await rm(dir, { recursive: true });
});

/** Run to the end with something on standard input. */
async function cli(args, { input = '', env = {} } = {}) {
  const child = spawn(bin, args, {
    cwd: dir,
    env: cleanEnv({ HOME: dir, MCP_ORCHESTRATOR_STATE_DIR: state, ...env }),
  });
  let out = '', err = '';
  child.stdout.setEncoding('utf8').on('data', (d) => (out += d));
  child.stderr.setEncoding('utf8').on('data', (d) => (err += d));
  child.stdin.on('error', () => {}).end(input);
  const [code] = await once(child, 'close');
  return { code, out, err };
}

const nowhereIn = (text, what) => {
  for (const [name, value] of Object.entries(planted))
    assert.ok(!text.includes(value), `${name} is in ${what}`);
};

describe('by hand', () => {
  test('nothing there yet: said so, and nothing is made', async () => {
    const { code, out } = await cli(['secrets', 'list']);
    assert.equal(code, 0);
    assert.match(out, /no secrets/);
    await assert.rejects(stat(state));
  });

  test('set, from standard input', async () => {
    for (const [name, value] of Object.entries(planted)) {
      const { code, out, err } = await cli(['secrets', 'set', name], { input: value + '\n' });
      assert.deepEqual([code, out, err], [0, '', '']);
    }
    assert.equal((await stat(state)).mode & 0o7777, 0o700);
    assert.deepEqual((await readdir(state)).sort(), ['secrets.bin', 'secrets.key']);
    for (const name of ['secrets.bin', 'secrets.key'])
      assert.equal((await stat(join(state, name))).mode & 0o7777, 0o600, name);
  });

  test('never from the command line', async () => {
    const { code, err } = await cli(['secrets', 'set', 'x', 'value']);
    assert.equal(code, 2);
    assert.match(err, /no use for/);
  });

  for (const [name, args, input, code, says] of [
    ['a name with a blank', ['set', 'a b'], 'x', 2, /letters, digits/],
    ['an empty value', ['set', 'empty'], '\n', 1, /is empty/],
    ['a NUL', ['set', 'nul'], 'a\0b', 1, /NUL/],
    ['64 KiB and one', ['set', 'big'], 'x'.repeat(65537), 1, /64 KiB/],
    ['much more', ['set', 'big'], 'x'.repeat(300_000), 1, /64 KiB/],
    ['remove what is not there', ['remove', 'nix'], '', 1, /no secret 'nix'/],
  ])
    test(`${name}: ${code} and a reason`, async () => {
      const got = await cli(['secrets', ...args], { input });
      assert.equal(got.code, code);
      assert.match(got.err, says);
    });

  test('list: names and dates', async () => {
    const { out } = await cli(['secrets', 'list', '--json']);
    const said = JSON.parse(out);
    assert.deepEqual(said.map((s) => s.name), ['one', 'three', 'two']);
    for (const s of said) assert.ok(Date.now() - Date.parse(s.set) < 3600_000);
    const text = await cli(['secrets', 'list']);
    assert.match(text.out, /^one +20\d\d-/m);
    nowhereIn(out + text.out, 'the list');
  });

  test('check names what has no value, and what nobody uses', async () => {
    await cli(['secrets', 'set', 'spare'], { input: 'spare-value' });
    const bad = await cli(['secrets', 'check']);
    assert.equal(bad.code, 1);
    assert.match(bad.out, /mcpServers\.lost\.env\.MINE: \$\{secret:nobody\} has no value; set it: mcp-orchestrator secrets set nobody/);
    assert.match(bad.out, /spare is stored and nothing refers to it/);
    await cli(['secrets', 'set', 'nobody'], { input: 'now there' });
    assert.equal((await cli(['secrets', 'check'])).code, 0);
    for (const name of ['spare', 'nobody'])
      assert.equal((await cli(['secrets', 'remove', name])).code, 0);
    assert.equal((await cli(['secrets', 'check'])).code, 1);
  });

  test('a terminal is asked, and shows nothing', async () => {
    const child = spawn('script', ['-qefc', `${bin} secrets set typed`, '/dev/null'], {
      cwd: dir, env: cleanEnv({ HOME: dir, MCP_ORCHESTRATOR_STATE_DIR: state }),
    });
    let out = '';
    const asked = new Promise((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (d) => {
        out += d;
        if (/not shown\): /.test(out)) resolve();
      });
    });
    await asked;
    // The echo is off a moment after the question; typing early shows it.
    for (let i = 0; i < 50 && !(await quiet(child.pid)); i++) await sleep(50);
    child.stdin.write('typed-by-hand\n');
    const [code] = await once(child, 'close');
    assert.equal(code, 0, out);
    assert.ok(!out.includes('typed-by-hand'), out);
    assert.match((await cli(['secrets', 'list'])).out, /^typed /m);
    await cli(['secrets', 'remove', 'typed']);
  });
});

/** Does the terminal below this `script` not echo any more? */
async function quiet(pid) {
  const kids = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ');
  const out = [];
  for (const kid of kids) {
    if (!kid) continue;
    const stty = spawn('sh', ['-c', `stty -a < /proc/${kid}/fd/0`], { stdio: ['ignore', 'pipe', 'ignore'] });
    stty.stdout.setEncoding('utf8').on('data', (d) => out.push(d));
    await once(stty, 'close');
  }
  return / -echo /.test(out.join(''));
}

describe('in use', () => {
  const env = async (name) => {
    const { code, out, err } = await cli(['call', name, 'env']);
    assert.deepEqual([code, err], [0, '']);
    return JSON.parse(out);
  };

  test('each child has its own, and no other', async () => {
    assert.equal((await env('a')).MINE, planted.one);
    assert.equal((await env('b')).MINE, `prefix-${planted.two}`);
    nowhereIn(JSON.stringify(await env('plain')), 'the child without any');
    const a = JSON.stringify(await env('a'));
    assert.ok(!a.includes(planted.two) && !a.includes(planted.three));
  });

  test('the key is no child\'s business', async () => {
    const other = join(dir, 'state-env');
    const key = { MCP_ORCHESTRATOR_SECRET_KEY: KEY, MCP_ORCHESTRATOR_STATE_DIR: other };
    await cli(['secrets', 'set', 'one'], { input: planted.one, env: key });
    const { code, out, err } = await cli(['call', 'a', 'env'], { env: key });
    assert.deepEqual([code, err], [0, '']);
    assert.equal(JSON.parse(out).MINE, planted.one);
    assert.ok(!out.includes('SECRET_KEY') && !out.includes(KEY));
    assert.deepEqual(await readdir(other).then((v) => v.filter((n) => /secret/.test(n))), ['secrets.bin']);
    const without = await cli(['call', 'a', 'env'], { env: { ...key, MCP_ORCHESTRATOR_SECRET_KEY: '' } });
    assert.notEqual(without.code, 0);
    assert.match(without.err, /the key of the secrets is gone/);
    const wrong = await cli(['secrets', 'list'], { env: { ...key, MCP_ORCHESTRATOR_SECRET_KEY: KEY.replace('c', 'd') } });
    assert.equal(wrong.code, 1);
    assert.match(wrong.err, /another key/);
  });

  test('no command line has it while it runs', async () => {
    const call = cli(['call', 'a', 'wait']);
    for (let i = 0; i < 1500; i++) {
      if (await stat(join(dir, 'wait.here')).catch(() => null)) break;
      await sleep(20);
    }
    const found = [];
    for (const pid of (await readdir('/proc')).filter((n) => /^\d+$/.test(n))) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      const vars = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');

      nowhereIn(line, `the command line of ${pid}`);
      for (const [name, value] of Object.entries(planted))
        if (vars.includes(value)) found.push([name, line]);
    }
    await writeFile(join(dir, 'wait.go'), '');
    assert.equal((await call).code, 0);
    assert.equal(found.length, 1, JSON.stringify(found));
    assert.equal(found[0][0], 'one');
    assert.ok(found[0][1].includes('child.cjs'));
  });

  test('headers reach the server, and no error says them', async () => {
    seen.length = 0;
    for (const status of [403, 500]) {
      answers.status = status;
      const { code, out, err } = await cli(['mcp', 'test', 'far', '--log', 'debug']);
      assert.notEqual(code, 0);
      nowhereIn(out + err, 'the error');
    }
    assert.ok(seen.length > 0);
    for (const headers of seen) {
      assert.equal(headers.authorization, `Bearer ${planted.three}`);
      assert.ok(!JSON.stringify(headers).includes(planted.one));
    }
  });

  test('last words and answers are blanked', async () => {
    const dead = await cli(['mcp', 'test', 'dies']);
    assert.equal(dead.code, 4);
    assert.match(dead.err, /my key \[secret\] is wrong/);
    const said = await cli(['call', 'a', 'blurt']);
    assert.equal(said.code, 1);
    assert.match(said.err, /bad key \[secret\]/);
    nowhereIn(dead.out + dead.err + said.out + said.err, 'the errors');
  });

  test('one that is missing: how to set it', async () => {
    const { code, err } = await cli(['mcp', 'test', 'lost']);
    assert.notEqual(code, 0);
    assert.match(err, /\$\{secret:nobody\} has no value; set it: mcp-orchestrator secrets set nobody/);
    const list = await cli(['mcp', 'list', '--tools', '--json']);
    assert.equal(list.code, 0);
    assert.match(JSON.parse(list.out).find((s) => s.name === 'lost').error, /secrets set nobody/);
    nowhereIn(list.out + list.err, 'mcp list');
  });

  test('shown nowhere, kept nowhere', async () => {
    for (const args of [['config', 'show'], ['config', 'show', '--json', '--all'], ['mcp', 'list'], ['config', 'check']]) {
      const { out, err } = await cli(args);
      nowhereIn(out + err, args.join(' '));
      if (args[1] === 'show') assert.match(out, /\$\{secret:one\}/);
    }
    for (const name of await readdir(state)) {
      const text = await readFile(join(state, name), 'latin1');
      nowhereIn(text, name);
    }
  });
});

describe('a file that is not ours any more', () => {
  let good;
  const file = () => join(state, 'secrets.bin');
  before(async () => { good = await readFile(file()); });
  after(async () => writeFile(file(), good, { mode: 0o600 }));

  for (const [name, make, says] of [
    ['cut off', (b) => b.subarray(0, b.length - 7), /damaged.*restore/],
    ['one bit', (b) => { const c = Buffer.from(b); c[60] ^= 4; return c; }, /damaged.*restore/],
    ['another file', () => Buffer.from('{"tokens":[]}'), /is no file of secrets/],
    ['empty', () => Buffer.alloc(0), /is no file of secrets/],
  ])
    test(`${name}: refused, with what to do, and left alone`, async () => {
      await writeFile(file(), make(good));
      for (const args of [['secrets', 'list'], ['call', 'a', 'env'], ['secrets', 'set', 'x']]) {
        const { code, err, out } = await cli(args, { input: 'value' });
        assert.notEqual(code, 0, args.join(' '));
        assert.match(err, says);
        nowhereIn(out + err, args.join(' '));
      }
      assert.deepEqual(await readFile(file()), make(good));
    });

  test('readable by others: refused', async () => {
    await writeFile(file(), good);
    await chmod(file(), 0o644);
    const { code, err } = await cli(['call', 'a', 'env']);
    assert.notEqual(code, 0);
    assert.match(err, /chmod 600/);
    await chmod(file(), 0o600);
    assert.equal((await cli(['call', 'a', 'env'])).code, 0);
  });
});

test('writers at the same time lose nothing', async () => {
  const env = { MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'many') };
  await mkdir(join(dir, 'many'), { mode: 0o700 });
  const names = Array.from({ length: 8 }, (_, i) => `n${i}`);
  const all = await Promise.all(names.map((n) => cli(['secrets', 'set', n], { input: `value of ${n}`, env })));
  for (const { code, err } of all) assert.equal(code, 0, err);
  const { out } = await cli(['secrets', 'list', '--json'], { env });
  assert.deepEqual(JSON.parse(out).map((s) => s.name), names);
});
