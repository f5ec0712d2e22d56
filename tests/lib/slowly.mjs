// A request whose head is sent first, and its body when the test says so.
import net from 'node:net';

/** Resolves when the server waits for the body; finish() sends it and resolves
 *  to all that the server answered, '' if it closed the connection; closed resolves
 *  when the connection is. */
export function slowly(url, method, path, headers, body) {
  const { hostname, port, host } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  let answer = '';
  socket.setEncoding('utf8').on('error', () => {});
  const closed = new Promise((resolve) => socket.on('close', resolve));
  const all = { host, connection: 'close', 'content-type': 'application/json', expect: '100-continue',
    'content-length': Buffer.byteLength(body), ...headers };
  socket.write(`${method} ${path} HTTP/1.1\r\n${Object.entries(all).map(([k, v]) => `${k}: ${v}\r\n`).join('')}\r\n`);
  return new Promise((resolve, reject) => {
    socket.once('data', (first) => {
      if (first !== 'HTTP/1.1 100 Continue\r\n\r\n') return reject(new Error(first));
      socket.on('data', (d) => (answer += d));
      resolve({ closed, finish: async () => { socket.write(body); await closed; return answer; } });
    });
  });
}
