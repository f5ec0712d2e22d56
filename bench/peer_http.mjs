// peer_http.mjs - Node's http as the peer: POST bodies come back, the rest is
// "ok". Prints its port (argument, or any).
import http from 'node:http';

const answer = (res, type, body) => {
  res.writeHead(200, { 'Content-Type': type, 'Content-Length': body.length });
  res.end(body);
};

const server = http.createServer((req, res) => {
  if (req.method !== 'POST') return answer(res, 'text/plain', 'ok');
  const pieces = [];
  req.on('data', (piece) => pieces.push(piece));
  req.on('end', () => {
    const body = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
    answer(res, 'application/json', body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', 511, () => {
  console.log(server.address().port);
});
