// make install and make uninstall, and the tarball of a release.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { dockerd } from '../lib/dockerd.mjs';
import { files, freshSystem, good, machine, other, released, run, started, top } from '../lib/package.mjs';

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
  await make('uninstall', to);
  assert.deepEqual(await files(to), empty);
});

const tarball = (arch) => released(new RegExp(`linux-${arch}\\.tar\\.gz$`));

test('the tarball has a program that needs no library, and nothing of where it was built', async () => {
  await good('tar', ['-C', dir, '-xzf', await tarball(machine)]);
  const [folder] = (await files(dir)).filter((f) => /linux-\w+$/.test(f));
  const program = join(folder, 'bin/mcp-orchestrator');
  assert.match((await run('ldd', [program])).out + (await run('ldd', [program])).err, /statically linked|not a dynamic/);
  assert.equal((await run('grep', ['-rlaF', top, folder])).out, '', 'a path of the build tree');
});

for (const arch of [machine, other])
  describe(`the tarball in a fresh system, ${arch}`, () => tarballTests(arch));

function tarballTests(arch) {
  let inside, program, engine;
  const home = ['env', '-i', 'PATH=/usr/bin:/bin', 'HOME=/root'];
  before(async () => {
    const root = join(dir, arch);
    inside = await freshSystem(root, arch);
    await good('tar', ['-C', join(root, 'opt'), '-xzf', await tarball(arch)]);
    program = (await files(join(root, 'opt'))).find((f) => f.endsWith('/bin/mcp-orchestrator')).slice(root.length);
  });
  after(() => engine?.cleanUp());

  test('it starts, and the page answers', async () => {
    const { child, url } = await started(inside([...home, program, 'serve', '--port', '0', '--provider', 'demo']));
    const page = await fetch(url);
    assert.match(await page.text(), /<html/i);
    child.kill('SIGTERM');
    assert.equal((await once(child, 'exit'))[0], 0);
  });

  // The emulator has no native boxes (see tests/lib/deb.mjs); those of an engine
  // have the shell that the system's busybox brings.
  test('a tool runs in a box', async () => {
    const env = [];
    if (arch !== machine) {
      engine = await dockerd({ far: true });
      await good(...inside(['apt-get', '-q', 'update']));
      await good(...inside(['apt-get', '-q', '-y', 'install', 'busybox-static']));
      env.push(`DOCKER_HOST=${engine.far}`);
    }
    const says = await good(...inside([...home, ...env, program, 'chat', '--yes',
      ...(engine ? ['--sandbox', 'docker'] : []), '--provider', 'demo', '--json', 'list the files']));
    assert.match(says, /"tool/);
  });
}

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
