// Ports for servers that a test starts itself.
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below 32768 the kernel gives a port to nobody who does not ask for it, so one
// that is free stays free until its server listens. 10000 above each is free for
// the bus of a Redis Cluster.
const FIRST = 11_000;
const COUNT = 9_000;

let next = (process.pid * 16) % COUNT; // files that run side by side begin apart

/** A port of 127.0.0.1 that nothing listens on. */
export async function freePort() {
  for (;;) {
    const port = FIRST + next;
    next = (next + 1) % COUNT;
    const probe = createServer();
    try {
      await once(probe.listen(port, '127.0.0.1'), 'listening');
    } catch {
      continue; // somebody is there
    }
    await new Promise((done) => probe.close(done));
    return port;
  }
}
