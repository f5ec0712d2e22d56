// The published socket.io-client against `serve --test-echo`: transports,
// upgrade, order, acks, rooms, refusals, heartbeat, reconnection, crowds and
// the end of the server.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { io } from 'socket.io-client';
import { RawPoll, RawWs, text } from './raw.mjs';
import { BUILDS, MIB, Server, until, within } from './server.mjs';

const WAYS = {
  polling: ['polling'],
  websocket: ['websocket'],
  upgrade: ['polling', 'websocket'],
};

const open = new Set();

/** A client that is not shared with any other; closed by closeAll(). */
function client(server, options = {}) {
  const c = io(server.url, {
    forceNew: true,
    reconnection: false,
    timeout: 20_000,
    ...options,
  });
  open.add(c);
  return c;
}

async function connected(server, options) {
  const c = client(server, options);
  await within(
    new Promise((resolve, reject) => {
      c.once('connect', resolve);
      c.once('connect_error', reject);
    }),
    'connect',
    60_000,
  );
  return c;
}

function closeAll() {
  for (const c of open) c.close();
  open.clear();
}

const event = (c, name, ms) =>
  within(
    new Promise((resolve) => c.once(name, (...args) => resolve(args))),
    name,
    ms,
  );

const upgraded = (c) =>
  until(() => c.io.engine.transport.name === 'websocket', 'the upgrade');

async function idle(server) {
  const none = async () =>
    (await server.metric('mo_engineio_sessions')) === 0 &&
    (await server.metric('mo_socketio_sockets')) === 0;
  await until(none, 'no session left');
}

const VALUES = [
  ['nothing'],
  ['null', null],
  ['booleans', true, false],
  ['numbers', 0, -1, 1.5, -1e-7, 1e21, Number.MAX_SAFE_INTEGER, 2 ** 53],
  ['strings', '', 'a', '"\\/\b\f\n\r\t', '\u0000\u001f\u001e\u2028\u2029'],
  ['unicode', 'Grüße, 世界, مرحبا', '👩‍👩‍👧‍👦🏳️‍🌈', '\ud83d\ude00'],
  ['arrays', [], [[]], [1, [2, [3, [4]]]]],
  ['objects', {}, { a: { b: { c: [{ d: null }] } } }, { '': 0, é: '🦊' }],
  ['placeholder', { _placeholder: false, num: 0 }],
  ['many', ...Array.from({ length: 200 }, (_, i) => i)],
  ['deep', JSON.parse('['.repeat(50) + ']'.repeat(50))],
];

for (const { name, bin } of BUILDS) {
  describe(`socket.io-client, ${name} build`, () => {
    let server;
    let lone;
    let start;

    before(async () => {
      server = await Server.start(['--test-echo'], { bin });
      lone = await Server.start(['--test-echo'], {
        bin,
        oneProcess: 'the echo of `say` reaches the sockets of its own process',
      });
      closeAll();
      start = await server.measure();
    });

    after(async () => {
      closeAll();
      await idle(server);
      await server.assertBack(start, { grow: 64 * MIB });
      await server.stopClean();
      await idle(lone);
      await lone.stopClean();
    });

    for (const [way, transports] of Object.entries(WAYS)) {
      describe(way, () => {
        after(closeAll);

        test('connects and says hello', async () => {
          const c = client(server, { transports });
          const hello = event(c, 'hello');
          await event(c, 'connect');
          assert.deepEqual(await hello, ['echo']);
          assert.match(c.id, /^[\w-]{20}$/);
          if (way === 'upgrade') await upgraded(c);
          assert.equal(
            c.io.engine.transport.name,
            way === 'polling' ? 'polling' : 'websocket',
          );
        });

        test('all JSON comes back as it was', async () => {
          const c = await connected(server, { transports });
          for (const [label, ...args] of VALUES) {
            const back = event(c, label);
            c.emit(label, ...args);
            assert.deepEqual(await back, args, label);
          }
        });

        test('900 KB in one event', async () => {
          const c = await connected(server, { transports });
          const ascii = 'x'.repeat(900_000);
          const wide = '🦊'.repeat(225_000);
          for (const big of [ascii, wide]) {
            const back = event(c, 'big');
            c.emit('big', big);
            assert.equal((await back)[0], big);
          }
        });

        test('acks from the server', async () => {
          const c = await connected(server, { transports });
          const ask = (...args) => c.timeout(20_000).emitWithAck(...args);
          assert.equal(await ask('one', 1), 1);
          assert.deepEqual(await ask('obj', { a: ['ü'] }), { a: ['ü'] });
          const many = Array.from({ length: 300 }, (_, i) => ask('n', i));
          assert.deepEqual(
            await Promise.all(many),
            many.map((_, i) => i),
          );
        });

        test('1,000 events keep their order', async () => {
          const c = client(server, { transports });
          const seen = [];
          c.on('n', (i) => seen.push(i));
          await event(c, 'connect');
          for (let i = 0; i < 1000; i++) {
            c.emit('n', i);
            if (i % 20 === 0) await sleep(1);
          }
          await until(() => seen.length >= 1000, 'all events');
          await c.timeout(20_000).emitWithAck('end');
          assert.deepEqual(
            seen,
            Array.from({ length: 1000 }, (_, i) => i),
          );
        });

        test('refused with the words of the server', async () => {
          const c = client(server, {
            transports,
            auth: { refuse: 'no "entry" ✋' },
          });
          const [error] = await event(c, 'connect_error');
          assert.equal(error.message, 'no "entry" ✋');
          assert.equal(c.connected, false);
          c.auth = {};
          const ok = event(c, 'connect');
          c.connect();
          await ok;
        });

        test('another namespace is invalid', async () => {
          const manager = (await connected(server, { transports })).io;
          const other = manager.socket('/admin');
          const [error] = await event(other, 'connect_error');
          assert.equal(error.message, 'Invalid namespace');
          other.disconnect();
        });

        test('kicked, then back', async () => {
          const c = await connected(server, { transports });
          const first = c.id;
          const left = event(c, 'disconnect');
          c.emit('kick');
          assert.equal((await left)[0], 'io server disconnect');
          const again = event(c, 'connect');
          c.connect();
          await again;
          assert.notEqual(c.id, first);
          assert.equal(await c.timeout(20_000).emitWithAck('ok', 1), 1);
        });

        test('the server ends the session', async () => {
          const c = await connected(server, { transports });
          const left = event(c, 'disconnect');
          c.emit('drop');
          assert.equal((await left)[0], 'io server disconnect');
          await until(() => c.io.engine.readyState === 'closed', 'the close');
        });

        test('leaves and comes back by itself', async () => {
          const c = await connected(server, { transports });
          const left = event(c, 'disconnect');
          c.disconnect();
          assert.equal((await left)[0], 'io client disconnect');
          const again = event(c, 'connect');
          c.connect();
          await again;
          assert.equal(await c.timeout(20_000).emitWithAck('ok', 1), 1);
        });

        test('the bench client of the older system', async () => {
          const c = await connected(server, {
            transports,
            query: { sessionId: 'bench-1', model: 'demo/x y&z' },
            auth: { token: 'secret' },
          });
          assert.equal(await c.timeout(20_000).emitWithAck('message', 'hi'), 'hi');
        });
      });
    }

    test('the upgrade event is seen', async () => {
      const c = client(server, { transports: WAYS.upgrade });
      const seen = new Promise((resolve) =>
        c.io.on('open', () => c.io.engine.once('upgrade', resolve)),
      );
      const transport = await within(seen, 'upgrade');
      assert.equal(transport.name, 'websocket');
      c.close();
    });

    // The client's own traffic and another client's run while it steps over, which
    // it is told to do in the middle; each round at another moment.
    test('no event is lost or reordered by the upgrade', async () => {
      const source = await connected(lone, { transports: WAYS.websocket });
      for (let round = 0; round < 10; round++) {
        const c = client(lone, {
          transports: WAYS.upgrade,
          upgrade: false,
        });
        const echoed = [];
        const heard = [];
        c.on('n', (i) => echoed.push(i));
        c.on('said', (i) => heard.push(i));
        await event(c, 'connect');
        await c.timeout(20_000).emitWithAck('listen');
        for (let i = 0; i < 1000; i++) {
          c.emit('n', i);
          source.emit('say', i);
          if (i % 100 === round) await sleep(1);
          if (i === 200 + 7 * round) c.io.engine._probe('websocket');
        }
        await until(
          () => echoed.length >= 1000 && heard.length >= 1000,
          'all events of both',
        );
        await upgraded(c);
        await c.timeout(20_000).emitWithAck('end');
        const want = Array.from({ length: 1000 }, (_, i) => i);
        assert.deepEqual(echoed, want);
        assert.deepEqual(heard, want);
        c.close();
      }
      source.close();
    });

    // The same with every step held open by hand.
    test('what is sent during a slow upgrade arrives in order', async () => {
      const source = await connected(lone, { transports: WAYS.websocket });
      const say = (i) => source.timeout(20_000).emitWithAck('say', i);
      const poll = await RawPoll.socket(lone.port);
      await poll.post('420["listen"]');
      await poll.packet((p) => p.startsWith('430'));
      await say(0);
      const ws = await RawWs.open(lone.port, { sid: poll.sid });
      await say(1);
      ws.write(text('2probe'));
      await ws.message((m) => m === '3probe');
      await say(2);
      const { body } = await poll.get();
      assert.deepEqual(
        body.split('\x1e').filter((p) => p !== '6'),
        [0, 1, 2].map((i) => `42["said",${i}]`),
      );
      await say(3); // nobody polls now: it must wait for the websocket
      ws.write(text('5'));
      await ws.message((m) => m === '42["said",3]');
      await say(4);
      await ws.message((m) => m === '42["said",4]');
      assert.equal((await poll.get()).status, 400);
      ws.destroy();
      await poll.close();
      source.close();
    });

    test('a probe that fails leaves the session on polling', async () => {
      const poll = await RawPoll.socket(server.port);
      for (const bad of [text('2other'), text('5'), text('4x'), text('')]) {
        const ws = await RawWs.open(server.port, { sid: poll.sid });
        ws.write(bad);
        assert.equal(await ws.closing(), 1002);
      }
      const ws = await RawWs.open(server.port, { sid: poll.sid });
      ws.write(text('2probe'));
      await ws.message((m) => m === '3probe');
      ws.destroy();
      await ws.gone;
      await poll.post('42["still","here"]');
      await poll.packet((p) => p === '42["still","here"]');
      await poll.close();
    });

    // The stock client hangs when the websocket it steps onto vanishes.
    test('the server ends the session during the upgrade', async () => {
      const poll = await RawPoll.socket(server.port);
      const ws = await RawWs.open(server.port, { sid: poll.sid });
      ws.write(text('2probe'));
      await ws.message((m) => m === '3probe');
      await poll.post('42["drop"]');
      ws.write(text('5'));
      await ws.message((m) => m === '41');
      assert.equal(await ws.closing(), 1000);
      assert.equal((await poll.get()).status, 400);
      await poll.close();
    });

    test('kicked, then back over the same session', async () => {
      const ws = await RawWs.socket(server.port);
      ws.write(text('42["listen"]'));
      ws.write(text('42["kick"]'));
      await ws.message((m) => m === '41');
      ws.write(text('42["on its way"]')); // no offence
      ws.write(text('40'));
      await ws.message((m) => m.startsWith('40'));
      ws.write(text('420["back"]'));
      await ws.message((m) => m === '430[]');
      assert.equal(await server.metric('mo_socketio_sockets'), 1);
      ws.destroy();
    });

    test('a dropped socket: the client comes back by itself', async () => {
      for (const transports of [WAYS.websocket, WAYS.upgrade]) {
        const c = client(server, {
          transports,
          reconnection: true,
          reconnectionDelay: 10,
          reconnectionDelayMax: 100,
        });
        await event(c, 'connect');
        await upgraded(c);
        const first = c.id;
        const left = event(c, 'disconnect');
        const again = event(c, 'connect');
        c.io.engine.transport.ws._socket?.destroy();
        c.io.engine.transport.ws.close?.();
        assert.match((await left)[0], /transport/);
        await again;
        assert.notEqual(c.id, first);
        assert.equal(await c.timeout(20_000).emitWithAck('ok', 1), 1);
        c.close();
      }
    });

    // Reading stops while the answers wait, so nothing is lost and nobody is
    // called slow for having been busy sending.
    test('a client that sends first and reads later', async () => {
      const ws = await RawWs.socket(server.port);
      const packet = text(`42["bulk","${'x'.repeat(50_000)}"]`);
      ws.socket.pause();
      for (let i = 0; i < 600; i++) ws.write(packet);
      await sleep(200);
      ws.socket.resume();
      const bulk = () => ws.texts.filter((t) => t.startsWith('42["bulk"'));
      await until(() => bulk().length >= 600 || ws.closed, 'all of it', 60_000);
      assert.equal(bulk().length, 600);
      assert.equal(ws.closed, false);
      ws.destroy();
    });

    test('a polling client that posts first and fetches later', async () => {
      const poll = await RawPoll.socket(server.port);
      const body = `42["bulk","${'x'.repeat(900_000)}"]`;
      await poll.post(body);
      let waits = true;
      const second = poll.post(body).then((r) => {
        waits = false;
        return r;
      });
      await sleep(300);
      assert.ok(waits, 'the second answer waits for a fetch');
      let got = 0;
      while (got < 2) got += (await poll.get()).body.split('\x1e').length;
      assert.equal(got, 2);
      assert.equal((await second).status, 200);
      await poll.close();
    });

    test('the last words reach a polling client between polls', async () => {
      const poll = await RawPoll.socket(server.port);
      assert.equal((await poll.post('42["drop"]')).body, 'ok');
      assert.equal((await poll.get()).body, '41');
      // Not together: the stock client would call it a lost connection.
      assert.equal((await poll.get()).body, '1');
      assert.equal((await poll.get()).status, 400);
      await poll.close();
    });

    for (const [way, n] of [
      ['websocket', 1000],
      ['polling', 200],
    ]) {
      test(`${n} ${way} clients at once, then none`, async () => {
        closeAll();
        await idle(server);
        const was = await server.measure();
        const transports = WAYS[way];
        const all = [];
        while (all.length < n) {
          const some = Array.from({ length: 50 }, () =>
            connected(server, { transports, timeout: 60_000 }),
          );
          all.push(...(await Promise.all(some)));
        }
        assert.equal(await server.metric('mo_engineio_sessions'), n);
        assert.equal(await server.metric('mo_socketio_sockets'), n);
        const answers = await Promise.all(
          all.map((c, i) => c.timeout(60_000).emitWithAck('who', i)),
        );
        assert.deepEqual(
          answers,
          all.map((_, i) => i),
        );
        closeAll();
        await idle(server);
        await server.assertBack(was, { grow: 32 * MIB });
      });
    }
  });

  describe(`heartbeat, ${name} build`, () => {
    let server;

    before(async () => {
      const args = ['--test-echo', '--test-ping', '500'];
      server = await Server.start(args, { bin });
    });

    after(async () => {
      closeAll();
      await server.stopClean();
    });

    test('a living client stays over many pings', async () => {
      const all = await Promise.all(
        Object.values(WAYS).map((transports) =>
          connected(server, { transports }),
        ),
      );
      const pings = all.map(() => 0);
      all.forEach((c, i) => c.io.on('ping', () => pings[i]++));
      await until(() => pings.every((n) => n >= 5), 'five pings each');
      for (const c of all) {
        assert.equal(c.connected, true);
        assert.equal(await c.timeout(20_000).emitWithAck('ok', 1), 1);
      }
    });

    test('a websocket that never pongs is closed', async () => {
      const ws = await RawWs.socket(server.port);
      await ws.message((m) => m === '2');
      assert.equal(await ws.closing(), 1008);
      assert.equal(ws.reason, 'ping timeout');
    });

    test('a polling client that never pongs is closed', async () => {
      const poll = await RawPoll.socket(server.port);
      await poll.packet((p) => p === '2');
      await poll.packet((p) => p === '1');
      assert.equal((await poll.get()).status, 400);
      await poll.close();
    });

    test('a polling client that stops fetching is forgotten', async () => {
      closeAll();
      await idle(server);
      const poll = await RawPoll.socket(server.port);
      assert.equal(await server.metric('mo_engineio_sessions'), 1);
      await idle(server);
      await poll.close();
    });
  });

  test(`SIGTERM: clients are told, it ends; ${name} build`, async () => {
    const server = await Server.start(['--test-echo'], { bin });
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        connected(server, { transports: Object.values(WAYS)[i % 3] }),
      ),
    );
    const socket = await RawWs.socket(server.port);
    const session = await RawWs.open(server.port);
    const half = await RawWs.connect(server.port);
    half.write('GET /socket.io/?EIO=4&transport=polling HTTP/1.1\r\n');
    const told = all.map((c) => event(c, 'disconnect'));
    await server.metric('mo_http_connections'); // answered after it has read the half
    server.signal('SIGTERM');
    for (const [reason] of await Promise.all(told))
      assert.match(reason, /^transport (close|error)$/);
    assert.equal(await socket.closing(), 1001);
    assert.equal(await session.closing(), 1001);
    closeAll();
    await sleep(300); // Socket.IO is down now; HTTP waits for the other half
    half.write('Host: localhost\r\n\r\n');
    assert.equal(await half.head(), 503);
    await until(() => server.log.includes('"stopped"'), 'its end', 8000);
    await server.stopClean();
  });
}
