// flaky.mjs - a TCP proxy that does what networks do. Its ways can be changed
// while connections are open:
//
//   latency  ms that every piece from the server is held back
//   slice    bytes: pieces from the server are cut so small, each written alone
//   limit    bytes of the server after which the connection is reset (RST)
//   stall    true: nothing passes any more, in either direction
//   refuse   true: new connections are reset at once
//
// reset() breaks all connections with RST; target can be pointed elsewhere.
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export async function flaky(target) {
  const pairs = new Set();
  const ways = { latency: 0, slice: 0, limit: 0, stall: false, refuse: false };

  const server = net.createServer({ noDelay: true }, (client) => {
    if (ways.refuse) {
      client.on('error', () => {});
      client.resetAndDestroy();
      return;
    }
    proxy.connections++;
    const upstream = net.connect({ ...proxy.target, noDelay: true });
    const pair = { client, upstream, passed: 0, queue: Promise.resolve() };
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const s of [client, upstream]) {
      s.on('error', end);
      s.on('close', end);
    }
    client.on('data', async (data) => {
      while (ways.stall && !client.destroyed) await sleep(10);
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      pair.queue = pair.queue.then(() => back(pair, data)).catch(() => {});
    });
  });

  async function back(pair, data) {
    while (ways.stall && !pair.client.destroyed) await sleep(10);
    if (ways.latency) await sleep(ways.latency);
    const step = ways.slice || data.length;
    for (let i = 0; i < data.length; i += step) {
      let piece = data.subarray(i, i + step);
      const room = ways.limit ? ways.limit - pair.passed : Infinity;
      if (piece.length >= room) {
        piece = piece.subarray(0, Math.max(room, 0));
        pair.client.write(piece, () => pair.client.resetAndDestroy());
        return;
      }
      pair.passed += piece.length;
      await new Promise((done) => pair.client.write(piece, done));
      if (ways.slice) await new Promise(setImmediate);
    }
  }

  const proxy = {
    target,
    ways,
    connections: 0,
    reset() {
      for (const { client } of pairs) client.resetAndDestroy();
    },
    async close() {
      for (const { client, upstream } of pairs) {
        client.destroy();
        upstream.destroy();
      }
      await new Promise((done) => server.close(done));
    },
  };
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  proxy.port = server.address().port;
  return proxy;
}
