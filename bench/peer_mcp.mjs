// peer_mcp.mjs - server-everything over Streamable HTTP as the peer. It takes
// its port from the environment and tells every request to the console; here
// the port is any, is printed when it listens, and the telling costs nothing.
import { once } from 'node:events';
import net from 'node:net';

const probe = net.createServer().listen(0, '127.0.0.1');
await once(probe, 'listening');
const { port } = probe.address();
probe.close();
await once(probe, 'close');

const { log } = console;
console.log = () => {};
console.error = () => {};
process.env.PORT = String(port);
process.argv[2] = 'streamableHttp';
await import(
  '../tests/node_modules/@modelcontextprotocol/server-everything/dist/index.js'
);
for (let open = false; !open; ) {
  const socket = net.connect(port, '127.0.0.1');
  open = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 20));
}
log(port);
