// Published MCP servers, installed by name with the registry that npm is set up
// for on this machine. Each runs in its box, lists the same tools as without a
// box, and answers a call if that needs no account.
//
// Usually the two that are marked are played. MO_PUBLISHED=1, 2, ... plays the
// first, second, ... PART of all (make long).
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { startRegistry } from '../fakes/registry.mjs';
import { bin, run } from '../lib/mcp.mjs';
import { noNative } from '../lib/sessions.mjs';

const KEPT = /^(npm_config_(?!prefix)|https?_proxy$|no_proxy$|NODE_EXTRA_CA_CERTS$|SSL_CERT_)/i;
const KEY = '${env:KEY}'; // of no account
const PART = 3;

const servers = [
  {
    usual: true, spec: 'npm:@modelcontextprotocol/server-memory@2026.8.31', env: { MEMORY_FILE_PATH: '/workspace/memory.jsonl' },
    call: ['create_entities', { entities: [{ name: 'Ada', entityType: 'person', observations: ['here'] }] }, /Ada/],
  },
  { spec: 'npm:@modelcontextprotocol/server-everything@2026.8.31', call: ['echo', { message: 'hi there' }, /hi there/] },
  { spec: 'npm:@modelcontextprotocol/server-filesystem@2026.8.31', args: ['/tmp'], call: ['list_allowed_directories', {}, /\/tmp/] },
  {
    spec: 'npm:@modelcontextprotocol/server-sequential-thinking@2026.8.31',
    call: ['sequentialthinking', { thought: 'x', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }, /thoughtNumber/],
  },
  { spec: 'npm:@modelcontextprotocol/server-gitlab@2025.4.25', env: { GITLAB_PERSONAL_ACCESS_TOKEN: KEY } },
  { spec: 'npm:@modelcontextprotocol/server-slack@2025.4.25', env: { SLACK_BOT_TOKEN: KEY, SLACK_TEAM_ID: 'T1' } },
  {
    spec: 'npm:mcp-server-code-runner@0.1.8',
    call: ['run-code', { languageId: 'javascript', code: 'console.log(6 * 7, process.cwd())' }, /42 \/workspace/],
  },
  { spec: 'npm:@upstash/context7-mcp@1.0.33' },
  { spec: 'npm:@modelcontextprotocol/server-github@2025.4.8' },
  { spec: 'npm:@modelcontextprotocol/server-google-maps@0.6.2', env: { GOOGLE_MAPS_API_KEY: KEY } },
  { spec: 'npm:@modelcontextprotocol/server-brave-search@0.6.2', env: { BRAVE_API_KEY: KEY } },
  { spec: 'npm:tavily-mcp@0.2.22', env: { TAVILY_API_KEY: KEY } },
  { spec: 'npm:@antv/mcp-server-chart@0.9.10' },
  { spec: 'npm:@notionhq/notion-mcp-server@2.5.2' },
  // by its name in the registry, with the entry that the registry has
  {
    usual: true, spec: 'io.github.domdomegg/airtable-mcp-server',
    server: {
      name: 'io.github.domdomegg/airtable-mcp-server', version: '1.7.3', description: 'Airtable',
      repository: { url: 'https://github.com/domdomegg/airtable-mcp-server.git', source: 'github' },
      packages: [
        {
          registryType: 'npm', identifier: 'airtable-mcp-server', version: '1.7.3', runtimeHint: 'npx', transport: { type: 'stdio' },
          environmentVariables: [{ description: 'Personal access token', isRequired: true, isSecret: true, name: 'AIRTABLE_API_KEY' }],
        },
        { registryType: 'oci', identifier: 'docker.io/domdomegg/airtable-mcp-server:1.7.3', runtimeHint: 'docker', transport: { type: 'stdio' } },
      ],
    },
    env: { AIRTABLE_API_KEY: KEY },
  },
  { spec: 'npm:@cyanheads/git-mcp-server@2.15.3' },
  { spec: 'npm:exa-mcp-server@3.4.1', env: { EXA_API_KEY: KEY } },
  { spec: 'npm:@openbnb/mcp-server-airbnb@0.3.0' },
  { spec: 'npm:mcp-hello-world@1.1.2', call: ['add', { a: 40, b: 2 }, /42/] },
  { spec: 'npm:firecrawl-mcp@3.26.0', env: { FIRECRAWL_API_KEY: KEY } },
];

let dir, registry;

async function program(home, args) {
  const kept = Object.entries(process.env).filter(([name]) => KEPT.test(name));
  const got = await run(bin, args, {
    cwd: dir,
    env: {
      npm_config_userconfig: join(homedir(), '.npmrc'), npm_config_cache: join(homedir(), '.npm'),
      ...Object.fromEntries(kept), KEY: 'none', MCP_REGISTRY_URL: registry.url,
      HOME: join(dir, home), MCP_ORCHESTRATOR_STATE_DIR: join(dir, home, 'state'),
    },
  });
  assert.equal(got.code, 0, got.err);
  return got.out;
}

async function play({ spec, server, args = [], env = {}, call }, home) {
  const mcp = (...a) => program(home, ['mcp', ...a]);
  const given = Object.entries(env).flatMap(([k, v]) => ['--env', `${k}=${v}`]);
  if (server)
    registry.rows = [{ server, _meta: { 'io.modelcontextprotocol.registry/official': { status: 'active', isLatest: true } } }];
  await mcp('install', spec, '--yes', '--name', 'it', ...given, ...(args.length ? ['--', ...args] : []));

  const file = join(dir, home, '.config/mcp-orchestrator/config.json');
  const config = JSON.parse(await readFile(file, 'utf8'));
  const { sandbox, network, workspace, ...plain } = config.mcpServers.it;
  assert.deepEqual([sandbox, network, workspace], ['native', undefined, true]);
  await writeFile(file, JSON.stringify({ mcpServers: { ...config.mcpServers, plain } }));

  const [boxed, unboxed] = JSON.parse(await mcp('list', '--tools', '--json'));
  assert.deepEqual([boxed.error, unboxed.error], [undefined, undefined]);
  assert.ok(boxed.tools.length > 0);
  assert.deepEqual(boxed.tools, unboxed.tools);
  if (call) assert.match(await program(home, ['call', 'it', call[0], JSON.stringify(call[1])]), call[2]);
  assert.match(await mcp('verify', 'it'), /^it: unchanged/);
  await mcp('uninstall', 'it');
  assert.ok(!existsSync(join(dir, home, 'state/servers')));
}

const part = Number(process.env.MO_PUBLISHED ?? 0);
const played = part ? servers.slice((part - 1) * PART, part * PART) : servers.filter((s) => s.usual);

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-live-'));
  registry = await startRegistry([]);
});
after(async () => {
  registry.close();
  await rm(dir, { recursive: true });
});
describe('published servers', { concurrency: 2, skip: noNative && `needs ${noNative}` }, () => {
  played.forEach((s, i) => test(`${s.spec}: the same tools in its box as without`, () => play(s, `${i}`)));
});
