// `mcp install` of PyPI packages, with the real pip.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { row } from '../fakes/registry.mjs';
import { audit, dir, fails, installed, lock, mcp, ok, pypi, registry, servers, start } from '../lib/install.mjs';
import { noNative } from '../lib/sessions.mjs';

async function probe(name, script) {
  const child = start(['call', name, 'probe', JSON.stringify({ script })]);
  const [code] = await once(child, 'close');
  assert.equal(code, 0, child.said.err);
  return child.said.out.trim();
}

describe('a PyPI package', () => {
  test('planned, installed, tested, verified, updated, uninstalled', async () => {
    const plan = JSON.parse(await ok('install', 'pypi:Ada.Snake', '--dry-run', '--json')).plan;
    assert.deepEqual([plan.kind, plan.package, plan.version, plan.boxed, plan.warnings], ['pypi', 'ada-snake', '1.1.0', true, []]);
    assert.deepEqual(Object.keys(plan.packages), ['ada-snake', 'ada-scales']);
    assert.deepEqual(await installed(), []);

    const out = await ok('install', 'pypi:ada_snake@1.0.0', '--yes', '--env', 'UNIT=metre', '--', '--fast');
    assert.match(out, /package +ada-snake\n +version +1\.0\.0\n +integrity +sha256:[0-9a-f]{64}\n +publisher +Ada\n +repository +https:\/\/github\.com\/ada\/snake/);
    assert.match(out, /runtime +\/usr\/bin\/python3/);
    const entry = (await servers())['ada-snake'];
    assert.match(entry.command, /^\/usr\/bin\/python3[.\d]*$/);
    assert.match(entry.args[3], /\/state\/servers\/ada-snake\/1\.0\.0-[0-9a-f]{16}\/start\.py$/);
    assert.deepEqual([entry.args.slice(0, 3), entry.args.slice(4), entry.sandbox, entry.workspace], [['-I', '-S', '-B'], ['--fast'], 'native', true]);
    const top = join(entry.args[3], '..');
    assert.equal((await stat(join(top, 'site/ada_snake/server.py'))).mode & 0o777, 0o444);
    const pinned = (await lock())['ada-snake'];
    assert.deepEqual(pinned.packages, { 'ada-snake': { version: '1.0.0', integrity: pinned.integrity } });
    assert.equal(await readFile(join(top, 'requirements.txt'), 'utf8'), `ada-snake==1.0.0 --hash=${pinned.integrity}\n`);
    assert.ok((await audit()).some((r) => r.includes('"install"') && r.includes(pinned.integrity)), 'no audit row');
    assert.match(await ok('list'), /ada-snake .*pypi:ada-snake 1\.0\.0/);
    assert.equal(await ok('verify'), 'ada-snake: unchanged, pypi:ada-snake\n');

    const diff = await ok('update', 'ada-snake', '--yes');
    assert.match(diff, /version +1\.0\.0 -> 1\.1\.0/);
    assert.match(diff, /\+ ada-scales 2\.0\.1/);
    assert.deepEqual([(await lock())['ada-snake'].version, (await servers())['ada-snake'].args.slice(4)], ['1.1.0', ['--fast']]);
    assert.equal((await readdir(join(dir, 'state/servers/ada-snake'))).length, 1);
    assert.match(await ok('update', 'ada-snake'), /up to date: 1\.1\.0/);
    assert.deepEqual(pypi.problems, []);
    await ok('uninstall', 'ada-snake');
    assert.deepEqual([await servers(), await installed()], [{}, []]);
  });

  test('it runs in a box, with only its own packages', { skip: noNative && `needs ${noNative}` }, async () => {
    await ok('install', 'pypi:ada-snake', '--yes');
    assert.match(await ok('test', 'ada-snake'), /^ok: snake 1\.1\.0 /);
    const at = (script) => probe('ada-snake', script);
    const { command } = (await servers())['ada-snake'];
    assert.match(await at('sys.executable'), new RegExp(command.replaceAll('.', '\\.')));
    assert.match(await at("[p for p in sys.path if 'dist-packages' in p]"), /\[\]/);
    assert.match(await at("os.path.exists('/etc/shadow') or os.path.exists('/root')"), /False/);
    assert.match(await at("open('/workspace/x', 'w').write('abc')"), /3/);
    assert.match(await at("open(sys.modules['ada_snake'].__file__, 'w')"), /OSError|PermissionError/);
    assert.match(await at('sys.modules[\'ada_snake.server\'].__cached__'), /__pycache__/); // compiled once
  });

  test('without a box, and with settings of pip that get in the way', async () => {
    const got = await mcp(['install', 'pypi:ada-snake', '--yes', '--unboxed'], { PIP_USER: '1', PYTHONPATH: dir, PIP_NO_BINARY: ':all:' });
    assert.equal(got.code, 0, got.err);
    const entry = (await servers())['ada-snake'];
    assert.deepEqual([entry.sandbox, entry.workspace], [undefined, undefined]);
    assert.match(await ok('test', 'ada-snake'), /^ok: snake 1\.1\.0 /);
  });

  test('the same wheels give the same digest; an index with HTML only', async () => {
    pypi.html = true;
    await ok('install', 'pypi:ada-snake', '--yes', '--name', 'one');
    pypi.html = false;
    await ok('install', 'pypi:ada-snake', '--yes', '--name', 'two');
    const { one, two } = await lock();
    assert.equal(one.digest, two.digest);
  });

  test('--bin chooses the program', async () => {
    await fails(['install', 'pypi:two-programs', '--yes'], 2, /no program two-programs, it has a, b: choose one with --bin/);
    await ok('install', 'pypi:two-programs', '--yes', '--bin', 'b');
    assert.match(await ok('test', 'two-programs'), /^ok: snake/);
  });

  test('a name of the registry', async () => {
    const entry = (more = {}, name = 'io.github.ada/snake') => row({
      name, version: '7.0.0', repository: { url: 'https://github.com/ada/snake', source: 'github' },
      packages: [{
        registryType: 'pypi', registryBaseUrl: 'https://pypi.org', identifier: 'Ada-Snake', version: '1.0.0', runtimeHint: 'uvx', transport: { type: 'stdio' },
        packageArguments: [{ type: 'positional', value: 'serve' }], environmentVariables: [{ name: 'TOKEN', isSecret: true, isRequired: true }], ...more,
      }],
    });
    registry.rows = [entry()];
    await ok('install', 'io.github.ada/snake', '--yes');
    const { snake } = await servers();
    assert.deepEqual([snake.args.slice(4), snake.env], [['serve'], { TOKEN: '${secret:snake.TOKEN}' }]);
    assert.equal((await lock()).snake.registry, 'io.github.ada/snake');
    await ok('uninstall', 'snake');
    registry.rows = [entry({}, 'io.github.mallory/snake')];
    const got = await fails(['install', 'io.github.mallory/snake', '--yes'], 1, /another GitHub owner/);
    assert.match(got.out, /does not confirm the registry name: its mcp-name is io\.github\.ada\/snake/);
    registry.rows = [entry({ fileSha256: 'ab'.repeat(32) })];
    await fails(['install', 'io.github.ada/snake', '--yes'], 1, /the registry says that ada-snake has the SHA-256 (ab){32}/);
    registry.rows = [entry({ registryBaseUrl: 'https://pypi.mallory.example' })];
    await fails(['install', 'io.github.ada/snake', '--yes'], 2, /another package registry/);
    registry.rows = [entry({ version: 'auto' })];
    await fails(['install', 'io.github.ada/snake', '--yes'], 2, /no exact version/);
  });

  for (const [name, args, code, says] of [
    ['only source code', ['pypi:only-source'], 1, /only the source code of only-source.*setup\.py/],
    ['a dependency with only source code', ['pypi:needs-source'], 1, /only the source code of/],
    ['withdrawn', ['pypi:withdrawn@1.0.0'], 1, /has withdrawn \(yanked\) withdrawn==1\.0\.0/],
    ['a withdrawn dependency', ['pypi:needs-withdrawn'], 1, /has withdrawn \(yanked\)/],
    ['a path out of its folder', ['pypi:outside'], 4, /pip failed .*trying to install outside the target/],
    ['an absolute path', ['pypi:absolute'], 4, /pip failed .*trying to install outside the target/],
    ['a list of files that names one outside', ['pypi:recorded'], 1, /list of files of recorded-1\.0\.0\.dist-info names one outside/],
    ['a list of files with an absolute path', ['pypi:recorded-at-root'], 1, /names one outside its folder/],
    ['a wheel of another package', ['pypi:impostor'], 1, /answers with somebody-else, which is another package than impostor/],
    ['a program that is code', ['pypi:injected'], 1, /its program cannot be started/],
    ['no program', ['pypi:library'], 1, /has no program/],
    ['no such package', ['pypi:nothing'], 4, /pip finds no nothing with a wheel/],
    ['no such version', ['pypi:ada-snake@9.0'], 4, /pip finds no ada-snake==9\.0/],
    ['a name like a well-known one', ['pypi:MCP.Server_Tyme'], 1, /resembles the well-known mcp-server-time/],
    ['a name that is an option', ['pypi:--index-url'], 2, /no name of a PyPI package/],
    ['an address', ['pypi:git+https://x.example/y'], 2, /no name of a PyPI package/],
    ['a range', ['pypi:ada-snake@>=1'], 2, /no exact version/],
  ])
    test(`refused: ${name}`, () => fails(['install', ...args, '--yes'], code, says));

  test('a hash that the wheel does not have', async () => {
    pypi.lies.set('ada-snake', '00'.repeat(32));
    await fails(['install', 'pypi:ada-snake', '--yes'], 4, /pip failed .*DO NOT MATCH THE HASHES/);
  });

  test('an index that serves another wheel after the plan', async () => {
    const plan = JSON.parse(await ok('install', 'pypi:ada-snake', '--dry-run', '--json'));
    const was = pypi.packages[1].summary;
    pypi.packages[1].summary = 'Another one';
    await fails(['install', 'pypi:ada-snake', '--yes', '--agreed', plan.agreed], 1, /the plan is another one now/);
    pypi.packages[1].summary = was;
  });

  test('no Python here: the error says what to install', async () => {
    await fails(['install', 'pypi:ada-snake', '--yes'], 4, /needs Python, .*install Python 3\.8 or later with pip/, { PATH: '/nowhere' });
  });

  test('interrupted: nothing stays', async () => {
    pypi.hangs.add('ada-snake');
    const hung = new Promise((done) => (pypi.onHang = done));
    const child = start(['mcp', 'install', 'pypi:ada-snake', '--yes']);
    await hung;
    child.kill('SIGINT');
    await once(child, 'close');
    assert.match(child.said.err, /interrupted; nothing was installed/);
    assert.deepEqual([await installed(), await servers()], [[], {}]);
  });
});
