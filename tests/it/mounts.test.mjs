// Folders of the host in the boxes of servers and sessions, from the
// configuration: native and docker, as root, as a user and after giving root
// up. And the workspace that a server keeps.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { Home, noNative } from '../lib/sessions.mjs';
import { BIN, Server, until } from './server.mjs';

const run = promisify(execFile);
const skip = noNative ? `needs ${noNative}` : false;
const noEngine = noDocker ? `needs ${noDocker}` : false;
const USER = 19994;
const ENV = { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' };

const tops = [];
after(() => tops.forEach((t) => rmSync(t, { recursive: true, force: true })));

/** A place with `docs`, `data` (USER's) and a configuration of these servers. */
function place(servers, { owner = 0, ...more } = {}) {
  const top = mkdtempSync(join(tmpdir(), 'mo-mounts-'));
  tops.push(top);
  chmodSync(top, 0o755);
  for (const d of ['docs', 'data', 'state', 'me', 'me/notes']) mkdirSync(join(top, d), { recursive: true });
  writeFileSync(join(top, 'docs', 'file'), 'read me\n');
  writeFileSync(join(top, 'me/notes', 'n'), 'a note\n');
  chownSync(join(top, 'data'), USER, USER);
  chownSync(join(top, 'state'), owner, owner);
  chmodSync(join(top, 'state'), 0o700);
  const config = join(top, 'c.json');
  const text = JSON.stringify({ mcpServers: servers(top), store: { dir: join(top, 'state') }, log: { level: 'error' }, ...more });
  writeFileSync(config, text);
  const env = { ...ENV, HOME: join(top, 'me') };
  const start = owner ? ['setpriv', ['--reuid', `${owner}`, '--regid', `${owner}`, '--clear-groups', BIN]] : [BIN, []];
  const cli = (...args) => run(start[0], [...start[1], '--config', config, ...args], { env })
    .then((r) => r.stdout, (e) => `FAILED ${e.code}: ${e.stderr}${e.stdout}`);
  const sh = (server, command) => cli('call', server, 'execute_command', JSON.stringify({ command }));
  const audit = () => readFileSync(join(top, 'state/audit.jsonl'), 'utf8').split('\n').slice(0, -1)
    .map((l) => JSON.parse(l).what).filter((w) => w.kind === 'mounts');
  return { top, config, cli, sh, audit, at: (...n) => join(top, ...n) };
}

const boxed = (more) => ({ command: 'mo-toolbox', sandbox: 'native', memoryMb: 64, ...more });

test('read-only by default, read-write if asked for, ~ is the home', { skip }, async () => {
  const p = place((top) => ({
    tools: boxed({ mounts: [`${top}/docs`, `${top}/data:/data:rw`, '~/notes:/notes:ro'] }),
  }));
  assert.match(await p.sh('tools', `cat ${p.top}/docs/file /notes/n; echo x > ${p.top}/docs/y; echo x > /notes/y; echo z > /data/new`),
    /read me\na note\n[^]*Read-only file system[^]*Read-only file system/);
  assert.equal(statSync(p.at('data/new')).uid, USER, 'belongs to the owner of the folder');
  assert.deepEqual(readdirSync(p.at('docs')), ['file']);
});

test('a workspace is kept, shared by name only, and goes with its server', { skip }, async () => {
  const p = place(() => ({ one: boxed({ workspace: true }), two: boxed({ workspace: true }), plain: boxed() }));
  await p.sh('one', 'echo kept > f; mkdir -p a/b/c; echo deep > a/b/c/d; chmod 0 a/b; ln -s /etc/passwd l');
  assert.match(await p.sh('one', 'cat f; ls -l l'), /kept/);
  assert.doesNotMatch(await p.sh('two', 'ls'), /f/);
  await p.sh('plain', 'echo x > f');
  assert.doesNotMatch(await p.sh('plain', 'ls'), /f/);
  assert.equal(statSync(p.at('state/workspaces/one')).mode & 0o777, 0o700);
  assert.match(await p.cli('mcp', 'remove', 'one'), /removed/);
  assert.deepEqual(readdirSync(p.at('state/workspaces')), ['two']);
  assert.ok(existsSync('/etc/passwd'));
});

test('refused with the reason', { skip }, async () => {
  const p = place((top) => Object.fromEntries([
    ['state', `${top}/state`], ['above', `${top}:/x`], ['config', `${top}/c.json`], ['none', `${top}/none`],
    ['link', `${top}/link`], ['home', '~'], ['ssh', '~/.ssh'], ['proc', '/proc/sys:/x'], ['run', '/run:/x'],
    ['sock', '/var/run/docker.sock:/x'], ['usual', '~/.local/state/mcp-orchestrator:/x'], ['roots', `${top}/docs:rw`], ['etc', '/etc:/x'],
  ].map(([name, mount]) => [name, boxed({ mounts: [mount] })])));
  symlinkSync(p.at('docs'), p.at('link'));
  mkdirSync(p.at('me/.ssh'));
  for (const [name, why] of Object.entries({
    state: /no box may see .*state/, above: /no box may see/, config: /c\.json \(a file of this program\)/,
    none: /does not exist/, link: /is a link; if you mean .*\/docs, name that/, home: /whole home|no box may see/,
    ssh: /where people keep keys/, proc: /no box may see \/proc/, run: /no box may see \/run/,
    sock: /is a link|no box may see/, usual: /no box may see .*\.local\/state/, roots: /the folder is root's/, etc: /no box may see \/etc\/shadow/,
  }))
    assert.match(await p.sh(name, 'ls /x'), why, name);
});

test('mistakes in the configuration are found when it is read', { skip }, async () => {
  const p = place((top) => ({
    a: boxed({ mounts: ['docs'] }), b: boxed({ mounts: [`${top}/docs/../x`] }), c: boxed({ mounts: [`${top}:/x:wr`] }),
    d: { command: 'x', mounts: [`${top}/docs`] }, e: { command: 'x', workspace: true },
    f: boxed({ mounts: Array.from({ length: 40 }, (_, i) => `${top}/docs:/d${i}`) }),
  }));
  const said = await p.cli('config', 'check');
  for (const why of [/'mcpServers.a.mounts': 'docs' is not an absolute path/, /b.mounts': .* not a plain path/,
    /c.mounts': .*HOST\[:BOX\]\[:ro\|rw\]/, /'mcpServers.d.mounts' is only for servers in a box/,
    /'mcpServers.e.workspace' is only for servers in a box/, /f.mounts': more than 31/])
    assert.match(said, why);
});

test('the audit log has the mounts of each box, also refused ones', { skip }, async () => {
  const p = place((top) => ({ good: boxed({ mounts: [`${top}/docs`], workspace: true }), bad: boxed({ mounts: [`${top}/state:/x`] }) }));
  const child = run(BIN, ['--config', p.config, 'gateway'], { env: { ...ENV, HOME: p.at('me') } });
  const say = (m) => child.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...m })}\n`);
  const listed = new Promise((done) => child.child.stdout.on('data', (b) => String(b).includes('"id":2') && done()));
  say({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } } });
  say({ method: 'notifications/initialized' });
  say({ id: 2, method: 'tools/list' });
  await listed;
  child.child.stdin.end();
  await child.catch(() => {});
  const rows = p.audit();
  assert.deepEqual(rows.find((r) => r.server === 'good'), { kind: 'mounts', server: 'good',
    mounts: [`${p.top}/docs:${p.top}/docs:ro`], workspace: p.at('state/workspaces/good'), outcome: 'ok' });
  const bad = rows.find((r) => r.server === 'bad');
  assert.equal(bad.outcome, 'denied');
  assert.match(bad.reason, /no box may see/);
});

test('the boxes of sessions', { skip }, async (t) => {
  const top = mkdtempSync(join(tmpdir(), 'mo-mounts-'));
  tops.push(top);
  writeFileSync(join(top, 'file'), 'read me\n');
  const home = new Home({ sandbox: { driver: 'native', warm: 0, memoryMb: 64, mounts: [`${top}:/docs`] } });
  t.after(() => home.removeAll());
  assert.equal(home.run('box', 'run', '--', 'cat', '/docs/file'), 'read me\n');
});

test('a server that gave up root mounts what its user may see', { skip }, async (t) => {
  const p = place((top) => ({
    tools: boxed({ mounts: [`${top}/data:/data:rw`, `${top}/docs:/docs`], workspace: true }),
    denied: boxed({ mounts: [`${top}/docs:/docs:rw`] }),
    behind: boxed({ mounts: [`${top}/closed/in:/in`] }),
  }), { owner: USER });
  mkdirSync(p.at('closed/in'), { recursive: true });
  chmodSync(p.at('closed'), 0o700);
  const server = await Server.start(['--config', p.config], { env: { ...ENV, HOME: p.at('me') }, dir: p.top });
  t.after(() => {
    server.signal('SIGTERM'); // its boxes still run
    return server.stop();
  });
  const ask = async (method, params) => {
    const r = await fetch(`http://127.0.0.1:${server.port}/mcp`, { method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18', ...ask.session },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) });
    if (r.headers.get('mcp-session-id')) ask.session = { 'mcp-session-id': r.headers.get('mcp-session-id') };
    return r.text();
  };
  await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } });
  const list = await ask('tools/list', {});
  assert.match(list, /may not read and write it/);
  assert.match(list, /mount .*closed\/in: it cannot be opened: Permission denied/);
  const said = await ask('tools/call', { name: 'execute_command',
    arguments: { command: 'cat /docs/file; echo x > /data/new; echo kept > f; echo no > /docs/new; id -u' } });
  assert.match(said, /read me/);
  assert.equal(statSync(p.at('data/new')).uid, USER);
  assert.equal(statSync(p.at('state/workspaces/tools/f')).uid, USER);
  assert.deepEqual(readdirSync(p.at('docs')), ['file']);
});

test('removed on the page: the workspace goes, too; a changed mount restarts the server', { skip }, async (t) => {
  const p = place((top) => ({ tools: boxed({ mounts: [`${top}/docs:/docs`], workspace: true }) }));
  const server = await Server.start(['--config', p.config], { env: { ...ENV, HOME: p.at('me') }, dir: p.top, house: true });
  t.after(() => {
    server.signal('SIGTERM');
    return server.stop();
  });
  const api = async (method, path, body) => (await fetch(`http://127.0.0.1:${server.port}/api/mcp${path}`,
    { method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body) })).json();
  const shown = async () => (await api('GET', '/tools')).mounts;
  assert.deepEqual(await shown(), [{ host: p.at('docs'), box: '/docs', mode: 'ro' }]);
  assert.ok((await api('GET', '/tools/tools')).tools.length > 3, 'it runs');
  assert.equal((await api('PATCH', '/tools', { mounts: [`${p.top}/data:/docs:rw`] })).saved, true);
  await until(async () => (await shown())[0].mode === 'rw', 'the new mount');
  await until(async () => {
    await api('GET', '/tools/tools');
    return p.audit().some((r) => r.mounts[0].endsWith(':/docs:rw'));
  }, 'a box with it');
  assert.ok(existsSync(p.at('state/workspaces/tools')));
  assert.match(JSON.stringify(await api('DELETE', '/tools')), /removed/);
  assert.equal(existsSync(p.at('state/workspaces/tools')), false);
});

test('commands of the toolbox cannot hide a setuid bit', { skip: skip || !existsSync('/usr/bin/python3') }, async () => {
  const p = place((top) => ({ tools: boxed({ mounts: [`${top}/data:/data:rw`] }) }));
  const script = 'import ctypes, os, struct; l = ctypes.CDLL(None, use_errno=True); '
    + 'print(l.syscall(437, -100, b"/data/x", struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0), 24), ctypes.get_errno())';
  assert.match(await p.sh('tools', `python3 -c '${script}'; touch /data/y; chmod u+s /data/y`), /-1 38[^]*not permitted/);
  assert.deepEqual(readdirSync(p.at('data')), ['y']);
  assert.equal(statSync(p.at('data/y')).mode & 0o6000, 0);
});

// --- docker --------------------------------------------------------------------

test('docker boxes: bind mounts of a local engine', { skip: noEngine }, async (t) => {
  const engine = await dockerd();
  t.after(() => engine.cleanUp());
  const socket = engine.host.replace('unix://', '');
  chmodSync(socket, 0o666);
  chmodSync(dirname(socket), 0o711);
  const servers = (top) => ({
    ro: boxed({ sandbox: 'docker', mounts: [`${top}/docs:/docs`] }),
    rw: boxed({ sandbox: 'docker', mounts: [`${top}/data:/data:rw`], workspace: true }),
  });
  const sandbox = { dockerHost: engine.host };
  const root = place(servers, { sandbox });
  assert.match(await root.sh('ro', 'cat /docs/file; echo x > /docs/new; id -u'), /read me\n2\d{4}\n[^]*Read-only file system/);
  assert.match(await root.sh('rw', 'true'), /this program is root, so its docker boxes cannot write/);

  const user = place(servers, { sandbox, owner: USER });
  assert.match(await user.sh('ro', 'cat /docs/file; echo x > /docs/new; id -u'), /read me\n19994\n[^]*Read-only file system/);
  assert.doesNotMatch(await user.sh('rw', 'echo y > /data/new; echo kept > f'), /FAILED/);
  assert.match(await user.sh('rw', 'cat f'), /kept/);
  assert.equal(statSync(user.at('data/new')).uid, USER);
  assert.deepEqual(readdirSync(user.at('docs')), ['file']);
});

test('docker boxes of another machine have no mounts', { skip: noEngine }, async (t) => {
  const engine = await dockerd();
  t.after(() => engine.cleanUp());
  const { createServer, connect } = await import('node:net');
  const door = createServer((s) => s.pipe(connect(engine.host.replace('unix://', ''))).on('error', () => s.destroy()).pipe(s).on('error', () => {}));
  await new Promise((done) => door.listen(0, '127.0.0.1', done));
  t.after(() => door.close());
  const p = place((top) => ({ ro: boxed({ sandbox: 'docker', mounts: [`${top}/docs:/docs`] }) }),
    { sandbox: { dockerHost: `tcp://127.0.0.1:${door.address().port}` } });
  assert.match(await p.sh('ro', 'true'), /mounts: the engine at tcp:.* is not on this machine/);
});
