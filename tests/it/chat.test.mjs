// `chat` in a pseudo-terminal, typed at by nobody in particular, and for
// scripts: the same conversation, the same approvals.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';

import { claude } from '../fakes/claude.mjs';
import { BIN, until, within } from './server.mjs';
import { run, write } from './talk_kit.mjs';

const PTY = 'import pty,sys,os; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))';

let model, dir, env;
before(async () => {
  model = await claude({ key: 'sk-ant-0123456789' });
  dir = await mkdtemp(join(tmpdir(), 'mo-chat-'));
  await writeFile(join(dir, 'mcp-orchestrator.json'), JSON.stringify({
    llm: { provider: 'claude', model: 'claude-sonnet-5-5' }, sandbox: { driver: 'native', warm: 0 },
  }));
  env = {
    PATH: process.env.PATH, HOME: dir, TERM: 'xterm', ANTHROPIC_API_KEY: model.key, ANTHROPIC_BASE_URL: model.url,
    ASAN_OPTIONS: 'detect_leaks=0', // looked for once, below: it takes seconds
  };
});
after(async () => {
  await model.close();
  await rm(dir, { recursive: true, force: true });
  assert.deepEqual(model.problems, []);
});
beforeEach(() => {
  model.script.length = 0;
});

const programs = new Set();
afterEach(() => {
  for (const p of programs) p.child.kill('SIGKILL'); // of a test that failed
});

class Program {
  constructor(command, args, more = {}) {
    programs.add(this);
    this.child = spawn(command, args, { cwd: dir, env: { ...env, ...more } });
    this.out = '';
    this.err = '';
    this.child.stdout.on('data', (d) => (this.out += d));
    this.child.stderr.on('data', (d) => (this.err += d));
    this.exit = once(this.child, 'close').then(([code]) => {
      programs.delete(this);
      return code;
    });
  }

  /** Wait until the n-th occurrence of that has been printed. */
  async sees(what, n = 1) {
    const all = typeof what === 'string'
      ? () => this.out.split(what).length - 1
      : () => [...this.out.matchAll(new RegExp(what, 'g'))].length;
    await until(() => all() >= n, { toString: () => `${what} #${n} in:\n${this.out}${this.err}` }, 30_000);
  }

  type(text) {
    this.child.stdin.write(text);
  }

  async end() {
    const code = await within(this.exit, { toString: () => `the end:\n${this.out}${this.err}` }, 30_000)
      .finally(() => this.child.kill('SIGKILL'));
    assert.doesNotMatch(this.out + this.err, /runtime error|Sanitizer/);
    return code;
  }
}

const inPty = (args, more) => new Program('python3', ['-c', PTY, BIN, 'chat', ...args], more);
const terminal = (...args) => inPty(args);
const ASK = 'Run it?';

async function script(args, input = '', more = {}) {
  const p = new Program(BIN, ['chat', ...args], more);
  p.child.stdin.end(input);
  const code = await p.end();
  return { code, out: p.out, err: p.err };
}

const results = () =>
  JSON.parse(model.requests.at(-1).bytes.toString()).messages.at(-1).content
    .map((b) => [b.is_error === true, b.content.map((c) => c.text).join('')]);

describe('in a terminal', () => {
  test('yes, no with a reason, an edit, always', async () => {
    model.script.push(
      { text: 'I write.', calls: [write('a.txt', 'one\ntwo\n')] },
      { calls: [run('rm -rf /')] },
      { calls: [write('b.txt', 'theirs')] },
      { calls: [run('cat b.txt')] },
      { calls: [run('echo again')] },
      { text: 'All done.' });
    const t = terminal();
    await t.sees('> ');
    t.type('write it\r');
    await t.sees(ASK);
    assert.match(t.out, /I write\./);
    assert.match(t.out, /box wants to run write_file \(1 of 1\)/);
    assert.match(t.out, /path: "a\.txt"/);
    assert.match(t.out, / {2}\+ one\r\n {2}\+ two\r\n/);
    t.type('y\r');
    await t.sees(ASK, 2);
    assert.match(t.out, /write_file done, \d+ ms/);
    t.type('n\r');
    await t.sees('Why not');
    t.type('far too much\r');
    await t.sees(ASK, 3);
    assert.match(results()[0][1], /Their reason: far too much/);
    t.type('e\r');
    await t.sees('one line of JSON');
    t.type('{"path":"b.txt","content":\r');
    await t.sees('this is not JSON');
    await t.sees(ASK, 4);
    t.type('e\r');
    await t.sees('one line of JSON', 2);
    t.type('{"path":"b.txt","content":"mine"}\r');
    await t.sees(ASK, 5);
    t.type('a\r');
    await t.sees('All done.');
    assert.match(t.out, /\| mine/);
    assert.match(t.out, /\| again/);
    assert.equal(t.out.split(ASK).length - 1, 5, 'always means not again');
    t.type('/quit\r');
    assert.equal(await t.end(), 0);
  });

  test('a host that the box asks about', async () => {
    const config = join(dir, 'ask.json');
    await writeFile(config, JSON.stringify({
      llm: { provider: 'claude', model: 'claude-sonnet-5-5' },
      sandbox: { driver: 'native', warm: 0, network: { ask: true } },
      approvals: { rules: [{ server: 'box', action: 'allow' }] },
    }), { mode: 0o600 });
    model.script.push({ calls: [run('curl -sS http://somewhere.test/x; echo "exit $?"')] }, { text: 'All done.' });
    const t = inPty(['--config', config]);
    await t.sees('> ');
    t.type('look\r');
    await t.sees(ASK);
    assert.match(t.out, /a program in the box wants to connect to somewhere\.test port 80\r\n {2}GET \/x\r\n {2}program, as the box says: \/usr\/bin\/curl\r\n/);
    t.type('n not there\r');
    await t.sees('All done.');
    assert.match(t.out, /\| exit (56|52|7)/);
    t.type('/quit\r');
    assert.equal(await t.end(), 0);
  });

  test('arguments in the person\'s own editor', async () => {
    const tmp = join(dir, 'tmp');
    await mkdir(tmp);
    // What it does to the file, and what it saw, by the number of the time.
    const script = join(dir, 'editor');
    await writeFile(script, `#!/bin/sh
stat -c '%a %n' "$2" >> '${dir}/saw'; cat "$2" >> '${dir}/saw'
echo x >> '${dir}/times'
read line # it has the terminal
case $(wc -l < '${dir}/times') in
1) exit 3 ;;
2) ;;
3) echo '{"path": "b.txt",' > "$2" ;;
4) printf '"content": "%s"}' "$line" >> "$2" ;;
esac
`, { mode: 0o755 });
    model.script.push({ calls: [write('a.txt', 'theirs')] }, { calls: [run('cat b.txt')] });
    const t = inPty([], { EDITOR: 'false', VISUAL: `${script} -w`, TMPDIR: tmp });
    const edits = async (n) => {
      t.type('e\r');
      await until(async () => (await readFile(join(dir, 'times'), 'utf8').catch(() => '')).split('\n').length > n, `edit ${n}`);
      assert.equal((await readdir(tmp)).filter((f) => f.endsWith('.json')).length, 1);
    };
    await t.sees('> ');
    t.type('write it\r');
    await t.sees(ASK);
    await edits(1);
    t.type('\x03'); // only the editor's, which is a shell: it ends
    await t.sees('the editor ended with');
    await t.sees(ASK, 2);
    await edits(2);
    t.type('\r');
    await t.sees('(unchanged)');
    await t.sees(ASK, 3);
    await edits(3);
    t.type('\r');
    await t.sees('this is not JSON');
    await t.sees(ASK, 4);
    assert.equal(model.requests.at(-1).body.messages.length, 1, 'nothing was decided yet');
    await edits(4);
    t.type('typed there\r');
    await t.sees(ASK, 5);
    assert.match(t.out, /write_file done/);
    const saw = await readFile(join(dir, 'saw'), 'utf8');
    assert.match(saw, /^600 .*\.json\n\{\n {2}"path": "a\.txt",\n {2}"content": "theirs"\n\}\n/);
    assert.match(saw, /600 [^\n]*\n\{"path": "b\.txt",\n$/, 'the last edit begins where the one before was left');
    assert.deepEqual(await readdir(tmp), [], 'no file is left');
    model.script.push({ text: 'I see.' });
    t.type('y\r');
    await t.sees('| typed there');
    await t.sees('I see.');
    t.type('/quit\r');
    assert.equal(await t.end(), 0);
  });

  test('stop with Ctrl-C, go on, leave with two', async () => {
    model.script.push({ text: 'a'.repeat(60), fault: 'stall' });
    const t = terminal();
    await t.sees('> ');
    t.type('talk\r');
    await t.sees('aaaaa');
    t.type('\x03');
    await t.sees('(stopped)');
    model.script.push({ text: 'Still here.' });
    t.type('hello?\r');
    await t.sees('Still here.');
    model.script.push({ calls: [run('sleep 1000')] });
    t.type('run\r');
    await t.sees(ASK);
    t.type('y\r');
    await t.sees(/y\r\n/);
    t.type('\x03');
    await t.sees('(stopped)', 2);
    t.type('\x03');
    assert.equal(await t.end(), 0);
  });

  test('commands, and what was said', async () => {
    model.script.push({ text: 'Hi there.' });
    const t = terminal();
    await t.sees('> ');
    t.type('/help\r');
    await t.sees('/model NAME');
    t.type('/nonsense\r');
    await t.sees('unknown command /nonsense');
    t.type('hello\r');
    await t.sees('Hi there.');
    t.type('/history\r');
    await t.sees(/user:\r\n {2}hello\r\nassistant:\r\n {2}Hi there\./);
    t.type('/reset\r');
    await t.sees('Starting fresh');
    t.type('/model claude-opus-5-5\r');
    await t.sees('model claude-opus-5-5');
    model.script.push({ text: 'Opus here.' });
    t.type('who?\r');
    await t.sees('Opus here.');
    assert.equal(JSON.parse(model.requests.at(-1).bytes.toString()).messages.length, 1);
    t.type('\x04');
    assert.equal(await t.end(), 0);
  });

  test('what is typed ahead waits for the turn', async () => {
    model.script.push({ text: 'Nearly there.' }, { text: 'Second.' });
    const t = terminal();
    await t.sees('> ');
    t.type('first\r/history\ragain\r');
    await t.sees(/user:\r\n {2}first\r\nassistant:\r\n {2}Nearly there\.[^]*Second\./);
    t.type('/quit\r');
    assert.equal(await t.end(), 0);
  });

  test('no answer repaints the screen', async () => {
    model.script.push(
      { text: 'clear\x1b[2J\x07', calls: [run("printf '\\033]0;x\\007\\xe2\\x80\\xae'")] }, { text: 'end\u202E\x9b1m' });
    const t = terminal('--session', 'painted');
    await t.sees('> ');
    t.type('go\r');
    await t.sees(ASK);
    t.type('y\r');
    await t.sees('end<U+202E>');
    t.type('/quit\r');
    assert.equal(await t.end(), 0);
    assert.match(t.out, /clear<1b>\[2J<07>/);
    assert.doesNotMatch(t.out, /\x1b|\x07|\u202E|\x9b/);
  });
});

describe('for scripts', () => {
  test('standard input is the message, standard output the answer', async () => {
    model.script.push({ calls: [run('echo in the box')] }, { text: 'I saw it.' });
    const { code, out, err } = await script(['--yes'], 'list\nfiles\n');
    assert.deepEqual([code, out], [0, 'I saw it.\n'], err);
    assert.deepEqual(results(), [[false, 'in the box\n']]);
    const first = JSON.parse(model.requests.at(-1).bytes.toString()).messages[0];
    assert.equal(first.content[0].text, 'list\nfiles');
  });

  test('what is said before a call and after it are lines of their own', async () => {
    model.script.push({ text: 'First.', calls: [run('echo 1'), run('echo 2')] }, { text: 'Then\n', calls: [run('echo 3')] }, { text: 'Last.' });
    const { code, out, err } = await script(['--yes', 'go']);
    assert.deepEqual([code, out], [0, 'First.\nThen\nLast.\n'], err);
    model.script.push({ text: 'May I?', calls: [run('echo no')] }, { text: 'No.' });
    assert.equal((await script(['go'])).out, 'May I?\nNo.\n');
  });

  test('nobody to ask: rejected, told, 5', async () => {
    model.script.push({ calls: [run('echo no')] }, { text: 'As you wish.' });
    const { code, out } = await script(['do', 'it']);
    assert.deepEqual([code, out], [5, 'As you wish.\n']);
    assert.match(results()[0][1], /no terminal to ask a person at/);
  });

  test('every event as JSON', async () => {
    model.script.push({ calls: [run('echo x')] }, { text: 'fine' });
    const { code, out } = await script(['--json', '--yes', 'go'], '', { ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? '' });
    assert.equal(code, 0);
    const events = out.trim().split('\n').map((l) => JSON.parse(l));
    const names = events.map((e) => e.event).filter((e) => !/delta|progress|log/.test(e));
    assert.deepEqual(names, ['system:ready', 'session:history', 'session:about', 'session:entry', 'agent:thinking',
      'session:entry', 'tool:approval_required', 'tool:resolved', 'agent:thinking', 'tool:output',
      'session:entry', 'agent:thinking', 'session:entry', 'agent:response', 'session:closed']);
    assert.equal(events.find((e) => e.event === 'agent:response').args[0], 'fine');
  });

  test('a model that fails: 1; no message: 2', async () => {
    model.script.push({ status: 401, body: { type: 'error', error: { type: 'authentication_error', message: 'no' } } });
    const failed = await script(['hello']);
    assert.equal(failed.code, 1);
    assert.equal(failed.out, '');
    assert.match(failed.err, /error: .*key/i);
    const empty = await script([], '  \n');
    assert.equal(empty.code, 2);
  });

  test('a session goes on where it was', async () => {
    model.script.push({ text: 'one' }, { text: 'two' });
    assert.equal((await script(['--session', 'kept', 'first'])).out, 'one\n');
    assert.equal((await script(['--session', 'kept', 'second'])).out, 'two\n');
    assert.equal(JSON.parse(model.requests.at(-1).bytes.toString()).messages.length, 3);
  });
});

describe('a server asks the person', () => {
  const fixture = join(process.env.MO_BUILD ?? join(dirname(BIN), '../..'), 'tests/fixture/fixture');
  const call = (name, args = {}) => model.script.push({ calls: [{ name: `fx_test_${name}`, args }] }, { text: 'Thank you.' });
  const settings = () => ({ MCP_ORCHESTRATOR_CONFIG: join(dir, 'asks.json') });
  before(() => writeFile(join(dir, 'asks.json'), JSON.stringify({
    llm: { provider: 'claude', model: 'claude-sonnet-5-5', tools: 'all' }, sandbox: { driver: 'native', warm: 0 },
    mcpServers: { fx: { command: fixture } }, approvals: { rules: [{ server: 'fx', action: 'allow' }] },
  })));
  const person = () => new Program('python3', ['-c', PTY, BIN, 'chat'], settings());

  test('field by field, with defaults, choices and a second thought', async () => {
    call('elicitation_sep1034_defaults');
    const t = person();
    await t.sees('> ');
    t.type('go\n');
    await t.sees('fx asks: Please review');
    await t.sees('name (text, else John Doe): ');
    t.type('Ada \u202e\n');
    await t.sees('age (whole number, else 30): ');
    t.type('old\n');
    await t.sees('this is not a whole number');
    t.type('36\n');
    await t.sees('score (number, else 95.5): ');
    t.type('\n');
    await t.sees('2  inactive');
    t.type('2\n');
    await t.sees('verified (yes or no, else true): ');
    t.type('no\n');
    await t.sees('Thank you.');
    const said = results()[0][1];
    for (const part of ['"age":36', '"score":95.5', '"status":"inactive"', '"verified":false'])
      assert.ok(said.includes(part), said);

    call('elicitation', { message: 'Who?' });
    t.type('again\n');
    await t.sees("username, User's response (text, needed): ");
    t.type('\n');
    await t.sees('this one is needed');
    t.type('/decline\n');
    await t.sees('Thank you.', 2);
    assert.match(results()[0][1], /action=decline/);

    call('elicitation_url');
    t.type('page\n');
    await t.sees('https://example.com/page');
    await t.sees('Have you done that?');
    t.type('y\n');
    await t.sees('Thank you.', 3);
    assert.match(results()[0][1], /action=accept/);
    t.type('/quit\n');
    assert.equal(await t.end(), 0);
  });

  test('for an answer of the model: the request, then the answer', async () => {
    const ask = (...more) => model.script.push({ calls: [{ name: 'fx_test_sampling', args: { prompt: 'Name a colour.' } }] }, ...more, { text: 'Thank you.' });
    ask({ text: 'Blue.' });
    const t = person();
    await t.sees('> ');
    t.type('go\n');
    await t.sees('fx asks the model claude-sonnet-5-5, at most ');
    await t.sees('user: Name a colour.');
    await t.sees('Approve? [y]es [n]o: ');
    t.type('y\n');
    await t.sees('The model answered fx');
    await t.sees('Blue.');
    await t.sees('Approve? [y]es [n]o: ', 2);
    t.type('y\n');
    await t.sees('Thank you.');
    assert.match(results()[0][1], /Blue\./);
    ask();
    t.type('again\n');
    await t.sees('Approve? [y]es [n]o: ', 3);
    t.type('n\n');
    await t.sees('Thank you.', 2);
    assert.doesNotMatch(results()[0][1], /Blue/);
    t.type('/quit\n');
    assert.equal(await t.end(), 0);

    ask();
    const { out, err } = await script(['go'], '', settings());
    assert.equal(out, 'Thank you.\n');
    assert.match(err, /no terminal to approve it/);
  });

  test('Ctrl-C in the middle of it stops the turn', async () => {
    call('elicitation', { message: 'Who?' });
    const t = person();
    await t.sees('> ');
    t.type('go\n');
    await t.sees('(text, needed): ');
    t.type('\x03');
    await t.sees('(stopped)');
    t.type('/quit\n');
    assert.equal(await t.end(), 0);
  });

  test('a script cannot be asked', async () => {
    call('elicitation', { message: 'Who?' });
    const { code, out, err } = await script(['go'], '', settings());
    assert.equal(out, 'Thank you.\n');
    assert.match(err, /there is no terminal to answer/);
    assert.equal(code, 5);
    assert.match(results()[0][1], /action=cancel/);
  });
});
