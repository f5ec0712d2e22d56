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

const rows = (home) => readFileSync(join(home.dir, 'audit.jsonl'), 'utf8').split('\n').slice(0, -1)
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
    assert.match(await said, /exit (56|55|7|52)$/);
    assert.match(await curl('b.ask'), /exit (56|55|7|52)$/);
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
    assert.equal(decided('a.ask').program, '/usr/bin/curl');
    assert.equal(decided('always.ask').reason, 'always');
    assert.ok(all.some((r) => r.kind === 'connection' && r.host === 'a.ask' && r.rule === 'ask: once' && r.outcome === 'ok' &&
      r.program === '/usr/bin/curl'));
    assert.ok(all.some((r) => r.kind === 'connection' && r.host === 'b.ask' && r.outcome === 'denied'));
  });
});

describe('the program that a question names', { skip }, () => {
  const hosts = new Hosts();
  let box, http;

  before(async () => {
    http = await hosts.http((q, r) => r.end('hello'));
    box = await NetBox.open({ allow: [`127.0.0.1:${http}`], ask: true },
      { hosts: Object.fromEntries(['c', 'd', 'e', 'x', 'y', 'z'].map((n) => [`${n}.ask`, '127.0.0.1'])) });
  });
  after(async () => {
    await box?.close();
    hosts.close();
  });

  test('sockets of both families', async () => {
    const mapped = `/usr/bin/python3 -c 'import socket
s = socket.socket(socket.AF_INET6)
s.connect(("::ffff:" + socket.gethostbyname("d.ask"), ${http}))
s.sendall(b"GET / HTTP/1.0\\r\\nHost: d.ask\\r\\n\\r\\n")
s.recv(1)'`;
    for (const [what, host, by] of [[`curl -sS -4 http://c.ask:${http}/`, 'c.ask', /^\/usr\/bin\/curl$/],
      [`curl -sS -6 http://e.ask:${http}/`, 'e.ask', /^\/usr\/bin\/curl$/],
      [mapped, 'd.ask', /^\/usr\/bin\/python3[.\d]*$/]]) {
      const said = box.run(what);
      const q = await question(box.home, host);
      assert.match(q.program ?? 'none', by);
      const shown = await command(box.home, 'approvals', 'approve', q.id);
      assert.ok(shown.includes(`\n  program    ${q.program}\n`), shown);
      assert.match(await said, /exit 0$/);
    }
  });

  test('a hostile name is shown escaped and cut', async () => {
    // runs a copy of curl below this directory: Python's text, in it bytes that a name may have
    const run = (dir, name, host) => box.run(`/usr/bin/python3 - <<'EOF'
import os, shutil, subprocess
os.chdir('/workspace')
for d in ${dir}:
    os.makedirs(d, exist_ok=True)
    os.chdir(d)
shutil.copy('/usr/bin/curl', ${name})
print(subprocess.run([b'./' + ${name}, '-sS', 'http://${host}:${http}/'], capture_output=True).returncode)
EOF`);
    const long = "[b'd' * 250] * 15";
    for (const [dir, name, host, shown] of [
      ['[]', String.raw`b'x\n  server     other\x1b[31m\\\xe2\x80\xae\xff"<b>%'`, 'x.ask',
        '/workspace/x%0A  server     other%1B[31m%5C%E2%80%AE%FF%22<b>%25'],
      [long, "b'end'", 'y.ask', `...${'d'.repeat(121)}/end`],
      [String.raw`[b'\n' * 100]`, String.raw`b'\n' * 200`, 'z.ask', `...${'%0A'.repeat(83)}...`]]) {
      const said = run(dir, name, host);
      const q = await question(box.home, host);
      assert.equal(q.program, shown);
      const listed = await command(box.home, 'approvals', 'reject', q.id);
      assert.ok(listed.includes(shown) && !/\x1b/.test(listed), listed);
      assert.equal(listed.match(/^ {2}server /gm).length, 1, listed);
      assert.match(await said, /^(56|52|7)\n/);
      await eventually('its row', () => rows(box.home).some((r) => r.kind === 'connection' && r.program === shown));
    }
  });
});
