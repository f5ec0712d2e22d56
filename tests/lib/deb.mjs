// The Debian package of one architecture in a fresh system: installed by apt,
// started by the command line of its unit, purged.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { dockerd } from './dockerd.mjs';
import { files, freshSystem, good, machine, released, run, started } from './package.mjs';

// Not looked at after the purge: mounts, and what dpkg, apt and the scripts of
// other packages leave. /etc is looked through by name.
const SKIP = ['run', 'proc', 'sys', 'dev', 'tmp', 'var/cache', 'var/log', 'var/lib/dpkg',
  'var/lib/apt', 'etc', 'usr/local/share/ca-certificates'];

/** Every path that a package of the system has installed. */
async function owned(root) {
  const info = join(root, 'var/lib/dpkg/info');
  const paths = new Set();
  for (const list of (await readdir(info)).filter((f) => f.endsWith('.list')))
    for (const path of (await readFile(join(info, list), 'utf8')).split('\n'))
      paths.add(path).add(path.replace(/^\/(bin|sbin|lib|lib64)\//, '/usr/$1/'));
  return paths;
}

/** Starts ExecStart of the unit as its user; resolves to {child, url}. */
async function startUnit(inside, unit, args) {
  const values = (key) => [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map((m) => m[1]);
  for (const d of values('StateDirectory')[0].split(' ')) {
    await good(...inside(['mkdir', '-p', '-m', '700', `/var/lib/${d}`]));
    await good(...inside(['chown', 'mcp-orchestrator:', `/var/lib/${d}`]));
  }
  const command = ['env', '-i', 'PATH=/usr/bin:/bin', ...values('Environment'),
    ...values('ExecStart')[0].split(' '), ...args];
  return started(inside(command, values('User')[0]));
}

/** Seconds since the moment that performance.now() gave. */
const since = (began) => ((performance.now() - began) / 1000).toFixed(1);

export function debTests(arch) {
  const real = arch === machine;
  let dir, root, inside, before_, unit, began, engine;

  const chat = (env = [], driver = []) => good(...inside(['env', '-i', 'PATH=/usr/bin:/bin', 'HOME=/root', ...env,
    'mcp-orchestrator', 'chat', '--yes', ...driver, '--provider', 'demo', '--json', 'list the files']));

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mo-deb-'));
    root = join(dir, 'root');
    inside = await freshSystem(root, arch);
    // By emulation this takes minutes; there all that it needs is installed.
    if (real) await good(...inside(['apt-get', '-q', 'update']));
    before_ = new Set(await files(root, ...SKIP));
    await good('cp', [await released(new RegExp(`_${arch}\\.deb$`)), join(root, 'tmp', 'p.deb')]);
  });
  after(async () => {
    engine?.cleanUp();
    await rm(dir, { recursive: true, force: true });
  });

  test('apt installs it and what it needs', async () => {
    began = performance.now();
    await good(...inside(['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q', '-y', 'install', '/tmp/p.deb']));
    console.log(`measured: apt install takes ${since(began)} s`);
    unit = await readFile(join(root, 'lib/systemd/system/mcp-orchestrator.service'), 'utf8');
    assert.match(await good(...inside(['mcp-orchestrator', 'version'])), /^mcp-orch/);
  });

  test('the service runs as its user, and the page answers', async () => {
    const { child, url } = await startUnit(inside, unit, ['--port', '0', '--provider', 'demo']);
    const page = await fetch(url);
    assert.match(await page.text(), /<html/i);
    console.log(`measured: from apt install to the page ${since(began)} s`);
    // Root's commands find the running server and become its user.
    assert.match(await good(...inside(['mcp-orchestrator', 'open', '--config',
      '/etc/mcp-orchestrator/mcp-orchestrator.json'])), /token=/);
    child.kill('SIGTERM');
    assert.equal((await once(child, 'exit'))[0], 0);
  });

  if (real) {
    // root, because no service manager here gives the user a cgroup of its own
    test('a tool runs in a box', async () => {
      assert.match(await chat(), /"tool/);
      console.log(`measured: from apt install to a conversation with a boxed tool ${since(began)} s`);
    });
  } else {
    // The emulator has no seccomp and no namespaces, so no native box starts. A
    // box of this machine's engine has both, and the emulated toolbox in it.
    test('a tool runs in a box of an engine', async () => {
      engine = await dockerd({ far: true });
      assert.match(await chat([`DOCKER_HOST=${engine.far}`], ['--sandbox', 'docker']), /"tool/);
    });
  }

  test('its units are valid', async () => {
    const r = await run('systemd-analyze', ['verify', '--man=no', `--root=${root}`,
      'mcp-orchestrator.service', 'mcp-orchestrator.socket']);
    assert.equal(r.err.split('\n').filter((l) => /mcp-orchestrator/.test(l)).join('\n'), '');
  });

  test('a changed configuration survives removal; purge leaves nothing', async () => {
    const config = join(root, 'etc/mcp-orchestrator/mcp-orchestrator.json');
    await writeFile(config, '{"mcpServers":{}}\n');
    await good(...inside(['apt-get', '-q', '-y', 'remove', 'mcp-orchestrator']));
    assert.equal(await readFile(config, 'utf8'), '{"mcpServers":{}}\n');
    await good(...inside(['apt-get', '-q', '-y', 'purge', 'mcp-orchestrator']));
    const others = await owned(root);
    const left = (await files(root, ...SKIP)).filter((f) =>
      !before_.has(f) && !others.has(f.slice(root.length)));
    assert.deepEqual(left, []);
    assert.equal((await run('find', [join(root, 'etc'), '-name', '*mcp-orch*'])).out, '');
  });
}
