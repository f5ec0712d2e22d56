// `box run` and `doctor --sandbox` with real native boxes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, test } from 'node:test';

import { Home, cli, noNative } from '../lib/sessions.mjs';
import { programs } from '../lib/toolbox.mjs';

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
  assert.ok(rows.length >= 29);
  assert.deepEqual(rows.filter((r) => !r.pass), []);
  assert.match(run(['doctor', '--sandbox']).out, /pass {2}native {2}memory/);
  for (const control of ['allowed host', 'other names', 'addresses', 'private ranges', 'other ports', 'UDP', 'TLS names',
    'other traffic'])
    assert.ok(rows.some((r) => r.control === control), control);
});

// Every name leads to 127.0.0.1, and all ports there answer: nothing is kept but
// what needs addresses that do not exist here.
test('the network check notices promises that are not kept', { skip }, () => {
  const program = `
    const { execFileSync, spawn } = require('child_process');
    const net = require('net'), udp = require('dgram').createSocket('udp4');
    execFileSync('ip', ['link', 'set', 'lo', 'up']);
    for (const port of [7001, 7002])
      net.createServer((s) => s.on('error', () => {}).once('data', () => s.end('here'))).listen(port, '127.0.0.1');
    const dns = require('dgram').createSocket('udp4');
    dns.on('message', (m, from) => {
      m[2] = 0x81; m[3] = 0x80; m[7] = 1;
      dns.send(Buffer.concat([m, Buffer.from('c00c00010001000000010004' + '7f000001', 'hex')]), from.port, from.address);
    }).bind(53, '127.0.0.1');
    udp.on('message', (m, from) => udp.send('here', from.port, from.address)).bind(7002, '127.0.0.1', () =>
      spawn('${programs.musl}', ['--check-network', '7001', '7002'], { stdio: 'inherit' }).on('exit', () => process.exit()));`;
  const r = spawnSync('unshare', ['--net', process.execPath, '-e', program]);
  assert.deepEqual(r.stdout.toString().trim().split('\n'), ['+allowed host', '-other names', '+addresses',
    '-private ranges', '-other ports', '-UDP', '-TLS names'], r.stderr.toString());
});
