// G1: another user of this machine, and any program that can send an HTTP
// request to localhost. Before the token each of them was the operator.
// Fails on 953b0b1e: `POST /api/mcp?test=true`, sent by nobody, ran a command
// as the server's user.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { BIN, Server } from '../it/server.mjs';
import { NOBODY, as, notRoot } from '../lib/attack.mjs';

const execute = promisify(execFile);

let dir, state, server;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-g1-'));
  await chmod(dir, 0o755); // so that only the state directory keeps others out
  state = join(dir, 'state');
  const config = join(dir, 'c.json');
  await writeFile(config, '{"sandbox":{"warm":0}}'); // a box that comes late would be a leak
  server = await Server.start(['--config', config, '--provider', 'demo'], {
    dir, house: true, auth: true,
    env: { MCP_ORCHESTRATOR_STATE_DIR: state, ASAN_OPTIONS: 'detect_leaks=0' },
  });
});
after(async () => {
  await server?.stop();
  await rm(dir, { recursive: true, force: true });
});

const readToken = async () => (await readFile(join(state, 'token'), 'utf8')).trim();

const DOORS = [
  ['POST', '/api/mcp?test=true&dryRun=true'], ['POST', '/api/mcp'], ['POST', '/api/mcp/add'],
  ['POST', '/api/mcp/import'], ['POST', '/mcp'], ['GET', '/mcp'], ['GET', '/api/sessions'],
  ['GET', '/api/approvals'], ['POST', '/api/approvals/x'], ['GET', '/api/rules'], ['POST', '/api/rules'],
  ['GET', '/api/audit'], ['GET', '/api/mcp/snippets'], ['GET', '/metrics'],
  ['GET', '/socket.io/?EIO=4&transport=polling'],
];

test('nobody gets in without the token, and runs nothing', { skip: notRoot }, async (t) => {
  const proof = join(tmpdir(), `mo-g1-${process.pid}`);
  t.after(() => rm(proof, { force: true }));
  const body = JSON.stringify({ name: 'x', command: '/bin/sh', args: ['-c', `id > ${proof}`] });
  const got = await as(NOBODY, `
    const all = [];
    for (const [method, path] of ${JSON.stringify(DOORS)}) {
      const r = await fetch('http://localhost:${server.port}' + path, { method,
        headers: { 'content-type': 'application/json' },
        body: method === 'POST' ? ${JSON.stringify(body)} : undefined });
      all.push([path, r.status]);
    }
    console.log(JSON.stringify(all));`);
  assert.ok(!existsSync(proof), 'no command ran');
  for (const [path, status] of got) assert.equal(status, 401, path);
});

test('with the token it is the same request that works', async () => {
  const headers = { authorization: `Bearer ${await readToken()}` };
  const r = await fetch(`${server.url}/api/sessions`, { headers });
  assert.equal(r.status, 200);
});

test('nobody can read the token or reach a socket', { skip: notRoot }, async () => {
  const run = await readdir(join(state, 'run'));
  const sockets = run.filter((f) => f.endsWith('.sock')).map((f) => join(state, 'run', f));
  assert.ok(sockets.length > 0);
  const got = await as(NOBODY, `
    import { readFileSync, readdirSync } from 'node:fs';
    import net from 'node:net';
    const attempt = (f) => { try { f(); return 'ok'; } catch (e) { return e.code; } };
    const all = [attempt(() => readFileSync('${state}/token')), attempt(() => readdirSync('${state}'))];
    for (const path of ${JSON.stringify(sockets)})
      all.push(await new Promise((done) => {
        const s = net.connect(path, () => { s.destroy(); done('ok'); });
        s.on('error', (e) => done(e.code));
      }));
    console.log(JSON.stringify(all));`);
  assert.deepEqual([...new Set(got)], ['EACCES']);
});

test('the socket itself asks who is there', { skip: notRoot }, async () => {
  // even where its directory was opened up by mistake
  const run = join(state, 'run');
  const [name] = (await readdir(run)).filter((f) => f.startsWith('approvals-'));
  const path = join(run, name);
  const opened = [state, run, path];
  const modes = await Promise.all(opened.map(async (f) => (await stat(f)).mode & 0o777));
  for (const f of opened) await chmod(f, 0o777);
  try {
    const code = `
      import http from 'node:http';
      const get = (path) => new Promise((done) => http.get({ socketPath: '${path}', path }, (r) => {
        r.resume().on('end', () => done(r.statusCode)); }));
      console.log(JSON.stringify([await get('/link'), await get('/api/approvals')]));`;
    assert.deepEqual(await as(NOBODY, code), [403, 403]);
    assert.deepEqual(await as(0, code), [200, 200]);
  } finally {
    for (const [i, f] of opened.entries()) await chmod(f, modes[i]);
  }
});

test('`open` prints the link, to the owner only; it signs in', async () => {
  const env = { PATH: process.env.PATH, HOME: dir, MCP_ORCHESTRATOR_STATE_DIR: state, ASAN_OPTIONS: 'detect_leaks=0' };
  const { stdout } = await execute(BIN, ['open'], { cwd: dir, env });
  const link = stdout.trim();
  assert.ok(link.startsWith(`http://localhost:${server.port}/?token=`), link);
  const r = await fetch(link, { redirect: 'manual' });
  assert.equal(r.status, 303);
  const [cookie] = r.headers.get('set-cookie').split(';');
  const page = await fetch(`${server.url}/`, { headers: { cookie } });
  assert.equal(page.status, 200);
  assert.match(await page.text(), /<div id="app">/);
});

test('the token is in no log, no command line and no environment of a child', async () => {
  const token = await readToken();
  assert.notEqual(token, '');
  assert.ok(!server.log.includes(token));
  for (const pid of (await readdir('/proc')).filter((p) => /^\d+$/.test(p)))
    for (const file of ['cmdline', 'environ']) {
      const text = await readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '');
      assert.ok(!text.includes(token), `${file} of ${pid}`);
    }
});
