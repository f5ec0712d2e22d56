// mo-box --hold, which is process 1 of a pod: the handshake, the end.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { build } from '../lib/box.mjs';
import { eventually } from '../lib/outside.mjs';

const launcher = join(build, 'launcher/mo-box');
const start = (script, stdout = 'pipe') =>
  spawn(launcher, ['--hold', 'nofile=64', '--', '/bin/sh', '-c', script], { stdio: ['pipe', stdout, 'pipe'] });

const childrenOf = (pid) => readdirSync('/proc').filter((p) => /^\d+$/.test(p)).filter((p) => {
  try {
    return new RegExp(`\nPPid:\t${pid}\n`).test(readFileSync(`/proc/${p}/status`, 'utf8'));
  } catch {
    return false;
  }
});

test('each letter is answered on both; a line end starts the program', async () => {
  const box = start('ulimit -n; exit 3');
  let [out, err] = ['', ''];
  box.stdout.on('data', (d) => (out += d));
  box.stderr.on('data', (d) => (err += d));
  box.stdin.write('ab');
  await eventually('it answers', () => out === 'ab' && err === 'ab');
  box.stdin.write('\n');
  const [code] = await once(box, 'close');
  assert.deepEqual([out, err, code], ['ab64\n', 'ab', 3]);
});

test('the end of stdin before that ends it', async () => {
  const box = start('echo no');
  let out = '';
  box.stdout.on('data', (d) => (out += d));
  box.stdin.end();
  assert.deepEqual([await once(box, 'close'), out], [[0, null], '']);
});

test('it stays until what its program said was read', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'mo-hold-'));
  try {
    const path = join(dir, 'out');
    execFileSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const box = start(`head -c 50000 /dev/zero; echo >${dir}/said`, openSync(path, 'w'));
    const ended = once(box, 'close');
    box.stdin.write('\n');
    await eventually('its program has ended', () => existsSync(join(dir, 'said')) && !childrenOf(box.pid).length);
    await sleep(300); // longer than it stays without a reason
    assert.equal(box.exitCode, null, 'it waits');
    assert.equal(readSync(reader, Buffer.alloc(60000)), 50000);
    assert.deepEqual(await ended, [0, null]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
