// The store while a master of Redis behind three sentinels dies: every
// acknowledged write is there afterwards.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';

import { freePort } from '../lib/port.mjs';
import { missing, redis, store, tempDir, until } from '../lib/redis.mjs';
import { check, ok, writer } from '../lib/redis_writer.mjs';

async function sentinel(t, master, { password } = {}) {
  const port = await freePort();
  const dir = tempDir();
  const file = `${dir}/sentinel.conf`;
  writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', `dir ${dir}`,
    `sentinel monitor main 127.0.0.1 ${master.port} 2`,
    ...(password ? [`requirepass ${password}`, `sentinel auth-pass main ${password}`, `sentinel sentinel-pass ${password}`] : []),
    'sentinel down-after-milliseconds main 400', 'sentinel failover-timeout main 4000', ''].join('\n'));
  const child = spawn('/usr/bin/redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  const cli = (...words) => spawnSync('redis-cli', ['-p', String(port), ...(password ? ['-a', password, '--no-auth-warning'] : []), ...words],
    { encoding: 'utf8' }).stdout.trim();
  await until('the sentinel answers', () => /PONG/.test(cli('PING')));
  return { port, child, cli };
}

async function group(t, { password } = {}) {
  const args = password ? ['--requirepass', password, '--masterauth', password] : [];
  const cli = password ? ['-a', password, '--no-auth-warning'] : [];
  const [master, ...replicas] = [await redis({ args, cli }), await redis({ args, cli }), await redis({ args, cli })];
  for (const server of [master, ...replicas]) t.after(() => server.stop());
  for (const r of replicas) {
    r.cli('REPLICAOF', '127.0.0.1', String(master.port));
    await until('the replica follows', () => /master_link_status:up/.test(r.cli('INFO', 'replication')));
  }
  const sentinels = [];
  for (let i = 0; i < 3; i++) sentinels.push(await sentinel(t, master, { password }));
  for (const s of sentinels)
    await until('the sentinels know each other', () =>
      /num-other-sentinels\n2\n/.test(s.cli('SENTINEL', 'MASTER', 'main')) && /num-slaves\n2\n/.test(s.cli('SENTINEL', 'MASTER', 'main')));
  return { master, replicas, sentinels, hosts: sentinels.map((s) => `127.0.0.1:${s.port}`).join(',') };
}

test('sentinels: a master is killed; acknowledged writes stay, fences grow', { skip: missing }, async (t) => {
  const { master, sentinels, hosts } = await group(t);
  const s = await store(`redis+sentinel://${hosts}/main`, { deadline: 20_000, leaks: true, replicas: 1 });
  t.after(async () => assert.equal(await s.close(), 0));
  const w = writer(s, ['a', 'b']);
  await w.grows();
  const fence = Number(await ok(s, 'take', 'lease', 0));
  await ok(s, 'drop', 'lease');
  sentinels[0].child.kill('SIGKILL'); // the first of the URL
  await master.kill();
  await until('another master', () => !sentinels[1].cli('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main').endsWith(`\n${master.port}`));
  await w.grows();
  assert.ok(Number(await ok(s, 'take', 'lease', 0)) > fence);
  // the old one comes back and is made a replica: nothing goes to it
  await master.start();
  await until('it follows', () => /role:slave/.test(master.cli('INFO', 'replication')));
  await w.grows();
  await w.stop();
  await check(s, w);
});

test('sentinels: a master that lacks replicas is read, and left for another one', { skip: missing }, async (t) => {
  const [old, next] = [await redis(), await redis()];
  for (const server of [old, next]) t.after(() => server.stop());
  const names = await sentinel(t, old);
  const s = await store(`redis+sentinel://127.0.0.1:${names.port}/main`, { deadline: 10_000 });
  t.after(() => s.close());
  await ok(s, 'session', 's');
  await ok(s, 'entry', 's', 'x');
  old.cli('CONFIG', 'SET', 'min-replicas-to-write', '1');
  const reconnects = async () => Number((await ok(s, 'health')).split(' ')[1]);
  await until('the sentinels are asked twice', async () => {
    assert.match((await s.ask('entry', 's', 'y')).rest, /NOREPLICAS/);
    assert.equal(await ok(s, 'history', 's'), '1 x');
    return (await reconnects()) >= 2;
  });
  names.cli('SENTINEL', 'REMOVE', 'main');
  names.cli('SENTINEL', 'MONITOR', 'main', '127.0.0.1', String(next.port), '2');
  await until('the other one is used', async () => (await s.ask('session', 's')).ok);
  assert.equal(next.cli('EXISTS', 'mcp:session:{s}'), '1');
});

test('sentinels with passwords; a name that they do not know', { skip: missing }, async (t) => {
  const { master, hosts } = await group(t, { password: 'sesame' });
  const s = await store(`redis+sentinel://:sesame@${hosts}/main/2`, { deadline: 20_000 });
  await ok(s, 'session', 's');
  assert.equal(master.cli('-n', '2', 'EXISTS', 'mcp:session:{s}'), '1');
  await s.close();
  for (const [url, says] of [
    [`redis+sentinel://:sesame@${hosts}/other`, /knows no master other/],
    [`redis+sentinel://${hosts}/main`, /NOAUTH/],
    [`redis+sentinel://:sesame@127.0.0.1:${master.port}/main`, /unknown command|SENTINEL/i], // no sentinel
  ]) {
    const bad = await store(url, { deadline: 3000 });
    const a = await bad.ask('session', 's');
    assert.equal(a.word, 'unavailable', url);
    assert.match(a.rest, says);
    assert.doesNotMatch(a.rest, /sesame/);
    await bad.close();
  }
});

test('a write that too few replicas have is not acknowledged', { skip: missing }, async (t) => {
  const alone = await redis();
  t.after(() => alone.stop());
  const s = await store(`redis://127.0.0.1:${alone.port}`, { deadline: 10_000, replicas: 1 });
  t.after(() => s.close());
  const a = await s.ask('session', 's');
  assert.equal(a.word, 'unavailable');
  assert.match(a.rest, /0 of 1 replicas/);
  assert.equal((await s.ask('take', 'lease', 0)).word, 'unavailable');
});
