// haproxy in front of several servers: each connection's next request goes to the
// next one, none is remembered.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { until } from './redis.mjs';

const PROGRAM = '/usr/sbin/haproxy';
export const missing = existsSync(PROGRAM) ? false : 'haproxy';

const configuration = (port, servers) => `
global
    maxconn 4096
defaults
    mode http
    timeout connect 2s
    timeout client 10m
    timeout server 10m
    timeout tunnel 10m
    option redispatch
    retries 3
    retry-on conn-failure
frontend front
    bind 127.0.0.1:${port}
    default_backend back
backend back
    balance roundrobin
    option httpchk GET /readyz
    http-check expect status 200
${servers.map((p, i) => `    server s${i} 127.0.0.1:${p} check inter 200ms fall 1 rise 1`).join('\n')}
`;

export async function haproxy(port, servers) {
  const dir = mkdtempSync(join(tmpdir(), 'mo-haproxy-'));
  writeFileSync(join(dir, 'haproxy.cfg'), configuration(port, servers));
  const child = spawn(PROGRAM, ['-db', '-f', join(dir, 'haproxy.cfg')], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.on('data', (d) => (log += d));
  const url = `http://127.0.0.1:${port}`;
  await until('haproxy has a server', async () => {
    if (child.exitCode !== null) throw new Error(`haproxy ended: ${log}`);
    return (await fetch(`${url}/readyz`).catch(() => undefined))?.status === 200;
  });
  return {
    url,
    async stop() {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
