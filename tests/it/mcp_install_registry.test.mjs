// `mcp install` of names of the registry: packages, images, remote servers, and
// a registry that lies.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { row } from '../fakes/registry.mjs';
import { fails, installed, lock, mcp, npm, ok, registry, servers } from '../lib/install.mjs';

describe('a name of the registry', () => {
  const entry = (more = {}) => row({
    name: 'io.github.ada/weather', version: '7.0.0', description: 'Rain',
    repository: { url: 'https://github.com/ada/weather', source: 'github' },
    packages: [{
      registryType: 'npm', identifier: '@ada/weather', version: '1.0.0', transport: { type: 'stdio' }, ...more,
    }],
  });

  test('arguments, variables and secrets it declares', async () => {
    registry.rows = [entry({
      runtimeHint: 'npx', runtimeArguments: [{ type: 'positional', value: '-y' }],
      packageArguments: [
        { type: 'positional', value: 'serve' },
        { type: 'named', name: '--port', default: '80' },
        { type: 'named', name: '--optional', description: 'x' },
        { type: 'named', name: '--url', value: 'https://{host}/x', variables: { host: { default: 'a.example' } } },
      ],
      environmentVariables: [
        { name: 'TOKEN', isSecret: true, isRequired: true, description: 'The key' },
        { name: 'OTHER', isSecret: true },
        { name: 'UNIT', default: 'celsius' },
        { name: 'PLACE', isRequired: true },
      ],
    })];
    await fails(['install', 'io.github.ada/weather', '--yes'], 2, /needs the variable PLACE: --env PLACE=VALUE/);
    const out = await ok('install', 'io.github.ada/weather', '--yes', '--env', 'PLACE=here');
    assert.match(out, /TOKEN \(needed, secret\): The key\n +mcp-orchestrator secrets set weather\.TOKEN/);
    assert.match(out, /set its key: mcp-orchestrator secrets set weather\.TOKEN/);
    const { weather } = await servers();
    assert.deepEqual(weather.args.slice(1), ['serve', '--port', '80', '--url', 'https://a.example/x']);
    assert.deepEqual(weather.env, { TOKEN: '${secret:weather.TOKEN}', UNIT: 'celsius', PLACE: 'here' });
    assert.deepEqual([(await lock()).weather.registry, (await lock()).weather.version], ['io.github.ada/weather', '1.0.0']);
    assert.deepEqual(registry.problems, []);
  });

  test('an argument that only the person knows', async () => {
    registry.rows = [entry({ packageArguments: [{ type: 'positional', valueHint: 'folder', isRequired: true }] })];
    await fails(['install', 'io.github.ada/weather', '--yes'], 2, /needs the argument folder: give all its arguments after --/);
    await ok('install', 'io.github.ada/weather', '--yes', '--', '/data');
    assert.deepEqual((await servers()).weather.args.slice(1), ['/data']);
  });

  test('a SHA-256 that is true, and one that lies', async () => {
    const lying = 'ab'.repeat(32);
    registry.rows = [entry({ fileSha256: lying, version: '1.1.0' })];
    await fails(['install', 'io.github.ada/weather', '--yes'], 1, new RegExp(`says that @ada/weather@1\\.1\\.0 has the SHA-256 ${lying}`));
    registry.rows = [entry({ fileSha256: npm.sha256('@ada/weather'), version: '1.1.0' })];
    await ok('install', 'io.github.ada/weather', '--yes');
  });

  test('a name that the package or the repository does not confirm', async () => {
    const row1 = entry();
    row1.server.name = 'io.github.mallory/weather';
    registry.rows = [row1];
    const got = await fails(['install', 'io.github.mallory/weather', '--yes'], 1, /another GitHub owner/);
    assert.match(got.out, /does not confirm the registry name: its mcpName is io\.github\.ada\/weather/);
  });

  test('an old version, a deleted one, none', async () => {
    registry.rows = [row(entry().server, { status: 'deleted' })];
    await fails(['install', 'io.github.ada/weather', '--yes'], 1, /was deleted/);
    await fails(['install', 'io.github.ada/nothing', '--yes'], 4, /the registry does not have it/);
    await fails(['install', 'io.github.ada/weather@6.0.0', '--yes'], 4, /the registry does not have it/);
  });

  for (const [name, body, says] of [
    ['another server', row({ name: 'io.github.ada/other', version: '1.0.0' }), /answers with another server/],
    ['no server', { server: [] }, /no server/],
    ['a package that is a path', entry({ identifier: '../../x' }), /no name of an npm package/],
    ['a version that is an option', entry({ version: '--x' }), /no exact version/],
    ['control characters', entry({ identifier: 'x\u001b[2J' }), /no name of an npm package/],
    ['a variable that is none', entry({ environmentVariables: [{ name: 'A=B\nC' }] }), /impossible name/],
    ['too many variables', entry({ environmentVariables: Array.from({ length: 100 }, (_, i) => ({ name: `V${i}` })) }), /too many variables/],
    ['another transport', entry({ transport: { type: 'streamable-http', url: 'http://localhost/' } }), /does not speak over stdio/],
  ])
    test(`a registry that answers with ${name}`, async () => {
      registry.faults.push({ body: JSON.stringify(body) });
      const got = await mcp(['install', 'io.github.ada/weather', '--yes']);
      assert.ok(got.code > 0, got.out);
      assert.match(got.err, says);
      assert.ok(![...got.err].some((x) => x < ' ' && x !== '\n'), JSON.stringify(got.err));
      assert.deepEqual([await servers(), await installed()], [{}, []]);
    });

  test('a registry that is down does not hurt what is installed', async () => {
    registry.rows = [entry()];
    await ok('install', 'io.github.ada/weather', '--yes');
    const off = { MCP_REGISTRY_URL: 'http://127.0.0.1:1', npm_config_registry: 'http://127.0.0.1:1' };
    assert.equal((await mcp(['install', 'io.github.ada/x', '--yes'], off)).code, 4);
    assert.equal((await mcp(['test', 'weather'], off)).code, 0);
    assert.equal((await mcp(['verify'], off)).code, 0);
  });

  test('images: only with a digest', async () => {
    const image = `ghcr.io/ada/weather:1.0@sha256:${'0a'.repeat(32)}`;
    await fails(['install', 'oci:ghcr.io/ada/weather:1.0', '--yes'], 2, /has no digest, so it could change/);
    await ok('install', `oci:${image}`, '--yes');
    assert.deepEqual(await servers(), { weather: { image } });
    assert.equal((await lock()).weather.integrity, `sha256:${'0a'.repeat(32)}`);
    assert.equal(await ok('verify'), `weather: unchanged, oci:${image}\n`);
    await ok('uninstall', 'weather');
    registry.rows = [row({
      name: 'io.github.ada/weather', version: '1', repository: { url: 'https://github.com/ada/weather', source: 'github' },
      packages: [{ registryType: 'oci', identifier: 'ghcr.io/ada/weather:1', transport: { type: 'stdio' } }],
    })];
    await fails(['install', 'io.github.ada/weather', '--yes'], 2, /has no digest/);
  });

  test('remote servers: https only, keys as references', async () => {
    const remote = (more) => row({
      name: 'com.example/notes', version: '1', remotes: [{ type: 'streamable-http', url: 'https://notes.example.com/mcp', ...more }],
    });
    registry.rows = [remote({ headers: [{ name: 'X-Api-Key', isSecret: true, isRequired: true }, { name: 'X-Mode', value: 'full' }] })];
    const out = await ok('install', 'com.example/notes', '--yes');
    assert.match(out, /hosts +notes\.example\.com/);
    assert.deepEqual(await servers(), {
      notes: { url: 'https://notes.example.com/mcp', headers: { 'X-Api-Key': '${secret:notes.X-Api-Key}', 'X-Mode': 'full' } },
    });
    await ok('uninstall', 'notes');
    registry.rows = [remote({ type: 'sse' })];
    await ok('install', 'com.example/notes', '--yes');
    assert.equal((await servers()).notes.transport, 'sse');
    await ok('uninstall', 'notes');
    registry.rows = [remote({ url: 'http://127.0.0.1:80/mcp' })];
    await fails(['install', 'com.example/notes', '--yes'], 2, /https address/);
    registry.rows = [remote({ url: 'https://{tenant}.example.com/mcp', variables: { tenant: { isRequired: true } } })];
    await fails(['install', 'com.example/notes', '--yes'], 2, /its address has variables/);
  });

  // Shapes that the public registry really returns, made anew here.
  test('a header with a template: the key is a secret, the words around it stay', async () => {
    const remote = (headers) => row({
      name: 'ai.example/notes', version: '1', remotes: [{ type: 'streamable-http', url: 'https://notes.example.com/mcp', headers }],
    });
    for (const flags of [{ isRequired: true, isSecret: true }, {}]) {
      registry.rows = [remote([{ name: 'Authorization', value: 'Bearer {api_key}', ...flags }])];
      const out = await ok('install', 'ai.example/notes', '--yes');
      assert.match(out, /set its key: mcp-orchestrator secrets set notes\.api_key\n/);
      assert.deepEqual((await servers()).notes.headers, { Authorization: 'Bearer ${secret:notes.api_key}' });
      await ok('uninstall', 'notes');
    }
    registry.rows = [remote([
      { name: 'Authorization', value: 'App {token}', isSecret: true, variables: { token: { description: 'x', isRequired: true } } },
      { name: 'X-Region', value: 'eu-{n}', variables: { n: { default: '1' } } },
    ])];
    await ok('install', 'ai.example/notes', '--yes');
    assert.deepEqual((await servers()).notes.headers, { Authorization: 'App ${secret:notes.token}', 'X-Region': 'eu-1' });
  });

  test('several ways to run it: the first that works here', async () => {
    const npmPackage = (type) => ({ registryType: 'npm', identifier: '@ada/weather', version: '1.0.0', transport: { type, ...(type !== 'stdio' && { url: 'http://localhost:1/mcp' }) } });
    const image = { registryType: 'oci', identifier: 'docker.io/ada/weather:1.0.0', transport: { type: 'stdio' } };
    const remotes = [{ type: 'streamable-http', url: 'https://weather.example.com/mcp' }];
    const base = { name: 'io.github.ada/weather', version: '7', repository: { url: 'https://github.com/ada/weather', source: 'github' } };
    registry.rows = [row({ ...base, packages: [image, npmPackage('streamable-http'), npmPackage('stdio')], remotes })];
    const out = await ok('install', 'io.github.ada/weather', '--yes');
    assert.match(out, /note +another way cannot be used: its package does not speak over stdio/);
    assert.ok((await servers()).weather.command);
    await ok('uninstall', 'weather');
    registry.rows = [row({ ...base, packages: [image], remotes })];
    assert.match(await ok('install', 'io.github.ada/weather', '--yes'), /another way cannot be used: the image .* has no digest/);
    assert.deepEqual((await servers()).weather, { url: remotes[0].url });
    await ok('uninstall', 'weather');
    registry.rows = [row(base)];
    await fails(['install', 'io.github.ada/weather', '--yes'], 2, /names no package and no address/);
  });

  test('odd variables: a dash in the name, no name, choices', async () => {
    registry.rows = [entry({ environmentVariables: [
      { name: 'x-api-key', isSecret: true, isRequired: true }, { name: '' },
      { name: 'STORE', choices: ['memory', 'disk'], default: 'memory', description: 'Where', format: 'string', placeholder: 'disk' },
      { name: 'FILTER', value: '{"a":1}' }, { name: 'LIST', value: '{some_words}', variables: { some_words: { description: 'w' } } },
    ] })];
    const out = await ok('install', 'io.github.ada/weather', '--yes');
    assert.match(out, /note +a variable without a name is left out/);
    assert.match(out, /STORE = memory \(optional\): Where; one of memory disk/);
    assert.deepEqual((await servers()).weather.env, { 'x-api-key': '${secret:weather.x-api-key}', STORE: 'memory', FILTER: '{"a":1}' });
    assert.equal((await mcp(['list'])).code, 0);
  });

  test('a package of another package registry', async () => {
    registry.rows = [entry({ registryBaseUrl: 'https://npm.mallory.example' })];
    assert.match(await ok('install', 'io.github.ada/weather', '--yes', '--dry-run'),
      /note +published at https:\/\/npm\.mallory\.example, it says; npm takes it from/);
  });

  test('nuget is not supported yet, and it says so', async () => {
    registry.rows = [row({ name: 'com.example/py', version: '1', packages: [{ registryType: 'nuget', identifier: 'py', version: '1', transport: { type: 'stdio' } }] })];
    await fails(['install', 'com.example/py', '--yes'], 2, /nuget is not supported yet/);
  });
});
