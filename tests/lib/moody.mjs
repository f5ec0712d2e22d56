// Servers of moods (tests/it/moody.mjs) behind the gateway.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Place, script } from './gateway.mjs';
import { client1 } from './mcp_talk.mjs';

const WAIT_MS = 30_000;

export async function until(check, what) {
  for (const end = Date.now() + WAIT_MS; !(await check()); await sleep(20))
    assert.ok(Date.now() < end, `never: ${what ?? check}`);
}

/** Moody servers by name, each with a mood and a log of its own. */
export class Moody {
  constructor(t, more = {}, config = {}) {
    this.place = new Place({});
    t.after(() => this.place.close());
    const servers = Object.fromEntries(Object.entries(more).map(([name, own]) => [
      name, { ...script('moody.mjs', name, this.file(name, 'mood'), this.file(name, 'log')), ...own },
    ]));
    this.servers = servers;
    this.place.write(servers, { gateway: { prefix: 'always' }, ...config });
    this.place.legacy(...Object.values(servers));
  }

  file = (name, what) => join(this.place.dir, `${name}.${what}`);
  mood = (name, mood) => writeFileSync(this.file(name, 'mood'), mood);
  done = (name) => (existsSync(this.file(name, 'log'))
    ? readFileSync(this.file(name, 'log'), 'utf8').trim().split('\n') : []);

  /** The same servers, some of them otherwise, and other settings. */
  write(more, config = {}) {
    const servers = Object.entries(this.servers).map(([name, s]) => [name, { ...s, ...more[name] }]);
    this.place.write(Object.fromEntries(servers), config);
  }

  /** The gateway with a client: {client, call, pid, tools()}. */
  async open(t, ...args) {
    const it = client1();
    const transport = new Stdio1({ ...this.place.command(...args), stderr: 'ignore' });
    await it.client.connect(transport);
    t.after(() => it.client.close());
    const tools = async () => (await it.client.listTools()).tools.map((x) => x.name);
    const run = (name, n) => it.call({ name, arguments: { n } });
    return { ...it, run, tools, pid: transport.pid };
  }
}

/** Rejects with an MCP error: its message and data. */
export async function error(promise) {
  let got;
  await assert.rejects(promise, (e) => ((got = e), true));
  return got;
}
