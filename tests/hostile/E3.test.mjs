// HOSTILE E3: Engine.IO and Socket.IO garbage. After each case the server
// answers an honest client, holds as many descriptors as before, and has not
// grown; the offender was closed, and told why.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { io } from 'socket.io-client';
import { OP, RawPoll, RawWs, frame, text } from '../it/raw.mjs';
import { BUILDS, MIB, Server, until, within } from '../it/server.mjs';

const GROW = 16 * MIB;
const MAX_PAYLOAD = 1_000_000;

async function honest(server, transport = 'websocket') {
  const c = io(server.url, { forceNew: true, transports: [transport] });
  try {
    const answer = c.timeout(20_000).emitWithAck('honest', 'client');
    assert.equal(await answer, 'client');
  } finally {
    c.close();
  }
}

/** Send a text over a connected socket; how the server closes it. */
async function afterText(server, ...texts) {
  const ws = await RawWs.socket(server.port);
  for (const t of texts) ws.write(text(t));
  return { code: await ws.closing(), reason: ws.reason, texts: ws.texts };
}

const closed = (server, sid) =>
  until(async () => {
    const poll = new RawPoll(server.port);
    const { status } = await poll.post('3', { sid });
    poll.agent.destroy();
    return status === 400;
  }, 'the session to be gone');

const chunk = (frameBytes, n) =>
  Buffer.concat(Array.from({ length: n }, () => frameBytes));

const BROKEN_PACKETS = [
  ['unknown type', '9'],
  ['no type', ''],
  ['event without data', '2'],
  ['event that is an object', '2{}'],
  ['event without a name', '2[]'],
  ['name that is a number', '2[1]'],
  ['name that is reserved', '2["connect"]'],
  ['name that is reserved, escaped', '2["\\u0063onnect"]'],
  ['cut JSON', '2["x"'],
  ['two JSON texts', '2["x"]["y"]'],
  ['JSON nested 1e5 deep', `2["x",${'['.repeat(1e5)}`],
  ['lone surrogate', '2["\\ud800"]x'],
  ['ack without id', '3[]'],
  ['ack that is an object', '31{}'],
  ['ack id 2^64', '318446744073709551616[]'],
  ['event id 2^64', '218446744073709551616["x"]'],
  ['event id of 1e5 digits', `2${'9'.repeat(1e5)}["x"]`],
  ['disconnect with data', '1{}'],
  ['connect error from a client', '4{"message":"x"}'],
  ['namespace of 1e5 bytes', `0/${'n'.repeat(1e5)},`],
];

// Refused by their type, whatever follows it.
const BINARY_PACKETS = [
  ['attachment that never comes', '51-["x",{"_placeholder":true,"num":0}]'],
  ['the same in an ack', '61-7[{"_placeholder":true,"num":0}]'],
  ['1e9 attachments announced', '51000000000-["x"]'],
  ['attachment count without dash', '51["x"]'],
  ['placeholder to nowhere', '51-["x",{"_placeholder":true,"num":1e9}]'],
  ['JSON nested 1e5 deep', `51-["x",${'['.repeat(1e5)}`],
];

const cases = {
  'Engine.IO packet type 9': async (server) => {
    const ws = await RawWs.open(server.port);
    ws.write(text('9'));
    assert.equal(await ws.closing(), 1002);
    const poll = await RawPoll.open(server.port);
    assert.equal((await poll.post('9')).status, 400);
    await closed(server, poll.sid);
    await poll.close();
  },

  'packets only a server sends': async (server) => {
    for (const packet of ['0{}', '5', '6']) {
      const ws = await RawWs.open(server.port);
      ws.write(text(packet));
      assert.equal(await ws.closing(), 1002, packet);
      const poll = await RawPoll.open(server.port);
      await poll.post(packet);
      await closed(server, poll.sid);
      await poll.close();
    }
  },

  '1e6 empty packets in one body': async (server) => {
    const poll = await RawPoll.open(server.port);
    const body = '\x1e'.repeat(MAX_PAYLOAD);
    assert.equal((await poll.post(body)).status, 400);
    await closed(server, poll.sid);
    await poll.close();
  },

  '1e5 packets in one body': async (server) => {
    const poll = await RawPoll.open(server.port);
    const body = Array.from({ length: 1e5 }, () => '3').join('\x1e');
    assert.equal((await poll.post(body)).status, 400);
    await closed(server, poll.sid);
    await poll.close();
  },

  '1e6 empty websocket messages': async (server) => {
    const ws = await RawWs.open(server.port);
    const some = chunk(text(''), 1e4);
    for (let i = 0; i < 100 && !ws.code; i++) await ws.push(some);
    assert.equal(await ws.closing(), 1002);
  },

  'broken Socket.IO packets': async (server) => {
    for (const [what, packet] of BROKEN_PACKETS) {
      const { code, reason } = await afterText(server, `4${packet}`);
      assert.equal(code, 1002, what);
      assert.equal(reason, 'parse error', what);
    }
  },

  'the same by polling': async (server) => {
    for (const [, packet] of [...BROKEN_PACKETS, ...BINARY_PACKETS]) {
      const poll = await RawPoll.socket(server.port);
      await poll.post(`4${packet}`);
      await closed(server, poll.sid);
      await poll.close();
    }
  },

  'packets with attachments': async (server) => {
    for (const [what, packet] of BINARY_PACKETS) {
      const { code, reason } = await afterText(server, `4${packet}`);
      assert.equal(code, 1008, what);
      assert.equal(reason, 'binary event', what);
    }
  },

  '1e5 namespaces': async (server) => {
    const ws = await RawWs.open(server.port);
    for (let i = 0; i < 1e5 && !ws.code; i += 1000) {
      const some = Array.from({ length: 1000 }, (_, j) =>
        text(`40/n${i + j},`),
      );
      await ws.push(Buffer.concat(some));
    }
    assert.equal(await ws.closing(), 1008);
    assert.equal(ws.reason, 'refused too often');
    const refusals = ws.texts.filter((t) => t.startsWith('44/n'));
    assert.equal(refusals.length, 64);
  },

  'acks nobody asked for': async (server) => {
    const ws = await RawWs.socket(server.port);
    for (let i = 0; i < 1000; i++) ws.write(text(`43${i}[]`));
    ws.write(text('430[1]'));
    ws.write(text(`43${Number.MAX_SAFE_INTEGER}[]`));
    ws.write(text(`42${Number.MAX_SAFE_INTEGER}["x"]`));
    await ws.message((m) => m === `43${Number.MAX_SAFE_INTEGER}[]`);
    ws.destroy();
  },

  'ping flood': async (server) => {
    const ws = await RawWs.open(server.port);
    await ws.push(chunk(text('2'), 1e5));
    assert.equal(await ws.closing(), 1002);
  },

  'pong flood': async (server) => {
    const ws = await RawWs.socket(server.port);
    for (let i = 0; i < 20; i++) await ws.push(chunk(text('3'), 1e4));
    ws.write(text('420["alive"]'));
    await ws.message((m) => m === '430[]');
    ws.destroy();
  },

  'websocket ping flood': async (server) => {
    const ws = await RawWs.socket(server.port);
    const some = chunk(frame(OP.ping, 'x'.repeat(125)), 1000);
    for (let i = 0; i < 50; i++) await ws.push(some);
    await until(() => ws.pongs === 50_000, 'every pong');
    ws.destroy();
  },

  // The server stops reading: what it owes stays small, and this side's
  // writes stay in its own memory.
  'websocket pings whose pongs are never read': async (server, start) => {
    const ws = await RawWs.socket(server.port);
    ws.socket.pause();
    const some = chunk(frame(OP.ping, 'x'.repeat(125)), 1000);
    for (let i = 0; i < 500; i++) ws.write(some);
    let before = -1;
    await until(async () => {
      const same = ws.socket.writableLength === before;
      before = ws.socket.writableLength;
      if (!same) await sleep(200);
      return same;
    }, 'the server to stop reading');
    assert.ok(before > 0, 'it took everything');
    assert.ok((await server.rss()) - start.rss < GROW, 'it grew');
    ws.destroy();
  },

  'upgrade probe twice': async (server) => {
    const poll = await RawPoll.socket(server.port);
    const first = await RawWs.open(server.port, { sid: poll.sid });
    const second = await RawWs.open(server.port, { sid: poll.sid });
    assert.equal(second.status, 400);
    second.destroy();
    first.write(text('2probe'));
    first.write(text('2probe'));
    assert.equal(await first.closing(), 1002);
    await poll.post('42["still","there"]');
    await poll.packet((p) => p === '42["still","there"]');
    await poll.close();
  },

  'a probe that carries messages': async (server) => {
    const poll = await RawPoll.socket(server.port);
    const ws = await RawWs.open(server.port, { sid: poll.sid });
    ws.write(text('2probe'));
    ws.write(text('42["smuggled"]'));
    assert.equal(await ws.closing(), 1002);
    await poll.close();
  },

  'upgrade of a session that has a websocket': async (server) => {
    const ws = await RawWs.open(server.port);
    const hello = await ws.message((m) => m.startsWith('0'));
    const { sid } = JSON.parse(hello.slice(1));
    const other = await RawWs.open(server.port, { sid });
    assert.equal(other.status, 400);
    other.destroy();
    const poll = new RawPoll(server.port);
    poll.sid = sid;
    assert.equal((await poll.get()).status, 400);
    assert.equal((await poll.post('1')).status, 400);
    ws.write(text('40'));
    await ws.message((m) => m.startsWith('40'));
    ws.destroy();
    poll.agent.destroy();
  },

  'two GETs at once': async (server) => {
    const poll = await RawPoll.socket(server.port);
    const first = poll.get();
    await until(
      async () => (await server.metric('mo_http_connections')) >= 2,
      'the first to arrive',
    );
    const second = await poll.get();
    const answers = [await first, second].map((r) => r.status).sort();
    assert.deepEqual(answers, [200, 400]);
    assert.equal((await first).body, '1');
    await closed(server, poll.sid);
    await poll.close();
  },

  'two POSTs at once': async (server) => {
    const poll = await RawPoll.socket(server.port);
    const slow = await RawWs.connect(server.port);
    slow.write(
      `POST /socket.io/?EIO=4&transport=polling&sid=${poll.sid} HTTP/1.1\r\n` +
        'Host: localhost\r\nContent-Length: 100\r\n\r\n4',
    );
    await until(async () => {
      const { status } = await poll.post('3');
      return status === 400;
    }, 'the second to be refused');
    await closed(server, poll.sid);
    slow.write('2["too late"]'.padEnd(99));
    assert.equal(await slow.head(), 200);
    slow.destroy();
    await poll.close();
  },

  'posts that are never fetched': async (server) => {
    const poll = await RawPoll.socket(server.port);
    const body = `42["x","${'x'.repeat(900_000)}"]`;
    assert.equal((await poll.post(body)).status, 200);
    const waiting = poll.post(body);
    const early = await Promise.race([
      waiting,
      until(
        async () => (await poll.post(body)).status === 400,
        'the session to be closed',
      ),
    ]);
    assert.equal(early, undefined);
    assert.equal((await waiting).status, 200);
    await closed(server, poll.sid);
    await poll.close();
  },

  'a body over maxPayload': async (server) => {
    const poll = await RawPoll.socket(server.port);
    const big = `4${'x'.repeat(MAX_PAYLOAD)}`;
    assert.equal((await poll.post(big)).status, 413);
    const chunked = { headers: { 'Transfer-Encoding': 'chunked' } };
    assert.equal((await poll.post(big, chunked)).status, 413);
    const fits = `42["x","${'x'.repeat(MAX_PAYLOAD - 9)}"]`;
    assert.equal(fits.length, MAX_PAYLOAD + 1);
    assert.equal((await poll.post(fits.replace('xx', 'x'))).status, 200);
    await poll.packet((p) => p.startsWith('42["x"'));
    await poll.close();
  },

  'a message over maxPayload': async (server) => {
    const ws = await RawWs.socket(server.port);
    ws.write(text(`4${'x'.repeat(MAX_PAYLOAD)}`));
    assert.equal(await ws.closing(), 1009);
    const liar = await RawWs.socket(server.port);
    liar.write(text('42["x"', { claim: 1e12 }));
    assert.equal(await liar.closing(), 1009);
  },

  'guessed session ids': async (server) => {
    const poll = new RawPoll(server.port);
    const guesses = ['x', '..', '%00', 'A'.repeat(27), 'A'.repeat(1500)];
    for (let i = 0; i < 100; i++) guesses.push(`${i}`.repeat(7));
    for (const sid of guesses) {
      const { status, body } = await poll.get({ sid });
      assert.equal(status, 400);
      assert.deepEqual(JSON.parse(body), {
        code: 1,
        message: 'Session ID unknown',
      });
      assert.equal((await poll.post('42["x"]', { sid })).status, 400);
      const ws = await RawWs.open(server.port, { sid });
      assert.equal(ws.status, 400);
      ws.destroy();
    }
    poll.agent.destroy();
  },

  'other protocol versions and transports': async (server) => {
    const poll = new RawPoll(server.port);
    for (const eio of ['3', '', '5', '44', '4%00']) {
      const { status, body } = await poll.get({ eio });
      assert.equal(status, 400);
      assert.equal(JSON.parse(body).code, 5);
    }
    for (const transport of ['', 'polling2', 'webtransport']) {
      const r = await fetch(
        `${server.url}/socket.io/?EIO=4&transport=${transport}`,
        { headers: { connection: 'close' } },
      );
      assert.equal(r.status, 400);
      assert.equal((await r.json()).code, 0);
    }
    assert.equal((await poll.post('40')).status, 400);
    const put = await poll.request('PUT', 'x');
    assert.equal(put.status, 400);
    assert.equal(JSON.parse(put.body).code, 2);
    poll.agent.destroy();
  },

  'binary messages': async (server) => {
    const ws = await RawWs.socket(server.port);
    ws.write(frame(OP.binary, '\x01\x02'));
    assert.equal(await ws.closing(), 1003);
    for (const body of ['bAQID', 'b', 'b!!!!', `b${'A'.repeat(999_996)}`]) {
      const poll = await RawPoll.socket(server.port);
      await poll.post(body);
      await closed(server, poll.sid);
      await poll.close();
    }
  },

  'garbage after valid packets': async (server) => {
    const { code, texts } = await afterText(server, '42["a"]', '4garbage');
    assert.equal(code, 1002);
    assert.ok(texts.includes('42["a"]'), 'what was valid was served');
    const poll = await RawPoll.socket(server.port);
    const bad = await poll.post('420["a"]\x1egarbage');
    assert.equal(bad.status, 400);
    await closed(server, poll.sid);
    await poll.close();
  },

  'CONNECT twice': async (server) => {
    const { code, reason } = await afterText(server, '40');
    assert.equal(code, 1002);
    assert.equal(reason, 'connected twice');
    const both = await RawWs.open(server.port);
    both.write(Buffer.concat([text('40'), text('40{"a":1}')]));
    assert.equal(await both.closing(), 1002);
  },

  'packets before CONNECT': async (server) => {
    for (const packet of ['42["x"]', '430[]', '41']) {
      const ws = await RawWs.open(server.port);
      ws.write(text(packet));
      assert.equal(await ws.closing(), 1002);
      assert.equal(ws.reason, 'packet before CONNECT');
    }
  },

  'packets for a namespace that is not connected': async (server) => {
    for (const packet of ['42/a,["x"]', '41/a,', '43/a,1[]']) {
      const { code } = await afterText(server, packet);
      assert.equal(code, 1002);
    }
  },

  'a client that never reads what it is sent': async (server) => {
    const slow = await RawWs.socket(server.port);
    slow.write(text('420["listen"]'));
    await slow.message((m) => m.startsWith('430'));
    slow.socket.pause();
    const loud = io(server.url, {
      forceNew: true,
      transports: ['websocket'],
    });
    const data = 'x'.repeat(100_000);
    for (let i = 0; i < 200; i++)
      await loud.timeout(20_000).emitWithAck('say', data);
    loud.close();
    await until(
      async () => (await server.metric('mo_engineio_sessions')) === 0,
      'the slow one to be closed',
    );
    slow.destroy();
  },

  'a polling client that never fetches what it is sent': async (server) => {
    const poll = await RawPoll.socket(server.port);
    await poll.post('42["listen"]');
    const loud = io(server.url, {
      forceNew: true,
      transports: ['websocket'],
    });
    const data = 'x'.repeat(100_000);
    for (let i = 0; i < 60; i++)
      await loud.timeout(20_000).emitWithAck('say', data);
    loud.close();
    await closed(server, poll.sid);
    await poll.close();
  },

  'half-open websockets': async (server) => {
    const ws = await RawWs.socket(server.port);
    ws.socket.end(); // FIN without a close frame
    await within(ws.gone, 'the server to close too');
    const probe = await RawPoll.socket(server.port);
    const half = await RawWs.open(server.port, { sid: probe.sid });
    half.socket.end();
    await within(half.gone, 'the server to close the probe');
    await probe.post('420["x"]');
    await probe.packet((p) => p === '430[]');
    await probe.close();
  },

  '300 sessions that are abandoned': async (server) => {
    const all = await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        i % 2 ? RawWs.socket(server.port) : RawWs.open(server.port),
      ),
    );
    for (const ws of all) ws.socket.resetAndDestroy();
    await until(
      async () => (await server.metric('mo_engineio_sessions')) === 0,
      'all of them to be forgotten',
    );
  },
};

for (const { name, bin } of BUILDS) {
  describe(`E3, ${name} build`, () => {
    let server;
    let start;

    before(async () => {
      // A worker passes a POST on when it has the whole body, and the echo of `say` stays in its process: what two
      // requests see of each other depends on the workers that they come to.
      server = await Server.start(['--test-echo'], { bin, oneProcess: 'two requests of a session must come to one process' });
      await honest(server, 'websocket');
      await honest(server, 'polling');
      start = await server.measure();
    });

    after(() => server.stopClean());

    for (const [what, run] of Object.entries(cases)) {
      test(what, async () => {
        await run(server, start);
        assert.ok(server.alive, server.log);
        await honest(server);
        await server.assertBack(start, { grow: GROW });
      });
    }
  });
}
