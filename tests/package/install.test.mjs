// make install and make uninstall, and the tarball of a release.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';

import { files, good, released, run, top } from '../lib/package.mjs';

let dir;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-install-'));
});
after(() => rm(dir, { recursive: true, force: true }));

const make = (target, to) =>
  good('make', ['-s', target, `DESTDIR=${to}`, 'prefix=/opt/mo'],
    { cwd: top, env: { PATH: process.env.PATH } });

test('make install puts what is needed, make uninstall removes exactly that', async () => {
  const to = join(dir, 'dest');
  await mkdir(join(to, 'opt', 'mo', 'bin'), { recursive: true });
  const empty = await files(to);
  await make('install', to);
  await make('install', to); // again: nothing changes
  const man = await good('man', ['-M', join(to, 'opt/mo/share/man'), '-w',
    'mcp-orchestrator-serve', 'mcp-orchestrator.json']);
  assert.equal(man.trim().split('\n').length, 2);
  const unit = await readFile(join(to, 'opt/mo/lib/systemd/system/mcp-orchestrator.service'), 'utf8');
  assert.match(unit, /^ExecStart=\/opt\/mo\/bin\/mcp-orchestrator serve /m);
  assert.match(await good(join(to, 'opt/mo/bin/mcp-orchestrator'), ['version']), /^mcp-orch/);
  const docs = join(to, 'opt/mo/share/doc/mcp-orchestrator');
  for (const doc of (await files(docs)).filter((f) => f.endsWith('.md')))
    for (const [, link] of (await readFile(doc, 'utf8')).matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g))
      assert.ok(existsSync(join(dirname(doc), link)), `${doc}: ${link}`);
  await make('uninstall', to);
  assert.deepEqual(await files(to), empty);
});

const machine = process.arch === 'x64' ? 'amd64' : 'arm64';

test('the tarball has a program that needs no library, and nothing of where it was built', async () => {
  await good('tar', ['-C', dir, '-xzf', await released(new RegExp(`linux-${machine}\\.tar\\.gz$`))]);
  const [folder] = (await files(dir)).filter((f) => /linux-\w+$/.test(f));
  const program = join(folder, 'bin/mcp-orchestrator');
  assert.match((await run('ldd', [program])).out + (await run('ldd', [program])).err, /statically linked|not a dynamic/);
  assert.equal((await run('grep', ['-rlaF', top, folder])).out, '', 'a path of the build tree');
  const home = join(dir, 'home');
  await mkdir(home);
  const says = await good(program, ['chat', '--yes', '--provider', 'demo', 'list the files'],
    { cwd: home, env: { HOME: home, PATH: process.env.PATH } });
  assert.ok(says.trim().length > 0);
});

test('what is inside is listed', async () => {
  const sbom = JSON.parse(await readFile(await released(new RegExp(`linux-${machine}\\.spdx\\.json$`))));
  assert.equal(sbom.spdxVersion, 'SPDX-2.3');
  const names = sbom.packages.map((p) => p.name);
  for (const name of ['mcp-orchestrator', 'libssl-dev', 'curl', 'llhttp', 'npm:vue'])
    assert.ok(names.includes(name), name);
  assert.deepEqual(sbom.packages.filter((p) => !p.versionInfo || !p.licenseDeclared), []);
  assert.equal(sbom.relationships.length, sbom.packages.length);
});

test('the checksums are those of the files', async () => {
  await good('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: join(top, 'dist') });
});
