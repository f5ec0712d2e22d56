// A balancer without stickiness: each request goes to the next server. One that
// refuses the connection is passed over.
import http from 'node:http';

/** ports: of the servers, in turn. seen: [method, port, status] of each
 *  request. */
export async function balancer(ports) {
  const seen = [];
  let turn = 0;
  const agent = new http.Agent({ keepAlive: false });

  function send(req, res, body, which, left) {
    const port = ports[which % ports.length];
    const to = http.request(
      { host: '127.0.0.1', port, method: req.method, path: req.url, headers: req.headers, agent },
      (from) => {
        seen.push([req.method, port, from.statusCode]);
        res.writeHead(from.statusCode, from.headers);
        res.flushHeaders();
        from.pipe(res);
        from.on('error', () => res.destroy());
      },
    );
    to.on('error', (e) => {
      if (e.code === 'ECONNREFUSED' && left > 0) send(req, res, body, which + 1, left - 1);
      else res.destroy();
    });
    res.on('close', () => to.destroy());
    to.end(body);
  }

  const server = http.createServer(async (req, res) => {
    const pieces = [];
    for await (const piece of req) pieces.push(piece);
    send(req, res, Buffer.concat(pieces), turn++, ports.length);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    seen,
    ports,
    url: new URL(`http://localhost:${server.address().port}/mcp`),
    at: (path) => `http://localhost:${server.address().port}${path}`,
    /** The next request goes there. */
    next: (port) => { turn = ports.indexOf(port); },
    close: () => new Promise((done) => {
      server.closeAllConnections();
      server.close(done);
    }),
  };
}
