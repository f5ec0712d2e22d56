// B9: commands that try to be more than one, to be too long, or to outlive
// their end. An observer outside must find no process left.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { programs, until, withToolbox } from '../lib/toolbox.mjs';

const gone = (t) =>
  until(() => t.processes().length === 0, 'the processes to be gone');

for (const program of Object.keys(programs)) {
  test(`words of argv stay words (${program})`, () =>
    withToolbox({ program }, async (t) => {
      const words = ['; touch p1', '$(touch p2)', '`touch p3`', 'a\nb', '', '*',
        '| cat', '&', '"', "'", '-n'];
      const r = await t.ok('execute_command',
        { argv: ['printf', '%s\\0', ...words] });
      assert.deepEqual(r.stdout.split('\0').slice(0, -1), words);
      for (const n of ['p1', 'p2', 'p3'])
        assert.ok(!existsSync(join(t.place.root, n)), n);
      const nul = await t.call('execute_command', { argv: ['echo', 'a\u0000b'] });
      assert.equal(nul.isError, true);
    }));

  test(`two megabytes of argument (${program})`, () =>
    withToolbox({ program }, async (t) => {
      const word = 'x'.repeat(2 * 1024 * 1024);
      for (const args of [{ argv: ['echo', word] }, { command: `: ${word}` }]) {
        const r = await t.call('execute_command', args);
        assert.equal(r.isError, true);
        assert.match(r.content[0].text, /longer than the system takes/);
      }
      const many = await t.call('execute_command',
        { argv: ['true', ...Array(5000).fill('y')] });
      assert.equal(many.isError, true);
      const ok = await t.ok('execute_command', { command: 'wc -c', stdin: word });
      assert.equal(ok.stdout.trim(), String(word.length));
    }));

  // Each leaves something behind that holds the output open or hides.
  const clingers = {
    'a child in the background': 'sleep 1000 & echo started',
    'a daemon with its own session':
      'setsid sh -c "setsid sleep 1000 & setsid sleep 1000 & sleep 1000" & echo started; sleep 1000',
    'a double fork that closed everything':
      '(setsid sh -c "exec >&- 2>&- <&-; sleep 1000" &) ; echo started; sleep 1000',
    'one that ignores signals':
      'trap "" TERM INT HUP; echo started; while :; do sleep 1; done',
    'one that forks all the time':
      'echo started; f() { sleep 0.01; f & }; f & f & sleep 1000',
    'one that stops its keeper': 'echo started; kill -STOP $PPID; sleep 1000',
    'one that kills its keeper':
      'echo started; setsid sleep 1000 & sleep 1000 & kill -KILL $PPID; sleep 1000',
  };

  for (const [what, command] of Object.entries(clingers)) {
    test(`timeout: ${what} (${program})`, () =>
      withToolbox({ program }, async (t) => {
        let r;
        for (const timeout of [0.5, 4, 20]) { // until it got far enough to be cut off
          r = await t.call('execute_command', { command, timeout });
          if (r.structuredContent?.stdout) break;
          await gone(t);
        }
        assert.equal(r.isError, true);
        assert.equal(r.structuredContent.stdout, 'started\n');
        if (!what.includes('kills'))
          assert.equal(r.structuredContent.timed_out, true);
        await gone(t);
        // and the toolbox is as good as before
        assert.equal((await t.ok('execute_command', { command: 'echo on' })).stdout,
          'on\n');
      }));
  }

  test(`cancelled: the whole tree goes, no answer comes (${program})`, () =>
    withToolbox({ program }, async (t) => {
      t.send({ id: 'long', method: 'tools/call', params: {
        name: 'execute_command', arguments: {
          command: 'setsid sleep 1000 & (sleep 1000 &) ; touch started; sleep 1000',
        } } });
      await until(() => existsSync(join(t.place.root, 'started')), 'the start');
      assert.ok(t.processes().length >= 4);
      t.send({ method: 'notifications/cancelled', params: { requestId: 'long' } });
      await gone(t);
      await t.request('ping');
      assert.deepEqual(t.messages.filter((m) => m.id === 'long'), []);
    }));
}

// The toolbox runs as the user of its commands: /proc would let them open its
// stdout and answer for it, or read what other calls were given.
test('a command cannot speak for the toolbox', () =>
  withToolbox({}, async (t) => {
    const forged = '{"jsonrpc":"2.0","id":"forged","result":{}}';
    const r = await t.call('execute_command', { command: `
      box=$(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat)
      echo "$box"
      for p in $box $PPID; do
        for f in 0 1 2 3 4 5; do echo '${forged}' >/proc/$p/fd/$f; done
        cat /proc/$p/environ /proc/$p/maps
      done` });
    const { stdout, stderr } = r.structuredContent;
    assert.equal(stdout.trim(), String(t.child.pid));
    assert.match(stderr, /Permission denied/);
    await t.request('ping');
    assert.deepEqual(t.messages, []);
  }));

// At every moment of its start: the keeper may be about to fork.
test('cancelled while it starts', () =>
  withToolbox({ program: 'musl', leaves: true }, async (t) => {
    for (let i = 0; i < 200; i++) {
      t.send({ id: `c${i}`, method: 'tools/call', params: {
        name: 'execute_command', arguments: { command: 'sleep 1000' } } });
      if (i % 3) await new Promise((done) => setTimeout(done, (i % 7) / 2));
      t.send({ method: 'notifications/cancelled', params: { requestId: `c${i}` } });
    }
    t.send({ id: 'last', method: 'tools/call', params: {
      name: 'execute_command', arguments: { command: 'sleep 1000' } } });
    t.child.stdin.end(); // the end while one starts; close() looks for the rest
    await t.exited;
    await until(() => t.processes().length === 0, 'the rest of them');
    assert.deepEqual(t.messages.filter((m) => !m.result?.isError), []);
  }));

test('what was left running on purpose goes with the toolbox', () =>
  withToolbox({ leaves: true }, async (t) => {
    const r = await t.ok('execute_command',
      { command: 'setsid sleep 1000 >log 2>&1 & echo $!' });
    assert.equal(r.left_running, true);
    const pid = r.stdout.trim();
    assert.match(readFileSync(`/proc/${pid}/cmdline`, 'latin1'), /sleep/);
    // close() looks that nothing is left
  }));
