// H13: the socket through which the servers of one store pass requests to each
// other. Another user of the machine at it, and senders that no server states.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { chmod, readdir } from 'node:fs/promises';
import http from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { NOBODY, as, notRoot } from '../lib/attack.mjs';
import { Replicas } from '../it/replicas_kit.mjs';
import { until } from '../it/server.mjs';

const facts = (...v) => Buffer.from(v.map((s) => `${s}\0`).join('')).toString('base64url');
const operator = facts('1', '', '', '4', '', 'token', 'x', '');

let all, path, run;
before(async () => {
  all = await Replicas.start({ count: 1, env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' } });
  await until(async () => {
    const found = (await readdir(all.dirs[0], { recursive: true })).find((f) => f.endsWith('.http'));
    path = found && join(all.dirs[0], found);
    return path;
  }, 'the socket');
  run = join(path, '..');
});
after(() => all.stop());

const ask = (headers, url = '/api/approvals') => new Promise((done, fail) => {
  http.get({ socketPath: path, path: url, headers, agent: false }, (res) => {
    res.resume();
    res.on('end', () => done(res.statusCode));
  }).on('error', fail);
});

test('it is of this user only', () => {
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(run).mode & 0o077, 0);
});

test('another user is not answered, even behind open directories', { skip: notRoot }, async () => {
  const dirs = [];
  for (let d = run; d !== '/tmp' && d !== '/'; d = join(d, '..')) dirs.push(d);
  const modes = dirs.map((d) => statSync(d).mode & 0o777);
  for (const d of dirs) await chmod(d, 0o777);
  await chmod(path, 0o777);
  try {
    const got = await as(NOBODY, `
      const http = await import('node:http');
      console.log(JSON.stringify(await new Promise((done) => http.get(
        { socketPath: ${JSON.stringify(path)}, path: '/api/approvals', headers: { 'mo-relay': ${JSON.stringify(operator)} } },
        (res) => { done(res.statusCode); res.destroy(); }).on('error', (e) => done(e.code)))));`);
    assert.ok(['ECONNRESET', 'EPIPE'].includes(got), got);
    assert.match(all.v[0].server.log, /connection refused: another user/);
  } finally {
    await chmod(path, 0o600);
    for (const [i, d] of dirs.entries()) await chmod(d, modes[i]);
  }
});

test('a sender that is not stated, or stated wrongly', async () => {
  const rows = [
    ['none', undefined],
    ['no base64', '***'],
    ['nothing', facts()],
    ['too few', facts('1', 'me', 'me', '1')],
    ['no end', Buffer.from('1\0me\0me\x001\0\0token\0x\0g').toString('base64url')],
    ['another form', facts('2', '', '', '4', '', 'token', 'x', '')],
    ['an unknown role', facts('1', '', '', '5', '', 'token', 'x', '')],
    ['a role that is no number', facts('1', '', '', 'all', '', 'token', 'x', '')],
    ['an unknown door', facts('1', '', '', '4', '', 'window', 'x', '')],
    ['a name that would be cut', facts('1', 'm'.repeat(97), '', '4', '', 'token', 'x', '')],
    ['a token id that would be cut', facts('1', '', '', '4', 'g'.repeat(24), 'token', 'x', '')],
    ['too long', facts('1', '', '', '4', '', 'token', 'x', 'g'.repeat(7000))],
  ];
  for (const [what, value] of rows) assert.equal(await ask(value === undefined ? {} : { 'mo-relay': value }), 400, what);
  assert.equal(await ask({ 'mo-relay': operator }), 200);
  assert.equal(await ask({ 'mo-relay': operator }, '/api/sessions'), 404, 'only what is passed on');
});
