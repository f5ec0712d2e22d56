// `box run` and `doctor --sandbox` with real native boxes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, test } from 'node:test';

import { Home, cli, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : false;
const home = new Home();
after(() => {
  assert.deepEqual(home.remains(), []);
  home.removeAll();
});

const run = (args, input = '') => {
  const r = spawnSync(cli, ['--config', home.config, ...args], {
    input, env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' } });
  return { code: r.status, out: r.stdout.toString(), err: r.stderr.toString() };
};
const box = (words, input) => run(['box', 'run', 'native', '--', ...words], input);

test('a command, its output, its errors and its status', { skip }, () => {
  const { code, out, err } = box(['sh', '-c', 'pwd; echo oops >&2; exit 7']);
  assert.deepEqual([code, out, err], [7, '/workspace\n', 'oops\n']);
});

test('input is passed through to its end, in whichever driver is configured', { skip }, () => {
  const big = 'x'.repeat(300_000);
  const { code, out } = run(['box', 'run', '--', 'cat'], big);
  assert.deepEqual([code, out.length], [0, big.length]);
});

test('options behind the dashes are the command\'s', { skip }, () => {
  assert.equal(box(['echo', '--json', '-h', '--']).out, '--json -h --\n');
});

test('a signal, the memory limit, a program that is not there', { skip }, () => {
  assert.equal(box(['sh', '-c', 'kill -TERM $$']).code, 128 + 15);
  const oom = box(['sh', '-c', 'x=0123456789abcdef; while :; do x=$x$x; done']);
  assert.deepEqual([oom.code, /oom/.test(oom.err)], [137, true], oom.err);
  const none = box(['/no/such/program']);
  assert.notEqual(none.code, 0);
  assert.match(none.err, /no\/such\/program|No such file/i);
});

test('a wrong command line says how it is written', { skip }, () => {
  for (const words of [['native'], ['native', '--'], ['ls'], ['a', 'b', '--', 'ls']]) {
    const { code, err } = run(['box', 'run', ...words]);
    assert.equal(code, 2, words.join(' '));
    assert.match(err, /box run/);
  }
});

test('doctor --sandbox tries every promise of a native box', { skip }, () => {
  const { out } = run(['doctor', '--sandbox', '--json']);
  const rows = JSON.parse(out).filter((r) => r.driver === 'native');
  assert.ok(rows.length >= 20);
  assert.deepEqual(rows.filter((r) => !r.pass), []);
  assert.match(run(['doctor', '--sandbox']).out, /pass {2}native {2}memory/);
});
