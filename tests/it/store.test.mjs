// The store on real servers: a cluster, TLS, accounts, lost answers, far replicas,
// and what the shell of SQLite sees of it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';

import { freePort } from '../lib/port.mjs';
import { between, missing, redis, store, tempDir, until } from '../lib/redis.mjs';

const NAMES = [...Array(16).keys()].map((i) => `s${i}`);

async function ok(s, ...words) {
  const a = await s.ask(...words);
  assert.equal(a.word, 'ok', `${words.join(' ')}: ${a.rest}`);
  return a.rest;
}

// --- cluster ----------------------------------------------------------------

const noIpv6 = Object.values(networkInterfaces()).flat().some((a) => a.address === '::1') ? false : 'the address ::1';

async function cluster(t, host = '127.0.0.1') {
  const nodes = [];
  for (let i = 0; i < 2; i++) {
    let node;
    while (!node) { // its bus has a port of its own, 10000 above
      const port = await freePort();
      if (port < 50_000)
        node = await redis({ port, args: ['--cluster-enabled', 'yes',
          '--cluster-node-timeout', '20000', '--bind', host], cli: ['-h', host] });
    }
    nodes.push(node);
    t.after(() => node.stop());
  }
  nodes[0].cli('CLUSTER', 'ADDSLOTSRANGE', '0', '8191');
  nodes[1].cli('CLUSTER', 'ADDSLOTSRANGE', '8192', '16383');
  nodes[0].cli('CLUSTER', 'MEET', host, String(nodes[1].port));
  for (const node of nodes)
    await until('the cluster is whole', () =>
      /cluster_state:ok[^]*cluster_known_nodes:2/.test(node.cli('CLUSTER', 'INFO')));
  return nodes;
}

test('cluster: MOVED is followed, and so is ASK', { skip: missing }, async (t) => {
  const [a, b] = await cluster(t);
  const s = await store(`redis://127.0.0.1:${a.port}`, { deadline: 20_000, leaks: true });
  t.after(async () => assert.equal(await s.close(), 0));
  for (const name of NAMES) {
    await ok(s, 'session', name);
    await Promise.all(['1', '2', '3'].map((doc) => ok(s, 'entry', name, doc)));
    await ok(s, 'audit', name, `by-${name}`);
    assert.equal(await ok(s, 'history', name), '3 1 2 3');
    const fence = await ok(s, 'take', name, 0);
    await ok(s, 'entry', name, '4', fence);
    assert.equal(await ok(s, 'who', name), `driver ${fence}`);
    await ok(s, 'drop', name);
  }
  for (const doc of ['a', 'b', 'c']) await ok(s, 'audit', '', `of-none-${doc}`);
  const count = (node) => Number(node.cli('DBSIZE'));
  assert.ok(count(a) > 10 && count(b) > 10, 'both have their share');
  const audits = (await ok(s, 'audits')).split(' ');
  assert.equal(audits[0], String(NAMES.length + 3));
  assert.deepEqual(audits.slice(1).sort(), [...NAMES.map((n) => `by-${n}`), 'of-none-a', 'of-none-b', 'of-none-c'].sort());
  assert.deepEqual(audits.filter((r) => r.startsWith('of-none')), ['of-none-c', 'of-none-b', 'of-none-a'], 'newest first');

  // One slot moves from a to b, with a session in it.
  const name = NAMES.find((n) => Number(a.cli('CLUSTER', 'KEYSLOT', n)) < 8192);
  const slot = a.cli('CLUSTER', 'KEYSLOT', name);
  const [idA, idB] = [a, b].map((n) => n.cli('CLUSTER', 'MYID'));
  b.cli('CLUSTER', 'SETSLOT', slot, 'IMPORTING', idA);
  a.cli('CLUSTER', 'SETSLOT', slot, 'MIGRATING', idB);
  const keys = a.cli('CLUSTER', 'GETKEYSINSLOT', slot, '100').split('\n');
  assert.ok(keys.length >= 3);
  a.cli('MIGRATE', '127.0.0.1', String(b.port), '', '0', '10000', 'KEYS', ...keys);
  assert.equal(await ok(s, 'history', name), '4 1 2 3 4', 'by ASK');
  // several keys at once wait until the slot has moved, says Redis
  const during = await s.ask('entry', name, '5');
  assert.equal(during.word, 'unavailable');
  assert.match(during.rest, /TRYAGAIN/);
  for (const node of [b, a]) node.cli('CLUSTER', 'SETSLOT', slot, 'NODE', idB);
  await ok(s, 'entry', name, '6');
  assert.equal(await ok(s, 'history', name), '5 1 2 3 4 6', 'by MOVED');
});

test('cluster: nodes on IPv6 are followed', { skip: missing || noIpv6 }, async (t) => {
  const nodes = await cluster(t, '::1');
  const s = await store(`redis://[::1]:${nodes[0].port}`, { deadline: 10_000 });
  t.after(() => s.close());
  for (const name of NAMES) {
    await ok(s, 'session', name);
    await ok(s, 'entry', name, '1');
    assert.equal(await ok(s, 'history', name), '1 1');
  }
  for (const node of nodes) assert.ok(Number(node.cli('DBSIZE')) > 5, 'both have their share');
});

// --- lost answers, far replicas ------------------------------------------------

test('what is counted is counted once, also when the answer is lost', { skip: missing }, async (t) => {
  const server = await redis();
  t.after(() => server.stop());
  const way = await between(t, server.port);
  const s = await store(`redis://127.0.0.1:${way.port}`, { deadline: 10_000 });
  t.after(() => s.close());
  const sum = () => server.cli('EVAL', "return redis.call('HGET', redis.call('KEYS', 'mcp:budget:{budget}:d:*')[1], 'x')", '0');
  await ok(s, 'count', 'day', 'x', '5');
  way.lose('mcp:budget:');
  assert.equal((await s.ask('count', 'day', 'x', '5')).word, 'unavailable');
  assert.equal(way.lost, 1);
  assert.equal(sum(), '10');
  way.lose('mcp:budget:');
  assert.equal((await s.ask('count', 'rate', 'y', '1')).word, 'unavailable');
  way.lose('mcp:budget:');
  await ok(s, 'count', 'held', 'z', '1'); // twice is the same
  assert.equal(way.lost, 3);
  await ok(s, 'count', 'day', 'x', '5');
  assert.equal(sum(), '15');
});

/** A master that is never idle: it ends a WAIT in time. */
async function busyMaster(t) {
  const master = await redis();
  const load = connect(master.port, '127.0.0.1');
  load.on('data', () => load.write('PING\r\n')).on('error', () => {});
  load.write('PING\r\n');
  t.after(() => {
    load.destroy();
    return master.stop();
  });
  return master;
}

/** A replica whose answers take that many ms longer, and a store on both, to
 *  which it was too late once. */
async function late(t, master, delay) {
  const way = await between(t, master.port, { delay });
  const replica = await redis({ args: ['--replicaof', '127.0.0.1', String(way.port)] });
  t.after(() => replica.stop());
  const follows = () => until('the replica follows', () => /master_link_status:up/.test(replica.cli('INFO', 'replication')) &&
    /state=online/.test(master.cli('INFO', 'replication')));
  await follows();
  const s = await store(`redis://127.0.0.1:${master.port}`, { deadline: 10_000, replicas: 1 });
  t.after(() => s.close());
  await until('a write is acknowledged', async () => (await s.ask('session', 's')).ok);
  replica.child.kill('SIGSTOP');
  assert.match((await s.ask('entry', 's', 'late')).rest, /0 of 1 replicas/);
  replica.child.kill('SIGCONT');
  return s;
}

test('a replica that is slower than a moment is waited for again', { skip: missing }, async (t) => {
  const s = await late(t, await busyMaster(t), 10);
  await until('it has a write in time', async () => (await s.ask('entry', 's', 'more')).ok);
  for (let i = 0; i < 20; i++) await ok(s, 'entry', 's', `e${i}`);
});

test('a new connection knows nothing of replicas that were late', { skip: missing }, async (t) => {
  const master = await busyMaster(t);
  const s = await late(t, master, 200); // later than the tries
  await until('it has a write in time', async () => {
    const reconnects = async () => Number((await ok(s, 'health')).split(' ')[1]);
    const before = await reconnects();
    for (const id of master.cli('CLIENT', 'LIST', 'TYPE', 'normal').matchAll(/^id=(\d+).*cmd=(?!ping|client)/gm)) master.cli('CLIENT', 'KILL', 'ID', id[1]);
    await until('it is connected again', async () => (await reconnects()) > before);
    return (await s.ask('entry', 's', 'more')).ok;
  });
});

// --- accounts and TLS ---------------------------------------------------------

function certificates(dir) {
  const run = (...args) => execFileSync('openssl', args, { cwd: dir, stdio: 'ignore' });
  run('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
    '-keyout', 'key.pem', '-out', 'cert.pem', '-days', '2', '-subj', '/CN=localhost',
    '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1');
  return { cert: `${dir}/cert.pem`, key: `${dir}/key.pem` };
}

test('rediss, an account of its own, a database of its own', { skip: missing }, async (t) => {
  const dir = tempDir();
  const { cert, key } = certificates(dir);
  const port = await freePort();
  const server = await redis({
    port, dir,
    args: ['--port', '0', '--tls-port', String(port), '--tls-cert-file', cert,
      '--tls-key-file', key, '--tls-auth-clients', 'no',
      '--user', 'default', 'off', '--user', 'admin', 'on', '>root', '~*', '&*', '+@all',
      '--user', 'mo', 'on', '>p@ss:w0rd', '~mcp:*', '&mcp:*', '+@all', '-@dangerous'],
    cli: ['--tls', '--cacert', cert, '--user', 'admin', '--pass', 'root', '--no-auth-warning'],
  });
  t.after(() => server.stop());
  const at = `localhost:${port}/3`;

  const s = await store(`rediss://mo:p%40ss%3Aw0rd@${at}`, { deadline: 20_000, ca: cert, leaks: true });
  t.after(async () => assert.equal(await s.close(), 0));
  await ok(s, 'session', 's');
  await ok(s, 'entry', 's', 'x');
  assert.equal(await ok(s, 'history', 's'), '1 x');
  await ok(s, 'take', 's', 1000);
  await ok(s, 'drop', 's');
  assert.equal(server.cli('-n', '3', 'EXISTS', 'mcp:session:{s}'), '1');
  assert.equal(server.cli('-n', '0', 'DBSIZE'), '0');

  for (const [url, ca, says] of [
    [`rediss://mo:wrong@${at}`, cert, /WRONGPASS/],
    [`rediss://mo:p%40ss%3Aw0rd@${at}`, undefined, /certificate/],
    [`rediss://${at}`, cert, /NOAUTH/],
    [`redis://mo:p%40ss%3Aw0rd@${at}`, undefined, /./],
    [`rediss://mo:p%40ss%3Aw0rd@localhost:${port}/99`, cert, /DB index/],
  ]) {
    const bad = await store(url, { deadline: 3000, ca });
    const a = await bad.ask('session', 's');
    assert.equal(a.word, 'unavailable', url);
    assert.match(a.rest, says);
    assert.doesNotMatch(a.rest, /w0rd/);
    await bad.close();
  }
});

for (const [url, says] of [
  ['redis://', /not a valid URL/],
  ['redis://host/x', /is a number/],
  ['redis://user@host', /no password/],
  ['redis://h:1/0?x=1', /nothing else/],
  ['redis+unix:relative', /path of a socket/],
  ['redis+unix:/s?x=1', /only \?db=N/],
  ['rediss://:secret%zz@host', /not a valid URL/],
])
  test(`refused: ${url}`, async () => {
    const s = await store(url);
    assert.equal(s.opened.word, 'invalid');
    assert.match(s.opened.rest, says);
    assert.doesNotMatch(s.opened.rest, /secret/);
    assert.equal(await s.close(), 1);
  });

// --- SQLite, from outside -------------------------------------------------------

const noShell = existsSync('/usr/bin/sqlite3') ? false : 'sqlite3';

test('sqlite: its own shell reads it while it is open', { skip: noShell }, async (t) => {
  const file = `${tempDir()}/store.db`;
  const sql = (text) => execFileSync('sqlite3', [file, text], { encoding: 'utf8' }).trim();
  const stores = await Promise.all([store(`sqlite:${file}`), store(`sqlite:${file}`)]);
  t.after(() => Promise.all(stores.map((s) => s.close())));
  await ok(stores[0], 'session', 's');
  await Promise.all([...Array(100).keys()].map((i) => ok(stores[i % 2], 'entry', 's', `e${i}`)));
  assert.equal(sql('SELECT count(*), max(seq), count(DISTINCT seq) FROM entry'), '100|100|100');
  assert.equal(sql('PRAGMA journal_mode'), 'wal');
  assert.equal(sql('PRAGMA user_version'), '5');
  assert.equal(sql('PRAGMA integrity_check'), 'ok');
  sql(`VACUUM INTO '${file}.backup'`);
  assert.equal(execFileSync('sqlite3', [`${file}.backup`, 'SELECT count(*) FROM entry'],
    { encoding: 'utf8' }).trim(), '100');
});
