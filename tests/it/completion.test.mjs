// Completion in real shells, with the names of servers, tools, views, sessions
// and secrets.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const bin = process.env.MO_BIN ??
  fileURLToPath(new URL('../../build-asan/src/app/mcp-orchestrator', import.meta.url));
const tab = fileURLToPath(new URL('press_tab.py', import.meta.url));
const RAN = `mcp-orchestrator() { printf 'RAN:%s:END\\n' "$*"; }`;

let dir, env;
const run = (file, args, more = {}) =>
  new Promise((resolve) => {
    const child = execFile(file, args, { env: { ...env, ...more.env }, cwd: more.cwd ?? dir },
      (error, out, err) => resolve({ code: error ? child.exitCode : 0, out, err }));
    child.stdin.end(more.input ?? '');
  });
const complete = async (...args) => {
  const r = await run(bin, ['complete', ...args]);
  assert.equal(r.err, '');
  return r.out.split('\n').filter(Boolean);
};

/** The cache file of a server's tools, as the gateway writes it. */
const cache = (server, tools) =>
  writeFile(join(dir, 'state', 'catalog',
    `${createHash('sha256').update(server).digest('hex').slice(0, 32)}.json`),
  JSON.stringify({ version: '2', name: server, digest: 'x', tools }), { mode: 0o600 });

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mo-complete-'));
  env = { PATH: `${dirname(bin)}:${process.env.PATH}`, HOME: dir, TERM: 'dumb', LC_ALL: 'C.UTF-8',
    ASAN_OPTIONS: 'detect_leaks=0', XDG_DATA_HOME: join(dir, 'share'), ZDOTDIR: dir,
    MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') };
  await mkdir(join(dir, '.config', 'mcp-orchestrator'), { recursive: true });
  await mkdir(join(dir, 'state', 'catalog'), { recursive: true, mode: 0o700 });
  await writeFile(join(dir, '.config', 'mcp-orchestrator', 'config.json'), JSON.stringify({
    mcpServers: { alarm: { command: 'touch', args: [join(dir, 'started')] },
      birds: { command: 'true' } },
    gateway: {}, views: { narrow: { servers: ['birds'] } },
  }), { mode: 0o600 });
  await cache('alarm', [{ name: 'ring_bell' }, { name: `$(touch ${dir}/evil)` },
    { name: '`touch evil`' }, { name: '--json' }, { name: 'a b' }]);
  const set = await run(bin, ['secrets', 'set', 'alarm.KEY'], { input: 'hidden-value' });
  assert.equal(set.code, 0, set.err);
});
after(() => rm(dir, { recursive: true }));

describe('complete', () => {
  test('prints names, and none that a shell could evaluate', async () => {
    assert.deepEqual(await complete('server'), ['alarm', 'birds']);
    assert.deepEqual(await complete('view'), ['narrow']);
    assert.deepEqual(await complete('secret'), ['alarm.KEY']);
    assert.deepEqual(await complete('tool', 'alarm'), ['ring_bell']);
    assert.deepEqual(await complete('tool', 'birds'), []);
    assert.deepEqual(await complete('tool', '../../x'), []);
    assert.deepEqual(await complete('nonsense'), []);
  });

  test('makes no database, and reads one that is there', async () => {
    assert.deepEqual(await complete('session'), []);
    assert.ok(!(await readdir(join(dir, 'state'))).some((f) => f.endsWith('.db')));
    const chat = await run(bin, ['chat', '--provider', 'demo', '--session', 'tab-session',
      'hello']);
    assert.equal(chat.code, 0, chat.err);
    await rm(join(dir, 'started'), { force: true }); // a conversation starts servers
    const list = JSON.parse((await run(bin, ['sessions', 'list', '--json'])).out);
    assert.equal(list.length, 1);
    assert.deepEqual((await complete('session')).sort(), list.map((s) => s.id).sort());
  });

  test('says nothing about errors and unconfirmed files', async () => {
    const other = join(dir, 'other');
    await mkdir(other);
    await writeFile(join(other, 'mcp-orchestrator.json'),
      '{"mcpServers":{"evil":{"command":"x"}}}', { mode: 0o600 });
    const r = await run(bin, ['complete', 'server'], { cwd: other });
    assert.deepEqual([r.out, r.err], ['', '']);
    const bad = await run(bin, ['complete', 'server', '--config', '/no/such']);
    assert.deepEqual([bad.out, bad.err], ['', '']);
    const redis = await run(bin, ['complete', 'session'],
      { env: { REDIS_URL: 'redis://127.0.0.1:1' } });
    assert.deepEqual([redis.out, redis.err], ['', '']);
  });
});

const typed = [
  ['conf', 'config'],
  ['mcp uninst', 'mcp uninstall'],
  ['mcp test al', 'mcp test alarm'],
  ['mcp test --era legacy bi', 'mcp test --era legacy birds'],
  ['call alarm ri', 'call alarm ring_bell'],
  ['gateway --view na', 'gateway --view narrow'],
  ['secrets remove al', 'secrets remove alarm.KEY'],
  ['serve --sandbox nat', 'serve --sandbox native'],
];

/** Every command, option and value of the program, without its last letter. */
function everything() {
  const data = JSON.parse(readFileSync(new URL('../../data/commands.json', import.meta.url)));
  const rows = [];
  const add = (before, word, all) => {
    const part = word.slice(0, -1);
    const isOne = !all.some((w) => w !== word && w.startsWith(part));
    rows.push([`${before}${isOne ? part : word}`, `${before}${word}`]);
  };
  const shown = data.commands.filter((c) => !c.hidden);
  for (const { name, options = [] } of shown) {
    const [first, second] = name.split(' ');
    if (second)
      add(`${first} `, second, shown.filter((c) => c.name.startsWith(`${first} `)).map((c) => c.name.split(' ')[1]));
    else add('', first, shown.map((c) => c.name.split(' ')[0]));
    const all = [...options.map((o) => (typeof o === 'string' ? { name: o, ...data.shared[o] } : o)), ...data.globals]
      .filter((o) => !o.hidden);
    for (const o of all) {
      add(`${name} `, `--${o.name}`, all.map((x) => `--${x.name}`));
      if (o.arg && o.words && !o.words.startsWith('@'))
        for (const value of o.words.split(' ')) add(`${name} --${o.name} `, value, o.words.split(' '));
    }
  }
  assert.ok(rows.length > 200, `${rows.length} rows`);
  return rows;
}

async function press(setup, shell) {
  const rows = [...typed, ...everything()];
  const lines = rows.map(([line]) => `mcp-orchestrator ${line}`).join('\n');
  const r = await run('python3', [tab, `${setup}; ${RAN}`, lines, ...shell]);
  assert.deepEqual(r.out.trim().split('\n').map((l) => l.trim()), rows.map(([, wanted]) => wanted), r.err);
  await assert.rejects(access(join(dir, 'evil')));
  await assert.rejects(access(join(dir, 'started')));
}

describe('shells', () => {
  test('bash, with bash-completion', async () => {
    const folder = join(dir, 'share', 'bash-completion', 'completions');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'mcp-orchestrator'), (await run(bin, ['completion', 'bash'])).out);
    await press('source /usr/share/bash-completion/bash_completion', ['bash', '--norc', '-i']);
  });

  test('zsh, loaded by the first completion', async () => {
    await mkdir(join(dir, 'zsh'));
    await writeFile(join(dir, 'zsh', '_mcp-orchestrator'),
      (await run(bin, ['completion', 'zsh'])).out);
    await press(`fpath=(${dir}/zsh $fpath); autoload -U compinit; compinit -u -D`,
      ['zsh', '-f', '-i']);
  });

  test('fish', async () => {
    const folder = join(dir, '.config', 'fish', 'completions');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'mcp-orchestrator.fish'),
      (await run(bin, ['completion', 'fish'])).out);
    const rows = [...typed, ...everything()];
    const r = await run('fish', ['-c', rows.map(([line]) =>
      `echo "> ${line}"; complete -C 'mcp-orchestrator ${line}'`).join('\n')]);
    const answers = r.out.split('> ').slice(1).map((a) => a.trim().split('\n').slice(1).map((l) => l.split('\t')[0]));
    for (const [i, [line, wanted]] of rows.entries())
      assert.ok(answers[i].includes(wanted.split(' ').at(-1)), `${line}: ${answers[i]} ${r.err}`);
    const tools = await run('fish', ['-c', "complete -C 'mcp-orchestrator call alarm '"]);
    assert.ok(!/touch/.test(tools.out), tools.out);
  });
});
