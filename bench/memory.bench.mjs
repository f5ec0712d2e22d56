// memory.bench.mjs - what an idle Socket.IO connection (websocket transport)
// keeps in memory: ours and npm's socket.io. Each figure is of a fresh server.
import { load, node, program, say, start } from './kit.mjs';

const GOAL_KB = 8;
const PARTIES = {
  ours: [program, 'serve', '--no-auth', '--port', '0', '--test-echo'],
  'socket.io': node('peer_sio.mjs', '--expose-gc'),
};
const kb = (bytes) => (bytes / 1024).toFixed(1);
const mib = (bytes) => (bytes / 1048576).toFixed(1);

for (const connections of [1000, 5000]) {
  const each = {};
  for (const [name, command] of Object.entries(PARTIES)) {
    const server = await start(command);
    const m = await load('sio', server, connections);
    await server.stop();
    each[name] = (m.rss - m.rss0) / connections;
    say(`socket.io idle, ${connections} connections: ${name} ` +
      `${kb(each[name])} KB each (RSS ${mib(m.rss0)} -> ${mib(m.rss)} MiB)`);
  }
  say(`socket.io idle, ${connections} connections: ours ${kb(each.ours)} KB ` +
    `(goal <= ${GOAL_KB}), ratio to npm socket.io ` +
    `${(each.ours / each['socket.io']).toFixed(2)}`);
}
