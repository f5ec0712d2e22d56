// G13: whoever gets a copy of our memory (a core dump, swap, a bug that reads
// too far) finds the tokens and cookies of every request of the day. A request
// leaves nothing behind. Fails on 3a8a9c76.
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { until } from '../it/server.mjs';
import { Target } from '../lib/attack.mjs';

const skip = process.getuid() !== 0 && 'needs root, to read the memory of a process that is not dumpable';
const STEP = 16 * 1024 * 1024;
let it;
before(async () => { it = skip ? undefined : await Target.start(); });
after(() => it?.remove());

/** How often the process has that text in memory that it can write. */
function copies(pid, text) {
  const fd = openSync(`/proc/${pid}/mem`, 'r');
  let n = 0;
  for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
    const [, from, to] = (/^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? []).map((x) => parseInt(x, 16));
    if (!(to - from < 2 ** 30)) continue; // more is the sanitizer's shadow
    for (let at = from; at < to; at += STEP) {
      const bytes = Buffer.alloc(Math.min(STEP + text.length, to - at));
      try {
        readSync(fd, bytes, 0, bytes.length, at);
      } catch {
        continue; // not there, such as a guard page
      }
      for (let i = bytes.indexOf(text); i >= 0; i = bytes.indexOf(text, i + 1)) n++;
    }
  }
  closeSync(fd);
  return n;
}

test('a request leaves no token, cookie or link in memory', { skip }, async () => {
  const secret = ['not', 'kept', 'in', 'memory', '0123456789'].join('-');
  for (const [path, headers] of [
    ['/api/sessions', { authorization: `Bearer ${secret}` }], [`/?token=${secret}`, {}],
    ['/api/sessions', { cookie: `mo_${it.port}=.9999999999.${secret}` }], ['/mcp', { authorization: `Bearer ${secret}` }],
  ])
    await (await fetch(`${it.url}${path}`, { headers })).arrayBuffer();
  assert.ok(copies(it.server.pid, it.token) > 0, 'its own token is found, so the search works');
  // the answer is there before the request is over
  await until(() => copies(it.server.pid, secret) === 0, 'memory without it', 10_000);
});
