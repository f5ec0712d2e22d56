// A2: nothing of the network, of any family. The listeners on the host are
// the judges: nobody came.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';

import { eachDriver } from '../lib/boxes.mjs';

const seen = [];

async function listen(...where) {
  const s = createServer((c) => {
    seen.push(where);
    c.destroy();
  });
  s.listen(...where);
  await once(s, 'listening');
  return s;
}

function addresses() {
  return Object.values(networkInterfaces())
    .flat()
    .filter((a) => a.family === 'IPv4')
    .map((a) => a.address);
}

eachDriver('A2: nobody outside is reached', async (d) => {
  seen.length = 0;
  const name = `mo-a2-${process.pid}-${d.name}`;
  const open = [await listen(0, '127.0.0.1'), await listen(0, '0.0.0.0')];
  const targets = [
    'inet:169.254.169.254|80',
    'inet:1.1.1.1|53',
    'udp:1.1.1.1|53',
    'vsock:2|1024',
    'vsock:1|1024',
    `unix:@${name}`,
    'unix:/run/docker.sock',
    'unix:/var/run/docker.sock',
  ];
  targets.push(`inet:127.0.0.1|${open[0].address().port}`);
  for (const a of addresses()) targets.push(`inet:${a}|${open[1].address().port}`);
  const udp = createSocket('udp4', (m) => seen.push(['udp', String(m)]));
  udp.bind(0, '127.0.0.1');
  await once(udp, 'listening');
  targets.push(`udp:127.0.0.1|${udp.address().port}`);
  try {
    open.push(await listen(0, '::1'));
    targets.push(`inet6:::1|${open.at(-1).address().port}`);
  } catch {
    targets.push('inet6:::1|80'); // no IPv6 on this host: nothing to reach
  }
  open.push(await listen(`\0${name}`));
  try {
    const { out } = await d.run(['connect', ...targets]);
    const lines = out.trim().split('\n');
    assert.equal(lines.length, targets.length);
    for (const l of lines) assert.doesNotMatch(l, /ALLOWED/);
  } finally {
    for (const s of open) s.close();
    udp.close();
  }
  assert.deepEqual(seen, []);
});
