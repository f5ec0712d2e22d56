// A box whose network asks: a person decides about hosts that nobody allowed.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Hosts, NetBox, certificate } from '../lib/egress.mjs';
import { cli, eventually, noNative } from '../lib/sessions.mjs';

const skip = noNative ? `needs ${noNative}` : !existsSync('/usr/bin/curl') && 'needs /usr/bin/curl';

/** Output of a command; fails with its error. */
const command = (home, ...args) => new Promise((resolve, reject) => execFile(cli, ['--config', home.config, ...args],
  { env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' } },
  (e, stdout, stderr) => (e ? reject(new Error(stderr)) : resolve(stdout))));

const list = async (home) => JSON.parse(await command(home, 'approvals', 'list', '--json'));

/** The question about this host, when it is there. */
async function question(home, host) {
  let found;
  await eventually(`a question about ${host}`, async () => {
    found = (await list(home)).find((k) => k.args?.host === host);
    return found;
  });
  return found;
}

const rows = (home) => readFileSync(join(home.dir, 'audit.jsonl'), 'utf8').trim().split('\n')
  .map((line) => JSON.parse(line)).map((r) => r.what);

describe('a boxed server whose network asks', { skip }, () => {
  const hosts = new Hosts();
  const pair = certificate(['tls.ask']);
  const names = { 'meta.ask': '169.254.169.254' };
  let box, http, tls, network;
  const curl = (host, port = http, path = '/') => box.run(`curl -sS http://${host}:${port}${path}`);
  const open = (home) => NetBox.open(network, { hosts: names, env: { CA: pair.cert }, home });

  before(async () => {
    for (const n of ['a', 'b', 'c', 'd', 'e', 'tls', 'join', 'always', 'never', ...Array(9).keys()])
      names[`${n}.ask`] = '127.0.0.1';
    http = await hosts.http((q, r) => r.end(`hello ${q.headers.host.split(':')[0]}`));
    tls = await hosts.tls(pair, (q, r) => r.end('secret hello'));
    network = { allow: [`127.0.0.1:${http}`, `127.0.0.1:${tls}`], ask: true };
    box = await open();
  });
  after(async () => {
    await box?.close();
    hosts.close();
  });

  test('a connection waits, and goes on after a yes', async () => {
    const said = curl('a.ask', http, '/some/path?x=1');
    const q = await question(box.home, 'a.ask');
    assert.deepEqual([q.server, q.tool, q.args, q.request, q.tls, q.approver],
      ['t', 'network:connect', { host: 'a.ask', port: http }, 'GET /some/path?x=1', false, 'operator']);
    assert.match(await command(box.home, 'approvals', 'approve', q.id), /^approved [\s\S]*request {4}GET \/some\/path/);
    assert.equal(await said, 'hello a.askexit 0');
    assert.deepEqual(await list(box.home), []);
  });

  test('a no resets it at once, and is not asked again at once', async () => {
    const said = curl('b.ask');
    await command(box.home, 'approvals', 'reject', (await question(box.home, 'b.ask')).id);
    assert.match(await said, /exit (56|7|52)$/);
    assert.match(await curl('b.ask'), /exit (56|7|52)$/);
  });

  test('TLS, and an answer for the session', async () => {
    await box.run('printf %s "$CA" > /workspace/ca.pem');
    const get = () => box.run(`curl -sS --cacert ca.pem https://tls.ask:${tls}/`);
    const said = get();
    const q = await question(box.home, 'tls.ask');
    assert.equal(q.tls, true);
    assert.equal(q.request, undefined);
    await command(box.home, 'approvals', 'approve', q.id, '--remember', 'session');
    assert.equal(await said, 'secret helloexit 0');
    assert.equal(await get(), 'secret helloexit 0');
    assert.match(await box.run(`curl -sSk --connect-to a.ask:${tls}:c.ask:${tls} https://a.ask:${tls}/`), /exit (35|7|56)$/);
  });

  test('connections to one host share one question', async () => {
    const three = box.run(`for i in 1 2 3; do curl -sS http://join.ask:${http}/ & done; wait`);
    const q = await question(box.home, 'join.ask');
    assert.equal((await list(box.home)).length, 1);
    await command(box.home, 'approvals', 'approve', q.id, '--remember', 'session');
    assert.equal(await three, `${'hello join.ask'.repeat(3)}exit 0`);
  });

  test('a yes does not reach a private address', async () => {
    const said = box.run('curl -sS http://meta.ask/latest/meta-data/');
    await command(box.home, 'approvals', 'approve', (await question(box.home, 'meta.ask')).id);
    assert.match(await said, /exit (56|7|52)$/);
    assert.match(await box.run(`curl -sS http://10.0.0.1:${http}/`), /exit (56|7|52)$/);
    assert.deepEqual(await list(box.home), []);
  });

  test('no more than 8 hosts wait; a program that gives up takes its question back', async () => {
    const all = box.run(`for i in 0 1 2 3 4 5 6 7; do curl -sS --max-time 60 http://$i.ask:${http}/ & done; wait`);
    await eventually('8 questions', async () => (await list(box.home)).length === 8);
    assert.match(await curl('8.ask'), /exit (56|7|52)$/);
    assert.equal((await list(box.home)).length, 8);
    await box.run('for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = curl ] && kill ${p#/proc/}; done; true');
    await all;
    await eventually('none', async () => (await list(box.home)).length === 0);
  });

  test('always and never hold after a restart', async () => {
    for (const [host, verb] of [['always.ask', 'approve'], ['never.ask', 'reject']]) {
      const said = curl(host);
      await command(box.home, 'approvals', verb, (await question(box.home, host)).id, '--remember', 'always');
      assert.match(await said, verb === 'approve' ? /^hello always.askexit 0$/ : /exit (56|7|52)$/);
    }
    const { home } = box;
    await box.client.close();
    box = await open(home);
    assert.equal(await curl('always.ask'), 'hello always.askexit 0');
    assert.match(await curl('never.ask'), /exit (56|7|52)$/);
    assert.deepEqual(await list(home), []);
    const rules = JSON.parse(readFileSync(join(home.dir, 'rules.json'))).rules;
    assert.deepEqual(rules.map((r) => [r.server, r.tool, r.action, r.args]), [
      ['t', 'network:connect', 'allow', { host: '= always.ask', port: `${http}` }],
      ['t', 'network:connect', 'deny', { host: '= never.ask', port: `${http}` }]]);
  });

  test('decisions and connections are in the audit log', async () => {
    await eventually('rows', () => rows(box.home).some((r) => r.kind === 'connection' && r.rule === 'approval rule'));
    const all = rows(box.home);
    const decided = (host) => all.find((r) => r.kind === 'decision' && r.host === `${host}:${http}`);
    assert.equal(decided('a.ask').action, 'allow');
    assert.equal(decided('a.ask').door, 'socket');
    assert.equal(decided('b.ask').action, 'deny');
    assert.equal(decided('always.ask').reason, 'always');
    assert.ok(all.some((r) => r.kind === 'connection' && r.host === 'a.ask' && r.rule === 'ask: once' && r.outcome === 'ok'));
    assert.ok(all.some((r) => r.kind === 'connection' && r.host === 'b.ask' && r.outcome === 'denied'));
  });
});
