// mo-toolbox as its clients see it: every tool, every revision, both of its
// builds, raw lines and the official SDKs.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync,
  symlinkSync, writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import {
  PATH, Place, Toolbox, helper, nobody, programs, sanitizers, until, within, withToolbox,
} from '../lib/toolbox.mjs';

const P = 'io.modelcontextprotocol/';
const modern = (more = {}) => ({
  [`${P}protocolVersion`]: '2026-07-28', [`${P}clientCapabilities`]: {}, ...more,
});
const NAMES = ['read_file', 'write_file', 'edit_file', 'list_files',
  'search_files', 'execute_command', 'run_script'];

for (const program of Object.keys(programs)) {
  describe(program, () => {
    const box = (name, body) => test(name, () => withToolbox({ program }, body));

    box('read_file: whole, lines, bytes', async (t) => {
      t.place.file('f', 'one\ntwo\nthree\nfour');
      const read = async (args) => (await t.ok('read_file', { path: 'f', ...args }));
      assert.deepEqual(await read({}), {
        path: 'f', content: 'one\ntwo\nthree\nfour', encoding: 'utf-8',
        size: 18, offset: 0, bytes: 18, truncated: false,
      });
      assert.equal((await read({ start_line: 2, end_line: 3 })).content, 'two\nthree\n');
      assert.equal((await read({ end_line: 1 })).content, 'one\n');
      assert.equal((await read({ start_line: 4 })).content, 'four');
      assert.equal((await read({ start_line: 3 })).offset, 8);
      const part = await read({ offset: 4, limit: 5 });
      assert.deepEqual([part.content, part.truncated, part.next_offset],
        ['two\nt', true, 9]);
      const wrong = [
        [{ start_line: 9 }, /no line 9, only 4/],
        [{ start_line: 3, end_line: 2 }, /before start_line/],
        [{ start_line: 1, offset: 1 }, /not both/],
        [{ offset: 99 }, /only 18 bytes/],
        [{ start_line: 0 }, /between/],
        [{ lines: 3 }, /no argument "lines"; known are: path/],
        [{ encoding: 'latin1' }, /one of "utf-8", "base64"/],
      ];
      for (const [args, why] of wrong) {
        const r = await t.call('read_file', { path: 'f', ...args });
        assert.equal(r.isError, true);
        assert.match(r.content[0].text, why);
        assert.equal(r.structuredContent, undefined);
      }
      t.place.file('empty', '');
      assert.equal((await t.ok('read_file', { path: 'empty' })).content, '');
    });

    box('read_file: caps and characters', async (t) => {
      const long = 'äöü€\n'.repeat(50_000);
      t.place.file('long', long);
      let at = 0, all = '', pieces = 0;
      for (;;) {
        const r = await t.call('read_file', { path: 'long', offset: at });
        const { content, truncated, next_offset } = r.structuredContent;
        assert.ok(Buffer.byteLength(content) <= 262144);
        all += content;
        pieces++;
        if (!truncated) break;
        assert.match(r.content[0].text, new RegExp(`go on with offset ${next_offset}\\]$`));
        at = next_offset;
      }
      assert.equal(all, long);
      assert.equal(pieces, 2);
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
      t.place.file('binary', bytes);
      const no = await t.call('read_file', { path: 'binary' });
      assert.equal(no.isError, true);
      assert.match(no.content[0].text, /256 bytes in all.*encoding base64/);
      const yes = await t.ok('read_file', { path: 'binary', encoding: 'base64' });
      assert.deepEqual(Buffer.from(yes.content, 'base64'), bytes);
      assert.deepEqual([yes.encoding, yes.bytes], ['base64', 256]);
      // every byte escaped, and still a line a peer takes
      t.place.file('ones', '\u0001'.repeat(262144));
      const worst = await t.ok('read_file', { path: 'ones' });
      assert.equal(worst.content.length, 262144);
    });

    box('write_file: whole files, modes, directories', async (t) => {
      const at = (n) => join(t.place.root, n);
      assert.deepEqual(await t.ok('write_file', { path: 'x/y/z.txt', content: 'ä' }),
        { path: 'x/y/z.txt', bytes: 2, created: true });
      t.place.file('run.sh', 'old', 0o755);
      chmodSync(at('run.sh'), 0o755);
      assert.equal((await t.ok('write_file', { path: 'run.sh', content: 'new' })).created,
        false);
      assert.equal(statSync(at('run.sh')).mode & 0o777, 0o755);
      assert.equal(readFileSync(at('run.sh'), 'utf8'), 'new');
      const none = await t.call('write_file',
        { path: 'no/dir/f', content: '', create_dirs: false });
      assert.equal(none._meta['mo.error'], 'not_found');
      await t.ok('write_file',
        { path: 'b', content: Buffer.from([0, 255, 10]).toString('base64'), encoding: 'base64' });
      assert.deepEqual(readFileSync(at('b')), Buffer.from([0, 255, 10]));
      const bad = await t.call('write_file', { path: 'b', content: '!', encoding: 'base64' });
      assert.match(bad.content[0].text, /not base64/);
      const big = 'x'.repeat(8 * 1024 * 1024);
      await t.ok('write_file', { path: 'big', content: big });
      assert.equal(statSync(at('big')).size, big.length);
      const over = await t.call('write_file', { path: 'big', content: `${big}x` });
      assert.equal(over._meta['mo.error'], 'too_big');
      assert.deepEqual(readdirSync(t.place.root).sort(), ['b', 'big', 'run.sh', 'x'],
        'no temporary file is left');
      mkdirSync(at('closed'), { mode: 0o555 });
      if (nobody.uid) {
        const denied = await t.call('write_file', { path: 'closed/f', content: 'x' });
        assert.equal(denied._meta['mo.error'], 'policy');
        assert.match(denied.content[0].text, /not permitted/);
      }
    });

    box('a reader never sees half a file', async (t) => {
      const sizes = [10, 200_000];
      t.place.file('f', 'a'.repeat(sizes[0]));
      let stop = false;
      const reader = (async () => {
        const seen = new Set();
        while (!stop) {
          seen.add(readFileSync(join(t.place.root, 'f')).length);
          await new Promise(setImmediate);
        }
        return seen;
      })();
      for (let i = 0; i < 60; i++)
        await t.ok('write_file', { path: 'f', content: 'b'.repeat(sizes[i % 2]) });
      stop = true;
      for (const n of await reader) assert.ok(sizes.includes(n), `${n} bytes`);
    });

    box('edit_file: exactly what was asked', async (t) => {
      t.place.file('f', 'a b a\nb a\n');
      const edit = (args) => t.call('edit_file', { path: 'f', ...args });
      const two = await edit({ old_string: 'b', new_string: 'c' });
      assert.equal(two._meta['mo.error'], 'exists');
      assert.match(two.content[0].text, /2 times, at lines 1 2:/);
      const none = await edit({ old_string: 'zz', new_string: 'c' });
      assert.equal(none._meta['mo.error'], 'not_found');
      assert.match((await edit({ old_string: '', new_string: 'c' })).content[0].text, /empty/);
      assert.equal(readFileSync(join(t.place.root, 'f'), 'utf8'), 'a b a\nb a\n');
      const one = await t.ok('edit_file', { path: 'f', old_string: 'a\nb', new_string: 'x' });
      assert.deepEqual(one, { path: 'f', replacements: 1, bytes: 8 });
      const all = await t.ok('edit_file',
        { path: 'f', old_string: 'a', new_string: '', replace_all: true });
      assert.equal(all.replacements, 2);
      assert.equal(readFileSync(join(t.place.root, 'f'), 'utf8'), ' b x \n');
    });

    box('list_files: sorted, filtered, capped', async (t) => {
      for (const path of ['b.txt', 'a/1.ts', 'a/2.tsx', 'a/deep/3.ts'])
        await t.ok('write_file', { path, content: 'x' });
      symlinkSync('/etc', join(t.place.root, 'link'));
      const names = async (args) =>
        (await t.ok('list_files', args)).entries.map((e) => e.name);
      assert.deepEqual((await t.ok('list_files', {})).entries, [
        { name: 'a', type: 'directory' },
        { name: 'b.txt', type: 'file', size: 1 },
        { name: 'link', type: 'symlink' },
      ]);
      assert.deepEqual(await names({ path: '' }), ['a', 'b.txt', 'link']);
      assert.deepEqual(await names({ path: t.place.root }), ['a', 'b.txt', 'link']);
      assert.deepEqual(await names({ recursive: true }),
        ['a', 'a/1.ts', 'a/2.tsx', 'a/deep', 'a/deep/3.ts', 'b.txt', 'link']);
      assert.deepEqual(await names({ recursive: true, glob: '*.{ts,tsx}' }),
        ['a/1.ts', 'a/2.tsx', 'a/deep/3.ts']);
      assert.deepEqual(await names({ path: 'a', recursive: true, glob: 'deep/**' }),
        ['deep/3.ts']);
      const cut = await t.call('list_files', { recursive: true, max_entries: 2 });
      assert.equal(cut.structuredContent.truncated, true);
      assert.equal(cut.structuredContent.entries.length, 2);
      assert.match(cut.content[0].text, /\[cut after 2 entries/);
      await t.refused('list_files', { path: 'b.txt' });
    });

    box('search_files: text, patterns, context', async (t) => {
      await t.ok('write_file', { path: 'a.c', content: 'one\nTwo\nthree\ntwo two\nfive\n' });
      await t.ok('write_file', { path: 'b/b.py', content: 'x = 2\ntwo = 3\n' });
      await t.ok('write_file', { path: '.git/config', content: 'two' });
      t.place.file('bin', Buffer.from('two\0two'));
      const hits = async (args) =>
        (await t.ok('search_files', args)).matches.map((m) => `${m.path}:${m.line}`);
      assert.deepEqual(await hits({ pattern: 'two' }), ['a.c:4', 'b/b.py:2']);
      assert.deepEqual(await hits({ pattern: 'two', ignore_case: true }),
        ['a.c:2', 'a.c:4', 'b/b.py:2']);
      assert.deepEqual(await hits({ pattern: '^T.o$', regex: true }), ['a.c:2']);
      assert.deepEqual(await hits({ pattern: '^t\\wO', regex: true, ignore_case: true }),
        ['a.c:2', 'a.c:4', 'b/b.py:2']);
      assert.deepEqual(await hits({ pattern: 'two', glob: '*.py' }), ['b/b.py:2']);
      assert.deepEqual(await hits({ pattern: 'two', path: 'b' }), ['b/b.py:2']);
      assert.deepEqual(await hits({ pattern: 'two', path: 'a.c' }), ['a.c:4']);
      const around = await t.call('search_files', { pattern: 'three', context: 1 });
      assert.deepEqual(around.structuredContent.matches,
        [{ path: 'a.c', line: 3, text: 'three', before: ['Two'], after: ['two two'] }]);
      assert.equal(around.content[0].text, 'a.c-2-Two\na.c:3:three\na.c-4-two two\n');
      const cut = await t.ok('search_files', { pattern: 'two', max_results: 1 });
      assert.deepEqual([cut.matches.length, cut.truncated], [1, true]);
      const none = await t.call('search_files', { pattern: 'nothing' });
      assert.match(none.content[0].text, /No match in 2 files/);
      assert.equal(none.structuredContent.files_skipped, 1);
      const bad = await t.call('search_files', { pattern: '(?<=a)b', regex: true });
      assert.equal(bad._meta['mo.error'], 'invalid');
      await t.ok('write_file', { path: 'wide', content: `${'y'.repeat(5000)}needle${'z'.repeat(5000)}` });
      const wide = await t.ok('search_files', { pattern: 'needle' });
      assert.ok(wide.matches[0].text.includes('needle') && wide.matches[0].text.length <= 400);
    });

    box('execute_command: what a command is given and gives back', async (t) => {
      const r = await t.ok('execute_command', {
        command: 'pwd; echo "$MO_X $PATH" >&2; cat', cwd: '.',
        env: { MO_X: 'x y', PATH: '/bin:/usr/bin' }, stdin: 'ä\n',
      });
      assert.equal(r.stdout, `${t.place.root}\nä\n`);
      assert.equal(r.stderr, 'x y /bin:/usr/bin\n');
      assert.deepEqual([r.exit_code, r.signal, r.timed_out, r.truncated, r.left_running],
        [0, undefined, false, false, false]);
      const exit = await t.call('execute_command', { command: 'echo a; echo b >&2; exit 3' });
      assert.equal(exit.isError, true);
      assert.equal(exit.structuredContent.exit_code, 3);
      assert.equal(exit.content[0].text, 'a\n[stderr]\nb\n[exit code 3]\n');
      const killed = await t.call('execute_command', { command: 'kill -SEGV $$' });
      assert.equal(killed.structuredContent.signal, 'SIGSEGV');
      assert.equal(killed.structuredContent.exit_code, undefined);
      assert.equal((await t.call('execute_command', { command: 'true' })).content[0].text,
        '(no output)');
      // no descriptor of ours but the three, whichever build
      const fds = await t.ok('execute_command', { command: 'ls /proc/self/fd' });
      assert.equal(fds.stdout, '0\n1\n2\n3\n');
      const wrong = [
        [{}, /either command or argv/],
        [{ command: 'a', argv: ['a'] }, /either command or argv/],
        [{ argv: [] }, /1 to/], [{ argv: ['no-such-program'] }, /no such program/],
        [{ argv: ['/etc/passwd'] }, /may not be executed/],
        [{ argv: [1] }, /strings only/], [{ command: 'a', timeout: 0 }, /more than 0/],
        [{ command: 'a', timeout: 1e9 }, /between/], [{ command: 'a', env: { 'a=b': '' } }, /impossible/],
        [{ command: 'a', cwd: 'nowhere' }, /does not exist/],
      ];
      for (const [args, why] of wrong) {
        const no = await t.call('execute_command', args);
        assert.equal(no.isError, true, JSON.stringify(args));
        assert.match(no.content[0].text, why);
      }
    });

    box('execute_command: long output keeps both ends', async (t) => {
      const r = await t.call('execute_command', {
        command: 'i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done',
        max_output: 1000,
      });
      const { stdout, stdout_bytes, truncated } = r.structuredContent;
      assert.equal(truncated, true);
      assert.ok(stdout.startsWith('line 0\nline 1\n') && stdout.endsWith('line 19999\n'));
      const cut = Number(/\[\.\.\. (\d+) bytes cut here \.\.\.\]/.exec(stdout)[1]);
      assert.equal(cut, stdout_bytes - 1000);
      const bytes = await t.ok('execute_command', { command: "printf 'a\\377b\\0c'" });
      assert.equal(bytes.stdout, 'a\ufffdb\0c');
    });

    box('calls go side by side; ping is answered meanwhile', async (t) => {
      execFileSync('mkfifo', ['-m', '666', join(t.place.root, 'go')]);
      const slow = t.ok('execute_command', { command: 'read x <go; echo $x' });
      const many = Promise.all(Array.from({ length: 8 }, (_, i) =>
        t.ok('execute_command', { command: `echo ${i}` })));
      assert.deepEqual((await t.request('ping')).result, {});
      assert.deepEqual((await many).map((r) => r.stdout.trim()),
        ['0', '1', '2', '3', '4', '5', '6', '7']);
      await t.ok('write_file', { path: 'other', content: 'x' });
      await t.ok('execute_command', { command: 'echo gone >go' });
      assert.equal((await slow).stdout, 'gone\n');
    });

    box('too many at once are told so', async (t) => {
      for (let i = 0; i < 20; i++)
        t.send({ id: `c${i}`, method: 'tools/call', params: {
          name: 'execute_command', arguments: { command: 'sleep 1000' } } });
      await until(() => t.messages.length === 4, 'four refusals');
      for (const m of t.messages) assert.equal(m.result._meta['mo.error'], 'busy');
      for (let i = 0; i < 16; i++)
        t.send({ method: 'notifications/cancelled', params: { requestId: `c${i}` } });
      await until(() => t.processes().length === 0, 'the commands to end');
      await t.ok('execute_command', { command: 'true' });
    });

    box('live output: progress and log messages', async (t) => {
      await t.request('logging/setLevel', { level: 'debug' });
      const said = () => t.messages.filter((m) => m.method === 'notifications/progress').map((m) => m.params.message).join('');
      const gate = (file) => `until [ -e ${file} ]; do sleep 0.02; done`;
      const call = t.call('execute_command',
        { command: `echo one; ${gate('g1')}; echo two >&2; ${gate('g2')}; printf ä` },
        { id: 'live', _meta: { progressToken: 'tok' } });
      for (const [file, so] of [['g1', 'one\n'], ['g2', 'one\ntwo\n']]) {
        await until(() => said() === so, `'${so}'`);
        t.place.file(file, '');
      }
      const r = await call;
      assert.equal(r.structuredContent.stdout, 'one\nä');
      const progress = t.messages.filter((m) => m.method === 'notifications/progress');
      assert.equal(progress.map((m) => m.params.message).join(''), 'one\ntwo\nä');
      assert.ok(progress.length >= 2);
      assert.ok(progress.every((m) => m.params.progressToken === 'tok'));
      for (let i = 1; i < progress.length; i++)
        assert.ok(progress[i].params.progress > progress[i - 1].params.progress);
      const logs = t.messages.filter((m) => m.method === 'notifications/message');
      const text = (stream) => logs.filter((m) => m.params.data.stream === stream)
        .map((m) => m.params.data.text).join('');
      assert.deepEqual([text('stdout'), text('stderr')], ['one\nä', 'two\n']);
      assert.ok(logs.every((m) => m.params.data.requestId === 'live'));
      t.messages.length = 0;
      await t.request('logging/setLevel', { level: 'error' });
      await t.ok('execute_command', { command: 'echo quiet' });
      assert.deepEqual(t.messages, []);
    });

    test('every legacy revision gets what it knows', async () => {
      const rows = [
        ['2024-11-05', { annotations: false, structured: false }],
        ['2025-03-26', { annotations: true, structured: false }],
        ['2025-06-18', { annotations: true, structured: true }],
        ['2025-11-25', { annotations: true, structured: true }],
      ];
      const t = Toolbox.start({ program });
      try {
        const early = await t.request('tools/list');
        assert.equal(early.error.code, -32600);
        assert.deepEqual((await t.request('ping')).result, {});
        for (const [version, has] of rows) { // each a new session on the stream
          const hello = await t.open(version);
          assert.equal(hello.protocolVersion, version);
          assert.deepEqual(hello.capabilities, { tools: {}, logging: {} });
          assert.ok(hello.instructions.length > 100);
          const { tools } = (await t.request('tools/list')).result;
          assert.deepEqual(tools.map((x) => x.name), NAMES);
          for (const tool of tools) {
            assert.equal(tool.inputSchema.type, 'object');
            assert.equal('annotations' in tool, has.annotations);
            assert.equal('outputSchema' in tool, has.structured);
            assert.equal('title' in tool, has.structured);
          }
          const r = await t.call('write_file', { path: 'f', content: 'x' });
          assert.equal('structuredContent' in r, has.structured);
          assert.equal('resultType' in r, false);
        }
        const hints = Object.fromEntries((await t.request('tools/list')).result.tools
          .map((x) => [x.name, x.annotations]));
        assert.equal(hints.read_file.readOnlyHint, true);
        assert.equal(hints.write_file.readOnlyHint, false);
        assert.equal(hints.write_file.destructiveHint, true);
        assert.equal(hints.execute_command.openWorldHint, true);
        assert.equal((await t.open('2099-01-01')).protocolVersion, '2025-11-25');
        // batches are of one revision only
        t.raw('[{"jsonrpc":"2.0","id":"b1","method":"ping"}]\n');
        await until(() => t.messages.some((m) => m.error?.code === -32600), 'a refusal');
        await t.open('2025-03-26');
        t.raw('[{"jsonrpc":"2.0","id":"b1","method":"ping"},{"jsonrpc":"2.0","method":"x"},' +
          '{"jsonrpc":"2.0","id":"b2","method":"tools/list"}]\n');
        await until(() => ['b1', 'b2'].every((id) => t.messages.some(
          (m) => m.id === id && m.result)), 'the answers of a batch');
      } finally {
        await t.close();
      }
    });

    test('2026-07-28: every request speaks for itself', async () => {
      const t = Toolbox.start({ program });
      try {
        const ask = (method, params = {}, meta) =>
          t.request(method, { ...params, _meta: modern(meta) });
        const found = (await ask('server/discover')).result;
        assert.ok(found.supportedVersions.includes('2026-07-28'));
        assert.equal(found.resultType, 'complete');
        assert.equal(found._meta[`${P}serverInfo`].name, 'mo-toolbox');
        const list = (await ask('tools/list')).result;
        assert.equal(list.tools.length, NAMES.length);
        assert.ok(list.ttlMs > 0 && list.cacheScope === 'public');
        const done = (await ask('tools/call', {
          name: 'execute_command', arguments: { command: 'echo hi' },
        }, { progressToken: 7, [`${P}logLevel`]: 'info' })).result;
        assert.deepEqual([done.resultType, done.structuredContent.stdout], ['complete', 'hi\n']);
        assert.deepEqual(t.messages.map((m) => m.method).sort(),
          ['notifications/message', 'notifications/progress']);
        const codes = [
          [await ask('ping'), -32601], [await ask('initialize'), -32601],
          [await ask('nothing'), -32601],
          [await ask('tools/call', { name: 'nothing' }), -32602],
          [await ask('tools/list', { cursor: 'x' }), -32602],
          [await t.request('tools/list', { _meta: { [`${P}protocolVersion`]: '2026-07-28' } }), -32602],
          [await ask('tools/list', {}, { [`${P}protocolVersion`]: '2031-01-01' }), -32022],
          [await ask('tools/list', {}, { [`${P}logLevel`]: 'loud' }), -32602],
        ];
        for (const [m, code] of codes) assert.equal(m.error?.code, code, JSON.stringify(m));
        assert.deepEqual(codes[6][0].error.data,
          { supported: ['2026-07-28'], requested: '2031-01-01' });
        // both eras on one stream
        await t.open();
        assert.deepEqual((await t.request('ping')).result, {});
        assert.equal((await ask('tools/list')).result.resultType, 'complete');
      } finally {
        await t.close();
      }
    });

    box('garbage is answered and forgotten', async (t) => {
      const lines = [
        ['{"jsonrpc":"2.0","id":5,"me', -32700], ['\u0000\u0001', -32700],
        ['[]', -32600], ['42', -32600], ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
        ['{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600],
        ['['.repeat(100_000), -32700],
        [`{"jsonrpc":"2.0","id":"${'i'.repeat(600)}","method":"ping"}`, -32600],
        [`{"x":"${'y'.repeat(25 * 1024 * 1024)}"}`, -32600],
      ];
      for (const [line, code] of lines) {
        t.messages.length = 0;
        t.raw(`${line}\n`);
        await until(() => t.messages.length, `an answer to ${line.slice(0, 40)}`);
        assert.equal(t.messages[0].error.code, code, line.slice(0, 40));
      }
      const big = 'y'.repeat(25 * 1024 * 1024);
      for (const [line, id] of [
        [{ jsonrpc: '2.0', id: 'big', method: 'ping', params: { x: big } }, 'big'],
        [{ params: { id: 1, x: big }, method: 'ping', jsonrpc: '2.0', id: 7 }, 7],
        [{ jsonrpc: '2.0', method: 'ping', params: { id: 1, x: big } }, null],
        [{ jsonrpc: '2.0', id: 7, result: { x: big } }, null],
      ]) {
        t.messages.length = 0;
        t.raw(`${JSON.stringify(line)}\n`);
        await until(() => t.messages.length, 'an answer');
        assert.deepEqual([t.messages[0].id ?? null, t.messages[0].error.code], [id, -32600]);
        assert.match(t.messages[0].error.message, /the line is too long and was dropped/);
      }
      t.messages.length = 0;
      t.raw('\n\r\n  \n{"jsonrpc":"2.0","id":"gone","result":{}}\n');
      t.send({ method: 'notifications/unknown' });
      t.send({ method: 'notifications/cancelled', params: { requestId: 'unknown' } });
      assert.deepEqual((await t.request('ping')).result, {});
      assert.deepEqual(t.messages, []);
      const twice = t.request('tools/call',
        { name: 'execute_command', arguments: { command: 'sleep 1000' } }, 'same');
      twice.catch(() => {});
      t.send({ id: 'same', method: 'tools/call', params: { name: 'list_files' } });
      assert.equal((await twice).error.code, -32600);
      t.send({ method: 'notifications/cancelled', params: { requestId: 'same' } });
    });

    box('a new initialize ends what nobody waits for', async (t) => {
      t.send({ id: 'old', method: 'tools/call', params: {
        name: 'execute_command', arguments: { command: 'touch up; sleep 1000' } } });
      await until(() => existsSync(join(t.place.root, 'up')), 'the command');
      t.raw('{"jsonrpc":"2.0","id":9,"meth\n'); // the last words of the old client
      await t.open();
      await until(() => t.processes().length === 0, 'the command to end');
      await t.ok('list_files', {});
      assert.deepEqual(t.messages.filter((m) => m.id === 'old'), []);
    });

    box('a client that does not read holds nothing but itself', async (t) => {
      t.place.file('big', 'x'.repeat(262144));
      t.child.stdout.pause();
      const all = Array.from({ length: 200 }, () => t.ok('read_file', { path: 'big' }));
      const rss = () => Number(/VmRSS:\s+(\d+)/.exec(
        readFileSync(`/proc/${t.child.pid}/status`, 'latin1'))[1]);
      await until(() => rss() > 0, 'a look at its memory');
      assert.ok(rss() < 200 * 1024, `${rss()} KiB`);
      t.child.stdout.resume();
      for (const r of await Promise.all(all)) assert.equal(r.bytes, 262144);
    });

    test('--stay outlives its client; SIGTERM ends it and its commands', async () => {
      const place = new Place();
      const fifo = join(place.dir, 'fifo');
      execFileSync('mkfifo', ['-m', '666', fifo]);
      const launch = ({ bin, root, env }) => {
        const child = spawn('sh', ['-c', 'exec "$0" --stay --root "$1" <"$2"', bin, root, fifo],
          { env, ...nobody, stdio: ['pipe', 'pipe', 'pipe'] });
        return child;
      };
      const t = Toolbox.start({ program, place, launch });
      try {
        for (let i = 0; i < 2; i++) { // a client comes, goes, comes again
          const client = spawn('sh', ['-c', 'cat >"$0"', fifo], { stdio: ['pipe', 'inherit', 'inherit'] });
          t.raw = (text) => client.stdin.write(text);
          await t.open();
          await t.ok('execute_command', { command: 'sleep 1000 >/dev/null 2>&1 & true' });
          client.stdin.end();
          await once(client, 'close');
        }
        assert.equal(t.processes().length >= 2, true);
        t.child.kill('SIGTERM');
        assert.deepEqual(await within(t.exited, 'its end'), { code: 0, signal: null });
        await until(() => t.processes().length === 0, 'its commands to end');
      } finally {
        await t.close().catch(() => {});
        place.remove();
      }
    });

    test('as process 1 it reaps orphans', async (c) => {
      const unshare = process.getuid() === 0
        ? ['--pid', '--fork', '--kill-child']
        : ['--user', '--map-root-user', '--pid', '--fork', '--kill-child'];
      if (spawnSync('unshare', [...unshare, 'true']).status !== 0)
        return c.skip('a pid namespace (unshare --pid)');
      const place = new Place();
      const t = Toolbox.start({ program, place, launch: ({ bin, root, env }) =>
        spawn('unshare', [...unshare, '--mount-proc', bin, '--root', root],
          { env, stdio: ['pipe', 'pipe', 'pipe'] }) });
      try {
        await t.open();
        const pid = await t.ok('execute_command',
          { command: 'echo $PPID; grep -c . /proc/1/comm; (sleep 0.05 &) ; (sleep 0.05 &)' });
        assert.match(pid.stdout, /^\d+\n1\n$/);
        const left = () => t.ok('execute_command',
          { command: "grep -h '^State:.*Z' /proc/[0-9]*/status | wc -l; ls -d /proc/[0-9]* | wc -l" });
        let zombies;
        for (let i = 0; i < 100; i++) {
          zombies = (await left()).stdout.split('\n').map(Number);
          if (zombies[0] === 0) break;
        }
        assert.equal(zombies[0], 0);
        const out = await t.call('execute_command', { command: 'setsid sleep 1000 & sleep 1000', timeout: 0.3 });
        assert.equal(out.structuredContent.timed_out, true);
        const after = await t.ok('execute_command', { argv: ['sh', '-c', 'cat /proc/[0-9]*/comm'] });
        assert.ok(!after.stdout.includes('sleep'), after.stdout);
      } finally {
        await t.close();
        place.remove();
      }
    });

    test('a limit on the size of files is an answer, not the end', () =>
      withToolbox({ program, launch: ({ bin, root, env }) =>
        spawn('sh', ['-c', 'ulimit -f 8; exec "$0" --root "$1"', bin, root],
          { env, ...nobody, stdio: ['pipe', 'pipe', 'pipe'] }) }, async (t) => {
        t.place.file('f', 'old');
        const no = await t.call('write_file', { path: 'f', content: 'x'.repeat(100_000) });
        assert.equal(no._meta['mo.error'], 'too_big');
        assert.equal(readFileSync(join(t.place.root, 'f'), 'utf8'), 'old');
        assert.deepEqual(readdirSync(t.place.root), ['f']);
        const r = await t.call('execute_command', { command: 'exec head -c 100000 /dev/zero >big' });
        assert.equal(r.structuredContent.signal, 'SIGXFSZ'); // as anywhere else
      }));

    test('in an empty root, without /proc or a shell', async (c) => {
      if (program !== 'musl') return; // the other needs its libraries
      if (process.getuid() !== 0) return c.skip('root, for chroot');
      const t = Toolbox.start({ program, root: '/workspace', launch: ({ bin, root, env }) =>
        spawn('/usr/sbin/chroot', ['--userspec=65534:65534', join(bin, '..'),
          `/${basename(bin)}`, '--root', root], { env, stdio: ['pipe', 'pipe', 'pipe'] }) });
      try {
        await t.open();
        const self = `/${readdirSync(t.place.dir).find((n) => n.startsWith('program-'))}`;
        const no = await t.call('execute_command', { command: 'true' });
        assert.match(no.content[0].text, /no such program \(a `command` needs \/bin\/sh\)/);
        const yes = await t.ok('execute_command', { argv: [self, '--version'] });
        assert.match(yes.stdout, /^mo-toolbox /);
        await t.ok('write_file', { path: 'a/b', content: 'x' });
        assert.equal((await t.ok('search_files', { pattern: 'x' })).matches.length, 1);
        const late = await t.call('execute_command',
          { argv: [self, '--stay', '--root', '/'], timeout: 0.3 });
        assert.equal(late.structuredContent.timed_out, true);
        await until(() => t.processes().length === 0, 'the command to end');
        t.confined();
      } finally {
        await t.close();
      }
    });

    test('without openat2 it refuses to work', () => {
      const place = new Place();
      try {
        for (const why of ['ENOSYS', 'EPERM']) {
          const r = spawnSync(helper('no_openat2'),
            [why, programs[program], '--root', place.root],
            { env: { ...sanitizers }, input: '', encoding: 'utf8' });
          assert.equal(r.status, 1, r.stderr);
          assert.match(r.stderr, /no openat2, and nothing else keeps paths inside/);
          assert.equal(r.stdout, '');
        }
      } finally {
        place.remove();
      }
    });

    test('--help, --version, wrong arguments, no root', () => {
      const run = (...args) => spawnSync(programs[program], args,
        { env: { ...sanitizers }, input: '', encoding: 'utf8' });
      assert.match(run('--help').stdout, /^usage: mo-toolbox/);
      assert.match(run('--version').stdout, /^mo-toolbox \d+\.\d+\.\d+\n$/);
      assert.equal(run('--wrong').status, 2);
      assert.equal(run('--root').status, 2);
      const none = run('--root', '/no/such/root');
      assert.equal(none.status, 1);
      assert.match(none.stderr, /the root \/no\/such\/root: No such file/);
      assert.match(run('--root', 'relative').stderr, /absolute/);
    });
  });
}

// The same conversation for every kind of official client.
const kinds = {
  'sdk 1.x': { Client: Client1, Stdio: Stdio1, options: {} },
  'client 2.x, legacy': { Client: v2.Client, Stdio: Stdio2, options: {} },
  'client 2.x, auto': {
    Client: v2.Client, Stdio: Stdio2,
    options: { versionNegotiation: { mode: 'auto' } },
  },
};
for (const [kind, { Client, Stdio, options }] of Object.entries(kinds)) {
  for (const program of Object.keys(programs)) {
    test(`${kind} as a client (${program})`, async () => {
      const place = new Place();
      const client = new Client({ name: 'it', version: '1' }, options);
      try {
        await client.connect(new Stdio({
          command: programs[program], args: ['--root', place.root],
          env: { PATH, ...sanitizers },
        }));
        assert.equal(client.getServerVersion().name, 'mo-toolbox');
        const { tools } = await client.listTools(); // SDKs then check results
        assert.deepEqual(tools.map((x) => x.name), NAMES);
        const call = (name, args, opts) => options.versionNegotiation || Client === v2.Client
          ? client.callTool({ name, arguments: args }, opts)
          : client.callTool({ name, arguments: args }, undefined, opts);
        await call('write_file', { path: 'a.txt', content: 'hello\n' });
        await call('edit_file', { path: 'a.txt', old_string: 'hello', new_string: 'bye' });
        const read = await call('read_file', { path: 'a.txt' });
        assert.equal(read.structuredContent.content, 'bye\n');
        assert.equal((await call('list_files', {})).structuredContent.entries.length, 1);
        assert.equal((await call('search_files', { pattern: 'y', context: 1 }))
          .structuredContent.matches.length, 1);
        // It goes on when the test has heard of all its output.
        let progress = '';
        const ran = await call('execute_command', { command:
          'echo out; echo err >&2; while [ ! -e go ]; do sleep 0.02; done; exit 2' },
        { onprogress: (p) => {
          progress += p.message;
          if (progress.length === 8) writeFileSync(join(place.root, 'go'), '');
        } });
        assert.equal(ran.isError, true);
        assert.equal(ran.structuredContent.exit_code, 2);
        assert.deepEqual(progress.split('\n').sort(), ['', 'err', 'out']);
        const stop = new AbortController();
        const long = call('execute_command', { command: 'touch on; sleep 1000' },
          { signal: stop.signal });
        await until(() => existsSync(join(place.root, 'on')), 'the command');
        stop.abort();
        await assert.rejects(long);
        assert.equal((await call('execute_command', { command: 'echo on' }))
          .structuredContent.stdout, 'on\n');
      } finally {
        await client.close();
        place.remove();
      }
    });
  }
}

test('the static program is small and needs nothing', () => {
  const bytes = statSync(programs.musl).size;
  assert.ok(bytes <= 150_000, `${bytes} bytes`);
  const elf = execFileSync('readelf', ['-lW', programs.musl], { encoding: 'utf8' });
  assert.doesNotMatch(elf, /INTERP|DYNAMIC/);
  assert.doesNotMatch(elf, /LOAD.* RWE /);
});
