// ws.bench.mjs - websocket echo of a 200-byte text, 1,000 clients with one
// message in flight each: CPU time a message costs our server and npm's ws.
import { against, inTurns, load, median, native, node, say, start } from './kit.mjs';

const TURNS = 11;
const CLIENTS = 1000;
const PARTIES = {
  ours: { command: native('server'), ops: 20_000 },
  ws: { command: node('peer_ws.mjs'), ops: 10_000 },
};

const servers = {};
for (const [name, p] of Object.entries(PARTIES)) {
  servers[name] = { ...p, at: await start(p.command) };
  await load('ws', servers[name].at, CLIENTS, 1000, 4 * p.ops);
}
const us = await inTurns(servers, TURNS, async (s) => {
  const got = await load('ws', s.at, CLIENTS, 2000, s.ops);
  return got.cpu_ns / got.ops / 1000;
});
const what = `websocket echo, ${CLIENTS} clients`;
say(`${what}: CPU us/message ours ${median(us.ours).toFixed(2)}, ` +
  `ws ${median(us.ws).toFixed(2)}`);
against(what, 'npm ws', us.ours, us.ws, 0.4);
for (const s of Object.values(servers)) await s.at.stop();
