// The router as the program carries it: its own vectors, on a registry like
// those people have, in several languages.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { bin, run } from '../lib/mcp.mjs';

const data = fileURLToPath(new URL('../data/registry/', import.meta.url));
let dir;
before(async () => { dir = await mkdtemp(join(tmpdir(), 'mo-route-')); });
after(() => rm(dir, { recursive: true }));

async function measure(queries, ...more) {
  const { code, out, err } = await run(bin, ['route-eval', '--servers', `${data}servers.jsonl`,
    '--catalog', `${data}catalog.jsonl`, '--queries', queries, '--json', ...more], { cwd: dir });
  assert.equal(code, 0, err);
  return JSON.parse(out);
}

async function ask(...requests) {
  const file = join(dir, 'asked.jsonl');
  await writeFile(file, requests.map((r) => JSON.stringify(r) + '\n').join(''));
  return measure(file);
}

describe('a registry of eight servers', () => {
  test('every request finds its server', async () => {
    const got = await measure(`${data}queries.jsonl`);
    assert.equal(got.servers, 8);
    assert.equal(got.server.top1, 1);
    assert.equal(got.tool.top3, 1);
    assert.equal(got.at[1].precision, 1);
  });

  test('"generate a logo" surely finds the image server', async () => {
    const got = await ask({ query: 'generate a logo', gold: [['comfyui', 'generate_image']] });
    assert.deepEqual([got.server.top1, got.tool.top1], [1, 1]);
    assert.equal(got.at[1].coverage, 1); // at 0.8
  });

  test('other languages find it, and are not sure', async () => {
    const lines = (await readFile(`${data}queries.jsonl`, 'utf8')).trim().split('\n')
      .map((l) => JSON.parse(l)).filter((q) => /[^\x20-\x7e]|erzeuge|genera un/.test(q.query));
    assert.equal(lines.length, 5);
    const got = await ask(...lines);
    assert.equal(got.server.top1, 1);
    assert.equal(got.at[1].coverage, 0);
  });

  test('what needs no tool is not sure of one', async () => {
    const got = await ask(...['hello, how are you?', 'tell me a joke', 'why is the sky blue',
      'asdf qwer zxcv', '', '🙂'].map((query) => ({ query, gold: [] })));
    assert.equal(got.at[1].false_accept, 0);
  });

  test('words alone do worse, and say so', async () => {
    const both = await measure(`${data}queries.jsonl`);
    const words = await measure(`${data}queries.jsonl`, '--words-only');
    assert.ok(words.server.top1 < both.server.top1);
  });
});

describe('files that are wrong', () => {
  for (const [name, text, said] of [
    ['no JSON', '{"server"', /bad\.jsonl:1/],
    ['no object', '\n[1]\n', /bad\.jsonl:2: no object/],
    ['no server', '{"tool":"x"}\n', /bad\.jsonl:1: no "server"/],
  ])
    test(name, async () => {
      const file = join(dir, 'bad.jsonl');
      await writeFile(file, text);
      const { code, err } = await run(bin, ['route-eval', '--catalog', file, '--queries', file], { cwd: dir });
      assert.equal(code, 1);
      assert.match(err, said);
    });

  test('a file that is missing, an option that is', async () => {
    const none = await run(bin, ['route-eval', '--catalog', 'none.jsonl', '--queries', 'none.jsonl'], { cwd: dir });
    assert.equal(none.code, 1);
    assert.match(none.err, /none\.jsonl/);
    assert.equal((await run(bin, ['route-eval'], { cwd: dir })).code, 2);
  });
});
