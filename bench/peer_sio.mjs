// peer_sio.mjs - npm's socket.io as the peer: events come back. Prints its
// port. Garbage is collected twice a second (run with --expose-gc), so that
// its memory is weighed at its best.
import http from 'node:http';
import { Server } from 'socket.io';

const server = http.createServer();
const io = new Server(server, { serveClient: false });
io.on('connection', (socket) => {
  socket.onAny((name, ...args) => socket.emit(name, ...args));
});
server.listen(0, '127.0.0.1', 511, () => console.log(server.address().port));
if (globalThis.gc) setInterval(globalThis.gc, 500);
