// Replicas of different versions on one Redis: the record of the store's
// version, and the versions of the protocol between servers. The other version
// is played by a socket that takes the frames of a replica.
// MO_BIN_OLD: an older program, for the replica that is the older one.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { missing as skip } from '../lib/redis.mjs';
import { Replicas } from './replicas_kit.mjs';
import { until } from './server.mjs';

const env = { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' };
const BOOT = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
const record = (format, reads) => JSON.stringify({ format, reads, program: '9.8.7' });

/** Another server that has a session: its socket, its address and its lease. */
async function foreign(all, session, protocol) {
  const dir = await mkdtemp(join(tmpdir(), 'mo-foreign-'));
  const joins = [];
  const server = net.createServer((s) => {
    s.on('error', () => {}).on('data', (d) => joins.push(d));
  });
  await new Promise((done) => server.listen(join(dir, 'x.peer'), done));
  const { cli } = all.redis;
  cli('SET', `mcp:lock:{${session}}`, '1 token foreign');
  cli('HSET', 'mcp:marks', 'peer:foreign', JSON.stringify({ unix: join(dir, 'x.peer'), boot: BOOT, at: Date.now(), ...(protocol && { protocol }) }));
  return {
    joins,
    async end() {
      cli('DEL', `mcp:lock:{${session}}`);
      cli('HDEL', 'mcp:marks', 'peer:foreign');
      for (const s of all.tabs) s.close();
      await new Promise((done) => {
        server.close(done);
        server.closeAllConnections?.();
      });
      await rm(dir, { recursive: true });
    },
  };
}

/** The version in a JOIN: type (1), length (4), then a field. */
const version = (frame) => frame.subarray(9, 9 + frame.readUInt32BE(5)).toString();

test('a peer without a version in common gets nothing, and the log says why', { skip }, async () => {
  const all = await Replicas.start({ store: 'redis', count: 1, env });
  const other = await foreign(all, 's-foreign', [3, 4]);
  try {
    all.v[0].tab({ session: 's-foreign' });
    const { server } = all.v[0];
    await until(() => /speaks versions 3 to 4 between servers, this one 1 to 2/.test(server.log), 'the log');
    const answer = await all.v[0].get('/api/approvals');
    assert.equal(answer.status, 200);
    assert.equal(other.joins.length, 0, 'nothing was sent to it');
    assert.ok(server.log.split('speaks versions 3 to 4').length - 1 <= server.workers, 'each process logs it once');
  } finally {
    await other.end();
    await all.stop();
  }
});

for (const [protocol, common] of [[[1, 3], '2'], [[1, 1], '1'], [undefined, '1']])
  test(`a peer that speaks ${protocol ?? 'what 0.1 spoke'} gets version ${common}`, { skip }, async () => {
    const all = await Replicas.start({ store: 'redis', count: 1, env });
    try {
      const other = await foreign(all, 's-common', protocol);
      all.v[0].tab({ session: 's-common' });
      await until(() => other.joins.length > 0, 'a JOIN');
      assert.equal(version(other.joins[0]), common);
      assert.doesNotMatch(all.v[0].server.log, /speaks versions/);
      await other.end();
    } finally {
      await all.stop();
    }
  });

test('a replica goes on beside a newer one, and is refused when that is not allowed', { skip }, async () => {
  const all = await Replicas.start({ store: 'redis', apart: true, env, own: [{ bin: process.env.MO_BIN_OLD }, {}] });
  try {
    const { cli } = all.redis;
    assert.deepEqual(JSON.parse(cli('HGET', 'mcp:marks', 'format')), { format: 2, reads: 1, program: '0.1.0' });
    all.model.script.push({ text: 'one' });
    const { here, there } = await all.pair();
    assert.equal((await here.say('hello')).ok, true);
    await there.event('agent:response');

    // a replica of the next version has been started: it allows ours
    cli('HSET', 'mcp:marks', 'format', record(3, 2));
    cli('CLIENT', 'KILL', 'TYPE', 'normal');
    const newer = all.v[1];
    await until(async () => (await newer.get('/readyz').catch(() => ({}))).status !== 503, 'it goes on');
    await until(async () => (await newer.get(`/api/sessions/${here.session}/history`)).status === 200, 'its data');
    assert.equal(JSON.parse(cli('HGET', 'mcp:marks', 'format')).format, 3, 'the record stays');

    // and now one that does not
    cli('HSET', 'mcp:marks', 'format', record(4, 4));
    cli('CLIENT', 'KILL', 'TYPE', 'normal');
    await until(() => /written by version 9\.8\.7 \(format 4\)/.test(newer.server.log), 'the refusal in the log');
    await until(async () => (await newer.get(`/api/sessions/${here.session}/history`)).status === 503, '503');

    // put right again
    cli('HSET', 'mcp:marks', 'format', record(3, 2));
    await until(async () => (await newer.get(`/api/sessions/${here.session}/history`)).status === 200, 'it works again', 30_000);
  } finally {
    await all.stop();
  }
});
