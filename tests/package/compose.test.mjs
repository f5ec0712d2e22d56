// deploy/compose as people start it: two servers from the image, Redis and
// haproxy (this machine's programs as images), one conversation that outlives
// the server that had it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Tab } from '../it/talk_kit.mjs';
import { until } from '../it/server.mjs';
import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { hostProgram, image } from '../lib/image.mjs';
import { good, machine, released, run, top } from '../lib/package.mjs';

const SERVERS = ['server-1', 'server-2'];

/** An image of a program of this machine, by the name that compose calls. */
async function load(docker, tag, program) {
  const path = execFileSync('which', [program], { encoding: 'utf8' }).trim();
  const name = { path: `bin/${program}`, type: '2', link: path };
  const parts = [{ path: 'data/', type: '5' }, { path: 'tmp/', type: '5', mode: 0o777 }, ...hostProgram(path)];
  const entries = path === `/bin/${program}` ? parts : [...parts, name];
  const file = join(await mkdtemp(join(tmpdir(), 'mo-image-')), 'image.tar');
  await writeFile(file, image(tag, [entries], { Env: ['PATH=/bin:/usr/bin:/usr/sbin'] }));
  await docker('load', '-i', file);
  await rm(join(file, '..'), { recursive: true });
}

describe('two servers by compose', { skip: noDocker }, () => {
  let engine, docker, compose, dir, env, token, house, tab;
  const boxes = async () => (await docker('ps', '-q', '--no-trunc', '--filter', 'name=mo-box-')).split('\n').filter(Boolean);
  /** The session's box, by its container. */
  async function boxOf(name) {
    const { box } = JSON.parse(await compose('exec', '-T', name, 'mcp-orchestrator', 'sessions', 'show', '--json', tab.session));
    const id = (await boxes()).find((c) => box.includes(c));
    assert.ok(id, `${box} is not a container`);
    return id;
  }
  /** A tab of the conversation, at whichever server the balancer has. */
  async function open() {
    let next;
    await until(async () => {
      next = new Tab(house, { session: tab.session });
      return next.ready().catch(() => { next.close(); });
    }, 'a server with the conversation', 60_000);
    return next;
  }
  async function listFiles(who) {
    const cards = who.count('tool:approval_required');
    await who.say('list the files');
    const [card] = await who.event('tool:approval_required', cards + 1);
    await who.decide(card, true);
    const [output] = await who.event('tool:output');
    assert.ok(output);
    await who.event('agent:response');
  }
  async function start() {
    await good('./start', [], { cwd: dir, env });
    const port = Number((await compose('port', 'balancer', '3000')).split(':')[1]);
    house = { server: { port }, sessions: new Set() };
    await until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))?.status === 200,
      'a server behind the balancer', 60_000);
    for (const name of SERVERS)
      await until(async () => (await compose('exec', '-T', name, 'mcp-orchestrator', 'health')) !== '', name);
    token = /^MO_TOKEN=(.+)$/m.exec(await readFile(join(dir, '.env'), 'utf8'))[1];
    house.headers = { authorization: `Bearer ${token}` };
  }

  before(async () => {
    engine = await dockerd();
    docker = (...args) => good('docker', ['-H', engine.host, ...args]);
    await docker('load', '-i', await released(new RegExp(`image-${machine}\\.tar$`)));
    await load(docker, 'test-redis:1', 'redis-server');
    await load(docker, 'test-haproxy:1', 'haproxy');
    dir = await mkdtemp(join(tmpdir(), 'mo-compose-'));
    await cp(join(top, 'deploy/compose'), dir, { recursive: true });
    env = {
      ...process.env, DOCKER_HOST: engine.host, DOCKER_SOCKET: engine.sock, MO_LISTEN: '127.0.0.1:0',
      REDIS_IMAGE: 'test-redis:1', HAPROXY_IMAGE: 'test-haproxy:1', COMPOSE_PROJECT_NAME: 'mo-compose',
    };
    compose = (...args) => good('docker-compose', args, { cwd: dir, env });
  });
  after(async () => {
    if (dir) await run('docker-compose', ['down', '-v', '-t', '20'], { cwd: dir, env });
    engine?.cleanUp();
    if (dir) await rm(dir, { recursive: true });
  });

  test('one command starts it, and keeps its secrets to the user', async () => {
    await start();
    assert.equal((await stat(join(dir, '.env'))).mode & 0o777, 0o600);
    assert.match(await compose('exec', '-T', 'server-1', 'mcp-orchestrator', 'doctor'), / 0 failed/);
  });

  test('a second start keeps them', async () => {
    const { err } = await run('./start', [], { cwd: dir, env });
    assert.match(err, new RegExp(`token=${token}`));
    assert.equal((await compose('ps', '-q')).split('\n').filter(Boolean).length, 4);
  });

  test('a stranger gets nothing', async () => {
    const answer = await fetch(`http://127.0.0.1:${house.server.port}/api/sessions`);
    assert.equal(answer.status, 401);
  });

  test('a tool runs in a box of this engine, once approved', async () => {
    tab = new Tab(house, { model: 'demo' });
    await tab.ready();
    await listFiles(tab);
    await boxOf('server-1');
  });

  test('the conversation and its box outlive their server', async () => {
    const id = await boxOf('server-1');
    const [holder, other] = (await Promise.all(SERVERS.map(async (name) =>
      ({ name, holds: (await compose('logs', '--no-color', name)).includes(tab.session) }))))
      .sort((a, b) => b.holds - a.holds);
    assert.ok(holder.holds && !other.holds, 'one server tells of the session');
    await docker('kill', '-s', 'KILL', (await compose('ps', '-q', holder.name)).trim());
    tab.close();
    const next = await open();
    assert.match(JSON.stringify((await next.ready()).history), /list the files/);
    await listFiles(next);
    assert.equal(await boxOf(other.name), id);
    next.close();
  });

  test('down and start again: the conversation has its box, and no other is left over', async () => {
    await compose('up', '-d'); // the one that was killed, too
    const id = await boxOf('server-1');
    await compose('down', '-t', '20');
    await start();
    const next = await open();
    await listFiles(next);
    assert.equal(await boxOf('server-1'), id);
    next.close();
    const { sandbox } = JSON.parse(await readFile(join(dir, 'mcp-orchestrator.json'), 'utf8'));
    await until(async () => (await boxes()).length === 1 + 2 * sandbox.warm, 'the boxes of dead servers are removed', 60_000);
  });

  test('down removes all but the boxes', async () => {
    await compose('down', '-v', '-t', '20');
    const left = (await docker('ps', '-a', '--format', '{{.Names}}')).split('\n').filter(Boolean);
    assert.deepEqual(left.filter((name) => !name.startsWith('mo-box-')), []);
  });
});
