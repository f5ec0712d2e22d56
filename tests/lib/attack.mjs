// A server to attack, and the list of what every attacker tries
// (tests/hostile/h*.test.mjs): page, API, /mcp, Socket.IO, local sockets, files
// of the state directory, /proc. Afterwards: nothing has changed, the audit log
// verifies and has every attempt that reached the server.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { BIN, Server } from '../it/server.mjs';

export const NOBODY = 65534;
export const notRoot = process.getuid() !== 0 && 'needs root, to be somebody else';

/** Run a module as that user; what it printed, parsed. */
export async function as(uid, code) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', `
    process.setgroups([]); process.setgid(${uid}); process.setuid(${uid});
    ${code}`], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '', err = '';
  child.stdout.on('data', (d) => (out += d));
  child.stderr.on('data', (d) => (err += d));
  await new Promise((resolve) => child.on('close', resolve));
  assert.notEqual(out, '', err);
  return JSON.parse(out);
}

// --- the list -----------------------------------------------------------------

const OPEN = ['/healthz', '/readyz', '/health', '/sign-in', '/docs', '/docs/{page}',
  // Without a provider there is nothing behind these; with one: it/oidc, it/access_token, h9.
  '/sign-in/{provider}', '/sign-in/{provider}/callback', '/connections/callback',
  '/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp',
  '/shared/{token}']; // its own token opens it: it/share_links
const { paths } = JSON.parse(readFileSync(new URL('../../data/openapi.json', import.meta.url), 'utf8'));

/** [method, path] of every request that needs a credential. */
export const DOORS = [
  ...Object.entries(paths).filter(([path]) => !OPEN.includes(path)).flatMap(([path, methods]) =>
    Object.keys(methods).map((m) => [m.toUpperCase(), path.replace(/\{\w+\}/g, 'x')])),
  ['POST', '/api/mcp?test=true&dryRun=true'],
  ['POST', '/mcp'], ['GET', '/mcp'], ['DELETE', '/mcp'],
  ['GET', '/socket.io/?EIO=4&transport=polling'], ['POST', '/socket.io/?EIO=4&transport=polling&sid=x'],
  ['GET', '/servers.json'],
];
/** Views of the page: a stranger sees how to sign in. */
export const VIEWS = ['/', '/servers', '/approvals', '/settings', '/s/x'];
export const GUESS = 'a-guess-that-is-long-enough-0123';

/** Headers that somebody without a token may think of. */
export const forged = (port) => ({
  none: {},
  token: { authorization: `Bearer ${GUESS}` },
  'empty token': { authorization: 'Bearer ' },
  basic: { authorization: `Basic ${Buffer.from(`operator:${GUESS}`).toString('base64')}` },
  cookie: { cookie: `mo_${port}=.9999999999.${'0'.repeat(64)}` },
  proxy: { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1', forwarded: 'for=127.0.0.1', 'x-forwarded-user': 'operator' },
});

/** For a process of its own: knock(base, doors, forged, body) tries all doors
 *  with all headers; [[headers, method, path, status]]. */
export const KNOCK = `
async function knock(base, doors, forged, body) {
  const all = [];
  for (const [name, headers] of Object.entries(forged))
    for (const [method, path] of doors) {
      const r = await fetch(base + path, { method, redirect: 'manual',
        headers: { 'content-type': 'application/json', ...headers },
        body: ['POST', 'PATCH', 'PUT'].includes(method) ? body : undefined });
      await r.arrayBuffer();
      all.push([name, method, path, r.status]);
    }
  return all;
}`;

/** The same for a file tree and processes: what worked of reading and writing. */
export const TOUCH = `
const { default: fs } = await import('node:fs');
function touch({ dirs, files, pids }) {
  const got = [];
  const attempt = (name, fn) => { try { fn(); got.push(name); } catch {} };
  for (const f of files) {
    attempt('read ' + f, () => fs.readFileSync(f));
    attempt('append ' + f, () => fs.appendFileSync(f, 'x'));
    attempt('chmod ' + f, () => fs.chmodSync(f, 0o666));
    attempt('link ' + f, () => fs.linkSync(f, '/tmp/mo-link-' + process.pid));
    attempt('replace ' + f, () => fs.writeFileSync(f + '.x', 'x'));
    attempt('remove ' + f, () => fs.unlinkSync(f));
  }
  for (const d of dirs) {
    attempt('list ' + d, () => fs.readdirSync(d));
    attempt('create in ' + d, () => fs.writeFileSync(d + '/new', 'x'));
    attempt('move ' + d, () => fs.renameSync(d, d + '.moved'));
  }
  for (const pid of pids) {
    for (const f of ['environ', 'maps', 'auxv', 'syscall', 'stack', 'pagemap', 'io'])
      attempt(f + ' of ' + pid, () => { if (!fs.readFileSync('/proc/' + pid + '/' + f).length) throw 0; });
    attempt('mem of ' + pid, () => fs.openSync('/proc/' + pid + '/mem', 'r'));
    for (const f of ['root', 'cwd', 'exe', 'fd/0', 'fd/1', 'fd/5', 'ns/mnt'])
      attempt(f + ' of ' + pid, () => fs.readlinkSync('/proc/' + pid + '/' + f));
    attempt('signal ' + pid, () => process.kill(pid, 'SIGTERM'));
  }
  return got;
}`;

// --- the server ---------------------------------------------------------------

export class Target {
  /** config: of its file; args: of serve. */
  static async start(config = {}, { args = ['--provider', 'demo'], env = {} } = {}) {
    const it = new Target();
    it.dir = await mkdtemp(join(tmpdir(), 'mo-target-'));
    await chmod(it.dir, 0o755); // so that only the state directory keeps others out
    it.state = join(it.dir, 'state');
    it.file = join(it.dir, 'mcp-orchestrator.json');
    it.proof = join(tmpdir(), `mo-proof-${process.pid}-${Date.now()}`);
    it.env = { MCP_ORCHESTRATOR_STATE_DIR: it.state, ASAN_OPTIONS: 'detect_leaks=0', ...env };
    await writeFile(it.file, JSON.stringify(config));
    it.server = await Server.start(['--config', it.file, ...args], { dir: it.dir, house: true, auth: true, env: it.env });
    it.token = config.server?.token ?? readFileSync(join(it.state, 'token'), 'utf8').trim();
    it.before = await it.seen();
    return it;
  }

  get url() { return this.server.url; }
  get port() { return this.server.port; }

  /** A body that would run a command, approve a call and add a rule. */
  get body() {
    return JSON.stringify({
      name: 'x', command: '/bin/sh', args: ['-c', `id > ${this.proof}`], approved: true, digest: 'x', title: 'x',
      server: 'x', tool: 'x', action: 'allow', words: 'x', right: true,
      jsonrpc: '2.0', id: 1, method: 'tools/list', params: {},
    });
  }

  async get(path, headers = { authorization: `Bearer ${this.token}` }) {
    return (await fetch(`${this.url}${path}`, { headers })).json();
  }

  /** What an attacker would have changed. */
  async seen() {
    const [{ servers }, { rules }, { sessions }] = [await this.get('/api/mcp'), await this.get('/api/rules'), await this.get('/api/sessions')];
    return { servers: servers.map((s) => s.name), rules, sessions: sessions.map((s) => s.id), file: readFileSync(this.file, 'utf8') };
  }

  /** Everything below the state directory: {dirs, files, sockets}. */
  below() {
    const all = readdirSync(this.state, { recursive: true, withFileTypes: true })
      .map((f) => ({ path: join(f.parentPath ?? f.path, f.name), f }));
    const of = (is) => all.filter(({ f }) => is(f)).map(({ path }) => path);
    return {
      dirs: [this.state, ...of((f) => f.isDirectory())],
      files: of((f) => f.isFile()),
      sockets: of((f) => f.isSocket()),
    };
  }

  command(...args) {
    return promisify(execFile)(BIN, args, { cwd: this.dir, env: { PATH: process.env.PATH, HOME: this.dir, ...this.env } })
      .then(({ stdout }) => ({ code: 0, out: stdout }), (e) => ({ code: e.code, out: e.stdout, err: e.stderr }));
  }

  /** Nothing has changed. Then it ends, which writes all counts; the rows about
   *  access and configuration. */
  async end({ secrets = [] } = {}) {
    assert.ok(this.server.alive, this.server.log);
    assert.deepEqual(await this.seen(), this.before);
    assert.ok(!existsSync(this.proof), 'no command ran');
    this.server.signal('SIGTERM');
    await this.server.stop();
    const { code, out, err } = await this.command('audit', 'verify', '--config', this.file);
    assert.equal(code, 0, out + err);
    const text = readdirSync(this.state).filter((f) => /^audit.*jsonl$/.test(f)).sort()
      .map((f) => readFileSync(join(this.state, f), 'utf8')).join('');
    for (const secret of [this.token, GUESS, ...secrets]) {
      assert.ok(!text.includes(secret.slice(0, 12)), 'no part of a token is in the audit log');
      assert.ok(!this.server.log.includes(secret.slice(0, 12)), 'nor in the log');
    }
    return text.split('\n').slice(0, -1).map((l) => JSON.parse(l).what ?? {}).filter((r) => ['access', 'config'].includes(r.kind));
  }

  async remove() {
    if (this.server?.alive) this.server.signal('SIGTERM');
    await this.server?.stop();
    await rm(this.dir, { recursive: true, force: true, maxRetries: 10 });
    await rm(this.proof, { force: true });
  }
}

/** How many attempts the rows tell of. */
export const attempts = (rows, like) => rows
  .filter((r) => r.outcome === 'refused' && Object.entries(like).every(([k, v]) => r[k] === v))
  .reduce((n, r) => n + r.count, 0);
