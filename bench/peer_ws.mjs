// peer_ws.mjs - npm's ws as the peer: text messages come back. Compression is
// off, as it is by default. Prints its port.
import { WebSocketServer } from 'ws';

const server = new WebSocketServer(
  { host: '127.0.0.1', port: 0, backlog: 511 },
  () => console.log(server.address().port),
);
server.on('connection', (ws) => {
  ws.on('message', (data) => ws.send(data, { binary: false }));
});
