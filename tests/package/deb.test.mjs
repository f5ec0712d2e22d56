// The Debian package in a fresh system: installed, started by the command line of
// its unit, purged.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';

import { files, good, released, run } from '../lib/package.mjs';

let dir, deb;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-deb-'));
  deb = await released(/\.deb$/);
});
after(() => rm(dir, { recursive: true, force: true }));

describe('the Debian package', () => {
  let root, before_, unit;
  const skip = ['run', 'proc', 'sys', 'dev', 'tmp', 'var/cache', 'var/log', 'var/lib/dpkg', 'etc'];
  // A mount namespace whose root it is: nothing is left mounted, and a program
  // may make namespaces of its own, which it may not below a chroot.
  const enter = `mount --rbind "$0" "$0" && cd "$0" && mount -t proc proc proc &&
    mount --rbind /dev dev && mount --rbind /sys sys && mkdir -p run/old &&
    pivot_root . run/old && umount -l /run/old && u=$1 && shift &&
    exec chroot --userspec="$u:$u" / "$@"`;
  const inside = (command, user = 'root') => ['unshare', ['-m', 'sh', '-c', enter, root, user, ...command]];

  before(async () => {
    root = join(dir, 'root');
    let sources = '';
    for (const f of ['/etc/apt/sources.list', ...(await readdir('/etc/apt/sources.list.d'))
      .map((n) => `/etc/apt/sources.list.d/${n}`)])
      sources += `${await readFile(f, 'utf8').catch(() => '')}\n`;
    await good('mmdebstrap', ['--variant=minbase', '--include=adduser,ca-certificates,procps,systemd,' +
      'libcurl4,libsodium23,libsqlite3-0,libssl3,libuv1', 'bookworm', root, '-'],
    { input: sources });
    before_ = await files(root, ...skip);
    await good('cp', [deb, join(root, 'tmp', 'p.deb')]);
    await good(...inside(['dpkg', '-i', '/tmp/p.deb']));
    unit = await readFile(join(root, 'lib/systemd/system/mcp-orchestrator.service'), 'utf8');
  });

  const values = (key) => [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map((m) => m[1]);

  test('its units are valid', async () => {
    const r = await run('systemd-analyze', ['verify', '--man=no', `--root=${root}`,
      'mcp-orchestrator.service', 'mcp-orchestrator.socket']);
    assert.equal(r.err.split('\n').filter((l) => /mcp-orchestrator/.test(l)).join('\n'), '');
  });

  test('the service runs as its user, and the page answers', async () => {
    for (const d of values('StateDirectory')[0].split(' ')) {
      await good(...inside(['mkdir', '-p', '-m', '700', `/var/lib/${d}`]));
      await good(...inside(['chown', 'mcp-orchestrator:', `/var/lib/${d}`]));
    }
    const user = values('User')[0];
    const command = ['env', '-i', 'PATH=/usr/bin:/bin', ...values('Environment'),
      ...values('ExecStart')[0].split(' ')];
    const child = spawn(...inside([...command, '--port', '0', '--provider', 'demo'], user),
      { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    const url = /http:\/\/localhost:\d+/.exec(line)[0];
    const page = await fetch(url);
    assert.match(await page.text(), /<html/i);
    // Root's commands find the running server and become its user.
    assert.match(await good(...inside(['mcp-orchestrator', 'open', '--config',
      '/etc/mcp-orchestrator/mcp-orchestrator.json'])), /token=/);
    child.kill('SIGTERM');
    assert.equal((await once(child, 'exit'))[0], 0);
  });

  // root, because no service manager here gives the user a cgroup of its own
  test('a tool runs in a box', async () => {
    const says = await good(...inside(['env', '-i', 'PATH=/usr/bin:/bin', 'HOME=/root',
      'mcp-orchestrator', 'chat', '--yes', '--provider', 'demo', '--json', 'list the files']));
    assert.match(says, /"tool/);
  });

  test('a changed configuration survives removal; purge leaves nothing', async () => {
    const config = join(root, 'etc/mcp-orchestrator/mcp-orchestrator.json');
    await writeFile(config, '{"mcpServers":{}}\n');
    await good(...inside(['dpkg', '-r', 'mcp-orchestrator']));
    assert.equal(await readFile(config, 'utf8'), '{"mcpServers":{}}\n');
    await good(...inside(['dpkg', '-P', 'mcp-orchestrator']));
    assert.deepEqual(await files(root, ...skip), before_);
    assert.equal((await run('find', [join(root, 'etc'), '-name', '*mcp-orch*'])).out, '');
  });
});
