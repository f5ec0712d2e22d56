// H13: the port at which servers on other machines join. Strangers at it, and
// strangers at an address that the store tells.
import assert from 'node:assert/strict';
import net from 'node:net';
import tls from 'node:tls';
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { after, before, test } from 'node:test';

import { missing as noRedis } from '../lib/redis.mjs';
import { Replicas } from '../it/replicas_kit.mjs';
import { until, within } from '../it/server.mjs';

const KEY = 'k'.repeat(32); // of replicas_kit
const skip = noRedis;
const facts = (...v) => Buffer.from(v.map((s) => `${s}\0`).join('')).toString('base64url');
let all, port;

before(async () => {
  if (skip) return;
  all = await Replicas.start({ store: 'redis', far: true, oneProcess: 'each worker has a port of its own, and here one is attacked', env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' } });
  [, port] = /reach this one at 127\.0\.0\.1:(\d+)/.exec(all.v[0].server.log).map(Number);
});
after(() => all?.stop());

async function outcome(word, n = 0) {
  const text = await (await fetch(`${all.v[n].server.url}/metrics`)).text();
  return Number(new RegExp(`^mo_cluster_connections_total\\{outcome="${word}"\\} (\\d+)`, 'm').exec(text)[1]);
}

/** What comes back until the connection ends, and how long that took. */
async function talk(parts, ms = 20_000) {
  const s = net.connect(port, '127.0.0.1');
  const began = Date.now();
  let bytes = Buffer.alloc(0);
  const done = new Promise((resolve) => s.on('error', resolve).on('close', resolve).on('data', (d) => (bytes = Buffer.concat([bytes, d]))));
  for (const p of parts) s.write(p);
  await within(done, 'the end of the connection', ms);
  s.destroy();
  return { bytes, ms: Date.now() - began };
}

test('bytes that are no TLS', { skip }, async () => {
  const before = await outcome('bad_handshake');
  const rows = [
    'GET /api/approvals HTTP/1.1\r\nhost: x\r\nmo-relay: MQAAADQAAHRva2VuAHgAAA\r\n\r\n',
    Buffer.from([1, 0, 0, 0, 5, 0x68, 0x65, 0x6c, 0x6c, 0x6f]), // a frame of a peer
    Buffer.alloc(100_000, 0x16),
    Buffer.concat([Buffer.from([0x16, 3, 1, 0xff, 0xff]), Buffer.alloc(200_000)]),
    Buffer.from('16030100050100000100', 'hex'),
  ];
  for (const row of rows) {
    const { bytes } = await talk([row]);
    assert.ok(!/HTTP\/1|approvals|ready/.test(bytes.toString('latin1')), 'at most an alert');
    assert.ok(bytes.length < 20, `${bytes.length} bytes came back`);
  }
  await until(async () => (await outcome('bad_handshake')) >= before + rows.length, 'the count');
  assert.match(all.v[0].server.log, /cluster port: refused/);
});

test('those who say nothing are closed, and do not keep others out', { skip }, async () => {
  const idle = Array.from({ length: 200 }, () => talk([]));
  await until(async () => (await outcome('crowded')) > 0, 'too many of one address');
  const ends = await Promise.all(idle);
  assert.ok(ends.every(({ bytes }) => bytes.length === 0));
  // A slow one: the time counts from the connection, not from the last byte.
  const slow = net.connect(port, '127.0.0.1');
  const over = new Promise((resolve) => slow.on('error', () => {}).on('close', resolve));
  const drip = setInterval(() => slow.write(Buffer.from([0x16])), 200);
  await within(over, 'the end of the slow one');
  clearInterval(drip);
  const { here, there } = await all.pair();
  all.model.script.push({ text: 'heard' });
  assert.equal((await there.say('one')).ok, true);
  await here.event('agent:response');
});

/** As a client that has a key, or thinks so: the first line of the answer. */
async function ask(key, name, { alpn = 'http/1.1', id } = {}) {
  const mac = (use) => createHmac('sha256', key).update(use).digest('hex');
  const identity = `${id ?? mac('mcp-orchestrator cluster identity 1').slice(0, 16)} ${name}`;
  const child = spawn('openssl', ['s_client', '-quiet', '-tls1_3', '-connect', `127.0.0.1:${port}`, '-alpn', alpn,
    '-ciphersuites', 'TLS_AES_128_GCM_SHA256', '-psk', mac('mcp-orchestrator cluster key 1'), '-psk_identity', identity], { stdio: ['pipe', 'pipe', 'ignore'] });
  let out = '';
  child.stdin.on('error', () => {});
  child.stdin.write(`GET /api/approvals HTTP/1.1\r\nhost: x\r\nmo-relay: ${facts('1', '', '', '4', '', 'token', 'x', '')}\r\nconnection: close\r\n\r\n`);
  const ended = once(child, 'close');
  child.stdout.on('data', (d) => { out += d; child.stdin.end(); });
  const late = setTimeout(() => child.kill(), 15_000);
  await ended;
  clearTimeout(late);
  return out.split('\r\n')[0];
}

test('who has the key is served, but not for another instance', { skip }, async () => {
  const names = (await readdir(all.v[0].dir, { recursive: true })).map((f) => /run\/(i[^/]*)\.lock$/.exec(f)?.[1]).filter(Boolean);
  assert.equal(names.length, 1);
  assert.equal(await ask(KEY, names[0]), 'HTTP/1.1 200 OK');
  const before = [await outcome('bad_key'), await outcome('bad_instance')];
  assert.equal(await ask('l'.repeat(32), names[0]), '', 'another key');
  assert.equal(await ask('l'.repeat(32), names[0], { id: createHmac('sha256', KEY).update('mcp-orchestrator cluster identity 1').digest('hex').slice(0, 16) }), '', 'another key under the name of ours');
  for (const name of ['', 'i', `${names[0]}x`, names[0].slice(0, -1), `${names[0]} x`, 'x'.repeat(120)]) assert.equal(await ask(KEY, name), '', `'${name}'`);
  assert.equal(await ask(KEY, names[0], { alpn: 'h2' }), '', 'another protocol');
  assert.deepEqual([await outcome('bad_key'), await outcome('bad_instance')], [before[0] + 1, before[1] + 6]);
});

test('TLS without the key, or of an older version', { skip }, async () => {
  const plain = (o) => new Promise((resolve) => {
    const s = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...o });
    s.on('secureConnect', () => { s.destroy(); resolve('open'); }).on('error', (e) => resolve(e.code ?? e.message));
  });
  for (const o of [{}, { ALPNProtocols: ['mo-peer/1'] }, { ALPNProtocols: ['http/1.1'], minVersion: 'TLSv1.3' }, { maxVersion: 'TLSv1.2' }])
    assert.match(await plain(o), /ALERT|ECONNRESET|handshake|version/i, JSON.stringify(o));
});

test('an address in the store that leads to somebody else learns nothing', { skip }, async () => {
  const got = [];
  const trap = net.createServer((s) => s.on('data', (d) => got.push(d)).on('error', () => {})).listen(0, '127.0.0.1');
  await new Promise((r) => trap.on('listening', r));
  const liar = tls.createServer({ ALPNProtocols: ['mo-peer/1', 'http/1.1'], ...(await certificate()) }, (s) => s.on('data', (d) => got.push(d))).listen(0, '127.0.0.1');
  liar.on('tlsClientError', () => {});
  await new Promise((r) => liar.on('listening', r));
  const owner = all.v[0].tab();
  await owner.ready();
  try {
    for (const [where, name] of [[trap, 'silent'], [liar, 'with a certificate']]) {
      const failed = await outcome('failed', 1);
      await lead(where.address().port);
      const there = all.v[1].tab({ session: owner.session });
      await until(async () => (await outcome('failed', 1)) > failed, `the failure, ${name}`);
      assert.equal(there.count('session:history'), 0);
      there.close();
    }
  } finally {
    trap.close();
    liar.close();
  }
  const all2 = Buffer.concat(got).toString('latin1');
  assert.ok(got.length > 0, 'they were connected to');
  assert.ok(!all2.includes(owner.session) && !all2.includes(KEY), 'neither the session nor the key');
});

/** Every address in the store leads there. */
async function lead(to) {
  const { port: at } = all.redis;
  const cmd = (...words) => new Promise((resolve, reject) => {
    const s = net.connect(at, '127.0.0.1');
    let out = '';
    s.on('data', (d) => { out += d; if (/\r\n$/.test(out)) { s.destroy(); resolve(out); } }).on('error', reject);
    s.write(`*${words.length}\r\n${words.map((w) => `$${Buffer.byteLength(w)}\r\n${w}\r\n`).join('')}`);
  });
  const script = `
    local n = 0
    for _, k in ipairs(redis.call('KEYS', '*')) do
      local t = redis.call('TYPE', k).ok
      local set = function(v, put)
        if v and v:find('"tcp":"') then put((v:gsub('"tcp":"[^"]*"', '"tcp":"127.0.0.1:${to}"'))); n = n + 1 end
      end
      if t == 'string' then set(redis.call('GET', k), function(v) redis.call('SET', k, v, 'KEEPTTL') end)
      elseif t == 'hash' then
        local h = redis.call('HGETALL', k)
        for i = 1, #h, 2 do set(h[i + 1], function(v) redis.call('HSET', k, h[i], v) end) end
      end
    end
    return n`;
  const answer = await cmd('EVAL', script, '0');
  assert.match(answer, /^:[1-9]/, answer);
}

/** A certificate that some stranger has made for itself. */
async function certificate() {
  const { execFile } = await import('node:child_process');
  const { promisify } = await import('node:util');
  const { mkdtemp, readFile, rm } = await import('node:fs/promises');
  const { tmpdir } = await import('node:os');
  const dir = await mkdtemp(`${tmpdir()}/mo-liar-`);
  await promisify(execFile)('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
    '-keyout', `${dir}/key`, '-out', `${dir}/cert`, '-subj', '/CN=liar', '-days', '2']);
  const made = { key: await readFile(`${dir}/key`), cert: await readFile(`${dir}/cert`) };
  await rm(dir, { recursive: true });
  return made;
}
