// The docker driver against podman's service: what works there as well, and
// what it does not keep is made up for.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { docker } from '../lib/box.mjs';
import { noPodman, podman } from '../lib/dockerd.mjs';

const skip = noPodman;
let engine;
let us;
const sh = (script) => ['/bin/sh', '-c', script];
const all = async () => (await engine.api('GET', '/containers/json?all=1')).json;

before(async () => {
  if (skip) return;
  engine = await podman();
  us = docker(engine);
}, { timeout: 120_000 });

after(async () => {
  await us?.close();
  engine?.cleanUp();
});

test('podman is known by its name', { skip }, async () => {
  us.tell('check');
  const { ok, what } = await us.next('check');
  assert.ok(ok);
  assert.match(what, /^podman \d/);
});

test('inside: no rights, bounded places, our filter', { skip }, async () => {
  await us.start('i', { argv: sh(`
    id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t\\n' ' '; echo
    ls /sys/class/net; touch /x 2>&1; touch /workspace/w /tmp/t && echo writable
    ulimit -n; for d in /workspace /tmp /run /var/tmp; do df -k $d | tail -1 | tr -s ' ' | cut -d' ' -f2; done
    ls /dev/shm 2>&1; echo end; cat`),
    limits: { workspace: 32 << 20, tmp: 8 << 20, open_files: 77 } });
  const lines = (await us.until('i', 'end\n')).trim().split('\n');
  assert.match(lines[0], /^2[01]\d{3}$/);
  assert.match(lines[1], /CapEff: 0{16} CapBnd: 0{16} NoNewPrivs: 1 Seccomp: 2/);
  assert.equal(lines[2], 'lo');
  assert.match(lines[3], /Read-only/);
  assert.deepEqual(lines.slice(4, 10),
    ['writable', '77', String(32 << 10), String(8 << 10), String(8 << 10), String(8 << 10)]);
  assert.match(lines[10], /No such file/);
  assert.equal((await us.stop('i')).cause, 'stopped');
  assert.deepEqual(await all(), []);
});

test('it answers MCP; the end is told with its cause', { skip }, async () => {
  await us.start('m');
  us.write('m', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {
    protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } } }) + '\n');
  assert.match(await us.until('m', '\n'), /"name":"mo-toolbox"/);
  assert.equal((await us.stop('m')).cause, 'stopped');
  await us.start('x', { argv: sh('read x; exit 3') });
  us.write('x', '\n');
  const gone = await us.next('gone', 'x');
  assert.deepEqual([gone.cause, gone.code], ['exited', 3]);
  assert.deepEqual(await all(), []);
});

// podman ends a program's input with its last reader: there a box ends with
// us, and what is left of it is found.
test('after SIGKILL of us: found, not running, removed', { skip }, async () => {
  const first = docker(engine, { store: 'p', instance: 'first' });
  const { id } = await first.start('a', { session: 's' });
  await first.sigkill();
  const second = docker(engine, { store: 'p', instance: 'second' });
  let rows;
  do rows = await second.list(); while (rows[0]?.running);
  assert.deepEqual(rows.map((r) => [r.id, r.session, r.instance]), [[id, 's', 'first']]);
  await assert.rejects(second.start('a', { id }), /does not run any more/);
  await second.close();
  assert.deepEqual(await all(), []);
});

test('what only looks like ours is not adopted', { skip }, async () => {
  const { id } = await us.start('w', { argv: sh('cat') });
  const { Config: c } = (await engine.api('GET', `/containers/${id}/json`)).json;
  await us.stop('w');
  const weak = await engine.api('POST', '/containers/create', { ...c, Image: c.Image });
  await engine.api('POST', `/containers/${weak.json.Id}/start`);
  await assert.rejects(us.start('w', { id: weak.json.Id }), /the engine changed/);
  assert.deepEqual(await all(), []);
});
