// F2: the engine is killed, ended and started again, with and without
// live-restore. A lost box is noticed at once, told once, and what is left of
// it is found.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { docker } from '../lib/box.mjs';
import { dockerd, noDocker } from '../lib/dockerd.mjs';

const skip = noDocker;
const sh = (script) => ['/bin/sh', '-c', script];
const all = async (engine) => (await engine.api('GET', '/containers/json?all=1')).json;

/** Give the body an engine and a driver, and take both away whatever happens. */
async function withEngine(how, body) {
  const engine = await dockerd(how);
  const us = docker(engine);
  try {
    await body(engine, us);
    assert.ok(!us.over, 'the driver is alive');
    await us.close();
  } finally {
    us.kill();
    engine.cleanUp();
  }
}

for (const signal of ['KILL', 'TERM'])
  test(`SIG${signal} without live-restore: boxes are lost, told once, swept`, { skip }, async () => {
    await withEngine({}, async (engine, us) => {
      const names = ['a', 'b', 'c'];
      await Promise.all(names.map((n) => us.start(n, { session: n })));
      await engine.signal(signal);
      for (const n of names) {
        const { cause } = await us.next('gone', n);
        assert.ok(['engine gone', 'killed', 'exited'].includes(cause), cause);
      }
      await assert.rejects(us.start('no'), (e) => {
        assert.deepEqual([e.cause, e.errno], ['refused', 'unavailable']);
        return true;
      });
      await engine.start();
      // Found again, and no longer running once the engine has looked at them.
      let rows;
      do rows = await us.list(); while (rows.some((r) => r.running));
      for (const { id } of rows) await us.remove(id);
      assert.deepEqual(await all(engine), []);
      // The same driver goes on with the new engine.
      await us.start('next', { argv: sh('echo here; cat') });
      assert.equal(await us.until('next', '\n'), 'here\n');
      await us.stop('next');
      assert.deepEqual(us.events.filter((e) => e.ev === 'gone'), [], 'each end was told once');
    });
  });

test('SIGKILL with live-restore: boxes live on and are adopted with their files', { skip }, async () => {
  await withEngine({ liveRestore: true }, async (engine, us) => {
    const { id } = await us.start('a', { session: 's',
      argv: sh('echo kept >/workspace/f; echo ok; while read x; do cat /workspace/f; done') });
    await us.until('a', 'ok\n');
    await engine.signal('KILL');
    const gone = await us.next('gone', 'a');
    assert.equal(gone.cause, 'engine gone');
    await engine.start();
    const rows = await us.list();
    assert.deepEqual(rows.map((r) => [r.id, r.session, r.running]), [[id, 's', true]]);
    await us.start('again', { id });
    us.write('again', 'x\n');
    assert.equal(await us.until('again', 'kept\n'), 'kept\n');
    assert.equal((await us.stop('again')).cause, 'stopped');
    assert.deepEqual(await all(engine), []);
  });
});

test('an engine that stands still: nothing is lost, nothing is told', { skip }, async () => {
  await withEngine({}, async (engine, us) => {
    await us.start('a', { argv: sh('while read x; do echo "got $x"; done') });
    engine.shell.stdin.write(`kill -STOP $(cat '${engine.dir}/main')\n`);
    us.write('a', 'one\n');
    await new Promise((r) => setTimeout(r, 1000));
    engine.shell.stdin.write(`kill -CONT $(cat '${engine.dir}/main')\n`);
    assert.equal(await us.until('a', '\n'), 'got one\n');
    assert.deepEqual(us.events, []);
    await us.stop('a');
  });
});

test('warm boxes come back after the engine does', { skip }, async () => {
  await withEngine({}, async (engine, us) => {
    const ready = async (n) => {
      for (;;) {
        us.tell('warm?');
        if ((await us.next('warm')).n === n) return;
        await new Promise((r) => setTimeout(r, 100));
      }
    };
    us.tell('warm', { n: 2 });
    await ready(2);
    await engine.signal('KILL');
    await ready(0);
    await engine.start();
    await ready(2);
    us.tell('warm', { n: 0 });
    await ready(0);
  });
});
