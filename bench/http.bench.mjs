// http.bench.mjs - POST echo of a 300-byte body over kept connections: CPU
// time a request costs our server, Node's http and the bare floor.
import { against, inTurns, load, median, native, node, say, start } from './kit.mjs';

const TURNS = 11;
const PARTIES = {
  ours: { command: native('server'), warm: 1000, ops: 20_000 },
  floor: { command: native('floor_http'), warm: 1000, ops: 20_000 },
  node: { command: node('peer_http.mjs'), warm: 500, ops: 5_000 },
};

const servers = {};
for (const [name, p] of Object.entries(PARTIES)) {
  servers[name] = { ...p, at: await start(p.command) };
  await load('http', servers[name].at, 32, 1000, 4 * p.ops); // let the JIT settle
}
for (const connections of [32, 256]) {
  const us = await inTurns(servers, TURNS, async (s) => {
    const got = await load('http', s.at, connections, s.warm, s.ops);
    return got.cpu_ns / got.ops / 1000;
  });
  const what = `http echo, ${connections} connections`;
  const each = Object.entries(us).map(([n, v]) => `${n} ${median(v).toFixed(2)}`);
  say(`${what}: CPU us/request ${each.join(', ')}`);
  against(what, 'node http', us.ours, us.node, 0.2);
  against(what, 'floor', us.ours, us.floor, 1.2);
}
for (const s of Object.values(servers)) await s.at.stop();
