// The configuration file changed by commands: servers added, removed, switched
// and imported, and everything else in it byte for byte as it was.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod, copyFile, lstat, mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { bin, cleanEnv } from '../lib/mcp.mjs';

const data = (name) => fileURLToPath(new URL(`../data/import/${name}`, import.meta.url));
// People's own taste: tabs and blanks mixed, an order of their own, one line.
const FILE = `{
\t"$schema" : "./x.json",
\t"log":{"level":"warn"},
\t"mcpServers": {
\t\t"one": { "command": "one", "args": ["a",  "b"], "cpus": 1.50e0 },
\t\t"two": {
\t\t\t"url": "https:\\/\\/two.example\\u002ecom/mcp",
\t\t\t"enabled": false
\t\t}
\t},
\t"server": { "port": 3000 }
}
`;

let root, dir, n = 0;
before(async () => { root = await mkdtemp(join(tmpdir(), 'mo-edit-')); });
after(() => rm(root, { recursive: true }));
beforeEach(async () => {
  dir = join(root, `${++n}`);
  await mkdir(dir);
});

async function cli(...args) {
  const child = spawn(bin, args, {
    cwd: dir, stdio: ['ignore', 'pipe', 'pipe'],
    env: cleanEnv({ HOME: dir, MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') }),
  });
  let out = '', err = '';
  child.stdout.setEncoding('utf8').on('data', (d) => (out += d));
  child.stderr.setEncoding('utf8').on('data', (d) => (err += d));
  const [code] = await once(child, 'close');
  return { code, out, err };
}
const ok = async (...args) => {
  const got = await cli(...args);
  assert.deepEqual([got.code, got.err], [0, ''], got.out);
  return got.out;
};
const path = () => join(dir, 'mcp-orchestrator.json');
const text = () => readFile(path(), 'utf8');
const servers = async () => JSON.parse(await text()).mcpServers;

/** All but the state directory (the audit log) and what `config allow` keeps. */
const files = async (dir) => (await readdir(dir)).filter((f) => f !== 'state' && f !== '.config').sort();

describe('one server', () => {
  beforeEach(() => writeFile(path(), FILE, { mode: 0o640 }));

  test('added behind the others, in their way; the rest keeps its bytes', async () => {
    await chmod(path(), 0o640);
    await ok('mcp', 'add', 'three', '--command', `npx -y 'a b' "c"`, '--env', 'DEBUG=1',
      '--env', 'TOKEN=${secret:t}', '--cwd', '/tmp', '--description', 'says "hi"');
    const now = await text();
    const cut = FILE.indexOf('\n\t},\n\t"server"');
    assert.ok(now.startsWith(FILE.slice(0, cut) + ',\n\t\t"three": {\n\t\t\t"command": "npx",'), now);
    assert.ok(now.endsWith(FILE.slice(cut)), now);
    assert.deepEqual((await servers()).three, {
      command: 'npx', args: ['-y', 'a b', 'c'], cwd: '/tmp', description: 'says "hi"',
      env: { DEBUG: '1', TOKEN: '${secret:t}' },
    });
    assert.equal(await readFile(path() + '.bak', 'utf8'), FILE);
    assert.equal((await stat(path())).mode & 0o777, 0o640);
    assert.deepEqual(await files(dir), ['mcp-orchestrator.json', 'mcp-orchestrator.json.bak']);
  });

  test('added and removed again: the file is the old one', async () => {
    await ok('mcp', 'add', 'three', '--url', 'https://three.example.com/mcp', '--header', 'X-A: b');
    await ok('mcp', 'remove', 'three');
    assert.equal(await text(), FILE);
  });

  test('switched: one word changes', async () => {
    await ok('mcp', 'enable', 'two');
    assert.equal(await text(), FILE.replace('"enabled": false', '"enabled": true'));
    await ok('mcp', 'disable', 'two');
    assert.equal(await text(), FILE);
    await ok('mcp', 'disable', 'one');
    assert.equal(await text(), FILE.replace('1.50e0 }', '1.50e0, "enabled":false }').replace('"enabled":false }', '"enabled": false }'));
    assert.match(await ok('mcp', 'disable', 'one'), /already/);
  });

  test('removed: first, last, only', async () => {
    await ok('mcp', 'remove', 'one');
    assert.deepEqual(Object.keys(await servers()), ['two']);
    await ok('mcp', 'remove', 'two');
    assert.equal(await text(), FILE.replace(/"mcpServers": \{[^]*?\n\t\},/, '"mcpServers": {},'));
    await ok('mcp', 'add', 'x', '--image', 'an/image:1', '--disabled');
    assert.deepEqual(await servers(), { x: { image: 'an/image:1', enabled: false } });
  });

  test('never over another without --replace', async () => {
    const got = await cli('mcp', 'add', 'one', '--url', 'https://x.example.com');
    assert.equal(got.code, 1);
    assert.match(got.err, /already; --replace/);
    assert.equal(await text(), FILE);
    await ok('mcp', 'add', 'one', '--url', 'https://x.example.com', '--replace');
    assert.deepEqual((await servers()).one, { url: 'https://x.example.com' });
  });

  for (const [name, args, code, says] of [
    ['what the loader refuses', ['add', 'x', '--url', 'ftp://x'], 3, /json:\d+:\d+: 'mcpServers\.x\.url' must start with http.*\n.*was not changed/],
    ['a bad name', ['add', 'a b', '--url', 'http://x'], 3, /a name has/],
    ['nothing to start', ['add', 'x'], 2, /needs one of/],
    ['two things to start', ['add', 'x', '--url', 'http://x', '--image', 'y'], 2, /needs one of/],
    ['a key on the command line', ['add', 'x', '--command', 'y', '--env', 'API_KEY=abc'], 2, /secrets set/],
    ['a key in a header', ['add', 'x', '--url', 'http://x', '--header', 'Authorization: Bearer abc'], 2, /secrets set/],
    ['half a pair', ['add', 'x', '--command', 'y', '--env', 'ABC'], 2, /NAME=VALUE/],
    ['an open quote', ['add', 'x', '--command', '"y'], 2, /quote/],
    ['nobody to remove', ['remove', 'x'], 3, /no server 'x'/],
    ['nobody to enable', ['enable', 'x'], 3, /no server 'x'/],
  ])
    test(`${name}: ${code}, and the file is as it was`, async () => {
      const got = await cli('mcp', ...args);
      assert.equal(got.code, code, got.err);
      assert.match(got.err, says);
      assert.equal(await text(), FILE);
      assert.deepEqual(await files(dir), ['mcp-orchestrator.json']);
    });

  test('a fallback keeps its server', async () => {
    const full = FILE.replace('"b"]', '"b"], "fallback": ["two"]');
    await writeFile(path(), full);
    const got = await cli('mcp', 'remove', 'two');
    assert.equal(got.code, 3);
    assert.match(got.err, /there is no server 'two'/);
    assert.equal(await text(), full);
  });

  test('a broken file is not touched', async () => {
    await writeFile(path(), FILE + ',');
    assert.equal((await cli('mcp', 'add', 'x', '--url', 'http://x')).code, 3);
    assert.equal(await text(), FILE + ',');
  });

  test('a link stays one', async () => {
    await mkdir(join(dir, 'dots'));
    await copyFile(path(), join(dir, 'dots/real.json'));
    await rm(path());
    await symlink('dots/real.json', path());
    await ok('mcp', 'remove', 'one');
    assert.ok((await lstat(path())).isSymbolicLink());
    assert.deepEqual(Object.keys(await servers()), ['two']);
    assert.equal(await readFile(join(dir, 'dots/real.json.bak'), 'utf8'), FILE);
  });

  test('writers at the same time lose nothing', async () => {
    const names = Array.from({ length: 6 }, (_, i) => `n${i}`);
    const all = await Promise.all(names.map((x) => cli('mcp', 'add', x, '--url', `http://${x}/`)));
    for (const { code, err } of all) assert.equal(code, 0, err);
    assert.deepEqual(Object.keys(await servers()).slice(2).sort(), names);
  });
});

test('no file yet: made where it is looked for, for its owner alone', async () => {
  await ok('mcp', 'add', 'x', '--', 'npx', '-y', '--flag');
  const made = join(dir, '.config/mcp-orchestrator/config.json');
  assert.equal((await stat(made)).mode & 0o777, 0o600);
  assert.equal(await readFile(made, 'utf8'), `{
  "mcpServers": {
    "x": {
      "command": "npx",
      "args": [
        "-y",
        "--flag"
      ]
    }
  }
}
`);
});

test('line ends of another system stay', async () => {
  await writeFile(path(), FILE.replaceAll('\n', '\r\n'));
  await ok('mcp', 'add', 'x', '--url', 'http://x/');
  assert.ok(!/[^\r]\n/.test(await text()));
});

// --- import -----------------------------------------------------------------

const plan = async (...args) => {
  const got = JSON.parse(await ok('mcp', 'import', '--json', ...args));
  return Object.fromEntries(got.servers.map((s) => [s.name, s]));
};
const brief = (p) => Object.fromEntries(Object.entries(p).map(([k, s]) => [k, s.action]));

const CLIENTS = {
  'claude-desktop': {
    file: 'claude_desktop_config.json', at: '.config/Claude/claude_desktop_config.json',
    plan: { filesystem: 'add', github: 'add', 'Brave-Search': 'add', postgres: 'add' },
    gives: {
      filesystem: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/home/ada/Desktop', '/home/ada/Downloads'] },
      github: {
        command: 'docker',
        args: ['run', '-i', '--rm', '-e', 'GITHUB_PERSONAL_ACCESS_TOKEN', 'ghcr.io/github/github-mcp-server'],
        env: { GITHUB_PERSONAL_ACCESS_TOKEN: '${secret:github.GITHUB_PERSONAL_ACCESS_TOKEN}' },
      },
      'Brave-Search': { command: 'npx', args: ['-y', '@modelcontextprotocol/server-brave-search'], env: { BRAVE_API_KEY: '${secret:Brave-Search.BRAVE_API_KEY}' } },
      postgres: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-postgres', 'postgresql://localhost/mydb'] },
    },
    keys: ['Brave-Search.BRAVE_API_KEY', 'github.GITHUB_PERSONAL_ACCESS_TOKEN'],
  },
  cursor: {
    file: 'cursor_mcp.json', at: '.cursor/mcp.json',
    plan: { linear: 'add', figma: 'add', playwright: 'add', 'project-tools': 'cannot', sentry: 'add' },
    gives: {
      linear: { url: 'https://mcp.linear.app/sse', transport: 'sse' },
      figma: { url: 'http://127.0.0.1:3845/mcp', headers: { Authorization: 'Bearer ${env:FIGMA_TOKEN}' } },
      playwright: { command: 'npx', args: ['@playwright/mcp@latest', '--headless'], env: { PORT: '8931', HOME_OF: (home) => `${home}/.cache` } },
      sentry: { url: 'https://mcp.sentry.dev/mcp', headers: { 'X-Api-Key': '${secret:sentry.X-Api-Key}' }, enabled: false },
    },
    keys: ['sentry.X-Api-Key'],
  },
  vscode: {
    file: 'vscode_mcp.json', at: '.vscode/mcp.json',
    plan: { perplexity: 'add', fetch: 'add', github: 'add', db: 'cannot', legacy: 'add' },
    gives: {
      perplexity: { command: 'npx', args: ['-y', 'server-perplexity-ask'], env: { PERPLEXITY_API_KEY: '${secret:perplexity-key}' } },
      fetch: { command: 'uvx', args: ['mcp-server-fetch'] },
      github: { url: 'https://api.githubcopilot.com/mcp/', headers: { Authorization: 'Bearer ${secret:perplexity-key}' } },
      legacy: { url: 'https://example.com/events', transport: 'sse' },
    },
    keys: [],
  },
  'vscode settings': {
    file: 'vscode_settings.json', from: 'vscode', at: '.config/Code/User/settings.json',
    plan: { time: 'add' },
    gives: { time: { command: 'python', args: ['-m', 'mcp_server_time', '--local-timezone=Europe/Berlin'] } },
    keys: [],
  },
  windsurf: {
    file: 'windsurf_mcp_config.json', at: '.codeium/windsurf/mcp_config.json',
    plan: { 'remote-http-mcp': 'add', 'google-maps': 'add', old: 'add' },
    gives: {
      'remote-http-mcp': { url: 'https://mcp.example.com/mcp', headers: { API_KEY: '${secret:remote-http-mcp.API_KEY}' } },
      'google-maps': { command: 'npx', args: ['-y', '@modelcontextprotocol/server-google-maps'], env: { GOOGLE_MAPS_API_KEY: '${env:GOOGLE_MAPS_API_KEY}' } },
      old: { url: 'https://old.example.com/sse', transport: 'sse' },
    },
    keys: ['remote-http-mcp.API_KEY'],
  },
  registry: {
    file: 'registry.json',
    plan: { comfyui: 'add', time: 'add', planned: 'cannot' },
    gives: {
      comfyui: { command: 'python', args: ['-m', 'mcp_comfyui'], description: 'Generate images, logos and art with ComfyUI', keywords: ['image', 'picture', 'logo', 'art'] },
      time: { command: 'uvx', args: ['mcp-server-time'], description: 'Current time and time zones', keywords: ['time', 'clock'] },
    },
    keys: [],
  },
  'mcp-config.json': {
    file: 'mcp-config.json',
    plan: { workspace: 'add', weather: 'add', events: 'add' },
    gives: {
      workspace: { image: 'mcp-server:latest', env: { LOG_LEVEL: 'info' }, description: 'Files and commands in a container', toolPrefix: 'ws', memoryMb: 512, cpus: 0.5 },
      weather: { url: 'http://localhost:8080/mcp', headers: { Authorization: 'Bearer ${env:WEATHER_TOKEN}' }, enabled: false },
      events: { url: 'https://example.com/stream', transport: 'sse' },
    },
    keys: [],
  },
};

describe('import', () => {
  for (const [name, client] of Object.entries(CLIENTS))
    test(`${name}: the same servers, keys in the store, and then nothing more to do`, async () => {
      let from = [data(client.file)];
      if (client.at) {
        await mkdir(join(dir, client.at, '..'), { recursive: true });
        await copyFile(data(client.file), join(dir, client.at));
        from = ['--from', client.from ?? name];
      }
      await writeFile(path(), '{"log": {"level": "warn"}}');
      assert.deepEqual(brief(await plan(...from)), client.plan);
      assert.equal(await text(), '{"log": {"level": "warn"}}', 'a plan writes nothing');
      await assert.rejects(stat(join(dir, 'state')));
      await ok('mcp', 'import', ...from, '--secrets', '--write');
      const want = structuredClone({ ...client.gives, playwright: undefined });
      delete want.playwright;
      if (client.gives.playwright) {
        const { env, ...rest } = client.gives.playwright;
        want.playwright = { ...rest, env: { ...env, HOME_OF: env.HOME_OF(dir) } };
      }
      assert.deepEqual(await servers(), want);
      assert.ok((await text()).startsWith('{"log": {"level": "warn"}'));
      const list = await ok('secrets', 'list', '--json');
      assert.deepEqual(JSON.parse(list).map((s) => s.name), client.keys);
      const again = brief(await plan(...from));
      for (const [server, action] of Object.entries(client.plan))
        assert.equal(again[server], action === 'add' ? 'same' : action, server);
      const before = await text();
      await ok('mcp', 'import', ...from, '--secrets', '--write');
      assert.equal(await text(), before);
    });

  test('without --secrets the keys are offered, and written as they are', async () => {
    const said = await ok('mcp', 'import', data('claude_desktop_config.json'));
    assert.match(said, /key +github\.GITHUB_PERSONAL_ACCESS_TOKEN: into the file, in the clear/);
    assert.match(said, /--secrets puts the keys/);
    assert.ok(!said.includes('ghp_'));
    await writeFile(path(), '{}');
    await ok('mcp', 'import', data('claude_desktop_config.json'), '--write');
    assert.match((await servers()).github.env.GITHUB_PERSONAL_ACCESS_TOKEN, /^ghp_/);
  });

  test('an imported key reaches the server that owns it', async () => {
    await writeFile(path(), '{}');
    const script = `process.stderr.write('got ' + process.env.X_TOKEN.length); process.exit(1)`;
    await writeFile(join(dir, 'theirs.json'), JSON.stringify({ mcpServers: { s: {
      command: process.execPath, args: ['-e', script], env: { X_TOKEN: 'tok-0123456789' } } } }));
    await ok('mcp', 'import', 'theirs.json', '--secrets', '--write');
    assert.ok(!(await text()).includes('tok-0123456789'));
    assert.match((await cli('mcp', 'test', 's')).err, /got 14/);
  });

  test('a server of ours that differs is kept, unless --replace', async () => {
    await writeFile(path(), '{"mcpServers": {"time": {"command": "mine", "description": "x"}}}');
    assert.deepEqual(brief(await plan(data('registry.json'))), { comfyui: 'add', time: 'differs', planned: 'cannot' });
    await ok('mcp', 'import', data('registry.json'), '--write');
    assert.equal((await servers()).time.command, 'mine');
    assert.equal((await plan(data('registry.json'), '--replace')).time.action, 'replace');
    await ok('mcp', 'import', data('registry.json'), '--write', '--replace');
    assert.equal((await servers()).time.command, 'uvx');
  });

  test('what we know besides does not make it differ', async () => {
    await writeFile(path(), JSON.stringify({ mcpServers: { postgres: {
      ...CLIENTS['claude-desktop'].gives.postgres, description: 'ours', timeoutMs: 5, enabled: false } } }));
    assert.equal((await plan(data('claude_desktop_config.json'))).postgres.action, 'same');
  });

  test('reasons are said', async () => {
    const cursor = await plan(data('cursor_mcp.json'));
    assert.match(cursor['project-tools'].why, /workspaceFolder.*only inside the editor/);
    assert.equal(cursor.playwright.leftOut, 'autoApprove');
    const code = await plan(data('vscode_mcp.json'));
    assert.match(code.db.why, /other users could read/);
    assert.deepEqual(code.perplexity.secrets, [{ name: 'perplexity-key', known: false }]);
    assert.match(await ok('mcp', 'import', data('vscode_mcp.json')), /secrets set perplexity-key/);
    assert.equal((await plan(data('claude_desktop_config.json')))['Brave-Search'].was, 'Brave Search');
  });

  test('a key in arguments is pointed out', async () => {
    const theirs = join(dir, 'theirs.json');
    await writeFile(theirs, JSON.stringify({ mcpServers: {
      open: { command: 'npx', args: ['-y', 'some-server', '--api-key', 'sk-0123456789abcdef0123456789abcdef'] },
      plain: { command: 'npx', args: ['-y', 'some-server', '--port', '8080'] },
    } }));
    const got = await plan(theirs);
    assert.deepEqual([got.open.keyInArgs, got.plain.keyInArgs], [true, false]);
    assert.match(await ok('mcp', 'import', theirs), /open\n +a key stands in its arguments, which other users can read/);
  });

  for (const [name, content, says] of [
    ['no JSON', 'servers:\n  - x\n', /theirs\.json/],
    ['no servers', '{"a":1}', /no MCP servers that are understood/],
    ['a comment without an end', '{ /* "mcpServers": {} }', /theirs\.json/],
    ['nothing', '', /theirs\.json/],
  ])
    test(`${name}: 1 and a reason`, async () => {
      await writeFile(join(dir, 'theirs.json'), content);
      const got = await cli('mcp', 'import', 'theirs.json', '--write');
      assert.equal(got.code, 1);
      assert.match(got.err, says);
    });

  test('nobody there: where it was looked for', async () => {
    const got = await cli('mcp', 'import', '--from', 'windsurf');
    assert.equal(got.code, 1);
    assert.match(got.err, /\.codeium\/windsurf\/mcp_config\.json/);
    assert.equal((await cli('mcp', 'import', '--from', 'emacs')).code, 2);
    assert.equal((await cli('mcp', 'import')).code, 2);
  });
});
