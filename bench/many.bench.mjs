// many.bench.mjs - fifty servers behind a gateway, ours and npm's mcp-hub: from
// the start to the list, processes and memory; then what a call by words costs
// over one by name with 3,000 tools, and what one bad server of fifty costs
// those who call another.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  Client, family, inTurns, median, mib, native, npm, OldClient, program, ratio, run, say, startAt, TOKEN,
} from './kit.mjs';

const TURNS = 5;
const SERVERS = 50;
const [fixture] = native('mcp_fixture');
const [many] = native('many_tools');
const p50 = (list) => list.map((got) => got.p50_ns);
const us = (list) => (median(list) / 1000).toFixed(1);
const ms = (list) => (median(list) / 1e6).toFixed(1);

const dir = mkdtempSync(join(tmpdir(), 'mo-bench-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const env = (state) => ({
  MCP_ORCHESTRATOR_STATE_DIR: join(dir, state), MCP_ORCHESTRATOR_TOKEN: TOKEN,
  HOME: dir, XDG_DATA_HOME: dir, XDG_STATE_HOME: dir, XDG_CONFIG_HOME: dir,
});
function config(name, entry, more = {}) {
  const file = join(dir, `${name}.json`);
  const mcpServers = Object.fromEntries(
    Array.from({ length: SERVERS }, (_, i) => [`s${i}`, entry(i)]));
  writeFileSync(file, JSON.stringify({ mcpServers, ...more }));
  return file;
}
// Until all of them have been read, and no child is started for that.
async function learn(file, state) {
  for (let left = 20; left; left--) {
    const got = await run('load_mcp', ['list', program, 'gateway', '--config', file], env(state));
    if (!got.children) return;
  }
  throw new Error(`${file}: not all servers could be read`);
}
const OURS = { sandbox: { driver: 'none' } };

// --- from the start to the list; ours has read all of them before
{
  const file = config('fifty', (i) => ({ command: fixture, toolPrefix: i ? undefined : '' }), OURS);
  const list = () => run('load_mcp', ['list', program, 'gateway', '--config', file], env('fifty'));
  await learn(file, 'fifty');
  const ours = [];
  for (let i = 0; i < 2 * TURNS; i++) ours.push(await list());
  const theirs = [];
  const hub = config('hub', () => ({ command: fixture, args: [] }));
  for (let i = 0; i < TURNS; i++) {
    const since = performance.now();
    const at = await startAt([...npm('mcp-hub/dist/cli.js'), '--port', 'PORT', '--config', hub], env('hub'));
    await OldClient.tools(at.port, '/mcp', SERVERS);
    theirs.push({ ns: (performance.now() - since) * 1e6, ...family(at.pid) });
    await at.stop();
  }
  const ns = (l) => l.map((got) => got.ns);
  say(`gateway, ${SERVERS} servers: start to tools/list ms ours ${ms(ns(ours))} ` +
    `(best ${(Math.min(...ns(ours)) / 1e6).toFixed(1)}, goal 5), mcp-hub ${ms(ns(theirs))}, ratio ` +
    (median(ns(ours)) / median(ns(theirs))).toFixed(4));
  say(`gateway, ${SERVERS} servers: processes then ours ${Math.max(...ours.map((got) => got.children))} ` +
    `(goal 0), mcp-hub ${median(theirs.map((got) => got.processes))}; mcp-hub ` +
    `${median(theirs.map((got) => got.mib)).toFixed(0)} MiB, and its children ` +
    `${median(theirs.map((got) => got.childrenMib)).toFixed(0)} MiB`);
}

// --- 3,000 tools: a call by words, a call by name
{
  const file = (name, expose) =>
    config(name, (i) => ({ command: many, args: [String(i)] }), { ...OURS, gateway: { expose } });
  const start = (name, expose) =>
    startAt([program, 'serve', '--port', 'PORT', '--config', file(name, expose)], env('many'));
  await learn(file('all', 'all'), 'many');
  const all = await start('all', 'all');
  const search = await start('search', 'search');
  const client = await Client.open(all.port);
  const names = await client.tools();
  const want = 'done at the bakery: create_invoice';
  const load = (at, tool, args) =>
    run('load_mcp', ['--tool', tool, '--arguments', JSON.stringify(args), '--want', want, 'http',
      at.port, at.pid, 1, 100, 5000]);
  const name = names.find((n) => /^s0\W?_*create_invoice$/.test(n));
  const got = await inTurns({
    name: () => load(all, name, { reference: '########' }),
    words: () => load(search, 'execute', {
      request: 'create the invoice of the bakery, reference ########',
      params: { reference: '########' },
    }),
  }, TURNS, (turn) => turn());
  const over = median(p50(got.words).map((v, i) => v - p50(got.name)[i]));
  say(`gateway, ${names.length} tools: p50 us of a call by name ${us(p50(got.name))}, by words ` +
    `${us(p50(got.words))}, over it ${(over / 1000).toFixed(1)} (goal 100)`);
  say(`gateway, ${names.length} tools: MiB shown all ${mib(all.pid).toFixed(1)}, ` +
    `with the router ${mib(search.pid).toFixed(1)} (goal 25)`);
  await all.stop();
  await search.stop();
}

// --- one bad server of fifty. A neighbour calls it a hundred times a second,
// --- or, where all is well, a good one.
{
  const BAD = { well: `exec ${fixture}`, dies: 'exit 1', hangs: 'exec sleep 1000', raves: 'exec yes nonsense' };
  const parties = {};
  for (const [kind, then] of Object.entries(BAD)) {
    const script = join(dir, `${kind}.sh`);
    const put = (text) => {
      writeFileSync(script, `#!/bin/sh\n${text}\n`);
      chmodSync(script, 0o755);
    };
    const file = config(kind, (i) => (i === 1 ? { command: script }
      : { command: fixture, toolPrefix: i ? undefined : '' }), OURS);
    put(BAD.well);
    await learn(file, kind);
    put(then);
    parties[kind] = await startAt([program, 'serve', '--port', 'PORT', '--config', file], env(kind));
  }
  const got = await inTurns(parties, TURNS, async (at) => {
    const client = await Client.open(at.port);
    const [name] = (await client.tools()).filter((n) => /^s1\W?_*echo$/.test(n));
    let over = false;
    const neighbour = (async () => {
      while (!over) {
        await Promise.race([
          client.call(name, { message: 'hello' }),
          new Promise((r) => setTimeout(r, 1000)),
        ]);
        await new Promise((r) => setTimeout(r, 10));
      }
    })();
    const figures = await run('load_mcp', ['http', at.port, at.pid, 1, 500, 10_000]);
    over = true;
    await neighbour;
    return figures;
  });
  for (const kind of Object.keys(BAD).slice(1))
    say(`gateway, one of ${SERVERS} ${kind}: p50 us of a call to another ${us(p50(got[kind]))}, all well ` +
      `${us(p50(got.well))}, ratio ${ratio(p50(got[kind]), p50(got.well)).toFixed(3)} (goal 1.05)`);
  for (const at of Object.values(parties)) await at.stop();
}
