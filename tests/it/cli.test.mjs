// The real program, driven as a person or a script would.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { missing as noRedis, redis } from '../lib/redis.mjs';

const bin =
  process.env.MO_BIN ??
  fileURLToPath(
    new URL('../../build-asan/src/app/mcp-orchestrator', import.meta.url),
  );

let dir;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-cli-'));
});
after(() => rm(dir, { recursive: true }));

// The leak check takes seconds per program; the unit tests have it for the
// same code, here one run of each command (see "leaves nothing behind") does.
const cleanEnv = (more = {}) => ({
  PATH: process.env.PATH,
  HOME: dir,
  ASAN_OPTIONS: 'detect_leaks=0',
  UBSAN_OPTIONS: process.env.UBSAN_OPTIONS ?? '',
  ...more,
});

/** Run to the end: {code, out, err}. */
function run(args, { env = {}, cwd = dir, input } = {}) {
  return new Promise((resolve) => {
    const child = execFile(
      bin,
      args,
      { env: cleanEnv(env), cwd },
      (error, out, err) =>
        resolve({ code: error ? child.exitCode : 0, out, err }),
    );
    if (input) child.stdin.end(input);
  });
}

const tool = (name, args) =>
  new Promise((resolve) => {
    const child = execFile(name, args, (error, out, err) =>
      resolve({ code: error ? child.exitCode ?? error.message : 0, out, err }));
  });

const put = (name, text) => writeFile(join(dir, name), text);
const drop = (name) => rm(join(dir, name), { force: true });

describe('command line', () => {
  for (const [args, code, says] of [
    [[], 2, /Usage: mcp-orchestrator <command>/],
    [['sevre'], 2, /unknown command 'sevre'; did you mean 'serve'\?/],
    [['serve', '--prot', '1'], 2, /did you mean '--port'\?/],
    [['serve', '--port'], 2, /'--port' needs a value/],
    [['config'], 2, /config check/],
    [['help', 'nonsense'], 2, /there is no command 'nonsense'/],
    [['completion', 'csh'], 2, /choose bash, zsh or fish/],
    [['serve', '--port', '99999'], 3, /option --port: 'server.port' must be/],
    [['config', 'check', 'no-such.json'], 3, /no such file/],
  ])
    test(`${args.join(' ') || '(nothing)'} fails with ${code}`, async () => {
      const { code: got, err, out } = await run(args);
      assert.equal(got, code);
      assert.match(err, says);
      assert.equal(out, '');
    });

  for (const args of [
    ['serve'], ['doctor'], ['config', 'check'], ['config', 'show'],
    ['config', 'schema'], ['version'], ['help'], ['completion'],
  ])
    test(`${args.join(' ')} --help has an example`, async () => {
      const { code, out } = await run([...args, '--help']);
      assert.equal(code, 0);
      assert.match(out, new RegExp(`Example:\n  mcp-orchestrator ${args.join(' ')}`));
      assert.equal((await run(['help', ...args])).out, out);
    });

  for (const args of [['mcp', 'list'], ['mcp', 'health'], ['find', 'send a mail']])
    test(`${args.join(' ')} without servers says how to get some`, async () => {
      const { code, out } = await run(args);
      assert.equal(code, 0);
      assert.match(out, /^no MCP servers are configured: `mcp-orchestrator mcp add .*\n.* mcp import` /);
    });

  test('version, as text and as JSON', async () => {
    const text = await run(['--version']);
    const json = JSON.parse((await run(['version', '--json'])).out);
    assert.equal(text.code, 0);
    assert.ok(text.out.startsWith(`mcp-orchestrator ${json.version} `));
    assert.match(json.arch, /^(arm64|amd64)$/);
  });

  test('a closed stdout is an error, not a crash', async () => {
    const child = spawn('/bin/sh', ['-c', '"$0" config schema >&-', bin], {
      env: cleanEnv(), cwd: dir, stdio: 'ignore',
    });
    const [code] = await once(child, 'exit');
    assert.equal(code, 1);
  });
});

describe('generated texts', () => {
  test('manual pages are good roff', async () => {
    await mkdir(join(dir, 'man'));
    const r = await run(['help', '--man-pages', 'man']);
    assert.deepEqual([r.code, r.out, r.err], [0, '', '']);
    const pages = (await readdir(join(dir, 'man'))).map((name) => join(dir, 'man', name));
    for (const name of ['.1', '-serve.1', '-mcp-add.1', '.json.5'])
      assert.ok(pages.includes(join(dir, 'man', `mcp-orchestrator${name}`)), name);
    const lint = await tool('mandoc', ['-T', 'lint', '-W', 'style', ...pages]);
    assert.deepEqual(lint, { code: 0, out: '', err: '' });
    for (const page of pages) {
      const groff = await tool('groff', ['-man', '-ww', '-z', page]);
      assert.deepEqual(groff, { code: 0, out: '', err: '' }, page);
    }
    const serve = await run(['help', '--man', 'serve']);
    assert.equal(serve.out,
      await readFile(join(dir, 'man', 'mcp-orchestrator-serve.1'), 'utf8'));
    const text = await tool('mandoc', ['-T', 'ascii', join(dir, 'man',
      'mcp-orchestrator-serve.1')]);
    assert.match(text.out.replace(/.\x08/g, ''), /--tls-cert FILE/);
    await rm(join(dir, 'man'), { recursive: true });
    assert.equal((await run(['help', '--man-pages', 'man'])).code, 1);
  });

  test('bash completes commands, options and values', async () => {
    const script = (await run(['completion', 'bash'])).out;
    await put('complete.bash', script);
    const ask = (...words) =>
      new Promise((resolve) =>
        execFile(
          'bash',
          ['--norc', '-c',
            'source complete.bash; COMP_WORDS=("$@"); ' +
            'COMP_CWORD=$(($# - 1)); _mcp_orchestrator; ' +
            'echo "${COMPREPLY[*]}"', 'bash', 'mcp-orchestrator', ...words],
          { cwd: dir },
          (error, out, err) => resolve(error ? String(error) : err + out.trim()),
        ));
    assert.equal(await ask('ser'), 'serve');
    assert.equal(await ask('config', 'ch'), 'check');
    assert.equal(await ask('serve', '--tls-c'), '--tls-cert');
    assert.equal(await ask('serve', '--sandbox', 'na'), 'native');
    assert.equal(await ask('serve', '--port', ''), '');
    assert.equal(await ask('doctor', '--js'), '--json');
    await drop('complete.bash');
  });

  test('the schema knows the example of the documentation', async () => {
    const schema = JSON.parse((await run(['config', 'schema'])).out);
    const server = schema.properties.mcpServers.additionalProperties;
    for (const key of ['command', 'url', 'image', 'env', 'headers'])
      assert.ok(server.properties[key], key);
    assert.equal(server.additionalProperties, false);
    assert.equal(schema.properties.server.properties.port.maximum, 65535);
  });

  test('docs/roles.md is up to date', async () => {
    const r = await run(['roles']);
    assert.equal(r.code, 0);
    assert.equal(await readFile(new URL('../../docs/roles.md', import.meta.url), 'utf8'), r.out,
      'mcp-orchestrator roles > docs/roles.md');
  });

  test('docs/configuration.md is up to date and whole', async () => {
    const { out } = await run(['config', 'docs']);
    for (const name of ['PORT', 'REDIS_URL', 'LLM_PROVIDER', 'GEMINI_API_KEY',
      'ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'ANTHROPIC_BASE_URL',
      'OPENAI_BASE_URL', 'GEMINI_BASE_URL', 'MAX_OUTPUT_TOKENS',
      'MAX_HISTORY_TOKENS', 'HISTORY_TTL_SECONDS', 'DOCKER_HOST'])
      assert.ok(out.includes(`\`${name}\``), name);
    const kept = new URL('../../docs/configuration.md', import.meta.url);
    assert.equal(await readFile(kept, 'utf8'), out,
      'mcp-orchestrator config docs > docs/configuration.md');
  });
});

describe('configuration', () => {
  after(() => Promise.all(['.env', 'mcp-orchestrator.json'].map(drop)));

  test('all mistakes, with their places', async () => {
    await put('mcp-orchestrator.json',
      '{\n  "sandbox": {\n    "memoryMB": 512,\n    "cpus": "1"\n  }\n}\n');
    const { code, err } = await run(['config', 'check']);
    assert.equal(code, 3);
    assert.deepEqual(err.trim().split('\n'), [
      "mcp-orchestrator.json:3:5: unknown key 'sandbox.memoryMB'; did you " +
        "mean 'memoryMb'?",
      "mcp-orchestrator.json:4:13: 'sandbox.cpus' must be a number from " +
        '0.01 to 1024',
    ]);
    assert.equal((await run(['serve'])).code, 3);
  });

  test('flags > environment > .env > file > defaults', async () => {
    const port = async (args, env) => {
      const { out } = await run(['config', 'show', '--json', ...args], { env });
      const row = JSON.parse(out).values.find((v) => v.key === 'log.level');
      return [row.value, row.source];
    };
    const env = { MCP_ORCHESTRATOR_LOG: 'warn' };
    await drop('mcp-orchestrator.json');
    assert.deepEqual(await port([]), ['info', 'default']);
    await put('mcp-orchestrator.json', '{"log":{"level":"error"}}');
    assert.deepEqual(await port([]), ['error', 'file']);
    await put('.env', 'MCP_ORCHESTRATOR_LOG=debug\n');
    assert.deepEqual(await port([]), ['debug', 'dotenv']);
    assert.deepEqual(await port([], env), ['warn', 'environment']);
    assert.deepEqual(await port(['--log', 'info'], env), ['info', 'flag']);
  });

  test('no secret is shown, by any command', async () => {
    await put('.env', 'OPENAI_API_KEY=sk-hush-hush\n');
    await put('mcp-orchestrator.json', JSON.stringify({
      llm: { claude: { apiKey: 'sk-hush-hush' } },
      server: { token: 'sk-hush-hush' },
      store: { url: 'redis://:sk-hush-hush@127.0.0.1:1/0' },
      mcpServers: { a: { url: 'http://127.0.0.1:1/?k=sk-hush-hush',
        headers: { Authorization: 'Bearer sk-hush-hush' } } },
    }));
    await chmod(join(dir, 'mcp-orchestrator.json'), 0o600);
    for (const args of [['config', 'check'], ['config', 'show', '--all'],
      ['config', 'show', '--json'], ['doctor'], ['doctor', '--json']]) {
      const { out, err } = await run(args);
      assert.ok(!/hush/.test(out + err), args.join(' '));
    }
  });
});

describe('doctor', () => {
  const finding = async (name, env, args = []) => {
    const { out, code } = await run(['doctor', '--json', ...args], { env });
    const all = JSON.parse(out);
    assert.equal(code, all.ok ? 0 : 1);
    return all.checks.find((c) => c.name === name);
  };
  /** Again, if nobody answered within doctor's second. */
  const answered = async (...args) => {
    for (let tries = 0; ; tries++) {
      const found = await finding(...args);
      if (tries === 4 || !/timed out/.test(found.text)) return found;
    }
  };
  /** A listener that answers every connection with one text. */
  const listen = async (where, answer) => {
    const server = createServer((s) => {
      s.on('error', () => {});
      s.once('data', () => answer && s.end(answer));
    });
    server.listen(where);
    await once(server, 'listening');
    return server;
  };

  test('a fresh machine has nothing that failed', async () => {
    const { code, out } = await run(['doctor']);
    assert.equal(code, 0);
    assert.match(out, /no key: the built-in demo model answers/);
    const local = await run(['doctor'], { env: { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' } });
    assert.match(local.out, /no key: the model server at llm.openai.baseUrl answers/);
    assert.ok(!out.includes('\x1b'), 'no colours in a pipe');
  });

  test('Docker that answers, and one that is silent', async () => {
    const path = join(dir, 'd.sock');
    const env = { DOCKER_HOST: `unix://${path}` };
    const good = await listen(path, 'HTTP/1.1 200 OK\r\n\r\nOK');
    assert.equal((await answered('docker', env)).health, 'ok');
    good.close();
    await once(good, 'close');
    const mute = await listen(path, null);
    const found = await finding('docker', env);
    assert.equal(found.health, 'warn');
    assert.match(found.text, /timed out/);
    mute.close();
    assert.match((await finding('docker', env)).text, /no engine answers/);
  });

  test('Redis: there, silent, something else, gone', async () => {
    for (const [user, answer, health] of [
      ['', '+PONG\r\n', 'ok'],
      ['', '-NOAUTH Authentication required.\r\n', 'fail'],
      ['u:p@', '+OK\r\n', 'ok'],
      ['u:p@', '-WRONGPASS no such user\r\n', 'fail'],
      ['', 'HTTP/1.1 400 Bad Request\r\n', 'fail'],
      ['', null, 'fail'],
    ]) {
      const server = await listen({ port: 0, host: '127.0.0.1' }, answer);
      const url = `redis://${user}127.0.0.1:${server.address().port}/0`;
      assert.equal((await (answer ? answered : finding)('redis', { REDIS_URL: url })).health, health, `${user} ${answer}`);
      server.close();
    }
    assert.equal(
      (await finding('redis', { REDIS_URL: 'redis://127.0.0.1:1' })).health,
      'fail');
    assert.equal((await finding('redis', {})).text, 'not used');
  });

  test('Redis: a real one, with a password from a reference', { skip: noRedis }, async () => {
    const socket = join(dir, 'r.sock');
    const server = await redis({ args: ['--requirepass', 'hush', '--unixsocket', socket] });
    const at = `127.0.0.1:${server.port}`;
    const found = async (url, env = {}) => {
      await put('mcp-orchestrator.json', JSON.stringify({ store: { url } }));
      const { health, text, todo } = await answered('redis', { PASSWORD: 'hush', ...env });
      assert.ok(!/hush|wrong/.test(text + todo), text + todo);
      return [health, text];
    };
    try {
      await put('password', 'hush\n');
      for (const ref of ['${env:PASSWORD}', `\${file:${join(dir, 'password')}}`])
        assert.deepEqual(await found(`redis://:${ref}@${at}/0`), ['ok', `${at} answers`]);
      assert.deepEqual(await found('${env:WHOLE}', { WHOLE: `redis://default:hush@${at}` }), ['ok', `${at} answers`]);
      assert.deepEqual(await found(`redis+sentinel://:\${env:PASSWORD}@${at}/m`), ['ok', `${at} answers`]);
      assert.deepEqual(await found(`redis://:\${env:PASSWORD}@${at}`, { PASSWORD: 'wrong' }),
        ['fail', `${at} answers with the error WRONGPASS`]);
      assert.deepEqual(await found(`redis+unix:${socket}`), ['fail', `unix:${socket} answers with the error NOAUTH`]);
      for (const [PASSWORD, says] of [['hush@sign', 'the address is not a valid URL'], ['hush/sign', 'the database of Redis is a number']])
        assert.deepEqual(await found(`redis://:\${env:PASSWORD}@${at}`, { PASSWORD }), ['fail', `store: ${says}`]);
      assert.match((await found(`redis://:\${secret:redis}@${at}`)).join(), /^fail,store.url: .*redis/);
      assert.equal((await run(['secrets', 'set', 'redis'], { input: 'hush' })).code, 0);
      assert.deepEqual(await found(`redis://:\${secret:redis}@${at}`), ['ok', `${at} answers`]);
      assert.match((await found(`redis://:\${env:NOWHERE}@${at}`)).join(), /^fail,store.url: .*NOWHERE/);
      assert.deepEqual(await found('sqlite:${env:PASSWORD}.db'), ['ok', 'not used']);
    } finally {
      await drop('mcp-orchestrator.json');
      await server.stop();
    }
  });

  test('the port, when somebody has it', async () => {
    const server = await listen({ port: 0, host: '127.0.0.1' }, null);
    const PORT = String(server.address().port);
    assert.match((await finding('port', { PORT })).text, /is in use/);
    server.close();
    await once(server, 'close');
    assert.match((await finding('port', { PORT })).text, /is free/);
  });

  test('keys and references', async () => {
    assert.equal(
      (await finding('keys', { LLM_PROVIDER: 'claude' })).health, 'fail');
    assert.match(
      (await finding('keys', { OPENAI_API_KEY: 'sk-hush-hush' })).text,
      /there is a key for OpenAI/);
    await put('k.json', '{"llm":{"claude":{"apiKey":"${env:MY_KEY}"}}}');
    const args = ['--config', 'k.json'];
    assert.match((await finding('keys', {}, args)).text, /has no MY_KEY/);
    assert.equal((await finding('keys', { MY_KEY: 'x' }, args)).health, 'ok');
  });

  test('a bad configuration is a finding, not the end', async () => {
    await put('bad.json', '{"x":1}');
    const args = ['--config', 'bad.json'];
    const found = await finding('config', {}, args);
    assert.equal(found.health, 'fail');
    assert.match(found.text, /bad\.json:1:2: unknown key 'x'/);
    assert.equal((await finding('cgroup', {}, args)).health !== undefined, true);
  });

  test('a program that is not there', async () => {
    await put('p.json', '{"mcpServers":{"a":{"command":"no-such-program"}}}');
    const found = await finding('servers', {}, ['--config', 'p.json']);
    assert.match(found.text, /'a' needs the program 'no-such-program'/);
  });
});

test('every command leaves nothing behind', async () => {
  const env = { ASAN_OPTIONS: 'detect_leaks=1' };
  await put('l.json', '{"mcpServers":{"a":{"command":"x","args":["y"]}}}');
  const all = await Promise.all(
    [['version'], ['help'], ['config', 'check'], ['config', 'show'],
      ['config', 'schema'], ['doctor']].map((args) =>
      run([...args, '--config', 'l.json'], { env })));
  for (const { code, err } of all) assert.deepEqual([code, err], [0, '']);
});

describe('serve', () => {
  test('reloads on change and SIGHUP, keeps the old when bad', async () => {
    await put('s.json', '{"llm":{"model":"one"}}');
    const child = spawn(
      bin, ['serve', '--config', 's.json', '--port', '0'],
      { env: cleanEnv(), cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] });
    const exit = once(child, 'exit');
    const [ready] = await once(child.stdout, 'data');
    assert.match(String(ready), /is ready/);
    const lines = createInterface({ input: child.stderr });
    const seen = [];
    const waiting = [];
    lines.on('line', (line) => {
      seen.push(line);
      for (const w of [...waiting]) w();
    });
    const until = (what) =>
      new Promise((resolve) => {
        const look = () => {
          const i = seen.findIndex((l) => what.test(l));
          if (i < 0) return;
          seen.splice(0, i + 1);
          waiting.splice(waiting.indexOf(look), 1);
          resolve();
        };
        waiting.push(look);
        look();
      });
    await put('s.json', '{"llm":{"model":"two-two"}}');
    await until(/llm\.model changed/);
    await put('s.json', '{"llm":{"modl":"three"}}');
    await until(/keeping the old configuration.*did you mean 'model'/);
    await put('s.json', '{"llm":{"model":"two-two"},"server":{"token":"a-token-of-24-characters"}}');
    child.kill('SIGHUP');
    await until(/server\.token changed/);
    child.kill('SIGTERM');
    assert.deepEqual(await exit, [0, null]);
  });
});
