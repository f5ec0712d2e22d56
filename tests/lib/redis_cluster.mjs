// A Redis Cluster of three masters, each with a replica.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

import { redis, until } from './redis.mjs';

/** nodes; says(node): its replication; whole(): all six are there and agree;
 *  url: names three of them; failOver(node): a master dies, its replica takes
 *  over, and it comes back as a replica. */
export async function six(t) {
  const nodes = [];
  while (nodes.length < 6) {
    const node = await redis({ args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', '5000', '--repl-diskless-sync-delay', '0'] });
    t.after(() => node.stop());
    nodes.push(node);
  }
  const made = spawnSync('redis-cli', ['--cluster', 'create', ...nodes.map((n) => `127.0.0.1:${n.port}`), '--cluster-replicas', '1', '--cluster-yes'], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stdout);
  const says = (n) => n.cli('INFO', 'replication');
  const whole = () => nodes.every((n) => /cluster_state:ok/.test(n.cli('CLUSTER', 'INFO')) &&
    (/role:master/.test(says(n)) ? /connected_slaves:1/ : /master_link_status:up/).test(says(n)));
  await until('the cluster is whole', whole);
  const failOver = async (dead) => {
    const next = nodes.find((n) => says(n).includes(`master_port:${dead.port}`));
    await dead.kill();
    const late = Date.now() + 20_000; // an election that gets no majority is tried again much later
    await until('its replica takes over', () => {
      if (Date.now() > late) next.cli('CLUSTER', 'FAILOVER', 'TAKEOVER');
      return /role:master/.test(says(next));
    });
    await dead.start(); // until then the new master has no replica, and refuses
    await until('it is a replica now, and has all', () => /role:slave/.test(says(dead)) && whole());
  };
  return { nodes, says, whole, failOver, url: `redis://${nodes.slice(0, 3).map((n) => `127.0.0.1:${n.port}`).join(',')}` };
}
