// What the tests of `mcp install` share: the real npm with a registry of
// packages made here, a fake MCP Registry, and a home of its own for each test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach } from 'node:test';

import { startNpm } from '../fakes/npm.mjs';
import { startPypi } from '../fakes/pypi.mjs';
import { startRegistry } from '../fakes/registry.mjs';
import { bin, cleanEnv } from './mcp.mjs';

// An MCP server without dependencies; it answers with its variables.
export const SERVER = `#!/usr/bin/env node
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const result = method === 'initialize'
    ? { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'fake', version: require('./package.json').version } }
    : method === 'ping' ? {} : method === 'tools/list' ? { tools: [{ name: 'hello', inputSchema: { type: 'object' } }] } : undefined;
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: method } }) }));
});
`;
// A server with one tool that runs a script in Node and answers with its result.
const PROBE = `#!/usr/bin/env node
const { createInterface } = require('node:readline');
const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize')
    answer(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'probe', version: '1' } });
  else if (method === 'tools/list')
    answer(id, { tools: [{ name: 'probe', inputSchema: { type: 'object', properties: { script: { type: 'string' } } } }] });
  else if (method === 'tools/call') {
    const run = new (async () => {}).constructor('require', params.arguments.script);
    const text = await run(require).then((v) => JSON.stringify(v), (e) => String(e.cause?.code ?? e.code ?? e));
    answer(id, { content: [{ type: 'text', text: text ?? 'nothing' }] });
  } else if (id !== undefined)
    console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: method } }));
});
`;
const server = (name, more = {}) => ({
  name, version: '1.0.0', bin: { it: 'it.js' }, ...more, files: { 'it.js': SERVER, ...more.files },
});

// The same in Python.
export const PYTHON = `import json, sys

def main():
    import importlib.metadata
    for line in sys.stdin:
        m = json.loads(line)
        if 'id' not in m:
            continue
        a = {'jsonrpc': '2.0', 'id': m['id']}
        if m['method'] == 'initialize':
            a['result'] = {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'snake', 'version': importlib.metadata.version('ada-snake')}}
        elif m['method'] == 'tools/list':
            a['result'] = {'tools': [{'name': 'hello', 'inputSchema': {'type': 'object'}}, {'name': 'probe', 'inputSchema': {'type': 'object'}}]}
        elif m['method'] == 'tools/call':
            try:
                text = repr(eval(m['params']['arguments']['script'], {'sys': sys, 'os': __import__('os')}))
            except BaseException as e:
                text = type(e).__name__
            a['result'] = {'content': [{'type': 'text', 'text': text}]}
        elif m['method'] == 'ping':
            a['result'] = {}
        else:
            a['error'] = {'code': -32601, 'message': m['method']}
        print(json.dumps(a), flush=True)
`;
const snake = (more = {}) => ({
  name: 'Ada_Snake', version: '1.0.0', summary: 'Snakes', readme: 'x\n\n<!-- mcp-name: io.github.ada/snake -->\n',
  urls: { Repository: 'https://github.com/ada/snake' }, scripts: { 'ada-snake': 'ada_snake.server:main' },
  files: { 'ada_snake/__init__.py': '', 'ada_snake/server.py': PYTHON, ...more.files }, ...more,
});

export let npm, pypi, registry, dir;
let root, n = 0;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'mo-install-'));
  npm = await startNpm([
    server('@ada/weather', {
      version: '1.0.0', mcpName: 'io.github.ada/weather', repository: { type: 'git', url: 'https://github.com/ada/weather' },
    }),
    server('@ada/weather', {
      version: '1.1.0', mcpName: 'io.github.ada/weather', dependencies: { '@ada/rain': '^2.0.0' },
      repository: { type: 'git', url: 'git+https://github.com/ada/weather.git' },
    }),
    { name: '@ada/rain', version: '2.0.1', files: { 'index.js': 'module.exports = 1;\n' } },
    server('scripted', { scripts: { postinstall: 'echo "ran, key $SOME_KEY" > ran.txt' } }),
    server('who', { scripts: { postinstall: 'id -u > who.txt; grep NoNewPrivs /proc/self/status >> who.txt' } }),
    server('@ada/moved', { repository: { type: 'git', url: 'https://github.com/ada/moved' } }),
    server('@ada/moved', { version: '2.0.0', repository: { type: 'git', url: 'https://github.com/mallory/moved\u001b' } }),
    server('@evil/server-memory'),
    server('linked', { files: { 'it.js': SERVER, out: { link: '../../../../../etc/passwd' } } }),
    server('from-git', { dependencies: { other: `http://127.0.0.1:1/other.tgz` } }),
    { name: 'library', version: '1.0.0', files: { 'index.js': '' } },
    { name: '@ada/probe', version: '1.0.0', bin: { it: 'it.js' }, files: { 'it.js': PROBE } },
    {
      name: '@ada/large', version: '1.0.0', type: 'module', bin: { it: 'it.js' },
      files: {
        'it.js': `${Array.from({ length: 600 }, (_, i) => `import './m/${i}.js';\n`).join('')}import './server.cjs';\n`,
        'server.cjs': SERVER, ...Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`m/${i}.js`, `export default ${i};\n`])),
      },
    },
    server('two-bins', { bin: { a: 'it.js', b: 'it.js' } }),
    server('binary', { files: { 'it.js': '#!/bin/sh\necho hi\n' } }),
    server('no-program', { bin: { it: 'missing.js' } }),
  ]);
  pypi = await startPypi([
    snake(),
    snake({ version: '1.1.0', requires: ['ada.scales >=2,<3'], scripts: { 'ada-snake': 'ada_snake.server:main', other: 'ada_snake.server:main' } }),
    { name: 'ada-scales', version: '2.0.1', files: { 'ada_scales.py': 'n = 1\n', 'broken.py': 'not python (\n' } },
    { name: 'only-source', version: '1.0.0', sdist: true },
    { name: 'needs-source', version: '1.0.0', requires: ['only-source'], scripts: { it: 'x:y' }, files: { 'x.py': '' } },
    { name: 'withdrawn', version: '1.0.0', yanked: 'it is broken', scripts: { it: 'x:y' }, files: { 'x.py': '' } },
    { name: 'needs-withdrawn', version: '1.0.0', requires: ['withdrawn==1.0.0'], scripts: { it: 'x:y' }, files: { 'x.py': '' } },
    { name: 'outside', version: '1.0.0', scripts: { it: 'x:y' }, files: { 'x.py': '' }, entries: { '../../../../evil.py': 'x' } },
    { name: 'absolute', version: '1.0.0', scripts: { it: 'x:y' }, files: { 'x.py': '' }, entries: { '/tmp/mo-evil.py': 'x' } },
    { name: 'recorded', version: '1.0.0', scripts: { it: 'x:y' }, files: { 'x.py': '' }, record: ['../../../etc/passwd,,'] },
    { name: 'recorded-at-root', version: '1.0.0', scripts: { it: 'x:y' }, files: { 'x.py': '' }, record: ['/etc/passwd,,'] },
    { name: 'impostor', version: '1.0.0', scripts: { it: 'x:y' }, files: { 'x.py': '' }, metadata: { name: 'somebody-else' } },
    { name: 'injected', version: '1.0.0', scripts: { it: "x:y');import os;os.system('true" }, files: { 'x.py': '' } },
    { name: 'two-programs', version: '1.0.0', scripts: { a: 'ada_snake.server:main', b: 'ada_snake.server:main' }, requires: ['ada-snake==1.0.0'], files: { 'x.py': '' } },
    { name: 'library', version: '1.0.0', files: { 'x.py': '' } },
    { name: 'mcp_server.tyme', version: '1.0.0', scripts: { it: 'x:y' }, files: { 'x.py': '' } },
  ]);
  registry = await startRegistry([]);
});
after(async () => {
  npm.close();
  pypi.close();
  registry.close();
  await rm(root, { recursive: true });
});
beforeEach(async () => {
  dir = join(root, `${++n}`);
  await mkdir(dir);
  registry.rows = [];
  registry.faults.length = 0;
  npm.lies.clear();
  npm.hangs.clear();
  pypi.lies.clear();
  pypi.hangs.clear();
  pypi.html = false;
});

export const environment = (more = {}, home = dir) => cleanEnv({
  HOME: home, MCP_ORCHESTRATOR_STATE_DIR: join(home, 'state'), MCP_REGISTRY_URL: registry.url,
  npm_config_registry: npm.url, npm_config_cache: join(home, 'npm'), npm_config_userconfig: join(home, 'npmrc'),
  npm_config_fetch_retries: '0', PIP_INDEX_URL: `${pypi.url}/simple/`, PIP_CONFIG_FILE: '/dev/null', PIP_CACHE_DIR: join(home, 'pip'),
  PIP_RETRIES: '0', ...more,
});
export function start(args, more) {
  const child = spawn(bin, args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'], env: environment(more) });
  child.said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (d) => (child.said.out += d));
  child.stderr.setEncoding('utf8').on('data', (d) => (child.said.err += d));
  return child;
}
export async function mcp(args, more) {
  const child = start(['mcp', ...args], more);
  const [code] = await once(child, 'close');
  return { code, ...child.said };
}
export const ok = async (...args) => {
  const got = await mcp(args);
  assert.equal(got.code, 0, got.err);
  return got.out;
};
export const fails = async (args, code, says, more) => {
  const got = await mcp(args, more);
  assert.match(got.err, says);
  assert.equal(got.code, code, got.err);
  assert.deepEqual(await servers(), {});
  assert.deepEqual(await installed(), []);
  return got;
};
export const servers = async () => {
  const text = await readFile(join(dir, '.config/mcp-orchestrator/config.json'), 'utf8').catch(() => '{}');
  return JSON.parse(text).mcpServers ?? {};
};
export const installed = () => readdir(join(dir, 'state/servers')).catch(() => []);
export const lock = async () => JSON.parse(await readFile(join(dir, 'state/servers.lock.json'), 'utf8')).servers;
export const audit = async () => (await readFile(join(dir, 'state/audit.jsonl'), 'utf8')).split('\n').slice(0, -1);
