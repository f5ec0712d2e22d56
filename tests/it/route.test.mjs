// The router as the program carries it: its own vectors, on a registry like
// those people have, in several languages.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { bin, run } from '../lib/mcp.mjs';

const folder = (name) => fileURLToPath(new URL(`../data/${name}/`, import.meta.url));
const data = folder('registry');
let dir;
before(async () => { dir = await mkdtemp(join(tmpdir(), 'mo-route-')); });
after(() => rm(dir, { recursive: true }));

const measure = (queries, ...more) => measureOn(data, queries, ...more);

async function measureOn(where, queries, ...more) {
  const { code, out, err } = await run(bin, ['route-eval', '--servers', `${where}servers.jsonl`,
    '--catalog', `${where}catalog.jsonl`, '--queries', queries, '--json', ...more], { cwd: dir });
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

// Tools of published servers, described in our own words, and requests that the
// router got wrong: making against reading, people's names, addresses, places.
describe('a catalogue of 28 published servers', () => {
  const where = folder('published');
  const lines = async () => (await readFile(`${where}queries.jsonl`, 'utf8')).trim().split('\n');

  test('most requests find their tool, and no answer is sure and wrong', async () => {
    const got = await measureOn(where, `${where}queries.jsonl`);
    assert.deepEqual([got.servers, got.tools], [28, 203]);
    assert.ok(got.server.top1 >= 0.95, `server ${got.server.top1}`);
    assert.ok(got.tool.top1 >= 0.85, `tool ${got.tool.top1}`);
    assert.ok(got.tool.top3 >= 0.95, `tool among three ${got.tool.top3}`);
    const [, sure] = got.at;
    assert.deepEqual([sure.confidence, sure.precision, sure.tool_precision], [0.8, 1, 1]);
    assert.ok(sure.tool_coverage >= 0.4, `sure of ${sure.tool_coverage}`);
  });

  test('without its right tool no request is sure of another server', async () => {
    const file = join(dir, 'taken.jsonl');
    const asked = (await lines()).map((l) => JSON.parse(l));
    let sure = 0;
    for (const { query, gold } of asked.slice(0, 18)) {
      const rest = (await readFile(`${where}catalog.jsonl`, 'utf8')).trim().split('\n')
        .filter((l) => !gold.some(([server]) => JSON.parse(l).server === server));
      await writeFile(join(dir, 'catalog.jsonl'), rest.join('\n'));
      await writeFile(file, JSON.stringify({ query, gold: [] }));
      const { code, out, err } = await run(bin, ['route-eval', '--catalog', join(dir, 'catalog.jsonl'),
        '--queries', file, '--json'], { cwd: dir });
      assert.equal(code, 0, err);
      sure += JSON.parse(out).at[1].false_accept;
    }
    assert.equal(sure, 0);
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
