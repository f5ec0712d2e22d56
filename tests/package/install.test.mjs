// make install and make uninstall, and the tarball of a release.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import parseLicense from './node_modules/spdx-expression-parse/index.js';
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
  const docs = join(to, 'opt/mo/share/doc/mcp-orchestrator');
  for (const doc of (await files(docs)).filter((f) => f.endsWith('.md')))
    for (const [, link] of (await readFile(doc, 'utf8')).matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g))
      assert.ok(existsSync(join(dirname(doc), link)), `${doc}: ${link}`);
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

  test('it needs no library', async () => {
    assert.doesNotMatch(await good('readelf', ['-ldW', join(dir, arch, program)]), /NEEDED|INTERP/);
  });

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
      env.push(`DOCKER_HOST=${engine.far}`);
    }
    const says = await good(...inside([...home, ...env, program, 'chat', '--yes',
      ...(engine ? ['--sandbox', 'docker'] : []), '--provider', 'demo', '--json', 'list the files']));
    assert.match(says, /"tool/);
  });
}

describe('the list of what is inside', () => {
  let sbom;
  const below = (name, kind) => {
    const id = sbom.packages.find((p) => p.name === name).SPDXID;
    return sbom.relationships.filter((r) => r.spdxElementId === id && r.relationshipType === kind)
      .map((r) => sbom.packages.find((p) => p.SPDXID === r.relatedSpdxElement).name).sort();
  };
  const check = async (value) => {
    const file = join(dir, 'x.spdx.json');
    await writeFile(file, JSON.stringify(value));
    return run(join(top, 'scripts/sbom'), ['--check', file]);
  };
  before(async () => {
    sbom = JSON.parse(await readFile(await released(new RegExp(`linux-${machine}\\.spdx\\.json$`))));
  });

  test('has what is linked, embedded and in the image', () => {
    assert.deepEqual(below('mcp-orchestrator', 'STATIC_LINK'), ['curl', 'libc6-dev', 'libgcc', 'libnghttp2-dev',
      'libsodium-dev', 'libsqlite3-dev', 'libssl-dev', 'libstemmer-dev', 'libuv1-dev', 'llhttp', 'zlib1g-dev']);
    assert.deepEqual(below('mcp-orchestrator', 'CONTAINS'), ['mcp-orchestrator-page', 'mo-box', 'mo-toolbox', 'router-vectors']);
    assert.deepEqual(below('mo-toolbox', 'STATIC_LINK'), ['musl-dev']);
    assert.deepEqual(below('mcp-orchestrator-image', 'CONTAINS'), ['busybox-static', 'ca-certificates', 'mcp-orchestrator']);
  });

  test('has exactly the npm packages of the page', async () => {
    // a path in the lock file: a package may have its own version of another one
    const listed = (await readFile(join(top, 'ui/dist.packages'), 'utf8')).trim().split('\n')
      .map((path) => `npm:${path.split('/node_modules/').at(-1)}`);
    assert.deepEqual(below('mcp-orchestrator-page', 'CONTAINS'), listed.sort());
    for (const name of ['npm:@vue/runtime-core', 'npm:socket.io-client', 'npm:tailwindcss', 'npm:@fontsource-variable/inter'])
      assert.ok(listed.includes(name), name);
    for (const name of ['npm:@vue/compiler-sfc', 'npm:typescript', 'npm:postcss'])
      assert.ok(!listed.includes(name), `${name} only compiles the page`);
  });

  test('has licenses that exist', () => {
    for (const p of sbom.packages) assert.ok(parseLicense(p.licenseDeclared), p.name);
  });

  const wrong = {
    'dataLicense is not CC0-1.0': (d) => { d.dataLicense = 'MIT'; },
    'not an address without a fragment': (d) => { d.documentNamespace += '#x'; },
    'created is not a date': (d) => { d.creationInfo.created = '2026-11-17'; },
    'creators are not': (d) => { d.creationInfo.creators = ['me']; },
    'llhttp has no copyrightText': (d) => { delete d.packages.find((p) => p.name === 'llhttp').copyrightText; },
    'licenseDeclared is MIT and others': (d) => { d.packages[2].licenseDeclared = 'MIT and others'; },
    'a checksum is wrong': (d) => { d.packages[0].checksums[0].checksumValue = 'abc'; },
    'is there twice': (d) => { d.packages[1].SPDXID = d.packages[0].SPDXID; },
    'is not reached from the document': (d) => { d.relationships.pop(); },
    'in a relationship, but not there': (d) => { d.packages.pop(); },
    'is not a package URL': (d) => { d.packages[2].externalRefs[0].referenceLocator = 'curl'; },
  };
  test('obeys SPDX 2.3; the check refuses each fault', async () => {
    assert.deepEqual(await check(sbom), { code: 0, out: '', err: '' });
    for (const [says, spoil] of Object.entries(wrong)) {
      const bad = structuredClone(sbom);
      spoil(bad);
      const { code, err } = await check(bad);
      assert.deepEqual([code, err.includes(says)], [1, true], `${says}: ${err}`);
    }
  });
});

test('the checksums are those of the files', async () => {
  await good('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: join(top, 'dist') });
});
