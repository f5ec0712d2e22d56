// E1: pages of other sites, and names that were made to point here. Refused
// before any session work: there is no session afterwards.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, test } from 'node:test';

import { House } from '../it/talk_kit.mjs';

let house;
before(async () => {
  house = await House.start();
});
after(() => house.stop());

function ask({ method = 'GET', path, headers = {}, body }) {
  return new Promise((resolve, reject) => {
    const rq = http.request({ host: '127.0.0.1', port: house.server.port, method, path, headers, agent: false });
    rq.on('response', (rs) => {
      let text = '';
      rs.on('data', (d) => (text += d)).on('end', () => resolve({ status: rs.statusCode, headers: rs.headers, text }));
    });
    rq.on('upgrade', (rs, socket) => {
      socket.destroy();
      resolve({ status: rs.statusCode, headers: rs.headers });
    });
    rq.on('error', reject);
    rq.end(body);
  });
}

const host = () => `localhost:${house.server.port}`;
const ORIGINS = () => ({
  evil: 'https://evil.example',
  null: 'null',
  empty: '',
  twin: 'http://127.0.0.1.evil',
  suffix: `http://localhost.evil:${house.server.port}`,
  prefix: `http://evil-localhost:${house.server.port}`,
  'wrong port': 'http://localhost:1',
  'no port': 'http://localhost',
  'wrong scheme': `https://localhost:${house.server.port}`,
  user: `http://localhost:${house.server.port}@evil.example`,
  file: 'file://',
  extension: 'chrome-extension://aaaaaaaaaaaaaaaa',
  path: `http://localhost:${house.server.port}/`,
  two: `http://localhost:${house.server.port} https://evil.example`,
});

const WS = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' };
const sio = (transport) => `/socket.io/?EIO=4&transport=${transport}&sessionId=stolen`;
const DOORS = {
  polling: { path: sio('polling') },
  websocket: { path: sio('websocket'), headers: WS },
  'a POST': { method: 'POST', path: `${sio('polling')}&sid=x`, body: '40', headers: { 'Content-Type': 'text/plain' } },
  sessions: { path: '/api/sessions' },
  'an end': { method: 'DELETE', path: '/api/sessions/x' },
  history: { path: '/api/sessions/x/history' },
  models: { path: '/api/models/available' },
};

async function assertNoSession() {
  const { body } = await house.get('/api/sessions');
  assert.deepEqual(body.sessions, []);
}

for (const [door, how] of Object.entries(DOORS))
  describe(door, () => {
    test('pages of others', async () => {
      for (const [name, Origin] of Object.entries(ORIGINS())) {
        const { status, headers } = await ask({ ...how, headers: { Host: host(), ...how.headers, Origin } });
        assert.equal(status, 403, name);
        assert.equal(headers['access-control-allow-origin'], undefined, name);
      }
      await assertNoSession();
    });

    test('fetched for another page, without an Origin', async () => {
      for (const site of ['cross-site', 'same-site']) {
        const { status } = await ask({ ...how, headers: { Host: host(), ...how.headers, 'Sec-Fetch-Site': site, 'Sec-Fetch-Mode': 'no-cors' } });
        assert.equal(status, 403, site);
      }
      await assertNoSession();
    });

    test('a name that points here', async () => {
      for (const Host of ['evil.example', `evil.example:${house.server.port}`, '127.0.0.1.evil', '169.254.169.254', 'localhost.evil', '[::2]']) {
        const { status } = await ask({ ...how, headers: { ...how.headers, Host } });
        assert.equal(status, 403, Host);
        const own = await ask({ ...how, headers: { ...how.headers, Host, Origin: `http://${Host}` } });
        assert.equal(own.status, 403, `${Host}, as its own page`);
      }
      await assertNoSession();
    });

    test('may I? no', async () => {
      for (const [name, Origin] of Object.entries(ORIGINS())) {
        const { status, headers } = await ask({
          method: 'OPTIONS', path: how.path,
          headers: { Host: host(), Origin, 'Access-Control-Request-Method': how.method ?? 'GET', 'Access-Control-Request-Headers': 'authorization' },
        });
        assert.ok(status >= 400, `${name}: ${status}`);
        assert.equal(headers['access-control-allow-origin'], undefined, name);
      }
    });
  });

test('its own page is let in', async () => {
  const { status } = await ask({ path: '/api/sessions', headers: { Host: host(), Origin: `http://${host()}` } });
  assert.equal(status, 200);
});
