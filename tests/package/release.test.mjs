// scripts/release and scripts/check-version, in a copy of the tree with a
// history of its own: each refusal, and the order of the steps.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';

import { run, top, version } from '../lib/package.mjs';

const dir = mkdtempSync(join(tmpdir(), 'mo-release-'));
const tree = join(dir, 'tree');
// As much as the scripts read: git is quicker with less.
const PARTS = `meson.build CHANGES.md LICENSE .gitignore scripts packaging deploy ':(glob)docs/*.md' tests/fixtures
  src/app/meson.build src/store/sql.h src/store/redis_priv.h src/config/state_record.h`.replaceAll('\n', ' ');
const today = new Date().toISOString().slice(0, 10);
const env = { PATH: process.env.PATH, HOME: dir, MO_SIGN_KEY: join(dir, 'ours.key') };
const git = (...args) => execFileSync('git', ['-C', tree, '-c', 'user.name=A', '-c', 'user.email=a@b', ...args],
  { encoding: 'utf8', stdio: 'pipe' });
const change = (file, from, to) => {
  const text = readFileSync(join(tree, file), 'utf8');
  assert.notEqual(text.replace(from, to), text, `${file} has no ${from}`);
  writeFileSync(join(tree, file), text.replace(from, to));
};
const commit = () => { git('add', '-A'); git('commit', '-q', '--allow-empty', '-m', 'x'); };
const release = (args = ['--check'], more = {}) => run(join(tree, 'scripts/release'), args, { env: { ...env, ...more } });

/** Everything that a release asks for; the first commit of the copy. */
function prepare() {
  const day = new Date(today);
  const date = `${day.toUTCString().replace('GMT', '+0000')}`;
  for (const who of ['ours', 'theirs'])
    execFileSync('minisign', ['-G', '-W', '-p', join(dir, `${who}.pub`), '-s', join(dir, `${who}.key`)]);
  cpSync(join(dir, 'ours.pub'), join(tree, 'packaging/minisign.pub'));
  writeFileSync(join(tree, 'packaging/release.json'), JSON.stringify({
    name: 'internal.orchestrator/gateway', download: 'https://files.orchestrator.internal/mcp/{version}',
    image: 'images.orchestrator.internal/gateway' }));
  for (const file of ['control', 'changelog'])
    change(`packaging/debian/${file}`, /<\S+>/, '<release@orchestrator.internal>');
  change('packaging/debian/changelog', />  .*$/m, `>  ${date}`);
  change('CHANGES.md', /^## .*$/m, `## ${version} (${today})`);
  writeFileSync(join(tree, 'src/app/meson.build'), readFileSync(join(tree, 'src/app/meson.build'), 'utf8')
    .replace(/MO_RELEASE_DATE="[^"]*"/, `MO_RELEASE_DATE="${today}"`));
}

before(() => {
  mkdirSync(tree);
  execFileSync('sh', ['-c', `git ls-files -z --cached --others --exclude-standard -- ${PARTS} |
    tar --null -T - -cf - | tar -C ${tree} -xf -`], { cwd: top });
  prepare();
  git('init', '-q');
  commit();
  git('tag', 'start');
});
after(() => rmSync(dir, { recursive: true, force: true }));
beforeEach(() => {
  for (const tag of git('tag', '--list', 'v*').split('\n').filter(Boolean)) git('tag', '-d', tag);
  git('reset', '-q', '--hard', 'start');
  git('clean', '-qfdx');
});

const refusals = {
  'a changed file': [() => writeFileSync(join(tree, 'new.txt'), ''), /new\.txt for one\n +commit or remove/, false],
  'a version that is not semantic': [() => change('meson.build', `'${version}'`, "'1.0'"), /1\.0 is not semantic\n +write MAJOR/],
  'a tag that is there': [() => git('tag', `v${version}`), /tag v\S+ is there already\n +write a new version/],
  'a newer tag': [() => git('tag', 'v99.0.0'), /v99\.0\.0 is newer than/],
  'a chart of another version': [() => change('deploy/helm/mcp-orchestrator/Chart.yaml', /appVersion: .*/, 'appVersion: 9.9.9'),
    /Chart\.yaml:6: 9\.9\.9, not/],
  'a document of another version': [() => change('docs/packages.md', /mcp-orchestrator_\d\S*_arm64/, 'mcp-orchestrator_9.9.9_arm64'),
    /docs\/packages\.md:\d+: 9\.9\.9, not/],
  'another heading in CHANGES.md': [() => change('CHANGES.md', /^## \S+/m, '## 9.9.9'), /CHANGES\.md: the newest heading is 9\.9\.9/],
  'another entry in the changelog': [() => change('packaging/debian/changelog', /\(\S+\)/, '(9.9.9)'), /changelog: the newest entry is 9\.9\.9/],
  'another day in the changelog': [() => change('packaging/debian/changelog', />  .*$/m, '>  Thu, 01 Jan 2026 00:00:00 +0000'),
    /changelog: of 2026-01-01/],
  'another day in the manual pages': [() => change('src/app/meson.build', /DATE="[^"]*"/, 'DATE="2026-01-01"'), /MO_RELEASE_DATE is 2026-01-01/],
  'no day': [() => change('CHANGES.md', `(${today})`, '(unreleased)'), /unreleased\n +write the day/],
  'a day to come': [() => change('CHANGES.md', `(${today})`, '(2999-01-01)'), /2999-01-01, which is not past or today/],
  'formats that are not recorded': [() => change('docs/upgrade.md', new RegExp(`^\\| ${version} .*\n`, 'm'), ''),
    /does not record the state's formats[^]*add to the table: \| \S+ \| \d+ \(\d+\)/],
  'a format that changed': [() => change('src/store/sql.h', /(MO_SQL_VERSION) \d+/, '$1 77'), /the program has 77/],
  'no state of this version': [() => rmSync(join(tree, `tests/fixtures/state-${version.replace(/\.\d+$/, '')}`), { recursive: true }),
    /state-\S+ is missing\n +add a state directory/],
  'a maintainer whom nobody reaches': [() => ['control', 'changelog'].forEach((f) => change(`packaging/debian/${f}`, /<\S+>/, '<a@b.invalid>')),
    /cannot be reached\n +write an address/],
  'a name that is an example': [() => change('packaging/release.json', 'internal.orchestrator', 'com.example'), /name com\.example\S+ is an example/],
  'a download that is an example': [() => change('packaging/release.json', 'files.orchestrator.internal', 'x.example.com'), /download is an example/],
  'an image that is an example': [() => change('packaging/release.json', 'images.orchestrator.internal', 'registry.example.com'), /image is an example/],
  'the same address for every version': [() => change('packaging/release.json', '{version}', 'new'), /same for every version/],
  'no public key': [() => rmSync(join(tree, 'packaging/minisign.pub')), /minisign\.pub is missing/],
};

describe('scripts/release', () => {
  test('a prepared tree is ready', async () => {
    assert.deepEqual(await release(), { code: 0, out: `${version} is ready to be built\n`, err: '' });
    assert.deepEqual(await release(['--dry-run']), await release());
  });

  for (const [name, [spoil, says, commits = true]] of Object.entries(refusals))
    test(`refuses ${name}`, async () => {
      spoil();
      if (commits) commit();
      const { code, out } = await release();
      assert.equal(code, 1, out);
      assert.match(out, says);
      assert.match(out, /\n\d+ missing\n$/);
    });

  test('refuses a missing, unreadable or careless secret key', async () => {
    assert.match((await release(['--check'], { MO_SIGN_KEY: '' })).out, /no key to sign with\n +name the file/);
    assert.match((await release(['--check'], { MO_SIGN_KEY: '/nowhere' })).out, /cannot be read/);
    cpSync(env.MO_SIGN_KEY, join(tree, 'secret.key'));
    assert.match((await release(['--check'], { MO_SIGN_KEY: join(tree, 'secret.key') })).out, /lies in the source tree/);
  });

  test('lists all that is missing at once, and starts nothing', async () => {
    git('tag', `v${version}`);
    rmSync(join(tree, 'packaging/minisign.pub'));
    change('CHANGES.md', `(${today})`, '(unreleased)');
    commit();
    const { code, out } = await release([]);
    assert.deepEqual([code, /3 missing\n$/.test(out), out.includes('make')], [1, true, false], out);
    assert.ok(!existsSync(join(tree, 'dist')));
  });

  test('explains itself', async () => {
    assert.match((await release(['--help'])).out, /The checks:/);
    assert.equal((await release(['--now'])).code, 2);
  });
});

/** Targets that write down their names; dist/ is what `make test-package` made,
 *  under the names of both processors. */
function replaceMakefile(more = '') {
  const from = join(dir, 'from');
  rmSync(from, { recursive: true, force: true });
  mkdirSync(from);
  writeFileSync(join(from, `mcp-orchestrator-${version}.tar.gz`), '');
  for (const name of readdirSync(join(top, 'dist')).filter((n) => !n.startsWith('SHA256SUMS')))
    for (const arch of ['arm64', 'amd64']) cpSync(join(top, 'dist', name), join(from, name.replace(/arm64|amd64/, arch)));
  writeFileSync(join(from, 'x.deb'), '');
  writeFileSync(join(tree, 'Makefile'), `
test conformance lint test-package test-reproducible:
\t@echo $@ >>${dir}/steps
dist:
\t@echo $@ >>${dir}/steps
\t@cp -r ${from} dist && scripts/sign dist
${more}`);
  commit();
  rmSync(join(dir, 'steps'), { force: true });
}
const steps = () => readFileSync(join(dir, 'steps'), 'utf8').trim().split('\n');

describe('the steps of a release', () => {
  const all = ['test', 'conformance', 'lint', 'test-package', 'test-reproducible', 'dist'];

  test('all in order, into an empty directory; the last lines say what to do', async () => {
    replaceMakefile();
    mkdirSync(join(tree, 'dist'));
    writeFileSync(join(tree, 'dist/older'), '');
    const { code, out, err } = await release([]);
    assert.equal(code, 0, out + err);
    assert.deepEqual(steps(), all);
    assert.ok(!existsSync(join(tree, 'dist/older')));
    assert.match(out, new RegExp(`git tag -s v${version}[^]*files\\.orchestrator\\.internal/mcp/${version}[^]*mcp-publisher`));
  });

  test('the first that fails is the last', async () => {
    replaceMakefile('lint: no\nno:\n\tfalse\n');
    const { code, err } = await release([]);
    assert.deepEqual([code, steps()], [1, all.slice(0, 2)]);
    assert.match(err, /make lint failed; mend it/);
  });

  test('a signature by another key is refused', async () => {
    replaceMakefile();
    const { code, err } = await release([], { MO_SIGN_KEY: join(dir, 'theirs.key') });
    assert.equal(code, 1);
    assert.match(err, /not signed by the key of/);
  });

  test('a processor that was left out is noticed', async () => {
    replaceMakefile();
    rmSync(join(dir, 'from', `mcp-orchestrator-${version}-image-amd64.tar`));
    const { code, err } = await release([]);
    assert.equal(code, 1);
    assert.match(err, /lacks mcp-orchestrator-\S+-image-amd64\.tar/);
  });
});

test('check-version --write corrects chart, manifests and documents', async () => {
  change('meson.build', `'${version}'`, "'2.0.0-rc.1'");
  const check = (...args) => run(join(tree, 'scripts/check-version'), args);
  const before = (await check()).out;
  for (const file of ['Chart.yaml', 'values.yaml', 'replicas.yaml', 'docs/kubernetes.md', 'docs/packages.md', 'CHANGES.md', 'changelog'])
    assert.ok(before.includes(file), file);
  await check('--write');
  assert.deepEqual((await check()).out.split('\n').map((l) => l.split(':')[0]), ['CHANGES.md', 'packaging/debian/changelog', '']);
});
