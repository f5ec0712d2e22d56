// Real servers of Debian for tests: PostgreSQL and sshd, on a port of 127.0.0.1
// with data and keys of their own.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from './port.mjs';

const NOBODY = 65534; // PostgreSQL does not run as root

/** A child process that has said that it is ready. */
class Daemon {
  constructor(prefix, { uid } = {}) {
    this.dir = mkdtempSync(join(tmpdir(), prefix));
    this.as = uid === undefined ? {} : { uid, gid: uid };
    if (uid !== undefined) chownSync(this.dir, uid, uid);
  }

  run(command, args) {
    execFileSync(command, args, { cwd: this.dir, stdio: ['ignore', 'ignore', 'inherit'], ...this.as });
  }

  async start(command, args, ready) {
    this.child = spawn(command, args, { cwd: this.dir, stdio: ['ignore', 'ignore', 'pipe'], ...this.as });
    this.ended = once(this.child, 'close');
    let said = '';
    await new Promise((resolve, reject) => {
      this.child.on('error', reject);
      this.child.on('close', () => reject(new Error(`${command} has ended: ${said}`)));
      this.child.stderr.on('data', (d) => {
        said = (said + d).slice(-4096);
        if (ready.test(said)) resolve();
      });
    });
    return this;
  }

  async close() {
    if (this.child?.exitCode === null) {
      this.child.kill('SIGINT'); // of PostgreSQL: without waiting for clients
      await this.ended;
    }
    rmSync(this.dir, { recursive: true });
  }
}

const postgresBin = () => join('/usr/lib/postgresql', readdirSync('/usr/lib/postgresql').at(-1), 'bin');

/** PostgreSQL with the superuser `postgres`, who needs no password; TLS with
 *  this certificate. */
export async function postgres(pair) {
  const d = new Daemon('mo-postgres-', process.getuid() === 0 ? { uid: NOBODY } : {});
  const bin = postgresBin();
  d.port = await freePort();
  d.run(join(bin, 'initdb'), ['-D', 'data', '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']);
  for (const [name, text] of [['cert', pair.cert], ['key', pair.key]]) {
    writeFileSync(join(d.dir, name), text, { mode: 0o600 });
    if (d.as.uid !== undefined) chownSync(join(d.dir, name), d.as.uid, d.as.uid);
  }
  return d.start(join(bin, 'postgres'), ['-D', 'data', '-h', '127.0.0.1', '-p', d.port, '-k', '', '-F',
    '-c', 'ssl=on', '-c', `ssl_cert_file=${d.dir}/cert`, '-c', `ssl_key_file=${d.dir}/key`].map(String), /ready to accept/);
}

/** sshd that lets this user in with `key`; `known` is its line in known_hosts
 *  for the host `name`. */
export async function sshd(name) {
  const d = new Daemon('mo-sshd-');
  const keygen = (file) => d.run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
  d.port = await freePort();
  keygen('host');
  keygen('user');
  d.key = readFileSync(join(d.dir, 'user'), 'utf8');
  d.known = `[${name}]:${d.port} ${readFileSync(join(d.dir, 'host.pub'), 'utf8')}`;
  mkdirSync('/run/sshd', { recursive: true });
  writeFileSync(join(d.dir, 'conf'), `ListenAddress 127.0.0.1:${d.port}
HostKey ${d.dir}/host
AuthorizedKeysFile ${d.dir}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
`);
  return d.start('/usr/sbin/sshd', ['-D', '-e', '-f', join(d.dir, 'conf')], /Server listening/);
}
