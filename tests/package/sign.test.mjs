// Checksums and their signature, with a key made here.
import assert from 'node:assert/strict';
import { appendFile, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';

import { good, run, top, version } from '../lib/package.mjs';

let dir, dist;
const sign = (key) => run(join(top, 'scripts/sign'), [dist], { env: { PATH: process.env.PATH, ...(key && { MO_SIGN_KEY: join(dir, key) }) } });
const verify = (key = 'ours.pub') => run(join(top, 'scripts/sign'), ['--verify', dist, join(dir, key)]);
const refused = async (says, key) => {
  const { code, out, err } = await verify(key);
  assert.deepEqual([code, says.test(out + err)], [1, true], out + err);
};

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-sign-'));
  dist = join(dir, 'dist');
  for (const who of ['ours', 'theirs'])
    await good('minisign', ['-G', '-W', '-p', join(dir, `${who}.pub`), '-s', join(dir, `${who}.key`)]);
});
after(() => rm(dir, { recursive: true, force: true }));
beforeEach(async () => {
  await rm(dist, { recursive: true, force: true });
  await mkdir(dist);
  await writeFile(join(dist, 'program.tar.gz'), 'bytes');
  await writeFile(join(dist, 'two words'), 'more bytes');
});

test('what is signed is verified, also by minisign and sha256sum alone', async () => {
  assert.equal((await sign('ours.key')).code, 0);
  assert.deepEqual(await verify(), { code: 0, out: '', err: '' });
  assert.match(await good('minisign', ['-V', '-p', join(dir, 'ours.pub'), '-m', join(dist, 'SHA256SUMS')]),
    new RegExp(`Trusted comment: mcp-orchestrator ${version.replaceAll('.', '\\.')}`));
  await good('sha256sum', ['--check', 'SHA256SUMS'], { cwd: dist });
});

test('a changed, missing or added file is refused', async () => {
  await sign('ours.key');
  await appendFile(join(dist, 'program.tar.gz'), '.');
  await refused(/program\.tar\.gz: FAILED/);
  await rm(join(dist, 'program.tar.gz'));
  await refused(/program\.tar\.gz: FAILED open/);
  await writeFile(join(dist, 'program.tar.gz'), 'bytes');
  await writeFile(join(dist, 'new'), '');
  await refused(/new is not in SHA256SUMS/);
});

test('a changed list, another key and no signature are refused', async () => {
  await sign('ours.key');
  await refused(/not signed by the key/, 'theirs.pub');
  await appendFile(join(dist, 'SHA256SUMS'), '\n');
  await refused(/not signed by the key/);
  await sign();
  await assert.rejects(stat(join(dist, 'SHA256SUMS.minisig')), /ENOENT/, 'an older signature stays');
  await refused(/is not signed: name your secret key/);
});

test('a key that is not there is an error', async () => {
  const { code, err } = await sign('nobody.key');
  assert.equal(code, 1);
  assert.match(err, /nobody\.key/);
});
