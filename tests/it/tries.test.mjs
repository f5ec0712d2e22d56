// A tool that is being tried by a person: progress, questions of its server that
// are answered in place, and cancelling; with workers, too.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Server, until } from './server.mjs';
import { House } from './talk_kit.mjs';

const fake = (name) => fileURLToPath(new URL(`../fakes/${name}`, import.meta.url));

async function live(args, f) {
  const house = await House.start({
    config: {
      mcpServers: {
        greeter: { command: process.execPath, args: [fake('mcp.mjs')] },
        slow: { command: process.execPath, args: [fake('slow_tool.mjs'), 'canceled.txt'] },
      },
      approvals: { rules: [{ server: '*', tool: '*', action: 'allow' }] },
    },
  });
  try {
    if (args.length) {
      await house.server.stop();
      house.server = await Server.start(args, { dir: house.dir, env: house.env, house: true });
    }
    const ask = async (path, body) => {
      const answer = await fetch(`http://127.0.0.1:${house.server.port}/api/${path}`, {
        method: body ? 'POST' : 'GET', headers: { connection: 'close' }, body: body && JSON.stringify(body),
      });
      return { status: answer.status, body: await answer.json() };
    };
    await f(house, ask);
  } finally {
    house.server.fresh.fds += 16; // servers that were used stay open
    house.server.fresh.children += 8;
    await house.stop();
  }
}

for (const args of [[], ['--workers', '2']]) {
  const where = args.length ? ' (workers)' : '';
  test(`progress is seen, and the call can be canceled${where}`, async () => {
    await live(args, async (house, ask) => {
      const done = ask('servers/slow/tools/count/call', { args: {}, run: 'run-1' });
      let seen;
      await until(async () => (seen = await ask('tries/run-1')).body.progress?.progress >= 3, 'progress');
      assert.deepEqual([seen.body.calling, seen.body.progress.total, seen.body.progress.message], [true, 10, 'counting']);
      assert.equal((await ask('tries/run-2')).status, 404);
      assert.equal((await ask('tries/run-1', { action: 'nonsense' })).status, 400);
      assert.equal((await ask('tries/run-1', { action: 'cancel' })).status, 200);
      const { body } = await done;
      assert.equal(body.state, 'canceled', JSON.stringify(body));
      await until(() => readFile(join(house.dir, 'canceled.txt'), 'utf8').then((x) => x === 'canceled\n', () => false), 'the server was told');
      assert.equal((await ask('tries/run-1')).status, 404);
      assert.equal((await ask('tries/run-1', { action: 'cancel' })).status, 404);
    });
  });

  test(`a question is answered in place${where}`, async () => {
    await live(args, async (house, ask) => {
      const question = async (run) => {
        let q;
        await until(async () => (q = (await ask(`tries/${run}`)).body.question) !== undefined, 'a question');
        return q;
      };
      const done = ask('servers/greeter/tools/ask/call', { args: {}, run: 'form' });
      const form = await question('form');
      assert.deepEqual([form.mode, form.message, form.schema.required], ['form', 'How big shall it be?', ['size']]);
      assert.equal((await ask('tries/form', { question: 'another', action: 'accept' })).status, 404);
      assert.equal((await ask('tries/form', { question: form.id, action: 'accept', content: { size: 'xxl' } })).status, 400);
      assert.equal((await ask('tries/form', { question: form.id, action: 'accept', content: { size: 'l' } })).status, 200);
      const { body } = await done;
      assert.equal(body.state, 'done', JSON.stringify(body));
      assert.match(body.content[0].text, /"action":"accept".*"size":"l"/);

      const other = ask('servers/greeter/tools/ask/call', { args: { url: 'https://a.example/x' }, run: 'url' });
      const url = await question('url');
      assert.deepEqual([url.mode, url.url], ['url', 'https://a.example/x']);
      assert.equal((await ask('tries/url', { question: url.id, action: 'decline' })).status, 200);
      assert.match((await other).body.content[0].text, /"action":"decline"/);
      let rows;
      await until(async () => ({ rows } = (await ask('audit?q=asked')).body).rows.length === 2, 'both rows');
      assert.deepEqual(rows.map((r) => [r.what.asked, r.what.action, r.what.by]).toReversed(), [['form', 'accept', 'person'], ['url', 'decline', 'person']]);
      assert.doesNotMatch(JSON.stringify(rows), /"size"/);
    });
  });
}

test('without a name a question is refused, as before', async () => {
  await live([], async (house, ask) => {
    const { body } = await ask('servers/greeter/tools/ask/call', { args: {} });
    assert.equal(body.state, 'done', JSON.stringify(body));
    assert.match(body.content[0].text, /answered undefined/);
  });
});
